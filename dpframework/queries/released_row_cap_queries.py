"""Queries that read at most a released number of rows of each unit.

A study keeps at most K rows of a unit, and noise must hide all K. K must be large enough for every unit, but most units
have far fewer rows. Here an earlier step releases a number k up to K, and a query reads only the first k rows of each
unit.

**The weight.** Each of the first k rows counts w = floor(K / k) times. So the answer is w times the query's answer on k
rows per unit. Let one row move the query by at most D in some norm. Adding or removing a unit moves the query by at
most k D, and the answer by at most w k D <= K D, **for every k**. So the declared sensitivity does not depend on the
released number. Epsilon, the noise and the plan's total are fixed beforehand, as if all K rows were read. Code that
reads the release divides it by w, as `basics.released_row_cap_miner_base` does. This is post-processing. It divides the
noise, too, which is then the noise for K / w rows, and K / w is nearly k.

Replace a unit of r rows by one of s rows. In the first k places, min(r, k) rows are removed and min(s, k) are added. In
pairs, these are at most k changes of one row each, which are replacements, additions or removals (see
`facts.privacy_unit`). Let d be the largest of the query's sensitivities for a replaced, added or removed row. All
changes together move the query by at most k d. In the squared l2 norm, let d be the root of the largest sensitivity. A
path of k steps of length d is at most k d long, and (w k d)**2 is at most (K d)**2.

**The places.** Which rows are a unit's first k must depend on the unit alone, and so must the choice of the K rows that
are kept. So a keyed hash fixes the place of each row within its unit while the table is read
(`tables.contribution_bounding.RowChoice`). An added unit does not change the places of another unit's rows. The query
reads the places itself, so it need not trust a miner for them.

**Single rows.** If units are not known, or their rows lie in several parts of a table, each row is charged by itself. A
single row, whatever its place, moves the answer by at most w D, and w is at most K. So K D is declared for one row too,
and a unit of several rows is then charged that much for each row. A replaced row may leave a place below k and enter a
place beyond it. So it moves the answer like a removed row or like a replaced row, whichever is more.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.parameter_checks import between_0_and_1, is_whole_number, share_of_budget, whole_number
from dpframework.facts.privacy_unit import MOST_UNIT_ROWS
from dpframework.queries.base import Norm, Query, Sensitivity
from dpframework.queries.counts import Count
from dpframework.queries.scores import CandidateScores
from dpframework.tables.count_width import in_64_bits
from dpframework.tables.crosstab_expressions import Crosstab, JointCounts, UnitPlaces
from dpframework.tables.encoded_row_blocks import Block

#: The norms in which a sensitivity can be multiplied by the weight (squared for squared l2). `Norm.HISTOGRAMS` is left
#: out. It states that the changes of all histograms have the same public sum, but here the number of rows that are read
#: is not public.
_NORMS = (Norm.L1, Norm.SQUARED_L2, Norm.LINF, Norm.BLOCKS)
_LARGEST = 1 << 62  # whole numbers times their weight are clamped to this size


def numbers_of_rows(most: int) -> tuple[int, ...]:
    """Return the numbers of rows per unit that may be released, for units of at most `most` rows.

    For each weight w = floor(most / k) only the largest k is returned, since a smaller k would read fewer rows with the
    same noise.

    Examples
    --------
    >>> numbers_of_rows(40)
    (1, 2, 3, 4, 5, 6, 8, 10, 13, 20, 40)
    """
    found, k = [], most
    while k:
        found.append(k)
        k = most // (most // k + 1)
    return tuple(reversed(found))


@final
@attrs.frozen
class AtReleasedRows(Query):
    """A query on the first k rows of each unit, each counted floor(most / k) times, where k is given at run time.

    For the sensitivities see the module. The input is `rows_per_unit`, a whole number from 1 to `most`. Without it, all
    rows are read, and each counts once. All other inputs are passed on to the query.

    Attributes
    ----------
    query
        The query on all rows. It must only count rows, and not override `evaluate` or `counting`.
    most
        The most rows of a unit, for which noise is planned.

    Examples
    --------
    >>> from dpframework.queries import Count
    >>> few = AtReleasedRows(Count(), most=40)
    >>> few.text
    'count of rows, in the released number of rows of each unit, of at most 40'
    >>> few.weight(13), [float(one.add_or_remove_one) for one in few.for_rows(40)]
    (3, [40.0, 1600.0, 40.0])
    """

    name = "at-released-rows"
    places = True
    query: Query = attrs.field(validator=attrs.validators.instance_of(Query))
    most: int = attrs.field(validator=whole_number(1, MOST_UNIT_ROWS))

    def __attrs_post_init__(self) -> None:
        """Refuse a query that does more than count rows."""
        own = type(self.query)
        counts = own.evaluate is Query.evaluate and own.counting is Query.counting
        if not counts or self.query.unlisted or self.query.gathers or self.query.places:
            raise InputError(
                f"the query '{self.query.name}' does more than count rows, so that it cannot read a released number of "
                "rows of each unit; use a query that only counts"
            )

    def weight(self, rows_per_unit: int | None = None) -> int:
        """Return how often each row counts, for a released number of rows.

        Raises
        ------
        InputError
            If `rows_per_unit` is not a whole number from 1 to `most`.
        """
        if rows_per_unit is None:
            return 1
        if not is_whole_number(rows_per_unit, most=self.most):
            raise InputError(f"rows_per_unit is {rows_per_unit!r}; give a whole number from 1 to {self.most}")
        return self.most // rows_per_unit

    @property
    def no_attributes(self) -> bool:  # type: ignore[override]
        """Whether the query reads no attribute. This is so for the count of all rows."""
        return self.query.no_attributes or self.query.facts() == Count().facts()

    @property
    def text(self) -> str:
        """The query's text, with a note that the number of rows is released."""
        return f"{self.query.text}, in the released number of rows of each unit, of at most {self.most}"

    @property
    def integer(self) -> bool:  # type: ignore[override]
        """Whether answers are whole numbers. Weights are, so this depends on the query's answers."""
        return self.query.integer

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that the query reads."""
        return self.query.attributes

    @property
    def answer_length(self) -> int | None:
        """The length of the query's answer."""
        return self.query.answer_length

    @functools.cached_property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """The query's sensitivities, times `most` (see the module)."""
        return tuple(self._times_most(one) for one in self.query.sensitivities if one.norm in _NORMS)

    def _times_most(self, declared: Sensitivity) -> Sensitivity:
        factor = self.most ** (2 if declared.norm is Norm.SQUARED_L2 else 1)
        change = declared.change
        added, replaced = change.add_or_remove_one, change.replace_one
        if added is not None and replaced is not None:
            replaced = max(added, replaced)

        def times(bound: Fraction | None) -> Fraction | None:
            return None if bound is None else bound * factor

        return Sensitivity(
            declared.norm,
            times(added),
            times(replaced) if added is not None else None,
            rise=times(declared.rise),
            fall=times(declared.fall),
            source=f"{self.most} rows of a unit: {declared.source}",
        )

    def for_rows(self, rows: int) -> Sequence[Sensitivity]:
        """Return the same sensitivities for a unit of several rows (see the module)."""
        return self.sensitivities

    @property
    def rounding(self) -> Fraction:
        """The query's rounding error times the largest weight."""
        return self.query.rounding * self.most

    @property
    def histograms(self) -> tuple[int, ...]:
        """The sizes of the query's blocks, if it declares a sensitivity in `Norm.BLOCKS`."""
        return self.query.histograms if any(one.norm is Norm.BLOCKS for one in self.query.sensitivities) else ()

    @property
    def has_tables(self) -> bool:
        """Whether the query's counts follow from cross tables."""
        return self.query.has_tables

    def candidates(self, *, rows_per_unit: int | None = None, **inputs: Any) -> Sequence[Any]:
        """Return the query's candidates."""
        return self.query.candidates(**inputs)

    def count(self, block: Block, *, rows_per_unit: int | None = None, **inputs: Any) -> NDArray[Any]:
        """Return the query's counts on the first rows of each unit."""
        self.weight(rows_per_unit)
        return self.query.count(block if rows_per_unit is None else block.first_of_units(rows_per_unit), **inputs)

    def tables(self, *, rows_per_unit: int | None = None, **inputs: Any) -> JointCounts | None:
        """Return the query's cross tables with one more axis, which separates each unit's first rows from others."""
        self.weight(rows_per_unit)
        found = self.query.tables(**inputs)
        if found is None or rows_per_unit is None:
            return found
        first = UnitPlaces([rows_per_unit])
        tables = [attrs.evolve(table, columns=(*table.columns, first)) for table in found.tables]
        return JointCounts(tables, lambda counts: found.assemble([own[..., 0] for own in counts]))

    def answer(self, counts: NDArray[Any], *, rows_per_unit: int | None = None, **inputs: Any) -> Any:
        """Return the query's answer times the weight, with whole numbers clamped to what 64 bits can hold."""
        answer, weight = np.asarray(self.query.answer(counts, **inputs)), self.weight(rows_per_unit)
        # A product that overflows would move further than the declared sensitivity.
        if answer.dtype.kind in "iu":
            bound = _LARGEST // weight
            answer = np.clip(np.minimum(in_64_bits(answer), bound).astype(np.int64), -bound, bound)
        return answer * weight


