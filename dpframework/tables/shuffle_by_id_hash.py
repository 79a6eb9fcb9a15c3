"""Read a table in pieces, although the rows of one person may lie in several of them.

How a row is treated may depend on all rows with its id. So each piece of the table sends its facts about each id to a
bucket, and a hash of the exact id chooses the bucket. Then one bucket knows all rows of an id, wherever they lie, and
it answers each piece. There are three steps:

1. `spread` reads a piece, and returns a message to each bucket.
2. `gather` takes a bucket's messages from all pieces, in the order of the table, and returns an answer to each piece.
3. `settle` takes the answers of all buckets to a piece, and returns the piece's rows of the table.

The rows are the same as from `read_table`, whatever the number of pieces and buckets. Messages and answers hold ids and
cells. They pass between the processes that read, and go nowhere else.

The hash uses the secret key of the table, so that nobody who writes ids can send them all to the same bucket. Which
bucket an id is in does not change the rows. The hash must be the same on all machines. The faster hashes of dataframes
are not, so a cryptographic hash is used.
"""

from __future__ import annotations

import abc
import enum
import hashlib
import io
import itertools
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import DoesNotFit
from dpframework.facts.hidden_fields import hide_fields
from dpframework.facts.schema import Schema
from dpframework.tables.column_encoding import Unfit, require_fit
from dpframework.tables.ids import Ids, missing_ids, unfit_ids
from dpframework.tables.table_builder import RowFindings, TableBuilder

if TYPE_CHECKING:
    import polars as pl

    from dpframework.tables.coded_table import Table
    from dpframework.tables.unread_table_files import Piece, TableFiles

S = TypeVar("S")


class IdFinding(enum.Enum):
    """A fact about ids that decides whether the strict policy, `OutOfDomain.ERROR`, refuses the table."""

    UNFIT = "unfit"
    """A cell holds a value that cannot be an id."""
    MISSING = "missing"
    """A row has no id."""
    TWICE = "twice"
    """Two rows of a view have the same id."""
    MATCHED = "matched"
    """Two views have a common id that occurs once in each. Without such an id, the table is refused."""


@attrs.frozen(repr=False, field_transformer=hide_fields)
class ShuffleFindings:
    """Facts about a piece or a bucket by which the strict policy, `OutOfDomain.ERROR`, may refuse the table (private).

    Attributes
    ----------
    ids
        Findings about ids, each with the number of its view: 0 for the left view or the only one, 1 for the right view.
    unfit
        Pairs of an attribute's name and a way in which some of its cells lie outside the schema.
    """

    ids: frozenset[tuple[IdFinding, int]] = frozenset()
    unfit: frozenset[tuple[str, Unfit]] = frozenset()

    def __repr__(self) -> str:
        """Show no finding."""
        return "ShuffleFindings(rows are private)"

    def __or__(self, other: ShuffleFindings) -> ShuffleFindings:
        """Return the findings of both."""
        return ShuffleFindings(self.ids | other.ids, self.unfit | other.unfit)


@attrs.frozen(eq=False, repr=False, field_transformer=hide_fields)
class SpreadPiece(Generic[S]):
    """The result of reading a piece.

    Attributes
    ----------
    messages
        One message to each bucket.
    state
        The facts that `settle` will need about the piece.
    found
        The findings in the piece.
    """

    messages: list[bytes]
    state: S
    found: ShuffleFindings = ShuffleFindings()

    def __repr__(self) -> str:
        """Show no row and no count."""
        return "SpreadPiece(rows are private)"


