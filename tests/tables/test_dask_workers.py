"""The Dask engine with workers in this process, which are lost whenever a test says so: nothing is started."""

from __future__ import annotations

import importlib.metadata
import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import polars as pl
import pytest

import dpframework as dpf
from dpframework.facts.errors import NotOpened
from dpframework.tables import cluster_reading, cluster_worker, dask_client, dask_engine, shuffle_on_workers
from dpframework.tables.cluster_table import ClusterRows
from dpframework.tables.cluster_worker import ClusterWorker, SampleOf
from dpframework.tables.cluster_worker_answers import (
    AbsentAnswer,
    FailureAnswer,
    ShuffleAnswer,
    UnreachableAnswer,
    answer_of,
    pack_answer,
)
from dpframework.tables.reading_in_worker_pieces import shuffle_of
from dpframework.tables.row_bound_shuffle import BoundedRows
from dpframework.tables.shuffle_by_id_hash import IdFinding
from dpframework.tables.shuffle_on_workers import ShuffledPieces, WorkerPlace
from dpframework.tables.unread_table_files import TableFiles
from dpframework.verify.tables.people_table_files import (
    OF_PEOPLE,
    PEOPLE,
    VISITS,
    people_counts,
    write_views,
    write_visits,
)

cloudpickle = pytest.importorskip("cloudpickle", reason="the extra 'dask' is not installed")

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Categorical("colour", ["red", "green", "blue"])])
JOINT = dpf.queries.JointHistogram(SCHEMA.attributes)
PIECES, ROWS = 5, 60


@attrs.define
class Clock:
    """Time that passes only while somebody sleeps, and tells somebody what time it is."""

    now: float = 0.0
    watched: Callable[[float], Any] = lambda now: None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds
        self.watched(self.now)


@attrs.define(eq=False)
class Cluster:
    """As much of a Dask client as the engine uses.

    `before` is told of each message, before its worker reads it: of which worker, and what is asked of it.
    """

    live: list[str]
    before: Callable[[str, str, tuple[Any, ...]], Any] = lambda *_: None
    messages: list[tuple[str, str]] = attrs.field(factory=list)
    workers: dict[str, ClusterWorker] = attrs.field(factory=dict)
    starts_at: float = 0.0
    clock: Clock = attrs.field(factory=Clock)
    gone_is: type[Exception] = TimeoutError
    busy: int = 0

    def nthreads(self) -> dict[str, int]:
        return dict.fromkeys(self.live, 1)

    def submit(self, kind: Any, *, actor: bool, workers: list[str], pure: bool, allow_other_workers: bool) -> Any:
        assert (kind, actor, pure, allow_other_workers) == (ClusterWorker, True, False, False)
        (address,) = workers
        return Starting(self, address)

    def asked(self, method: str) -> list[str]:
        """Return who was sent such a message, one after another."""
        return [address for address, kind in self.messages if kind == method]


@attrs.frozen(eq=False)
class Starting:
    cluster: Cluster
    address: str

    def done(self) -> bool:
        return self.cluster.clock.now >= self.cluster.starts_at

    def result(self) -> Any:
        self.cluster.workers[self.address] = ClusterWorker()
        return Actor(self.cluster, self.address)


@attrs.frozen(eq=False)
class Actor:
    cluster: Cluster
    address: str

    @property
    def key(self) -> str:
        return f"actor of {self.address}"

    def __getattr__(self, method: str) -> Any:
        def sent(*given: Any) -> Answer:
            self.cluster.messages.append((self.address, method))
            self.cluster.before(self.address, method, given)
            answer = Answer(self.cluster, self.address, method, given, self.cluster.busy)
            return getattr(self.cluster.workers[self.address], method)(*given) if method == "drop" else answer

        return sent


@attrs.define(eq=False)
class Answer:
    cluster: Cluster
    address: str
    method: str
    given: tuple[Any, ...]
    busy: int

    def result(self, timeout: float) -> bytes:
        if self.address not in self.cluster.live:
            raise self.cluster.gone_is("not there")
        if self.busy:
            self.busy -= 1
            raise TimeoutError
        answer: bytes = getattr(self.cluster.workers[self.address], self.method)(*self.given)
        return answer


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster(["a", "b"])
    for module in (dask_engine, cluster_worker):
        monkeypatch.setattr(module, "versions", lambda packages: {"code": "of this test"})
    monkeypatch.setattr(dask_engine, "time", made.clock)
    return made


