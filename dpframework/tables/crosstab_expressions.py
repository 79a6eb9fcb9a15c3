"""Counts of rows in the cells of cross tables. For most queries an engine needs to count nothing else.

A cross table is a public expression. Its columns are attributes, cases, steps and places in units (see `Column`). So it
can be counted even by an engine that cannot evaluate functions of rows, such as a database.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import Below, Cases, Description, Not, Or
from dpframework.facts.row_partitions import AttributeSources, attributes_of
from dpframework.facts.schema import Schema
from dpframework.facts.value_checks import as_float, as_whole_numbers
from dpframework.tables.encoded_row_blocks import TILE, Block, undeclared
from dpframework.tables.fast_code_counts import joint_codes, tally


@final
@attrs.frozen
class WholeSteps:
    """The values of a numeric attribute as whole numbers of steps. Each value is rounded alone, so sums are exact.

    A value is clamped to the bounds and then counts as `(value - origin) / step`, rounded to the nearest whole number.
    A row without a value has no steps.

    Attributes
    ----------
    attribute
        The attribute's name.
    lower, upper
        The public bounds that values are clamped to.
    origin, step
        The value at step 0, and the length of a step.
    half_up
        Whether a value half way between two steps counts as the upper step. Otherwise it counts as the step with the
        even number.

    Examples
    --------
    >>> age = WholeSteps("age", 0, 90, origin=0, step=10, half_up=True)
    >>> age.of(np.array([-3.0, 44.0, 45.0, 1e9])).tolist(), age.number
    ([0, 4, 5, 9], 10)
    """

    attribute: str
    lower: float = attrs.field(converter=as_float)
    upper: float = attrs.field(converter=as_float)
    origin: float = attrs.field(converter=as_float)
    step: float = attrs.field(converter=as_float)
    half_up: bool = False

    def of(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the steps of some values, none of which may be missing."""
        exact = (np.clip(values, self.lower, self.upper) - self.origin) / self.step
        return np.asarray(np.floor(exact + 0.5) if self.half_up else np.rint(exact)).astype(np.int64)

    @property
    def ends(self) -> tuple[int, int]:
        """The steps of the bounds."""
        low, high = self.of(np.array([self.lower, self.upper])).tolist()
        return low, high

    @property
    def number(self) -> int:
        """The number of steps from one bound to the other, both included."""
        low, high = self.ends
        return int(high - low + 1)


