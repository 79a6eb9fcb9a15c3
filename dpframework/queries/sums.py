"""Sums of a numeric attribute's values, clamped to public bounds.

Each value is rounded by itself to a whole number of small steps, and steps are added up as integers. So the sum is
exact and the same in any order of rows and blocks, and mechanisms need no slack for rounding. A step is the smallest
power of two that is at least 2**-30 of the largest size of a value. So the sum of n rows is off by at most n 2**-30 of
that size. If that size is at most 2**30, a step is at most 1. Then every whole number is a whole number of steps, and
sums of whole numbers are not rounded at all.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import Cases, Description
from dpframework.facts.row_partitions import attributes_of
from dpframework.facts.value_checks import finite_number
from dpframework.formulas.count_formula import public
from dpframework.formulas.score_structures import Adds
from dpframework.formulas.sensitivity_claims_and_neighbours import Change, ScoreClaims, norm_claims
from dpframework.queries.base import Norm, Query, Sensitivity
from dpframework.queries.counts import histogram_claims, share_sensitivities
from dpframework.tables.crosstab_expressions import Crosstab, JointCounts, WholeSteps, describe_known
from dpframework.tables.encoded_row_blocks import Block

STEPS = 1 << 30  # the most steps of a value, so that sums over fewer than 2**31 rows fit into 62 bits
LARGEST = 2.0**1000  # the largest size of a bound, so that rounded bounds are finite
NARROWEST = 2 * STEPS * sys.float_info.min  # the least width of bounds, so that a step has full precision


def _numeric(attribute: Attribute) -> Numeric:
    if not isinstance(attribute, Numeric):
        raise InputError(f"attribute '{attribute.name}' is {attribute.kind}; a numeric one is needed")
    return attribute


def _bound(value: float) -> float:
    bound = finite_number(value, "a bound")
    if abs(bound) > LARGEST:
        raise InputError(f"a bound is {bound:g}, which is too large for sums; give a bound of at most {LARGEST:.0e}")
    return bound


def require_bounds(attribute: Numeric, lower: float, upper: float) -> None:
    """Refuse bounds that are in the wrong order, outside of the schema's bounds, or too close together.

    Raises
    ------
    InputError
        If the bounds are refused. The message names the attribute and the bounds.
    """
    low, high = attribute.lower, attribute.upper
    if not low <= lower < upper <= high:
        raise InputError(
            f"bounds [{lower:g}, {upper:g}] of '{attribute.name}' must be increasing, and within the schema's bounds, "
            f"[{low:g}, {high:g}]"
        )
    if upper - lower < NARROWEST:
        raise InputError(
            f"bounds [{lower:g}, {upper:g}] of '{attribute.name}' are closer than {NARROWEST:.0e}, so that numbers "
            "between them cannot be rounded to steps; give wider bounds"
        )


def sum_sensitivities(
    rise: Fraction, fall: Fraction, replaced: Mapping[Norm, Fraction], source: str
) -> tuple[Sensitivity, ...]:
    """Return the sensitivities of one or more sums. An added row changes one of them, by an amount in [-fall, rise].

    Parameters
    ----------
    rise, fall
        The ends of the interval. They are squared for the squared l2 norm.
    replaced
        For each norm, the largest change by a replaced row.
    source
        A sentence that says what a row adds.
    """
    powers = {norm: 2 if norm is Norm.SQUARED_L2 else 1 for norm in replaced}
    return tuple(
        Sensitivity(
            norm,
            max(rise, fall) ** power,
            replaced[norm],
            rise=rise**power,
            fall=fall**power,
            source=source,
        )
        for norm, power in powers.items()
    )


@attrs.frozen
class WithinBounds(Query):
    """The base class of queries that read one numeric attribute, with values clamped to public bounds.

    A row for which the description `where` does not hold counts as a row without a value.
    """

    integer = False
    attribute: Numeric = attrs.field(converter=_numeric)
    lower: float = attrs.field(
        default=attrs.Factory(lambda query: query.attribute.lower, takes_self=True), converter=_bound
    )
    upper: float = attrs.field(
        default=attrs.Factory(lambda query: query.attribute.upper, takes_self=True), converter=_bound
    )
    where: Description | None = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        """Refuse bounds that do not fit the attribute."""
        require_bounds(self.attribute, self.lower, self.upper)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attribute, and the attributes of the description."""
        return (self.attribute.name, *attributes_of(() if self.where is None else (self.where,)))

    @property
    def optional(self) -> bool:
        """Whether a row may add nothing, because it may have no value or because the description may not hold."""
        return self.attribute.missing or self.where is not None

    def row_mask(self, block: Block) -> NDArray[np.bool_]:
        """Tell for each row of a block whether it has a value and the description holds, shape (rows,)."""
        known = ~np.isnan(block.values(self.attribute.name))
        return known if self.where is None else known & self.where.holds(block)

    def present(self, block: Block) -> NDArray[np.float64]:
        """Return the clamped values of this block's counted rows (see `row_mask`)."""
        return np.clip(block.values(self.attribute.name)[self.row_mask(block)], self.lower, self.upper)

    @property
    def where_columns(self) -> tuple[Cases, ...]:
        """The column of a cross table that separates the rows for which `where` holds; empty if `where` is None."""
        return () if self.where is None else (Cases([self.where]),)

    @property
    def bounds_text(self) -> str:
        """The attribute, the bounds and the description, as text for readers."""
        return f"'{self.attribute.name}' within [{self.lower:g}, {self.upper:g}]{self.where_text}"

    @property
    def where_text(self) -> str:
        """The description as text for readers, empty if there is none."""
        return "" if self.where is None else f", where {self.where}"