@final
@attrs.frozen
class RowsPerUnitScores(CandidateScores):
    """A score for each number of rows per unit: minus the number of units by which it misses being right (see below).

    The candidates are `numbers_of_rows(most)`: k_1 < k_2 < ... Let M(k) of n units have more than k rows, and let o be
    the share of the units that may have more rows than the chosen number. Then k_i is right if
    M(k_i) <= o n <= M(k_{i-1}), with M(k_0) = n. The score of k_i is -max(0, M(k_i) - o n, o n - M(k_{i-1})). The
    smallest k with M(k) <= o n has the score 0.

    A unit counts once, however many rows it has. Adding a unit raises n by 1, and each M by 0 or 1. So M - o n moves by
    1 - o or by -o, and o n - M by the reverse. The score moves by at most max(o, 1 - o) up or down. Replacing a unit
    leaves n as it is and moves each M by at most 1, so it moves the score by at most 1. (If the number of rows is not
    public, a unit may be replaced by a unit without rows. This moves the score like a removal.)

    If units are not known, each row is charged by itself. A row in the place k > 0, counted from 0, changes M(k) alone,
    and a row in the place 0 changes n alone. So the score moves by at most 1, and by at most 2 if a row is replaced.

    Attributes
    ----------
    most
        The most rows of a unit.
    outside
        The share o of the units that may have more rows than the chosen number.

    Examples
    --------
    >>> scores = RowsPerUnitScores(12, "0.05")
    >>> scores.candidates()
    (1, 2, 3, 4, 6, 12)
    >>> scores.answer(np.array([100, 90, 40, 7, 2, 0])).tolist()  # of 100 units, 90 have more than 1 row, ...
    [-85.0, -35.0, -2.0, 0.0, -3.0, -5.0]
    """

    name = "rows-per-unit-scores"
    places = True
    no_attributes = True
    most: int = attrs.field(validator=whole_number(1, MOST_UNIT_ROWS))
    outside: Fraction = attrs.field(converter=share_of_budget, validator=between_0_and_1)

    @property
    def text(self) -> str:
        """Describe the scores."""
        return f"distances in units from having at most so many rows, of up to {self.most}"

    @functools.cached_property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of rows."""
        return numbers_of_rows(self.most)

    @property
    def answer_length(self) -> int:
        """One score for each number of rows."""
        return len(self.numbers)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """The sensitivity for a row that is charged by itself, or for a unit if every unit has only one row."""
        if self.most == 1:
            return self.for_rows(1)
        return (Sensitivity(Norm.LINF, 1, 2, source="a row says of one number that its unit has more, or is a unit"),)

    def for_rows(self, rows: int) -> tuple[Sensitivity, ...]:
        """Return the sensitivity for a unit, which counts once (see the class)."""
        moved = max(self.outside, 1 - self.outside)
        return (Sensitivity(Norm.LINF, moved, 1, source="a unit counts once, however many rows it has"),)

    def candidates(self, **inputs: Any) -> Sequence[int]:
        """Return the numbers of rows."""
        return self.numbers

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's units, and for each number of rows except the last, the units with more rows than that."""
        places = block.places_in_units()
        sizes = np.bincount(places, minlength=1 + self.most)
        return sizes[[0, *self.numbers[:-1]]]

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table of rows by place. The rows in place k (from 0) count the units of more than k rows."""
        asked = [0, *self.numbers[:-1]]
        cuts = sorted({place for k in asked for place in (k, k + 1)} - {0})
        cells = [int(np.searchsorted(cuts, k, side="right")) for k in asked]
        return JointCounts([Crosstab([UnitPlaces(cuts)])], lambda counts: counts[0][cells])

    def answer(self, counts: NDArray[Any], **inputs: Any) -> NDArray[np.float64]:
        """Return the scores, computed as exact integers and divided by the share's denominator at the end."""
        part, whole = self.outside.numerator, self.outside.denominator
        aim, least = part * int(counts[0]), whole * counts.astype(np.int64)  # `least` is `whole` times M(k_{i-1})
        more = np.append(least[1:], 0)
        return np.asarray(-np.maximum(np.maximum(more - aim, aim - least), 0) / whole)
