"""Have the workers of a cluster read the pieces of a table. If a worker is lost, others read its pieces again."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, final

import attrs

from dpframework.facts.errors import InputError, NotOpened
from dpframework.tables.cluster_table import OpenedTable, pickle
from dpframework.tables.cluster_worker_answers import (
    Answer,
    FailureAnswer,
    ReadAnswer,
    ShuffleAnswer,
    UnreachableAnswer,
    require_answer,
)
from dpframework.tables.reading_progress import tell
from dpframework.tables.shuffle_by_id_hash import Shuffle, ShuffleFindings
from dpframework.tables.shuffle_on_workers import WorkerPlace

MOST_LOSSES = 4  # the most tries of a task whose workers are lost, since the task itself may kill its workers
_READING = "while it read its files"


@final
@attrs.frozen
class ClusterReader:
    """Has workers read the pieces of a table.

    Attributes
    ----------
    live
        A function that waits until there are workers, and returns their addresses.
    answers
        A function that calls workers at the same time, and yields each worker's address and answer. The answer of a
        lost worker is None.
    actor
        A function that returns the name of the object that holds the pieces on the worker at an address.
    """

    live: Callable[[], list[str]]
    answers: Callable[[dict[str, tuple[Any, ...]]], Iterator[tuple[str, Answer | None]]]
    actor: Callable[[str], str]

    def place(self, table: OpenedTable, pieces: Iterable[int]) -> None:
        """Have pieces read by the workers that hold the fewest pieces. A piece that is read again must be unchanged.

        Raises
        ------
        NotOpened
            If a piece cannot be opened, or there is no worker. Once a worker has answered, or was lost while it read,
            the error is an `InputError` instead.
        InputError
            If a piece cannot be read, or has changed since it was first read, or workers are lost again and again.
        """
        missing = list(pieces)
        for piece in missing:
            table.lose(piece)
        try:
            for _ in range(MOST_LOSSES):
                live = self.live()
                if table.shuffle is None:
                    self._read(table, _spread_evenly(table, missing, live))
                else:
                    # In a shuffle, workers exchange ids and cells of all pieces, so all files are read for any lost
                    # piece. So all lost pieces are read at once.
                    missing += [piece for piece, address in table.places.items() if address not in live]
                    for piece in missing:
                        table.lose(piece)
                    self._shuffle(table, table.shuffle, missing, live)
                missing = [piece for piece in missing if piece not in table.places]
                if not missing:
                    return
        except NotOpened as error:
            if not table.begun:
                raise
            # `NotOpened` would say that no row was read. By now a worker has read rows, or was lost while it read.
            raise InputError(str(error)) from None
        raise InputError("one worker after another was lost while it read; give each more memory, or use more workers")

    def _read(self, table: OpenedTable, given: Mapping[str, Sequence[int]]) -> None:
        """Have each worker read its pieces one after another. The pieces of a lost worker stay unread."""

        def call(piece: int) -> tuple[Any, ...]:
            return "read", table.number, piece, pickle((table.pieces[piece], table.key, table.gone))

        for address, piece, answer in self._in_turn(table, given, call):
            self._keep(table, address, piece, require_answer(answer, ReadAnswer, _READING))

    def _shuffle(self, table: OpenedTable, how: Shuffle[Any], missing: Collection[int], live: Collection[str]) -> None:
        """Have workers read the missing pieces of a shuffled table, where the rows of a piece depend on all pieces.

        So the files of all pieces are read again. Workers keep their rows of pieces that are not missing. If a worker
        is lost, the missing pieces stay missing.
        """
        given = _spread_evenly(table, missing, live)
        for piece, address in table.places.items():
            given[address].append(piece)
        given = {address: sorted(own) for address, own in given.items() if own}
        buckets = {address: bucket for bucket, address in enumerate(sorted(given))}

        def spread(piece: int) -> tuple[Any, ...]:
            return "spread", table.number, piece, pickle((how, table.pieces[piece], len(buckets)))

        try:
            found = self._join_findings(self._in_turn(table, given, spread), sum(map(len, given.values())))
            if found is None:
                return
            asked = pickle((how, self._places(given)))
            calls = {address: [bucket] for address, bucket in buckets.items()}
            gathered = self._in_turn(table, calls, lambda bucket: ("gather", table.number, bucket, asked))
            more = self._join_findings(gathered, len(calls))
            if more is None:
                return
            how.require(found | more)
            places = self._places(calls)

            def settle(piece: int) -> tuple[Any, ...]:
                return "settle", table.number, piece, pickle((how, table.pieces[piece], table.key, table.gone, places))

            wanted = {address: [piece for piece in own if piece in missing] for address, own in given.items()}
            for address, piece, answer in self._in_turn(table, wanted, settle):
                if not isinstance(answer, UnreachableAnswer):
                    self._keep(table, address, piece, require_answer(answer, ReadAnswer, _READING))
        finally:
            for _ in self.answers(dict.fromkeys(given, ("end", table.number))):
                pass

    def _join_findings(self, answers: Iterator[tuple[str, int, Answer]], number: int) -> ShuffleFindings | None:
        """Return the findings of all answers, joined.

        Return None if fewer than `number` answers came, or a worker could not reach another one.
        """
        given = [answer for _, _, answer in answers]
        if len(given) < number or any(isinstance(answer, UnreachableAnswer) for answer in given):
            return None
        found: list[ShuffleFindings] = [require_answer(answer, ShuffleAnswer, _READING).found for answer in given]
        return functools.reduce(ShuffleFindings.__or__, found)

    def _places(self, given: Mapping[str, Sequence[int]]) -> list[WorkerPlace]:
        return [WorkerPlace(address, self.actor(address), tuple(own)) for address, own in given.items()]

    def _in_turn(
        self, table: OpenedTable, given: Mapping[str, Sequence[int]], call: Callable[[int], tuple[Any, ...]]
    ) -> Iterator[tuple[str, int, Answer]]:
        """Call each worker once for each of its numbers, one at a time. Yield address, number and answer.

        A number stands for a piece, or for a bucket (a share of the cells that workers exchange). A worker that is lost
        is not called again.

        Raises
        ------
        NotOpened
            If a worker cannot open its piece.
        """
        waiting = {address: list(own) for address, own in given.items()}
        while any(waiting.values()):
            turn = {address: own.pop(0) for address, own in waiting.items() if own}
            for address, answer in self.answers({address: call(number) for address, number in turn.items()}):
                if isinstance(answer, FailureAnswer) and isinstance(answer.error, NotOpened):
                    # This is raised before `begun` is set, since a file that cannot be opened reveals nothing of rows.
                    raise answer.error
                table.begun = True
                if answer is None:
                    waiting.pop(address, None)
                else:
                    yield address, turn[address], answer

    def _keep(self, table: OpenedTable, address: str, piece: int, read: ReadAnswer) -> None:
        """Store which worker holds a piece, and what that worker answered when it read the piece.

        If the piece was read before, the answer must be the same as then.
        """
        if table.read.setdefault(piece, read) != read:
            name = os.path.basename(table.pieces[piece].file)
            raise InputError(f"{name}: changed while the study ran, and a lost worker's rows cannot be read again")
        table.places[piece] = address
        tell(len(table.places), len(table.pieces))


def _spread_evenly(table: OpenedTable, pieces: Iterable[int], live: Collection[str]) -> dict[str, list[int]]:
    """Return the pieces that each worker is to read, by the worker's address.

    The pieces are given out one after another, each to a worker that has the fewest pieces so far.
    """
    share = {address: len(table.pieces_of(address)) for address in live}
    given: dict[str, list[int]] = {address: [] for address in live}
    for piece in pieces:
        least = min(live, key=lambda address: share[address])
        share[least] += 1
        given[least].append(piece)
    return given
