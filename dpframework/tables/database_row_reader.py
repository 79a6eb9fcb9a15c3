"""Rows of a table or a query in a database. Each cell is read as a text, by itself.

A query is sent as a subquery in parentheses, so that a database can run nothing but a query. Nothing is ever
committed.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from dpframework.facts.errors import InputError, NotOpened
from dpframework.facts.input_limits import MOST_COLUMNS
from dpframework.facts.read_options import ReadOptions
from dpframework.tables.plain_cell_series import quietly
from dpframework.tables.sql_connection import quote_name

if TYPE_CHECKING:
    import polars as pl

BLOCK_ROWS: Final = 1 << 14  # the most rows of a block
#: The actions that SQLite is allowed to take (see `_only_reads`).
_ALLOWED_ACTIONS = frozenset(
    (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
)


@attrs.frozen(eq=False)
class SqlRows:
    """A table of a database, or the result of a query.

    Attributes
    ----------
    name
        The name of the table or the query in errors.
    columns
        The names of the columns.
    """

    name: str
    columns: tuple[str, ...]
    _connect: Callable[[], Any] = attrs.field(repr=False)
    _quote: Callable[[str], str] = attrs.field(repr=False)
    _rows: str = attrs.field(repr=False)

    @classmethod
    def open(cls, place: str, name: str, read: ReadOptions, options: Mapping[str, str] | None = None) -> SqlRows:
        """Return the table or the query, after asking for the names of its columns. No row is fetched.

        Parameters
        ----------
        place
            The path of a file of SQLite, or a URL in SQLAlchemy's form.
        name
            The name of the table in errors.
        read
            The options that name the table or the query.
        options
            Arguments of the driver's `connect`, such as a user and a password.

        Raises
        ------
        NotOpened
            If neither a table nor a query is named, the database cannot be reached, or its driver is not installed.
        InputError
            If the database refuses the query, or its result has too many columns.
        """
        if not read.of_database:
            raise NotOpened(
                f"{name}: is a database; name its table, or a query, in [read] of the schema (table, query)"
            )
        connect, quote = _sqlite(place) if "://" not in place else _server(place, name, options)
        source = ".".join(map(quote, read.table.split("."))) if read.table else f"(\n{read.query}\n)"
        rows = cls(name, (), connect, quote, f"{source} t")
        quietly(lambda: connect().close(), f"{name}: the database cannot be reached; nothing was read", NotOpened)
        # This is no `NotOpened`, since a database may evaluate a query on all rows even if none is fetched.
        remedy = "correct table or query in [read], or ask who keeps the database"
        columns = quietly(rows._names, f"{name}: the database refuses what [read] asks for; {remedy}")
        if len(columns) > MOST_COLUMNS:
            raise InputError(f"{name}: has more than the {MOST_COLUMNS:,} columns that a table may have")
        return attrs.evolve(rows, columns=columns)

    def _names(self) -> tuple[str, ...]:
        with self._answer("*", " where 1 = 0") as cursor:
            return tuple(str(column[0]) for column in cursor.description)

    @contextlib.contextmanager
    def _answer(self, columns: str, condition: str = "") -> Iterator[Any]:
        """Yield a cursor over the rows."""
        with contextlib.closing(self._connect()) as connection, contextlib.closing(connection.cursor()) as cursor:
            cursor.execute(f"select {columns} from {self._rows}{condition}")
            yield cursor

    def blocks(self, positions: Sequence[int]) -> Iterator[list[pl.Series]]:
        """Yield the columns at some positions block by block, or one block without rows if there are none.

        Raises
        ------
        InputError
            If the database does not answer, or refuses the query. The sentence shows no cell.
        """
        failed = f"{self.name}: the database could not answer; some of its rows may have been read"
        names = ", ".join(self._quote(self.columns[k]) for k in positions)
        with contextlib.ExitStack() as opened:
            cursor = quietly(lambda: opened.enter_context(self._answer(names)), failed)
            begun = False
            while rows := quietly(lambda: cursor.fetchmany(BLOCK_ROWS), failed):
                begun = True
                yield [as_texts(column) for column in zip(*rows, strict=True)]
            if not begun:
                yield [as_texts(()) for _ in positions]


def as_texts(cells: Sequence[Any]) -> pl.Series:
    """Return cells of a database as the texts that a CSV file would hold.

    Examples
    --------
    >>> as_texts([1, 2.5, None, True, "x", datetime.date(2024, 3, 1)]).to_list()
    ['1', '2.5', None, 'true', 'x', '2024-03-01']
    """
    import polars as pl

    texts = [cell if type(cell) is str else _text(cell) for cell in cells]
    try:
        return pl.Series(texts, dtype=pl.String)
    except (Exception, pl.exceptions.PanicException):  # some text cannot be encoded in UTF-8
        pass
    return pl.Series([t if t is None else t.encode("utf-8", "replace").decode() for t in texts], dtype=pl.String)


def _text(cell: Any) -> str | None:
    if cell is None or cell != cell:  # NaN
        return None
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, bytes | bytearray | memoryview):
        return bytes(cell).decode("utf-8", "replace")
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return str(cell)


def _sqlite(path: str) -> tuple[Callable[[], Any], Callable[[str], str]]:
    """Return a function that opens a file of SQLite for reading only, and one that quotes names."""
    place = f"{Path(path).absolute().as_uri()}?mode=ro"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(place, uri=True, check_same_thread=False)
        connection.set_authorizer(_only_reads)
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        return connection

    return connect, quote_name


def _only_reads(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """Let SQLite read tables and do nothing else: attach no files, change no settings, load no code."""
    denied = second == "load_extension" or action not in _ALLOWED_ACTIONS
    return sqlite3.SQLITE_DENY if denied else sqlite3.SQLITE_OK


def _server(url: str, name: str, options: Mapping[str, str] | None) -> tuple[Callable[[], Any], Callable[[str], str]]:
    """Return a function that connects to a database by SQLAlchemy, and one that quotes names."""
    try:
        import sqlalchemy
        from sqlalchemy.pool import NullPool
    except ImportError:
        raise NotOpened(
            f"{name}: databases need the package sqlalchemy; install it with: pip install 'dpframework[sql]'"
        ) from None
    made = functools.partial(sqlalchemy.create_engine, url, poolclass=NullPool, connect_args=dict(options or {}))
    remedy = "correct its URL, and install the driver that it names"
    engine = quietly(made, f"{name}: the URL of the database cannot be used; {remedy}", NotOpened)
    return engine.raw_connection, engine.dialect.identifier_preparer.quote_identifier
