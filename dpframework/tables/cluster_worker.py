"""A worker of a cluster, which reads its own pieces of a table, keeps them, and counts their rows.

Every error is caught here, since a cluster's log shows the text of an error that escapes, and that text may quote a
row. The study's process learns only the kind of the error. If the error is an `InputError` from reading files, the
process gets its sentence, too. Counts are sums of integers, and all answers are sent as plain data (see
`cluster_worker_answers`).
"""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.errors import InputError
from dpframework.facts.installed_package_digests import package_form
from dpframework.facts.logical_descriptions_of_rows import Cases
from dpframework.facts.row_partitions import Cut
from dpframework.tables.cluster_worker_answers import (
    AbsentAnswer,
    Answer,
    FailureAnswer,
    ReadAnswer,
    ShuffleAnswer,
    TallyAnswer,
    UnreachableAnswer,
    pack_answer,
)
from dpframework.tables.coded_table import Table
from dpframework.tables.encoded_row_blocks import Block
from dpframework.tables.in_process_engines import Mapped
from dpframework.tables.open_attribute_keys import add_counts
from dpframework.tables.output_suppression import silenced
from dpframework.tables.shuffle_by_id_hash import Shuffle
from dpframework.tables.shuffle_on_workers import ShuffledPieces, UnreachableError, WorkerPlace
from dpframework.tables.table_builder import RowFindings
from dpframework.tables.unread_table_files import Piece

T = TypeVar("T")

#: A worker and the study's process must have the same versions of these packages. They must also have the same Python,
#: and the same code of this package and its plugins.
COMPARED = ("numpy", "numba", "polars", "cloudpickle", "dask", "distributed")
_ERROR_PACKAGES = ("builtins", "dpframework")  # packages whose error classes may be named to the study's process


@attrs.frozen
class Derivation:
    """The origin of some rows, as parts of a cut or as the same rows with one more attribute.

    Attributes
    ----------
    source
        The number of the set of rows that these rows come from.
    results
        The numbers of the sets of rows that were made, in the order of the parts.
    by
        The cut, which divides rows into parts by their attributes, or the cases of a new attribute.
    attribute
        The new attribute; None for a cut.
    """

    source: int
    results: tuple[int, ...]
    by: Cut
    attribute: Attribute | None = None


@attrs.frozen
class Mask:
    """Which rows of a piece are in a sample, as one bit for each row that the sample is drawn from.

    Attributes
    ----------
    bits
        The bits, packed into bytes.
    rows
        The number of bits.
    """

    bits: bytes
    rows: int

    @classmethod
    def of(cls, mask: NDArray[np.bool_]) -> Mask:
        """Return a mask as bits."""
        return cls(np.packbits(mask).tobytes(), len(mask))

    def mask(self) -> NDArray[np.bool_]:
        """Return the mask as booleans, shape (rows,)."""
        return np.unpackbits(np.frombuffer(self.bits, dtype=np.uint8), count=self.rows).view(np.bool_)


@attrs.frozen
class SampleOf:
    """The origin of sampled rows. A worker is told which of its own rows are in the sample before it counts them.

    Attributes
    ----------
    source
        The number of the set of rows that the sample was drawn from.
    sample
        The number of the sample.
    """

    source: int
    sample: int


@attrs.frozen
class CountRequest:
    """A request for counts of some rows. A worker that does not have the rows makes them first.

    Attributes
    ----------
    rows
        The number of the set of rows.
    lineage
        How the rows were made, step by step from the whole table.
    functions
        Functions that take a `Block` and return counts.
    """

    rows: int
    lineage: tuple[Derivation | SampleOf, ...]
    functions: tuple[Callable[[Block], Any], ...]


