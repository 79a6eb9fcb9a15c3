"""The journal of an unfinished run: its releases, kept until its results are written, so that it can be resumed.

A file beside the results, not part of the ledger, which holds no outputs.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import attrs

from dpframework.facts.errors import DPFrameworkError, InputError
from dpframework.ledger.chain import canonical
from dpframework.ledger.sqlite import connect, explained, meaning
from dpframework.ledger.values import from_json, to_json

WHAT = "journal of a run"


def written(output: Any) -> str:
    """Return an output as the text that a journal keeps (see `to_json`)."""
    return canonical(to_json(output))


def remove(path: Path) -> None:
    """Remove a journal that is closed, and what SQLite leaves beside one that it found after a kill."""
    path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
    path.unlink(missing_ok=True)


@final
@attrs.frozen
class Owner:
    """Whose releases a journal holds."""

    ledger: str
    data_set: str
    plan: str
    run: str


@final
@attrs.frozen
class Kept:
    """A release that was made: its place in the plan, what it was made from, and its output."""

    path: str
    origin: str
    output: Any


@final
class Journal:
    """The file, locked against every other process until it is closed, or this process ends.

    Parameters
    ----------
    path
        Where it is; it is made if it does not exist.

    Raises
    ------
    InputError
        If another process has it, it cannot be written, or it is something else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._connection = connect(path, create=True, patience=0)
            # The lock of the first transaction is kept after it. The system drops it if the process is killed.
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("BEGIN EXCLUSIVE")
            for text in (
                "CREATE TABLE IF NOT EXISTS owner (ledger TEXT, data_set TEXT, plan TEXT, run TEXT)",
                "CREATE TABLE IF NOT EXISTS release (number INTEGER PRIMARY KEY, path TEXT, origin TEXT, output TEXT)",
            ):
                self._connection.execute(text)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise InputError(f"{path}: another process is making this run; wait until it has ended") from None
            raise meaning(error, path, WHAT) from None

    @property
    def owner(self) -> Owner | None:
        """Whose it is; None before `claim`."""
        with explained(self.path, WHAT):
            row = self._connection.execute("SELECT ledger, data_set, plan, run FROM owner").fetchone()
        return None if row is None else Owner(*row)

    def claim(self, owner: Owner) -> None:
        """Write down whose releases it will hold."""
        with explained(self.path, WHAT):
            self._connection.execute("INSERT INTO owner VALUES (?, ?, ?, ?)", attrs.astuple(owner))

    def keep(self, number: int, path: str, origin: str, output: str) -> None:
        """Keep an output, as `written`; it is on the disk when this returns.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        with explained(self.path, WHAT):
            self._connection.execute("INSERT INTO release VALUES (?, ?, ?, ?)", (number, path, origin, output))

    def releases(self) -> Mapping[int, Kept]:
        """Return what is kept, by number.

        Raises
        ------
        InputError
            If it cannot be read.
        """
        try:
            with explained(self.path, WHAT):
                # all of them first: a cursor left open by an error would keep the lock after `close`
                query = "SELECT number, path, origin, output FROM release ORDER BY number"
                rows = self._connection.execute(query).fetchall()
                return {number: Kept(path, origin, from_json(json.loads(text))) for number, path, origin, text in rows}
        except DPFrameworkError:
            raise
        except Exception as error:  # whatever a plugin's class, or its absence, raises
            raise InputError(
                f"{self.path}: an output cannot be read ({type(error).__name__}); are the run's plugins installed?"
            ) from None

    def close(self) -> None:
        """Give the lock back."""
        self._connection.close()

    def remove(self) -> None:
        """Remove the file."""
        self.close()
        remove(self.path)