@attrs.frozen(repr=False, field_transformer=hide_fields)
class Shuffle(abc.ABC, Generic[S]):
    """The way in which pieces of a table become its rows. It holds no row, and is sent to the processes that read.

    Attributes
    ----------
    how
        The options by which the table is read.
    name
        The name of the table in errors, or the names of the left and the right view.
    pieces
        The number of pieces.
    key
        The secret key of the hashes that choose rows and buckets.
    """

    how: TableFiles
    name: tuple[str, ...]
    pieces: int
    key: bytes

    @abc.abstractmethod
    def spread(self, piece: Piece, buckets: int) -> SpreadPiece[S]:
        """Read a piece, and return its message to each bucket.

        Raises
        ------
        InputError
            If the piece cannot be read. The sentence shows nothing of its rows.
        """

    @abc.abstractmethod
    def gather(self, messages: Sequence[bytes]) -> tuple[list[bytes], ShuffleFindings]:
        """Return a bucket's answer to each piece, and its findings, given the messages of all pieces."""

    @abc.abstractmethod
    def settle(self, piece: Piece, state: S, answers: Sequence[bytes]) -> tuple[Table, RowFindings]:
        """Return a piece's rows of the table and the findings about them, given the answers of all buckets.

        Raises
        ------
        InputError
            If the piece has changed since it was spread, or cannot be read.
        """

    def _settle(self, builder: TableBuilder) -> tuple[Table, RowFindings]:
        """Return the rows of a builder, and the findings about them."""
        found = builder.found
        return builder.part(self.how.unit, self.key), found

    def require(self, found: ShuffleFindings) -> None:
        """Refuse a table if the findings of its pieces and buckets show that `read_table` would refuse it.

        Raises
        ------
        DoesNotFit
            If the policy is strict, and refuses something in the findings.
        """
        if self.strict:
            self._require(found)

    def _require(self, found: ShuffleFindings) -> None:
        self._require_ids(found, 0, f"{self.name[0]}: the id column '{self.id}'")

    def _require_ids(self, found: ShuffleFindings, side: int, what: str) -> None:
        for one, says in ((IdFinding.UNFIT, unfit_ids), (IdFinding.MISSING, missing_ids)):
            if (one, side) in found.ids:
                raise DoesNotFit(says(what))

    @property
    def id(self) -> str:
        """The name of the column of ids."""
        return self.how.unit.id or ""

    @property
    def strict(self) -> bool:
        """Whether the policy refuses a table with cells that do not fit."""
        return self.how.out_of_domain is OutOfDomain.ERROR

    def __repr__(self) -> str:
        """Show no key."""
        return f"{type(self).__name__}({', '.join(self.name)})"


def findings_of(ids: Ids, side: int = 0) -> frozenset[tuple[IdFinding, int]]:
    """Return the findings about the ids of a piece. `side` is the number of the piece's view."""
    there = ((IdFinding.UNFIT, ids.any_unfit), (IdFinding.MISSING, ids.any_missing))
    return frozenset((one, side) for one, is_there in there if is_there)


def require_all_fit(schema: Schema, found: ShuffleFindings, name: str) -> None:
    """Refuse cells outside the schema. The sentence does not depend on the order of the rows.

    Raises
    ------
    DoesNotFit
        If there is such a cell.
    """
    for attribute in schema.columns:
        ways = {way for of, way in found.unfit if of == attribute.name}
        if ways:
            require_fit(attribute, ways, f"{name}: attribute '{attribute.name}'")


def numbers_by_hash(ids: pl.Series, key: bytes, number: int, use: bytes) -> NDArray[np.intp]:
    """Return a number below `number` for each id. It depends on the id, the key and the use alone.

    Parameters
    ----------
    ids
        Exact ids (see `ids`), none of them null.
    key
        The key of the table.
    number
        How many numbers there are to choose from.
    use
        The purpose of the numbers, in at most 16 bytes. Numbers for different uses are independent.

    Examples
    --------
    >>> import polars as pl
    >>> numbers_by_hash(pl.Series(["ann", "bob", "eve", "ann"]), b"key", 4, b"bucket")
    array([3, 2, 3, 3])
    """
    keyed, hashed = hashlib.blake2b(digest_size=8, key=key, person=use), []
    for one in ids:
        own = keyed.copy()  # a third faster than hashing the key again
        own.update(one.encode())
        hashed.append(own.digest())
    return (np.frombuffer(b"".join(hashed), dtype="<u8") % np.uint64(number)).astype(np.intp)


def pack(parts: Sequence[bytes]) -> bytes:
    """Return several messages as one. It begins with their number and their lengths, each in eight bytes.

    Examples
    --------
    >>> unpack(pack([b"ann", b"", b"bob"]))
    [b'ann', b'', b'bob']
    """
    return b"".join((struct.pack(f"<{len(parts) + 1}Q", len(parts), *map(len, parts)), *parts))


def unpack(message: bytes) -> list[bytes]:
    """Return the messages that `pack` joined."""
    (number,) = struct.unpack_from("<Q", message)
    lengths = struct.unpack_from(f"<{number}Q", message, 8)
    ends = itertools.accumulate(lengths, initial=8 + 8 * number)
    return [message[start:end] for start, end in itertools.pairwise(ends)]


def pack_frames(*frames: pl.DataFrame) -> bytes:
    """Return frames as a message."""
    messages = []
    for frame in frames:
        written = io.BytesIO()
        frame.write_ipc_stream(written)
        messages.append(written.getvalue())
    return pack(messages)


def frames_of(message: bytes) -> list[pl.DataFrame]:
    """Return the frames of a message."""
    import polars as pl

    return [pl.read_ipc_stream(io.BytesIO(frame)) for frame in unpack(message)]
