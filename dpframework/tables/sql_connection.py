"""Connections to databases that tell nothing of their rows, neither in errors nor in statements."""

from __future__ import annotations

import abc
import collections
import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError, QueryStopped
from dpframework.tables.sql_cells import ColumnType

T = TypeVar("T")
MOST_STATEMENTS = 1000  # that are noted


class SqlConnection(abc.ABC):
    """A connection to a database.

    Its statements hold names of tables and columns, whole numbers and thresholds. They hold no cell and no label, since
    databases may log them. What is sent besides is numbers: codes of distinct cells, and places of rows.
    """

    #: What errors call the database.
    product: ClassVar[str]
    #: The statement that begins a transaction in which every query sees the same rows.
    begins: ClassVar[str]
    #: The types of whole numbers of 1, 2, 4 and 8 bytes without a sign.
    whole: ClassVar[Mapping[int, str]]

    #: When a number is NaN, as an expression with `{}` for the number.
    nan: ClassVar[str]

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._lock = threading.RLock()
        self._statements: collections.deque[str] = collections.deque(maxlen=MOST_STATEMENTS)

    @property
    @abc.abstractmethod
    def version(self) -> str:
        """The database's name and version, as it tells them."""

    @property
    def statements(self) -> tuple[str, ...]:
        """The last statements, in order, at most 1,000."""
        return tuple(self._statements)

    def new_name(self, what: str) -> str:
        """Return a name that no table has yet."""
        return f"dpf_{what}_{next(self._numbers)}"

    def run(self, statement: str) -> None:
        """Run a statement.

        Raises
        ------
        QueryStopped
            If it took too long, or somebody cancelled it.
        InputError
            If it fails; the sentence shows the kind of failure, and no cell.
        """
        self._tell(statement, lambda: self._run(statement))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Raise as `run` does."""
        return self._tell(query, lambda: self._rows(query))

    def columns(self, query: str) -> Mapping[str, Any]:
        """Return the numbers that a query finds, as masked arrays by column. Raise as `run` does."""
        return self._tell(query, lambda: self._columns(query))

    def types(self, query: str) -> list[ColumnType]:
        """Return the types of a query's columns. Raise as `run` does."""
        return self._tell(f"types of {query}", lambda: self._types(query))

    def names(self, query: str) -> list[str]:
        """Return the names of a query's columns. Raise as `run` does."""
        return self._tell(f"names of {query}", lambda: self._names(query))

    def upload(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Make a temporary table of numbers, of which NaN is null. Raise as `run` does."""
        types = {key: "double precision" if one.dtype.kind == "f" else self.whole[8] for key, one in columns.items()}
        self._tell(f"upload {name} ({', '.join(columns)})", lambda: self._upload(name, columns, types))

    def drop(self, name: str) -> None:
        """Drop a temporary table, if it is there. Raise as `run` does."""
        self.run(f"drop table if exists {name}")

    def analyze(self, name: str) -> None:
        """Have the database learn the sizes of a table, by which it plans queries. Raise as `run` does."""
        self.run(f"analyze {name}")

    def lookups(self, table: str, numbers: Sequence[str], rows: int, cell: str) -> dict[str, str] | None:
        """Return expressions that find the numbers of a cell in a table, null where it has none, without a join.

        None if the database has no faster way than to join. What is kept for it is forgotten when the table is
        dropped.

        Parameters
        ----------
        table
            A temporary table of some cells, no two of which are equal, and their numbers.
        numbers
            The columns that are looked up.
        rows
            How many rows it has.
        cell
            The expression of a cell.

        Raises
        ------
        InputError
            If the database fails.
        """
        return None

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """See the same rows in all queries of the block. If it fails, the tables that it made are gone."""
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
    def passing(self, *names: str) -> Iterator[None]:
        """Drop temporary tables after the block. One that fails is left to whoever undoes the whole."""
        yield
        for name in names:
            self.drop(name)

    @property
    def alive(self) -> bool:
        """Whether the database still answers. If it does not, all temporary tables are gone."""
        return True

    @abc.abstractmethod
    def close(self) -> None:
        """End the connection, with all temporary tables."""

    def _tell(self, statement: str, action: Callable[[], T]) -> T:
        """Note a statement, run it, and turn an error of the database into a sentence that shows no cell."""
        with self._lock:
            self._statements.append(statement)
            try:
                return action()
            except self._errors as error:  # its text may quote a cell
                kind, stopped = self._kind(error), self._why_stopped(error)
        if stopped is not None:
            raise QueryStopped(f"{self.product} ended a query, which {_STOPPED[stopped]}", kind=stopped)
        raise InputError(f"{self.product} cannot read or count this table ({kind}); nothing is told of its rows")

    @property
    @abc.abstractmethod
    def _errors(self) -> type[Exception]: ...

    @abc.abstractmethod
    def _kind(self, error: Exception) -> str: ...

    @abc.abstractmethod
    def _why_stopped(self, error: Exception) -> str | None:
        """Return how a query was stopped, `TIMED_OUT` or `CANCELLED`; None if it failed."""

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


def as_masked(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Return rows of numbers and nulls as masked arrays by column."""
    found = {}
    for k, name in enumerate(names):
        cells = [row[k] for row in rows]
        mask = np.array([cell is None for cell in cells], dtype=np.bool_)
        kind = np.float64 if any(isinstance(cell, float) for cell in cells) else np.int64
        found[name] = np.ma.MaskedArray(np.array([cell or 0 for cell in cells], dtype=kind), mask)
    return found


def quoted(name: str) -> str:
    """Return a name as SQL writes one."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Return a text as SQL writes one."""
    return "'" + value.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return a table's name as SQL writes it, its schema's before it."""
    return ".".join(quoted(part) for part in name.split("."))
