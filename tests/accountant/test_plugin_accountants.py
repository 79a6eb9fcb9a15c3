"""Accountants of plugins: the smallest total is shown and charged wherever it comes from, and a broken one is told."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest

import dpframework as dpf
from dpframework.accountant import BUILT_IN, AdditiveAccountant
from dpframework.reports import report_headlines, text_plan_drawings
from dpframework.reports.difference import difference
from dpframework.reports.html import html_difference, html_report
from dpframework.run.miner_base_and_examples import Example
from dpframework.study.plugin_registry import GROUP, Registry
from dpframework.verify import verify_examples

HOOK_PAGE = Path(__file__).resolve().parents[2] / "docs" / "hooks" / "dpframework_accountants.md"
SCHEMA = dpf.Schema([dpf.Boolean("ill")])
TABLE = dpf.Table.from_codes(SCHEMA, [[0, 1, 1, 0, 1]])


class Half(AdditiveAccountant):
    """Half of pure epsilon: unsound, so that where it is used is seen at once."""

    name = "half"

    def amount(self, calibration: Any) -> Any:
        return dpf.accountant.pure.UNCLAIMED if calibration is None else calibration.losses.pure

    def loss(self, amount: Any) -> Any:
        epsilon = amount.under(self.relation)
        return None if epsilon is None else dpf.PrivacyLoss(epsilon=epsilon / 2)


class Beyond(Half):
    """Another one, for studies of a delta of a tenth and more."""

    name = "beyond"

    @classmethod
    def delta_for(cls, delta: Fraction) -> Fraction | None:
        return delta if delta >= Fraction(1, 10) else None


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Registry]:
    """Return a function that installs a plugin which brings some accountants, for one test."""

    def install(*kinds: Any) -> Registry:
        module = ModuleType("acme_accountants")

        @dpf.hookimpl
        def dpframework_accountants() -> list[Any]:
            return list(kinds)

        vars(module).update(dpframework_accountants=dpframework_accountants)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        found = Registry([EntryPoint("acme", module.__name__, GROUP)])
        for reader in ("dpframework.study.study_plan_totals_and_findings", "dpframework.study.study_run"):
            monkeypatch.setattr(f"{reader}.registry", lambda: found)
        return found

    return install


@attrs.frozen
class Mode(dpf.Miner):
    """The more common value."""

    name = "mode"
    epsilon: Any

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        return dpf.step("mode", dpf.queries.Histogram(schema["ill"]), dpf.mechanisms.PermuteAndFlip(self.epsilon))

    def mine(self, table: dpf.PrivateTable) -> Any:
        return table.release("mode")


def study(epsilon: Any = 2, *, budget: Any = 1, delta: Any = 0) -> dpf.Study:
    made = dpf.Study(SCHEMA, epsilon=budget, delta=delta)
    made.add("first", Mode(epsilon))
    return made


def test_the_smallest_total_is_a_plugins_in_plan_check_and_reports(installed: Callable[..., Registry]) -> None:
    assert [finding.code for finding in study().plan().refusals()] == ["DP001"]
    assert installed(Half).checked() == []
    plan = study().plan()
    assert plan.totals() == {"half": dpf.PrivacyLoss(epsilon=1), "pure": dpf.PrivacyLoss(epsilon=2)}
    assert plan.total() == dpf.PrivacyLoss(epsilon=1)
    assert [finding.code for finding in plan.check()] == ["DP027"]
    line = "total: epsilon 1.0 under add-or-remove-one, half accounting (budget 1.0)"
    assert text_plan_drawings.tree(plan).endswith(line)
    assert ("total, half accounting", "epsilon 1.0") in report_headlines.public_facts(plan)
    assert line in dpf.reports.markdown_report(plan)
    assert "| the whole plan | epsilon 2.0 | epsilon 1.0 |" in dpf.reports.markdown_report(plan)
    page = html_report(plan)
    assert "half" in page
    assert "REFUSED" not in page


def test_the_difference_of_plans_shows_a_plugins_totals(installed: Callable[..., Registry]) -> None:
    installed(Half)
    found = difference(study(1).plan(), study(2).plan())
    assert found.headlines[0] == "the total rises from epsilon 0.5 to epsilon 1, under add-or-remove-one"
    assert "total: epsilon from 0.5 to 1 in half accounting" in map(str, found.changes)
    assert "half accounting" in text_plan_drawings.difference_tree(found)
    assert "half accounting" in html_difference(found)


def test_a_run_is_charged_by_the_accountant_of_the_smallest_total(installed: Callable[..., Registry]) -> None:
    with pytest.raises(dpf.PlanRefused, match="DP001"):
        study().run(TABLE, seed=1)
    installed(Half)
    results = study().run(TABLE, seed=1)
    assert results.accounting == "half"
    assert results.spent == dpf.PrivacyLoss(epsilon=1)
    with pytest.raises(dpf.PlanRefused, match="DP001"):
        study("2.1").run(TABLE, seed=1)


def test_an_accountant_says_which_deltas_it_admits(installed: Callable[..., Registry]) -> None:
    installed(Beyond)
    assert set(study().plan().totals()) == {"pure"}
    assert set(study(delta="0.05").plan().totals()) == {"pure", "zcdp", "rdp", "pld"}
    assert set(study(delta="0.1").plan().totals()) == {"pure", "zcdp", "rdp", "pld", "beyond"}
    assert [kind.delta_for(Fraction(0)) for kind in BUILT_IN] == [0, None, None, None]
    assert [kind.delta_for(Fraction(1, 9)) for kind in BUILT_IN] == [Fraction(1, 9)] * 4
    with pytest.raises(dpf.InputError, match=r"beyond accounting needs a delta above 0\.05"):
        Beyond("replace-one", delta="0.05")


def broken(**methods: Any) -> type[Half]:
    return type("Broken", (Half,), {"name": "broken", **methods})


def raising(*args: Any, **kwargs: Any) -> Any:
    raise ValueError("no idea\nwith a second line")


def leaving(*args: Any) -> Any:
    raise SystemExit(3)


BROKEN = {
    "a constructor of its own": (broken(__init__=lambda self: None), "TypeError: "),
    "a constructor that raises": (broken(__init__=raising), "ValueError: no idea)"),
    "a delta that raises": (broken(delta_for=classmethod(raising)), "ValueError: no idea)"),
    "amounts that raise": (broken(amount=raising), "ValueError: no idea)"),
    "amounts that exit": (broken(amount=leaving), "SystemExit: 3)"),
    "losses that raise": (broken(loss=raising), "ValueError: no idea)"),
    "losses that are numbers": (broken(loss=lambda *_: 0.1), "its loss is of type float, not PrivacyLoss)"),
    "losses at a larger delta": (
        broken(loss=lambda *_: dpf.PrivacyLoss(epsilon=0, delta="0.5")),
        "its loss holds at delta 0.5, above the study's 0.0)",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_accountant_is_told_in_one_sentence_and_the_others_work(
    installed: Callable[..., Registry], fault: str
) -> None:
    kind, reason = BROKEN[fault]
    assert installed(kind, Half).checked() == []
    made = study()
    plan = made.plan()
    assert list(plan.totals()) == ["half", "pure"]
    finding, one_row = plan.check()
    assert one_row.code == "DP027"
    assert (finding.code, finding.severity) == ("DP020", "warning")
    assert finding.message.startswith("accountant 'broken' cannot total the plan (")
    assert reason in finding.message
    assert "\n" not in finding.message
    assert "| the whole plan | epsilon 2.0 | epsilon 1.0 |" in dpf.reports.markdown_report(plan)
    assert made.run(TABLE, seed=1).accounting == "half"


def test_the_example_of_the_hook_page_is_used_as_it_says(installed: Callable[..., Registry]) -> None:
    found = re.findall(r"^```(python plugin|text)\n(.*?)^```$", HOOK_PAGE.read_text("utf-8"), re.M | re.S)
    blocks = dict(reversed(found))  # the first of each kind
    namespace: dict[str, Any] = {}
    exec(blocks["python plugin"], namespace)
    forgiving = namespace["Forgiving"]
    assert installed(forgiving).checked() == []
    made = study("0.3333", delta="0.01")
    plan = made.plan()
    assert blocks["text"].splitlines() == text_plan_drawings.tree(plan).splitlines()
    assert list(plan.totals())[:3] == ["forgiving", "pld", "pure"]
    assert made.run(TABLE, seed=1).accounting == "forgiving"
    found = verify_examples("mode", {"one": Example(SCHEMA, Mode("0.3333"), Fraction("0.01"))}, replays=200, runs=0)
    assert found.passed, list(found.problems())
    assert [one.accountant for one in found.accountants] == ["forgiving"]
    for epsilon in ("0.1", "1", "30"):  # what it forgives is no more than the exact delta, and not much less
        total = study(epsilon, delta="0.01", budget=100).plan().totals()["forgiving"]
        assert float(total.epsilon or 0) == pytest.approx(response(float(epsilon), 0.01), abs=1e-6)
        assert float(total.epsilon or 0) >= response(float(epsilon), 0.01) * (1 - 1e-12)


def response(epsilon: float, delta: float) -> float:
    """Return the epsilon of randomized response at a delta, by bisection of its exact hockey-stick divergence."""
    truth, lie = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    low, high = 0.0, epsilon
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if truth - math.exp(middle) * lie > delta else (low, middle)
    return high
