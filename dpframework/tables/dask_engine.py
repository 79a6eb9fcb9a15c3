"""Rows on a cluster. Dask's workers read and keep the rows. Functions are sent to the workers, and sums come back.

The study's process holds no row. It remembers how each set of rows was made (`cluster_worker.Derivation`), and
which rows it drew for samples. A worker makes the rows when it is first asked about them. So a worker that takes over
the pieces of a lost worker makes their rows again.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import secrets
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.errors import InputError, NotOpened
from dpframework.facts.installed_package_digests import distributions
from dpframework.facts.logical_descriptions_of_rows import Cases
from dpframework.facts.row_partitions import Cut, number_of_parts
from dpframework.tables.cluster_reading import MOST_LOSSES, ClusterReader
from dpframework.tables.cluster_table import ClusterRows, OpenedTable, pickle
from dpframework.tables.cluster_worker import ClusterWorker, CountRequest, Mask, SampleOf, versions
from dpframework.tables.cluster_worker_answers import (
    MISMATCH,
    AbsentAnswer,
    Answer,
    TallyAnswer,
    answer_of,
    require_answer,
)
from dpframework.tables.coded_table import Table
from dpframework.tables.contribution_bounding import KEY_BYTES
from dpframework.tables.dask_client import PATIENCE, Connection
from dpframework.tables.encoded_row_blocks import Block
from dpframework.tables.engine_base import Engine, rows_of
from dpframework.tables.open_attribute_keys import add_counts
from dpframework.tables.reading_in_worker_pieces import shuffle_of
from dpframework.tables.table_builder import RowFindings, require_found
from dpframework.tables.unread_table_files import TableFiles

POLL = 0.5  # how many seconds to wait for an answer before checking that the worker is still there


@final
class Dask(Engine):
    """Rows on the workers of a Dask cluster, which read their own files.

    Only counts come back. If a query counts the keys of an open attribute, whose values the schema does not list, these
    keys come back, too.

    The client, the scheduler, the workers and the network between them belong to the data owner. The engine needs the
    extra `dask`: `pip install "dpframework[dask]"`. Close the engine after use, or use it in a `with` block.

    Parameters
    ----------
    address
        The address of the scheduler, such as "tls://10.0.0.1:8786". By default a cluster is started on this machine,
        and ended when the engine is closed.
    workers
        Without an address: the number of worker processes, by default one for each processor.
    ca, certificate, key
        For a tls:// address: absolute paths of three PEM files. `ca` is the certificate of the cluster's own authority,
        `certificate` is this client's certificate from that authority, and `key` is the key of this client's
        certificate.
    trust_network
        For any other address: whether you trust everybody on the network. Nothing is encrypted or signed there.
    """

    name = "dask"
    reads_files = True
    gathers = False
    sends_messages = True
    bounds_units = True
    joins_views = True

    def __init__(
        self,
        address: str | None = None,
        workers: int | None = None,
        *,
        ca: str | None = None,
        certificate: str | None = None,
        key: str | None = None,
        trust_network: bool = False,
    ) -> None:
        self._connection = Connection(address, workers, ca, certificate, key, trust_network)
        self._client: Any = None
        self._ending = contextlib.ExitStack()
        self._actors: dict[str, Any] = {}
        self._numbers = itertools.count()

    @property
    def address(self) -> str | None:
        """The scheduler's address (see `Engine.address`), None for a cluster that is started on this machine."""
        return self._connection.address

    def __enter__(self) -> Dask:
        """Return the engine itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the engine."""
        self.close()

    def load(self, table: Table) -> NoReturn:
        """Refuse any table, since this process sends no rows to workers.

        Raises
        ------
        InputError
            Always.
        """
        raise InputError(
            "engine 'dask' takes no table from this process, since rows do not travel; give the study "
            "dpf.TableFiles(path, schema), which its workers read"
        )

    def open(self, files: TableFiles) -> ClusterRows:
        """Have the workers read the pieces of a table.

        Raises
        ------
        InputError
            If the cluster cannot be reached, if its workers run other versions, or where `read_table` raises it.
        """
        self._connect()
        pieces = files.pieces(len(self._live()))
        table = OpenedTable(next(self._numbers), pieces, secrets.token_bytes(KEY_BYTES), shuffle_of(files, pieces))
        try:
            self._place(table, range(len(pieces)))
            found = functools.reduce(RowFindings.__add__, (read.found for read in table.read.values()))
            require_found(files.schema, found, files.sources)
        except BaseException:
            self._forget(table)
            raise
        return ClusterRows(table, table.number)

    def counts(self, rows: ClusterRows, functions: Sequence[Callable[[Block], NDArray[Any]]]) -> list[NDArray[Any]]:
        """See `Engine` and `counts_of`."""
        (found,) = self.counts_of([(rows, functions)])
        return found

    def counts_of(
        self, asked: Sequence[tuple[ClusterRows, Sequence[Callable[[Block], NDArray[Any]]]]]
    ) -> list[list[NDArray[Any]]]:
        """Count as `Engine` says, with one request to each worker for all sets of rows together.

        Raises
        ------
        InputError
            If a function fails, or its counts are not integers. Only the kind of failure comes back.
        """
        rows = [one for one, _ in asked]
        (table,) = {one.table for one in rows}
        wanted = tuple(CountRequest(one.number, one.lineage, tuple(functions)) for one, functions in asked)
        counted = iter(self._count(rows, wanted, table.take_dropped(), table.places))
        return [list(itertools.islice(counted, len(one.functions))) for one in wanted]

    def _count(
        self,
        rows: Sequence[ClusterRows],
        wanted: tuple[CountRequest, ...],
        dropped: tuple[int, ...],
        pieces: Iterable[int],
    ) -> list[NDArray[Any]]:
        """Return, for each function of each request in order, its sum over the rows of some pieces."""
        totals: list[NDArray[Any]] = []
        number = sum(len(one.functions) for one in wanted)
        for answer in self._from_pieces("counts", rows, pickle((wanted, dropped)), pieces):
            own = require_answer(answer, list, "while it counted")
            if [one.shape for one in own] != [one.shape for one in totals or own] or len(own) != number:
                raise InputError(MISMATCH)
            totals = own if not totals else [a + b for a, b in zip(totals, own, strict=True)]
        return totals

    def tally(self, rows: ClusterRows, function: Callable[[Block], Mapping[str, int]]) -> dict[str, int]:
        """See `Engine`. Workers send each text with its count, and no rows."""
        wanted = (CountRequest(rows.number, rows.lineage, (function,)),)
        asked = pickle((wanted, rows.table.take_dropped()))
        answers = self._from_pieces("tally", [rows], asked, rows.table.places)
        return add_counts([require_answer(answer, TallyAnswer, "while it counted").counts for answer in answers])

    def _from_pieces(
        self, method: str, rows: Sequence[ClusterRows], asked: bytes, pieces: Iterable[int]
    ) -> Iterator[Answer]:
        """Yield the answers of workers about some pieces. Each piece is covered by exactly one answer.

        Raises
        ------
        InputError
            If workers are lost again and again.
        """
        (table,) = {one.table for one in rows}
        missing = set(pieces)
        for _ in range(MOST_LOSSES):
            for one in rows:
                self._tell_samples(one, missing)
            parts = {
                address: sorted(missing & set(table.pieces_of(address)))
                for address in sorted(set(table.places.values()))
            }
            calls = {address: (method, table.number, own, asked) for address, own in parts.items() if own}
            for address, answer in self._answers(calls):
                if answer is not None:
                    yield answer
                    missing -= set(parts[address])
            if not missing:
                return
            self._place(table, sorted(missing))
        raise InputError(
            "one worker after another was lost while it counted; give each more memory, or use more workers"
        )

    def split(self, rows: ClusterRows, by: Cut) -> list[ClusterRows]:
        """See `Engine`."""
        parts = rows.derive(by, tuple(itertools.islice(self._numbers, number_of_parts(by))), None)
        if parts:
            first, *_ = parts
            self.counts(first, [])  # the workers make the parts now, so that a failure shows here
        return parts

    def derive(self, rows: ClusterRows, attribute: Attribute, cases: Cases) -> ClusterRows:
        """See `Engine`."""
        (derived,) = rows.derive(cases, (next(self._numbers),), attribute)
        self.counts(derived, [])
        return derived

    def sample(self, rows: ClusterRows, drawn: Callable[[int], NDArray[np.bool_]]) -> ClusterRows:
        """Sample as `Engine` says. This process draws the sample, piece by piece, in the order of the rows."""
        number = next(self._numbers)
        masks = {}
        for piece in sorted(rows.table.places):
            (of_piece,) = self._count([rows], (CountRequest(rows.number, rows.lineage, (rows_of,)),), (), [piece])
            masks[piece] = Mask.of(drawn(of_piece.item()))
        made = rows.sample(number, masks)
        self.counts(made, [])
        return made

    def _tell_samples(self, rows: ClusterRows, pieces: Iterable[int]) -> None:
        """Tell the workers of some pieces which rows of each piece are in the samples from which `rows` was made."""
        table = rows.table
        for k, step in enumerate(rows.lineage):
            if not isinstance(step, SampleOf):
                continue
            told = table.told.setdefault(step.sample, set())
            for piece in sorted(set(pieces) - told):
                mask = table.masks[step.sample][piece]
                asked = pickle((CountRequest(step.source, rows.lineage[:k], ()), step.sample, mask))
                for _, answer in self._answers({table.places[piece]: ("sample", table.number, piece, asked)}):
                    if answer is not None:
                        require_answer(answer, int, "while it took a sample")
                        told.add(piece)

    def cache_of(self, rows: ClusterRows) -> dict[Hashable, Any]:
        """See `Engine`. The cache holds sums over all workers."""
        return rows.cache

    def related_caches(self, rows: ClusterRows) -> tuple[dict[Hashable, Any], list[dict[Hashable, Any]]] | None:
        """See `Engine`."""
        return None if rows.around is None else rows.around.of_others()

    def drop(self, rows: ClusterRows) -> None:
        """Drop rows as `Engine` says.

        Workers drop a part or a sample the next time they count. They also do so without a call of this method, once
        the handle of the part or sample is garbage-collected.
        """
        if rows.number == rows.table.number:
            self._forget(rows.table)
        else:
            rows.table.dropped.append(rows.number)

    def close(self) -> None:
        """End the connection, and the cluster if it was started here. The next table opens a new connection."""
        self._actors.clear()
        self._client = None
        with self._connection.speaking():
            self._ending.close()

    def _connect(self) -> None:
        """Connect to the cluster, or start one, if there is no connection yet."""
        if self._client is not None:
            return
        with contextlib.ExitStack() as ending:
            self._client = self._connection.open(ending)
            self._ending = ending.pop_all()

    def _workers(self) -> Collection[str]:
        """Return the addresses of the workers that are there."""
        with self._connection.speaking():
            addresses: Collection[str] = self._client.nthreads()
        return addresses

    def _live(self) -> list[str]:
        """Wait until there are workers, and return their addresses."""
        until = time.monotonic() + PATIENCE
        while True:
            if found := self._workers():
                return sorted(found)
            if time.monotonic() > until:
                raise NotOpened("the Dask cluster has no workers; start some with: dask worker ADDRESS")
            time.sleep(POLL)

    def _place(self, table: OpenedTable, pieces: Iterable[int]) -> None:
        """Have pieces read by workers (see `ClusterReader`)."""
        ClusterReader(self._live, self._answers, self._actor).place(table, pieces)

    def _actor(self, address: str) -> str:
        """Return the name of a worker's actor. If the worker is lost, return an empty text, which names no actor."""
        with contextlib.suppress(OSError, RuntimeError), self._connection.speaking():
            return str(self._worker(address).key)
        return ""

    def _answers(self, calls: dict[str, tuple[Any, ...]]) -> Iterator[tuple[str, Answer | None]]:
        """Call workers at the same time, and yield each worker's answer, None for a lost worker."""
        waiting = {}
        for address, (method, *given) in calls.items():
            with contextlib.suppress(OSError, RuntimeError), self._connection.speaking():
                waiting[address] = getattr(self._worker(address), method)(*given)
        for address in calls:
            answer = self._wait_for(address, waiting[address]) if address in waiting else None
            found = None if answer is None else answer_of(answer)
            if found is None or isinstance(found, AbsentAnswer):
                self._actors.pop(address, None)
                found = None
            yield address, found

    def _wait_for(self, address: str, future: Any) -> bytes | None:
        """Return a worker's answer, or None if the worker was lost. Dask alone might wait forever for a lost worker."""
        while True:
            try:
                answer: bytes = future.result(timeout=POLL)
                return answer
            except TimeoutError:  # a subclass of OSError, so it comes first
                if address not in self._workers():
                    return None
            except (OSError, RuntimeError, KeyError):  # what Dask raises for a lost worker or actor
                return None

    def _worker(self, address: str) -> Any:
        """Return the actor that holds rows on a worker. A new actor must run the same code as this process."""
        if address not in self._actors:
            made = self._client.submit(
                ClusterWorker, actor=True, workers=[address], pure=False, allow_other_workers=False
            )
            until = time.monotonic() + PATIENCE
            while not made.done():
                if address not in self._workers() or time.monotonic() > until:
                    raise OSError("the worker is not there")
                time.sleep(0.01)
            worker = made.result()
            packages = sorted(distributions())
            answer = self._wait_for(address, worker.versions(packages))
            if answer is None:
                raise OSError("the worker is not there")
            theirs, ours = require_answer(answer_of(answer), dict, "while it told its versions"), versions(packages)
            other = [what for what in ours if theirs.get(what) != ours[what]]
            if other:
                told = ", ".join(f"{what} ({theirs.get(what)}, here {ours[what]})" for what in other)
                raise NotOpened(f"the worker at {address} runs other code: {told}; install the same on all machines")
            self._actors[address] = worker
        return self._actors[address]

    def _forget(self, table: OpenedTable) -> None:
        """Have the workers forget a table."""
        for address in set(table.places.values()) & set(self._actors):
            with contextlib.suppress(OSError, RuntimeError), self._connection.speaking():
                self._actors[address].drop(table.number)
        table.places.clear()