@final
class ClusterWorker:
    """Reads pieces of tables, holds them in a worker's memory, and counts their rows.

    It is an actor of Dask, so its methods, except for `hand`, are called one at a time.
    """

    def __init__(self) -> None:
        # With this engine, each part of a table takes at most one bit per row of the table.
        self._engine = Mapped()
        self._pieces: dict[tuple[int, int], dict[int, Any]] = {}  # by table and piece: sets of rows by their number
        self._shuffled = ShuffledPieces()
        self._gone: dict[int, set[int]] = {}  # by table: numbers of sets of rows that nobody will ask for again

    def versions(self, packages: Sequence[str]) -> bytes:
        """Return the packed result of `versions` on this worker."""
        return _guard(lambda: versions(packages))

    def read(self, table: int, piece: int, given: bytes) -> bytes:
        """Read a piece of a table and keep it.

        `given` holds the `Piece`, the key of its digest, and numbers of sets of rows that nobody will ask for again.
        """

        def reading(described: Piece, key: bytes, gone: Iterable[int]) -> ReadAnswer:
            if not isinstance(described, Piece):
                raise TypeError("a piece of a table is expected")
            return self._keep(table, piece, described.read(), key, gone)

        return _guard(reading, given, telling=True)

    def _keep(
        self, table: int, piece: int, read: tuple[Table, RowFindings], key: bytes, gone: Iterable[int]
    ) -> ReadAnswer:
        rows, found = read
        self._pieces[table, piece] = {table: self._engine.load(rows)}
        self._gone.setdefault(table, set()).update(gone)
        return ReadAnswer(found, _digest(rows, key))

    def spread(self, table: int, piece: int, given: bytes) -> bytes:
        """Spread a piece of a table over buckets (see `Shuffle`).

        `given` holds the `Shuffle`, the `Piece`, and the number of buckets.
        """

        def spreading(how: Shuffle[Any], described: Piece, buckets: int) -> ShuffleAnswer:
            return ShuffleAnswer(self._shuffled.spread(table, piece, how, described, buckets))

        return _guard(spreading, given, telling=True)

    def gather(self, table: int, bucket: int, given: bytes) -> bytes:
        """Gather a bucket from all workers.

        `given` holds the `Shuffle`, and the `WorkerPlace` of each worker with its pieces.
        """

        def gathering(how: Shuffle[Any], places: Sequence[WorkerPlace]) -> ShuffleAnswer:
            return ShuffleAnswer(self._shuffled.gather(table, bucket, how, places))

        return _guard(gathering, given)

    def settle(self, table: int, piece: int, given: bytes) -> bytes:
        """Make the final rows of a piece and keep them.

        `given` holds the `Shuffle`, the `Piece`, the key of its digest, numbers of sets of rows that nobody will ask
        for again, and the `WorkerPlace` of each worker with its bucket.
        """

        def settling(
            how: Shuffle[Any], described: Piece, key: bytes, gone: Iterable[int], places: Sequence[WorkerPlace]
        ) -> ReadAnswer:
            return self._keep(table, piece, self._shuffled.settle(table, piece, how, described, places), key, gone)

        return _guard(settling, given, telling=True)

    async def hand(self, *given: Any) -> list[bytes] | None:
        """Return messages for another worker (see `ShuffledPieces.hand`), even while this worker waits for others."""
        return self._shuffled.hand(*given)

    def handed(self, *given: Any) -> list[bytes] | None:
        """Return messages for this worker itself (see `ShuffledPieces.hand`)."""
        return self._shuffled.hand(*given)

    def end(self, table: int) -> bytes:
        """Forget the messages of a table's shuffle."""
        self._shuffled.end(table)
        return pack_answer(table)

    def counts(self, table: int, pieces: Sequence[int], given: bytes) -> bytes:
        """Return each function's counts, summed over the rows of some pieces.

        `given` holds a tuple of `CountRequest`, whose sums are returned one after another, and the numbers of sets of
        rows that nobody will ask for again.
        """

        def count(rows: Any, functions: Sequence[Callable[[Block], Any]]) -> list[NDArray[Any]]:
            return [_integers(one) for one in self._engine.counts(rows, functions)] if functions else []

        def counting(asked: Sequence[CountRequest], dropped: Iterable[int]) -> list[NDArray[Any]] | AbsentAnswer:
            totals: list[NDArray[Any]] | None = None
            for own in self._of_pieces(table, pieces, asked, dropped, count):
                if own is None:
                    return AbsentAnswer()
                totals = own if totals is None else [a + b for a, b in zip(totals, own, strict=True)]
            return totals or []

        return _guard(counting, given)

    def tally(self, table: int, pieces: Sequence[int], given: bytes) -> bytes:
        """Return each text's count, summed over functions and over the rows of some pieces. `given`: see `counts`."""

        def tally(rows: Any, functions: Sequence[Callable[[Block], Any]]) -> list[dict[str, int]]:
            return [self._engine.tally(rows, function) for function in functions]

        def tallying(asked: Sequence[CountRequest], dropped: Iterable[int]) -> TallyAnswer | AbsentAnswer:
            found = list(self._of_pieces(table, pieces, asked, dropped, tally))
            whole = [one for own in found if own is not None for one in own]
            return AbsentAnswer() if None in found else TallyAnswer(add_counts(whole))

        return _guard(tallying, given)

    def _of_pieces(
        self,
        table: int,
        pieces: Sequence[int],
        asked: Sequence[CountRequest],
        dropped: Iterable[int],
        count: Callable[[Any, Sequence[Callable[[Block], Any]]], list[T]],
    ) -> Iterator[list[T] | None]:
        """Yield what `count` finds in the requested rows of each piece.

        Rows that are not held are made first, even if no function counts them. If this worker does not hold a piece or
        a sample, yield None and nothing else.
        """
        self._gone.setdefault(table, set()).update(dropped)
        if any(not self._has(table, piece, one) for piece in pieces for one in asked):
            yield None
            return
        for piece in pieces:
            held = self._pieces[table, piece]
            self._forget(held, dropped)
            own: list[T] = []
            for one in asked:
                own += count(self._make(held, one.rows, one.lineage), one.functions)
            self._forget(held, self._gone[table] & held.keys())  # also sets of rows that were made again
            yield own

    def sample(self, table: int, piece: int, given: bytes) -> bytes:
        """Make a sample of some rows of a piece.

        `given` holds a `CountRequest` that names the rows, the sample's number, and its `Mask`.
        """

        def sampling(asked: CountRequest, number: int, packed: Mask) -> AbsentAnswer | int:
            mask = packed.mask()
            if not self._has(table, piece, asked):
                return AbsentAnswer()
            held, start = self._pieces[table, piece], 0

            def draw(rows: int) -> NDArray[np.bool_]:
                nonlocal start
                start += rows
                return np.asarray(mask[start - rows : start])

            held[number] = self._engine.sample(self._make(held, asked.rows, asked.lineage), draw)
            return int(number)

        return _guard(sampling, given)

    def drop(self, table: int) -> None:
        """Forget all pieces of a table."""
        for place in [place for place in self._pieces if place[0] == table]:
            del self._pieces[place]
        self._shuffled.end(table)
        self._gone.pop(table, None)

    def _forget(self, held: dict[int, Any], numbers: Iterable[int]) -> None:
        """Forget some sets of rows of a piece."""
        for number in numbers:
            held.pop(number, None)

    def _has(self, table: int, piece: int, asked: CountRequest) -> bool:
        """Tell whether this worker holds a piece, and all samples that the requested rows come from."""
        held = self._pieces.get((table, piece))
        samples = [step.sample for step in asked.lineage if isinstance(step, SampleOf)]
        return held is not None and all(number in held for number in samples)

    def _make(self, held: dict[int, Any], number: int, lineage: Sequence[Derivation | SampleOf]) -> Any:
        """Return a set of rows of a piece by its number. If it is not held, make it from the rows it comes from."""
        if number not in held:
            step = next(one for one in lineage if isinstance(one, Derivation) and number in one.results)
            source = self._make(held, step.source, lineage)
            if step.attribute is not None and isinstance(step.by, Cases):
                parts: Sequence[Any] = [self._engine.derive(source, step.attribute, step.by)]
            else:
                parts = self._engine.split(source, step.by)
            held.update(zip(step.results, parts, strict=True))
        return held[number]


