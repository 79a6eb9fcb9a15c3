"""How a round asks for its releases: with the same inputs from a plan and from a block, which is told the cost."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from dpframework_tables.merging import Merging
from dpframework_tables.round_steps import InBlock, InPlan
from dpframework_tables.table_budget import CHOOSE, MEASURE, TableBudget
from hypothesis import given, strategies as st

MERGING = Merging([np.array([0, 1, 1]), np.array([0, 1])])
SHARES = st.integers(1, 99).map(lambda hundredths: Fraction(hundredths, 100))


class Asked:
    """Stands for a table or a block, and notes what it is asked for."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def release(self, step: str, **inputs: Any) -> Any:
        self.calls.append((step, {**inputs, "groups": inputs["groups"].tolist()}))
        return ("a", "b")

    def calibration(self, step: str, **cost: Any) -> Any:
        return step, cost


def asked(one: InPlan | InBlock, of: Asked) -> list[tuple[str, dict[str, Any]]]:
    assert one.choose(known=[1]) == ("a", "b")
    one.measure(("a", "b"))
    return of.calls


@pytest.mark.parametrize("zcdp", [False, True])
@given(SHARES, SHARES)
def test_a_block_is_asked_as_a_plan_is_and_told_what_it_costs(
    zcdp: bool, choosing: Fraction, measuring: Fraction
) -> None:
    budget, table, block = TableBudget(Fraction(2), zcdp), Asked(), Asked()
    in_plan: Any = InPlan(table, MERGING)  # type: ignore[arg-type]
    in_block: Any = InBlock(block, budget, choosing, measuring, MERGING)  # type: ignore[arg-type]
    planned = asked(in_plan, table)
    cost = {CHOOSE: {"epsilon": budget.epsilon_of_selection(choosing)}, MEASURE: budget.cost(measuring)}
    assert asked(in_block, block) == [(step, {**inputs, **cost[step]}) for step, inputs in planned]
    assert planned == [
        (CHOOSE, {"groups": MERGING.flat.tolist(), "known": [1]}),
        (MEASURE, {"groups": MERGING.flat.tolist(), "marginal": ("a", "b")}),
    ]
    assert in_plan.calibration == (MEASURE, {})
    assert in_block.calibration == (MEASURE, budget.cost(measuring))
