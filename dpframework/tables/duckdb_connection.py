"""A connection to DuckDB that reveals nothing of its rows, neither in errors nor in files nor over a network."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError, NotOpened
from dpframework.tables.sql_cell_conversion import CellKind, ColumnType
from dpframework.tables.sql_connection import CANCELLED, TIMED_OUT, SqlConnection, text

T = TypeVar("T")
#: The name under which the owner's database is attached.
SOURCE = "source"
FEW_CELLS = 16  # up to this number of cells, a list is searched in place of a join
_POLL = 0.05  # seconds between two interrupts
#: With these settings DuckDB writes tables in memory only, and fetches no code.
_SETTINGS = (
    "set temp_directory = ''",
    "set autoinstall_known_extensions = false",
    "set autoload_known_extensions = false",
    "set enable_progress_bar = false",
    "set python_enable_replacements = false",  # a name must not stand for a Python variable
    "set default_collation = ''",  # texts are compared by their bytes
    "set preserve_insertion_order = true",
    # If the columns to group by have up to 16 bits together, DuckDB counts groups in an array. This is two to three
    # times as fast.
    "set perfect_ht_threshold = 16",
)
_KINDS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), CellKind.WHOLE),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"), CellKind.WHOLE),
    **dict.fromkeys(("FLOAT", "DOUBLE"), CellKind.REAL),
    **dict.fromkeys(("VARCHAR", "HUGEINT", "UHUGEINT", '"NULL"'), CellKind.TEXT),
    "BOOLEAN": CellKind.TRUTH,
    "BLOB": CellKind.BYTES,
    "UUID": CellKind.UUID,
    "DATE": CellKind.DATE,
    "TIMESTAMP": CellKind.TIME,
    "TIMESTAMP WITH TIME ZONE": CellKind.ZONED,
}


@final
class DuckDBConnection(SqlConnection):
    """A DuckDB database in this process's memory, which reads files or one attached database.

    Parameters
    ----------
    threads
        The number of threads that count, by default one for each processor.
    database
        The file of a DuckDB database. It is opened for reading only.
    timeout
        The number of seconds after which a query is ended. None for no limit.

    Raises
    ------
    InputError
        If DuckDB is not installed.
    NotOpened
        If the file cannot be opened.
    """

    product = "DuckDB"
    begins = "begin transaction"
    whole = {1: "UTINYINT", 2: "USMALLINT", 4: "UINTEGER", 8: "BIGINT"}  # noqa: RUF012 it is never changed

    # A comparison with NaN would be wrong, since DuckDB decides it from Parquet's statistics, which leave NaN out.
    nan = "isnan({})"

    def __init__(
        self, threads: int | None = None, database: str | os.PathLike[str] | None = None, timeout: float | None = None
    ) -> None:
        try:
            import duckdb
        except ImportError:
            raise InputError(
                "engine 'duckdb' needs the package duckdb; install it with: pip install 'dpframework[database]'"
            ) from None
        super().__init__()
        self._duckdb: Any = duckdb
        self._variables: list[str] = []
        self._timeout, self._late = timeout, threading.Event()
        self._connection = self._duckdb.connect(":memory:")
        for setting in (*_SETTINGS, *([] if threads is None else [f"set threads = {int(threads)}"])):
            self.run(setting)
        if database is not None:
            path = Path(database)
            if not path.is_file():
                raise NotOpened(f"{path}: there is no such file; a DuckDB database is expected")
            try:
                self.run(f"attach {text(str(path.resolve()))} as {SOURCE} (type duckdb, read_only)")
                self.run(f"use {SOURCE}")
                # With external access, a name or a view could stand for another file.
                self.run("set enable_external_access = false")
                self.run("set lock_configuration = true")
                ((reads,),) = self.rows(f"select readonly from duckdb_databases() where database_name = '{SOURCE}'")
                assert reads, "the database is open for writing"
            except InputError:
                self.close()
                raise NotOpened(
                    f"{path}: cannot be opened as a DuckDB database, since it is damaged, of another version, or in "
                    "use by another program; close that program, or name another file"
                ) from None

    @property
    def version(self) -> str:
        """See `SqlConnection`."""
        return f"DuckDB {self._duckdb.__version__}"

    def close(self) -> None:
        """Close the connection, and with it forget all tables in memory."""
        self._connection.close()

    def analyze(self, name: str) -> None:
        """Do nothing, since DuckDB learns the ranges of numbers while it writes a table."""

    def lookups(self, table: str, numbers: Sequence[str], rows: int, cell: str) -> dict[str, str] | None:
        """Look up cells in lists if there are few of them (see `SqlConnection`).

        A file may store a column's cells as a dictionary. With lists, DuckDB then looks up each entry of the dictionary
        once, and not each row.
        """
        if rows > FEW_CELLS:
            return None
        kept = {key: f"{table}_{key}" for key in ("cell", *numbers)}
        for key, variable in kept.items():
            self._variables.append(variable)
            self.run(f"set variable {variable} = (select list({key} order by cell) from {table})")
        place = f"list_position(getvariable('{kept['cell']}'), {cell})"
        return {key: f"getvariable('{kept[key]}')[{place}]" for key in numbers}

    def drop(self, name: str) -> None:
        """Drop a table, and the lists that were made from it. See `SqlConnection`."""
        super().drop(name)
        self._forget(f"{name}_")

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """See `SqlConnection`. If the block fails, the lists that `lookups` made are forgotten too."""
        try:
            with super().snapshot():
                yield
        except BaseException:
            self._forget("")
            raise

    def _forget(self, prefix: str) -> None:
        for variable in [one for one in self._variables if one.startswith(prefix)]:
            self.run(f"reset variable {variable}")
            self._variables.remove(variable)

    @property
    def _errors(self) -> type[Exception]:
        kind: type[Exception] = self._duckdb.Error
        return kind

    def _why_stopped(self, error: Exception) -> str | None:
        if not isinstance(error, self._duckdb.InterruptException):
            return None
        return TIMED_OUT if self._late.is_set() else CANCELLED

    def _run_timed(self, action: Callable[[], T]) -> T:
        """Run an action in a thread, so that a timeout and Ctrl-C can end it at once."""
        self._late.clear()
        done, found, failed = threading.Event(), list[T](), list[BaseException]()

        def run() -> None:
            try:
                found.append(action())
            except BaseException as error:
                failed.append(error)
            finally:
                done.set()

        threading.Thread(target=run, daemon=True).start()
        try:
            if not done.wait(self._timeout):
                self._late.set()
        finally:  # after Ctrl-C, too
            while not done.is_set():  # again and again, since a query that has not begun ignores an interrupt
                self._connection.interrupt()
                done.wait(_POLL)
        if failed:
            raise failed[0]
        return found[0]

    def _run(self, statement: str) -> None:
        self._run_timed(lambda: self._connection.execute(statement))

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._run_timed(lambda: list(self._connection.execute(query).fetchall()))

    def _columns(self, query: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._run_timed(lambda: self._connection.execute(query).fetchnumpy())
        return found

    def _names(self, query: str) -> list[str]:
        return [str(row[0]) for row in self._connection.execute(f"describe {query}").fetchall()]

    def _types(self, query: str) -> list[ColumnType]:
        types = []
        for row in self._connection.execute(f"describe {query}").fetchall():
            name = str(row[1])
            kind = CellKind.TEXT if name.startswith(("DECIMAL", "ENUM")) else _KINDS.get(name, CellKind.OTHER)
            # A column may have a collation that takes two texts as equal, so their bytes are compared.
            types.append(ColumnType(kind, name, "encode(cast({} as varchar))", short=name in ("FLOAT", "UBIGINT")))
        return types

    def _upload(self, name: str, columns: Mapping[str, NDArray[Any]], types: Mapping[str, str]) -> None:
        given = {key: np.ascontiguousarray(one) for key, one in columns.items()}
        listed = [
            f"case when isnan({key}) then null else {key} end as {key}"
            if one.dtype.kind == "f"
            else f"cast({key} as {types[key]}) as {key}"
            for key, one in given.items()
        ]
        self._connection.register(f"{name}_given", given)
        try:
            self._connection.execute(f"create temp table {name} as select {', '.join(listed)} from {name}_given")
        finally:
            self._connection.unregister(f"{name}_given")
