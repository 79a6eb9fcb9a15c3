"""What the scopes of a run refuse, also for a plan that no accountant would have opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

import dpframework as dpf
from dpframework.accountant.pure import PureAccountant
from dpframework.mechanisms import DiscreteLaplace
from dpframework.run.run_scopes_and_charges import Run
from dpframework.run.spend_block_filter import BlockScope

SCHEMA = dpf.Schema([dpf.Boolean("ill")])


@attrs.frozen
class ClaimsNothing(dpf.queries.Count):
    """A count without a claim under add-or-remove-one."""

    name = "claims-nothing"

    @property
    def sensitivities(self) -> tuple[dpf.Sensitivity, ...]:
        return (dpf.Sensitivity("l1", None, 1, source="by construction of the test"),)


def test_a_step_without_a_claim_is_not_released(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    """An accountant of a plugin may give any plan a total."""
    query = ClaimsNothing()
    step = dpf.step("s", query, DiscreteLaplace(1))
    node = dpf.sequential(step, dpf.spend("b", dpf.kind("k", query, DiscreteLaplace), epsilon=1))
    run = Run(plan_of(node, SCHEMA), PureAccountant("add-or-remove-one"))
    scope = run.scope()
    with pytest.raises(dpf.ReleaseRefused, match=r"^step 's' has no valid claim under add-or-remove-one$"):
        scope.charge("s")
    with pytest.raises(dpf.ReleaseRefused, match=r"^step 's' has no valid claim under add-or-remove-one$"):
        scope.calibration("s")
    block = BlockScope(scope, scope.spend("b"))
    with pytest.raises(dpf.ReleaseRefused, match=r"^step 'b/k' has no valid claim under add-or-remove-one$"):
        block.charge("k", {"epsilon": 1})
    assert run.charges == []


DOORS: dict[str, Callable[[Any], Any]] = {
    "charge": lambda scope: scope.charge("s"),
    "scope": lambda scope: scope.enter("inside"),
    "block": lambda scope: scope.spend("b"),
    "partition": lambda scope: scope.partition(SCHEMA["ill"], None),
    "sample": lambda scope: scope.sample(None),
}


def count(name: str) -> dpf.Node:
    return dpf.step(name, dpf.queries.Count(), DiscreteLaplace(1))


@pytest.fixture
def run(plan_of: Callable[..., dpf.StudyPlan]) -> Run:
    block = dpf.spend("b", dpf.kind("k", dpf.queries.Count(), DiscreteLaplace), epsilon=1)
    part, sample = dpf.parallel(count("p"), by=SCHEMA["ill"]), dpf.sample("0.5", count("q"))
    node = dpf.sequential(count("s"), dpf.sequential(count("n"), name="inside"), block, part, sample)
    return Run(plan_of(node, SCHEMA), PureAccountant("add-or-remove-one"))


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Return a function that sees a call refused as if another process made it."""

    def refused(call: Callable[[], Any]) -> None:
        with monkeypatch.context() as fork:
            fork.setattr("dpframework.run.run_scopes_and_charges.this_process", lambda: (0, 1))
            with pytest.raises(dpf.ReleaseRefused, match="opened in another process"):
                call()

    return refused


@pytest.mark.parametrize("door", DOORS)
def test_a_fork_uses_up_nothing(run: Run, forked: Callable[[Any], None], door: str) -> None:
    forked(lambda: DOORS[door](run.scope()))
    assert run.charges == []
    DOORS[door](run.scope())


def test_a_fork_spends_nothing_of_a_block(run: Run, forked: Callable[[Any], None]) -> None:
    block = BlockScope(run.scope(), run.scope().spend("b"))
    forked(lambda: block.charge("k", {"epsilon": 1}))
    assert run.charges == []
    assert block.charge("k", {"epsilon": 1}).path.startswith("b/k")
