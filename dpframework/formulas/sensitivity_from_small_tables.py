"""Sensitivities derived from a formula: the largest changes on small tables, and a bound that fits these changes.

Larger tables are then tried, too: some with more classes, and those on both sides of the counts at which a comparison
in the formula changes. The bound is a guess until it is proved. The search needs no solver, and finds the same bound on
every machine.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import final

import attrs
import numpy as np

from dpframework.facts.errors import InputError
from dpframework.formulas.count_formula import Formula, Operation, as_formula, rows
from dpframework.formulas.largest_change_search import (
    CLASSES,
    CLIMB_ROWS,
    cell_gaps,
    climb,
    find_jump,
    find_larger_part,
    part_changes,
    search_change,
)
from dpframework.formulas.score_structures import Cells, Parts, Scored
from dpframework.formulas.sensitivity_claims_and_neighbours import LAST_INCREMENT, Change, Claim, Neighbours

DIVISORS = (4, 16)  # the counts of the table with the largest change are divided by these, to see how changes grow
DECLARE = "no bound can be derived, so declare the claims (FormulaScores.claims)"
ROUNDING = 1e-9  # the largest difference that counts as rounding
#: A change with a larger denominator than this may still grow. A bound on roots or logarithms is rounded up to a
#: multiple of 1 / `MOST_DIVISOR`.
MOST_DIVISOR = 10**6
MOST_ATTAINED_ROWS = CLIMB_ROWS // 50  # if the largest change is on a table with more rows, it may still grow


@final
@attrs.frozen
class DerivedClaim:
    """A claim that a search derived, with the neighbours that come nearest to its bound.

    Attributes
    ----------
    claim
        The claim.
    nearest
        The neighbours with the largest change that was found.
    """

    claim: Claim
    nearest: Neighbours


@functools.lru_cache(maxsize=256)
def derive(shape: Scored, group: int = 1) -> tuple[DerivedClaim, DerivedClaim, DerivedClaim]:
    """Return the rise, the fall and the change under replacement that a search of tables finds.

    For `Cells`, up to `group` rows are added or replaced together.

    Raises
    ------
    InputError
        If changes grow with the table, so that no noise would be enough; if no known form of a bound fits them; if they
        jump on a larger table; if `Cells` have public parameters; or if `group` is above 1 for `Parts`.

    Examples
    --------
    >>> from dpframework.formulas import n, rows_of_part, sum_over_classes
    >>> for found in derive(Parts(sum_over_classes(n**2) / rows_of_part)):
    ...     print(found.claim.text, "|", found.nearest)
    rise <= 1 | [[0 0 0]] -> [[1 0 0]]: 1
    fall <= 1 - 2 / R | [[1 0 8]] -> [[0 0 8]]: 7/9
    replaced <= 2 - 2 / R | [[1 0 8]] -> [[0 0 9]]: 16/9
    """
    if isinstance(shape, Cells):
        if shape.body.leaves(Operation.PUBLIC):
            raise InputError(f"'{shape.text}' has public parameters; replace them by numbers before deriving from it")
        rise, fall, replaced = (_derive_for_cells(shape, change, group) for change in _CHANGES)
        return rise, fall, replaced
    if group > 1:
        raise InputError(f"for a score of parts only the change by one row is derived; multiply it by {group} yourself")
    rise, fall = (_derive_for_parts(shape, change) for change in _CHANGES[:2])
    both = _plus(rise.claim.bound, fall.claim.bound)
    return rise, fall, DerivedClaim(Claim(Change.REPLACED, both), part_changes(shape, Change.REPLACED)[-1])


_CHANGES = (Change.RISE, Change.FALL, Change.REPLACED)


def _plus(one: Formula, other: Formula) -> Formula:
    """Return a sum, with its constants added together."""
    if one == as_formula(0):
        return other
    if other == as_formula(0) or one.constant is None:
        return one if other == as_formula(0) else one + other
    if other.operation is Operation.ADD and other.parts[0].constant is not None:
        return as_formula(one.constant + other.parts[0].constant) + other.parts[1]
    return one + other


def _derive_for_parts(shape: Parts, change: Change) -> DerivedClaim:
    """Return the claim whose bound fits the largest changes of a score of parts on small tables."""
    found = part_changes(shape, change)
    bound = fit_bound([one.change for one in found])
    if bound is None:
        raise InputError(
            f"no bound fits the {change} of '{shape.text}', which grows with the rows; "
            f"up to {len(found)} rows: {found[-1]}"
        )
    claim = Claim(change, bound)
    larger = find_larger_part(shape, claim)
    if larger is not None:
        raise InputError(
            f"the {change} of '{shape.text}' is at most {bound} up to {len(found)} rows in {CLASSES} classes, "
            f"and more on a larger table: {larger}; {DECLARE}"
        )
    return DerivedClaim(claim, found[-1])


def fit_bound(changes: Sequence[Fraction | float]) -> Formula | None:
    """Return a bound on `changes` that equals the last five of them; None if no bound of a known form does.

    `changes` are the largest changes on tables of at most R = 1, 2, ... rows. The bound is a constant, `a - b / R`,
    `a - b / (R + 1)`, or the last increment of R log2 R, which is R log2 R - (R - 1) log2 (R - 1).

    Examples
    --------
    >>> print(fit_bound([Fraction(1, 2), Fraction(3, 4), Fraction(5, 6), Fraction(7, 8), Fraction(9, 10)]))
    1 - (1/2) / R
    """
    values = np.array([max(float(change), 0.0) for change in changes])
    sizes = np.arange(1, len(values) + 1)
    last = slice(-5, None)

    # Tables of very few rows may be exceptions. So a bound must equal the last five changes, but it may be above the
    # others.
    def fits(bound: np.ndarray) -> bool:
        return bool((abs(bound - values)[last] < ROUNDING).all() and (np.maximum(bound, 0) > values - ROUNDING).all())

    exact = changes[-1] if isinstance(changes[-1], Fraction) else Fraction(changes[-1]).limit_denominator(1000)
    constant = max(exact, Fraction())
    if fits(np.full(len(values), float(constant))):
        return as_formula(constant)
    for more in (0, 1):
        inverse = 1 / (sizes + more)
        slope = (values[-1] - values[-3]) / (inverse[-1] - inverse[-3])
        b, a = (Fraction(float(one)).limit_denominator(1000) for one in (slope, values[-1] - slope * inverse[-1]))
        if b < 0 and fits(float(a) + float(b) * inverse):
            return as_formula(a) - as_formula(-b) / (rows + more if more else rows)
    increments = [size * math.log2(size) - (size - 1) * math.log2(max(size - 1, 1)) for size in sizes.tolist()]
    return LAST_INCREMENT if fits(np.array(increments)) else None


def _derive_for_cells(shape: Cells, change: Change, group: int) -> DerivedClaim:
    """Return the claim whose bound is the largest change of a score of cells, or a limit that it grows towards."""
    found = search_change(shape, change, group)
    sizes = [sum(int(str(count)) for count in table) for table in (found.low, found.high)]
    value = max(Fraction(found.change), Fraction())
    if isinstance(found.change, float) and value.denominator > MOST_DIVISOR and max(sizes) <= MOST_ATTAINED_ROWS:
        # Roots and logarithms are rounded: the bound is a little above the change that was computed.
        value = Fraction(math.ceil((value + Fraction(ROUNDING)) * MOST_DIVISOR), MOST_DIVISOR)
    jumps = f"the {change} of '{shape.text}' jumps at a table of many rows"
    if max(sizes) > MOST_ATTAINED_ROWS or value.denominator > MOST_DIVISOR:
        # The change still grows at the largest tables that are tried. If it grows less and less, it approaches a limit.
        # Otherwise it grows without end.
        ends = [climb(shape, change, -(-np.array(found.low) // k), group, max(sizes) // k) for k in DIVISORS]
        less, least = (float(cell_gaps(shape, change, end[None], group)[0][0]) for end in ends)
        limit = next((one for one in _simple_above(value) if one <= value * Fraction(11, 10)), None)
        if limit is None or float(value) - less > 0.75 * max(less - least, ROUNDING):
            if less - least <= ROUNDING:
                raise InputError(f"{jumps}: {found}; {DECLARE}")
            raise InputError(f"the {change} of '{shape.text}' grows with the rows, so that no noise is enough: {found}")
        value = limit
    claim = Claim(change, as_formula(value), group)
    jump = find_jump(shape, claim)  # on larger tables than the search tries
    if jump is not None:
        raise InputError(f"{jumps}: {jump}; {DECLARE}")
    return DerivedClaim(claim, found)


def _simple_above(value: Fraction) -> list[Fraction]:
    """Return, for each denominator from 1 to 60, the smallest fraction that is at least `value`."""
    return [Fraction(math.ceil(value * below), below) for below in range(1, 61)]
