"""A cluster's table as this process sees it: which worker holds each piece, and how each set of rows was made."""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from typing import Any, final

import attrs

from dpframework.facts.attributes import Attribute
from dpframework.facts.errors import InputError
from dpframework.facts.hidden_fields import hide_fields
from dpframework.facts.logical_descriptions_of_rows import Cases
from dpframework.facts.row_partitions import Cut
from dpframework.tables.cluster_worker import Derivation, Mask, SampleOf
from dpframework.tables.cluster_worker_answers import ReadAnswer
from dpframework.tables.engine_base import RelatedCaches
from dpframework.tables.shuffle_by_id_hash import Shuffle
from dpframework.tables.unread_table_files import Piece


@attrs.define(eq=False)
class OpenedTable:
    """A table on the cluster, with its pieces, the findings in each piece, and the worker that holds it.

    Attributes
    ----------
    number
        The number by which workers know the table.
    pieces, key
        The parts of the table, each of which one worker reads, and a secret key. Workers digest pieces under this key,
        to show that a piece is the same when it is read again.
    shuffle
        How workers exchange ids and cells, if the rows of a piece depend on other pieces. Else None.
    read, places
        By the number of a piece, the findings in it (see `ReadAnswer`), and the address of the worker that holds it.
    dropped, gone
        Numbers of sets of rows whose handles (`ClusterRows`) no longer exist. Workers have been told to drop those in
        `gone`, but not yet those in `dropped`.
    begun
        Whether a worker has answered, or was lost, while it read a piece. From then on, a failure may depend on rows.
    masks, told
        By the number of a sample: which rows of each piece are in the sample, and the pieces whose workers have been
        told which rows these are.
    """

    number: int
    pieces: list[Piece]
    key: bytes = attrs.field(repr=False)
    shuffle: Shuffle[Any] | None = None
    read: dict[int, ReadAnswer] = attrs.field(factory=dict)
    places: dict[int, str] = attrs.field(factory=dict)
    dropped: list[int] = attrs.field(factory=list)
    gone: set[int] = attrs.field(factory=set)
    begun: bool = False
    masks: dict[int, dict[int, Mask]] = attrs.field(factory=dict)
    told: dict[int, set[int]] = attrs.field(factory=dict)

    def lose(self, piece: int) -> None:
        """Note that no worker holds a piece any more."""
        self.places.pop(piece, None)
        for told in self.told.values():
            told.discard(piece)

    def take_dropped(self) -> tuple[int, ...]:
        """Return the numbers of the sets of rows that workers may drop. Forget the masks of samples among them."""
        found = []
        # A handle adds its number to this list when it is garbage-collected, which may happen during the loop.
        while self.dropped:
            number = self.dropped.pop()
            self.masks.pop(number, None)
            self.told.pop(number, None)
            found.append(number)
        self.gone.update(found)
        return tuple(found)

    def pieces_of(self, address: str) -> list[int]:
        """Return the pieces that a worker holds."""
        return [piece for piece, place in self.places.items() if place == address]


@final
@attrs.frozen(eq=False, repr=False, field_transformer=hide_fields, weakref_slot=True)
class ClusterRows:
    """Some rows of a table on a cluster.

    Attributes
    ----------
    table, number
        The table that the rows belong to, and the number by which workers know this set of rows.
    lineage
        How the rows were made, step by step from the whole table.
    cache
        Cached sums of queries over these rows (private).
    around
        If these rows are a part of a whole that was split: the caches of the whole and of all its parts (private). None
        if these rows are no such part. None also if some row of the whole is in no part, since the counts of the parts
        then do not add up to those of the whole.
    samples
        The samples that these rows come from. They are kept as long as these rows, since a sample cannot be drawn
        again.
    """

    table: OpenedTable
    number: int
    lineage: tuple[Derivation | SampleOf, ...] = ()
    cache: dict[Hashable, Any] = attrs.field(factory=dict)
    around: RelatedCaches | None = None
    samples: tuple[ClusterRows, ...] = ()

    def derive(self, by: Cut, numbers: tuple[int, ...], attribute: Attribute | None) -> list[ClusterRows]:
        """Return handles of the parts of a cut or, with `attribute`, of the same rows with one more attribute.

        `numbers` are the new handles' numbers.
        """
        step = Derivation(self.number, numbers, by, attribute)
        kept: list[dict[Hashable, Any]] = [{} for _ in numbers]
        # Whether the results are parts, and each row is in exactly one part.
        divides_all = attribute is None and isinstance(by, Attribute | Cases)
        found, samples = [], self._samples()
        for k, (number, own) in enumerate(zip(numbers, kept, strict=True)):
            around = RelatedCaches(self.cache, kept, k) if divides_all else None
            found.append(ClusterRows(self.table, number, (*self.lineage, step), own, around, samples)._until_dropped())
        return found

    def sample(self, number: int, masks: dict[int, Mask]) -> ClusterRows:
        """Return a handle of a sample, given which rows of each piece are in it."""
        self.table.masks[number] = masks
        lineage = (*self.lineage, SampleOf(self.number, number))
        return ClusterRows(self.table, number, lineage, samples=self._samples())._until_dropped()

    def _until_dropped(self) -> ClusterRows:
        """Return this handle. Once it is garbage-collected, workers are told to drop its rows."""
        weakref.finalize(self, self.table.dropped.append, self.number)
        return self

    def _samples(self) -> tuple[ClusterRows, ...]:
        """Return the samples that these rows come from. If these rows are a sample themselves, they are included."""
        is_one = isinstance(next(reversed(self.lineage), None), SampleOf)
        return (*self.samples, self) if is_one else self.samples

    def __repr__(self) -> str:
        """Show no row and no count."""
        return "ClusterRows(rows are private)"


def pickle(content: Any) -> bytes:
    """Return an object as bytes that workers can load.

    Raises
    ------
    InputError
        If the object cannot be pickled.
    """
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(content))
    except Exception as error:
        raise InputError(
            f"a query cannot be sent to the workers ({type(error).__name__}); define the query and its inputs "
            "in a module, without open files or locks"
        ) from None
