"""Encode the rows of a database. The distinct cells are encoded by the same functions as the cells of other tables.

A cell's code depends on the cell alone. So each distinct cell is encoded once, in this process, as in any other table.
The codes are joined back to the rows by the cells' bytes. There are two exceptions. A numeric attribute that is
stored as numbers is put into bins in SQL (see `sql_bins`), if the schema neither reads it as dates nor lists texts that
stand for a missing value. A column of booleans needs no search for distinct cells, unless `OutOfDomain.ERROR` is set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, Numeric
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.hidden_fields import hide_fields
from dpframework.facts.schema import Schema
from dpframework.tables.cell_notation_reader import read_cells
from dpframework.tables.column_encoding import Unfit, cells_of, settle, stored_dtype, unfit
from dpframework.tables.sql_bins import bin_of
from dpframework.tables.sql_cell_conversion import CellKind, ColumnType
from dpframework.tables.sql_connection import SqlConnection, double


@final
@attrs.frozen
class SqlSource:
    """Queries of some rows. Their columns are a0, a1, ..., one for each attribute that is not derived, and a few more.

    Column `ak` holds the attribute at position k of the schema. If needed, other columns follow, such as `place`, which
    numbers the rows in the table's order.

    Attributes
    ----------
    every
        The query of all rows of the source.
    kept
        The query of the rows that the table keeps, with `place` and `unit` where they are known.
    """

    every: str
    kept: str


@final
@attrs.frozen
class CodeExpressions:
    """The SQL expressions that encode one column of a source.

    Attributes
    ----------
    code
        The expression of a row's code.
    value
        The expression of a row's value, null where the value is missing. None if values are not kept.
    joined
        The clause that joins a table of codes. Empty if there is none.
    unfit
        The ways in which some cells lie outside the schema.
    """

    code: str
    value: str | None
    joined: str = ""
    unfit: frozenset[Unfit] = frozenset()


@final
class SourceEncoder:
    """Encodes the columns of one source of rows, which is a file or a query.

    Parameters
    ----------
    connection
        The database.
    source
        The queries of the rows.
    schema, policy, values
        As for `read_table`.
    beside
        The columns that are copied unchanged.
    """

    def __init__(
        self,
        connection: SqlConnection,
        source: SqlSource,
        schema: Schema,
        policy: OutOfDomain,
        values: frozenset[str],
        beside: Sequence[str],
    ) -> None:
        self._connection, self._source, self._schema = connection, source, schema
        self._policy, self._values, self._beside = policy, values, beside
        # A policy that refuses cells must look at the kept rows only. Under another policy, cells of rows that are not
        # kept do no harm.
        self._looked_at = source.kept if policy is OutOfDomain.ERROR else source.every
        self._maps: list[str] = []

    def encode(self) -> tuple[str, tuple[frozenset[Unfit], ...]]:
        """Return the query of all codes and values, and for each attribute the ways in which some cells do not fit.

        Raises
        ------
        InputError
            If the source cannot be read.
        """
        places = [self._schema.index(name) for name in self._schema.column_names]
        types = self._connection.types(f"select {', '.join(f'a{k}' for k in places)} from ({self._source.every}) as s")
        columns = {
            k: self._column(k, attribute, kind)
            for k, attribute, kind in zip(places, self._schema.columns, types, strict=True)
        }
        listed = []
        for k, one in columns.items():
            kind = self._connection.whole[stored_dtype(self._schema.attributes[k]).itemsize]
            listed.append(f"cast({one.code} as {kind}) as c{k}")
            if one.value is not None:
                listed.append(f"{one.value} as v{k}")
        listed += [f"s.{name}" for name in self._beside]
        joined = " ".join(one.joined for one in columns.values() if one.joined)
        query = f"select {', '.join(listed)} from ({self._source.kept}) as s {joined}"
        none = frozenset[Unfit]()
        return query, tuple(columns[k].unfit if k in columns else none for k in range(len(self._schema)))

    def forget(self) -> None:
        """Drop the temporary tables that map cells to codes."""
        for name in self._maps:
            self._connection.drop(name)

    def _column(self, k: int, attribute: Attribute, kind: ColumnType) -> CodeExpressions:
        options, column = self._schema.read.of_column(attribute.name), f"s.a{k}"
        stored = kind.kind in (CellKind.WHOLE, CellKind.REAL)
        if isinstance(attribute, Numeric) and stored and not (options.null or options.is_date):
            return self._numbers(attribute, column, kind)
        plain = kind.plain(dates=options.is_date)
        if options.is_date:
            plain.require_served(f"column '{attribute.name}'")
        return self._look_up(attribute, column, plain)

    def _numbers(self, attribute: Numeric, column: str, kind: ColumnType) -> CodeExpressions:
        """Return the expressions for numbers that are stored as numbers, clamped and put into bins in SQL."""
        number = f"(cast({column} as double precision) + 0.0e0)"
        known = f"{column} is not null"
        if kind.kind is CellKind.REAL:
            known = f"({known} and not {self._connection.nan.format(number)})"
        lower, upper = float(attribute.lower), float(attribute.upper)
        low, high = double(lower), double(upper)
        beyond = f"({number} < {low} or {number} > {high})"
        there = f"({known} and not {beyond})" if self._policy is OutOfDomain.MISSING else known
        clamped = f"(case when {number} < {low} then {low} when {number} > {high} then {high} else {number} end)"
        gone = 0 if attribute.missing_code is None else attribute.missing_code
        code = f"case when {there} then {bin_of(number, lower, upper, attribute.interior_cuts)} else {gone} end"
        lost = low if attribute.missing_code is None else "null"
        value = f"case when {there} then {clamped} else {lost} end" if attribute.name in self._values else None
        ways: set[Unfit] = set()
        if self._policy is OutOfDomain.ERROR:
            asked = f"select bool_or({known} and {beyond}), bool_or(not {known}) from ({self._looked_at}) as s"
            ((beyond_there, missing),) = self._connection.rows(asked)
            ways |= {Unfit.BEYOND} if beyond_there else set()
            ways |= {Unfit.MISSING} if missing and attribute.missing_code is None else set()
        return CodeExpressions(code, value, unfit=frozenset(ways))

    def _look_up(self, attribute: Attribute, column: str, kind: ColumnType) -> CodeExpressions:
        """Return the expressions that look up cells in a table of the distinct cells, which this process encodes."""
        options, cell = self._schema.read.of_column(attribute.name), kind.cell(column)
        if kind.kind is CellKind.TRUTH and self._policy is not OutOfDomain.ERROR:
            return self._truths(attribute, column, kind)
        found = CellNumbers.of(self._connection, self._looked_at, cell, kind)
        read = [cells_of(attribute, read_cells(attribute, options, one, "a column")) for one in found.columns]
        there, missing = (settle(attribute, one, self._policy) for one in read)
        ways = frozenset[Unfit]()
        if self._policy is OutOfDomain.ERROR:
            ways = unfit(attribute, read[0])
            ((null,),) = self._connection.rows(f"select bool_or({cell} is null) from ({self._looked_at}) as s")
            ways |= unfit(attribute, read[1]) if null else frozenset()
        numbers: dict[str, NDArray[Any]] = {"code": there.codes.astype(np.int64)}
        kept = there.values is not None and attribute.name in self._values
        if there.values is not None and kept:
            numbers["value"] = there.values
        name = found.to_table(numbers)
        self._maps.append(name)
        joined, seen = "", self._connection.lookups(name, list(numbers), len(there.codes), cell)
        if seen is None:
            joined, seen = f"left join {name} on {cell} = {name}.cell", {key: f"{name}.{key}" for key in numbers}
        code = f"case when {cell} is null then {int(missing.codes[0])} else {seen['code']} end"
        value = None
        if kept and missing.values is not None:
            value = f"case when {cell} is null then {_write(missing.values[0])} else {seen['value']} end"
        return CodeExpressions(code, value, joined, ways)

    def _truths(self, attribute: Attribute, column: str, kind: ColumnType) -> CodeExpressions:
        """Return the expressions for a column of booleans. No distinct cells are needed, since no cell is refused."""
        options = self._schema.read.of_column(attribute.name)
        given = (kind.values([True, False]), kind.missing())
        read = [cells_of(attribute, read_cells(attribute, options, one, "a column")) for one in given]
        there, missing = (settle(attribute, one, self._policy) for one in read)

        def choose(true: object, false: object, null: object) -> str:
            return f"case when {column} is null then {null} when {column} then {true} else {false} end"

        code, value = choose(int(there.codes[0]), int(there.codes[1]), int(missing.codes[0])), None
        if there.values is not None and missing.values is not None and attribute.name in self._values:
            value = choose(*(_write(one) for one in (there.values[0], there.values[1], missing.values[0])))
        return CodeExpressions(code, value)


@final
@attrs.frozen(eq=False, repr=False, field_transformer=hide_fields)
class CellNumbers:
    """The distinct cells of a column, numbered in a temporary table and read into this process.

    Attributes
    ----------
    connection
        The database.
    table
        The name of the temporary table. Its columns are `cell` and `k`, the number of the cell, from 1.
    columns
        A column of the cells in the order of their numbers, and a column of one missing cell.
    """

    connection: SqlConnection
    table: str
    columns: tuple[object, object]

    @classmethod
    def of(cls, connection: SqlConnection, source: str, cell: str, kind: ColumnType) -> CellNumbers:
        """Find the distinct cells of a source's rows."""
        name = connection.new_name("cells")
        each = f"select distinct {cell} as cell from ({source}) as s where {cell} is not null"
        connection.run(f"create temp table {name} as select cell, row_number() over () as k from ({each}) as t")
        found = [one for (one,) in connection.rows(f"select {kind.selection('cell')} from {name} order by k")]
        return cls(connection, name, (kind.values(found), kind.missing()))

    def to_table(self, numbers: Mapping[str, NDArray[Any]]) -> str:
        """Return the name of a table that maps each `cell` to the given numbers, and drop the table of cells."""
        connection, own, name = self.connection, self.connection.new_name("codes"), self.connection.new_name("map")
        with connection.temporary_tables(self.table, own):
            connection.upload(own, {"k": np.arange(1, 1 + len(next(iter(numbers.values())))), **numbers})
            listed = ", ".join(["d.cell", *(f"n.{key}" for key in numbers)])
            connection.run(f"create temp table {name} as select {listed} from {self.table} d join {own} n on d.k = n.k")
            connection.analyze(name)
        return name


def _write(number: float) -> str:
    """Return a value, which may be missing, as an SQL expression."""
    return "null" if np.isnan(number) else double(float(number))


def needed_values(schema: Schema, values: frozenset[str] | None) -> frozenset[str]:
    """Return the names of the numeric attributes whose values are needed.

    These are the attributes in `values`, or all if it is None, and those that derived columns read.
    """
    read = {name for column in schema.derive for name in column.inputs}
    kept = set(schema.names) if values is None else read.union(values)
    return frozenset(a.name for a in schema if isinstance(a, Numeric) and a.name in kept)
