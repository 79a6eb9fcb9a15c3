"""A budget for plans that are chosen one after another, given the releases of earlier ones.

An analyst may choose each plan after seeing the releases of earlier plans. The rule that totals all plans must then be
fixed early, not at the end with all releases in view (the last paragraph says why). This budget of epsilon and delta
accepts a plan if one of two totals, with this plan, is at most epsilon:

- **pure**: the pure epsilons of all plans, added up;
- **mixed**, once an order alpha > 1 of the Renyi divergence is fixed: a sum of three terms. The first is B, the sum of
  the pure epsilons of all plans before the order was fixed. The second is the sum of the Renyi divergences at alpha of
  all later plans (see `rdp`). The third is c = log(1 - 1 / alpha) - log(alpha delta) / (alpha - 1), or 0 if that is
  negative. Adding c *converts* the divergences to an epsilon at delta.

The first plan that is charged its Renyi divergence instead of its pure epsilon fixes the order, for good. The order may
depend on anything that was released before.

**Theorem.** However plans are chosen, all their releases are (epsilon, delta)-DP under the relation of their losses.

*Proof.* A transcript is the list of all releases. Let P and Q be its distributions on two neighbouring tables. The loss
L of a transcript is the logarithm of P over Q. It is the sum of all L_i, where L_i is the loss of plan i given what was
released before. Write y+ for the larger of y and 0. We show that the mean of (1 - e^(epsilon - L))+ under P is at most
delta. The same argument holds with P and Q exchanged.

1. A transcript whose pure total is at most epsilon has L <= epsilon, as each L_i is at most the plan's pure epsilon. So
   this transcript adds nothing to the mean (the pure filter of Rogers, Roth, Ullman and Vadhan 2016).
2. In any other transcript an order was fixed at some time, since without an order only the pure total accepts plans.
   Condition on all releases before that time: alpha and B are known, and the losses so far add up to at most B. Each
   later plan i has a divergence of at most k_i at alpha, whatever was released before it. Let Y be the sum of L_i - k_i
   over the later plans. Then M = exp((alpha - 1) Y) has a mean of at most 1 (the Renyi filter of Feldman and Zrnic
   2021). L is at most B plus Y plus all k_i. The mixed total, B plus all k_i plus c, is at most epsilon, so
   L - epsilon <= Y - c. Over all z >= 0 the largest value of (1 - e^-z) e^(-(alpha - 1) z) is
   K = (1 - 1/alpha)^(alpha - 1) / alpha. With z = L - epsilon this gives
   (1 - e^(epsilon - L))+ <= K e^((alpha - 1)(L - epsilon)) <= K e^(-(alpha - 1) c) M, and by the choice of c this is at
   most delta M. M is positive and has a mean of at most 1, so these transcripts add at most delta.

**Exact deltas.** The releases of plan i may have an exact delta d_i, the probability of outputs about which epsilon
says nothing (see `exact_delta_composition`). For later plans with such deltas, a budget may hold back a part of its
delta. This *reserve* is chosen when the budget is set up. When the order is fixed, the delta of the conversion is
fixed, too:

    D' = delta minus the exact deltas of all plans so far, including this one, minus the reserve.

Then c is computed with D' in place of delta, and the exact deltas of later plans may add up to at most the reserve.
While no order is fixed, all exact deltas may add up to at most delta.

*Proof.* With probability 1 - d_i, given what was released before, plan i draws from its core, the distribution that
epsilon bounds. In a transcript let w be the product of all 1 - d_i, let P' and Q' be the products of the cores, and let
x = e**epsilon. Then w P' <= P and w Q' <= Q, so (P - x Q)+ <= (P - w P') + w (P' - x Q')+. Sum both terms over all
transcripts.

The first term sums to the mean of 1 - w under the cores, which is at most the mean of the sum of all d_i. That sum is
at most delta - D' where an order was fixed, and at most delta elsewhere. The second term is 0 where no order was fixed.
Where an order was fixed, it is at most D' M, as above. From the time of fixing, M has a mean of at most 1, so the
second term sums to at most D' times the probability that an order was fixed. Together the two sums are at most delta.

**Releases outside all plans.** The owner may state an (epsilon, delta)-DP release that no plan made. Its epsilon is
charged like a plan's epsilon, and its delta counts like an exact delta. But such a release is never refused, since it
has already happened. If it is stated before the order is fixed, then its delta makes D' smaller. If it is stated later,
and its delta exceeds the reserve, then all releases together have the delta D' plus the exact deltas plus the deltas of
the releases outside. This sum is above the budget's delta, and no plan fits any more.

It would not be sound to convert anew at each request for the total, with the delta that is left by then. An analyst
could spend exact deltas only after releases that revealed little, and so use nearly all of delta twice
(`tests/accountant/test_adaptive.py` reaches 1.99 delta in this way).

**Why the order is fixed before it is needed.** For one plan that is fixed beforehand, the smallest total over all
orders is valid. So is the smallest total over all splits of the plan into pure parts and zCDP parts. If the order is
chosen after the releases, each of many bounds may fail with probability delta, and the analyst picks among the bounds.
With one order all transcripts share the same M, so delta is paid once. No such theorem is known for privacy loss
distributions, so they are not used here.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import attrs

from dpframework.accountant import composition
from dpframework.accountant.exact_delta_composition import exact_delta_of
from dpframework.accountant.pure import PureAccountant
from dpframework.accountant.rdp import Curve, RDPAccountant, epsilon_at, order_for, order_of_largest_rho
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
        The plan's Renyi divergence at the budget's order; None if the plan is charged its pure epsilon.
    order
        The order of that Renyi divergence; None if the plan is charged its pure epsilon.
    delta
        The exact delta of the plan's releases (see the module's text).
    """

    pure: ByRelation
    rdp: ByRelation | None = None
    order: Fraction | None = None
    delta: ByRelation = NOTHING

    def under(self, relation: Relation) -> Fraction | None:
        """Return what the plan adds to a total: its Renyi divergence if an order is fixed, else its pure epsilon."""
        return (self.pure if self.rdp is None else self.rdp).under(relation)

    def to_dict(self) -> dict[str, Any]:
        """Return all amounts as exact fractions, in the form that ledgers write."""
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
        The sum of the pure epsilons of all charges.
    before
        The sum of the pure epsilons of the charges before the order was fixed.
    rdp
        The sum of the Renyi divergences of the other charges, from the one that fixed the order on.
    order
        The order of the Renyi divergences; None while it is not fixed.
    reserve
        The part of delta that is held back for the exact deltas of plans after the order is fixed.
    exact
        The sum of the exact deltas of all charges.
    converted
        The delta D' at which divergences are converted to an epsilon; None while the order is not fixed.
    outside
        The delta of the releases that no plan made.
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
    outside: Fraction = Fraction(0)

    @property
    def delta_left(self) -> Fraction:
        """The largest exact delta that a further charge may have. It is negative if outside releases used too much."""
        spent = self.exact.under(self.relation)
        assert spent is not None  # `after` refuses a charge whose exact delta is unknown
        return self.delta - spent - self.outside - (self.converted or 0)

    def loss(self) -> PrivacyLoss | None:
        """Return the smaller of the pure and the mixed total of all charges, or None if neither is known."""
        pure, before, rdp = (amount.under(self.relation) for amount in (self.pure, self.before, self.rdp))
        mixed = None
        if self.order is not None and self.converted is not None and before is not None and rdp is not None:
            mixed = before + epsilon_at(self.order, rdp, self.converted)
        if pure is not None and (mixed is None or pure <= mixed):
            return PrivacyLoss(pure, delta=(self.exact.under(self.relation) or 0) + self.outside)
        return None if mixed is None else PrivacyLoss(mixed, delta=max(self.delta, self.delta - self.delta_left))

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

        While no order is fixed, three charges are tried in turn, and the first one that fits is returned. The first is
        the divergence at the order where the rest of the budget admits the largest rho, unless it equals the plan's
        pure epsilon. The second is the pure epsilon. The last is the divergence at the order where this plan is
        cheapest, which is returned even if it does not fit. If no delta is left for the conversion, or the plan has no
        known divergence, the plan is charged its pure epsilon.
        """
        if self.order is not None:
            return PlanCharge(pure, curve.at(self.order), self.order, exact)
        delta = self._find_delta_after(exact)
        if delta is None:
            return PlanCharge(pure, delta=exact)
        own, spent = pure.under(self.relation), self.pure.under(self.relation)
        # All pure epsilons so far are known, since a plan without one would have fixed the order.
        assert spent is not None
        left = self.epsilon - spent
        order = order_of_largest_rho(left, delta)
        divergence = curve.at(order).under(self.relation)
        if divergence is not None and divergence != own and epsilon_at(order, divergence, delta) <= left:
            return PlanCharge(pure, curve.at(order), order, exact)
        best = order_for(curve, self.relation, delta)
        if best is None or (own is not None and own <= left):
            return PlanCharge(pure, delta=exact)
        return PlanCharge(pure, curve.at(best), best, exact)

    def _find_delta_after(self, exact: ByRelation) -> Fraction | None:
        """Return the delta left for the conversion, if a charge with this exact delta fixes the order; or None."""
        own = exact.under(self.relation)
        left = None if own is None else self.delta_left - own - self.reserve
        return left if left is not None and left > 0 else None

    def after(self, charge: PlanCharge) -> AdaptiveBudget:
        """Return the budget with one more charge.

        Raises
        ------
        PlanRefused
            If the charge's order differs from the budget's, is 1 or less, or needs a delta that the budget does not
            have. If the exact delta is larger than what is left for exact deltas. Or if the charge would fix the order,
            and no delta is left for the conversion.
        """
        if self.order is not None and charge.order != self.order:
            raise PlanRefused("the charge is at a different order than the charges before it")
        if charge.order is not None and (charge.order <= 1 or not self.delta):
            raise PlanRefused("the charge is at an order that the budget cannot have")
        own = charge.delta.under(self.relation)
        most = max(self.delta_left, Fraction(0))
        if own is None or own > most:
            delta = "an unknown delta" if own is None else f"a delta of {decimal_text(own)}"
            left = decimal_text(most)
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
            raise PlanRefused("the charge is a Renyi divergence, and no delta is left to convert it to an epsilon")
        rdp = composition.sequential([self.rdp, charge.rdp])
        before = self.pure if self.order is None else self.before
        return attrs.evolve(
            self, pure=pure, before=before, rdp=rdp, order=charge.order, exact=exact, converted=converted
        )
