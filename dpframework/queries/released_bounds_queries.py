"""Queries whose bounds or bins are given at run time, from an earlier release.

A noisy sum is usually planned for public bounds [a, b], since their size decides the sensitivity. Here the bounds are
an input that a run knows and a plan does not. So values are counted in units of the bounds. Each value is clamped to
the bounds. Then its distance from a bound is divided by the *width*, the distance between the bounds. Or the value
itself is divided by the *size*, the larger absolute value of the bounds. The result lies in [0, 1], or in [-1, 1], for
**every** pair of bounds. The declared sensitivity is the largest over all inputs. It does not depend on the released
bounds, so epsilon is fixed in the plan. Code that reads the answer multiplies it by the released width or size, which
is post-processing. This multiplies the noise, too, so the scale of the noise in the attribute's own unit depends on the
released bounds.

Bounds must come from a release. If they came from the rows, a neighbouring table could be measured in another unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import MOST_CODES, Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.parameter_checks import whole_number
from dpframework.formulas.sensitivity_claims_and_neighbours import ScoreClaims
from dpframework.queries.base import Norm, Query, Sensitivity
from dpframework.queries.counts import AttributeCounts, JointHistogram, TableCounts
from dpframework.queries.group_queries import GroupMoments, GroupNumbers, groups_reached
from dpframework.queries.ranks import MOST_STEPS, QuantileScores
from dpframework.queries.sums import STEPS, BoundDistances, WithinBounds, sum_sensitivities
from dpframework.tables.crosstab_expressions import Crosstab, JointCounts, WholeSteps
from dpframework.tables.encoded_row_blocks import Block

#: Two numbers within the attribute's public bounds, the lower one first.
Bounds: TypeAlias = "tuple[float, float]"
#: Queries whose answers are in widths of their bounds, or in ranks. So their sensitivity is the same for all bounds.
SCALED = (BoundDistances, GroupMoments, QuantileScores)

_RELEASED = "at released bounds"


@final
@attrs.frozen
class AtReleasedBounds(Query):
    """A query whose bounds are given at run time, and whose answers are in widths of the bounds, or in ranks.

    In `BoundDistances` and `GroupMoments`, a row adds at most one width of the bounds, whatever the bounds are. In
    `QuantileScores`, a row moves a rank by at most 1. Their derivations hold for every pair of bounds, and hence for
    released bounds. The grid of a quantile has at most `MOST_STEPS` steps for any bounds.

    The input is `bounds`, two numbers within the attribute's public bounds. Without it the public bounds are used.

    Attributes
    ----------
    query
        The query at the attribute's public bounds.

    Examples
    --------
    >>> released = AtReleasedBounds(BoundDistances(Numeric("cost", 0, 10_000, bins=100)))
    >>> released.text
    "sum of 'cost', up from 0 and down from 10000, at released bounds"
    >>> [float(one.add_or_remove_one) for one in released.sensitivities]
    [1.0, 1.0, 1.0]
    """

    name = "at-released-bounds"
    integer = False
    query: WithinBounds = attrs.field(validator=attrs.validators.instance_of(SCALED))

    def at(self, bounds: Bounds | None = None) -> WithinBounds:
        """Return the query with these bounds, or with the public bounds if `bounds` is None.

        Raises
        ------
        InputError
            If the bounds are in the wrong order, or not within the attribute's bounds.
        """
        return self.query if bounds is None else attrs.evolve(self.query, lower=bounds[0], upper=bounds[1])

    @property
    def text(self) -> str:
        """The query's text, with a note that the bounds are released."""
        return f"{self.query.text}, {_RELEASED}"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that the query reads."""
        return self.query.attributes

    @property
    def answer_length(self) -> int | None:
        """The length of the answer. For scores of a quantile, the largest length over all bounds."""
        return MOST_STEPS + 1 if isinstance(self.query, QuantileScores) else self.query.answer_length

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """The sensitivities of the query, the same for all bounds."""
        return self.query.sensitivities

    @property
    def rounding(self) -> Fraction:
        """The rounding error of the query."""
        return self.query.rounding

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """The formulas of the query."""
        return self.query.scored_formulas

    @property
    def has_tables(self) -> bool:
        """Whether the query's counts follow from cross tables."""
        return self.query.has_tables

    def candidates(self, *, bounds: Bounds | None = None, **inputs: Any) -> Sequence[Any]:
        """Return the candidates of the query at the bounds."""
        return self.at(bounds).candidates(**inputs)

    def count(self, block: Block, *, bounds: Bounds | None = None, **inputs: Any) -> NDArray[np.int64]:
        """Return the counts of the query at the bounds."""
        return self.at(bounds).count(block, **inputs)

    def tables(self, *, bounds: Bounds | None = None, **inputs: Any) -> JointCounts | None:
        """Return the cross tables of the query at the bounds."""
        return self.at(bounds).tables(**inputs)

    def answer(self, counts: NDArray[Any], *, bounds: Bounds | None = None, **inputs: Any) -> Any:
        """Return the answer of the query at the bounds, in widths or ranks."""
        return self.at(bounds).answer(counts, **inputs)


