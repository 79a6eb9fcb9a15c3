"""Reading a table in pieces although the rows of one person lie in several of them.

What becomes of a row may follow from all rows with its id. So each piece of the table sends what it has of each id to
a bucket, which a hash of the exact id chooses, and the bucket answers each piece. All that is known of one id is in one
bucket then, wherever its rows lie:

1. `spread`: a piece is read, and becomes a message to each bucket;
2. `gather`: a bucket takes the messages of all pieces, in the order of the table, and becomes an answer to each piece;
3. `settle`: a piece, with the answers of all buckets, becomes rows of the table.

Rows are as `read_table` has them, whatever the number of pieces and buckets. Messages and answers hold ids and cells:
they pass between the processes that read, and go nowhere else.

The hash is keyed, by the key of the table, though any would do: nobody who writes ids can have them all in one bucket.
It is cryptographic, so that it is the same on all machines, as the faster ones of dataframes are not.
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

from dpframework.facts.errors import DoesNotFit
from dpframework.facts.policies import OutOfDomain
from dpframework.facts.schema import Schema
from dpframework.tables.encoding import Unfit, require_fit
from dpframework.tables.ids import Ids, missing_ids, unfit_ids
from dpframework.tables.table_builder import RowFindings, TableBuilder

if TYPE_CHECKING:
    import polars as pl

    from dpframework.tables.files import Piece, TableFiles
    from dpframework.tables.table import Table

S = TypeVar("S")


class IdFinding(enum.Enum):
    """Something about ids that a strict policy must know."""

    UNFIT = "unfit"
    """A cell holds a value that cannot be an id."""
    MISSING = "missing"
    """A row has no id."""
    TWICE = "twice"
    """Two rows of a view have the same id."""
    MATCHED = "matched"
    """Two views have an id in common, which occurs once in each."""


@attrs.frozen(repr=False)
class ShuffleFindings:
    """The findings of a piece, or a bucket, for a strict policy (private).

    Attributes
    ----------
    ids
        Findings about ids, each with the number of its view: 0, or 1 for the right one.
    unfit
        For attributes, by name, the ways in which cells do not fit the schema.
    """

    ids: frozenset[tuple[IdFinding, int]] = frozenset()
    unfit: frozenset[tuple[str, Unfit]] = frozenset()

    def __repr__(self) -> str:
        """Show no finding."""
        return "ShuffleFindings(rows are private)"

    def __or__(self, other: ShuffleFindings) -> ShuffleFindings:
        """Return the findings of both."""
        return ShuffleFindings(self.ids | other.ids, self.unfit | other.unfit)


@attrs.frozen(eq=False, repr=False)
class SpreadPiece(Generic[S]):
    """A piece that was read.

    Attributes
    ----------
    messages
        One to each bucket.
    state
        What `settle` needs to know again.
    found
        The findings.
    """

    messages: list[bytes]
    state: S
    found: ShuffleFindings = ShuffleFindings()

    def __repr__(self) -> str:
        """Show nothing."""
        return "SpreadPiece(rows are private)"


@attrs.frozen(repr=False)
class Shuffle(abc.ABC, Generic[S]):
    """How pieces of a table become its rows. It holds no row, and is sent to the processes that read.

    Attributes
    ----------
    how
        How the table is read.
    name
        What errors call it; the left and the right view's names where there are two.
    pieces
        How many pieces there are.
    key
        What rows are chosen by.
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
            If it cannot be read; one sentence that shows nothing of its rows.
        """

    @abc.abstractmethod
    def gather(self, messages: Sequence[bytes]) -> tuple[list[bytes], ShuffleFindings]:
        """Return a bucket's answer to each piece, given the message of each, and its findings."""

    @abc.abstractmethod
    def settle(self, piece: Piece, state: S, answers: Sequence[bytes]) -> tuple[Table, RowFindings]:
        """Return a piece's rows of the table, given the answer of each bucket, and the findings about them.

        Raises
        ------
        InputError
            If the piece was changed since it was spread.
        """

    def _settle(self, builder: TableBuilder) -> tuple[Table, RowFindings]:
        """Return the rows of a builder, and the findings about them."""
        found = builder.found
        return builder.part(self.how.unit, self.key), found

    def require(self, found: ShuffleFindings) -> None:
        """Refuse a table by the findings of all its pieces and buckets, as `read_table` does.

        Raises
        ------
        DoesNotFit
            If the policy is strict, and something was found.
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
        """The column of ids."""
        return self.how.unit.id or ""

    @property
    def strict(self) -> bool:
        """Whether the policy refuses what does not fit."""
        return self.how.out_of_domain is OutOfDomain.ERROR

    def __repr__(self) -> str:
        """Show no key."""
        return f"{type(self).__name__}({', '.join(self.name)})"


def findings_of(ids: Ids, side: int = 0) -> frozenset[tuple[IdFinding, int]]:
    """Return the findings about the ids of a piece."""
    there = ((IdFinding.UNFIT, ids.any_unfit), (IdFinding.MISSING, ids.any_missing))
    return frozenset((one, side) for one, is_there in there if is_there)


def require_all_fit(schema: Schema, found: ShuffleFindings, name: str) -> None:
    """Refuse cells that the schema does not hold, in one sentence whatever their order.

    Raises
    ------
    DoesNotFit
        If there are some.
    """
    for attribute in schema.columns:
        ways = {way for of, way in found.unfit if of == attribute.name}
        if ways:
            require_fit(attribute, ways, f"{name}: attribute '{attribute.name}'")


def numbers_by_hash(ids: pl.Series, key: bytes, number: int, use: bytes) -> NDArray[np.intp]:
    """Return a number below `number` for each id, which follows from the id alone; another one for another use.

    Parameters
    ----------
    ids
        Exact ids (see `ids`), none of them null.
    key
        Of the table.
    number
        How many numbers there are.
    use
        At most 16 bytes that name what the numbers are for.

    Examples
    --------
    >>> import polars as pl
    >>> numbers_by_hash(pl.Series(["ann", "bob", "eve", "ann"]), b"key", 4, b"bucket")
    array([3, 2, 3, 3])
    """
    keyed, hashed = hashlib.blake2b(digest_size=8, key=key, person=use), []
    for one in ids:
        own = keyed.copy()  # a third less time than with the key anew
        own.update(one.encode())
        hashed.append(own.digest())
    return (np.frombuffer(b"".join(hashed), dtype="<u8") % np.uint64(number)).astype(np.intp)


def pack(parts: Sequence[bytes]) -> bytes:
    """Return several messages as one, which begins with their number and lengths, in eight bytes each.

    Examples
    --------
    >>> unpack(pack([b"ann", b"", b"bob"]))
    [b'ann', b'', b'bob']
    """
    return b"".join((struct.pack(f"<{len(parts) + 1}Q", len(parts), *map(len, parts)), *parts))


def unpack(message: bytes) -> list[bytes]:
    """Return the messages of which `pack` made one."""
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
