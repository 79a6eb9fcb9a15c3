"""Checks of totals against the budget, and a check for accountants that fail."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dpframework.accountant import AccountedPlan
from dpframework.checks.base import Severity
from dpframework.facts.privacy_losses import decimal_text, exceeds_by_rounding
from dpframework.plan.spend_block_node import Spend


def over_budget(plan: AccountedPlan) -> Iterator[tuple[Severity, str]]:
    """Find a total above the budget."""
    # If there is no total, DP002, DP004 or DP010 reports the reason.
    smallest = plan.smallest_epsilon()
    budget = plan.budget.epsilon
    if smallest is not None and plan.budget.delta == 0 and exceeds_by_rounding(smallest, budget):
        yield (
            Severity.ERROR,
            f"the plan's total epsilon is {float(smallest - budget):.1g} above the budget of {decimal_text(budget)} "
            f"under {plan.relation}: a share of an epsilon was rounded, as floats are; compute shares with "
            "fractions.Fraction, or lower a step's epsilon a little",
        )
    elif smallest is not None and smallest > budget:
        yield (
            Severity.ERROR,
            f"the plan's total epsilon is {decimal_text(smallest)} under {plan.relation}, "
            f"and the budget is {decimal_text(budget)}; lower the steps' epsilons or raise the budget",
        )


def left_over(plan: AccountedPlan) -> Iterator[tuple[Severity, str]]:
    """Find epsilon that no step uses, if it is more than a thousandth of the budget."""
    smallest = plan.smallest_epsilon()
    if smallest is not None and 0 < smallest < plan.budget.epsilon * Fraction(999, 1000):
        left = decimal_text(plan.budget.epsilon - smallest)
        yield Severity.INFO, f"epsilon {left} of the budget is not planned; {_REST}"


_REST = "lower the study's epsilon, or keep the rest"


def no_finite_total(plan: AccountedPlan) -> Iterator[tuple[Severity, str]]:
    """Find plans whose releases need more delta than the study has.

    There are two cases. The exact deltas of the releases exceed the study's delta. Or they use it up, and a step
    without a pure epsilon, or a block without a cap on epsilon, needs some delta too. (A miner chooses the releases of
    a block during the run, see `plan.spend_block_node`.)
    """
    own, allowed = plan.exact_delta(plan.root), plan.budget.delta
    if own is not None and own > allowed:
        yield (
            Severity.ERROR,
            f"the releases have a delta of {float(own):g} of their own under {plan.relation}, and the study's delta is "
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
                    f"block '{placed.path}' has no cap on epsilon; set delta > 0 in the study, or give the block a cap",
                )


def accountant_fails(plan: AccountedPlan) -> Iterator[tuple[Severity, str]]:
    """Find accountants that raise an error on the plan or return a wrong total."""
    for name, reason in plan.failures().items():
        yield (
            Severity.WARNING,
            f"accountant '{name}' cannot total the plan ({reason}), so the other accountants do; tell its author",
        )