@final
@attrs.frozen
class ScaledSums(GroupNumbers):
    """The sum of a numeric attribute in each group, in units of bounds that are given at run time, shape (groups,).

    With bounds a <= b and M = max(abs(a), abs(b)), a row with the value x adds t = clamp(x, a, b) / M to the sum of its
    group. A row without a value adds nothing, and neither does a row for which `where` does not hold. Rounded to steps
    of 2**-30, the size of t is at most 1 for any a and b. If the attribute's public bounds are both 0 or more, so is t.
    If they are both 0 or less, so is t. With `centred` the row adds (clamp(x, a, b) - c) / M, where c is the rounded
    (a + b) / 2, and M is the larger of the rounded b - c and c - a. The rounded x - c never falls as x rises. So what
    the row adds is in [-1, 1], even if few floats lie between the bounds.

    So adding a row raises a sum by at most R or lowers it by at most F, where R and F are 0 or 1. Replacing a row that
    stays in its group changes the sum by at most D = R + F - m. Here m is the smallest size of t for any a and b. If
    both public bounds have the same sign and every row adds a number, m is the smaller absolute value of the public
    bounds divided by the larger one. Otherwise m is 0. If the row goes to another group, it changes two sums by at most
    1 each. The l1 change is at most 2 in both cases, or D with a single group. The squared l2 change is at most
    max(D**2, 2), or D**2 with a single group. The linf change is at most max(D, 1), or D with a single group.

    The input is `bounds`, as for `AtReleasedBounds`. `unit` returns the two numbers that turn a sum of t into a sum of
    values.

    Attributes
    ----------
    attribute, where, by
        As for `GroupSums`. The bounds are the attribute's.
    centred
        Whether the middle of the bounds is subtracted from each value.

    Examples
    --------
    >>> sums = ScaledSums(Numeric("change", -30, 50, bins=8))
    >>> [(float(one.add_or_remove_one), float(one.replace_one)) for one in sums.sensitivities]
    [(1.0, 2.0), (1.0, 4.0), (1.0, 2.0)]
    >>> sums.unit((-2.0, 3.0))
    (3.0, 0.0)
    """

    name = "scaled-sums"
    centred: bool = attrs.field(default=False, kw_only=True)

    @property
    def text(self) -> str:
        """Name the attribute, its public bounds and the groups."""
        names = ", ".join(one.name for one in self.by)
        about = ", from the middle" if self.centred else ""
        return f"sum of {self.bounds_text}{f' by {names}' if names else ''}{about}, {_RELEASED}"

    @property
    def answer_length(self) -> int:
        """One sum for each group."""
        return self.groups

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """The sensitivities that the docstring of the class derives."""
        rise = Fraction(self.centred or self.attribute.upper > 0)
        fall = Fraction(self.centred or self.attribute.lower < 0)
        stays, leaves = rise + fall - self._least_share, groups_reached(self.by, self.where) > 1
        replaced = {
            Norm.L1: Fraction(2) if leaves else stays,
            Norm.SQUARED_L2: max(stays**2, Fraction(2)) if leaves else stays**2,
            Norm.LINF: max(stays, Fraction(1)) if leaves else stays,
        }
        source = f"a row adds a number between {-fall} and {rise} to one sum, in units of any bounds"
        return sum_sensitivities(rise, fall, replaced, source)

    @property
    def _least_share(self) -> Fraction:
        """The smallest size of t for any bounds, minus one step since t is rounded; 0 if a row may add nothing."""
        low, high = sorted((abs(self.attribute.lower), abs(self.attribute.upper)))
        if self.centred or self.optional or self.attribute.lower < 0 < self.attribute.upper:
            return Fraction(0)
        return Fraction(max(math.floor(Fraction(low) / Fraction(high) * STEPS) - 1, 0), STEPS)

    def unit(self, bounds: Bounds | None = None) -> tuple[float, float]:
        """Return two numbers, u and v, such that a row with the value v + u t adds t to its sum."""
        lower, upper = bounds or (self.lower, self.upper)
        if self.centred:
            middle = lower + (upper - lower) / 2
            return max(upper - middle, middle - lower), middle
        return max(abs(lower), abs(upper)), 0.0

    def tables(self, *, bounds: Bounds | None = None, **inputs: Any) -> JointCounts:
        """Return the cross table that sums each group's values, counted in steps of 2**-30 of the unit.

        Raises
        ------
        InputError
            If the bounds are in the wrong order, or not within the attribute's bounds.
        """
        own = self if bounds is None else attrs.evolve(self, lower=bounds[0], upper=bounds[1])
        size, origin = own.unit()
        steps = WholeSteps(own.attribute.name, own.lower, own.upper, origin, size / STEPS)
        return JointCounts([Crosstab([*own.by, *own.where_columns], steps)], lambda counts: own.first(counts[0]))

    def answer(self, counts: NDArray[Any], **inputs: Any) -> Any:
        """Return the sums of t."""
        return counts / STEPS


