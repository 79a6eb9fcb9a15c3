"""What the checks of derived columns share: rows of all kinds, comparisons of cells, and the findings so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, Numeric
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.schema import Schema
from dpframework.tables.column_encoding import EncodedColumn
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


def same_cells(one: EncodedColumn, row: int, other: EncodedColumn, place: int) -> bool:
    """Tell whether a row of one column and the row at `place` of another have the same code and value."""
    if one.codes[row] != other.codes[place]:
        return False
    if one.values is None or other.values is None:
        return True
    return bool(np.array_equal(one.values[row : row + 1], other.values[place : place + 1], equal_nan=True))


class DerivationFindings:
    """The largest changes of histograms so far, and the first violation of each kind and column."""

    def __init__(self) -> None:
        self.violations: dict[tuple[str, str], str] = {}
        self.changes = {relation.value: 0 for relation in Relation}

    def add(self, kind: str, name: str, says: str) -> None:
        """Note a violation, if it is the first of its kind for a column (the name is empty if it concerns the rows)."""
        self.violations.setdefault((kind, name), says)

    def check_domain(self, attribute: Attribute, found: Columns) -> None:
        """Note a violation if a code or a value of a column lies outside of its public domain."""
        column = found[attribute.name]
        outside = bool((column.codes >= attribute.size).any())
        if isinstance(attribute, Numeric) and column.values is not None:
            known = column.values[~np.isnan(column.values)]
            outside = outside or bool(((known < attribute.lower) | (known > attribute.upper)).any())
        if outside:
            says = f"'{attribute.name}' is outside of its public domain, {attribute.domain_text}"
            self.add("domain", attribute.name, says)

    def check_change(self, relation: Relation, attribute: Attribute, one: Columns, other: Columns) -> None:
        """Note a violation if a column's histogram changes by more than the declared sensitivity of a histogram."""
        columns = [side[attribute.name] for side in (one, other)]
        width = max([attribute.size, *(int(column.codes.max(initial=0)) + 1 for column in columns)])
        a, b = (np.bincount(column.codes, minlength=width) for column in columns)
        change = int(np.abs(a - b).sum())
        self.changes[relation.value] = max(self.changes[relation.value], change)
        most = 1 if relation is Relation.ADD_OR_REMOVE_ONE else 2
        if change > most:
            says = f"changes by {change} under {relation}, where {most} is declared"
            self.add(relation.value, attribute.name, f"the histogram of '{attribute.name}' {says}")
