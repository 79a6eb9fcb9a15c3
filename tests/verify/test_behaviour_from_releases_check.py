"""Which tables a transcript is replayed on, and what is said of those on which a run does something else."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts.privacy_losses import Relation
from dpframework.mechanisms import DiscreteLaplace, Gaussian
from dpframework.queries import Count, Histogram
from dpframework.verify.miners import behaviour_from_releases_check
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.behaviour_from_releases_check import ADVICE, Behaviour, loss_text
from dpframework.verify.miners.neighbour_pair_search import Labelled, drop_labels, label_rows
from dpframework.verify.miners.replay_on_other_table import caps_of, difference, replay
from dpframework.verify.miners.transcript import (
    DerivationEvent,
    PartitionEvent,
    ReleaseEvent,
    RunOutcome,
    SampleEvent,
    Transcript,
    record,
)
from dpframework.verify.search_time_limit import Patience
from dpframework.verify.tables.neighbours import Pair, Sizes

ADD, REPLACE = Relation
SCHEMA = dpf.Schema([dpf.Categorical("town", ["A", "B", "C"]), dpf.Boolean("ill")])
OF_FIVE = attrs.evolve(SCHEMA, rows=5)
SAME, OTHER, REFUSED = (None, False), ("it differs", False), ("it is refused", True)


@attrs.frozen
class One(dpf.Miner):
    """Counts rows or towns."""

    name = "one"
    query: Any = attrs.field(factory=Count)
    noise: Any = attrs.field(factory=lambda: DiscreteLaplace(1))

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        return dpf.step("n", self.query, self.noise)

    def mine(self, table: Any) -> Any:
        return table.release("n")


@attrs.frozen
class Replay:
    """What a table shows: how it diverges, and the logarithm of its density."""

    divergence: str | None
    refused: bool
    density: float

    def loss(self, other: Replay) -> float:
        return abs(self.density - other.density)


class FirstRow(dpf.Query):
    """Whether the first row is ill."""

    name = "first-row"
    answer_length = 1  # type: ignore[assignment]
    sensitivities = (dpf.Sensitivity("l1", 1, 1, source="test"),)  # type: ignore[assignment]

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.array([block.codes("ill")[:1].sum()])


Shows = Callable[[bytes], tuple[str | None, bool]]


def transcript(error: str | None = None, refused: str | None = None) -> Transcript:
    return Transcript((), RunOutcome(None, error, ""), refused)


class Tried:
    """A behaviour of which each replay is noted, and shows what a function says."""

    def __init__(
        self,
        shows: Shows = lambda rows: SAME,
        density: Callable[[bytes], float] = lambda rows: 0.0,
        relation: Relation = ADD,
        schema: dpf.Schema = SCHEMA,
        patience: Any = None,
        **given: Any,
    ) -> None:
        self.subject = Subject(One(**given), schema, relation)
        self.on: Any = Behaviour(self.subject, np.random.default_rng(0), patience or Patience())
        self.tables: list[bytes] = []
        self.shows, self.density = shows, density
        self.on._replay = self.replay

    def replay(self, _: Transcript, rows: bytes) -> Replay:
        self.tables.append(rows)
        return Replay(*self.shows(rows), self.density(rows))

    def neighbours(self, rows: Labelled, most: int) -> list[Labelled]:
        found: list[Labelled] = self.on._neighbours(rows, most)
        return found

    def far_tables(self, rows: bytes, most: int) -> list[bytes]:
        return [*self.on._far_tables(rows, most)]

    def unlike(self, rows: bytes, k: int) -> bytes:
        found: bytes = self.on._unlike(rows, k)
        return found

    def walk(self, rows: bytes, far: bytes) -> None:
        self.on._walk(rows, far, transcript())

    @property
    def said(self) -> dict[str, str]:
        return {kind: one.what for kind, one in self.on.violations.items()}

    def shown(self, kind: str) -> tuple[bytes, bytes]:
        found: tuple[bytes, bytes] = self.on.violations[kind].tables
        return found


def test_what_a_plan_allows_and_how_large_tables_are() -> None:
    one = Behaviour(Subject(One(), SCHEMA, ADD), np.random.default_rng(0), Patience())
    assert one.sizes == Sizes(0, 60)
    assert one.allowed == 1 + 2e-6
    assert (one.reruns, one.violations) == (0, {})
    assert Behaviour(Subject(One(), OF_FIVE, REPLACE), np.random.default_rng(0), Patience()).sizes == Sizes(4, 4)
    without = Behaviour(Subject(One(noise=Gaussian("0.5")), SCHEMA, ADD), np.random.default_rng(0), Patience())
    assert (without.allowed, without._tolerance) == (math.inf, 1e-6)
    assert loss_text(math.inf) == "infinitely much"
    assert loss_text(1.23456789) == "1.23457"


def test_tables_that_are_drawn_are_of_a_size_that_the_schema_allows() -> None:
    for relation, schema, most, sizes in (
        (ADD, SCHEMA, 4, {0, 1, 2, 3, 4}),
        (REPLACE, SCHEMA, 4, {1, 2, 3, 4}),
        (ADD, OF_FIVE, 60, {5}),
        (REPLACE, OF_FIVE, 60, {5}),
        (ADD, attrs.evolve(SCHEMA, max_rows=3), 60, {0, 1, 2}),
        (REPLACE, SCHEMA, 0, {1}),
    ):
        one = Behaviour(Subject(One(), schema, relation), np.random.default_rng(0), Patience())
        assert {len(one.table(most)) for _ in range(200)} == sizes
    one = Tried().on
    tables = [one.table(60) for _ in range(200)]
    assert {kind for table in tables for kind in table} == set(range(6))
    few = np.mean([len(set(table)) <= 3 for table in tables if len(table) > 20])
    assert 0.25 < few < 0.75  # half of them are of three kinds that are drawn


def test_a_run_that_is_refused_or_fails_is_said_first() -> None:
    for given, said in (
        ({"error": "ValueError: a"}, {"error": "the run fails with ValueError: a"}),
        ({"refused": "it is not planned", "error": "b"}, {"plan": "it is not planned"}),
        ({}, {}),
    ):
        one = Tried()
        one.on.examine(b"\0", transcript(**given), 0)
        assert one.said == said
    for shown, said in (
        (REFUSED, {"refused": "it is refused"}),
        (OTHER, {"itself": f"repeated with the same releases on the same rows, it differs; {ADVICE}"}),
    ):
        one = Tried(lambda rows, shown=shown: shown)
        one.on.examine(b"\0\1", transcript(), 8)
        assert (one.tables, one.said) == ([b"\0\1"], said)


def test_a_transcript_is_replayed_on_orders_neighbours_and_far_tables() -> None:
    one = Tried()
    one.on.examine(b"\0\1\2", transcript(), 6)
    own, moved, reversed_, *others = one.tables
    assert (own, moved, reversed_) == (b"\0\1\2", b"\1\2\0", b"\2\1\0")
    assert all(abs(len(other) - 3) == 1 for other in others[:6])
    assert len(others) == 9
    assert others[6] == b""
    assert len(others[7]) <= 10
    assert one.said == {}
    for patience in (Patience(-1),):
        ended = Tried(patience=patience)
        ended.on.examine(b"\0\1\2", transcript(), 6)
        assert ended.tables == [b"\0\1\2", b"\1\2\0", b"\2\1\0"]


def test_the_order_of_rows_must_not_matter() -> None:
    for shows, density, how in (
        (lambda rows: OTHER if rows[:1] > b"\0" else SAME, lambda rows: 0.0, "it differs"),
        (lambda rows: SAME, lambda rows: 0.5 * (rows[:1] > b"\0"), "a loss of 0.5"),
        (lambda rows: SAME, lambda rows: math.inf if rows[:1] > b"\0" else 0.0, "a loss of infinitely much"),
    ):
        one = Tried(shows, density)
        one.on._order(Replay(None, False, 0.0), label_rows(b"\0\1\2"), transcript())
        assert one.said == {"order": f"the order of the rows matters: with the rows in another order, {how}"}
        kept, other = one.shown("order")
        assert sorted(kept) == sorted(other)
        assert len(kept) == 2  # the smallest that shows it
    for loss, said in ((1.9e-6, 0), (2.1e-6, 1)):
        one = Tried(density=lambda rows, loss=loss: loss * (rows[:1] != b"\0"))
        one.on._order(Replay(None, False, 0.0), label_rows(b"\0\1\2"), transcript())
        assert len(one.said) == said


def test_what_differs_on_a_neighbour_is_shown_on_the_smallest_tables() -> None:
    for shows, density, kind, what in (
        (lambda rows: OTHER if 5 in rows else SAME, lambda rows: 0.0, "control", "on a neighbour, it differs"),
        (lambda rows: REFUSED if 5 in rows else SAME, lambda rows: 0.0, "refused", "on a neighbour, it is refused"),
        (
            lambda rows: SAME,
            lambda rows: 1.5 * rows.count(5),
            "loss",
            "a transcript loses 1.5, the plan claims 1",
        ),
    ):
        one = Tried(shows, density)
        one.on.examine(b"\0\1\2", transcript(), 30)
        assert one.said == {kind: what}
        assert one.shown(kind) == (b"", b"\5")
        assert [*one.on.violations[kind].other] == ["1 x (town: C, ill: true)"]
    for loss, said in ((1 + 1.9e-6, {}), (1 + 2.1e-6, {"loss"})):
        one = Tried(density=lambda rows, loss=loss: loss * rows.count(5))
        one.on.examine(b"\0\1\2", transcript(), 30)
        assert set(one.said) == set(said)


def test_from_a_far_table_the_first_neighbours_that_differ_are_found() -> None:
    one = Tried(lambda rows: OTHER if len(rows) > 8 else SAME)
    one.walk(b"\0\1", b"\2" * 10)
    assert one.said == {"control": "on a neighbour, it differs"}
    assert tuple(map(len, one.shown("control"))) == (8, 9)
    gone = Tried(lambda rows: REFUSED if len(rows) < 2 else SAME)
    gone.walk(b"\0\1\3", b"\2")
    assert gone.shown("refused") == (b"\1\3", b"\3")
    alike = Tried(lambda rows: OTHER if rows.count(2) > 1 else SAME, relation=REPLACE, schema=OF_FIVE)
    alike.walk(b"\0\1\0\1\0", b"\2" * 5)
    one_, other = alike.shown("control")
    assert (one_.count(2), other.count(2), len(one_), len(other)) == (1, 2, 5, 5)
    still = Tried()
    still.walk(b"\0\1", b"\2\2\2")
    assert still.tables == [b"\1", b"", b"", b"\2", b"\2\2", b"\2\2\2"]
    assert still.said == {}


def of(one: Tried, rows: Labelled, most: int) -> set[tuple[int, int]]:
    """How many rows each neighbour has more, and how many have another label."""
    found = one.neighbours(rows, most)
    labels = {label for label, _ in rows}
    return {(len(other) - len(rows), sum(label not in labels for label, _ in other)) for other in found}


def test_neighbours_are_those_of_the_relation() -> None:
    rows = label_rows(b"\0\1\2\3\4")
    assert of(Tried(), rows, 40) == {(-1, 0), (1, 1)}
    assert of(Tried(relation=REPLACE), rows, 40) == {(0, 1)}
    assert of(Tried(schema=OF_FIVE), rows, 40) == {(1, 1)}
    assert len(Tried().neighbours(rows, 3)) == 3
    assert len(Tried().neighbours(rows, 40)) == 40
    assert len(Tried(relation=REPLACE).neighbours(rows, 40)) == 5
    assert {len(other) for other in Tried().neighbours(label_rows(bytes(60)), 40)} == {59, 61}
    assert {len(other) for other in Tried().neighbours(label_rows(bytes(61)), 40)} == {60}
    tables = [drop_labels(other) for other in Tried().neighbours(label_rows(bytes(4)), 300)]
    assert {table.index(5) for table in tables if 5 in table} == {0, 1, 2, 3, 4}
    replaced = Tried(relation=REPLACE).neighbours(rows, 40)
    assert {tuple(k for k in range(5) if other[k] != rows[k]) for other in replaced} == {(k,) for k in range(5)}


def test_neighbours_of_sampled_units_differ_by_all_rows_of_one() -> None:
    universe = SimpleNamespace(kinds=6)
    subject = SimpleNamespace(universe=universe, relation=ADD, together=3, schema=SCHEMA)
    one: Any = SimpleNamespace(subject=subject, rng=np.random.default_rng(0), sizes=Sizes(0, 60))
    found = [tuple(label for label, _ in other) for other in Behaviour._neighbours(one, label_rows(bytes(4)), 40)]
    assert {*found} == {(0,), (1, 2, 3), (0, 4, 5, 6, 1, 2, 3), (0, 1, 2, 3, 4, 5, 6)}  # the first unit has one row


def test_far_tables_have_the_size_that_is_public() -> None:
    far = [*Tried().far_tables(b"\0\1\2", 20)]
    assert (far[0], len(far)) == (b"", 20)
    assert all(len(table) <= 10 for table in far[1::2])
    assert max(map(len, far)) > 10
    for one in (Tried(relation=REPLACE), Tried(schema=OF_FIVE)):
        assert {len(table) for table in one.far_tables(b"\0\1\2\3\4", 20)} == {5}
    unlike = [Tried().unlike(b"\0\1\2", k) for k in range(4)]
    assert unlike == [b"", bytes([1, 3, 5, 1]), bytes([2, 5, 2, 5] * 2), bytes([3, 1, 5] * 4)]
    assert len(Tried().unlike(bytes(40), 3)) == 60
    assert Tried(relation=REPLACE).unlike(b"\0\1\2", 0) == bytes([0, 1, 2])
    assert Tried(schema=OF_FIVE).unlike(bytes(5), 1) == bytes([1, 3, 5, 1, 3])


def test_very_many_equal_rows_are_replayed_kind_by_kind() -> None:
    one = Tried()
    one.on.examine_many(transcript(), 900)
    assert {len(table) for table in one.tables} == {900}
    assert len({table[0] for table in one.tables}) == len(one.tables) >= 3
    large = Tried(lambda rows: REFUSED if len(rows) > 300 else SAME)
    large.on.examine_many(transcript(), 900)
    assert large.said == {"refused": "on a neighbour, it is refused"}
    assert tuple(map(len, large.shown("refused"))) == (300, 301)
    always = Tried(lambda rows: REFUSED)
    always.on.examine_many(transcript(), 900)
    assert always.said == {"refused": "on this table, it is refused"}
    other = Tried(lambda rows: OTHER if len(rows) > 300 else SAME)
    other.on.examine_many(transcript(), 900)
    assert other.said == {"control": "on a neighbour, it differs"}
    assert len({table[0] for table in other.tables if len(table) not in (0, 900)}) == 1  # of one kind of row
    for alike in (Tried(lambda rows: OTHER, relation=REPLACE), Tried(lambda rows: OTHER, schema=OF_FIVE)):
        alike.on.examine_many(transcript(), 900)
        assert alike.said == {}
        assert {len(table) for table in alike.tables} == {900}
    ended = Tried(patience=Patience(-1))
    ended.on.examine_many(transcript(), 900)
    assert ended.tables == []


def test_both_tables_of_a_pair_are_replayed() -> None:
    one = Tried(lambda rows: OTHER if 5 not in rows else SAME)
    one.on.examine_pair(Pair(b"\0\1", b"", b"\5"), transcript())
    assert one.tables[0] == b"\0\1\5"
    assert one.shown("control") == (b"\5", b"")
    both = Tried()
    both.on.examine_pair(Pair(b"\0\1", b"", b"\5"), transcript())
    assert both.tables == [b"\0\1\5", b"\0\1"]


def test_a_search_without_any_loss_is_said() -> None:
    tail = "Something other than the rows decides the releases, or no loss can be shown on tables of this schema"

    def said(query: Any, relation: Relation = ADD, schema: dpf.Schema = SCHEMA) -> dict[str, str]:
        one = Tried(relation=relation, schema=schema, query=query)
        one.on.note_no_loss([record(one.subject, bytes(range(5)), 0)])
        return one.said

    lost = "the search found no loss at all, so it tested nothing: "
    assert said(Count()) == {"no loss": f"{lost}no row changes what was released. {tail}"}
    assert said(Count(), REPLACE) == {}
    assert said(Histogram(SCHEMA["town"]), REPLACE) == {"no loss": f"{lost}no row changes what was released. {tail}"}
    assert list(said(FirstRow(), REPLACE)) == ["no loss"]  # some pairs of tables have the same answer, and some not
    still = {"no loss": f"{lost}the query of step 'n' answers the same on every table tried. {tail}"}
    assert said(Count(), schema=OF_FIVE) == still
    assert said(Count(), REPLACE, OF_FIVE) == still


def test_what_runs_keep_is_compared_on_tables_with_the_same_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(
        kept: Any, files: Any = (), divergence: Any = SAME, matters: bool = False
    ) -> tuple[list[str], list[bytes]]:
        one, tables = Tried(), list[bytes]()

        class Watched:
            def __enter__(self) -> set[str]:
                return set(files)

            def __exit__(self, *_: object) -> None:
                pass

        def replay(_: Any, made: Any, rows: bytes) -> Replay:
            tables.append(rows)
            return Replay(*(divergence if len(tables) > 2 else SAME), 0.0)

        monkeypatch.setattr(behaviour_from_releases_check, "replay", replay)
        monkeypatch.setattr(behaviour_from_releases_check, "watch_files", Watched)
        back = list[int]()
        one.on._hidden = SimpleNamespace(put_back=lambda: back.append(1), changed_places=lambda: kept(tables[-1]))
        one.on._cache_matters = lambda *_: matters
        one.on.examine_memory(b"\0\1", transcript())
        assert len(back) == 5
        return [one.said[kind] for kind in one.said], tables

    said, tables = told(lambda rows: {"global 'A'": "public"})
    assert said == []
    assert tables == [b"\0\1", b"\0\1", *(Tried().unlike(b"\0\1", k) for k in range(4))]
    runs = "a run keeps something of its rows for later runs, in "
    assert told(lambda rows: {"global 'A'": str(rows), "b": "x"})[0] == [f"{runs}global 'A'"]
    assert told(lambda rows: {name: str(rows) for name in "dbca"})[0] == [f"{runs}a, b, c"]
    assert told(lambda rows: {"a": "x"} if rows == b"\0\1" else {})[0] == [f"{runs}a"]
    assert told(lambda rows: {} if rows == b"\0\1" else {"a": "x"})[0] == [f"{runs}a"]
    assert told(lambda rows: {}, files=["/a/file"])[0] == [f"{runs}/a/file"]
    assert told(lambda rows: {"the cache of 'f'": str(rows)})[0] == []
    assert told(lambda rows: {"the cache of 'f'": str(rows)}, matters=True)[0] == [f"{runs}the cache of 'f'"]
    assert told(lambda rows: {"the cache of 'f'": str(rows), "a": str(rows)})[0] == [f"{runs}a, the cache of 'f'"]
    first = "a run keeps something for later runs: if the first run is on another table, it differs"
    assert told(lambda rows: {}, divergence=OTHER)[0] == [first]


def test_no_release_from_a_sample_has_a_cap_of_its_own() -> None:
    """What its rows lose is in the sample's one cap: in its parts, and with attributes that are derived there, too."""
    cases: Any = None
    charge: Any = SimpleNamespace(path="from the sample")  # nothing to take a cap from
    events = [
        SampleEvent(Fraction(1, 2), rows=0, result=1),
        PartitionEvent(cases, rows=1, parts=range(2, 4)),
        DerivationEvent(dpf.Boolean("old"), cases, rows=3, result=4),
        SampleEvent(Fraction(1, 2), rows=2, result=5),
        *(ReleaseEvent(charge, {}, None, 0, rows) for rows in (1, 2, 3, 4, 5)),
    ]
    subject: Any = SimpleNamespace(plan=SimpleNamespace(has_exact_delta=True))
    assert caps_of(subject, events) == (0.0,)