@final
@attrs.frozen
class ReleasedBins(AttributeCounts, TableCounts):
    """The number of rows in each bin of a numeric attribute, where the cuts are given at run time.

    Whatever the cuts are, bins are disjoint and a row lies in one of them (see `histogram_sensitivities`). If the
    attribute may be missing, rows without a value are counted in one more cell after the bins. If there are fewer bins
    than planned, counts of 0 follow. So the answer has the same length for all cuts, and a mechanism is allowed to draw
    noise that adds up to 0 (`Norm.HISTOGRAMS`). The input is `cuts`: increasing numbers strictly between the
    attribute's public bounds, fewer than `most` of them. Without this input there is one bin.

    Attributes
    ----------
    attribute
        The attribute. Its own bins are not used.
    most
        The largest number of bins.

    Examples
    --------
    >>> bins = ReleasedBins(Numeric("cost", 0, 10_000, bins=100, missing=True), most=4)
    >>> bins.answer_length, bins.at([20, 90]).labels
    (5, ('[0, 20)', '[20, 90)', '[90, 10000]', 'missing'))
    """

    name = "released-bins"
    attribute: Numeric = attrs.field(validator=attrs.validators.instance_of(Numeric))
    most: int = attrs.field(validator=whole_number(1, MOST_CODES))

    def at(self, cuts: Sequence[float] = ()) -> Numeric:
        """Return the attribute with bins at some cuts.

        Raises
        ------
        InputError
            If there are too many cuts, or they are not increasing or not between the attribute's bounds.
        """
        if len(cuts) >= self.most:
            raise InputError(f"{len(cuts)} cuts make more than the {self.most} bins that were planned; give fewer cuts")
        if not cuts:
            return attrs.evolve(self.attribute, bins=1, cuts=())
        return attrs.evolve(self.attribute, bins=None, cuts=tuple(cuts))

    @property
    def text(self) -> str:
        """Name the attribute and the number of bins."""
        return f"counts of '{self.attribute.name}' in up to {self.most} released bins"

    @property
    def answer_length(self) -> int:
        """One count for each bin, and one for the rows without a value if there may be any."""
        return self.most + self.attribute.missing

    def tables(self, *, cuts: Sequence[float] = (), **inputs: Any) -> JointCounts:
        """Return the attribute's one-way table in these bins."""
        return JointHistogram((self.at(cuts),)).tables()

    def count(self, block: Block, *, cuts: Sequence[float] = (), **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows, shape (bins,)."""
        return JointHistogram((self.at(cuts),)).count(block)

    def answer(self, counts: NDArray[Any], **inputs: Any) -> NDArray[Any]:
        """Return the counts, with a 0 at the end for each planned bin that was not given."""
        return np.pad(counts, (0, self.answer_length - len(counts)))
