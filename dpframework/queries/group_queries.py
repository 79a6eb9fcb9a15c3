"""Counts, sums and moments of each group of rows, as one answer.

Groups are the cells of the cross table of some attributes of the schema. A row lies in exactly one group, which
depends on its own values alone. So a row adds to the numbers of one group only. Therefore all groups together cost no
more than one group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, as_attributes
from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import Cases, Description, Not, fixes
from dpframework.facts.row_partitions import attributes_of
from dpframework.formulas.sensitivity_claims_and_neighbours import ScoreClaims
from dpframework.queries.base import Norm, Sensitivity
from dpframework.queries.counts import CellCounts, histogram_claims, histogram_sensitivities, share_sensitivities
from dpframework.queries.sums import STEPS, BoundedSum, WithinBounds, sum_sensitivities
from dpframework.tables.crosstab_expressions import Crosstab, JointCounts, WholeSteps, codes_in_bins, describe_known
from dpframework.tables.encoded_row_blocks import TILE, Block
from dpframework.tables.fast_code_counts import joint_codes


def _group_codes(block: Block, by: tuple[Attribute, ...]) -> NDArray[Any]:
    """Return the number of each row's group, counted from 0, shape (rows,)."""
    if not by:
        return np.zeros(block.rows, dtype=np.uint8)
    return joint_codes((codes_in_bins(block, one) for one in by), [one.size for one in by])


def _number(by: tuple[Attribute, ...]) -> int:
    return math.prod(one.size for one in by)


def groups_reached(by: tuple[Attribute, ...], where: Description | None) -> int:
    """Return an upper bound on the number of groups to which rows with the description `where` can belong."""
    return _number(by if where is None else tuple(one for one in by if not fixes(where, one)))


def _names(by: tuple[Attribute, ...], *descriptions: Description | None) -> tuple[str, ...]:
    """Return the names of the attributes of groups and descriptions, each once."""
    tested = attributes_of(tuple(one for one in descriptions if one is not None))
    return tuple(dict.fromkeys((*(one.name for one in by), *tested)))


def _by_text(by: tuple[Attribute, ...]) -> str:
    return f" by {', '.join(one.name for one in by)}" if by else ""


