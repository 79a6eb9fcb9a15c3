"""Decide from public facts how many matches to choose with a budget, and how many rows can raise a score.

A match is a pair of tests, one of each view, that should hold for nearly the same rows (see `match_scores`).
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpframework.facts.schema import Schema

SOME_ROWS = 2_500  # the number of rows to plan for if the schema states none
LOOSE = 10_000  # a bound on the number of rows that is above this number is replaced by it
#: The share of the rows beyond which a match gains nothing by holding for more rows.
CAP = Fraction(3, 10)
WITHIN = 0.08  # how far from the best a choice may be to be worth its budget, as a share of the rows


def rows_meant(schema: Schema) -> int:
    """Return a public number of rows to plan for: `rows`, else `max_rows` up to `LOOSE`, else `SOME_ROWS`.

    A bound of a million rows says little about a table. Replacing it by `LOOSE` costs a larger table some choices.
    Keeping it would give a smaller table so many choices that each of them is nearly random.
    """
    if schema.rows is not None:
        return schema.rows
    return SOME_ROWS if schema.max_rows is None else min(schema.max_rows, LOOSE)


def cap_of(rows: float) -> int:
    """Return the number of rows beyond which a match gains nothing, in a table of `rows` rows.

    Examples
    --------
    >>> cap_of(1000), cap_of(1)
    (300, 1)
    """
    return max(int(CAP * int(rows)), 1)


def choices_carried(budget: float, candidates: int, most: int) -> int:
    """Return how many matches can be chosen with an epsilon, so that each is close enough to the best.

    A choice by the exponential mechanism with epsilon e among m candidates is roughly within ln(m) / e rows of the
    best. If k choices share the epsilon equally, each is within k ln(m) / epsilon rows. The number returned is the k
    for which this is about the share `WITHIN` of the rows, but at least 1 and at most `most`.

    Parameters
    ----------
    budget
        Epsilon times the number of rows.
    candidates
        The number of candidates of each choice.
    most
        The largest number of choices.

    Examples
    --------
    >>> [choices_carried(0.6 * epsilon * 2575, 280_000, most=20) for epsilon in (0.1, 1, 10)]
    [1, 10, 20]
    """
    return min(max(round(WITHIN * budget / math.log(max(candidates, 2))), 1), most)


def budget_of_choices(number: int, candidates: int) -> float:
    """Return the product of epsilon and rows above which `choices_carried` is at least `number`.

    Examples
    --------
    >>> budget = budget_of_choices(3, 280_000)
    >>> [choices_carried(share * budget, 280_000, most=20) for share in (0.999, 1.001)]
    [2, 3]
    """
    return (number - 0.5) * math.log(max(candidates, 2)) / WITHIN
