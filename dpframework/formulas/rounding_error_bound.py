"""Bounds on the rounding errors of formulas that are computed in floating point."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import final

import attrs
import numpy as np

from dpframework.facts.errors import InputError
from dpframework.formulas.count_formula import Formula, Operation
from dpframework.formulas.score_structures import Cells, Parts, Scored
from dpframework.formulas.smt_goal_writer import is_whole

UNIT_ROUNDOFF = Fraction(1, 2**53)
LIBRARY_ROUNDOFFS = 10  # the error of one logarithm or power, plus the error of one addition, in unit roundoffs
ASSUMED_ROW_BOUND = 2**31  # the bound on rows that is assumed for a table without a public bound


@final
@attrs.frozen
class _Error:
    """The largest absolute value of a formula, its sign, and bounds on the error of its computed value.

    The sign is 1 or -1, or 0 if the formula may have values of both signs. `absolute` bounds the absolute error.
    `share` bounds the relative error, in unit roundoffs. It is None if no such bound is known.
    """

    largest: Fraction
    sign: int
    absolute: Fraction
    share: Fraction | None


def rounding_of(shape: Scored, change: Fraction, row_bound: int | None, classes: int = 2, parts: int = 1) -> Fraction:
    """Return how far a computed score may be from the true one.

    For products, quotients, roots, and sums of terms of one sign, a bound on the relative error follows from the
    operands' bounds. The result is this bound times the largest score. The score of a table of R rows differs from the
    score of an empty table by at most R times the largest change by one row. This bounds the largest score. Where terms
    of both signs are added, no relative error is known, and the terms' absolute errors are added instead.

    Parameters
    ----------
    shape
        The score.
    change
        The score's largest change by one row.
    row_bound
        The largest number of rows. If None, 2^31 rows are assumed.
    classes, parts
        The largest number of classes, and of parts.

    Raises
    ------
    InputError
        If a denominator may be arbitrarily small, or if the error of some operation is not known.
    """
    rows = Fraction((ASSUMED_ROW_BOUND if row_bound is None else row_bound) + 1)
    error = _error(shape.body, rows, classes)
    empty = np.zeros(len(shape.cells) if isinstance(shape, Cells) else (parts, classes))
    largest = abs(Fraction(float(shape.scores(empty)))) + rows * change
    summed = parts - 1 if isinstance(shape, Parts) else 0
    if error.share is not None and error.sign:
        found = (error.share + summed) * min(largest, parts * error.largest) * UNIT_ROUNDOFF
    else:
        found = parts * error.absolute + summed * largest * UNIT_ROUNDOFF
    return found * Fraction(1001, 1000)


def _error(formula: Formula, rows: Fraction, classes: int) -> _Error:
    parts = [_error(part, rows, classes) for part in formula.parts]
    match formula.operation:
        case Operation.CONSTANT:
            value = formula.constant or Fraction()
            share = Fraction(int(Fraction(float(value)) != value))
            return _share_error(abs(value), (value > 0) - (value < 0) or 1, share)
        case Operation.CELL | Operation.CLASS | Operation.PART:
            return _share_error(rows, 1, Fraction())
        case Operation.ADD:
            one, other = parts
            return _sum(one, other, whole=is_whole(formula))
        case Operation.MULTIPLY:
            return _product(*parts)
        case Operation.DIVIDE:
            return _quotient(formula, *parts)
        case Operation.LEAST | Operation.MOST:
            return _extreme(*parts)
        case Operation.AT_LEAST:
            sides = zip(formula.parts, parts, strict=True)
            exact = all(not part.absolute or (is_whole(side) and _is_below_limit(part.largest)) for side, part in sides)
            return _share_error(Fraction(1), 1, Fraction()) if exact else _Error(Fraction(1), 1, Fraction(1), None)
        case Operation.SUM:
            (each,) = parts
            known = None if each.share is None or not each.sign else each.share + classes - 1
            absolute = classes * each.absolute + classes**2 * each.largest * UNIT_ROUNDOFF
            return _Error(classes * each.largest, each.sign, absolute, known)
        case Operation.LARGEST:
            (each,) = parts
            return attrs.evolve(each, sign=1, share=each.share if each.sign == 1 else None)
        case Operation.X_LOG_X if not any(part.absolute for part in parts):
            return _share_error(rows * math.ceil(math.log2(rows + 1)), 1, Fraction(LIBRARY_ROUNDOFFS))
        case Operation.ROOT if all(part.share is not None for part in parts):
            (inside,) = parts
            degree = int(str(formula.value))
            size = float(inside.largest)
            rooted = (
                Fraction(inside.share or 0) / degree + LIBRARY_ROUNDOFFS + math.ceil(math.log(max(size, 1.0)) / degree)
            )
            return _share_error(Fraction(math.ceil(size ** (1 / degree)) + 1), 1, rooted)
    raise InputError(f"the rounding of '{formula}' is not known; declare it")


def _share_error(largest: Fraction, sign: int, share: Fraction) -> _Error:
    return _Error(largest, sign, share * largest * UNIT_ROUNDOFF, share)


def _is_below_limit(largest: Fraction) -> bool:
    """Tell whether sums and products of whole numbers, none above `largest`, are computed exactly."""
    return largest < 1 / UNIT_ROUNDOFF


def _sum(one: _Error, other: _Error, *, whole: bool = True) -> _Error:
    """Return the error of a sum, whose terms have only whole values if `whole` is true."""
    largest = one.largest + other.largest
    sign = one.sign if one.sign == other.sign else 0
    exact = whole and one.share == other.share == 0 and largest.denominator == 1 and _is_below_limit(largest)
    added = Fraction(0 if exact else 1)
    share = None if one.share is None or other.share is None or not sign else max(one.share, other.share) + added
    return _Error(largest, sign, one.absolute + other.absolute + added * largest * UNIT_ROUNDOFF, share)


def _product(one: _Error, other: _Error) -> _Error:
    largest = one.largest * other.largest
    share = None if one.share is None or other.share is None else one.share + other.share + 1
    crossed = one.absolute * other.largest + other.absolute * one.largest + one.absolute * other.absolute
    return _Error(largest, one.sign * other.sign, crossed + largest * UNIT_ROUNDOFF, share)


def _quotient(formula: Formula, one: _Error, other: _Error) -> _Error:
    """Return the error of a quotient whose denominator is a constant or a whole number.

    A quotient by 0 counts as 0. So a whole denominator matters only where it is at least 1.
    """
    below = formula.parts[1]
    smallest = abs(below.constant) if below.constant else Fraction(1)
    if (not below.constant and not is_whole(below)) or 2 * other.absolute >= smallest:
        raise InputError(f"the denominator of '{formula}' may be arbitrarily small; declare the rounding")
    largest = one.largest / smallest
    terms = _terms(below)
    if smaller := _smaller_factor(formula.parts[0], terms):  # that factor is at most the denominator
        largest /= smaller * other.largest / terms.total()
    share = None if one.share is None or other.share is None else one.share + other.share + 1
    if share is not None:
        return _share_error(largest, one.sign * other.sign, share)
    absolute = 2 * (one.absolute + largest * other.absolute) / smallest + largest * UNIT_ROUNDOFF
    return _Error(largest, one.sign * other.sign, absolute, share)


def _terms(formula: Formula) -> Counter[Formula]:
    """Return the terms of a sum."""
    if formula.operation is Operation.ADD:
        return _terms(formula.parts[0]) + _terms(formula.parts[1])
    return Counter([formula])


def _smaller_factor(top: Formula, below: Counter[Formula]) -> int:
    """Return how many terms a factor of `top` has, if it is a sum of some of the cells that `below` adds; else 0."""
    if top.operation is Operation.MULTIPLY:
        return max(_smaller_factor(part, below) for part in top.parts)
    terms = _terms(top)
    return terms.total() if terms <= below and all(term.operation is Operation.CELL for term in below) else 0


def _extreme(one: _Error, other: _Error) -> _Error:
    sign = one.sign if one.sign == other.sign else 0
    share = None if one.share is None or other.share is None or not sign else max(one.share, other.share)
    return _Error(max(one.largest, other.largest), sign, max(one.absolute, other.absolute), share)
