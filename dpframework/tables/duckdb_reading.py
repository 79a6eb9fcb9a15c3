"""Canonical codes of a table that DuckDB reads, by the reader's own functions on the distinct cells.

A cell's code follows from the cell alone. So each distinct cell is encoded once, here, as in any other table, and the
codes are joined back by the cells' bytes. Only numbers that are stored as numbers are encoded in SQL, by comparisons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np

from dpframework.facts.attributes import Attribute, Numeric
from dpframework.facts.column_options import ColumnOptions
from dpframework.facts.errors import InputError
from dpframework.facts.policies import OutOfDomain
from dpframework.facts.schema import Schema
from dpframework.tables.encoding import Unfit, cells_of, settled, stored_dtype, unfit
from dpframework.tables.written_cells import read_cells

if TYPE_CHECKING:
    import polars as pl

    from dpframework.tables.duckdb_connection import DuckDBConnection

_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_REAL = {"FLOAT", "DOUBLE"}
#: The type of codes, by the bytes of each.
CODE_TYPES = {1: "UTINYINT", 2: "USMALLINT", 4: "UINTEGER", 8: "UBIGINT"}


def quoted(name: str) -> str:
    """Return a name as SQL writes one."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Return a text as SQL writes one."""
    return "'" + value.replace("'", "''") + "'"


@final
@attrs.frozen
class CodeExpressions:
    """The expressions by which one column of a source is encoded.

    Attributes
    ----------
    code
        The code of a row.
    value
        The value of a row, if it is kept; null where missing.
    joined
        The table to join, and by which condition; empty if there is none.
    unfit
        In which ways some cells are none that the schema holds.
    """

    code: str
    value: str | None
    joined: str = ""
    unfit: frozenset[Unfit] = frozenset()


@final
class SourceEncoder:
    """Encodes the columns of one source of rows, a file or a query.

    Parameters
    ----------
    connection
        The database.
    source
        A query of all columns.
    schema, policy, values
        As for `read_table`.
    """

    def __init__(
        self, connection: DuckDBConnection, source: str, schema: Schema, policy: OutOfDomain, values: frozenset[str]
    ) -> None:
        self._connection, self._source, self._schema = connection, source, schema
        self._policy, self._values = policy, values
        self._maps: list[str] = []

    def encoded(self) -> tuple[str, tuple[frozenset[Unfit], ...]]:
        """Return the query of all codes and values, and in which ways some cells do not fit.

        Raises
        ------
        InputError
            If the source cannot be read.
        """
        asked = ", ".join(quoted(name) for name in self._schema.column_names)
        described = self._connection.rows(f"describe select {asked} from ({self._source})")
        types = {str(row[0]): str(row[1]) for row in described}
        columns = {
            self._schema.index(attribute.name): self._column(k, attribute, types[attribute.name])
            for k, attribute in enumerate(self._schema.columns)
        }
        listed = []
        for k, one in columns.items():
            attribute = self._schema.attributes[k]
            kind = CODE_TYPES[stored_dtype(attribute).itemsize]
            listed.append(f"cast({one.code} as {kind}) as c{k}")
            if one.value is not None:
                listed.append(f"{one.value} as v{k}")
        joined = " ".join(one.joined for one in columns.values() if one.joined)
        return f"select {', '.join(listed)} from ({self._source}) as s {joined}", tuple(
            columns[k].unfit if k in columns else frozenset() for k in range(len(self._schema))
        )

    def forget(self) -> None:
        """Drop the tables of distinct cells."""
        for name in self._maps:
            self._connection.run(f"drop table if exists {name}")

    def _column(self, k: int, attribute: Attribute, kind: str) -> CodeExpressions:
        column = f"s.{quoted(attribute.name)}"
        written = self._schema.read.of_column(attribute.name) != ColumnOptions()
        if isinstance(attribute, Numeric) and kind in _WHOLE | _REAL and not written:
            return self._numbers(attribute, column, real=kind in _REAL)
        if kind == "BOOLEAN" or kind in _WHOLE | _REAL:
            return self._looked_up(k, attribute, column, kind)
        if kind == "VARCHAR" or kind.startswith(("DECIMAL", "ENUM")) or kind in {"HUGEINT", "UHUGEINT", "UUID"}:
            # a file's texts have no collation, which might take two for one
            return self._looked_up(k, attribute, f"cast({column} as varchar)", "VARCHAR")
        if written:
            raise InputError(
                f"column '{attribute.name}' is stored as {kind}, and [read] says how its texts or numbers are written; "
                "engine 'duckdb' does not read it so; use engine 'memory' or 'mapped'"
            )
        # what is neither text nor number is outside of every domain; whether there is a cell is all that is asked
        return self._looked_up(k, attribute, f"({column} is not null)", "FOREIGN")

    def _numbers(self, attribute: Numeric, column: str, *, real: bool) -> CodeExpressions:
        """Return numbers that are stored as such, clamped and counted into bins by comparisons of doubles."""
        number = f"(cast({column} as double) + 0.0e0)"
        known = f"coalesce(not isnan({number}), false)" if real else f"({column} is not null)"
        low, high = (f"cast({text(repr(float(end)))} as double)" for end in (attribute.lower, attribute.upper))
        beyond = f"({number} < {low} or {number} > {high})"
        there = f"({known} and not {beyond})" if self._policy is OutOfDomain.MISSING else known
        clamped = f"(case when {number} < {low} then {low} when {number} > {high} then {high} else {number} end)"
        bins = _bins(number, attribute.interior_cuts, 0)
        gone = 0 if attribute.missing_code is None else attribute.missing_code
        code = f"case when {there} then {bins} else {gone} end"
        lost = low if attribute.missing_code is None else "null"
        value = f"case when {there} then {clamped} else {lost} end" if attribute.name in self._values else None
        ways: set[Unfit] = set()
        if self._policy is OutOfDomain.ERROR:
            asked = f"select bool_or({known} and {beyond}), bool_or(not {known}) from ({self._source}) as s"
            ((beyond_there, missing),) = self._connection.rows(asked)
            ways |= {Unfit.BEYOND} if beyond_there else set()
            ways |= {Unfit.MISSING} if missing and attribute.missing_code is None else set()
        return CodeExpressions(code, value, unfit=frozenset(ways))

    def _looked_up(self, k: int, attribute: Attribute, cell: str, kind: str) -> CodeExpressions:
        """Return cells by their place among the distinct ones, which the reader encodes."""
        asked = f"select distinct {cell} from ({self._source}) as s"
        distinct = [row[0] for row in self._connection.rows(asked)]
        written = self._schema.read.of_column(attribute.name)
        cells = cells_of(attribute, read_cells(attribute, written, _series(distinct, kind), "a column"))
        ways = unfit(attribute, cells) if self._policy is OutOfDomain.ERROR else frozenset()
        column, name = settled(attribute, cells, self._policy), self._connection.new_name("cells")
        stored = "BOOLEAN" if kind == "FOREIGN" else kind
        parts = [(f"unnest(?::{stored}[]) as cell", distinct), ("unnest(?::UINTEGER[]) as code", column.codes.tolist())]
        if column.values is not None and attribute.name in self._values:
            found = [None if np.isnan(value) else value for value in column.values.tolist()]
            parts.append(("unnest(?::DOUBLE[]) as value", found))
        self._maps.append(name)
        select = ", ".join(part for part, _ in parts)
        self._connection.run(f"create temp table {name} as select {select}", [values for _, values in parts])
        joined = f"left join {name} on {cell} is not distinct from {name}.cell"
        return CodeExpressions(f"{name}.code", f"{name}.value" if len(parts) > 2 else None, joined, ways)


