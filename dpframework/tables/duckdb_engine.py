"""Tables that DuckDB reads and counts. Rows of Parquet files and of DuckDB databases never reach Python."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import final

from dpframework.facts.errors import InputError, NotOpened
from dpframework.facts.read_options import ReadOptions
from dpframework.facts.value_checks import positive_count
from dpframework.tables.database_row_selection import DAY, PLACE, RowChooser, SqlPiece
from dpframework.tables.duckdb_connection import SOURCE, DuckDBConnection
from dpframework.tables.parquet_files import ParquetFile
from dpframework.tables.path_pattern_expansion import is_url
from dpframework.tables.sources import open_source
from dpframework.tables.sql_connection import quote_name, text
from dpframework.tables.sql_engine import SqlEngine
from dpframework.tables.unread_database_table import DatabaseTable
from dpframework.tables.unread_table_files import TableFiles

_ROW = "file_row_number"
_FILE = 1 << 40  # row r of file k has the place k * _FILE + r; no file has as many rows


@final
class DuckDB(SqlEngine):
    """DuckDB in this process, which reads Parquet files or its own database and counts codes in a temporary table.

    Rows stay in DuckDB. This process gets counts, distinct ids, the distinct cells of columns that it encodes, and the
    distinct combinations of cells from which it derives columns. The engine needs the extra `database`.

    Parameters
    ----------
    threads
        The number of threads that count, by default one for each processor.
    database
        The file of a DuckDB database, for `DatabaseTable`. It is opened for reading only.
    timeout
        The number of seconds after which a query is ended, which ends the run. By default there is no limit.

    Examples
    --------
    >>> DuckDB(database="/data/clinic.duckdb").address.partition(",")[2]
    ' in this process, on the database /data/clinic.duckdb'
    """

    name = "duckdb"
    reads_files = True

    def __init__(
        self,
        threads: int | None = None,
        database: str | os.PathLike[str] | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__(timeout)
        self._threads = None if threads is None else positive_count(threads, "threads")
        self._database = None if database is None else os.path.abspath(database)

    def _connect(self) -> DuckDBConnection:
        return DuckDBConnection(self._threads, self._database, self._timeout)

    @property
    def address(self) -> str | None:
        """DuckDB's name and version, and the file of its database, if there is one.

        DuckDB is named since its code counts the rows. Plans show this text, and the approval of a plan holds for no
        other text.
        """
        try:
            there = f"DuckDB {version('duckdb')}, in this process"
        except PackageNotFoundError:
            return None  # opening a table raises the error
        return there if self._database is None else f"{there}, on the database {self._database}"

    def _pieces(
        self, source: TableFiles | DatabaseTable, columns: Mapping[str, str], chooser: RowChooser, placed: bool
    ) -> list[SqlPiece]:
        if isinstance(source, DatabaseTable):
            if self._database is None:
                raise NotOpened(
                    f"{source.shown}: engine 'duckdb' was given no database; name its file, as in "
                    'dpf.DuckDB(database="clinic.duckdb")'
                )
            return [self._piece_of_table(source, columns, chooser, placed)]
        if self._database is not None:
            raise NotOpened(
                "engine 'duckdb' with a database reads tables of that database, and no other files; give the engine no "
                "database, or give the study dpf.DatabaseTable(name, schema)"
            )
        places = source.files()
        for place in places:
            if is_url(place) or not place.lower().endswith(".parquet"):
                raise NotOpened(
                    f"engine 'duckdb' reads Parquet files of this machine, not {place}; use engine 'memory' or 'mapped'"
                )
        opened = open_source(places)
        # This reads names and types only, and refuses a wrong file with the same errors as other engines.
        opened.blocks(list(columns.values()))
        if placed and any(name.lower() == _ROW for name in opened.columns):
            raise InputError(
                f"{opened.name}: has a column '{_ROW}', which DuckDB takes for the places of the rows; rename it"
            )
        files = []
        for place in places:
            files.append(ParquetFile.open(place, Path(place).name))
            _require_read_alike(files[-1], columns, source.schema.in_files.read)
        return [SqlPiece(_of_file(file, columns, k if placed else None), opened.name) for k, file in enumerate(files)]

    def _place(self, table: str, columns: Collection[str]) -> str | None:
        if any(name.lower() == "rowid" for name in columns):
            return None  # "rowid" would name that column, in which several rows may hold the same value
        *schema, name = table.split(".")
        where = f"schema_name = {text(schema[-1] if schema else 'main')} and table_name = {text(name)}"
        found = self._connection.rows(f"select 1 from duckdb_tables() where database_name = '{SOURCE}' and {where}")
        return "rowid" if found else None


def _require_read_alike(file: ParquetFile, columns: Mapping[str, str], read: ReadOptions) -> None:
    """Refuse a Parquet file if DuckDB would read a column's cells differently from other engines.

    Some types are written only in a note that Arrow leaves in a file, and DuckDB does not read this note. So DuckDB
    takes a length of time for a number, a number of 128 bits for bytes, and a time in a zone for the time in UTC. It
    also rounds very long decimal numbers.

    Raises
    ------
    InputError
        If a column has such a type. For times in a zone, only if the column is read as dates.
    """
    file.require_short(columns.values())
    for alias, name in columns.items():
        held = None
        if name in file.noted:
            held = f"{file.noted[name]}, which DuckDB takes for something else"
        elif name in file.zoned and (alias == DAY or read.of_column(name).is_date):
            held = "times in a zone, which DuckDB reads in UTC"
        if held is not None:
            raise InputError(f"{file.name}: column '{name}' has {held}; use engine 'memory' or 'mapped'")


def _of_file(file: ParquetFile, columns: Mapping[str, str], number: int | None) -> str:
    """Return the SQL of the query that reads some columns of a Parquet file.

    The query also gives the place of each row among the rows of all files. The place is null if `number`, the number of
    the file, is None.

    Raises
    ------
    InputError
        If the file's name reads as a pattern.
    """
    if any(letter in file.place for letter in "*?[]"):
        raise InputError(f"{file.place}: DuckDB reads such a name as a pattern; rename the file")
    inside, renamed = {name: quote_name(name) for name in columns.values()}, ""
    if len({name.casefold() for name in file.columns}) < len(file.columns):
        # If two names differ in case only, DuckDB would read the first of these columns for both.
        inside = {name: f"c{k}" for k, name in enumerate(file.columns)}
        renamed = f" as f({', '.join(inside.values())})"
    listed = [f"{inside[name]} as {alias}" for alias, name in columns.items()]
    listed.append(f"{'cast(null as bigint)' if number is None else f'{_ROW} + {number * _FILE}'} as {PLACE}")
    return (
        f"select {', '.join(listed)} from read_parquet({text(file.place)}, hive_partitioning = false, "
        f"union_by_name = false, filename = false, file_row_number = {'false' if number is None else 'true'}){renamed}"
    )
