"""Counts, sums and moments of each group of rows, as one vector.

Groups are the cells of the cross table of some attributes of the schema: a row lies in one, by its own values alone. So
what one row adds stands in one group's coordinates, and all groups together cost what one of them costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, as_attributes
from dpframework.facts.cuts import attributes_of
from dpframework.facts.descriptions import Cases, Description, Not, fixes
from dpframework.facts.errors import InputError
from dpframework.formulas.claims import ScoreClaims
from dpframework.queries.base import Norm, Sensitivity
from dpframework.queries.counts import CellCounts, histogram_claims, histogram_sensitivities
from dpframework.queries.sums import STEPS, BoundedSum, WithinBounds
from dpframework.tables.blocks import TILE, Block
from dpframework.tables.joint_counts import Crosstab, JointCounts, WholeSteps, codes_in_bins, describe_known
from dpframework.tables.tallies import joint_codes


def _group_codes(block: Block, by: tuple[Attribute, ...]) -> NDArray[Any]:
    """Return the group of each row of a block, shape (rows,), below the number of groups."""
    if not by:
        return np.zeros(block.rows, dtype=np.uint8)
    return joint_codes((codes_in_bins(block, one) for one in by), [one.size for one in by])


def _number(by: tuple[Attribute, ...]) -> int:
    return math.prod(one.size for one in by)


def groups_reached(by: tuple[Attribute, ...], where: Description | None) -> int:
    """Return the number of groups that rows for which a description holds can be in, or more."""
    return _number(by if where is None else tuple(one for one in by if not fixes(where, one)))


def _names(by: tuple[Attribute, ...], *descriptions: Description | None) -> tuple[str, ...]:
    """Return the names of all attributes, each once."""
    tested = attributes_of(tuple(one for one in descriptions if one is not None))
    return tuple(dict.fromkeys((*(one.name for one in by), *tested)))


def _by_text(by: tuple[Attribute, ...]) -> str:
    return f" by {', '.join(one.name for one in by)}" if by else ""


@final
@attrs.frozen
class GroupCounts(CellCounts):
    """The number of rows in each group, of those that a public description holds for.

    With `of`, each group has two counts: the rows for which that description holds, and those for which its negation
    does. A test of a missing value does neither, and the row is in no cell. Cells are disjoint in any case (see
    `histogram_sensitivities`). If `where` leaves one value of each attribute in `by`, the rows asked for are in one
    group, and the counts of the others are 0 in every table: a replaced row then changes one count, or two with `of`.
    The answer has the shape (groups,), or (groups, 2).

    Attributes
    ----------
    by
        The attributes of the groups; none for one group of all rows.
    where
        Which rows are counted; None for all.
    of
        What divides each group in two.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> from dpframework.facts.descriptions import Equals
    >>> counts = GroupCounts([Boolean("ill")], where=Equals("sex", "F"))
    >>> counts.text, counts.answer_length
    ('count of rows by ill, where sex = F', 2)
    """

    name = "group-counts"
    by: tuple[Attribute, ...] = attrs.field(default=(), converter=as_attributes)
    where: Description | None = attrs.field(default=None, kw_only=True)
    of: Description | None = attrs.field(default=None, kw_only=True)

    @property
    def text(self) -> str:
        """Name the groups and the descriptions."""
        what = "count of rows" if self.of is None else f"count of rows with and without {self.of}"
        return f"{what}{_by_text(self.by)}{'' if self.where is None else f', where {self.where}'}"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of groups and descriptions."""
        return _names(self.by, self.where, self.of)

    @property
    def answer_length(self) -> int:
        """One count a group, or two."""
        return _number(self.by) * self._counts

    @property
    def _counts(self) -> int:
        """The number of counts of a group."""
        return 1 if self.of is None else 2

    @property
    def _reached(self) -> int:
        """The number of cells that a row may be in, or more."""
        return groups_reached(self.by, self.where) * self._counts

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """See the class."""
        return histogram_sensitivities(self._reached)

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """See `histogram_claims`: cells that no row can be in are left out."""
        return histogram_claims(self._reached)

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows, shape (groups,) or (groups, 2)."""
        groups = _number(self.by)
        counts = np.zeros((self._counts, groups), dtype=np.int64)
        for tile in block.tiles(max(TILE, 4 * groups)):
            codes = _group_codes(tile, self.by)
            asked = np.ones(tile.rows, dtype=np.bool_) if self.where is None else self.where.holds(tile)
            parts = [asked] if self.of is None else [asked & self.of.holds(tile), asked & self.of.fails(tile)]
            counts += [np.bincount(codes[part], minlength=groups) for part in parts]
        return counts[0] if self.of is None else counts.T.copy()

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table of the groups and the descriptions."""
        where = [] if self.where is None else [Cases([self.where])]
        of = [] if self.of is None else [Cases([self.of, Not(self.of)])]
        shape = _number(self.by), len(where) + 1, 1 + 2 * len(of)

        def assemble(counts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
            asked = counts[0].reshape(shape)[:, 0]
            return asked[:, :2] if of else asked[:, 0]

        return JointCounts([Crosstab([*self.by, *where, *of])], assemble)


@attrs.frozen
class GroupNumbers(WithinBounds):
    """Numbers that add up over the rows of each group."""

    by: tuple[Attribute, ...] = attrs.field(default=(), converter=as_attributes, kw_only=True)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attribute, and the attributes of groups and description."""
        return tuple(dict.fromkeys((self.attribute.name, *_names(self.by, self.where))))

    @property
    def groups(self) -> int:
        """The number of groups."""
        return _number(self.by)

    def first(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first cell of each group, which is of the rows that are asked for, shape (groups,)."""
        return counts.reshape(self.groups, -1)[:, 0]

    def _add_up(self, block: Block, columns: int) -> NDArray[np.int64]:
        """Return the sums of `_entries` over the rows of each group, shape (groups, columns).

        Doubles hold the sums of a tile exactly: 2**17 rows of at most 2**31 steps each.
        """
        found = np.zeros((self.groups, columns), dtype=np.int64)
        for tile in block.tiles(TILE):
            counted = self.counted(tile)
            codes = _group_codes(tile, self.by)[counted]
            values = np.clip(tile.values(self.attribute.name)[counted], self.lower, self.upper)
            for k, entries in enumerate(self._entries(values)):
                found[:, k] += np.bincount(codes, weights=entries, minlength=self.groups).astype(np.int64)
        return found

    def _entries(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """Return each value's addition to each column, as whole numbers of steps."""
        raise NotImplementedError


@final
@attrs.frozen
class GroupSums(GroupNumbers):
    """The sum of a numeric attribute in each group, each value clamped to public bounds, shape (groups,).

    With L and U the rounded bounds, a row adds something in [L, U] to one sum, or nothing. So adding one raises a sum
    by R = max(U, 0) at most and lowers it by F = max(-L, 0), and each norm of that is the larger one, M.

    A row that is replaced may stay in its group: the sum changes by U - L, or by R + F where a row may add nothing. Or
    it leaves one group and enters another: two sums change by M each, at most. So the change is the larger of the two:
    in the l1 norm 2 M (which is at least R + F); squared, the larger of (U - L)**2 or (R + F)**2 and 2 M**2; in the
    linf norm the larger of U - L or R + F and M. With a single group only the first case is there; so it is where
    `where` leaves one value of each attribute in `by`, since a row of another group then adds nothing.

    Attributes
    ----------
    attribute, lower, upper, where
        As for `BoundedSum`.
    by
        The attributes of the groups.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean, Numeric
    >>> sums = GroupSums(Numeric("cost", 0, 90, bins=2), by=[Boolean("ill")])
    >>> sums.answer_length, [(float(s.add_or_remove_one), float(s.replace_one)) for s in sums.sensitivities]
    (2, [(90.0, 180.0), (8100.0, 16200.0), (90.0, 90.0)])
    """

    name = "group-sums"

    @property
    def text(self) -> str:
        """Name the attribute, the groups, the bounds and the description."""
        return f"sum of {self.bounds_text}{_by_text(self.by)}"

    @property
    def answer_length(self) -> int:
        """One sum a group."""
        return self.groups

    @property
    def step(self) -> float:
        """The step that values are rounded to (see `BoundedSum.step`)."""
        return self._whole.step

    @property
    def _whole(self) -> BoundedSum:
        """The sum over all groups, which changes as a group does by a row that stays in it."""
        return BoundedSum(self.attribute, self.lower, self.upper, where=self.where)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """See the class."""
        (one, *_) = self._whole.sensitivities
        assert one.rise is not None
        assert one.fall is not None
        assert one.replace_one is not None
        most, stays = max(one.rise, one.fall), one.replace_one
        # A row that changes its group lowers one sum and raises another.
        leaves = groups_reached(self.by, self.where) > 1
        replaced = {
            Norm.L1: max(stays, 2 * most) if leaves else stays,
            Norm.SQUARED_L2: max(stays**2, 2 * most**2) if leaves else stays**2,
            Norm.LINF: max(stays, most) if leaves else stays,
        }
        return tuple(
            Sensitivity(
                norm,
                most**power,
                replaced[norm],
                rise=one.rise**power,
                fall=one.fall**power,
                source=f"{one.source} to the sum of one group",
            )
            for norm, power in ((Norm.L1, 1), (Norm.SQUARED_L2, 2), (Norm.LINF, 1))
        )

    def _entries(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        return (np.rint(values / self.step),)

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Add this block's values up, in steps, shape (groups,)."""
        return self._add_up(block, 1)[:, 0]

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the sum of all steps in each group."""
        steps = WholeSteps(self.attribute.name, self.lower, self.upper, 0, self.step)
        table = Crosstab([*self.by, *self.asked], steps)
        return JointCounts([table], lambda counts: self.first(counts[0]))

    def answer(self, counts: NDArray[Any], **inputs: Any) -> Any:
        """Return the sums."""
        return counts * self.step


def _degree(_: Any, attribute: attrs.Attribute[Any], value: int) -> None:
    if value not in (1, 2):
        raise InputError(f"the degree of moments is {value!r}; 1 or 2 is needed")


@final
@attrs.frozen
class GroupMoments(GroupNumbers):
    """Sums for the number, the mean and, with degree 2, the variance of each group, shape (groups, degree + 1).

    With t = (value - lower) / (upper - lower), clamped to [0, 1], a row adds to its group

        (t, 1 - t) with degree 1, as `BoundDistances` does, and ((1 - t)**2, 2 t (1 - t), t**2) with degree 2,

    the Bernstein polynomials of that degree. They are not negative and add up to 1, whatever t is. So the sum of a
    group's numbers is the number of its rows; with degree 2 the sum of t**2 is the last one, and that of t the last and
    half of the middle one. All of it costs what a count costs:

    Adding a row adds a vector of l1 norm 1 (or 0, if it has no value), of which no coordinate is negative: every norm
    of the change is 1 at most, and is 1 where t is 0. Replacing one changes the vector by the difference of two such
    ones, in one group or in two: l1 change 2, squared l2 change 2 (two vectors without negative entries have no
    negative inner product), linf change 1, attained by t = 0 and t = 1. Rounding keeps this: the parts of a row are
    whole numbers of steps, not negative, of the same sum.

    Attributes
    ----------
    attribute, lower, upper, where
        As for `BoundedSum`.
    by
        The attributes of the groups; none for one group of all rows.
    degree
        1 for means, 2 for variances.

    Examples
    --------
    >>> from dpframework.facts.attributes import Numeric
    >>> moments = GroupMoments(Numeric("age", 0, 100, bins=2), degree=2)
    >>> moments.answer_length, [float(s.replace_one) for s in moments.sensitivities]
    (3, [2.0, 2.0, 1.0])
    """

    name = "group-moments"
    degree: int = attrs.field(default=1, kw_only=True, validator=_degree)

    @property
    def text(self) -> str:
        """Name the attribute, the groups, the bounds and the description."""
        what = "distances from both bounds" if self.degree == 1 else "counts, sums and squares"
        return f"{what} of {self.bounds_text}{_by_text(self.by)}"

    @property
    def answer_length(self) -> int:
        """Two or three numbers a group."""
        return self.groups * (self.degree + 1)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """See the class."""
        source = "a row adds numbers from 0 on to one group, whose sum is 1"
        return (
            Sensitivity(Norm.L1, 1, 2, fall=0, source=source),
            Sensitivity(Norm.SQUARED_L2, 1, 2, fall=0, source=source),
            Sensitivity(Norm.LINF, 1, 1, fall=0, source=source),
        )

    def _entries(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """Return each row's numbers in steps of a 2**30th, of which all but one are rounded.

        With degree 2 the middle one is what the others leave. It is not negative: both are rounded up only if t and
        1 - t are at least 2**-16, and then it is at least 2**14 steps.
        """
        t = (values - self.lower) / (self.upper - self.lower)
        if self.degree == 1:
            up = np.rint(t * STEPS)
            return up, STEPS - up
        first, last = np.rint((1 - t) ** 2 * STEPS), np.rint(t**2 * STEPS)
        return first, STEPS - first - last, last

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Add this block's numbers up, in steps, shape (groups, degree + 1)."""
        return self._add_up(block, self.degree + 1)

    @property
    def tabled(self) -> bool:
        """With degree 1. A square is no sum of steps."""
        return self.degree == 1

    def tables(self, **inputs: Any) -> JointCounts | None:
        """Return the sums of the distances from the lower bound, and the rows that have a value, in each group."""
        if not self.tabled:
            return None
        steps = WholeSteps(self.attribute.name, self.lower, self.upper, self.lower, (self.upper - self.lower) / STEPS)
        known = Crosstab([*self.by, *self.asked, Cases([describe_known(self.attribute.name, self.lower)])])

        def assemble(counts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
            summed, rows = (self.first(own) for own in counts)
            return np.stack([summed, STEPS * rows - summed], axis=1)

        return JointCounts([Crosstab([*self.by, *self.asked], steps), known], assemble)

    def answer(self, counts: NDArray[Any], **inputs: Any) -> Any:
        """Return the numbers, in rows."""
        return counts / STEPS