@pytest.fixture
def engine(cluster: Cluster) -> dpf.Dask:
    made = dpf.Dask("tcp://of.this.process:1", trust_network=True)
    made._client = cluster
    return made


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TableFiles:
    folder, rng = tmp_path_factory.mktemp("rows"), np.random.default_rng(3)
    for k in range(PIECES):
        rows = {"ill": rng.random(ROWS) < 0.4, "colour": rng.choice(["red", "green", "blue"], ROWS)}
        pl.DataFrame(rows).write_parquet(folder / f"{k}.parquet")
    return TableFiles(folder, SCHEMA)


def counts(engine: dpf.Engine, rows: Any) -> Any:
    return JOINT.evaluate(engine, rows).tolist()


def expected(files: TableFiles) -> Any:
    here = dpf.InMemory()
    return counts(here, here.load(files.read()))


def lost_at(cluster: Cluster, method: str, only: str | None = None) -> None:
    """Have each worker that is sent such a message lost by it, or one of them only; another takes its place."""
    names = (f"later{k}" for k in itertools.count())

    def before(address: str, asked: str, given: tuple[Any, ...]) -> None:
        if asked == method and only in (None, address):
            cluster.live[cluster.live.index(address)] = next(names)

    cluster.before = before


def test_what_an_engine_on_a_cluster_is() -> None:
    engine = dpf.Dask()
    assert (engine.reads_files, engine.gathers, engine.sends_messages) == (True, False, True)
    for given in ({"address": "tcp://a:1", "trust_network": True}, {"workers": 3}):
        assert isinstance(dpf.Dask(**given), dpf.Engine)
    with pytest.raises(
        dpf.InputError, match=r"^the address of a scheduler is a text such as 'tls://10.0.0.1:8786', not"
    ):
        dpf.Dask(7)  # type: ignore[arg-type]


def test_pieces_are_spread_evenly_read_in_turn_and_counted_in_one_message_each(
    engine: dpf.Dask, cluster: Cluster, files: TableFiles
) -> None:
    rows = engine.open(files)
    assert rows.table.places == {0: "a", 1: "b", 2: "a", 3: "b", 4: "a"}
    assert list(rows.table.read) == [0, 1, 2, 3, 4]
    assert cluster.asked("read") == ["a", "b", "a", "b", "a"]
    assert counts(engine, rows) == expected(files)
    assert sorted(cluster.asked("counts")) == ["a", "b"]
    assert engine.number(rows) == PIECES * ROWS


