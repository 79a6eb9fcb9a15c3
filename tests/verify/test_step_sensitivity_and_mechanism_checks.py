"""Which queries and mechanisms of a miner's runs are checked, how long, and what is said of those that are not."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.mechanisms import DiscreteLaplace
from dpframework.queries import Count, Histogram, Query
from dpframework.verify.miners import step_sensitivity_and_mechanism_checks
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.query_trace import QueryCall
from dpframework.verify.miners.step_sensitivity_and_mechanism_checks import StepChecks, _can_be_drawn
from dpframework.verify.queries.sensitivity_report import SensitivityReport
from dpframework.verify.search_time_limit import Patience

ADD, REPLACE = Relation
SCHEMA = dpf.Schema([dpf.Categorical("town", ["A", "B", "C"]), dpf.Boolean("ill")])
OVER = Patience(-1)


@attrs.frozen
class Asks(Query):
    """A query with a number, and a declaration for units, as a test asks."""

    name = "asks"
    number: int = 0
    of_unit: bool = False
    worth: int = attrs.field(default=1, kw_only=True)

    @property
    def text(self) -> str:
        return f"asks {self.number}"

    @property
    def sensitivities(self) -> tuple[dpf.Sensitivity, ...]:
        return (dpf.Sensitivity("l1", self.worth, 2 * self.worth, source="test"),)

    def for_rows(self, rows: int) -> Any:
        return (dpf.Sensitivity("l1", rows, 2 * rows, source="test"),) if self.of_unit else ()

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.array([block.rows])


@attrs.frozen
class Other(DiscreteLaplace):
    """A mechanism that is not the project's."""

    name = "other"


@attrs.frozen
class One(dpf.Miner):
    """One count."""

    name = "one"

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        return dpf.step("n", Count(), DiscreteLaplace(1))

    def mine(self, table: Any) -> Any:
        return table.release("n")


def call(query: Query, mechanism: Any = None, path: str = "n") -> QueryCall:
    return QueryCall(query, mechanism or DiscreteLaplace(1), {"a": 1}, (("d", "c"),), path)  # type: ignore[arg-type]


def subject(schema: dpf.Schema = SCHEMA, relation: Relation = ADD, rows: int = 1) -> Subject:
    unit = PrivacyUnit(None if rows == 1 else "person", rows)
    return Subject(One(), schema, relation, unit=unit)


def told_of(query: Any, *rest: Any) -> Any:
    """What would be sent to another process, but for one query that cannot be."""
    return SimpleNamespace(query=query, rest=rest, pickled=None if query == Asks(1) else b"")


class Checks:
    """Checks of which each search is noted, and takes no time."""

    def __init__(self, patch: pytest.MonkeyPatch, replays: int = 800, **given: Any) -> None:
        self.searched: list[Any] = []
        self.sampled: list[Any] = []
        self.compare: list[Any] = []
        self.told: list[str] = []
        self.left_out: list[str] = []
        self.cut_short = False
        patch.setattr(step_sensitivity_and_mechanism_checks, "search_sensitivity", self.search)
        patch.setattr(step_sensitivity_and_mechanism_checks, "check_sampler", self.sample)
        patch.setattr(step_sensitivity_and_mechanism_checks, "check_losses", self.compare_losses)
        patch.setattr(
            step_sensitivity_and_mechanism_checks, "call_answers", lambda subject, asked, tables: ("answers", tables)
        )
        patch.setattr(step_sensitivity_and_mechanism_checks, "_probes", lambda subject, asked: (None, ("own",)))
        patch.setattr(
            step_sensitivity_and_mechanism_checks.LocalAnswer, "of", classmethod(lambda cls, *given: told_of(*given))
        )
        self.other_amounts: list[Any] = []
        patch.setattr(StepChecks, "_check_spending", lambda checks, *given: self.other_amounts.append(given[:3]))
        self.checks: Any = StepChecks(replays, 5, self.left_out, self.told.append, **given)

    def look(self, at: Any, asked: Any, patience: Patience | None = None) -> Any:
        """Let a query of a run be searched."""
        return self.checks._search(at, asked, patience or Patience())

    @property
    def known(self) -> dict[Any, Any]:
        """What was asked before, by what it depends on."""
        found: dict[Any, Any] = self.checks._local_answers
        return found

    def search(self, query: Query, schema: Any, relation: Relation, **given: Any) -> SensitivityReport:
        self.searched.append((query, relation, given))
        tables = (b"", bytes((len(self.searched),)))
        measured: Any = SimpleNamespace(ratio=0.5, norm="l1", tables=tables, holds=True, declared=2.0, largest=1.0)
        return SensitivityReport(query.text, relation, (measured,), 1, (), 1)

    def sample(self, mechanism: Any, *, given: Any, beside: Any, settings: bool) -> Any:
        assert beside == ("own",)
        assert settings is step_sensitivity_and_mechanism_checks.is_foreign(mechanism)
        self.sampled.append((mechanism, given))
        return SimpleNamespace(passed=mechanism.epsilon != 7, __str__=lambda: "s")

    def compare_losses(self, mechanism: Any, **given: Any) -> Any:
        self.compare.append((mechanism, given))
        return SimpleNamespace(passed=mechanism.epsilon != 7, tightness=0.75, cut_short=self.cut_short)


