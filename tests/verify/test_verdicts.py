"""What a verification says: in which words, from which numbers on, and what tells two tables apart."""

from __future__ import annotations

import math
import time
from typing import Any

import attrs
import numpy as np
import pytest
from scipy.stats import binom

import dpframework as dpf
from dpframework.facts.privacy_losses import Relation
from dpframework.verify.miners.audit_report import NOTHING_LOST, NOTHING_SHOWN, AuditReport, Violation, reach
from dpframework.verify.miners.distinguisher import DistinguishingEvent, _bound, _Event, _events, distinguish, features
from dpframework.verify.search_time_limit import Patience
from dpframework.verify.verification_report import ExampleAudit, Verification

ADD, REPLACE = Relation
VIOLATION = Violation("more is lost", ("a: 1",), (), ("released 3",), ((), ()))


def audit(worst: float = 0.9, **changes: Any) -> AuditReport:
    usual = AuditReport("m", ADD, 1.0, 0.0, worst, 10, 5, 2, 9, 0.5, (), None)
    return attrs.evolve(usual, **changes)


@pytest.mark.parametrize(
    ("tightness", "text"),
    [
        (1.0, "100 % of the claim. It would see any larger loss where it looked"),
        (0.999, "100 % of the claim. It would see any larger loss where it looked"),
        (0.9989, "99 % of the claim. It could miss a mistake that does not make the loss 1.1 times as large"),
        (0.5, "50 % of the claim. It could miss a mistake that does not double the loss"),
        (0.501, "50 % of the claim. It could miss a mistake that does not double the loss"),
        (1 / 3, "33 % of the claim. It could miss a mistake that does not triple the loss"),
        (0.1, "10 % of the claim. It could miss a mistake that does not make the loss 10 times as large"),
        (1e-9, "0 % of the claim. It could miss a mistake that does not make the loss 1e+09 times as large"),
    ],
)
def test_how_near_a_search_came_in_words(tightness: float, text: str) -> None:
    assert reach(tightness) == f"the search reached {text}"


@pytest.mark.parametrize("tightness", [0.0, -0.1, math.nan])
def test_a_search_without_a_loss_says_so(tightness: float) -> None:
    assert reach(tightness) == "the search found no loss at all. It could miss any mistake in the loss"


def test_a_violation_is_written_with_both_tables_and_its_transcript() -> None:
    assert str(VIOLATION).splitlines() == [
        "more is lost",
        "  one table:",
        "    a: 1",
        "  its neighbour:",
        "    (no rows)",
        "  transcript:",
        "    released 3",
    ]
    assert "transcript" not in str(attrs.evolve(VIOLATION, events=()))
    assert VIOLATION.to_dict() == {"what": "more is lost", "one": ["a: 1"], "other": [], "events": ["released 3"]}
    assert "tables" not in repr(VIOLATION)


@pytest.mark.parametrize(
    ("report", "verdict"),
    [
        (audit(), f"the claim held; {reach(0.9)}"),
        (audit(claim=0.0, worst=0.0), f"the claim held; {NOTHING_LOST}"),
        (audit(violations=(VIOLATION,)), "THE CLAIM DOES NOT HOLD"),
        (audit(0.0, cut_short=True), NOTHING_SHOWN),
        (audit(0.0), f"the claim held; {reach(0.0)}"),
        (audit(0.0, claim=0.0, cut_short=True), f"the claim held; {NOTHING_LOST}"),
        (audit(0.3, cut_short=True), f"the claim held; {reach(0.3)}"),
        (audit(0.0, cut_short=True, violations=(VIOLATION,)), "THE CLAIM DOES NOT HOLD"),
        (audit(1.5, claim=3.0), f"the claim held; {reach(0.5)}"),
    ],
)
def test_the_verdict_of_an_audit(report: AuditReport, verdict: str) -> None:
    assert report.verdict == verdict
    assert report.showed_nothing == (verdict == NOTHING_SHOWN)
    form = report.to_dict()
    assert (form["verdict"], form["passed"], form["relation"]) == (verdict, not report.violations, ADD.value)
    assert form["tightness"] == (report.tightness if report.claim else None)
    assert form["violations"] == [one.to_dict() for one in report.violations]
    assert audit(math.inf).to_dict()["worst"] is None
    assert audit(worst_pair=VIOLATION).to_dict()["worst_pair"] == VIOLATION.to_dict()


