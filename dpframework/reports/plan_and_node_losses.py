"""The losses of a node and of a whole plan, as values and in words."""

from __future__ import annotations

from fractions import Fraction

from dpframework.accountant import AccountedPlan, PureAccountant, ZCDPAccountant
from dpframework.facts.privacy_losses import NO_EPSILON, PrivacyLoss, readable
from dpframework.plan.nodes import Node, Step


def loss_of(node: Node, plan: AccountedPlan) -> PrivacyLoss | None:
    """Return the most that all releases of a node cost: a pure epsilon, or the rho of a step without a pure epsilon.

    The loss has the delta of the releases themselves, even if that is larger than the plan's delta. Return None if
    there is no valid claim.
    """
    exact = plan.exact_delta(node)
    if exact is None:
        return None
    if isinstance(node, Step) and (calibration := plan.calibration(node)) is not None:
        rho = calibration.losses.zcdp.under(plan.relation)
        if calibration.losses.pure.under(plan.relation) is None and rho is not None:
            return PrivacyLoss(rho=rho, delta=exact)
    amount = plan.amount(PureAccountant, node)
    epsilon = None if amount is None else amount.under(plan.relation)
    return None if epsilon is None else PrivacyLoss(epsilon, delta=exact)


def bound_of(node: Node, plan: AccountedPlan) -> PrivacyLoss | None:
    """Return the most that all releases of a node cost, in pure epsilon or else by zCDP at the plan's delta.

    A total under another accounting may be smaller, but this bound is fast to compute for any number of nodes.
    """
    pure = loss_of(node, plan)
    return pure if pure is not None and pure.epsilon is not None else plan.loss(ZCDPAccountant, node)


def share_of(loss: PrivacyLoss | None, whole: PrivacyLoss | None) -> float | None:
    """Return the epsilon of `loss` divided by the epsilon of `whole`. None if one is unknown, or the second is 0."""
    if loss is None or whole is None or loss.epsilon is None or not whole.epsilon:
        return None
    return float(loss.epsilon / whole.epsilon)


def cost_text(loss: PrivacyLoss | None, *, none: str = "no pure epsilon", exactly: bool = False) -> str:
    """Return the cost of a node (see `loss_of`) in words, rounded unless `exactly` is set.

    If there is no cost, return the text `none`.

    Examples
    --------
    >>> cost_text(PrivacyLoss(epsilon="1/3")), cost_text(PrivacyLoss(epsilon="1/3"), exactly=True)
    ('epsilon ~0.3333', 'epsilon 1/3')
    >>> cost_text(PrivacyLoss(epsilon=1, delta="0.001"))
    'epsilon 1.0, delta 0.001'
    """
    if loss is None:
        return none
    amounts = {"epsilon": loss.epsilon} if loss.epsilon is not None else {"rho": loss.rho}
    if loss.delta:
        amounts["delta"] = loss.delta
    known = [(name, amount) for name, amount in amounts.items() if amount is not None]
    return ", ".join([f"{name} {amount if exactly else readable(amount)}" for name, amount in known]) or none


def loss_text(loss: PrivacyLoss | None) -> str:
    """Return a total in words, also if it is None because no finite epsilon is known."""
    return NO_EPSILON if loss is None else loss.text


def whole_rho(plan: AccountedPlan) -> Fraction | None:
    """Return the rho of the whole plan. None if it has no rho, if it has a pure epsilon, or if releases have a delta.

    A release with a delta may, with that probability, reveal everything about somebody. No finite rho allows that.
    """
    if plan.exact_delta(plan.root):
        return None
    if PureAccountant(plan.relation).amount_of(plan.root, plan).under(plan.relation) is not None:
        return None
    accountant = ZCDPAccountant(plan.relation, delta=plan.budget.delta)
    return accountant.amount_of(plan.root, plan).under(plan.relation)
