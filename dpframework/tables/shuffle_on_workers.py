"""A worker's share of a shuffle: its pieces' messages to buckets, and its buckets' answers to pieces.

A piece is a part of a table that the worker reads. A bucket is responsible for a group of ids, and gets messages about
these ids from all pieces (see `shuffle_by_id_hash`).

Workers ask each other for messages by calling Dask actors, over Dask's connections (TLS, unless the owner trusts the
network). No message passes through the scheduler or the client. No message is the result of a Dask task either,
since Dask writes results to its folder when memory is short, and tells the scheduler the size of each result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, final

import attrs

from dpframework.tables.coded_table import Table
from dpframework.tables.shuffle_by_id_hash import Shuffle, ShuffleFindings
from dpframework.tables.table_builder import RowFindings
from dpframework.tables.unread_table_files import Piece

PIECES, BUCKETS = "pieces", "buckets"  # the kinds of senders of messages


class UnreachableError(Exception):
    """Another worker is not there, or does not have a message."""


@attrs.frozen
class WorkerPlace:
    """A worker, and the pieces or buckets whose messages it holds.

    Attributes
    ----------
    address, actor
        The address of the worker, and the name of the object there that holds pieces.
    numbers
        The numbers of the pieces that the worker has spread, or of the buckets that it has gathered (see
        `ShuffledPieces`).
    """

    address: str
    actor: str
    numbers: tuple[int, ...]


@final
class ShuffledPieces:
    """What a worker holds for each table that is being shuffled: messages and states, until `end` is called."""

    def __init__(self) -> None:
        # By the sender's kind, the table and the sender: the message to each receiver.
        self._messages: dict[tuple[str, int, int], dict[int, bytes]] = {}
        self._states: dict[tuple[int, int], Any] = {}  # by table and piece

    def spread(self, table: int, piece: int, how: Shuffle[Any], described: Piece, buckets: int) -> ShuffleFindings:
        """Read a piece and keep its messages. This raises the errors of `Shuffle.spread`."""
        made = how.spread(described, buckets)
        self._messages[PIECES, table, piece] = dict(enumerate(made.messages))
        self._states[table, piece] = made.state
        return made.found

    def gather(self, table: int, bucket: int, how: Shuffle[Any], places: Sequence[WorkerPlace]) -> ShuffleFindings:
        """Take a bucket's messages from the workers that spread the pieces, and keep the bucket's answers.

        Raises
        ------
        UnreachableError
            If a worker or a message is not there.
        """
        messages = take(table, PIECES, bucket, places)
        answers, found = how.gather([messages[k] for k in range(how.pieces)])
        self._messages[BUCKETS, table, bucket] = dict(enumerate(answers))
        return found

    def settle(
        self, table: int, piece: int, how: Shuffle[Any], described: Piece, places: Sequence[WorkerPlace]
    ) -> tuple[Table, RowFindings]:
        """Return a piece's rows of the table, given the answers of all buckets, which are fetched from their workers.

        Raises
        ------
        UnreachableError
            If a worker or a message is not there.
        InputError
            Where `Shuffle.settle` raises it.
        """
        if (table, piece) not in self._states:
            raise UnreachableError
        answers = take(table, BUCKETS, piece, places)
        return how.settle(described, self._states.pop((table, piece)), [answers[k] for k in sorted(answers)])

    def hand(self, table: int, kind: str, numbers: Iterable[int], to: int) -> list[bytes] | None:
        """Return the messages from some pieces to a bucket, or from buckets to a piece. Return None if one is absent.

        Each message can be returned only once, since it is forgotten here.
        """
        found = []
        for number in numbers:
            messages = self._messages.get((kind, table, number))
            message = None if messages is None else messages.pop(to, None)  # frees memory for the receiver
            if message is None:
                return None
            found.append(message)
        return found

    def end(self, table: int) -> None:
        """Forget all messages and states of a table."""
        self._messages = {place: held for place, held in self._messages.items() if place[1] != table}
        self._states = {place: held for place, held in self._states.items() if place[0] != table}


def take(table: int, kind: str, to: int, places: Sequence[WorkerPlace]) -> dict[int, bytes]:
    """Return the messages from all pieces to a bucket, or from all buckets to a piece, by the sender's number.

    Raises
    ------
    UnreachableError
        If a worker or a message is not there.
    """
    found: dict[int, bytes] = {}
    for place in places:
        given = ask(place, table, kind, place.numbers, to)
        if given is None:
            raise UnreachableError
        found.update(zip(place.numbers, given, strict=True))
    return found


def ask(place: WorkerPlace, *given: Any) -> list[bytes] | None:
    """Return the messages from another worker's `ClusterWorker.hand`, None if the worker or a message is not there.

    That method runs on the other worker's event loop, whatever that worker is doing. So two workers can ask each other
    at the same time.
    """
    from distributed import get_worker
    from distributed.utils import sync

    worker = get_worker()
    if worker.address == place.address:
        actor = worker.state.actors.get(place.actor)
        return None if actor is None else actor.handed(*given)

    async def ask_worker() -> Any:
        other = worker.rpc(place.address)
        return await other.actor_execute(function="hand", actor=place.actor, args=list(given), kwargs={})

    try:
        answer = sync(worker.loop, ask_worker)
    except (OSError, KeyError, RuntimeError):  # what Dask raises for a lost worker or actor
        return None
    return answer["result"] if answer["status"] == "OK" else None
