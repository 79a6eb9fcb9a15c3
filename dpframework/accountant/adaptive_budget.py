"""A budget for plans that are chosen one after another, given the releases of earlier ones.

Whoever chooses plans by what has been released may not choose, afterwards, the rule by which all plans are totalled.
This budget of epsilon and delta accepts a plan while one of two totals is at most epsilon:

- **pure**: the pure epsilons of all plans, added up;
- **mixed**: B, the pure epsilons of all plans before an order alpha was fixed, plus the Renyi divergences at alpha of
  all plans since (see `rdp`), plus the conversion c = log(1 - 1 / alpha) - log(alpha delta) / (alpha - 1), or 0 if that
  is negative.

The order is fixed, for good, as soon as a plan is charged less at an order than its pure epsilon. The order may depend
on anything that was released until then.

**Theorem.** However plans are chosen, all their releases are (epsilon, delta)-DP under the relation of their losses.

*Proof.* Take neighbours with transcripts distributed as P and Q. A transcript's loss L, the logarithm of P over Q, is
the sum of the losses L_i of its plans, given what was released before. It is to be shown that the mean of
(1 - e^(epsilon - L))+ under P is at most delta; the other direction is the same.

1. A transcript whose pure total is at most epsilon has L <= epsilon, as each L_i is at most the plan's pure epsilon. It
   adds nothing (the pure filter of Rogers, Roth, Ullman and Vadhan 2016).
2. In any other transcript an order was fixed at some time, since without one only the pure total accepts plans. Take
   all that was released until then as given: alpha and B are known, and the losses until then add up to at most B. Each
   later plan has a divergence of at most k_i at alpha, whatever was released before it. So M = exp((alpha - 1) Y), for
   Y the sum of the later L_i - k_i, has a mean of at most 1 (the Renyi filter of Feldman and Zrnic 2021). The mixed
   total is at most epsilon, so L - epsilon <= Y - c. The largest value of (1 - e^-z) e^(-(alpha - 1) z) is
   (1 - 1/alpha)^(alpha - 1) / alpha, so (1 - e^(epsilon - L))+ is at most that times e^(-(alpha - 1) c) M, which is
   delta M or less.

**Exact deltas.** Releases may have deltas of their own, d_i for plan i (see `delta_composition`). A budget then has a
*reserve*, which is fixed with its delta. When the order is fixed, so is the delta at which it is converted,

    D' = delta minus the exact deltas of all plans so far, including this one, minus the reserve,

and c is taken at D'. The exact deltas of later plans add up to the reserve at most. Without an order all exact deltas
add up to delta at most. *Proof.* Plan i has a core of mass 1 - d_i, given what was released before it. In a transcript
let w be the product of all 1 - d_i, P' and Q' the products of the cores, and x = e**epsilon. Then w P' <= P and
w Q' <= Q, so that (P - x Q)+ <= (P - w P') + w (P' - x Q')+. Over all transcripts the first term adds up to the mean of
1 - w under the cores, which is at most the mean of the sum of the d_i, so at most delta - D' where an order was fixed
and delta elsewhere. The second term is 0 where no order was fixed, and adds up to D' M or less elsewhere, as above: to
at most D' times the probability that an order was fixed, since M has a mean of at most 1 from there on. Together that
is at most delta.

It would not be sound to convert at the delta that is left whenever the total is asked for. An analyst who spends exact
deltas only after releases that revealed little would get nearly all of delta twice
(`tests/accountant/test_adaptive.py` gains 1.99 delta in this way).

M is positive, so over the transcripts of the second kind alone it adds up to at most 1, too. So delta is paid once for
both kinds. This is why the order is fixed before it matters. The smallest total over all orders, or over all splits
into pure parts and zCDP parts, is valid for one plan that is fixed. If it is chosen after the releases, it is a race
between many bounds, each of which may fail with probability delta. Privacy loss distributions have no such theorem, and
are not used here.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import attrs

from dpframework.accountant import composition
from dpframework.accountant.delta_composition import exact_delta_of
from dpframework.accountant.pure import PureAccountant
from dpframework.accountant.rdp import Curve, RDPAccountant, epsilon_at, order_for, roomiest_order
from dpframework.facts.errors import PlanRefused
from dpframework.facts.privacy_losses import NOTHING, ByRelation, PrivacyLoss, Relation, decimal_text
from dpframework.facts.value_checks import read_ratio
from dpframework.plan.plan import Plan


@attrs.frozen
class PlanCharge:
    """What one plan is charged in an `AdaptiveBudget`.

    Attributes
    ----------
    pure
        The plan's pure epsilon.
    rdp
        The plan's Renyi divergence at the budget's order; None while no order is fixed.
    order
        The budget's order; None while no order is fixed.
    delta
        The delta that the plan's releases have of their own.
    """

    pure: ByRelation
    rdp: ByRelation | None = None
    order: Fraction | None = None
    delta: ByRelation = NOTHING

    def under(self, relation: Relation) -> Fraction | None:
        """Return the plan's addition to the total that it is charged to."""
        return (self.pure if self.rdp is None else self.rdp).under(relation)

    def to_dict(self) -> dict[str, Any]:
        """Return all amounts, exactly, as ledgers write them."""
        exact = {} if self.delta == NOTHING else {"delta": self.delta.to_dict()}
        if self.rdp is None:
            return {"pure": self.pure.to_dict(), **exact}
        return {"pure": self.pure.to_dict(), "rdp": self.rdp.to_dict(), "order": str(self.order), **exact}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> PlanCharge:
        """Read the output of `to_dict`."""
        pure = ByRelation.from_dict(form["pure"])
        delta = ByRelation.from_dict(form["delta"]) if "delta" in form else NOTHING
        if "rdp" not in form:
            return cls(pure, delta=delta)
        return cls(pure, ByRelation.from_dict(form["rdp"]), read_ratio(form["order"]), delta)


