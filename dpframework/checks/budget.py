"""Checks of totals: does the plan fit its budget, and does the budget make sense."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dpframework.accountant import AccountedPlan
from dpframework.checks.base import Check, Severity
from dpframework.facts.privacy import decimal_text
from dpframework.plan.nodes import Step, walk
from dpframework.plan.plan import Plan


def _smallest_total(plan: AccountedPlan) -> Fraction | None:
    return next((loss.epsilon for loss in plan.totals().values()), None)


def _over_budget(plan: AccountedPlan) -> Iterator[tuple[Severity, str]]:
    smallest = _smallest_total(plan)  # where there is none, DP002, DP004 and DP010 say why
    if smallest is not None and smallest > plan.budget.epsilon:
        yield (
            Severity.ERROR,
            f"the plan's total epsilon is {decimal_text(smallest)} under {plan.relation}, "
            f"the budget is {decimal_text(plan.budget.epsilon)}; lower the steps' epsilons or raise the budget",
        )


def _left_over(plan: AccountedPlan) -> Iterator[tuple[Severity, str]]:
    smallest = _smallest_total(plan)
    if smallest is not None and 0 < smallest < plan.budget.epsilon * Fraction(999, 1000):
        left = decimal_text(plan.budget.epsilon - smallest)
        yield Severity.INFO, f"epsilon {left} of the budget is not planned; larger epsilons would give better results"


def _no_finite_total(plan: Plan) -> Iterator[tuple[Severity, str]]:
    for step in plan.steps():
        calibration = plan.calibration(step)
        if calibration is None or calibration.losses.pure.under(plan.relation) is not None:
            continue
        if plan.budget.delta == 0:
            yield (
                Severity.ERROR,
                f"step '{step.name}' ({step.mechanism.name}) has no finite pure epsilon; "
                "set delta > 0 in the study, or use a pure mechanism such as laplace",
            )


def _delta_too_large(plan: Plan) -> Iterator[tuple[Severity, str]]:
    rows = plan.facts.row_bound
    if plan.budget.delta > 0 and rows is not None and plan.budget.delta * rows >= 1:
        yield (
            Severity.WARNING,
            f"delta {float(plan.budget.delta):g} is not below 1/{rows}: a mechanism that publishes a random row would "
            "pass; choose a delta far below one over the number of rows",
        )


def _nothing_released(plan: Plan) -> Iterator[tuple[Severity, str]]:
    if not any(isinstance(node, Step) for node in walk(plan.root)):
        yield Severity.ERROR, "the plan makes no release; add a step"


def _accountant_fails(plan: AccountedPlan) -> Iterator[tuple[Severity, str]]:
    for name, reason in plan.failures().items():
        yield (
            Severity.WARNING,
            f"accountant '{name}' cannot total the plan ({reason}), so the other ones do; tell its author",
        )


OVER_BUDGET = Check("DP001", "over budget", _over_budget)
NO_FINITE_TOTAL = Check("DP010", "no finite total", _no_finite_total)
DELTA_TOO_LARGE = Check("DP011", "delta too large", _delta_too_large)
LEFT_OVER = Check("DP012", "budget left over", _left_over)
NOTHING_RELEASED = Check("DP013", "nothing released", _nothing_released)
ACCOUNTANT_FAILS = Check("DP020", "accountant that fails", _accountant_fails)
