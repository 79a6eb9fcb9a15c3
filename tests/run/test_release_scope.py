"""What the scopes of a run refuse, also for a plan that no accountant would have opened."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

import dpframework as dpf
from dpframework.accountant.pure import PureAccountant
from dpframework.mechanisms import DiscreteLaplace
from dpframework.run.release_scope import Run
from dpframework.run.spend_block_scope import BlockScope

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
    with pytest.raises(dpf.ReleaseRefused, match="^step 's' has no valid claim under add-or-remove-one$"):
        scope.charge("s")
    block = BlockScope(scope, scope.spend("b"))
    with pytest.raises(dpf.ReleaseRefused, match="^step 'b/k' has no valid claim under add-or-remove-one$"):
        block.charge("k", {"epsilon": 1})
    assert run.charges == []
