"""Bounding: one unit more must add at most its k rows to a table, and change no other row.

A claim about units is about tables that differ by up to k rows. It carries over to the data only if neighbouring data
gives such tables: of each unit at most k rows are kept, and which they are follows from what the unit has alone.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, final

import attrs
import numpy as np

from dpframework.facts.schema import Schema
from dpframework.facts.unit import PrivacyUnit
from dpframework.tables.reading import table_from_columns
from dpframework.tables.table import Table
from dpframework.verify.reading import TablesReport
from dpframework.verify.tables import Universe

#: Reads columns of cells, ids among them, for a unit; what rows are chosen by is given, so that it is the same twice.
BoundedReader: TypeAlias = Callable[[Mapping[str, Sequence[Any]], Schema, PrivacyUnit, bytes], Table]

PEOPLE = 7
MOST_ROWS = 9  # of a person
MISSING = 0.1  # of the ids


def bounded_columns(columns: Mapping[str, Sequence[Any]], schema: Schema, unit: PrivacyUnit, key: bytes) -> Table:
    """Read columns as dpframework does."""
    return table_from_columns(columns, schema, unit=unit, key=key)


@final
@attrs.frozen
class BoundingReport(TablesReport):
    """What each person more changed of the rows that others keep.

    Attributes
    ----------
    unit
        Whom the tables were read for.
    """

    unit: PrivacyUnit

    def __str__(self) -> str:
        """Write one line, or one a violation."""
        return "\n".join(self.violations) or f"{self.unit}: each keeps its own rows, on {self.tables} tables"


def check_bounding(
    schema: Schema, unit: PrivacyUnit, *, read: BoundedReader = bounded_columns, tables: int = 12, seed: int = 0
) -> BoundingReport:
    """Read made-up tables of people with 1 to 9 rows each, and each of them again without each of the people.

    Parameters
    ----------
    schema
        What the tables are of.
    unit
        Whom they are read for, by its id.
    read
        What is tested; by default dpframework's own reading.
    tables
        How many tables.
    seed
        Of the tables.
    """
    rng, universe = np.random.default_rng(seed), Universe(schema)
    wrong: dict[str, str] = {}
    for number in range(tables):
        columns = _people(universe, str(unit.id), rng)
        key, ids = rng.bytes(32), columns[str(unit.id)]
        whole = _rows(read(columns, schema, unit, key))
        for person in dict.fromkeys(ids):
            others = [k for k, whose in enumerate(ids) if whose != person]
            without = {name: [cells[k] for k in others] for name, cells in columns.items()}
            left = _rows(read(without, schema, unit, key))
            added, gone = (whole - left).total(), (left - whole).total()
            who = "rows without an id" if person is None else f"a person with {len(ids) - len(others)} rows"
            most = 0 if person is None else min(unit.rows, len(ids) - len(others))
            if gone:
                wrong.setdefault("gone", f"table {number}: {who} more changes which rows others keep")
            elif added > most:
                wrong.setdefault("added", f"table {number}: {who} more adds {added} rows, and may add {most}")
    return BoundingReport(tables, tuple(wrong.values()), unit)


def _people(universe: Universe, id_column: str, rng: np.random.Generator) -> dict[str, list[Any]]:
    """Return columns of people's rows, in any order, some without an id."""
    whose = np.repeat(np.arange(PEOPLE), rng.integers(1, MOST_ROWS + 1, PEOPLE))
    rng.shuffle(whose)
    ids = [None if rng.random() < MISSING else f"person {k}" for k in whose]
    rows = rng.integers(0, universe.kinds, len(ids))
    table = universe.table(bytes(rows.tolist()))
    columns: dict[str, list[Any]] = {id_column: ids}
    for attribute, codes in zip(universe.schema, table.columns, strict=True):
        values = table.values.get(attribute.name)
        columns[attribute.name] = (
            [attribute.labels[code] if code != attribute.missing_code else None for code in codes]
            if values is None
            else [None if np.isnan(value) else float(value) for value in values]
        )
    return columns


def _rows(table: Table) -> collections.Counter[bytes]:
    """Return the rows of a table, without regard to their order."""
    return collections.Counter(row.tobytes() for row in np.ascontiguousarray(table.codes.T))
