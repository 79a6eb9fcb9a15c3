"""Refutations of claims about functions of totals and about vectors, found by trying extreme totals and rows."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product as combinations
from typing import Any

from dpframework.formulas.count_formula import Operation, PublicRange
from dpframework.formulas.evaluation import value_of
from dpframework.formulas.score_structures import Adds, Outer, table_rows
from dpframework.formulas.sensitivity_claims_and_neighbours import Change, Claim, Neighbours

ROWS = (0, 1, 2, 5, 20, 1000)  # the numbers of rows that are tried for a function of totals
MOST_ENDS = 6  # vectors with more public parameters are not tried: the ends of the ranges have too many combinations


def find_refuting_totals(shape: Outer, claim: Claim) -> Neighbours | None:
    """Return two tables whose scores differ by more than is claimed; None if none are found.

    Each table is shown by its totals, with the number of rows last.
    """
    ends = list(combinations((False, True), repeat=len(shape.totals)))
    for rows, at in combinations(ROWS, ends):
        before = [(one.per_row or Fraction()) * rows * end for one, end in zip(shape.totals, at, strict=True)]
        shared = (*before, Fraction(rows))
        moved = [
            (
                *(one + (t.rise if up else -t.fall) for one, t, up in zip(before, shape.totals, move, strict=True)),
                rows + 1,
            )
            for move in ends
        ]
        pairs: Iterator[Any] = (
            combinations(moved, moved) if claim.change is Change.REPLACED else combinations([shared], moved)
        )
        for low, high in pairs:
            found = (high, low) if claim.change is Change.FALL else (low, high)
            change = _score(shape, found[1]) - _score(shape, found[0])
            if change > _bound(claim):
                return Neighbours(*found, change)
    return None


def _score(shape: Outer, totals: tuple[Fraction, ...]) -> Fraction:
    values = dict(zip([*(one.cell for one in shape.totals), table_rows], totals, strict=True))
    return Fraction(value_of(shape.body, values, exact=True))


def find_refuting_rows(shape: Adds, claim: Claim) -> Neighbours | None:
    """Return the entries of two rows whose difference has a larger norm than is claimed; None if none are found.

    For an added row, the first of the two rows is all zeros.
    """
    free = list(dict.fromkeys(one for entry in shape.entries for one in entry.leaves(Operation.PUBLIC)))
    if len(free) > MOST_ENDS:
        return None
    ranges = [one.value for one in free if isinstance(one.value, PublicRange)]
    choices = combinations(*((one.lower, one.upper) for one in ranges))
    rows = []
    for chosen in choices:
        numbers = dict(zip(free, chosen, strict=True))
        row = tuple(Fraction(value_of(entry, numbers, exact=True)) for entry in shape.entries)
        if not shape.shares or (min(row) >= 0 and sum(row) <= 1):
            rows.append(row)
    zeros = (Fraction(),) * len(shape.entries)
    for low, high in combinations(rows, rows) if claim.replaced else combinations([zeros], rows):
        moved = [abs(one - other) for one, other in zip(high, low, strict=True)]
        squares = claim.change is Change.SQUARED_L2
        size = max(moved) if claim.change is Change.LINF else sum(one**2 if squares else one for one in moved)
        if size > _bound(claim):
            return Neighbours(low, high, Fraction(size))
    return None


def _bound(claim: Claim) -> Fraction:
    return Fraction(10**30) if claim.bound.constant is None else claim.bound.constant
