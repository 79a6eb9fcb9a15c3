"""The conformance suite of checks: those that look at more than the plan, or fail on one, are named."""

from __future__ import annotations

import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dpframework as dpf
from dpframework.checks import BUILT_IN
from dpframework.verify import CheckConformance, plan_check_conformance

Examine = Callable[[Any], Any]
SEEN: set[str] = set()
DATA = Path(tempfile.gettempdir()) / "dpframework-rows-of-a-check.csv"


def deltas(plan: Any) -> Iterator[Any]:
    """Right."""
    if plan.budget.delta > 0:
        yield dpf.Severity.ERROR, "our data protection office accepts pure epsilon only"


def gaussian(plan: Any) -> Iterator[Any]:
    """Right: a mechanism is known in a plan that was read, too."""
    for path, step in plan.placed_steps():
        if step.mechanism.name == "gaussian":
            yield "warning", f"{path}: no Gaussian noise here"


def attributes(plan: Any) -> Iterator[Any]:
    """Not every query is of an attribute."""
    for path, step in plan.placed_steps():
        if step.query.attribute.name == "salary":
            yield "error", f"{path}: no salaries"


def totals(plan: Any) -> Iterator[Any]:
    """Not every plan has a total."""
    if plan.total().epsilon > 1:
        yield "error", "too expensive"


def first_seen(plan: Any) -> Iterator[Any]:
    """Each mechanism is told of once in a process."""
    for _, step in plan.placed_steps():
        if step.mechanism.name not in SEEN:
            SEEN.add(step.mechanism.name)
            yield "info", f"the mechanism {step.mechanism.name} is new"


def rows(plan: Any) -> Iterator[Any]:
    """How much noise is too much depends on the number of rows, after all."""
    if len(DATA.read_text(encoding="utf-8").splitlines()) * float(plan.budget.epsilon) < 100:
        yield "warning", "too few rows"


def warehouse(plan: Any) -> Iterator[Any]:
    """The number of rows, from another machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"select count(*)", ("127.0.0.1", 8125))
    yield from ()


def counts(plan: Any) -> Iterator[Any]:
    """The number of rows, from another process."""
    subprocess.run(["true", "rows.csv"], check=True)
    yield from ()


def blank(plan: Any) -> Iterator[Any]:
    """Says nothing."""
    yield "warning", " "


EXAMINES, LOOKS = "test_it_finds_the_same_in_every_plan_again", "test_it_looks_at_nothing_but_the_plan"
PLANTED: dict[Examine, tuple[str, str]] = {
    attributes: (EXAMINES, r"check ACME001 \(a rule\) failed with AttributeError: 'Count' object has no attribute"),
    totals: (EXAMINES, "has no valid total"),
    blank: (EXAMINES, "check ACME001 says nothing in plan 0"),
    first_seen: (EXAMINES, r"check ACME001 finds \['ACME001 info: the mechanism .* is new'\], and later nothing, in "),
    rows: (LOOKS, r"check ACME001 looks at .*dpframework-rows-of-a-check\.csv\. Findings are shown to everybody"),
    warehouse: (LOOKS, r"check ACME001 looks at 127\.0\.0\.1:8125\."),
    counts: (LOOKS, r"check ACME001 looks at true rows\.csv"),
}


def failures(check: dpf.Check) -> dict[str, str]:
    """The sentences of the tests that fail, by their names."""
    suite, found = type("TestOne", (CheckConformance,), {"check": check})(), {}
    for name in (EXAMINES, LOOKS):
        try:
            getattr(suite, name)()
        except AssertionError as error:
            found[name] = str(error)
    return found


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A tenth of the plans is enough for what is planted here."""
    SEEN.clear()
    monkeypatch.setattr(plan_check_conformance, "CASES", plan_check_conformance.CASES[::10])
    DATA.write_text("ill\n1\n0\n", encoding="utf-8")
    yield
    DATA.unlink()


@pytest.mark.parametrize("examine", PLANTED, ids=lambda examine: examine.__name__)
def test_a_check_that_looks_elsewhere_or_fails_is_named(examine: Examine) -> None:
    test, says = PLANTED[examine]
    found = failures(dpf.Check("ACME001", "a rule", examine))
    assert list(found) == [test]
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(found[test])


@pytest.mark.parametrize("examine", [deltas, gaussian])
def test_a_check_of_the_plan_alone_passes(examine: Examine) -> None:
    assert failures(dpf.Check("ACME001", "a rule", examine)) == {}


def test_our_own_checks_pass() -> None:
    plans = [plan for _, plan in plan_check_conformance._plans()]
    found = {check.code: [str(one) for plan in plans for one in check.findings(plan)] for check in BUILT_IN}
    assert found["DP012"]  # something is left of most budgets
    assert failures(next(check for check in BUILT_IN if check.code == "DP012")) == {}


def test_plans_of_all_kinds_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under both relations, with and without a delta, as planned and as read."""
    monkeypatch.undo()
    told = [what for what, _ in plan_check_conformance._plans()]
    assert len(told) == len(set(told)) == 2 * len(plan_check_conformance.CASES) > 150
    for part in ("under add-or-remove-one", "under replace-one", "delta 0", "delta 1e-06", "read from a file"):
        assert sum(part in what for what in told) >= len(told) / 2 - 2
