"""Checks of a plan's totals against its budget, of plans without a release, and of accountants that fail."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dpframework.accountant import AccountedPlan
from dpframework.checks.base import Severity
from dpframework.facts.privacy_losses import decimal_text
from dpframework.plan.plan import Plan
from dpframework.plan.spend_block_node import Spend


def over_budget(plan: AccountedPlan) -> Iterator[tuple[Severity, str]]:
    """Find a total above the budget."""
    # Without a total, DP002, DP004 and DP010 say why.
    smallest = plan.smallest_epsilon()
    if smallest is not None and smallest > plan.budget.epsilon:
        yield (
            Severity.ERROR,
            f"the plan's total epsilon is {decimal_text(smallest)} under {plan.relation}, "
            f"the budget is {decimal_text(plan.budget.epsilon)}; lower the steps' epsilons or raise the budget",
        )


def left_over(plan: AccountedPlan) -> Iterator[tuple[Severity, str]]:
    """Find a part of the budget, more than a thousandth, that no step uses."""
    smallest = plan.smallest_epsilon()
    if smallest is not None and 0 < smallest < plan.budget.epsilon * Fraction(999, 1000):
        left = decimal_text(plan.budget.epsilon - smallest)
        yield Severity.INFO, f"epsilon {left} of the budget is not planned; {_REST}"


_REST = "lower the study's epsilon, or keep the rest"


def no_finite_total(plan: AccountedPlan) -> Iterator[tuple[Severity, str]]:
    """Find releases whose deltas exceed the study's, and steps or blocks that need a delta where none is left.

    A block holds releases that a miner chooses during the run (see `plan.spend_node`).
    """
    own, allowed = plan.exact_delta(plan.root), plan.budget.delta
    if own is not None and own > allowed:
        yield (
            Severity.ERROR,
            f"the releases have a delta of {float(own):g} of their own under {plan.relation}, the study's is "
            f"{float(allowed):g}; raise it, or lower the deltas of the steps",
        )
    elif allowed == (own or 0):
        for _, step, calibration in plan.calibrated_steps():
            if calibration.losses.pure.under(plan.relation) is None:
                remedy = "set delta > 0 in the study, or use a pure mechanism such as laplace"
                if own:
                    remedy = f"set a delta above {float(own):g} in the study, since other releases need that much"
                yield Severity.ERROR, f"step '{step.name}' ({step.mechanism.name}) has no finite pure epsilon; {remedy}"
        for placed in plan.index.nodes:
            if isinstance(placed.node, Spend) and placed.node.caps.epsilon is None:
                yield (
                    Severity.ERROR,
                    f"block '{placed.path}' has no cap on epsilon; set delta > 0 in the study, or give the block one",
                )


def nothing_released(plan: Plan) -> Iterator[tuple[Severity, str]]:
    """Find a plan without a step."""
    if not plan.index.steps:
        yield Severity.ERROR, "the plan makes no release; add a step"


def accountant_fails(plan: AccountedPlan) -> Iterator[tuple[Severity, str]]:
    """Find accountants that cannot total the plan."""
    for name, reason in plan.failures().items():
        yield (
            Severity.WARNING,
            f"accountant '{name}' cannot total the plan ({reason}), so the other ones do; tell its author",
        )
