"""Derived columns of a table of codes in DuckDB, made by the reader's own function of the distinct cells they read.

A derived cell follows from the cells of its row alone. So each distinct combination of these cells is derived once,
here, as in any other table, and joined back. No expression is evaluated in SQL, whose functions may differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpframework.facts.attributes import Numeric
from dpframework.facts.schema import Schema
from dpframework.tables.derivation import derived, read_cells
from dpframework.tables.duckdb_connection import DuckDBConnection
from dpframework.tables.duckdb_reading import CODE_TYPES
from dpframework.tables.encoding import EncodedColumn, stored_dtype


def add_derived(connection: DuckDBConnection, table: str, schema: Schema) -> None:
    """Add the codes and values of a schema's derived columns to a table.

    Parameters
    ----------
    connection
        The database.
    table
        A temporary table with the codes `c0`, `c1`, ... of the columns that a file holds, and the values `v0`, ... of
        those among them that are numbers and that derived columns read; the number is the attribute's in the schema.
    schema
        The public facts.

    Raises
    ------
    InputError
        If the database fails.
    """
    for column in schema.derive:
        read, k = [schema.index(name) for name in column.inputs], schema.index(column.name)
        places = {j: f"v{j}" if isinstance(schema.attributes[j], Numeric) else f"c{j}" for j in read}
        listed = ", ".join(places.values())
        distinct = connection.columns(f"select distinct {listed} from {table}")
        cells = {
            schema.attributes[j].name: read_cells(schema.attributes[j], _encoded(schema, j, distinct[place]))
            for j, place in places.items()
        }
        made = derived(schema, column, cells)
        found = {place: np.ma.asarray(distinct[place]) for place in places.values()}
        kind = CODE_TYPES[stored_dtype(schema.attributes[k]).itemsize]
        parts: list[tuple[str, list[Any]]] = [
            (f"unnest(?::{'DOUBLE' if place.startswith('v') else 'UINTEGER'}[]) as {place}", _values(given))
            for place, given in found.items()
        ]
        parts.append((f"unnest(?::{kind}[]) as c{k}", made.codes.tolist()))
        if made.values is not None:
            parts.append((f"unnest(?::DOUBLE[]) as v{k}", [None if np.isnan(x) else x for x in made.values.tolist()]))
        name, whole = connection.new_name("derived"), connection.new_name("codes")
        try:
            connection.run(
                f"create temp table {name} as select {', '.join(part for part, _ in parts)}", [own for _, own in parts]
            )
            same = " and ".join(f"t.{place} is not distinct from d.{place}" for place in places.values())
            more = f"d.c{k}" + ("" if made.values is None else f", d.v{k}")
            joined = f"select t.*, {more} from {table} as t left join {name} as d on {same}"
            connection.run(f"create temp table {whole} as {joined}")
            connection.run(f"drop table {table}")
            connection.run(f"alter table {whole} rename to {table}")
        finally:
            connection.run(f"drop table if exists {name}")


def _encoded(schema: Schema, position: int, found: Any) -> EncodedColumn:
    if isinstance(schema.attributes[position], Numeric):
        return EncodedColumn(np.zeros(0, np.uint8), np.ma.filled(np.ma.asarray(found, dtype=np.float64), np.nan))
    return EncodedColumn(np.ma.filled(np.ma.asarray(found), 0), None)


def _values(found: Any) -> list[Any]:
    return list(np.ma.asarray(found).tolist())
