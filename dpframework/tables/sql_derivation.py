"""Derived columns of a table of codes in a database, made by the reader's own function of the distinct cells they read.

A derived cell follows from the cells of its row alone. So each distinct combination of these cells is derived once,
here, as in any other table, and joined back. No expression is evaluated in SQL, whose functions may differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Numeric
from dpframework.facts.schema import Schema
from dpframework.tables.derivation import derived, read_cells
from dpframework.tables.encoding import EncodedColumn, stored_dtype
from dpframework.tables.sql_connection import SqlConnection


def with_derived_columns(connection: SqlConnection, table: str, schema: Schema) -> str:
    """Return the name of a temporary table with a schema's derived columns, too; it takes the place of the given one.

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
        distinct, own, whole = (connection.new_name(what) for what in ("combinations", "derived", "codes"))
        listed = ", ".join(places.values())
        with connection.passing(table, distinct, own):
            each = f"select distinct {listed} from {table}"
            connection.run(
                f"create temp table {distinct} as select {listed}, row_number() over () as k from ({each}) t"
            )
            found = connection.columns(f"select {listed} from {distinct} order by k")
            cells = {
                schema.attributes[j].name: read_cells(schema.attributes[j], _encoded(schema, j, found[place]))
                for j, place in places.items()
            }
            made = derived(schema, column, cells)
            numbers: dict[str, NDArray[Any]] = {"code": made.codes.astype(np.int64)}
            if made.values is not None:
                numbers["value"] = made.values
            connection.upload(own, {"k": np.arange(1, 1 + len(made.codes)), **numbers})
            more = [f"cast(n.code as {connection.whole[stored_dtype(schema.attributes[k]).itemsize]}) as c{k}"]
            more += [] if made.values is None else [f"n.value as v{k}"]
            same = " and ".join(f"{_cell('t', place)} = {_cell('d', place)}" for place in places.values())
            connection.run(
                f"create temp table {whole} as select t.*, {', '.join(more)} from {table} as t join {distinct} as d on "
                f"{same} join {own} as n on n.k = d.k"
            )
        table = whole
    return table


def _cell(table: str, place: str) -> str:
    """Return a cell that equals itself if it is null, which no value does: none is NaN."""
    if not place.startswith("v"):
        return f"{table}.{place}"
    return f"coalesce({table}.{place}, cast('NaN' as double precision))"


def _encoded(schema: Schema, position: int, found: Any) -> EncodedColumn:
    cells = np.ma.asarray(found)
    if isinstance(schema.attributes[position], Numeric):
        return EncodedColumn(np.zeros(0, np.uint8), np.ma.filled(cells.astype(np.float64), np.nan))
    return EncodedColumn(np.ma.filled(cells, 0).astype(np.int64), None)