def _bins(number: str, cuts: Sequence[float], first: int) -> str:
    """Return the number of cuts at or below a number, and `first` more, by halves."""
    if not cuts:
        return str(first)
    k = len(cuts) // 2
    low, high = _bins(number, cuts[:k], first), _bins(number, cuts[k + 1 :], first + k + 1)
    return f"case when {number} >= cast({text(repr(cuts[k]))} as double) then {high} else {low} end"


def _series(cells: Sequence[Any], kind: str) -> pl.Series | list[Any]:
    """Return distinct cells as the reader is given them by any other table."""
    import polars as pl

    if kind == "VARCHAR":
        return pl.Series(cells, dtype=pl.String)
    if kind == "FOREIGN":  # never missing here, so missing is false
        return [object() if there else None for there in cells]
    whole = kind in _WHOLE
    floats = pl.Float32 if kind == "FLOAT" else pl.Float64
    unsigned = pl.UInt64 if kind.startswith("U") else pl.Int64
    return pl.Series(cells, dtype=pl.Boolean if kind == "BOOLEAN" else unsigned if whole else floats)


def parquet_source(file: str, names: Sequence[str]) -> str:
    """Return a query of some columns of a Parquet file.

    Raises
    ------
    InputError
        If its name is a pattern.
    """
    if any(letter in file for letter in "*?[]"):
        raise InputError(f"{file}: DuckDB reads such a name as a pattern; rename the file")
    return (
        f"select {', '.join(map(quoted, names))} from read_parquet({text(file)}, hive_partitioning = false, "
        "union_by_name = false, filename = false)"
    )


def needed_values(schema: Schema, values: frozenset[str] | None) -> frozenset[str]:
    """Return the numeric attributes whose values are kept, or read by derived columns."""
    read = {name for column in schema.derive for name in column.inputs}
    kept = set(schema.names) if values is None else read.union(values)
    return frozenset(a.name for a in schema if isinstance(a, Numeric) and a.name in kept)


def column_names(schema: Schema, values: frozenset[str]) -> Iterator[tuple[str, str, str | None]]:
    """Yield each attribute with the column of its codes, and that of its values if they are kept."""
    for k, attribute in enumerate(schema):
        yield attribute.name, f"c{k}", f"v{k}" if attribute.name in values else None
