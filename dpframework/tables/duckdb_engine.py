"""Tables that DuckDB reads and counts. Parquet files and tables of its databases never become rows of this process."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.open_attribute import Open
from dpframework.tables.duckdb_connection import DuckDBConnection
from dpframework.tables.duckdb_derivation import add_derived
from dpframework.tables.duckdb_reading import SourceEncoder, column_names, needed_values, parquet_source
from dpframework.tables.files import TableFiles
from dpframework.tables.grouping import GroupingEngine, SelectedRows
from dpframework.tables.grouping_sets import families, grouping_queries
from dpframework.tables.joint_counts import Crosstab
from dpframework.tables.places import is_url
from dpframework.tables.sources import open_source
from dpframework.tables.sql_text import SqlColumns
from dpframework.tables.table import Table
from dpframework.tables.table_builder import RowFindings, require_found

MOST_CELLS = 1 << 26  # of a cross table: 512 MiB


@final
@attrs.frozen(eq=False, repr=False)
class CodedTable:
    """A temporary table of codes in the database.

    Attributes
    ----------
    name
        What the database calls it.
    columns
        Where the codes and values are.
    """

    name: str
    columns: SqlColumns

    def __repr__(self) -> str:
        """Show no row and no count."""
        return "CodedTable(rows are private)"


@final
class DuckDB(GroupingEngine):
    """DuckDB, in this process: it reads Parquet files, keeps their codes in a temporary table, and counts them.

    Counts leave it, and the distinct texts of the columns that are read, which are encoded as in any other table. It
    needs the extra `database`.

    Parameters
    ----------
    threads
        How many threads it counts with; by default one a processor.
    """

    name = "duckdb"
    reads_files = True
    sends_messages = True  # it makes one query of several, so that a level of a tree is one

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads
        self._opened: DuckDBConnection | None = None

    @property
    def _connection(self) -> DuckDBConnection:
        if self._opened is None:
            self._opened = DuckDBConnection(self._threads)
        return self._opened

    @property
    def address(self) -> str | None:
        """DuckDB's name and version, since its code counts. Plans show it, and approvals bind it."""
        try:
            return f"DuckDB {version('duckdb')}, in this process"
        except PackageNotFoundError:
            return None  # what opens a table says so

    def load(self, table: Table) -> NoReturn:
        """Refuse, since rows do not travel.

        Raises
        ------
        InputError
            Always.
        """
        raise InputError("engine 'duckdb' reads tables itself; give the study dpf.TableFiles(path, schema)")

    def open(self, files: TableFiles) -> SelectedRows:
        """Have the database read Parquet files, and keep the codes in a temporary table.

        Raises
        ------
        NotOpened
            If there are no such files.
        InputError
            If the database cannot read them, or they do not fit the schema, in the words of `read_table`; or if the
            schema or the unit is one that it does not serve.
        """
        self._require_served(files)
        schema, values = files.schema, needed_values(files.schema, files.values)
        places = files.files()
        for place in places:
            if is_url(place) or not place.lower().endswith(".parquet"):
                raise InputError(
                    f"engine 'duckdb' reads Parquet files of this machine, not {place}; use engine 'memory' or 'mapped'"
                )
        open_source(places).blocks(schema.column_names)  # names and types only: what is wrong is said as everywhere
        connection, name = self._connection, self._connection.new_name("codes")
        found = RowFindings(0, (frozenset(),) * len(schema))
        try:
            for k, place in enumerate(places):
                encoder = SourceEncoder(
                    connection, parquet_source(place, schema.column_names), schema, files.out_of_domain, values
                )
                try:
                    query, unfit = encoder.encoded()
                    connection.run(f"{f'create temp table {name} as' if k == 0 else f'insert into {name}'} {query}")
                finally:
                    encoder.forget()
                found += RowFindings(0, unfit)
            add_derived(connection, name, schema)
            found += RowFindings(self._number(name, schema.names), (frozenset(),) * len(schema))
            require_found(schema, found, files.sources)
        except BaseException:
            connection.run(f"drop table if exists {name}")
            raise
        listed = list(column_names(schema, values))
        codes, kept = {one: code for one, code, _ in listed}, {one: value for one, _, value in listed if value}
        return SelectedRows(CodedTable(name, SqlColumns(schema, codes, kept)), schema)

    def _require_served(self, files: TableFiles) -> None:
        if files.unit.id is not None or files.unit.period is not None:
            raise InputError(
                f"engine 'duckdb' does not bound what one '{files.unit.id}' contributes; use engine 'memory', or "
                "'mapped' where memory is short"
            )
        for attribute in files.schema:
            if isinstance(attribute, Open):
                raise InputError(
                    f"engine 'duckdb' counts listed values only, and '{attribute.name}' is open; use another engine"
                )

    def _number(self, name: str, attributes: Sequence[str]) -> int:
        """Return the number of rows, all of whose cells have a code."""
        known = " and ".join(f"c{k} is not null" for k in range(len(attributes)))
        ((rows, coded),) = self._connection.rows(f"select count(*), count(*) filter (where {known}) from {name}")
        if rows != coded:
            raise InputError("the table changed while it was read; read it again")
        return int(rows)

    def tables(self, rows: SelectedRows, tables: Sequence[Crosstab]) -> list[NDArray[np.int64]]:
        """See `GroupingEngine`."""
        (found,) = self.tables_of([(rows, tables)])
        return found

    def tables_of(self, asked: Sequence[tuple[SelectedRows, Sequence[Crosstab]]]) -> list[list[NDArray[np.int64]]]:
        """Count several parts of a table in one query, if no row is in two of them.

        Raises
        ------
        InputError
            If a table has very many cells, or the database fails.
        """
        for _, tables in asked:
            for table in tables:
                if table.cells > MOST_CELLS:
                    raise InputError(
                        f"engine 'duckdb' counts tables of up to {MOST_CELLS:,} cells, not {table.cells:,}"
                    )
        found: dict[int, list[NDArray[np.int64]]] = {}
        for family in families([rows for rows, _ in asked]):
            given = [asked[k][1] for k in family.places]
            counted: list[dict[Crosstab, NDArray[np.int64]]] = [{} for _ in given]
            for query in grouping_queries(family, given):
                query.read(self._connection.columns(query.text), counted)
            for k, tables, own in zip(family.places, given, counted, strict=True):
                found[k] = [own[table] for table in tables]
        return [found[k] for k in range(len(asked))]

    def drop(self, rows: SelectedRows) -> None:
        """Drop the temporary table."""
        if self._opened is not None:
            self._opened.run(f"drop table if exists {rows.table.name}")

    def close(self) -> None:
        """Close the database, with all that it holds."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None
