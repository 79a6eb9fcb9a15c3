"""Checks of totals: a plan fits its budget, or one sentence says by how much it does not."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.checks import Severity
from dpframework.checks.budget_total_checks import (
    accountant_fails,
    left_over,
    no_finite_total,
    over_budget,
)
from dpframework.mechanisms import DiscreteLaplace, Gaussian, PartitionSelection

SCHEMA = dpf.Schema([dpf.Boolean("ill")])
PlanOf = Callable[..., dpf.StudyPlan]
AMOUNT = st.integers(1, 4000).map(lambda thousandths: Fraction(thousandths, 1000))


def count(mechanism: Any) -> dpf.Node:
    return dpf.step("n", dpf.queries.Count(), mechanism)


@given(AMOUNT, AMOUNT)
def test_a_total_is_over_its_budget_or_leaves_some_or_is_all_of_it(
    plan_of: PlanOf, epsilon: Fraction, budget: Fraction
) -> None:
    plan = plan_of(count(DiscreteLaplace(epsilon)), SCHEMA, epsilon=budget)
    assert [severity for severity, _ in over_budget(plan)] == [Severity.ERROR] * (epsilon > budget)
    assert [severity for severity, _ in left_over(plan)] == [Severity.INFO] * (epsilon * 1000 < budget * 999)


def test_what_is_left_over_is_named_exactly(plan_of: PlanOf) -> None:
    ((_, text),) = left_over(plan_of(count(DiscreteLaplace("0.3")), SCHEMA, epsilon=1))
    assert text.startswith("epsilon 0.7 of the budget is not planned")


@pytest.mark.parametrize(
    ("mechanism", "delta", "told"),
    [
        (DiscreteLaplace(1), 0, None),
        (Gaussian("0.1"), 0, "set delta > 0 in the study"),
        (Gaussian("0.1"), "1e-9", None),
        (PartitionSelection(1, "1e-6"), "1e-7", "the releases have a delta of 1e-06"),
        (PartitionSelection(1, "1e-6"), "1e-6", None),
    ],
)
def test_a_delta_is_enough_or_the_check_says_what_is_missing(
    plan_of: PlanOf, mechanism: Any, delta: Any, told: str | None
) -> None:
    found = list(no_finite_total(plan_of(count(mechanism), SCHEMA, delta=delta)))
    assert [severity for severity, _ in found] == [Severity.ERROR] * (told is not None)
    assert all(str(told) in text for _, text in found)


def test_a_delta_that_other_releases_use_up_is_too_small_for_noise_that_needs_one(plan_of: PlanOf) -> None:
    both = dpf.sequential(count(PartitionSelection(1, "1e-6")), dpf.step("g", dpf.queries.Count(), Gaussian("0.1")))
    ((_, text),) = no_finite_total(plan_of(both, SCHEMA, delta="1e-6"))
    assert "step 'g'" in text
    assert "set a delta above 1e-06" in text


@attrs.frozen
class Failing(DiscreteLaplace):
    """Tells PLD accounting something that is no event."""

    def dp_event(self, *args: Any) -> Any:
        return "an event"


def test_an_accountant_that_fails_is_named(plan_of: PlanOf) -> None:
    ((severity, text),) = accountant_fails(plan_of(count(Failing(1)), SCHEMA, delta="1e-6"))
    assert severity is Severity.WARNING
    assert text.startswith("accountant 'pld' cannot total the plan")
    assert not list(accountant_fails(plan_of(count(DiscreteLaplace(1)), SCHEMA, delta="1e-6")))