@attrs.frozen
class AdaptiveBudget:
    """Epsilon and delta for plans that are chosen one after another, and the charges so far.

    Attributes
    ----------
    relation
        The neighbouring relation for which the budget holds.
    epsilon, delta
        The most that all plans may cost together. Without a delta, only pure totals count.
    pure
        The pure epsilons of all charges.
    before
        The pure epsilons of the charges before the order was fixed.
    rdp
        The Renyi divergences of the charges since then.
    order
        The order of the Renyi divergences; None while it is not fixed.
    reserve
        The delta that is held back, when the order is fixed, for exact deltas of later charges.
    exact
        The exact deltas of all charges.
    converted
        The delta at which divergences become an epsilon; None while the order is not fixed.
    """

    relation: Relation
    epsilon: Fraction
    delta: Fraction
    pure: ByRelation = NOTHING
    before: ByRelation = NOTHING
    rdp: ByRelation = NOTHING
    order: Fraction | None = None
    reserve: Fraction = Fraction(0)
    exact: ByRelation = NOTHING
    converted: Fraction | None = None

    @property
    def delta_left(self) -> Fraction:
        """The largest exact delta that a further charge may have."""
        spent = self.exact.under(self.relation)
        assert spent is not None  # `after` refuses a charge whose exact delta is unknown
        return self.delta - spent - (self.converted or 0)

    def loss(self) -> PrivacyLoss | None:
        """Return the smaller one of the two totals of all charges, or None if neither is known."""
        pure, before, rdp = (amount.under(self.relation) for amount in (self.pure, self.before, self.rdp))
        mixed = None
        if self.order is not None and self.converted is not None and before is not None and rdp is not None:
            mixed = before + epsilon_at(self.order, rdp, self.converted)
        if pure is not None and (mixed is None or pure <= mixed):
            return PrivacyLoss(pure, delta=self.exact.under(self.relation) or 0)
        return None if mixed is None else PrivacyLoss(mixed, delta=self.delta)

    def plan_charge(self, plan: Plan) -> PlanCharge:
        """Return the charge of a plan. `after` and then `loss` tell whether the charge fits the budget."""
        pure = PureAccountant(self.relation).amount_of(plan.root, plan)
        exact = exact_delta_of(plan.root, plan)
        if not self.delta:
            return PlanCharge(pure, delta=exact)
        accountant = RDPAccountant(self.relation, delta=self.delta)
        return self.charge(pure, accountant.amount_of(plan.root, plan), exact)

    def charge(self, pure: ByRelation, curve: Curve, exact: ByRelation = NOTHING) -> PlanCharge:
        """Return the charge for a pure epsilon, a bound on the divergence at every order, and an exact delta.

        While no order is fixed, three choices are tried in turn. The first is the order that leaves the most room for
        rho, if the plan fits at that order and its divergence is not just its pure epsilon. The second is the pure
        epsilon, if that fits. The last is the order at which this plan is cheapest. If no delta is left for the
        conversion, or the plan has no divergence, the plan is charged its pure epsilon alone.
        """
        if self.order is not None:
            return PlanCharge(pure, curve.at(self.order), self.order, exact)
        delta = self._find_delta_after(exact)
        if delta is None:
            return PlanCharge(pure, delta=exact)
        own, spent = pure.under(self.relation), self.pure.under(self.relation)
        # A plan without a pure epsilon would have fixed the order.
        assert spent is not None
        left = self.epsilon - spent
        order = roomiest_order(left, delta)
        divergence = curve.at(order).under(self.relation)
        if divergence is not None and divergence != own and epsilon_at(order, divergence, delta) <= left:
            return PlanCharge(pure, curve.at(order), order, exact)
        best = order_for(curve, self.relation, delta)
        if best is None or (own is not None and own <= left):
            return PlanCharge(pure, delta=exact)
        return PlanCharge(pure, curve.at(best), best, exact)

    def _find_delta_after(self, exact: ByRelation) -> Fraction | None:
        """Return the delta for the conversion if a charge with an exact delta fixes the order; None if none is left."""
        own = exact.under(self.relation)
        left = None if own is None else self.delta_left - own - self.reserve
        return left if left is not None and left > 0 else None

    def after(self, charge: PlanCharge) -> AdaptiveBudget:
        """Return the budget with one more charge.

        Raises
        ------
        PlanRefused
            If the charge is at another order than the budget's or at one that the budget cannot have, its exact delta
            is above what is left for exact deltas, or it would fix the order although no delta is left for the
            conversion.
        """
        if self.order is not None and charge.order != self.order:
            raise PlanRefused("the charge is at another order than those before it")
        if charge.order is not None and (charge.order <= 1 or not self.delta):
            raise PlanRefused("the charge is at an order that the budget cannot have")
        own = charge.delta.under(self.relation)
        if own is None or own > self.delta_left:
            delta = "an unknown delta" if own is None else f"a delta of {decimal_text(own)}"
            left = decimal_text(self.delta_left)
            kept = "" if not self.converted else f"; {decimal_text(self.converted)} is kept for the conversion"
            kept += ", and only a budget with a reserve leaves more for exact deltas" if kept else ""
            raise PlanRefused(
                f"the plan's releases have {delta} of their own, and {left} is left for exact deltas{kept}"
            )
        pure = composition.sequential([self.pure, charge.pure])
        exact = composition.sequential([self.exact, charge.delta])
        if charge.rdp is None:
            return attrs.evolve(self, pure=pure, exact=exact)
        converted = self._find_delta_after(charge.delta) if self.order is None else self.converted
        if converted is None:
            raise PlanRefused("the charge is at an order, and no delta is left for the conversion")
        rdp = composition.sequential([self.rdp, charge.rdp])
        before = self.pure if self.order is None else self.before
        return attrs.evolve(
            self, pure=pure, before=before, rdp=rdp, order=charge.order, exact=exact, converted=converted
        )