@pytest.mark.parametrize(
    ("one", "other", "caps", "expected"),
    [
        ((1, 2), (0, 5), (), 2),
        ((1, 2), (0, 5), (math.inf, math.inf), 2),
        ((1, 2), (0, 5), (0.5, math.inf), 2.5),  # 0.5 - 3
        ((1, 2), (0, 5), (0.5, 1), 0.5),  # 0.5 - 1
        ((0, 5), (1, 2), (0.5, 1), 0.5),  # 1 - 0.5
        ((1, 2), (0, 5), (0, 0), 0),
        ((1, -math.inf), (0, 5), (math.inf, 1), 0),  # outside of the core
        ((1, -math.inf), (0, 5), (1, math.inf), math.inf),
        ((-math.inf, 2), (0, -math.inf), (), 0),  # neither table gives both
        ((1, math.nan), (0, 5), (0, 0), math.inf),
    ],
)
def test_a_release_with_a_cap_adds_no_more_than_its_cap(
    one: tuple[float, ...], other: tuple[float, ...], caps: tuple[float, ...], expected: float
) -> None:
    assert difference(one, other, caps) == difference(other, one, caps) == expected


@attrs.frozen
class CutsInTurn(dpf.Miner):
    """Cuts the table by a town that it asks for, whatever was released."""

    name = "cuts-in-turn"
    town: Any

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        town = dpf.step("town", Histogram(schema["town"]), DiscreteLaplace("0.5"))
        return dpf.sequential(
            town, dpf.parallel(dpf.step("n", Count(), DiscreteLaplace("0.5")), by=dpf.FromRelease("town"))
        )

    def mine(self, table: Any) -> Any:
        table.release("town")
        return [part.release("n") for part in table.partition(dpf.Equals("town", self.town()))]


@pytest.mark.parametrize(("second", "divergence"), [("A", None), ("B", "the run makes .* where the recorded run did")])
def test_a_run_that_cuts_the_same_rows_in_another_way_diverges(second: str, divergence: str | None) -> None:
    towns = [second, "A"]
    subject = Subject(CutsInTurn(lambda: towns.pop()), SCHEMA, ADD)
    recorded = record(subject, b"\0\1\2", 7)
    found = replay(subject, recorded, b"\0\1\2\2").divergence
    assert found is None if divergence is None else re.match(divergence, found or "")
