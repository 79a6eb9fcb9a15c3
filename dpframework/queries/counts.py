"""Counts of rows: how many there are, histograms of single attributes, and the joint histogram of several."""

from __future__ import annotations

import abc
import functools
import math
import operator
from collections.abc import Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, as_attributes
from dpframework.facts.logical_descriptions_of_rows import Cases, Description
from dpframework.facts.row_partitions import attributes_of
from dpframework.formulas.count_formula import Formula, public
from dpframework.formulas.score_structures import Adds
from dpframework.formulas.sensitivity_claims_and_neighbours import Change, ScoreClaims, norm_claims
from dpframework.queries.base import Norm, Query, Sensitivity
from dpframework.tables.crosstab_expressions import Crosstab, JointCounts, require_own_codes
from dpframework.tables.encoded_row_blocks import Block
from dpframework.tables.fast_code_counts import MANY, tally

_MOST_NAMED = 4  # the most attributes that the text of `Marginals` names


@functools.cache
def share_sensitivities(source: str, moved: int = 2) -> tuple[Sensitivity, ...]:
    """Return the sensitivities of an answer to which each row adds a vector of numbers >= 0 with a sum of 1 or 0.

    Adding a row lowers no number, and every norm of the change is at most 1. All norms are 1 if one number gets the
    whole sum. Replacing a row changes the answer by the difference of two such vectors, whose inner product is not
    negative. So the l1 change is at most 2, the squared l2 change at most 2, and the linf change at most 1.

    Parameters
    ----------
    source
        A sentence that says what a row adds.
    moved
        The l1 change and the squared l2 change by a replaced row: 2, or 1 if the answer is a single number.
    """
    return (
        Sensitivity(Norm.L1, 1, moved, fall=0, source=source),
        Sensitivity(Norm.SQUARED_L2, 1, moved, fall=0, source=source),
        Sensitivity(Norm.LINF, 1, 1, fall=0, source=source),
    )


def histogram_sensitivities(cells: int | None) -> tuple[Sensitivity, ...]:
    """Return the sensitivities of counts over disjoint cells. If the number of cells is None, there may be several.

    A row lies in one cell or in none. So adding it raises at most one count, by 1, and every norm of the change is at
    most 1. Replacing it lowers at most one count and raises at most one other, each by 1. So the l1 change is 2, the
    squared l2 change 2, and the linf change 1. A single count changes by at most 1 in every norm.
    """
    return share_sensitivities("counts of disjoint cells: a row lies in one cell", 1 if cells == 1 else 2)


def table_sensitivities(cells: int) -> tuple[Sensitivity, ...]:
    """Return `histogram_sensitivities`, and for two or more cells also the sensitivity in `Norm.HISTOGRAMS`."""
    declared = histogram_sensitivities(cells)
    return declared if cells == 1 else (*declared, attrs.evolve(declared[0], norm=Norm.HISTOGRAMS))


_FIRST, _SECOND = (public(name, 0, 1) for name in ("first", "second"))


def _cells_claims(cells: tuple[Formula, ...], moved: int) -> ScoreClaims:
    added = {Change.L1: 1, Change.SQUARED_L2: 1, Change.LINF: 1}
    return norm_claims(
        "counts of disjoint cells",
        Adds(cells, shares=True),
        added,
        {**added, Change.L1: moved, Change.SQUARED_L2: moved},
    )


#: A single count, to which a row adds 1 or 0.
_ONE_CELL = _cells_claims((_FIRST,), 1)
#: The counts of the two cells that a row lies in before and after it is replaced. The row adds nothing to other cells.
_TWO_CELLS = _cells_claims((_FIRST, _SECOND), 2)


def histogram_claims(cells: int | None) -> tuple[ScoreClaims, ...]:
    """Return the claims about the sensitivity of counts over disjoint cells, in the form that can be proved."""
    return (_ONE_CELL if cells == 1 else _TWO_CELLS,)


class CellCounts(Query):
    """The numbers of rows in disjoint cells, whatever the cells are.

    A subclass counts the rows of a block, and states the number of cells if it is known before the run.
    """

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """See `histogram_sensitivities`."""
        return histogram_sensitivities(self.answer_length)

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """See `histogram_claims`."""
        return histogram_claims(self.answer_length)


