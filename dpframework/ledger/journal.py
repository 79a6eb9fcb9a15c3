"""The journal of an unfinished run: its releases, kept until its results are written, so that it can be resumed.

A file beside the results, not part of the ledger, which holds no outputs.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

import attrs

from dpframework.facts.errors import DPFrameworkError, InputError
from dpframework.ledger.chain import canonical
from dpframework.ledger.sqlite import connect, explained, meaning
from dpframework.ledger.values import from_json, to_json
from dpframework.tables.contributions import KEY_BYTES

WHAT = "journal of a run"


def written(output: Any) -> str:
    """Return an output as the text that a journal keeps (see `to_json`)."""
    return canonical(to_json(output))


def digest_of(columns: Sequence[Any]) -> str:
    """Return the SHA-256, in hex, of a row's columns: a disk or a hand that changed one is seen."""
    return hashlib.sha256(canonical(list(map(str, columns))).encode()).hexdigest()


def damaged(path: Path) -> InputError:
    """Return the error of a journal that is not as it was written."""
    return InputError(
        f"{path}: is damaged; the run stays charged and unfinished: put this file back from a backup, or remove it and "
        "have another run approved"
    )


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
    key: bytes  # what the rows of each privacy unit are chosen by


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
            try:
                self._begin()
            except sqlite3.Error:
                self._connection.close()  # else the error's traceback would hold the lock
                raise
        except sqlite3.Error as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise InputError(f"{path}: another process is making this run; wait until it has ended") from None
            raise meaning(error, path, WHAT) from None

    def _begin(self) -> None:
        # The lock of the first transaction is kept after it. The system drops it if the process is killed.
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._connection.execute("BEGIN EXCLUSIVE")
        for text in (
            "CREATE TABLE IF NOT EXISTS owner (ledger TEXT, data_set TEXT, plan TEXT, run TEXT, key TEXT, digest TEXT)",
            "CREATE TABLE IF NOT EXISTS release"
            " (number INTEGER PRIMARY KEY, path TEXT, origin TEXT, output TEXT, digest TEXT)",
        ):
            self._connection.execute(text)
        self._connection.execute("COMMIT")

    @property
    def owner(self) -> Owner | None:
        """Whose it is; None before `claim`."""
        with explained(self.path, WHAT):
            rows = self._connection.execute("SELECT ledger, data_set, plan, run, key, digest FROM owner").fetchall()
        if not rows:
            if self._held():
                raise damaged(self.path)
            return None
        if len(rows) > 1:
            raise damaged(self.path)
        ledger, data_set, plan, run, key = self._whole(rows[0])
        if not (isinstance(key, str) and re.fullmatch(f"[0-9a-f]{{{2 * KEY_BYTES}}}", key)):
            raise damaged(self.path)
        return Owner(ledger, data_set, plan, run, bytes.fromhex(key))

    def claim(self, owner: Owner) -> None:
        """Write down whose releases it will hold."""
        with explained(self.path, WHAT):
            columns = (*attrs.astuple(owner)[:-1], owner.key.hex())
            self._connection.execute("INSERT INTO owner VALUES (?, ?, ?, ?, ?, ?)", (*columns, digest_of(columns)))

    def keep(self, number: int, path: str, origin: str, output: str) -> None:
        """Keep an output, as `written`; it is on the disk when this returns.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        with explained(self.path, WHAT):
            columns = (number, path, origin, output)
            self._connection.execute("INSERT INTO release VALUES (?, ?, ?, ?, ?)", (*columns, digest_of(columns)))

    def releases(self) -> Mapping[int, Kept]:
        """Return what is kept, by number.

        Raises
        ------
        InputError
            If it cannot be read.
        """
        try:
            kept = map(self._whole, self._held())
            return {number: Kept(path, origin, from_json(json.loads(text))) for number, path, origin, text in kept}
        except DPFrameworkError:
            raise
        except Exception as error:  # whatever a plugin's class, or its absence, raises
            raise InputError(
                f"{self.path}: an output cannot be read ({type(error).__name__}); are the run's plugins installed?"
            ) from None

    def _held(self) -> list[tuple[Any, ...]]:
        with explained(self.path, WHAT):
            # all of them: a cursor left open by an error would keep the lock after `close`
            query = "SELECT number, path, origin, output, digest FROM release ORDER BY number"
            return self._connection.execute(query).fetchall()

    def _whole(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the columns of a row, if they are as they were written."""
        *columns, digest = row
        if digest != digest_of(columns):
            raise damaged(self.path)
        return tuple(columns)

    def close(self) -> None:
        """Give the lock back."""
        self._connection.close()

    def remove(self) -> None:
        """Remove the file."""
        self.close()
        remove(self.path)
