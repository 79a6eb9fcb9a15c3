"""An append-only SQLite file of entries. Each entry holds the hash of the entry before it.

This module stores entries durably and in order, and detects changed entries. `Records` interprets their content.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, final

import attrs

from dpframework.facts.errors import InputError, PlanRefused
from dpframework.facts.json_reader_and_schema_check import parsed_json
from dpframework.facts.phrases import count_text
from dpframework.ledger.ledger_pin_file import Pin
from dpframework.ledger.sqlite_connection import connect, explain_errors

APPLICATION = 0x4450464C  # "DPFL" in ASCII: the application id in the header of the SQLite file
FORMAT = 3

_OBJECTS = (
    """CREATE TABLE entry (
    number INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    kind TEXT NOT NULL,
    content TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
)""",
    """CREATE TRIGGER never_changed BEFORE UPDATE ON entry
BEGIN SELECT RAISE(ABORT, 'an entry is never changed'); END""",
    """CREATE TRIGGER never_removed BEFORE DELETE ON entry
BEGIN SELECT RAISE(ABORT, 'an entry is never removed'); END""",
    # INSERT OR REPLACE would remove an entry without firing the trigger above.
    """CREATE TRIGGER only_appended BEFORE INSERT ON entry
WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM entry)
BEGIN SELECT RAISE(ABORT, 'an entry is only appended'); END""",
)


class LedgerTampered(PlanRefused):
    """The ledger was changed, cut or replaced, or lacks a signature (exit code 1).

    Nothing is charged to such a ledger.
    """


@final
@attrs.frozen
class Head:
    """The number and hash of a chain's last entry.

    If you note both, you can check later that the chain was not cut or changed.
    """

    number: int = 0
    hash: str = "0" * 64

    def __str__(self) -> str:
        return f"{self.hash} ({count_text(self.number, 'entry', 'entries')})"


START = Head()


@final
@attrs.frozen
class Entry:
    """One entry of a chain: its time, kind and content, its own hash, and the hash of the entry before it."""

    number: int
    time: str
    kind: str
    content: Mapping[str, Any]
    previous: str
    hash: str

    @property
    def head(self) -> Head:
        """The head of a chain that ends with this entry."""
        return Head(self.number, self.hash)


#: The one form of an entry's time, in UTC.
_TIME = "%Y-%m-%dT%H:%M:%SZ"


def canonical(form: Any) -> str:
    """Return the only JSON text that is accepted for an entry's content: keys sorted, no spaces, ASCII only."""
    return json.dumps(form, sort_keys=True, separators=(",", ":"), allow_nan=False)


def hash_entry(previous: str, number: int, time: str, kind: str, content: str) -> str:
    """Return an entry's hash: the SHA-256, in hex, of a JSON array that holds these five values."""
    return hashlib.sha256(canonical([previous, number, time, kind, content]).encode()).hexdigest()


@final
class Transaction:
    """A transaction that reads a chain or appends to it. Other processes cannot change the chain in the meantime."""

    def __init__(self, connection: sqlite3.Connection, path: Path, pin: Pin | None) -> None:
        self._connection, self._path, self._pin = connection, path, pin
        self.head = START

    def read(self, after: Head = START) -> list[Entry]:
        """Return the entries after a head. The hash of each entry and its link to the entry before are checked.

        Raises
        ------
        LedgerTampered
            If an entry was changed, moved or removed, or if the given head or the pin's head is not in the chain.
        """
        rows = self._connection.execute(
            "SELECT number, time, kind, content, previous, hash FROM entry WHERE number >= ? ORDER BY number",
            (after.number,),
        )
        self.head = after
        if after.number:
            row = rows.fetchone()
            if row is None or (row[0], row[5]) != (after.number, after.hash):
                raise LedgerTampered(f"{self._path}: entry {after.number} is not the one that was there before")
        entries = []
        for row in rows:
            number, time, kind, content, previous, claimed = row
            expected = self.head.number + 1
            if number != expected:
                raise LedgerTampered(f"{self._path}: entry {expected} is missing")
            if previous != self.head.hash:
                before = f"the hash of entry {expected - 1}" if self.head.number else "the start of a ledger"
                raise LedgerTampered(f"{self._path}: entry {expected} was changed: it does not follow {before}")
            if not all(isinstance(value, str) for value in row[1:]) or claimed != hash_entry(
                previous, number, time, kind, content
            ):
                raise LedgerTampered(f"{self._path}: entry {expected} was changed: it does not fit its hash")
            try:
                held = parsed_json(content)
                # Only the canonical text is accepted. Other texts, such as one that has a key twice, could be read in
                # two ways, so that two programs would see two ledgers with the same hash.
                # The time is a time, since ledgers and reports quote it: a sentence there would be taken for theirs.
                ours = canonical(held) == content and datetime.datetime.fromisoformat(time).strftime(_TIME) == time
            except (InputError, ValueError):
                ours = False
            if not ours:
                raise LedgerTampered(f"{self._path}: entry {expected} is not one that dpframework makes")
            entries.append(Entry(number, time, kind, held, previous, claimed))
            self.head = entries[-1].head
        # The pin is compared only when the chain is read from its start. This always happens first: callers that read
        # on from a later head have read the chain from its start before.
        broken = self._pin.broken_by(entries) if self._pin is not None and after == START else None
        if broken is not None:
            raise LedgerTampered(f"{self._path}: {broken}")
        return entries

    def append(self, kind: str, content: Mapping[str, Any]) -> Entry:
        """Append an entry after the head that `read` has set. It is stored on disk when the transaction ends."""
        number, previous = self.head.number + 1, self.head.hash
        time = datetime.datetime.now(datetime.UTC).strftime(_TIME)
        text = canonical(content)
        entry = Entry(number, time, kind, content, previous, hash_entry(previous, number, time, kind, text))
        self._connection.execute(
            "INSERT INTO entry (number, time, kind, content, previous, hash) VALUES (?, ?, ?, ?, ?, ?)",
            (number, time, kind, text, previous, entry.hash),
        )
        self.head = entry.head
        return entry