@final
@attrs.frozen
class Count(Query):
    """The number of rows, or of the rows for which a public description holds.

    Examples
    --------
    >>> Count().sensitivities[0].add_or_remove_one
    Fraction(1, 1)
    """

    name = "count"
    where: Description | None = None

    @property
    def text(self) -> str:
        """Name the description."""
        return "count of rows" if self.where is None else f"count of rows with {self.where}"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The description's attributes."""
        return () if self.where is None else attributes_of((self.where,))

    @property
    def answer_length(self) -> int:
        """One number."""
        return 1

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """A change of at most 1, in every norm and under either relation.

        Without a description, replacing a row of the whole table changes nothing, since the number of all rows is
        public under replace-one. So under replace-one the count is useful only in parts of the table. A replaced row
        may move from one part to another, so 1 is declared under replace-one, too.
        """
        return histogram_sensitivities(1)

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """See `histogram_claims`."""
        return histogram_claims(1)

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows, shape (1,)."""
        held = block.rows if self.where is None else int(self.where.holds(block).sum())
        return np.array([held], dtype=np.int64)

    def tables(self, **inputs: Any) -> JointCounts:
        """Return a table with the number of all rows, or of those for which the description holds."""
        if self.where is None:
            return JointCounts([Crosstab()], lambda counts: counts[0].reshape(1))
        return JointCounts([Crosstab([Cases([self.where])])], lambda counts: counts[0][:1])

    def answer(self, counts: NDArray[Any], **inputs: Any) -> Any:
        """Return the count as a single number."""
        (number,) = counts
        return number


class TableCounts(CellCounts):
    """The numbers of rows in the cells of a table. Every row is in exactly one cell, so the cells are one histogram."""

    @property
    @abc.abstractmethod
    def answer_length(self) -> int:
        """The number of cells."""

    @property
    def histograms(self) -> tuple[int, ...]:
        """All cells as one histogram, if there are two or more."""
        return (self.answer_length,) if self.answer_length > 1 else ()

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """See `table_sensitivities`."""
        return table_sensitivities(self.answer_length)


@attrs.frozen
class AttributeCounts(CellCounts):
    """The numbers of rows in disjoint cells of one attribute."""

    attribute: Attribute

    @property
    def attributes(self) -> tuple[str, ...]:
        """The one attribute."""
        return (self.attribute.name,)


@final
@attrs.frozen
class Histogram(AttributeCounts):
    """The number of rows with each value of one attribute, in the order of its labels.

    Examples
    --------
    >>> from dpframework.facts.attributes import Categorical
    >>> Histogram(Categorical("sex", values=["Female", "Male"])).answer_length
    2
    """

    name = "histogram"

    @property
    def text(self) -> str:
        """Name the attribute."""
        return f"histogram of {self.attribute.name}"

    @property
    def answer_length(self) -> int:
        """One count for each code, also for the code of a missing value."""
        return self.attribute.size

    def candidates(self, **inputs: Any) -> Sequence[str]:
        """Return the attribute's labels."""
        return self.attribute.labels

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows, shape (size,)."""
        return marginal_counts(block, self.attribute)

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the one-way table of the attribute."""
        return JointCounts([Crosstab([self.attribute])], operator.itemgetter(0))


def _own_codes(block: Block, attribute: Attribute) -> NDArray[Any]:
    """Return an attribute's codes for a block's rows. Refuse a block that has more codes than the query's attribute."""
    require_own_codes(block.schema[attribute.name], attribute)
    return block.codes(attribute.name)


def marginal_counts(block: Block, attribute: Attribute) -> NDArray[np.int64]:
    """Count a block's rows by the codes of an attribute. A large block is read in parts, without copying a column."""
    # Callers may count a few rows many times, so such a count must be one cheap call of numpy.
    if block.rows < MANY:
        return np.bincount(_own_codes(block, attribute), minlength=attribute.size).astype(np.int64, copy=False)
    return tally((_own_codes(tile, attribute) for tile in block.tiles()), attribute.size)