def test_a_query_is_searched_with_an_eighth_of_the_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    for replays, pairs in ((8_000, 1_000), (480, 60), (487, 60), (488, 61), (1, 60)):
        one = Checks(monkeypatch, replays)
        report = one.look(subject(), call(Asks(1)))
        ((query, relation, given),) = one.searched
        assert (query, relation, report.query) == (Asks(1), ADD, "asks 1")
        assert given == {
            "inputs": {"a": 1},
            "derived": (("d", "c"),),
            "pairs": pairs,
            "seed": 5,
            "seconds": math.inf,
            "rows": 1,
        }
        assert one.told == ["searching the sensitivity of asks 1"]
    one = Checks(monkeypatch)
    one.look(subject(), call(Asks(1)), Patience(100))
    assert 40 < one.searched[0][2]["seconds"] <= 50
    one.look(subject(rows=4), call(Asks(2, of_unit=True)))
    one.look(subject(rows=4), call(Asks(3)))
    assert [given["rows"] for _, _, given in one.searched] == [1, 4, 1]


def test_of_queries_that_are_alike_three_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    one, at = Checks(monkeypatch), subject()
    found = [one.look(at, call(Asks(number))) for number in (1, 1, 2, 3, 4, 1)]
    assert [query.number for query, _, _ in one.searched] == [1, 2, 3]
    assert found[0] is found[1] is found[4] is found[5]
    assert found[3].query == "asks 3"
    elsewhere = subject(dpf.Schema([dpf.Boolean("ill")]))
    assert one.look(elsewhere, call(Asks(5))) is None
    one.look(subject(relation=REPLACE), call(Asks(1)))
    one.look(at, call(Asks(9, worth=2)))
    assert len(one.searched) == 5
    assert [len(key) for key in one.known] == [3] * 5
    first = next(iter(one.known.values()))
    query, (schema, rows, derived, inputs) = first.query, first.rest
    assert (query, schema, derived, inputs) == (Asks(1), SCHEMA, (("d", "c"),), {"a": 1})
    assert rows == bytes(k * k % 6 for k in range(30))
    one.look(at, call(Count()))
    assert len(one.known) == 5  # the project's own are asked nowhere else


def test_units_of_few_and_of_many_rows_are_searched_where_a_query_declares_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def units(at: Subject, *queries: Asks, patience: Any = None) -> list[Any]:
        one = Checks(monkeypatch)
        for query in queries:
            one.checks._search_unit(at, call(query), patience or Patience(100))
        assert len(one.checks.sensitivities) == len(one.searched)
        for (query, _, given), (key, found) in zip(one.searched, one.checks.sensitivities.items(), strict=True):
            rows = given["rows"]
            assert (given["pairs"], given["seed"]) == (50, 5)
            assert (given["inputs"], given["derived"]) == ({"a": 1}, (("d", "c"),))
            assert 40 < given["seconds"] <= 50
            assert found.query == f"{query.text}, of a unit of {rows} rows"
            assert key == ("asks", tuple(query.for_rows(rows)), at.relation, rows)
        return [(query.number, given["rows"]) for query, _, given in one.searched]

    assert units(subject(), Asks(1, of_unit=True), Asks(2, of_unit=True), Asks(3)) == [
        (1, 3),
        (1, 7),
        (1, 2),
        (1, 20),
        (1, 1000),
    ]
    assert units(subject(rows=2), Asks(1, of_unit=True)) == []
    assert units(subject(), Asks(1, of_unit=True), patience=OVER) == []
    for rows, found in (
        (3, []),
        (4, [(1, 3)]),
        (7, [(1, 3)]),
        (8, [(1, 3), (1, 7), (1, 2)]),
        (21, [(1, 3), (1, 7), (1, 2), (1, 20)]),
    ):
        assert units(subject(attrs.evolve(SCHEMA, max_rows=rows)), Asks(1, of_unit=True)) == found
        assert units(subject(attrs.evolve(SCHEMA, rows=rows)), Asks(1, of_unit=True)) == found