@final
@attrs.frozen
class UnitPlaces:
    """The place of each row within its unit, counted from 0 and grouped into ranges.

    Attributes
    ----------
    cuts
        Increasing whole numbers above 0. The first range holds the places below the first cut. Each other range begins
        at a cut.

    Examples
    --------
    >>> UnitPlaces([1, 5]).of(np.array([0, 1, 4, 5, 80])).tolist()
    [0, 1, 1, 2, 2]
    """

    cuts: tuple[int, ...] = attrs.field(converter=as_whole_numbers)

    def of(self, places: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
        """Return the number of the range that each place lies in."""
        return np.searchsorted(np.array(self.cuts, dtype=np.int64), places.astype(np.int64), side="right")


#: An axis of a cross table. An attribute has a cell for each code. Cases have a cell for each description and one for
#: all other rows. Steps have a cell for each step between the bounds and one for a missing value. Places have a cell
#: for each range.
Column: TypeAlias = "Attribute | Cases | WholeSteps | UnitPlaces"


def cells_of_column(column: Column) -> int:
    """Return the number of cells of a column."""
    if isinstance(column, UnitPlaces):
        return len(column.cuts) + 1
    if isinstance(column, WholeSteps):
        return column.number + 1
    return column.size if isinstance(column, Attribute) else len(column.descriptions) + 1


def as_cases(column: Column, schema: Schema) -> Column:
    """Return a column in terms of a schema. A numeric attribute whose bins differ from the schema's becomes cases.

    If the result is an attribute, its cells are the codes of the schema's attribute.

    Raises
    ------
    InputError
        If the schema's attribute has more codes than the query counts.

    Examples
    --------
    >>> fine = Schema([Numeric("age", 0, 90, cuts=[30, 60])])
    >>> as_cases(Numeric("age", 0, 90, cuts=[45]), fine).labels
    ('age < 45', 'otherwise')
    """
    if not isinstance(column, Attribute):
        return column
    own = schema[column.name]
    if not isinstance(column, Numeric) or own == column:
        require_own_codes(own, column)
        return column
    below: list[Description] = [Below(column.name, cut) for cut in column.interior_cuts]
    # The top bin gets a case too, so that missing values have the last cell to themselves.
    if column.missing_code is not None:
        below.append(describe_known(column.name, column.lower))
    return Cases(below)


def describe_known(name: str, number: float) -> Description:
    """Return a description of all rows that have a value of a numeric attribute, below a number or not below it."""
    return Or([Below(name, number), Not(Below(name, number))])


def require_own_codes(own: Attribute, counted: Attribute) -> None:
    """Refuse to count a table's attribute if it has more codes than the query's attribute.

    Raises
    ------
    InputError
        If the table's attribute has more codes. The sentence names the attribute and both numbers of codes.
    """
    if own.size > counted.size:
        raise InputError(
            f"a query counts {counted.size} values of '{counted.name}', but the table's attribute has {own.size}; plan "
            "the query with the table's schema"
        )


def codes_in_bins(block: Block, attribute: Attribute) -> NDArray[Any]:
    """Return an attribute's codes for a block's rows. If its bins differ from the schema's, raw values are read."""
    own = block.schema[attribute.name]
    if not isinstance(attribute, Numeric) or own == attribute:
        require_own_codes(own, attribute)
        return block.codes(attribute.name)
    values = block.values(attribute.name)
    codes = np.searchsorted(attribute.interior_cuts, values, side="right")
    return codes if attribute.missing_code is None else np.where(np.isnan(values), attribute.missing_code, codes)


def _codes(block: Block, column: Column) -> NDArray[Any]:
    """Return the number of each row's cell along one axis of a cross table, shape (rows,)."""
    if isinstance(column, Cases):
        return column.cells(block)
    if isinstance(column, Attribute):
        return codes_in_bins(block, column)
    if isinstance(column, UnitPlaces):
        return column.of(block.places_in_units())
    values, (low, _) = block.values(column.attribute), column.ends
    known = ~np.isnan(values)
    codes = np.full(block.rows, column.number, dtype=np.int64)
    codes[known] = column.of(values[known]) - low
    return codes


@final
@attrs.frozen
class Crosstab:
    """A cross table whose cells hold numbers of rows, or sums of a numeric attribute over their rows.

    A table without columns has a single cell, for all rows.

    Attributes
    ----------
    columns
        The axes.
    summed
        The steps that each row adds instead of 1. A row without a value adds nothing.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> Crosstab([Boolean("ill"), Cases([Below("age", 30), Below("age", 60)])]).shape
    (2, 3)
    """

    columns: tuple[Column, ...] = attrs.field(default=(), converter=tuple[Column, ...])
    summed: WholeSteps | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells along each axis."""
        return tuple(map(cells_of_column, self.columns))

    @property
    def cells(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes that the table reads."""
        read: list[str] = [] if self.summed is None else [self.summed.attribute]
        for column in self.columns:
            if not isinstance(column, UnitPlaces):
                read.extend((column.attribute,) if isinstance(column, WholeSteps) else attributes_of(column))
        return tuple(dict.fromkeys(read))

    def count(self, block: Block) -> NDArray[np.int64]:
        """Count a block's rows, or add up their steps, in the table's shape."""
        shape = self.shape
        cells = math.prod(shape)
        if self.summed is not None:
            values = block.values(self.summed.attribute)
            known = ~np.isnan(values)
            sums = np.zeros(cells, dtype=np.int64)
            own = self._cells(block, shape)[known] if shape else np.zeros(int(known.sum()), dtype=np.int64)
            np.add.at(sums, own, self.summed.of(values[known]))
            return sums.reshape(shape)
        if not shape:
            return np.array(block.rows, dtype=np.int64)
        # A full tile (a block of consecutive rows) has at least four times as many rows as the table has cells, so that
        # adding up the tables of tiles costs less than counting.
        tiles = block.tiles(max(TILE, 4 * cells))
        return tally((self._cells(tile, shape) for tile in tiles), cells).reshape(shape)

    def _cells(self, tile: Block, shape: Sequence[int]) -> NDArray[Any]:
        return joint_codes((_codes(tile, column) for column in self.columns), shape)


@final
@attrs.frozen(eq=False)
class JointCounts:
    """Cross tables, and the function that computes a query's counts from the counts of these tables.

    Attributes
    ----------
    tables
        The cross tables.
    assemble
        A function from the counts of all tables, each in its table's shape, to the result of the query's `count`. It
        must be linear, so that it may be applied to sums of blocks' counts.
    shown
        The attributes that the query declares. Empty if it may read any.
    """

    tables: tuple[Crosstab, ...] = attrs.field(converter=tuple[Crosstab, ...])
    assemble: Callable[[Sequence[NDArray[np.int64]]], NDArray[Any]]
    shown: frozenset[str] = frozenset()

    def count(self, block: Block) -> NDArray[Any]:
        """Return the query's counts of a block."""
        return self.assemble([table.count(block) for table in self.tables])

    def require_shown(self, attribute_sources: AttributeSources) -> None:
        """Refuse tables that read attributes other than those in `shown`.

        Parameters
        ----------
        attribute_sources
            For each derived attribute, by its name, the attributes that it depends on.

        Raises
        ------
        InputError
            If a table reads such an attribute. The sentence names the attribute.
        """
        for name in dict.fromkeys(name for table in self.tables for name in table.attributes):
            if self.shown and name not in self.shown and not attribute_sources.get(name, {name}) <= self.shown:
                raise undeclared(name)


def joint_counts_of(function: Callable[[Block], NDArray[Any]]) -> JointCounts | None:
    """Return the cross tables from which a function's counts follow, or None if the function does not state them."""
    says = getattr(function, "joint_counts", None)
    found = None if says is None else says()
    return found if isinstance(found, JointCounts) else None
