"""A connection to DuckDB that tells nothing of its rows: not in errors, not in files, not over a network."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, final

from dpframework.facts.errors import InputError

#: Nothing is written but tables in memory, and no code is fetched.
_SETTINGS = (
    "set temp_directory = ''",
    "set autoinstall_known_extensions = false",
    "set autoload_known_extensions = false",
    "set enable_progress_bar = false",
    "set default_collation = ''",  # texts are compared by their bytes
    "set preserve_insertion_order = true",
)


def _module() -> Any:
    try:
        import duckdb
    except ImportError:
        raise InputError(
            "engine 'duckdb' needs the package duckdb; install it with: pip install 'dpframework[database]'"
        ) from None
    return duckdb


@final
class DuckDBConnection:
    """A database in the memory of this process, with what it reads.

    Parameters
    ----------
    threads
        How many threads count; by default one a processor.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._duckdb = _module()
        self._connection = self._duckdb.connect(":memory:")
        self._numbers = itertools.count()
        for setting in (*_SETTINGS, *([] if threads is None else [f"set threads = {int(threads)}"])):
            self.run(setting)

    def new_name(self, what: str) -> str:
        """Return a name that no table has yet."""
        return f"dpf_{what}_{next(self._numbers)}"

    def run(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Run a statement.

        Raises
        ------
        InputError
            If it fails; the sentence shows the kind of failure, and no cell.
        """
        self._executed(statement, values)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return what a query finds. Raise as `run` does."""
        return list(self._guarded(lambda: self._executed(query, ()).fetchall()))

    def columns(self, query: str) -> Mapping[str, Any]:
        """Return what a query finds, as masked arrays by column. Raise as `run` does."""
        found: Mapping[str, Any] = self._guarded(lambda: self._executed(query, ()).fetchnumpy())
        return found

    def close(self) -> None:
        """Forget everything."""
        self._connection.close()

    def _executed(self, statement: str, values: Sequence[Any]) -> Any:
        return self._guarded(lambda: self._connection.execute(statement, list(values)))

    def _guarded(self, action: Any) -> Any:
        try:
            return action()
        except self._duckdb.Error as error:  # its text may quote a cell
            kind = type(error).__name__
        raise InputError(f"DuckDB cannot read or count this table ({kind}); nothing is told of its rows")
