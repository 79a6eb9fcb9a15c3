"""A table in a database with one row for each unit, made from all rows of the unit, with the same results as in memory.

This process makes the cells that an aggregate reads in a row, and the column of the aggregate's results. It makes them
from the distinct cells, as it does for all derived columns. In between, the database only counts, compares whole
numbers and doubles, and adds doubles in the order of the rows. The results of these operations are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.derived_columns import DerivedColumn
from dpframework.facts.expression_operands_and_domains import Numbers, Operand, domain_of
from dpframework.facts.schema import Schema
from dpframework.facts.schema_with_derived_columns import UnitRows
from dpframework.facts.unit_aggregates import AGGREGATED, aggregate, row_parts
from dpframework.tables.column_encoding import stored_dtype
from dpframework.tables.database_derived_columns import numbers_of, read_of, read_places, with_numbers
from dpframework.tables.derived_column_cells import settle_cells
from dpframework.tables.sql_connection import SqlConnection

_REAL = "cast({} as double precision)"
_TRUTHS = {"any": "max({0})", "all": "coalesce(min({0}) filter (where {0} >= 0), -1)"}


def table_of_units(connection: SqlConnection, table: str, rows: UnitRows, schema: Schema) -> str:
    """Return the name of a new temporary table with one row for each unit. The given table is dropped.

    Parameters
    ----------
    connection
        The database.
    table
        A temporary table with the codes and values of all rows, encoded by the schema of `rows`, as from
        `with_derived_columns`. It also has the `place` of each row and the number of its `unit`.
    rows
        The schema of the rows, and the aggregates that turn all rows of a unit into one.
    schema
        The schema of the table with one row for each unit. Columns that are derived from that row are not made here.

    Raises
    ------
    InputError
        If the database fails.
    """
    domains = {name: domain_of(*read) for name, read in rows.schema.derivation_inputs.items()}
    # For each column: its aggregate, the name of its result, and the names of the parts that it reads. The names of
    # numbers begin with "v", and those of codes with "c".
    made: list[tuple[str, str, list[str]]] = []
    for j, column in enumerate(rows.columns):
        found = aggregate(column.value)
        parts = row_parts(found, domains)
        names = [f"{'v' if isinstance(part.domain, Numbers) else 'c'}part{j}_{i}" for i, part in enumerate(parts)]
        if parts:
            table = _with_parts(connection, table, rows.schema, column, dict(zip(names, parts, strict=True)))
        whole = found.name not in ("count", "sum") and names[0].startswith("c")
        made.append((found.name, f"{'c' if whole else 'v'}result{j}", names))
    grouped, joined, selected = list[str](), list[str](), list[str]()
    for name, result, names in made:
        if name not in ("first", "last", "mode"):
            grouped.append(f"{_group(name, names)} as {result}")
            selected.append(f"u.{result}")
            continue
        ranked = _rank(table, name, names)
        own = f"of_{result}"
        joined.append(f"left join (select unit, x from ({ranked}) as t where n = 1) as {own} on {own}.unit = u.unit")
        selected.append(f"{f'coalesce({own}.x, -1)' if result.startswith('c') else f'{own}.x'} as {result}")
    units = connection.new_name("units")
    each = f"select {', '.join(['unit', 'min(place) as place', *grouped])} from {table} group by unit"
    listed = ", ".join(["u.place", "u.place as unit", *selected])
    with connection.temporary_tables(table):
        connection.run(f"create temp table {units} as select {listed} from ({each}) as u {' '.join(joined)}")
    for (_, result, _), column in zip(made, rows.columns, strict=True):
        units = _with_column(connection, units, result, column, rows, schema)
    return units


def _with_parts(
    connection: SqlConnection, table: str, schema: Schema, column: DerivedColumn, parts: Mapping[str, Operand]
) -> str:
    """Return the name of a table that also has the cells that an aggregate reads in each row.

    In these cells, -1 marks a missing label or boolean.
    """

    def make(found: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        length = len(next(iter(found.values())))
        with np.errstate(all="ignore"):
            cells = read_of(schema, column.inputs, found)
            each = {name: np.broadcast_to(part.cells(cells), (length,)) for name, part in parts.items()}
        return {name: one + 0.0 if one.dtype == np.float64 else one.astype(np.int64) for name, one in each.items()}

    places = read_places(schema, column.inputs) or read_places(schema, schema.column_names[:1])
    return with_numbers(connection, table, places, make, {})


def _group(name: str, parts: Sequence[str]) -> str:
    """Return the SQL expression of an aggregate over a unit's rows, for all but `first`, `last` and `mode`."""
    if name == "count":
        return _REAL.format(f"count(*) filter (where {parts[0]} = 1)" if parts else "count(*)")
    if name in _TRUTHS:
        return _TRUTHS[name].format(parts[0])
    # A sum of doubles depends on their order, so they are added in the order of the rows, as in memory.
    return f"sum({parts[0]} order by place)" if name == "sum" else f"{name}({parts[0]})"


def _rank(table: str, name: str, parts: Sequence[str]) -> str:
    """Return an SQL query that numbers each unit's known cells. The cell with number 1 is the aggregate's result.

    For `mode`, distinct codes are numbered, the most frequent code first. Of equally frequent codes, the smallest comes
    first.
    """
    known = " and ".join(f"{part} is not null" if part.startswith("v") else f"{part} >= 0" for part in parts)
    if name == "mode":
        order, grouped = f"count(*) desc, {parts[0]}", f" group by unit, {parts[0]}"
    else:
        order, grouped = ", ".join(f"{one}{' desc' if name == 'last' else ''}" for one in (*parts[1:], "place")), ""
    number = f"row_number() over (partition by unit order by {order})"
    return f"select unit, {parts[0]} as x, {number} as n from {table} where {known}{grouped}"


def _with_column(
    connection: SqlConnection, table: str, result: str, column: DerivedColumn, rows: UnitRows, schema: Schema
) -> str:
    """Return the name of a table that also has the codes and values of a column, made from an aggregate's results."""
    k = schema.index(column.name)
    attribute = schema.attributes[k]

    def make(found: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        cells = np.ma.asarray(found[result])
        own = np.ma.filled(cells.astype(np.float64), np.nan)
        given = own if result.startswith("v") else own.astype(np.int32)
        return numbers_of(k, settle_cells(attribute, column, rows.schema.derivation_inputs, {AGGREGATED: given}))

    return with_numbers(
        connection, table, [result], make, {f"c{k}": connection.whole[stored_dtype(attribute).itemsize]}
    )