def test_two_mechanisms_of_a_name_are_sampled_and_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    one, at = Checks(monkeypatch), subject()
    searched = one.search(Asks(), SCHEMA, ADD)

    def check(mechanism: Any, query: Query = Asks(), report: Any = searched, **given: Any) -> None:
        one.checks._check_mechanism(
            given.get("at", at), call(query, mechanism), report, given.get("patience", Patience(100))
        )

    check(DiscreteLaplace(1))
    name = DiscreteLaplace.name
    assert one.told == [f"sampling {name}", f"comparing the claims of {name}"]
    ((mechanism, given),) = one.compare
    assert mechanism == DiscreteLaplace(1)
    assert given.pop("seconds") == pytest.approx(50, abs=10)
    assert given == {"given": [("answers", [(b"", b"\1")])], "relations": [ADD]}
    check(DiscreteLaplace(1))
    assert (len(one.sampled), len(one.compare)) == (1, 1)
    check(DiscreteLaplace(2))
    assert (len(one.sampled), len(one.compare)) == (2, 1)
    check(DiscreteLaplace(3), Histogram(SCHEMA["town"]))
    assert (len(one.sampled), len(one.compare)) == (2, 2)
    check(DiscreteLaplace(3), Count())
    assert (len(one.sampled), len(one.compare)) == (2, 2)
    check(DiscreteLaplace(3), Count(), at=subject(relation=REPLACE))
    assert len(one.compare) == 3
    check(Other(1), report=None)
    assert (len(one.sampled), len(one.compare)) == (3, 4)  # answers are made up where nothing was searched
    assert one.other_amounts == [(Other(1), Asks().facts(), ADD)]  # the project's are tried so by their own suites
    assert one.left_out == []
    one.cut_short = True
    check(Other(1), Count())
    assert one.left_out == [f"comparing all claims of other on {Count().text}"]
    check(Other(2), Count(), patience=OVER)
    assert one.left_out[1:] == [f"the draws and claims of other on {Count().text}"]

    monkeypatch.setattr(step_sensitivity_and_mechanism_checks, "takes_any_answers", lambda mechanism: False)
    fresh = one.checks = StepChecks(800, 5, one.left_out, foreign=True)
    monkeypatch.setattr(step_sensitivity_and_mechanism_checks, "_can_be_drawn", lambda *_: False)
    one.left_out.clear()
    one.sampled.clear()
    one.compare.clear()
    check(DiscreteLaplace(1))
    assert one.left_out == []  # the project's own
    check(Other(1))
    assert one.left_out == ["sampling other on asks 0, since one draw takes too long"]
    assert (one.sampled, one.compare) == ([], [])
    monkeypatch.setattr(step_sensitivity_and_mechanism_checks, "_can_be_drawn", lambda *_: True)
    check(Other(1), report=None)
    assert (len(one.sampled), len(one.compare)) == (1, 0)  # no pair of tables is known
    check(Other(1))
    assert (len(one.sampled), len(one.compare)) == (1, 1)
    assert list(fresh.samplers) == [Other(1)]


def test_what_was_reached_is_noted_of_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    one, at = Checks(monkeypatch), subject()
    calls = [call(Asks(1), path="a"), call(Asks(2), DiscreteLaplace(2), "b/c")]
    monkeypatch.setattr(step_sensitivity_and_mechanism_checks, "trace_queries", lambda of: iter(calls))
    one.checks.check(at, Patience())
    assert one.checks.steps == {
        "step 'a', add-or-remove-one": "reached 50% of the l1 change that its query declares, reached 75% of what "
        "its mechanism claims",
        "step 'b/c', add-or-remove-one": "reached 50% of the l1 change that its query declares",
    }
    one.checks._note(at, call(Asks(2), path="d"), None)
    assert one.checks.steps["step 'd', add-or-remove-one"] == "an equal query was searched before"
    late = Checks(monkeypatch)
    late.checks.check(at, OVER)
    assert late.left_out == ["the sensitivity of asks 1", "the sensitivity of asks 2"]
    assert (late.searched, late.checks.steps) == ([], {})


def test_problems_are_those_of_what_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    one, asked = Checks(monkeypatch), list[Any]()

    def differing(given: list[Any], other: Any) -> list[str | None]:
        asked.append(([each.query for each in given], other))
        return ["is odd" if each.query.number == 2 else None for each in given]

    monkeypatch.setattr(step_sensitivity_and_mechanism_checks, "differences", differing)
    for number in (1, 2):
        one.look(subject(), call(Asks(number)))
    for passed in (True, False):
        one.checks.samplers[passed] = one.checks.losses[passed] = SimpleNamespace(passed=passed)
    first, *others = one.checks.problems()
    assert first.splitlines()[0] == "add-or-remove-one: asks 2: is odd"
    assert others == [str(SimpleNamespace(passed=False))] * 2
    assert one.left_out == ["asking asks 1 in another process, to which it cannot be sent"]
    one.checks.problems()
    assert asked == [([Asks(1), Asks(2)], None)]  # once
    assert [one.wrong for one in one.checks.sensitivities.values()] == [(), ("is odd",)]


def test_whether_there_is_time_for_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    patience: Any = SimpleNamespace(allows=lambda times, draw: tried.append(times) or draw() is None)
    assert not _can_be_drawn(subject(), QueryCall(Count(), DiscreteLaplace(1), {}, ()), patience)
    assert tried == [6_000]
    monkeypatch.setattr(DiscreteLaplace, "calibrate", lambda *_: None)
    assert _can_be_drawn(subject(), QueryCall(Count(), DiscreteLaplace(1), {}, ()), OVER)