@final
@attrs.frozen
class GroupCounts(CellCounts):
    """The number of rows in each group, among the rows for which a public description holds.

    With `of`, each group has two counts: the rows for which `of` holds, and the rows for which its negation holds. For
    a row with a missing value, possibly neither holds. Then the row is in no cell. Cells are disjoint in any case (see
    `histogram_sensitivities`). If `where` allows only one value of each attribute in `by`, all counted rows are in one
    group, and the counts of the other groups are 0 in every table. A replaced row then changes one count, or two with
    `of`. The answer has the shape (groups,), or (groups, 2).

    Attributes
    ----------
    by
        The attributes of the groups. Empty for one group of all rows.
    where
        The description of the rows that are counted. None for all rows.
    of
        The description that divides each group in two. None for one count per group.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> from dpframework.facts.logical_descriptions_of_rows import Equals
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
        """One count for each group, or two."""
        return _number(self.by) * self._counts

    @property
    def _counts(self) -> int:
        """The number of counts per group."""
        return 1 if self.of is None else 2

    @property
    def _reached(self) -> int:
        """An upper bound on the number of cells in which rows can be."""
        return groups_reached(self.by, self.where) * self._counts

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """The sensitivities that the docstring of the class derives."""
        return histogram_sensitivities(self._reached)

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """See `histogram_claims`. Cells in which no row can be are left out."""
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
        """Return the cross table of the groups' attributes and the descriptions."""
        where = [] if self.where is None else [Cases([self.where])]
        of = [] if self.of is None else [Cases([self.of, Not(self.of)])]
        shape = _number(self.by), len(where) + 1, 1 + 2 * len(of)

        def assemble(counts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
            asked = counts[0].reshape(shape)[:, 0]
            return asked[:, :2] if of else asked[:, 0]

        return JointCounts([Crosstab([*self.by, *where, *of])], assemble)


@attrs.frozen
class GroupNumbers(WithinBounds):
    """The base class of queries that add up numbers over the rows of each group."""

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
        """Return the first count of each group, which counts the rows where `where` holds, shape (groups,)."""
        return counts.reshape(self.groups, -1)[:, 0]

    def _add_up(self, block: Block, columns: int) -> NDArray[np.int64]:
        """Return the sums of `_entries` over the rows of each group, shape (groups, columns).

        The block is read in parts (`Block.tiles`). Doubles hold the sums of a part exactly, since a part has at most
        2**17 rows, each of at most 2**31 steps.
        """
        found = np.zeros((self.groups, columns), dtype=np.int64)
        for tile in block.tiles(TILE):
            counted = self.row_mask(tile)
            codes = _group_codes(tile, self.by)[counted]
            values = np.clip(tile.values(self.attribute.name)[counted], self.lower, self.upper)
            for k, entries in enumerate(self._entries(values)):
                found[:, k] += np.bincount(codes, weights=entries, minlength=self.groups).astype(np.int64)
        return found

    def _entries(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """Return, for each column, what each value adds to it, as whole numbers of steps."""
        raise NotImplementedError


@final
@attrs.frozen
class GroupSums(GroupNumbers):
    """The sum of a numeric attribute in each group, each value clamped to public bounds, shape (groups,).

    With L and U the rounded bounds, a row adds an amount in [L, U] to one sum, or nothing. So adding a row raises a sum
    by at most R = max(U, 0) or lowers it by at most F = max(-L, 0). Every norm of the change is at most M, the larger
    of R and F.

    If a replaced row stays in its group, the sum changes by at most D, where D is U - L, or R + F if a row may add
    nothing. If a replaced row leaves one group and enters another, two sums change by at most M each. The sensitivity
    is the larger of both cases. In the l1 norm this is 2 M, since D is at most R + F and so at most 2 M. In the squared
    l2 norm it is the larger of D**2 and 2 M**2, and in the linf norm the larger of D and M. With a single group there
    is only the first case. The same holds if `where` allows only one value of each attribute in `by`, since a row of
    another group then adds nothing.

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
        """One sum for each group."""
        return self.groups

    @property
    def step(self) -> float:
        """The step that values are rounded to (see `BoundedSum.step`)."""
        return self._whole.step

    @property
    def _whole(self) -> BoundedSum:
        """The sum over all groups. A replaced row that stays in its group changes it exactly like the group's sum."""
        return BoundedSum(self.attribute, self.lower, self.upper, where=self.where)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """The sensitivities that the docstring of the class derives."""
        (one, *_) = self._whole.sensitivities
        assert one.rise is not None
        assert one.fall is not None
        assert one.replace_one is not None
        most, stays = max(one.rise, one.fall), one.replace_one
        # Whether a row can leave one group and enter another.
        leaves = groups_reached(self.by, self.where) > 1
        replaced = {
            Norm.L1: max(stays, 2 * most) if leaves else stays,
            Norm.SQUARED_L2: max(stays**2, 2 * most**2) if leaves else stays**2,
            Norm.LINF: max(stays, most) if leaves else stays,
        }
        return sum_sensitivities(one.rise, one.fall, replaced, f"{one.source} to the sum of one group")

    def _entries(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        return (np.rint(values / self.step),)

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Add up this block's values, in steps, shape (groups,)."""
        return self._add_up(block, 1)[:, 0]

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table of the sums of steps in each group."""
        steps = WholeSteps(self.attribute.name, self.lower, self.upper, 0, self.step)
        table = Crosstab([*self.by, *self.where_columns], steps)
        return JointCounts([table], lambda counts: self.first(counts[0]))

    def answer(self, counts: NDArray[Any], **inputs: Any) -> Any:
        """Return the sums."""
        return counts * self.step


def _degree(_: Any, attribute: attrs.Attribute[Any], value: int) -> None:
    if value not in (1, 2):
        raise InputError(f"the degree of moments is {value!r}; give 1 for means or 2 for variances")


@final
@attrs.frozen
class GroupMoments(GroupNumbers):
    """Sums that give each group's number of rows, mean and, with degree 2, variance, shape (groups, degree + 1).

    With t = (value - lower) / (upper - lower), clamped to [0, 1], a row adds to its group

        (t, 1 - t) with degree 1, as `BoundDistances` does, and ((1 - t)**2, 2 t (1 - t), t**2) with degree 2,

    the Bernstein polynomials of that degree. They are not negative and add up to 1, whatever t is. So a group's numbers
    add up to the number of its rows with a value. With degree 2, the sum of t**2 is the last number, and the sum of t
    is the last number plus half of the middle number. All these numbers together cost no more than a count does:

    Adding a row adds a vector of l1 norm 1 (or 0, if the row has no value) without negative coordinates. So every norm
    of the change is at most 1, and is 1 if t is 0. Replacing a row changes the answer by the difference of two such
    vectors, in one group or in two. The l1 change is at most 2. The squared l2 change is at most 2, since the inner
    product of two vectors without negative entries is 0 or more. The linf change is at most 1. All these bounds are
    attained by t = 0 and t = 1. They hold after rounding, too: a row's rounded numbers are whole numbers of steps, 0 or
    more, with the same sum.

    Attributes
    ----------
    attribute, lower, upper, where
        As for `BoundedSum`.
    by
        The attributes of the groups. Empty for one group of all rows.
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
        """Two or three numbers for each group."""
        return self.groups * (self.degree + 1)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """The sensitivities that the docstring of the class derives."""
        return share_sensitivities("a row adds numbers from 0 on to one group, whose sum is 1")

    def _entries(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """Return each row's numbers in steps of 2**-30. All but one are rounded; one is the remainder to 1.

        With degree 2 the middle number is this remainder. It is not negative. If at most one of the other two is
        rounded up, their sum exceeds 1 by at most half a step. Since it is a whole number of steps, it is at most 1. If
        both are rounded up, t and 1 - t are at least 2**-16, and the remainder is at least 2**14 steps.
        """
        t = (values - self.lower) / (self.upper - self.lower)
        if self.degree == 1:
            up = np.rint(t * STEPS)
            return up, STEPS - up
        first, last = np.rint((1 - t) ** 2 * STEPS), np.rint(t**2 * STEPS)
        return first, STEPS - first - last, last

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Add up this block's numbers, in steps, shape (groups, degree + 1)."""
        return self._add_up(block, self.degree + 1)

    @property
    def has_tables(self) -> bool:
        """Whether the degree is 1. A sum of squares does not follow from sums of steps."""
        return self.degree == 1

    def tables(self, **inputs: Any) -> JointCounts | None:
        """Return cross tables of the distances from the lower bound, and of the rows with a value, in each group."""
        if not self.has_tables:
            return None
        steps = WholeSteps(self.attribute.name, self.lower, self.upper, self.lower, (self.upper - self.lower) / STEPS)
        known = Crosstab([*self.by, *self.where_columns, Cases([describe_known(self.attribute.name, self.lower)])])

        def assemble(counts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
            summed, rows = (self.first(own) for own in counts)
            return np.stack([summed, STEPS * rows - summed], axis=1)

        return JointCounts([Crosstab([*self.by, *self.where_columns], steps), known], assemble)

    def answer(self, counts: NDArray[Any], **inputs: Any) -> Any:
        """Return the numbers, converted from steps, so that those of one row add up to 1."""
        return counts / STEPS