def cell_counts(block: Block, of: Sequence[Attribute]) -> NDArray[np.int64]:
    """Count a block's rows in the cells of some attributes' cross table, as an array of its shape.

    A large block is counted in parts (see `Block.tiles`). In each part, the number of a row's cell is kept in the
    smallest integer type that fits the numbers of all cells.
    """
    return Crosstab(of).count(block)


@final
@attrs.frozen
class JointHistogram(TableCounts):
    """The number of rows in each cell of several attributes' cross table, shape (size of each attribute, ...).

    A numeric attribute may have other bins than the schema's attribute of the same name. A row then lies in the cell of
    its raw value.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> JointHistogram([Boolean("a"), Boolean("b")]).answer_length
    4
    """

    name = "joint-histogram"
    of: tuple[Attribute, ...] = attrs.field(converter=as_attributes, validator=attrs.validators.min_len(1))

    @property
    def text(self) -> str:
        """Name the attributes."""
        return f"{'joint ' if len(self.of) > 1 else ''}histogram of " + ", ".join(a.name for a in self.of)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of the cross table."""
        return tuple(a.name for a in self.of)

    @property
    def answer_length(self) -> int:
        """The number of cells."""
        return math.prod(map(operator.attrgetter("size"), self.of))

    def candidates(self, **inputs: Any) -> Sequence[tuple[str, ...]]:
        """Return one tuple of labels for each cell, where the last attribute varies fastest."""
        import itertools

        return list(itertools.product(*(a.labels for a in self.of)))

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows, in the shape of the cross table."""
        return cell_counts(block, self.of)

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table."""
        return JointCounts([Crosstab(self.of)], operator.itemgetter(0))


@final
@attrs.frozen
class Marginals(Query):
    """The histograms of several attributes, one after another, in the order of their codes.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean, Categorical
    >>> Marginals([Boolean("ill"), Categorical("town", ["A", "B", "C"])]).histograms
    (2, 3)
    """

    name = "marginals"
    of: tuple[Attribute, ...] = attrs.field(converter=as_attributes, validator=attrs.validators.min_len(1))

    @property
    def text(self) -> str:
        """Name the attributes, or say how many there are."""
        named = ", ".join(self.attributes) if len(self.of) <= _MOST_NAMED else f"{len(self.of)} attributes"
        return f"{'histogram' if len(self.of) == 1 else 'histograms'} of {named}"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of the histograms."""
        return tuple(a.name for a in self.of)

    @property
    def answer_length(self) -> int:
        """One count for each code of each attribute, also for the code of a missing value."""
        return sum(self.histograms)

    @property
    def histograms(self) -> tuple[int, ...]:
        """The number of codes of each attribute."""
        return tuple(a.size for a in self.of)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """Return the sensitivities of m histograms that count every row once.

        Adding a row raises one count of each histogram by 1. Replacing a row lowers one count and raises another, in
        each histogram of an attribute with at least two values. So the l1 change of one histogram is 1, or at most 2
        under replace-one. If d of the m attributes have at least two values, the l1 change of all histograms together
        is m, or at most 2 d under replace-one. The same holds for the squared l2 change. A single count changes by at
        most 1.
        """
        source = "each histogram counts every row once"
        added, moved = len(self.of), 2 * sum(a.size > 1 for a in self.of)
        return (
            Sensitivity(Norm.HISTOGRAMS, 1, 2 if moved else 0, fall=0, source=source),
            Sensitivity(Norm.L1, added, moved, fall=0, source=source),
            Sensitivity(Norm.SQUARED_L2, added, moved, fall=0, source=source),
            Sensitivity(Norm.LINF, 1, 1 if moved else 0, fall=0, source=source),
        )

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """The claims about one histogram.

        The l1 changes of several histograms add up, and so do the squared l2 changes.
        """
        return histogram_claims(max(self.histograms))

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows, shape (sum of sizes,)."""
        return np.concatenate([marginal_counts(block, a) for a in self.of])

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the one-way table of each attribute."""
        return JointCounts([Crosstab([a]) for a in self.of], np.concatenate)
