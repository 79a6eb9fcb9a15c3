"""The journal of an unfinished run. It stores the run's outputs, so that the run can be resumed after a kill.

`Journal` is the file. `RunJournal` is the journal that a run may have, opened when it is needed and removed when it is
not needed any more.

A journal is a file next to the results. It is not part of the ledger, since a ledger holds no outputs. Each row is
sealed with a key that only the user who makes the run can read (see `journal_key_file`). So rows that others wrote are
detected and refused.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import attrs

from dpframework.facts.errors import DPFrameworkError, InputError, PlanRefused
from dpframework.facts.interrupts import delay_interrupts
from dpframework.facts.json_reader_and_schema_check import parsed_json
from dpframework.ledger.entry_hash_chain import Chain, canonical
from dpframework.ledger.journal_key_file import journal_key
from dpframework.ledger.release_codec import from_json, to_json
from dpframework.ledger.sqlite_connection import connect, explain_errors, meaning
from dpframework.tables.contribution_bounding import KEY_BYTES

WHAT = "journal of a run"


def encode_output(output: Any, classes: Iterable[type[Any]]) -> str:
    """Return the text in which a journal stores an output (see `to_json`)."""
    return canonical(to_json(output, classes))


def seal(key: bytes, *columns: Any) -> str:
    """Return the seal of a row, which shows whether the row was changed: an HMAC-SHA256, in hex, of its columns."""
    return hmac.new(
        key, canonical([[type(column).__name__, str(column)] for column in columns]).encode(), "sha256"
    ).hexdigest()


def journal_damage(path: Path) -> InputError:
    """Return the error for a journal with missing or changed rows."""
    return InputError(
        f"{path}: is damaged, belongs to another ledger, or was written by another user; the run stays charged and "
        "unfinished: put this file back from a backup, or remove it and have another run approved"
    )


def remove(path: Path) -> None:
    """Remove a journal, and the rollback file that SQLite leaves next to it after a kill."""
    path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
    path.unlink(missing_ok=True)


@final
@attrs.frozen
class Owner:
    """The run whose releases a journal holds.

    Attributes
    ----------
    ledger
        The id of the ledger.
    data_set
        The name of the data set in the ledger.
    plan
        The hash of the plan.
    run
        The id of the run.
    key
        The key that decides which rows of each privacy unit are kept.
    """

    ledger: str
    data_set: str
    plan: str
    run: str
    key: bytes = attrs.field(repr=False)

    def require(self, ledger: str, data_set: str, plan: str, place: str) -> None:
        """Refuse to resume a run that is not this one.

        Raises
        ------
        PlanRefused
            If the ledger, the data set or the plan differs.
        """
        for what, own, other in (
            ("in another ledger", self.ledger, ledger),
            (f"on data set '{self.data_set}'", self.data_set, data_set),
            (f"of plan {self.plan[:12]}, not {plan[:12]}", self.plan, plan),
        ):
            if own != other:
                raise PlanRefused(
                    f"{place}: holds the releases of an unfinished run {what}; resume that run as it was begun, or "
                    "write the results of this run elsewhere"
                )


@final
@attrs.frozen
class StoredRelease:
    """A release that a journal stores.

    Attributes
    ----------
    path
        The path of its step in the plan.
    origin
        A fingerprint of its inputs and of how its rows were made (see `JournaledGate`).
    output
        The released value.
    """

    path: str
    origin: str
    output: Any


@final
class Journal:
    """The file of a journal. It is locked against other processes until it is closed or this process ends.

    Parameters
    ----------
    path
        The file. It is made if it does not exist.
    key
        The key that seals the rows (see `journal_key`).

    Raises
    ------
    InputError
        If another process has the file open, if it cannot be written, or if it is not a journal.
    """

    def __init__(self, path: Path, key: bytes) -> None:
        self.path = path
        self._key = key
        try:
            self._connection = connect(path, create=True, patience=0)
            try:
                self._begin()
            except BaseException:
                self._connection.close()  # otherwise the error's traceback would keep the lock
                raise
        except sqlite3.Error as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise InputError(f"{path}: another process is making this run; wait until it has ended") from None
            raise meaning(error, path, WHAT) from None

    def _begin(self) -> None:
        # In this mode the file stays locked after the first transaction. The system releases the lock after a kill.
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
        """The run to which the journal belongs; None before `claim`."""
        with explain_errors(self.path, WHAT):
            rows = self._connection.execute("SELECT ledger, data_set, plan, run, key, digest FROM owner").fetchall()
        if not rows:
            if self._read_releases():
                raise journal_damage(self.path)
            return None
        if len(rows) > 1:
            raise journal_damage(self.path)
        *columns, digest = rows[0]
        self._require_sealed(digest, "owner", *columns)
        if not (isinstance(columns[-1], str) and re.fullmatch(f"[0-9a-f]{{{2 * KEY_BYTES}}}", columns[-1])):
            raise journal_damage(self.path)
        ledger, data_set, plan, run, key = columns
        return Owner(ledger, data_set, plan, run, bytes.fromhex(key))

    def claim(self, owner: Owner) -> None:
        """Store which run's releases the journal will hold."""
        with explain_errors(self.path, WHAT):
            columns = (*attrs.astuple(owner)[:-1], owner.key.hex())
            digest = seal(self._key, "owner", *columns)
            self._connection.execute("INSERT INTO owner VALUES (?, ?, ?, ?, ?, ?)", (*columns, digest))

    def keep(self, run: str, number: int, path: str, origin: str, output: str) -> None:
        """Store an output as `encode_output` returns it. It is stored on disk when this method returns.

        Raises
        ------
        InputError
            If the journal cannot be written.
        """
        with explain_errors(self.path, WHAT):
            columns = (number, path, origin, output)
            # The seal covers the run's id, so that rows of this user's other journals are refused.
            digest = seal(self._key, "release", run, *columns)
            self._connection.execute("INSERT INTO release VALUES (?, ?, ?, ?, ?)", (*columns, digest))

    def releases(self, run: str, classes: Iterable[type[Any]] = ()) -> Mapping[int, StoredRelease]:
        """Return the stored releases by their numbers.

        Parameters
        ----------
        run
            The id of the run.
        classes
            The attrs classes and enumerations whose objects outputs may hold, as the plan's mechanisms declare them.

        Raises
        ------
        InputError
            If the journal cannot be read, or a row was changed.
        """
        found = {}
        for number, path, origin, output, digest in self._read_releases():
            self._require_sealed(digest, "release", run, number, path, origin, output)
            try:
                found[number] = StoredRelease(path, origin, from_json(parsed_json(output), classes))
            except DPFrameworkError as error:
                raise InputError(f"{self.path}: an output cannot be read: it {error}") from None
        return found

    def _read_releases(self) -> list[tuple[Any, ...]]:
        with explain_errors(self.path, WHAT):
            # All rows are fetched at once. After an error, an open cursor would keep the lock even after `close`.
            query = "SELECT number, path, origin, output, digest FROM release ORDER BY number"
            return self._connection.execute(query).fetchall()

    def _require_sealed(self, digest: Any, *columns: Any) -> None:
        """Refuse a row that the owner of the key did not write."""
        # The digest of a changed row may be a number, so `str` is needed. A number is refused too: it is not the seal.
        if not hmac.compare_digest(str(digest).encode("utf-8", "replace"), seal(self._key, *columns).encode()):
            raise journal_damage(self.path)

    def close(self) -> None:
        """Close the file and release its lock."""
        self._connection.close()

    def remove(self) -> None:
        """Close the journal and remove its file."""
        if os.name == "posix":  # removed while it is locked, so that no other process can begin to use it
            remove(self.path)
            self.close()
        else:
            self.close()
            remove(self.path)