@final
class Chain:
    """The file of a ledger: a chain of entries.

    Parameters
    ----------
    path
        A file that `Chain.create` made.
    pin
        The owner's pin, a note of the last entry kept elsewhere. Each reading from the first entry is compared with the
        pin, and each change updates the pin.

    Raises
    ------
    InputError
        If there is no such file, if it is not a ledger, or if another version of dpframework made its format.
    LedgerTampered
        If the table of entries or its triggers were changed.
    """

    def __init__(self, path: str | os.PathLike[str], pin: Pin | None = None) -> None:
        self.path, self.pin = Path(path), pin
        if not self.path.exists():
            raise InputError(f"{self.path}: there is no such ledger; 'dpframework ledger open' makes one")
        with self.reading():
            pass

    @classmethod
    def create(cls, path: str | os.PathLike[str], first: Mapping[str, Any], pin: Pin | None = None) -> Chain:
        """Make the file with a first entry. If the file exists and is a ledger, open it.

        Raises
        ------
        InputError
            If the file's folder does not exist, if the file cannot be written, or if it exists and is not a ledger.
        LedgerTampered
            If the file is missing and the pin notes a ledger, or if an existing ledger was changed.
        """
        path = Path(path)
        if pin is not None and pin.holds_a_ledger and not path.exists():
            raise LedgerTampered(f"{path}: is gone, and {pin.path} notes a ledger; give a new ledger a new pin")
        if not path.absolute().parent.is_dir():
            raise InputError(f"{path}: its parent folder does not exist; make it first")
        new = cls.__new__(cls)
        new.path, new.pin = path, pin
        with new._transact("BEGIN IMMEDIATE", create=True) as connection:
            # One transaction makes all objects. If an earlier process was killed in it, the file is empty, and is
            # filled now.
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
                for text in (*_OBJECTS, f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {FORMAT}"):
                    connection.execute(text)
                Transaction(connection, path, None).append("ledger", {"format": FORMAT, **first})
            new._require_ours(connection)
        if pin is not None:
            with new.reading() as transaction:
                entries = transaction.read()
            pin.note(entries[0].hash, entries[-1].head)
        return new

    def _require_ours(self, connection: sqlite3.Connection) -> None:
        """Refuse a file that is not a ledger, or whose table or triggers were changed.

        A view in place of the table, or an additional trigger, could hide entries or drop the entries that a run
        appends.
        """
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
            raise InputError(f"{self.path}: is not a ledger")
        if version != FORMAT:
            raise InputError(
                f"{self.path}: ledger format {version} cannot be read; this dpframework reads format {FORMAT}"
            )
        found = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
        ours = []
        for sql in _OBJECTS:
            _, kind, name, *_ = sql.split()
            ours.append((kind.lower(), name, "entry", sql))  # as SQLite lists its objects
        if sorted(found, key=repr) != sorted(ours, key=repr):
            raise LedgerTampered(f"{self.path}: the table of entries, or a trigger that protects it, was changed")

    @contextlib.contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Yield a transaction that reads the chain as it is at one moment."""
        with self._transact("BEGIN") as connection:
            self._require_ours(connection)
            yield Transaction(connection, self.path, self.pin)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Yield a transaction that may append.

        No other process can write meanwhile. The transaction is undone if the `with` block fails.
        """
        with self._transact("BEGIN IMMEDIATE") as connection:
            self._require_ours(connection)
            transaction = Transaction(connection, self.path, self.pin)
            yield transaction
            (identity,) = connection.execute("SELECT hash FROM entry WHERE number = 1").fetchone()
        # The pin is written after the ledger. If the process is killed in between, the pin holds an older head, which
        # is still in the chain. If the pin were written first, it could note an entry that the ledger never got, and
        # the ledger would look cut.
        if self.pin is not None:
            self.pin.note(identity, transaction.head)

    @contextlib.contextmanager
    def _transact(self, begin: str, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """Yield a new connection within one transaction. It is closed at the end, so that no later fork inherits it."""
        with explain_errors(self.path, "ledger"), contextlib.closing(connect(self.path, create=create)) as connection:
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
