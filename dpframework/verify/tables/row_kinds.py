"""Rows of all kinds that a schema allows, as codes and values, and comparisons of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, Numeric
from dpframework.facts.schema import Schema
from dpframework.tables.encoding import EncodedColumn
from dpframework.verify.tables.neighbours import Universe

Columns: TypeAlias = Mapping[str, EncodedColumn]
"""Encoded columns of rows, by name."""


@final
class RowKinds:
    """The kinds of rows that files may hold: all if they are few, else a sample with the ends of all domains.

    Attributes
    ----------
    number
        How many kinds of rows there are.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = Schema(schema.columns, read=schema.read)
        universe = Universe(self._schema)
        self._table, self.number = universe.table(bytes(range(universe.kinds))), universe.kinds

    def columns(self, kinds: NDArray[np.intp]) -> Columns:
        """Return the columns of rows of the given kinds."""
        values = self._table.values
        return {
            a.name: EncodedColumn(self._table.columns[k][kinds], values[a.name][kinds] if a.name in values else None)
            for k, a in enumerate(self._schema)
        }


def some_rows(columns: Columns, rows: slice) -> Columns:
    """Return a slice of the rows of columns. The schema must list each column's values (no open attributes)."""
    return {
        name: EncodedColumn(column.codes[rows], None if column.values is None else column.values[rows])
        for name, column in columns.items()
    }


def outside_of_domain(attribute: Attribute, column: EncodedColumn) -> bool:
    """Tell whether some code or value lies outside an attribute's domain."""
    outside = bool((column.codes >= attribute.size).any())
    if isinstance(attribute, Numeric) and column.values is not None:
        known = column.values[~np.isnan(column.values)]
        outside = outside or bool(((known < attribute.lower) | (known > attribute.upper)).any())
    return outside


def histogram_change(attribute: Attribute, one: EncodedColumn, other: EncodedColumn) -> int:
    """Return the sum of the absolute changes of a histogram from one column to another."""
    counts = [np.bincount(column.codes, minlength=attribute.size) for column in (one, other)]
    width = max(map(len, counts))
    a, b = (np.pad(count, (0, width - len(count))) for count in counts)
    return int(np.abs(a - b).sum())


def same_cells(one: EncodedColumn, row: int, other: EncodedColumn, place: int) -> bool:
    """Tell whether a row of one column and the row at `place` of another have the same code and value."""
    if one.codes[row] != other.codes[place]:
        return False
    if one.values is None or other.values is None:
        return True
    return bool(np.array_equal(one.values[row : row + 1], other.values[place : place + 1], equal_nan=True))
