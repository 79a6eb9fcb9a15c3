"""An append-only file of entries, each with the hash of the one before it (SQLite).

What an entry means is not known here: this module keeps entries durably, in order, and sees when one was changed.
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
from dpframework.ledger.sqlite import connect, explained

APPLICATION = 0x4450464C  # "DPFL", in SQLite's header: what the file is
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
    # REPLACE would remove an entry without telling the trigger above.
    """CREATE TRIGGER only_appended BEFORE INSERT ON entry
WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM entry)
BEGIN SELECT RAISE(ABORT, 'an entry is only appended'); END""",
)


class LedgerTampered(PlanRefused):
    """A ledger that is not as it was written (exit code 1): nothing is charged to it."""


@final
@attrs.frozen
class Head:
    """The last entry of a chain, by its number and hash: who has noted it sees whether the chain was cut or redone."""

    number: int = 0
    hash: str = "0" * 64

    def __str__(self) -> str:
        """Write both."""
        return f"{self.hash} ({self.number} entries)" if self.number != 1 else f"{self.hash} (1 entry)"


START = Head()


@final
@attrs.frozen
class Entry:
    """One entry: when it was made, what it records, and the two hashes that chain it."""

    number: int
    time: str
    kind: str
    content: Mapping[str, Any]
    previous: str
    hash: str

    @property
    def head(self) -> Head:
        """The head of a chain that ends here."""
        return Head(self.number, self.hash)


def canonical(form: Any) -> str:
    """Write JSON in one way only: keys sorted, no spaces, ASCII."""
    return json.dumps(form, sort_keys=True, separators=(",", ":"), allow_nan=False)


def chained(previous: str, number: int, time: str, kind: str, content: str) -> str:
    """Return an entry's hash: SHA-256, in hex, of the JSON array of the hash before it and its four columns."""
    return hashlib.sha256(canonical([previous, number, time, kind, content]).encode()).hexdigest()


@final
class Transaction:
    """One look at a chain, or one change of it: nobody else writes before it ends."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path
        self.head = START

    def read(self, after: Head = START) -> list[Entry]:
        """Return the entries after a head, all of them checked against their hashes and that head.

        Raises
        ------
        LedgerTampered
            If an entry was changed, moved or removed, or the head is no longer in the chain.
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
            entries.append(self._checked(row))
            self.head = entries[-1].head
        return entries

    def _checked(self, row: tuple[Any, ...]) -> Entry:
        """Return the entry of the row that follows the head."""
        number, time, kind, content, previous, claimed = row
        expected = self.head.number + 1
        if number != expected:
            raise LedgerTampered(f"{self._path}: entry {expected} is missing")
        if previous != self.head.hash:
            before = f"the hash of entry {expected - 1}" if self.head.number else "the start of a ledger"
            raise LedgerTampered(f"{self._path}: entry {expected} was changed: it does not follow {before}")
        if not all(isinstance(value, str) for value in row[1:]) or claimed != chained(
            previous, number, time, kind, content
        ):
            raise LedgerTampered(f"{self._path}: entry {expected} was changed: it does not fit its hash")
        try:
            held = json.loads(content)
        except (ValueError, RecursionError):
            raise LedgerTampered(f"{self._path}: entry {expected} is not one that dpframework makes") from None
        return Entry(number, time, kind, held, previous, claimed)

    def append(self, kind: str, content: Mapping[str, Any]) -> Entry:
        """Add an entry after the head, which `read` has moved to the end; on the disk once the transaction ends."""
        number, previous = self.head.number + 1, self.head.hash
        time = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        text = canonical(content)
        entry = Entry(number, time, kind, content, previous, chained(previous, number, time, kind, text))
        self._connection.execute(
            "INSERT INTO entry (number, time, kind, content, previous, hash) VALUES (?, ?, ?, ?, ?, ?)",
            (number, time, kind, text, previous, entry.hash),
        )
        self.head = entry.head
        return entry

    def require_untouched(self) -> None:
        """Refuse a file whose table, or what protects it, is not as it was made.

        Raises
        ------
        LedgerTampered
            If it was changed.
        """
        made = self._connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        if sorted(sql for (sql,) in made) != sorted(_OBJECTS):
            raise LedgerTampered(f"{self._path}: the table of entries, or a trigger that protects it, was changed")


@final
class Chain:
    """The file.

    Parameters
    ----------
    path
        An existing file that `Chain.create` made.

    Raises
    ------
    InputError
        If there is no such file, it is something else, or another dpframework's.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise InputError(f"{self.path}: there is no such ledger; 'dpframework ledger open' makes one")
        with self._begun("BEGIN") as connection:
            self._require_ours(connection)

    @classmethod
    def create(cls, path: str | os.PathLike[str], first: Mapping[str, Any]) -> Chain:
        """Make the file with a first entry, if there is none yet.

        Raises
        ------
        InputError
            If it cannot be written, or is something else.
        """
        path = Path(path)
        if not path.absolute().parent.is_dir():
            raise InputError(f"{path}: its parent folder does not exist; make it first")
        new = cls.__new__(cls)
        new.path = path
        with new._begun("BEGIN IMMEDIATE", create=True) as connection:
            # In one transaction: a file that was begun and never finished is empty, and is made here again.
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
                for text in (*_OBJECTS, f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {FORMAT}"):
                    connection.execute(text)
                Transaction(connection, path).append("ledger", {"format": FORMAT, **first})
            new._require_ours(connection)
        return new

    def _require_ours(self, connection: sqlite3.Connection) -> None:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
            raise InputError(f"{self.path}: is not a ledger")
        if version != FORMAT:
            raise InputError(
                f"{self.path}: ledger format {version} cannot be read; this dpframework reads format {FORMAT}"
            )

    @contextlib.contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Yield a look at the chain: all of one moment."""
        with self._begun("BEGIN") as connection:
            yield Transaction(connection, self.path)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Yield a change that nobody else can get in between; durable once the block ends well, else undone."""
        with self._begun("BEGIN IMMEDIATE") as connection:
            yield Transaction(connection, self.path)

    @contextlib.contextmanager
    def _begun(self, begin: str, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """Yield a connection of its own within one transaction: none is left open to be forked or forgotten."""
        with (
            explained(self.path, "ledger"),
            contextlib.closing(connect(self.path, create=create)) as connection,
        ):
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