def test_one_piece_is_read_by_one_of_two_workers(engine: dpf.Dask, cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("ill,colour\n1,red\n0,blue\n")
    rows = engine.open(TableFiles(tmp_path / "one.csv", SCHEMA))
    assert rows.table.places == {0: "a"}
    assert counts(engine, rows) == [[0, 0, 1], [1, 0, 0]]


def test_those_that_hold_fewest_take_over(engine: dpf.Dask, cluster: Cluster, files: TableFiles) -> None:
    rows = engine.open(files)
    cluster.live[:] = ["b", "c"]
    assert counts(engine, rows) == expected(files)
    assert rows.table.places == {0: "c", 2: "c", 4: "b", 1: "b", 3: "b"}


@pytest.mark.parametrize("gone_is", [TimeoutError, OSError, RuntimeError, KeyError])
@pytest.mark.parametrize("method", ["versions", "read", "counts"])
def test_a_worker_that_is_lost_changes_no_count(
    gone_is: type[Exception], method: str, engine: dpf.Dask, cluster: Cluster, files: TableFiles
) -> None:
    cluster.gone_is = gone_is
    lost_at(cluster, method, only="a")
    rows = engine.open(files)
    assert counts(engine, rows) == expected(files)
    assert rows.table.places == {0: "later0", 1: "b", 2: "later0", 3: "b", 4: "b"}
    # what the other one has read is not read again, nor counted again
    assert len(cluster.asked("read")) == {"versions": 5, "read": 6, "counts": 8}[method]
    assert len(cluster.asked("counts")) == {"versions": 2, "read": 2, "counts": 4}[method]
    assert counts(engine, rows) == expected(files)


def test_a_worker_that_was_started_anew_reads_again(engine: dpf.Dask, cluster: Cluster, files: TableFiles) -> None:
    """Its address is the same, and it answers: that it holds no such piece."""
    rows = engine.open(files)
    cluster.workers["a"] = ClusterWorker()
    assert counts(engine, rows) == expected(files)
    assert cluster.asked("read") == ["a", "b", "a", "b", "a", "a", "a", "a"]


def test_a_busy_worker_is_waited_for(engine: dpf.Dask, cluster: Cluster, files: TableFiles) -> None:
    cluster.busy = 3
    assert counts(engine, engine.open(files)) == expected(files)
    assert len(cluster.asked("read")) == PIECES


@pytest.mark.parametrize(("method", "what"), [("read", "while it read"), ("counts", "while it counted")])
def test_what_ends_worker_after_worker_is_not_asked_for_ever(
    method: str, what: str, engine: dpf.Dask, cluster: Cluster, files: TableFiles
) -> None:
    if method == "counts":
        rows = engine.open(files)
    lost_at(cluster, method)
    with pytest.raises(dpf.InputError, match=f"^one worker after another was lost {what}; give each more memory"):
        engine.open(files) if method == "read" else counts(engine, rows)


def test_a_cluster_without_workers_is_waited_for(engine: dpf.Dask, cluster: Cluster, files: TableFiles) -> None:
    cluster.live.clear()
    cluster.clock.watched = lambda now: cluster.live.append("late") if now == dask_client.PATIENCE + 0.5 else None
    assert engine.open(files).table.places == dict.fromkeys(range(PIECES), "late")
    cluster.live.clear()
    with pytest.raises(
        dpf.InputError, match=r"^the Dask cluster has no workers; start some with: dask worker ADDRESS$"
    ):
        engine.open(files)


def test_once_workers_read_a_lack_of_them_is_an_error_that_a_ledger_records(
    engine: dpf.Dask, cluster: Cluster, files: TableFiles
) -> None:
    """What ended the last worker may be its rows. Before the first one reads, nothing of them can show."""
    cluster.live.clear()
    with pytest.raises(NotOpened, match="the Dask cluster has no workers"):
        engine.open(files)
    cluster.live[:] = ["a"]
    cluster.before = lambda address, method, given: cluster.live.clear() if method == "read" else None
    with pytest.raises(dpf.InputError, match="the Dask cluster has no workers") as lost:
        engine.open(files)
    assert type(lost.value) is dpf.InputError


@pytest.mark.parametrize("first", ["read", "lost", "refused"])
def test_a_file_that_a_worker_cannot_open_is_not_opened_only_if_no_piece_was_read_before(
    first: str, engine: dpf.Dask, cluster: Cluster, files: TableFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = pack_answer(FailureAnswer("NotOpened", NotOpened("t.csv: cannot be read: denied")))
    read = ClusterWorker.read

    def reads_one(held: ClusterWorker, table: int, piece: int, given: bytes) -> bytes:
        return read(held, table, piece, given) if (first, piece) == ("read", 0) else refused

    monkeypatch.setattr(ClusterWorker, "read", reads_one)
    if first == "lost":
        cluster.before = lambda address, method, given: (
            cluster.live.remove("a") if (address, method) == ("a", "read") else None
        )
    with pytest.raises(dpf.InputError, match="denied") as told:
        engine.open(files)
    assert type(told.value) is (NotOpened if first == "refused" else dpf.InputError)


def test_a_worker_that_takes_its_time_to_begin_is_waited_for(
    engine: dpf.Dask, cluster: Cluster, files: TableFiles
) -> None:
    cluster.starts_at = 100
    assert counts(engine, engine.open(files)) == expected(files)
    assert 100 <= cluster.clock.now < 102


def test_a_worker_that_never_begins_is_given_up(engine: dpf.Dask, cluster: Cluster, files: TableFiles) -> None:
    cluster.live[:] = ["a"]
    cluster.starts_at = np.inf
    with pytest.raises(dpf.InputError, match="one worker after another was lost while it read"):
        engine.open(files)
    patience = dask_client.PATIENCE * cluster_reading.MOST_LOSSES
    assert patience < cluster.clock.now < patience + 1


def test_a_worker_that_goes_before_it_begins_is_not_waited_for(
    engine: dpf.Dask, cluster: Cluster, files: TableFiles
) -> None:
    cluster.starts_at = 5
    cluster.clock.watched = lambda now: cluster.live.remove("b") if "b" in cluster.live else None
    assert set(engine.open(files).table.places.values()) == {"a"}
    assert 5 <= cluster.clock.now < 6


def test_parts_and_derived_attributes_are_those_that_memory_has(
    engine: dpf.Dask, cluster: Cluster, files: TableFiles
) -> None:
    here = dpf.InMemory()
    cases = dpf.Cases([dpf.Equals("ill", "true"), dpf.Equals("colour", "red")])
    derived = dpf.Categorical("kind", ["ill", "red", "rest"])
    query = dpf.queries.JointHistogram([derived, SCHEMA["colour"]])
    found = []
    engines: list[tuple[dpf.Engine, Any]] = [(here, here.load(files.read())), (engine, engine.open(files))]
    for one, rows in engines:
        parts = [*one.split(rows, cases), *one.split(rows, (dpf.Equals("colour", "blue"),))]
        deeper = one.split(parts[-1], SCHEMA["ill"])
        more = one.derive(deeper[0], derived, cases)
        found.append([counts(one, part) for part in (*parts, *deeper)] + [query.evaluate(one, more).tolist()])
        assert one.split(rows, ()) == []
    assert found[0] == found[1]


def test_a_sample_is_told_once_and_again_to_whoever_takes_over(
    engine: dpf.Dask, cluster: Cluster, files: TableFiles
) -> None:
    """And one of a part of a sample, which is made of both."""

    def sampled(one: dpf.Engine, rows: Any) -> list[Any]:
        """In memory a sample is drawn of all rows at once, else piece by piece in their order: it is the same."""
        generator = np.random.default_rng(1)

        def drawn(number: int) -> Any:
            return generator.random(number) < 0.5

        sample = one.sample(rows, drawn)
        ill = one.split(sample, SCHEMA["ill"])[1]
        again = one.sample(ill, drawn)
        return [sample, ill, again, one.split(again, SCHEMA["colour"])[0]]

    rows, here = engine.open(files), dpf.InMemory()
    before = [counts(here, part) for part in sampled(here, here.load(files.read()))]
    sample, ill, again, red = sampled(engine, rows)
    assert [counts(engine, part) for part in (sample, ill, again, red)] == before
    assert 30 < np.sum(before[2]) < np.sum(before[1]) < np.sum(before[0]) < PIECES * ROWS
    assert len(cluster.asked("sample")) == 2 * PIECES
    assert red.samples == (sample, again)
    cluster.live[:] = ["b", "c"]
    assert [counts(engine, part) for part in (red, again, ill, sample)] == before[::-1]
    assert len(cluster.asked("sample")) == 2 * PIECES + 2 * 3
    assert rows.table.told == {sample.number: set(range(PIECES)), again.number: set(range(PIECES))}


def test_workers_forget_what_is_dropped(engine: dpf.Dask, cluster: Cluster, files: TableFiles) -> None:
    first, rows = engine.open(files), engine.open(files)
    part, other = engine.split(rows, SCHEMA["ill"])
    engine.number(other)
    assert all(part.number in held for held in held_by(cluster, rows))
    engine.drop(part)
    assert counts(engine, rows) == expected(files)
    assert all(held.keys() == {rows.number, other.number} for held in held_by(cluster, rows))
    del engine._actors["a"]  # nobody knows it any more: it is not told
    engine.drop(rows)
    assert cluster.asked("drop") == ["b"]
    assert [len(held_by(cluster, one)) for one in (rows, first)] == [3, PIECES]
    assert rows.table.places == {}
    assert counts(engine, first) == expected(files)


def held_by(cluster: Cluster, rows: ClusterRows) -> list[dict[int, Any]]:
    """Return what all workers hold of a table, piece by piece."""
    pieces = [place for worker in cluster.workers.values() for place in worker._pieces.items()]
    return [held for (table, _), held in pieces if table == rows.table.number]


def test_what_cannot_be_sent_or_fails_there_is_one_sentence(engine: dpf.Dask, files: TableFiles) -> None:
    rows, lock = engine.open(files), threading.Lock()
    with pytest.raises(dpf.InputError, match=r"^a query cannot be sent to the workers \(TypeError\); define the query"):
        engine.counts(rows, [lambda block: np.array([lock.locked()])])

    def refusing(block: dpf.Block) -> Any:
        raise dpf.InputError(f"there are {block.rows} rows")

    with pytest.raises(dpf.InputError) as caught:
        engine.counts(rows, [refusing])
    assert (
        str(caught.value) == "a worker failed with InputError while it counted; run with engine 'memory' to see where"
    )
    away = attrs.evolve(files, path=Path(files.path[0]) / "0.parquet", schema=dpf.Schema([dpf.Boolean("well")]))
    with pytest.raises(dpf.InputError, match=r"^0.parquet: has none of the requested columns"):
        engine.open(away)


def test_a_worker_of_other_code_is_refused(
    engine: dpf.Dask, cluster: Cluster, files: TableFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_worker, "versions", lambda packages: {"code": "of another"})
    with pytest.raises(dpf.InputError) as caught:
        engine.open(files)
    assert str(caught.value) == (
        "the worker at a runs other code: code (of another, here of this test); install the same on all machines"
    )
    assert cluster.asked("read") == []


def test_a_failure_while_a_piece_is_read_tells_its_sentence_only_if_it_shows_no_row(files: TableFiles) -> None:
    worker = ClusterWorker()
    assert answer_of(worker.read(1, 0, b"no pickle")) == FailureAnswer("an error of its own")
    other = cloudpickle.dumps(("no piece", b"", ()))
    assert answer_of(worker.read(1, 0, other)) == FailureAnswer("TypeError")


def test_a_sentence_about_reading_is_told_by_who_reads_and_none_about_counting(
    of_people: dict[str, TableFiles], monkeypatch: pytest.MonkeyPatch
) -> None:
    files, worker = of_people["rows of people"], ClusterWorker()
    pieces = files.pieces(1)
    how = shuffle_of(files, pieces)

    def refuse(*_: object) -> None:
        raise dpf.InputError("the column 'age' is missing")

    for method in ("spread", "gather", "settle"):
        monkeypatch.setattr(type(worker._shuffled), method, refuse)
    monkeypatch.setattr(type(pieces[0]), "read", refuse)
    monkeypatch.setattr(ClusterWorker, "_of_pieces", refuse)
    told = [
        worker.read(1, 0, cloudpickle.dumps((pieces[0], b"key", ()))),
        worker.spread(1, 0, cloudpickle.dumps((how, pieces[0], 1))),
        worker.settle(1, 0, cloudpickle.dumps((how, pieces[0], b"key", (), []))),
    ]
    nothing = cloudpickle.dumps(((), ()))
    untold = [worker.gather(1, 0, cloudpickle.dumps((how, [])))]
    untold += [worker.counts(1, [0], nothing), worker.tally(1, [0], nothing)]
    assert [str(answer_of(one).error) for one in told] == ["the column 'age' is missing"] * 3
    assert [answer_of(one) for one in untold] == [FailureAnswer("InputError")] * 3


def test_a_worker_that_holds_some_of_the_pieces_only_says_so(files: TableFiles) -> None:
    worker, (first, *_) = ClusterWorker(), files.pieces(1)
    assert answer_of(worker.read(1, 0, cloudpickle.dumps((first, b"key", ())))).found.rows == ROWS
    asked = cloudpickle.dumps(((cluster_worker.CountRequest(1, (), (JOINT.count,)),), ()))
    assert answer_of(worker.counts(1, [0], asked))[0].sum() == ROWS
    assert answer_of(worker.counts(1, [0, 1], asked)) == AbsentAnswer()
    assert answer_of(worker.counts(1, [1, 0], asked)) == AbsentAnswer()
    sample = cloudpickle.dumps(
        (cluster_worker.CountRequest(1, (), ()), 5, cluster_worker.Mask.of(np.ones(ROWS, dtype=bool)))
    )
    assert answer_of(worker.sample(1, 1, sample)) == AbsentAnswer()
    assert answer_of(worker.sample(1, 0, sample)) == 5


def test_a_digest_is_of_every_code_and_value() -> None:
    schema = dpf.Schema([dpf.Boolean("ill"), dpf.Numeric("age", 0, 10, bins=2)])

    def digest(codes: Any, ages: Any, key: bytes = b"k") -> bytes:
        return cluster_worker._digest(dpf.Table.from_codes(schema, codes, {"age": ages}), key)

    one = digest([[0, 1], [0, 1]], [1, 6])
    assert one == digest([[0, 1], [0, 1]], [1, 6])
    others = digest([[1, 1], [0, 1]], [1, 6]), digest([[0, 1], [0, 1]], [2, 6]), digest([[0], [0]], [1])
    assert len({one, *others, digest([[0, 1], [0, 1]], [1, 6], b"l")}) == 5


def test_a_digest_is_of_every_row_s_key_and_of_the_keys() -> None:
    def digest(*towns: str) -> bytes:
        return cluster_worker._digest(
            dpf.table_from_frame(pl.DataFrame({"town": towns}), dpf.Schema([dpf.Open("town")])), b"k"
        )

    assert digest("A", "B", "A") == digest("A", "B", "A")
    others = [("A", "B", "A"), ("A", "B", "B"), ("A", "C", "A"), ("A", "B"), ("A", "B", "A", "A")]
    assert len({digest(*towns) for towns in others}) == len(others)


def test_versions_of_all_that_counts_are_told() -> None:
    found = cluster_worker.versions(["dpframework", "there_is_no_such_package"])
    for name in cluster_worker.COMPARED:
        assert found[name] == importlib.metadata.version(name)
    assert found["the code of there_is_no_such_package"] == "not installed"
    assert len(found["the code of dpframework"]) >= 32


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 64])
def test_a_mask_travels_as_bits(length: int) -> None:
    mask = np.random.default_rng(length).random(length) < 0.5
    packed = cluster_worker.Mask.of(mask)
    assert len(packed.bits) == -(-length // 8)
    assert packed.mask().tolist() == mask.tolist()


def test_rows_are_named_and_show_nothing(engine: dpf.Dask, files: TableFiles) -> None:
    rows = engine.open(files)
    sample = engine.sample(rows, lambda number: np.ones(number, dtype=bool))
    assert isinstance(sample.lineage[-1], SampleOf)
    assert repr(sample) == "ClusterRows(rows are private)"
    assert (engine.cache_of(rows), engine.related_caches(rows)) == ({}, None)


# Tables of people, whose rows lie in several pieces

KINDS = ("rows of people", "columns of people", "views")


@pytest.fixture(scope="module")
def of_people(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TableFiles]:
    folder = tmp_path_factory.mktemp("people")
    return {
        "rows of people": write_visits(folder / "rows", VISITS, dpf.PrivacyUnit("person", 3)),
        "columns of people": write_visits(folder / "columns", OF_PEOPLE, dpf.PrivacyUnit("person")),
        "views": write_views(folder / "views"),
    }


@pytest.fixture
def asking(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of this process ask each other, and are told of as the client's messages are."""

    def ask(place: WorkerPlace, *given: Any) -> Any:
        cluster.messages.append((place.address, "hand"))
        cluster.before(place.address, "hand", given)
        actor = cluster.workers.get(place.address)
        if place.address not in cluster.live or actor is None:
            return None
        assert place.actor == f"actor of {place.address}"
        return actor.handed(*given)

    monkeypatch.setattr(shuffle_on_workers, "ask", ask)


def people(engine: dpf.Engine, rows: Any, files: TableFiles) -> Any:
    return people_counts(engine, rows, files.schema)


def in_memory(files: TableFiles) -> Any:
    here = dpf.InMemory()
    return people(here, here.load(files.read()), files)


def kept_of(pieces: ShuffledPieces) -> tuple[Any, Any]:
    """Return the messages that are kept for others, and what is known of each shuffle."""
    return pieces._messages, pieces._states


def require_nothing_left(cluster: Cluster) -> None:
    for address in cluster.live:
        if address in cluster.workers:
            assert kept_of(cluster.workers[address]._shuffled) == ({}, {})


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize("kind", KINDS)
def test_workers_shuffle_a_table_and_keep_no_message(
    kind: str, engine: dpf.Dask, cluster: Cluster, of_people: dict[str, TableFiles]
) -> None:
    files = of_people[kind]
    rows = engine.open(files)
    pieces = len(rows.table.pieces)
    assert [len(cluster.asked(method)) for method in ("spread", "gather", "settle", "read")] == [pieces, 2, pieces, 0]
    assert len(cluster.asked("hand")) == 2 * 2 + 2 * pieces
    assert people(engine, rows, files) == in_memory(files)
    require_nothing_left(cluster)


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize("method", ["spread", "gather", "settle", "hand"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_that_is_lost_in_a_shuffle_changes_no_count(
    kind: str, method: str, engine: dpf.Dask, cluster: Cluster, of_people: dict[str, TableFiles]
) -> None:
    files = of_people[kind]
    lost_at(cluster, method, only="a")
    rows = engine.open(files)
    assert set(rows.table.places.values()) == {"b", "later0"}
    assert people(engine, rows, files) == in_memory(files)
    require_nothing_left(cluster)


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_lost_worker_held_is_made_anew_by_all(
    kind: str, engine: dpf.Dask, cluster: Cluster, of_people: dict[str, TableFiles]
) -> None:
    """Also if three take over from two, so that there are other buckets. What the other one holds is kept as it is."""
    files = of_people[kind]
    rows = engine.open(files)
    before, kept = len(cluster.asked("settle")), rows.table.pieces_of("b")
    cluster.live[:] = ["b", "c", "d"]
    assert people(engine, rows, files) == in_memory(files)
    assert len(cluster.asked("settle")) == before + before - len(kept)
    assert len(cluster.asked("spread")) == 2 * before
    assert set(kept) <= set(rows.table.pieces_of("b"))
    assert set(cluster.asked("settle")[before:]) == {"c", "d"}
    require_nothing_left(cluster)


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_that_was_started_anew_takes_part_again(
    kind: str, engine: dpf.Dask, cluster: Cluster, of_people: dict[str, TableFiles]
) -> None:
    """Its address is the same: before the count, and while the table is shuffled once more."""
    files = of_people[kind]
    rows = engine.open(files)
    cluster.workers["a"] = ClusterWorker()

    def before(address: str, asked: str, given: tuple[Any, ...]) -> None:
        if asked == "settle" and address == "a":
            cluster.before = lambda *_: None
            cluster.workers["a"] = ClusterWorker()

    cluster.before = before
    assert people(engine, rows, files) == in_memory(files)
    require_nothing_left(cluster)


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize("method", ["spread", "gather", "settle", "hand"])
def test_what_ends_worker_after_worker_in_a_shuffle_is_not_asked_for_ever(
    method: str, engine: dpf.Dask, cluster: Cluster, of_people: dict[str, TableFiles]
) -> None:
    lost_at(cluster, method)
    with pytest.raises(
        dpf.InputError, match=r"^one worker after another was lost while it read; give each more memory"
    ):
        engine.open(of_people["rows of people"])


@pytest.mark.usefixtures("asking")
def test_files_that_change_are_not_shuffled_again_for_a_lost_worker(
    engine: dpf.Dask, cluster: Cluster, tmp_path: Path
) -> None:
    files = write_visits(tmp_path / "rows", VISITS, dpf.PrivacyUnit("person", 1))
    rows = engine.open(files)
    for place in files.files():
        pl.read_parquet(place).with_columns(pl.col("cost").shift(1)).write_parquet(place)
    cluster.live[:] = ["b", "c"]
    with pytest.raises(dpf.InputError, match=r"\d.parquet: changed while the study ran, and a lost worker's rows"):
        engine.number(rows)


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_strict_policy_refuses_is_said_in_the_same_words(
    kind: str, engine: dpf.Dask, cluster: Cluster, of_people: dict[str, TableFiles]
) -> None:
    """And nothing stays on a worker."""
    files = attrs.evolve(of_people[kind], out_of_domain="error")
    said = []
    for open_it in (files.read, lambda: engine.open(files)):
        with pytest.raises(dpf.InputError) as caught:
            open_it()
        said.append((type(caught.value), str(caught.value)))
    assert said[0] == said[1]
    assert "the id column 'person'" in said[0][1]
    require_nothing_left(cluster)


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize("kind", KINDS)
def test_no_id_and_no_number_of_ids_comes_to_the_client(
    kind: str, engine: dpf.Dask, cluster: Cluster, of_people: dict[str, TableFiles], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers of a shuffle are as long for one person as for many, and hold what they found wrong, and no more."""
    answers: dict[str, set[bytes]] = {}
    result = Answer.result

    def kept(answer: Answer, timeout: float) -> bytes:
        found = result(answer, timeout)
        answers.setdefault(answer.method, set()).add(found)
        return found

    monkeypatch.setattr(Answer, "result", kept)
    rows = engine.open(of_people[kind])
    told = [answer_of(one) for method in ("spread", "gather") for one in answers[method]]
    assert all(isinstance(one, ShuffleAnswer) for one in told)
    assert {name for one in told if isinstance(one, ShuffleAnswer) for name, _ in one.found.ids} <= set(IdFinding)
    assert max(len(one) for one in answers["spread"] | answers["gather"]) < 64
    assert all(len(one) < 200 for one in answers["settle"])
    everything = b"".join(set().union(*answers.values())) + repr(rows).encode()
    for person in (spelling for spellings in PEOPLE for spelling in spellings if len(spelling) > 2):
        assert person.encode() not in everything


def test_a_failure_while_a_bucket_is_gathered_tells_its_kind_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any, messages: Any) -> Any:
        raise dpf.InputError(f"there are {messages}")

    worker = ClusterWorker()
    how = BoundedRows(TableFiles("t.csv", VISITS, unit=dpf.PrivacyUnit("person")), ("t.csv",), 0, b"key")
    monkeypatch.setattr(BoundedRows, "gather", fail)
    assert answer_of(worker.gather(1, 0, cloudpickle.dumps((how, [])))) == FailureAnswer("InputError")
    assert answer_of(worker.spread(1, 0, b"no pickle")) == FailureAnswer("an error of its own")
    assert answer_of(worker.gather(1, 0, b"no pickle")) == FailureAnswer("an error of its own")
    assert answer_of(worker.settle(1, 0, b"no pickle")) == FailureAnswer("an error of its own")


def test_what_is_handed_over_is_handed_once_and_of_all_or_none() -> None:
    held = ShuffledPieces()
    messages, states = kept_of(held)
    messages |= {("pieces", 1, 0): {0: b"", 1: b"b"}, ("pieces", 1, 1): {0: b"c"}, ("buckets", 1, 0): {0: b"d"}}
    assert held.hand(1, "pieces", [0, 1], 0) == [b"", b"c"]
    assert held.hand(1, "pieces", [0, 1], 0) is None
    assert held.hand(1, "pieces", [0, 7], 1) is None
    assert held.hand(2, "pieces", [0], 1) is None
    assert held.hand(1, "buckets", [0], 0) == [b"d"]
    messages["pieces", 2, 0], states[2, 0] = {0: b"e"}, None
    held.end(1)
    assert kept_of(held) == ({("pieces", 2, 0): {0: b"e"}}, {(2, 0): None})
    held.end(2)
    assert kept_of(held) == ({}, {})


def test_a_piece_is_settled_by_the_worker_that_spread_it(of_people: dict[str, TableFiles]) -> None:
    files = of_people["rows of people"]
    pieces = files.pieces(1)
    how = shuffle_of(files, pieces)
    asked = cloudpickle.dumps((how, pieces[0], b"key", (), []))
    assert answer_of(ClusterWorker().settle(1, 0, asked)) == UnreachableAnswer()
