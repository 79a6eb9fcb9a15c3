"""How many choices of a match a budget carries, and how many rows a match gains by, from public facts."""

from __future__ import annotations

import math
from fractions import Fraction

from dpframework.facts.schema import Schema

SOME_ROWS = 2_500  # meant where a schema says nothing of rows
LOOSE = 10_000  # rows: a higher bound is taken for this one
#: Of the rows: a match that holds for more of them gains nothing by it.
CAP = Fraction(3, 10)
WITHIN = 0.08  # of the rows: how far from the best a choice may be to be worth its budget


def rows_meant(schema: Schema) -> int:
    """Return a public number of rows to plan for, the schema's `rows` or else a bound that is not loose.

    A bound of a million rows tells little of a table: as one of `LOOSE` it costs a larger table some choices, where a
    smaller one would be given so many that each of them is a lottery.
    """
    if schema.rows is not None:
        return schema.rows
    return SOME_ROWS if schema.max_rows is None else min(schema.max_rows, LOOSE)


def cap_of(rows: float) -> int:
    """Return the rows beyond which a match gains nothing, in a table of this many.

    Examples
    --------
    >>> cap_of(1000), cap_of(1)
    (300, 1)
    """
    return max(int(CAP * int(rows)), 1)


def choices_carried(budget: float, candidates: int, most: int) -> int:
    """Return how many choices of a match an epsilon carries.

    A choice by the exponential mechanism at epsilon e among m candidates is within ln(m) / e rows of the best, roughly.
    As many choices share the epsilon as leave each within `WITHIN` of the rows, at least one.

    Parameters
    ----------
    budget
        Epsilon times the number of rows.
    candidates
        How many there are to choose from.
    most
        The most choices.

    Examples
    --------
    >>> [choices_carried(0.6 * epsilon * 2575, 280_000, most=20) for epsilon in (0.1, 1, 10)]
    [1, 10, 20]
    """
    return min(max(round(WITHIN * budget / math.log(max(candidates, 2))), 1), most)


def budget_of_choices(number: int, candidates: int) -> float:
    """Return the epsilon times rows above which `choices_carried` is at least this number.

    Examples
    --------
    >>> budget = budget_of_choices(3, 280_000)
    >>> [choices_carried(share * budget, 280_000, most=20) for share in (0.999, 1.001)]
    [2, 3]
    """
    return (number - 0.5) * math.log(max(candidates, 2)) / WITHIN