def apart(epsilon: float) -> DistinguishingEvent:
    return DistinguishingEvent(epsilon, 0.0, "it", 9, 1, 100, 0.95)


def verification(*audits: ExampleAudit, **changes: Any) -> Verification:
    return attrs.evolve(Verification("m", audits, (), ()), **changes)


def test_an_audited_example_passes_unless_more_is_proved_than_claimed() -> None:
    assert ExampleAudit("e", ADD).passed
    assert not ExampleAudit("e", ADD).claimed
    assert ExampleAudit("e", ADD).tail is None
    assert ExampleAudit("e", ADD, audit()).passed
    assert not ExampleAudit("e", ADD, audit(violations=(VIOLATION,))).passed
    assert ExampleAudit("e", ADD, audit(), apart(1.0)).passed
    assert not ExampleAudit("e", ADD, audit(), apart(1.01)).passed
    form = ExampleAudit("e", ADD, audit(), apart(1.01), "loose").to_dict()
    assert (form["claimed"], form["passed"], form["loose"], form["relation"]) == (True, False, "loose", ADD.value)
    assert form["distinguished"]["epsilon"] == 1.01
    assert ExampleAudit("e", REPLACE).to_dict()["audit"] is None


@pytest.mark.parametrize(
    ("audits", "verdict"),
    [
        ((ExampleAudit("e", ADD, audit()),), f"every claim held; {reach(0.9)}"),
        (
            (ExampleAudit("e", ADD, audit()), ExampleAudit("f", ADD, audit(0.5), loose="it is")),
            f"every claim held; {reach(0.5)} (f, {ADD}); this claim is loose: it is",
        ),
        (
            (ExampleAudit("e", ADD, audit()), ExampleAudit("f", REPLACE)),
            f"every claim held; {reach(0.9)} (e, {ADD})",
        ),
        ((ExampleAudit("e", ADD, audit(0.0, claim=0.0)),), f"every claim held; {NOTHING_LOST}"),
        ((ExampleAudit("e", ADD, audit(0.0, cut_short=True)),), NOTHING_SHOWN),
        (
            (ExampleAudit("e", ADD, audit(0.0, cut_short=True)), ExampleAudit("f", ADD, audit())),
            f"for e under {ADD}, {NOTHING_SHOWN}",
        ),
        ((ExampleAudit("e", ADD, audit(violations=(VIOLATION,))),), "A CLAIM DOES NOT HOLD"),
        ((ExampleAudit("e", ADD),), "A CLAIM DOES NOT HOLD"),
        ((), f"every claim held; {reach(math.nan)}"),
    ],
)
def test_the_verdict_of_a_verification(audits: tuple[ExampleAudit, ...], verdict: str) -> None:
    found = verification(*audits)
    assert found.verdict == verdict
    assert found.passed == (verdict != "A CLAIM DOES NOT HOLD")
    form = found.to_dict()
    assert (form["verdict"], form["passed"], form["verified"]) == (verdict, found.passed, "m")
    assert form["tightness"] == (None if math.isnan(found.tightness) else found.tightness)


def test_problems_are_told_with_where_they_are() -> None:
    assert [*verification(ExampleAudit("e", ADD)).problems()] == [
        "no example claims a finite epsilon, so there is nothing to replay"
    ]
    found = verification(
        ExampleAudit("e", ADD, audit(violations=(VIOLATION,)), apart(2.0)),
        ExampleAudit("f", REPLACE, audit(), apart(0.5)),
    )
    assert [*found.problems()] == [f"e, {ADD}: {VIOLATION}", f"e, {ADD}: {apart(2.0)}"]


# What tells two tables apart


def test_a_time_passes_and_a_share_of_it_is_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "process_time", lambda: clock[0])
    whole = Patience(10)
    assert (whole.left, whole.over, whole.part(0.25).left) == (10, False, 2.5)
    clock[0] = 109.5
    assert (whole.left, whole.over) == (0.5, False)
    clock[0] = 110.0
    assert (whole.left, whole.over) == (0, True)
    clock[0] = 111.0
    assert whole.left == -1
    endless = Patience()
    assert (endless.left, endless.over, endless.part(0.5).left) == (math.inf, False, math.inf)
    calls: list[int] = []

    def takes_two() -> None:
        calls.append(1)
        clock[0] += 2

    assert endless.allows(10**9, takes_two)
    assert calls == []
    assert Patience(7).allows(1, takes_two)
    assert len(calls) == 2
    assert not Patience(7).allows(2, takes_two)  # 4 s, of which 3 are left
    assert Patience(8).allows(2, takes_two)


