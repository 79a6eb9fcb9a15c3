"""Handles of small made-up tables, with the units of their rows, and an engine that counts their rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence, Sized
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import Cases
from dpframework.facts.row_partitions import Cut, number_of_parts
from dpframework.tables.coded_table import Table
from dpframework.tables.encoded_row_blocks import Block, cells_of
from dpframework.tables.engine_base import Engine
from dpframework.verify.tables.neighbours import Rows, Universe


def units_of(rows: Any, together: int) -> list[Any]:
    """Return the rows of each unit of a small table. Each `together` rows, counted from the table's end, are a unit.

    The first unit may have fewer rows. Two neighbours differ in the rows at their ends. So these rows are one unit, and
    all other units are the same on both tables.
    """
    first = len(rows) % together
    units = [rows[k : k + together] for k in range(first, len(rows), together)]
    return [rows[:first], *units] if first else units


@final
class RowsHandle:
    """A handle of rows, and of their derived attributes, on the small-table engine.

    Attributes
    ----------
    rows
        The kinds of the rows.
    derived
        The attributes that were derived, each with its cases: the descriptions that define its values.
    number
        The number of the handle in a transcript.
    units
        The number of each row's unit, if a plan samples or counts units of several rows. None if each row is a unit.
    places
        The place of each row within its unit in the whole table. None if each row is a unit.
    """

    __slots__ = ("_block", "derived", "number", "places", "rows", "units")

    def __init__(
        self,
        rows: Rows,
        derived: tuple[tuple[Attribute, Cases], ...],
        number: int,
        units: NDArray[np.int64] | None = None,
        places: NDArray[np.int64] | None = None,
    ) -> None:
        self.rows, self.derived, self.number, self.units, self.places = rows, derived, number, units, places
        self._block: Block | None = None

    @property
    def key(self) -> Any:
        """The rows and units that a release depends on, as a value that can be hashed.

        This value holds only the number of derived attributes, since their values follow from the rows.
        """
        key = (self.rows, len(self.derived)) if self.derived else self.rows
        if self.units is None or self.places is None:
            return key
        return key, self.units.tobytes(), self.places.tobytes()

    def only(self, chosen: NDArray[np.bool_]) -> RowsHandle:
        """Return a handle of the rows for which `chosen` is true."""
        kinds = np.frombuffer(self.rows, dtype=np.uint8)
        units, places = (None if own is None else own[chosen] for own in (self.units, self.places))
        return RowsHandle(kinds[chosen].tobytes(), self.derived, 0, units, places)

    def block(self, universe: Universe) -> Block:
        """Return the rows as a block, which is made once."""
        if self._block is None:
            block = universe.block(self.rows, self.units, self.places)
            for attribute, cases in self.derived:
                block = block.with_derived(attribute, cases)
            self._block = block
        return self._block


def with_units(rows: Rows, units: Sequence[Sized], derived: tuple[tuple[Attribute, Cases], ...]) -> RowsHandle:
    """Return a handle of rows that are sorted by their units, and within a unit by their places."""
    return RowsHandle(rows, derived, 0, *_units_and_places([len(unit) for unit in units]))


def _units_and_places(sizes: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of each row's unit, and the row's place in it, for units of these sizes."""
    each = np.asarray(sizes, dtype=np.int64)
    numbers = np.repeat(np.arange(len(each)), each)
    return numbers, np.arange(len(numbers)) - np.repeat(np.cumsum(each) - each, each)


@functools.lru_cache(maxsize=16)
def _of_equal_units(rows: int, together: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the units and places of `rows` rows in units of `together` rows. They are cached by these numbers."""
    return _units_and_places([len(unit) for unit in units_of(range(rows), together)])


@final
class SmallTables(Engine):
    """An engine for tables of a `Universe`, in which a unit has `together` rows.

    Its handles have a key by which answers can be cached.
    """

    name = "small-tables"

    def __init__(self, universe: Universe, together: int = 1) -> None:
        self.universe, self.together = universe, together

    def load(self, table: Table) -> RowsHandle:
        """Refuse every table, since small tables are made by the universe.

        Raises
        ------
        InputError
            Always.
        """
        raise InputError("the small-table engine holds tables of its universe only; use hold(rows)")

    def hold(self, rows: Rows, derived: tuple[tuple[Attribute, Cases], ...] = ()) -> RowsHandle:
        """Return a handle of a whole table, with derived attributes.

        If units have several rows, `units_of` tells the unit of each row.
        """
        if self.together == 1:
            return RowsHandle(rows, derived, 0)
        return RowsHandle(rows, derived, 0, *_of_equal_units(len(rows), self.together))

    def map(self, rows: RowsHandle, function: Callable[[Block], Any]) -> list[Any]:
        """Evaluate the function on the rows, which are one block."""
        return [function(rows.block(self.universe))]

    def split(self, rows: RowsHandle, by: Cut) -> list[RowsHandle]:
        """See `Engine`."""
        cells = cells_of(by, rows.block(self.universe))
        return [rows.only(cells == k) for k in range(number_of_parts(by))]

    def sample(self, rows: RowsHandle, drawn: Callable[[int], NDArray[np.bool_]]) -> RowsHandle:
        """See `Engine`."""
        return rows.only(drawn(len(rows.rows)))

    def sample_units(self, rows: RowsHandle, drawn: Callable[[int], NDArray[np.bool_]]) -> RowsHandle:
        """See `Engine`."""
        units = [] if rows.units is None else rows.units.tolist()
        present = dict.fromkeys(units)
        kept = dict(zip(present, drawn(len(present)).tolist(), strict=True))
        return rows.only(np.array([kept[unit] for unit in units], dtype=bool))

    def derive(self, rows: RowsHandle, attribute: Attribute, cases: Cases) -> RowsHandle:
        """See `Engine`."""
        return RowsHandle(rows.rows, (*rows.derived, (attribute, cases)), 0, rows.units, rows.places)