def versions(packages: Sequence[str]) -> Mapping[str, str]:
    """Return the versions of Python and of `COMPARED`, the byte order, and a digest of each package's code, by name."""
    found = {"python": platform.python_version(), "byte order": sys.byteorder}
    for name in COMPARED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    for name in packages:
        try:
            __import__(name)
            found[f"the code of {name}"] = package_form(name)["digest"]
        except ImportError:
            found[f"the code of {name}"] = "not installed"
    return found


def _integers(counts: NDArray[Any]) -> NDArray[Any]:
    """Return counts if they are integers. The rounding of a sum of floats would depend on how rows are spread."""
    if counts.dtype.kind not in "iu":
        raise InputError("counts must be integers")
    return counts


def _digest(table: Table, key: bytes) -> bytes:
    digest = hashlib.blake2b(key=key)
    for array in (*table.columns, *(table.values[name] for name in sorted(table.values))):
        digest.update(f"{array.shape} {array.dtype}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    for name in sorted(table.keys):
        digest.update(np.ascontiguousarray(table.keys[name].codes).data)
        digest.update("\n".join(table.keys[name].book.texts).encode())  # no key holds a line break
    return digest.digest()


def _guard(function: Callable[..., Answer], given: bytes | None = None, *, telling: bool = False) -> bytes:
    """Return the packed result of a function that sees rows. If it fails, return only the kind of failure.

    `given` holds the function's arguments, pickled. Nothing that the function prints, warns or raises is shown. With
    `telling`, the sentence of an `InputError` is returned as well.
    """
    try:
        with silenced(streams=True):
            if given is None:
                return pack_answer(function())
            import cloudpickle

            return pack_answer(function(*cloudpickle.loads(given)))
    except UnreachableError:
        return pack_answer(UnreachableAnswer())
    except BaseException as error:  # the worker's log would show an error that escapes
        # Only classes of known packages are named, since a library may make a class and name it after a cell.
        known = type(error).__module__.partition(".")[0] in _ERROR_PACKAGES
        kind = type(error).__name__ if known else "an error of its own"
        return pack_answer(FailureAnswer(kind, error if telling and isinstance(error, InputError) else None))
