"""How runs are steered: what is aimed at, which code counts as reached, and which runs are kept."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts.privacy_losses import Relation
from dpframework.mechanisms import DiscreteLaplace, Exponential, Gaussian
from dpframework.queries import Count, Histogram
from dpframework.verify.miners import runs_steered_to_rare_code
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.runs_steered_to_rare_code import (
    _branches,
    _first_aims,
    _paths,
    _SteeringGate,
    _trace,
    _variants,
    steer,
)
from dpframework.verify.miners.transcript import PartitionEvent, ReleaseEvent, run_through
from dpframework.verify.plugin_code_constants import constants_of
from dpframework.verify.search_time_limit import Patience

ADD, _ = Relation
SCHEMA = dpf.Schema([dpf.Categorical("town", ["A", "B", "C"]), dpf.Boolean("ill")])
LARGE = 10**6
LIMIT = 4_321
PACKAGE = __name__.partition(".")[0]


@attrs.frozen
class Steps(dpf.Miner):
    """Releases a count, the towns and the commonest, as a function of the released values says."""

    name = "steps"
    noise: Any = attrs.field(factory=lambda: DiscreteLaplace(1))
    size: int = 12
    share: float = 0.25
    flag: bool = True

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        towns = Histogram(schema["town"])
        steps = [dpf.step("rows", Count(), self.noise), dpf.step("towns", towns, self.noise)]
        return dpf.sequential(*steps, dpf.step("chosen", towns, Exponential(1)))

    def mine(self, table: Any) -> Any:
        rows = table.release("rows")
        if rows > LIMIT:
            return table.release("towns")
        if rows < -777:
            return table.release("chosen")
        return rows


def test_all_releases_are_aimed_at_large_numbers_constants_and_coordinates() -> None:
    assert [*_first_aims([50.0, 2.0])] == [
        [(0, None)],
        [(LARGE, None)],
        [(-LARGE, None)],
        *([(number, place, -number)] for place in range(2) for number in (LARGE, -LARGE)),
        *([(number, None)] for number in (51, 50, 49, 3, 2, 1)),
        *([(LARGE, place)] for place in range(4)),
    ]


def test_one_release_is_aimed_otherwise() -> None:
    others = [(LARGE, None), (-LARGE, None), *((LARGE, place) for place in range(4)), (9.0, None), (8.0, None)]
    a, b = (1, None), (2, None)
    assert [*_variants([a, b], 3, [9.0, 8.0, 7.0])] == [
        *([other, b, a, b] for other in others),
        *([a, other, a, b] for other in others),
        *([a, b, other, b] for other in others),
    ]
    assert len([*_variants([None], 6, [])]) == 4 * 6
    assert [*_variants([None], 0, [9.0])] == []
    assert [len(one) for one in _variants([None], 6, [])] == [7] * 24


def release(path: str) -> ReleaseEvent:
    return ReleaseEvent(SimpleNamespace(path=path), {}, None, 0, 0)  # type: ignore[arg-type]


def test_paths_are_those_of_releases_and_their_number_up_to_three() -> None:
    cut = PartitionEvent(SCHEMA["town"], 0, range(1, 4))
    assert [*_paths([release("a"), cut, release("b"), release("a")])] == ["a", "b", "a", ("number of releases", 3)]
    assert [*_paths([cut])] == [("number of releases", 0)]
    assert [*_paths([release("a")])][-1] == ("number of releases", 1)
    assert [*_paths([release("a")] * 5)][-1] == ("number of releases", 3)


def test_numbers_that_are_given_to_a_query_count_as_reached_if_they_are_large_or_below_0() -> None:
    def reached(**inputs: Any) -> list[Any]:
        charge: Any = SimpleNamespace(path="a", step=SimpleNamespace(query=SimpleNamespace(name="asks")))
        return [*_paths([ReleaseEvent(charge, inputs, None, 0, 0)])][2:]

    assert reached(cap=3, rows=b"", text="9") == [("asks", "cap", False, False)]
    assert reached(cap=-3.5) == reached(cap=np.int64(-100)) == [("asks", "cap", True, False)]
    assert reached(cap=np.float64(101)) == [("asks", "cap", False, True)]
    assert reached(one=1, other=-101) == [("asks", "one", False, False), ("asks", "other", True, True)]


def helper(x: int) -> int:
    def inner(y: int) -> int:
        return y + 31_415

    return inner(x) + LIMIT


class Holding:
    """Constants in its methods, in a function that these call, in a function within, and as an attribute."""

    worth = 777
    far = 10**8
    too_far = 10**8 + 1
    truth = True

    def method(self) -> int:
        return helper(2) + 99


@attrs.frozen
class Fields:
    """Constants in fields."""

    one: Any


def test_constants_are_found_in_code_globals_and_fields() -> None:
    found = constants_of([Holding()])
    assert found == sorted(found, key=abs, reverse=True)
    assert {777.0, 99.0, 31_415.0, float(LIMIT), 1e8, 2.0} <= {*found}
    assert 1e8 + 1 not in found
    fields = constants_of([Fields(1234), Fields(1234.5), Fields(-7654), Fields("3"), Fields(10**9)])
    assert {1234.0, 1234.5, -7654.0} <= {*fields}
    assert fields[0] == -7654
    many = constants_of([Fields(10_000 + k) for k in range(30)])
    assert many[:12] == [10_029.0 - k for k in range(12)]
    assert constants_of([Count()]) == []
    assert all(type(number) is float for number in found)


def test_lists_that_hold_themselves_are_read_once() -> None:
    around: list[Any] = [4321]
    around.append(around)
    assert 4321 in constants_of([Fields(around)])
    assert 4321 in constants_of([Fields({"key": around})])


def straight(x: Any) -> Any:
    return x.real


def forked(x: Any) -> Any:
    if x > 3:
        return x + 1
    return x


def test_operations_of_functions_that_branch_are_traced() -> None:
    assert _branches(forked.__code__)
    assert not _branches(straight.__code__)
    before = sys.gettrace()

    def traced(*numbers: int, packages: set[str] | None = None) -> set[Any]:
        with _trace({PACKAGE} if packages is None else packages) as reached:
            for number in numbers:
                forked(number)
                straight(number)
        return reached

    low, high = traced(1), traced(5)
    assert sys.gettrace() is before
    assert (straight.__code__, 0) in low & high
    assert low - high
    assert high - low
    assert {code for code, _ in low} == {forked.__code__, straight.__code__}
    assert len({place for code, place in low if code is forked.__code__}) > 3
    assert traced(1, 5) == low | high
    assert traced(*[1] * 20, 5) == low | {(forked.__code__, 0)}  # only so many calls are looked at
    assert traced(*[1] * 19, 5) == low | high
    assert traced(1, packages=set()) == set()
    assert traced(1, packages={PACKAGE[:-1], PACKAGE + "s"}) == set()
    with pytest.raises(ValueError, match="ends"), _trace(set()):
        raise ValueError("ends")
    assert sys.gettrace() is before


def put_out(miner: Any, *aims: Any, rows: bytes = bytes(range(6))) -> tuple[Any, list[Any]]:
    """The result of a run, and the outputs of its releases."""
    subject = Subject(miner, SCHEMA, ADD)
    gate = _SteeringGate(subject.engine, runs_steered_to_rare_code.SeededRandomness(0), aims=aims)
    transcript = run_through(subject, gate, rows)
    assert (transcript.outcome.error, transcript.refused) == (None, None)
    assert all(event.rows == 0 for event in transcript.events)
    return transcript.outcome.result, [made.output for made in transcript.releases]


def test_releases_put_out_what_they_are_aimed_at() -> None:
    result, (rows, towns) = put_out(Steps(), (5_000, None))
    assert rows == 5_000
    assert np.asarray(rows).dtype.kind == "i"
    assert result.tolist() == towns.tolist() == [5_000] * 3
    assert put_out(Steps(), (5_000, None), (60, 1))[1][1].tolist() == [0, 60, 0]
    assert put_out(Steps(), (5_000, None), (60, 3))[1][1].tolist() == [0, 0, 0]
    assert put_out(Steps(), (5_000, None), (60, 1, -7.4))[1][1].tolist() == [-7, 60, -7]
    assert put_out(Steps(), (50, 0))[1] == [50]
    assert put_out(Steps(), (-778, None), (0, 1))[0] == "B"
    assert put_out(Steps(), (-778, None), (0, 4))[0] == "B"  # the places of candidates go round
    assert put_out(Steps(), (-778, None), (0, None))[0] == "A"
    assert put_out(Steps(), (7.4, None))[1] == [7]  # on the lattice of the mechanism
    drawn = put_out(Steps(), None)[1]
    assert drawn == put_out(Steps(), None)[1]
    assert abs(drawn[0] - 6) < 30  # except with a probability of 1e-13
    (real,) = put_out(Steps(Gaussian("0.5")), (50, None))[1]
    assert abs(real - 50) < 1e-3


def test_numbers_are_put_on_the_lattice_of_a_mechanism() -> None:
    mechanism = SimpleNamespace(log_density=lambda *_: 0.0)
    charge: Any = SimpleNamespace(calibration=SimpleNamespace(mechanism=mechanism, unit=0.25))
    gate: Any = SimpleNamespace(draw=lambda *_: [np.array([0.5, 3.0])], aims=[(7.4, 1)], events=[])
    put: Any = _SteeringGate.output(gate, charge, SimpleNamespace(number=4), {"a": 1}, None, 0)  # type: ignore[arg-type]
    assert put.tolist() == [0.0, 7.5]
    (event,) = gate.events
    assert (event.output is put, event.rows, event.inputs, event.candidates) == (True, 4, {"a": 1}, None)


def test_an_output_that_is_impossible_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscreteLaplace, "log_density", lambda *_: -np.inf)
    assert put_out(Steps(), (5_000, None))[1] == put_out(Steps(), None)[1]


def test_runs_are_kept_that_reach_something_new() -> None:
    subject = Subject(Steps(), SCHEMA, ADD)
    tables = [bytes(range(6)), b"\0"]
    kept = [*steer(subject, tables, Patience())]
    paths = [[made.charge.path for made in transcript.releases] for _, transcript in kept]
    assert ["audited/rows", "audited/towns"] in paths
    assert ["audited/rows", "audited/chosen"] in paths
    assert len(kept) <= 6
    assert {rows for rows, _ in kept} <= {*tables}
    assert all((one.refused, one.outcome.error) == (None, None) for _, one in kept)


def test_runs_end_with_patience_and_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    subject, ran = Subject(Steps(), SCHEMA, ADD), list[Any]()

    def run(subject: Any, gate: Any, rows: bytes) -> Any:
        ran.append((tuple(gate.aims), rows))
        gate.events.extend(release(name) for name in here(len(ran) - 1))
        return SimpleNamespace(events=gate.events)

    def runs(patience: Patience, replays: int = 80, tables: Any = (b"a", b"b", b"c")) -> list[Any]:
        ran.clear()
        return [(rows, len(transcript.events)) for rows, transcript in steer(subject, tables, patience, replays)]

    monkeypatch.setattr(runs_steered_to_rare_code, "run_through", run)
    here = lambda k: ()  # noqa: E731
    always = [(b"a", 0), (b"b", 0)]  # all outputs large, and all far below 0
    assert runs(Patience()) == always
    assert [aims for aims, _ in ran[:5]] == [(None,), (None,), ((0, None),), ((LARGE, None),), ((-LARGE, None),)]
    assert [rows for _, rows in ran[:4]] == [b"a", b"b", b"c", b"a"]
    steps = subject.plan.steps()
    things = [subject.miner, *(part for one in steps for part in (one.query, one.mechanism))]
    constants = constants_of(things)[: runs_steered_to_rare_code.MOST_CONSTANTS]
    aims = len([*_first_aims(constants)])
    assert len(ran) == min(40, 2 + aims)
    assert runs(Patience(-1)) == []
    assert len(ran) == 1  # the first is made in any case

    here = lambda k: [f"new {k}"]  # noqa: E731
    assert len(runs(Patience())) == 6  # the most that are kept
    assert len(ran) == 8  # of runs that are as drawn none is
    monkeypatch.setattr(runs_steered_to_rare_code, "MOST_KEPT", 10**6)
    assert len(runs(Patience())) == 38
    assert len(ran) == 40
    runs(Patience(), 80 * 40)
    assert len(ran) == 40
    runs(Patience(), 80 * 41)
    assert len(ran) == 41

    here = lambda k: [f"{j} of {k}" for j in range(7 if k > 1 else 6)] if k < 3 else ()  # noqa: E731
    assert runs(Patience(), 80 * 500) == [(b"c", 7), *always]
    beside = len([*_variants([None], 6, constants)])
    assert len(ran) == 2 + aims + 2 * beside  # of a run of more than six releases none is tried beside it