@final
@attrs.frozen
class BoundedSum(WithinBounds):
    """The sum of value - centre over the rows with a value, where each value is clamped to public bounds.

    Let L and U be the rounded differences of the bounds from the centre. A row adds an amount in [L, U], or nothing if
    its value is missing or `where` does not hold. So adding a row raises the sum by at most max(U, 0), and lowers it by
    at most max(-L, 0). Replacing a row changes the sum by at most U - L. If a row may add nothing, the change is at
    most the difference between the largest and the smallest of L, U and 0. For a single number all norms of a change
    agree.

    Attributes
    ----------
    attribute
        A numeric attribute.
    lower, upper
        Public bounds, by default the schema's.
    centre
        The number that is subtracted from each value, 0 for the sum itself.

    Examples
    --------
    >>> age = Numeric("age", 10, 90, bins=8)
    >>> one = BoundedSum(age).sensitivities[0]
    >>> one.add_or_remove_one, one.replace_one
    (Fraction(90, 1), Fraction(80, 1))
    >>> BoundedSum(age, centre=50).sensitivities[0].add_or_remove_one
    Fraction(40, 1)
    """

    name = "bounded-sum"
    centre: float = attrs.field(default=0.0, converter=_bound)

    @property
    def text(self) -> str:
        """Name the attribute and the bounds."""
        about = f", less {self.centre:g}" if self.centre else ""
        return f"sum of {self.bounds_text}{about}"

    @property
    def answer_length(self) -> int:
        """One number."""
        return 1

    @property
    def step(self) -> float:
        """The step to which differences are rounded, a power of two."""
        return 2.0 ** math.ceil(math.log2(max(abs(self.lower - self.centre), abs(self.upper - self.centre)) / STEPS))

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """The sensitivities that the docstring of the class derives, squared for the squared l2 norm."""
        ends = self._ends
        reached = [*ends, *([Fraction(0)] if self.optional else [])]
        rise, fall, replaced = max(ends[1], Fraction(0)), max(-ends[0], Fraction(0)), max(reached) - min(reached)
        source = f"a row adds between {float(ends[0]):g} and {float(ends[1]):g}"
        by_norm = {Norm.L1: replaced, Norm.SQUARED_L2: replaced**2, Norm.LINF: replaced}
        return sum_sensitivities(rise, fall, by_norm, source)

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """The claims about a sum to which each row adds one number, in the range that the class docstring gives."""
        (declared, *_) = self.sensitivities
        assert declared.rise is not None
        assert declared.fall is not None
        assert declared.replace_one is not None
        low, high = (-declared.fall, declared.rise) if self.optional else self._ends
        added, powers = max(abs(low), abs(high)), {Change.L1: 1, Change.SQUARED_L2: 2, Change.LINF: 1}
        norms = [{norm: size**power for norm, power in powers.items()} for size in (added, declared.replace_one)]
        return (norm_claims(self.name, Adds((public("value", low, high),)), *norms),)

    @property
    def _ends(self) -> tuple[Fraction, Fraction]:
        """The rounded differences of the bounds from the centre."""
        low, high = self._steps(np.array([self.lower, self.upper])).tolist()
        return low * Fraction(self.step), high * Fraction(self.step)

    def _steps(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.asarray(np.rint((values - self.centre) / self.step), dtype=np.int64)

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Add up this block's differences, in steps, shape (1,)."""
        return np.array([self._steps(self.present(block)).sum()], dtype=np.int64)

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table of the sum of steps."""
        steps = WholeSteps(self.attribute.name, self.lower, self.upper, self.centre, self.step)
        return JointCounts([Crosstab(self.where_columns, steps)], lambda counts: counts[0].ravel()[:1])

    def answer(self, counts: NDArray[Any], **inputs: Any) -> Any:
        """Return the sum as a single number."""
        (steps,) = counts
        return steps * self.step


@final
@attrs.frozen
class BoundDistances(WithinBounds):
    """The sums of the values' distances from the lower and from the upper bound, in widths of the range.

    With t = (value - lower) / (upper - lower), clamped to [0, 1], the answer is (sum of t, sum of 1 - t). Both together
    are the number of rows with a value. The share of the first sum says where the mean lies between the bounds.

    A row adds (t, 1 - t), whose l1 norm is 1 whatever t is, and whose squared l2 norm is at most 1. So one noisy pair
    contains both a sum and a count at the cost of a count. No other shape of noise fits better. The reason: the vectors
    that a row can add, together with their negatives, have the unit ball of the l1 norm as their convex hull. Adding a
    row lowers neither sum. Replacing a row with t by a row with t' moves d = t' - t from one sum to the other. The l1
    change is 2 abs(d), the squared l2 change is 2 d**2, and the linf change is abs(d). Each is largest at d = 1. A row
    that gains or loses its value changes the pair like a row that is added or removed.

    Attributes
    ----------
    attribute, lower, upper
        As for `BoundedSum`.

    Examples
    --------
    >>> one = BoundDistances(Numeric("age", 0, 100, bins=2)).sensitivities[0]
    >>> one.norm.value, one.add_or_remove_one, one.replace_one
    ('l1', Fraction(1, 1), Fraction(2, 1))
    """

    name = "bound-distances"

    @property
    def text(self) -> str:
        """Name the attribute and the bounds."""
        ends = f"up from {self.lower:g} and down from {self.upper:g}"
        return f"sum of '{self.attribute.name}', {ends}{self.where_text}"

    @property
    def answer_length(self) -> int:
        """Two sums."""
        return 2

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """The sensitivities that the docstring of the class derives."""
        return share_sensitivities("a row adds t to one sum and 1 - t to the other, with t in [0, 1]")

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """The claims about the two shares of a row, which are both 0 for a row without a value."""
        return histogram_claims(2)

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Add up this block's distances, in steps of 2**-30, shape (2,)."""
        shares = (self.present(block) - self.lower) / (self.upper - self.lower)
        steps = np.rint(shares * STEPS).astype(np.int64)
        return np.array([steps.sum(), (STEPS - steps).sum()], dtype=np.int64)

    def tables(self, **inputs: Any) -> JointCounts:
        """Return cross tables of the sum of distances from the lower bound, and of the rows with a value."""
        steps = WholeSteps(self.attribute.name, self.lower, self.upper, self.lower, (self.upper - self.lower) / STEPS)
        known = Crosstab([*self.where_columns, Cases([describe_known(self.attribute.name, self.lower)])])

        def assemble(counts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
            (summed, *_), (rows, *_) = (own.ravel() for own in counts)  # the rows where `where` holds come first
            return np.array([summed, STEPS * rows - summed])

        return JointCounts([Crosstab(self.where_columns, steps), known], assemble)

    def answer(self, counts: NDArray[Any], **inputs: Any) -> Any:
        """Return both sums, in widths of the range."""
        return counts / STEPS
