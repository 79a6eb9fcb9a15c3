"""Connections to databases, which reveal nothing of the rows in errors or in statements."""

from __future__ import annotations

import abc
import collections
import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from numpy.typing import NDArray

from dpframework.facts.errors import InputError, QueryStopped
from dpframework.tables.sql_cell_conversion import ColumnType

T = TypeVar("T")
MOST_STATEMENTS = 1000  # how many of the last statements are remembered


class SqlConnection(abc.ABC):
    """A connection to a database.

    Its statements contain names of tables, columns and files, the owner's own query if there is one, whole numbers and
    thresholds. No cell and no label is written into them, since databases may log statements. All other data is sent as
    numbers, such as codes of distinct cells and places of rows.
    """

    #: The name of the database in errors.
    product: ClassVar[str]
    #: The statement that begins a transaction in which every query sees the same rows.
    begins: ClassVar[str]
    #: The types that hold unsigned whole numbers of 1, 2, 4 and 8 bytes, by the number of bytes. The type for 8 bytes
    #: holds 63 bits.
    whole: ClassVar[Mapping[int, str]]

    #: The SQL test whether a number is NaN, with `{}` for the number.
    nan: ClassVar[str]

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._lock = threading.RLock()
        self._statements: collections.deque[str] = collections.deque(maxlen=MOST_STATEMENTS)

    @property
    @abc.abstractmethod
    def version(self) -> str:
        """The database's name and version, as it reports them."""

    @property
    def statements(self) -> tuple[str, ...]:
        """The last statements in order, at most `MOST_STATEMENTS`."""
        return tuple(self._statements)

    def new_name(self, what: str) -> str:
        """Return a name that no table has yet."""
        return f"dpf_{what}_{next(self._numbers)}"

    def run(self, statement: str) -> None:
        """Run a statement.

        Raises
        ------
        QueryStopped
            If the statement took too long, or somebody cancelled it.
        InputError
            If the statement fails. The sentence shows the kind of failure, and no cell.
        """
        self._run_remembered(statement, lambda: self._run(statement))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query. This raises the errors of `run`."""
        return self._run_remembered(query, lambda: self._rows(query))

    def columns(self, query: str) -> Mapping[str, Any]:
        """Return the numbers in a query's result, as masked arrays by column. This raises the errors of `run`."""
        return self._run_remembered(query, lambda: self._columns(query))

    def types(self, query: str) -> list[ColumnType]:
        """Return the types of a query's columns. This raises the errors of `run`."""
        return self._run_remembered(f"types of {query}", lambda: self._types(query))

    def names(self, query: str) -> list[str]:
        """Return the names of a query's columns. This raises the errors of `run`."""
        return self._run_remembered(f"names of {query}", lambda: self._names(query))

    def upload(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Create a temporary table of numbers, where NaN becomes null. This raises the errors of `run`."""
        types = {key: "double precision" if one.dtype.kind == "f" else self.whole[8] for key, one in columns.items()}
        self._run_remembered(f"upload {name} ({', '.join(columns)})", lambda: self._upload(name, columns, types))

    def drop(self, name: str) -> None:
        """Drop a temporary table if it exists. This raises the errors of `run`."""
        self.run(f"drop table if exists {name}")

    def analyze(self, name: str) -> None:
        """Have the database collect a table's statistics for its query planner. This raises the errors of `run`."""
        self.run(f"analyze {name}")

    def lookups(self, table: str, numbers: Sequence[str], rows: int, cell: str) -> dict[str, str] | None:
        """Return SQL expressions, by column, that need no join to look up the numbers of a cell in a table.

        For a cell that is not in the table, these expressions are null. The result is None if a join is as fast in this
        database. Variables for the lookup are forgotten when the table is dropped.

        Parameters
        ----------
        table
            A temporary table with distinct cells and their numbers.
        numbers
            The columns of the numbers that are looked up.
        rows
            The number of rows of the table.
        cell
            The SQL expression of the cell.

        Raises
        ------
        InputError
            If the database fails.
        """
        return None

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """See the same rows in all queries of the block. If the block fails, the tables that it created are gone."""
        with self._lock:
            self.run(self.begins)
            try:
                yield
                self.run("commit")
            except BaseException:
                if self.alive:
                    self.run("rollback")
                raise

    @contextlib.contextmanager
    def temporary_tables(self, *names: str) -> Iterator[None]:
        """Drop temporary tables after the block. If the block fails, the rollback of its transaction drops them."""
        yield
        for name in names:
            self.drop(name)

    @property
    def alive(self) -> bool:
        """Whether the database still answers. If it does not, all temporary tables are gone."""
        return True

    @abc.abstractmethod
    def close(self) -> None:
        """End the connection, and with it drop all temporary tables."""

    def _run_remembered(self, statement: str, action: Callable[[], T]) -> T:
        """Remember a statement, run it, and turn an error of the database into a sentence that shows no cell."""
        with self._lock:
            self._statements.append(statement)
            try:
                return action()
            except self._errors as error:  # the text of the error may quote a cell
                kind, stopped = type(error).__name__, self._why_stopped(error)
        if stopped is not None:
            raise QueryStopped(f"{self.product} ended a query, which {_STOPPED[stopped]}", kind=stopped)
        raise InputError(
            f"{self.product} cannot read or count this table ({kind}); the text of its error is not shown, since it "
            "may quote rows"
        )

    @property
    @abc.abstractmethod
    def _errors(self) -> type[Exception]: ...

    @abc.abstractmethod
    def _why_stopped(self, error: Exception) -> str | None:
        """Return how a query was stopped, `TIMED_OUT` or `CANCELLED`, None if it failed for another reason."""

    @abc.abstractmethod
    def _run(self, statement: str) -> None: ...

    @abc.abstractmethod
    def _rows(self, query: str) -> list[tuple[Any, ...]]: ...

    @abc.abstractmethod
    def _columns(self, query: str) -> Mapping[str, Any]: ...

    @abc.abstractmethod
    def _names(self, query: str) -> list[str]: ...

    @abc.abstractmethod
    def _types(self, query: str) -> list[ColumnType]: ...

    @abc.abstractmethod
    def _upload(self, name: str, columns: Mapping[str, NDArray[Any]], types: Mapping[str, str]) -> None: ...


TIMED_OUT, CANCELLED = "query timed out", "query cancelled"
_STOPPED = {
    TIMED_OUT: "took longer than the engine's timeout",
    CANCELLED: "was cancelled",
}


def quote_name(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def double(number: float) -> str:
    """Return a number as an SQL expression in double precision."""
    return f"cast({text(repr(number))} as double precision)"


def identifier(name: str) -> str:
    """Return a table's name, with its database schema if it has one, as a quoted SQL identifier."""
    return ".".join(quote_name(part) for part in name.split("."))
