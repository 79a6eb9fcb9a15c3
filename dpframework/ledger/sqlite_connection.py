"""Open SQLite files with durable commits, and turn SQLite's errors into sentences."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from dpframework.facts.errors import DPFrameworkError, InputError
from dpframework.facts.files import require_no_stream

PATIENCE = 10.0  # seconds to wait while another process writes


def connect(path: Path, *, create: bool = False, patience: float | None = None) -> sqlite3.Connection:
    """Open a file so that each commit is stored on disk when it returns.

    SQLite is used with a rollback file, not a write-ahead log. So between commits there is one file, which may be
    copied. With the setting `EXTRA`, SQLite also synchronises the folder after it deletes the rollback file. With lower
    settings, a power cut just after a commit could bring the rollback file back and undo the commit.
    """
    require_no_stream(path)
    uri = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
    # The threads of a run write one at a time, and the code begins transactions explicitly.
    connection = sqlite3.connect(
        uri, uri=True, timeout=PATIENCE if patience is None else patience, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA synchronous = EXTRA")
        # A ledger may come from anyone, so its views and triggers must not call functions with side effects.
        connection.execute("PRAGMA trusted_schema = OFF")
    except UnicodeDecodeError:  # raised if SQLite's message quotes damaged text
        connection.close()
        damaged = sqlite3.DatabaseError("its list of tables is damaged")
        damaged.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise damaged from None
    except sqlite3.Error:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def explain_errors(path: Path, what: str) -> Iterator[None]:
    """Turn SQLite's errors in the `with` block into sentences about a file.

    Raises
    ------
    InputError
        If SQLite cannot read or write the file.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise meaning(error, path, what) from None


def meaning(error: sqlite3.Error, path: Path, what: str) -> DPFrameworkError:
    """Return an error that says in one sentence what SQLite's error means for the file."""
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return InputError(f"{path}: another process is writing to this {what}; try again")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return InputError(f"{path}: cannot be written: permission denied, for the file or for its folder")
        case sqlite3.SQLITE_FULL:
            return InputError(f"{path}: cannot be written: the disk is full")
        case sqlite3.SQLITE_NOTADB:
            return InputError(f"{path}: is not a {what}")
        case sqlite3.SQLITE_CORRUPT:
            return InputError(f"{path}: is damaged; take this {what} from a backup")
        case sqlite3.SQLITE_CANTOPEN:
            return InputError(f"{path}: cannot be opened; is it a file, and may its folder be written?")
    return InputError(f"{path}: cannot be read or written: {error}")