@pytest.mark.parametrize(("often", "seldom"), [(50, 0), (100, 100), (90, 10), (0, 0), (3, 2), (100, 0), (0, 100)])
@pytest.mark.parametrize("delta", [0.0, 0.1, 0.9])
def test_a_bound_is_of_two_probabilities_at_half_the_false_alarm(often: int, seldom: int, delta: float) -> None:
    """By the binomial distribution itself: p is the least that has so many with half of it, q the most."""
    runs, alarm = 100, 0.02
    grid = np.linspace(0, 1, 20_001)
    p = grid[binom.sf(often - 1, runs, grid) >= alarm / 2].min()
    q = grid[binom.cdf(seldom, runs, grid) >= alarm / 2].max()
    expected = math.log((p - delta) / q) if p > delta else 0.0
    assert _bound(often, seldom, runs, delta, alarm) == pytest.approx(expected, abs=2e-2)


def test_an_output_is_named_by_its_parts() -> None:
    class Kept:
        def to_dict(self) -> dict[str, int]:
            return {"a": 1}

        def __str__(self) -> str:
            return "kept"

    assert features(True) == {"": "True"}
    assert features(None) == {"": "None"}
    assert features(np.float64(2)) == {"": 2.0}
    assert features("text") == {"": "text"}
    assert features(np.array([[1], [2]])) == {"": "[[1]\n [2]]", ".shape": "(2, 1)", ".0": 1.0, ".1": 2.0}
    assert features((1, {"b": "x"})) == {"": "(1, {'b': 'x'})", ".0": 1.0, ".1.b": "x"}
    assert features(Kept()) == {"": "kept", "..a": 1.0}
    assert features(object) == {"": str(object), ".": str(object)}
    assert features({"a": object}) == {"": str({"a": object}), ".a": str(object)}


def test_an_event_is_a_value_or_all_below_a_number() -> None:
    below, equal = _Event(".0", 2.0, True), _Event("", "x" * 100, False)
    assert [below.occurs_in(output) for output in ({".0": 2.0}, {".0": 2.1}, {".0": "2"}, {})] == [
        True,
        False,
        False,
        False,
    ]
    assert [equal.occurs_in({"": text}) for text in ("x" * 100, "x" * 99)] == [True, False]
    assert below.text == ".0 <= 2.0"
    assert equal.text == f"the output = {'x' * 80}"
    found = _events([{"a": float(k), "b": "t"} for k in range(3)] + [{"a": math.nan}], ["a", "b"])
    assert [(one.name, one.value) for one in found if one.below] == [("a", 0.0), ("a", 1.0), ("a", 2.0)]
    assert [one.name for one in found if not one.below].count("a") == 4
    assert ("b", "t") in [(one.name, one.value) for one in found]


def test_runs_that_differ_are_told_apart_and_others_are_not() -> None:
    seeds: list[list[int]] = [[], []]

    def run(side: int, chance: float) -> Any:
        def one(seed: int) -> dict[str, int]:
            seeds[side].append(seed)
            return {"hit": int(np.random.default_rng(seed).random() < chance)}

        return one

    found = distinguish(run(0, 0.9), run(1, 0.1), runs=401, seed=5)
    assert found.runs == 200
    assert 0.9 < found.epsilon < math.log(9)
    assert found.here + found.there == pytest.approx(200, abs=40)
    assert seeds[0] == list(range(5, 805, 2))
    assert seeds[1] == list(range(6, 805, 2))
    assert distinguish(run(1, 0.1), run(0, 0.9), runs=400).epsilon > 0.9
    assert 0 < distinguish(run(0, 0.9), run(1, 0.1), runs=400, delta=0.3).epsilon < found.epsilon - 0.3
    same = distinguish(run(0, 0.5), run(1, 0.5), runs=100)
    assert same.epsilon == 0
    assert str(same) == "nothing is told apart in 2 x 50 runs"
    assert "happened in" in str(found)
    assert found.confidence == 1 - 1e-6
    with pytest.raises(dpf.InputError, match="runs is 99; at least 100"):
        distinguish(run(0, 0.9), run(1, 0.1), runs=99)