@final
class RunJournal:
    """The journal of a run. If the run has no journal, the methods do nothing.

    Parameters
    ----------
    chain
        The chain of the ledger.
    at
        The file of the journal, which need not exist yet; None if the run has no journal.

    Attributes
    ----------
    disposable
        Whether nothing was charged or released, so that `leave` removes the file.
    """

    def __init__(self, chain: Chain, at: Path | None) -> None:
        self.at = at
        self.disposable = False
        self._chain = chain
        self._opened: Journal | None = None

    @property
    def opened(self) -> bool:
        """Whether this process has opened and locked the journal."""
        return self._opened is not None

    def open(self, *, make: bool) -> None:
        """Open the journal if it is not open yet. An interrupt (Ctrl-C) is delayed until the run can close the journal.

        Parameters
        ----------
        make
            Whether to make the file if it does not exist. If False, a missing journal stays closed.

        Raises
        ------
        InputError
            If another process has the journal open, or it cannot be used.
        """
        if self.at is None or self.opened or not (make or self.at.exists()):
            return
        self.disposable = make
        key = journal_key(self._chain, make=make)
        with delay_interrupts():
            self._opened = Journal(self.at, key)

    @property
    def owner(self) -> Owner | None:
        """The run to which the journal belongs; None if it belongs to no run yet, or is not open."""
        return None if self._opened is None else self._opened.owner

    def claim(self, owner: Owner) -> None:
        """Store which run's releases the journal will hold, if it belongs to no run yet."""
        if self._opened is not None and self._opened.owner is None:
            self._opened.claim(owner)
        self.disposable = False

    def releases(self, run: str, classes: Iterable[type[Any]]) -> Mapping[int, StoredRelease]:
        """Return the stored releases by their numbers (see `Journal.releases`)."""
        return {} if self._opened is None else self._opened.releases(run, classes)

    def keep(self, run: str, number: int, path: str, origin: str, output: str) -> None:
        """Store an output (see `Journal.keep`)."""
        if self._opened is not None:
            self._opened.keep(run, number, path, origin, output)

    def leave(self) -> None:
        """Close the journal if it is open, and remove it if it is disposable."""
        if self._opened is None:
            return
        with delay_interrupts():
            if self.disposable:
                self._opened.remove()
            else:
                self._opened.close()

    def remove(self) -> None:
        """Remove the file. The run must have ended and closed it."""
        if self.at is not None:
            remove(self.at)

    @contextlib.contextmanager
    def visited(self) -> Iterator[Journal | None]:
        """Open the journal for the `with` block, and yield it. Yield None if there is no such file."""
        if self.at is None or not self.at.exists():
            yield None
            return
        key = journal_key(self._chain, make=False)
        with contextlib.ExitStack() as leaving:
            with delay_interrupts():
                journal = Journal(self.at, key)
                leaving.callback(journal.close)
            yield journal


def require_as_left(run: str, charged: Sequence[str], kept: Mapping[int, StoredRelease], place: str) -> None:
    """Refuse to resume a run if its charges in the ledger do not match its outputs in the journal.

    Releases are made one at a time, so at most the last charge can be without an output.
    """
    paths = [one.path for one in kept.values()]
    whole = list(kept) == list(range(1, len(paths) + 1)) and paths == list(charged[: len(paths)])
    if not whole or len(charged) > len(paths) + 1:
        raise PlanRefused(
            f"run {run} cannot be resumed: the ledger holds {len(charged)} of its charges, {place} holds {len(paths)} "
            "of its outputs; one of the two is not as the run left it"
        )
