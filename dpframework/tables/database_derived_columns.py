"""Derived columns of a table of codes in a database, made from the distinct cells that they read.

A derived cell depends on the cells of its row alone. So this process derives a cell once for each distinct combination
of these cells, by the same function as in any other table. The results are joined back to the rows. No expression is
evaluated in SQL, whose functions may give other results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Numeric
from dpframework.facts.derived_columns import DerivedColumn
from dpframework.facts.schema import Schema
from dpframework.tables.column_encoding import EncodedColumn, stored_dtype
from dpframework.tables.derived_column_cells import read_cells, settle_cells
from dpframework.tables.sql_connection import SqlConnection

if TYPE_CHECKING:
    from dpframework.facts.expression_operands_and_domains import Cells


def with_derived_columns(connection: SqlConnection, table: str, schema: Schema) -> str:
    """Return the name of a temporary table that also has a schema's derived columns. It replaces the given table.

    Parameters
    ----------
    connection
        The database.
    table
        A temporary table with the codes `c0`, `c1`, ... of the columns that are not derived. For numeric columns that
        derived columns read, it also has the values `v0`, ... The number in a name is the attribute's position in the
        schema.
    schema
        The public facts about the table.

    Raises
    ------
    InputError
        If the database fails.
    """
    for column in schema.derive:
        k = schema.index(column.name)
        places = read_places(schema, column.inputs)

        def make(found: Mapping[str, Any], column: DerivedColumn = column, k: int = k) -> dict[str, NDArray[Any]]:
            cells = read_of(schema, column.inputs, found)
            return numbers_of(k, settle_cells(schema.attributes[k], column, schema.derivation_inputs, cells))

        kinds = {f"c{k}": connection.whole[stored_dtype(schema.attributes[k]).itemsize]}
        table = with_numbers(connection, table, places, make, kinds)
    return table


def with_numbers(
    connection: SqlConnection,
    table: str,
    places: Sequence[str],
    make: Callable[[Mapping[str, Any]], Mapping[str, NDArray[Any]]],
    kinds: Mapping[str, str],
) -> str:
    """Return the name of a temporary table with more columns, made from existing ones. It replaces the given table.

    Parameters
    ----------
    connection
        The database.
    table
        A temporary table.
    places
        The columns from which the new ones are made, at least one. Names of columns of real numbers begin with v, and
        a missing number is null. Names of columns of whole numbers begin with c, and no number is null.
    make
        A function that returns the new columns, given the distinct combinations of the cells of `places`.
    kinds
        The SQL types of new columns of whole numbers, by name.

    Raises
    ------
    InputError
        If the database fails.
    """
    distinct, own, whole = (connection.new_name(what) for what in ("combinations", "derived", "codes"))
    listed = ", ".join(places)
    with connection.temporary_tables(table, distinct, own):
        each = f"select distinct {listed} from {table}"
        connection.run(f"create temp table {distinct} as select {listed}, row_number() over () as k from ({each}) t")
        numbers = dict(make(connection.columns(f"select {listed} from {distinct} order by k")))
        connection.upload(own, {"k": np.arange(1, 1 + len(next(iter(numbers.values())))), **numbers})
        more = [f"cast(n.{name} as {kinds[name]}) as {name}" if name in kinds else f"n.{name}" for name in numbers]
        same = " and ".join(f"{_cell('t', place)} = {_cell('d', place)}" for place in places)
        connection.run(
            f"create temp table {whole} as select t.*, {', '.join(more)} from {table} as t join {distinct} as d on "
            f"{same} join {own} as n on n.k = d.k"
        )
    return whole


def read_places(schema: Schema, names: Sequence[str]) -> list[str]:
    """Return the names of the columns from which expressions read some attributes.

    The columns hold the values of numeric attributes, and the codes of other ones.
    """
    return [f"{'v' if isinstance(schema[name], Numeric) else 'c'}{schema.index(name)}" for name in names]


def read_of(schema: Schema, names: Sequence[str], found: Mapping[str, Any]) -> dict[str, Cells]:
    """Turn the columns named by `read_places` into cells as expressions read them, by the attributes' names."""
    places = dict(zip(names, read_places(schema, names), strict=True))
    read = {}
    for name, place in places.items():
        cells = np.ma.asarray(found[place])
        if isinstance(schema[name], Numeric):
            column = EncodedColumn(np.zeros(0, np.uint8), np.ma.filled(cells.astype(np.float64), np.nan))
        else:
            column = EncodedColumn(np.ma.filled(cells, 0).astype(np.int64), None)
        read[name] = read_cells(schema[name], column)
    return read


def numbers_of(k: int, column: EncodedColumn) -> dict[str, NDArray[Any]]:
    """Return the codes and values of the schema's attribute at position `k`, as the columns `c{k}` and `v{k}`."""
    codes: dict[str, NDArray[Any]] = {f"c{k}": column.codes.astype(np.int64)}
    return codes if column.values is None else {**codes, f"v{k}": column.values}


def _cell(table: str, place: str) -> str:
    """Return the SQL of a cell for comparisons.

    A missing real number becomes NaN, since NULL does not equal NULL. No other cell is NaN.
    """
    if not place.startswith("v"):
        return f"{table}.{place}"
    return f"coalesce({table}.{place}, cast('NaN' as double precision))"
