"""A plan with its totals in each notion of privacy loss, such as pure epsilon or zCDP."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from dpframework.accountant.base import Accountant
from dpframework.accountant.exact_delta_composition import exact_delta_of
from dpframework.accountant.pure import PureAccountant
from dpframework.facts.errors import PlanRefused, first_line
from dpframework.facts.privacy_losses import PrivacyLoss, decimal_text
from dpframework.plan.error_bounds_by_result import planned_parts
from dpframework.plan.nodes import Node
from dpframework.plan.plan import Plan
from dpframework.results.error_bounds import ErrorBound

if TYPE_CHECKING:
    from dpframework.plan.verification_records_file import VerificationRecords

A = TypeVar("A")


def built_in_at(delta: Fraction) -> tuple[type[Accountant[Any]], ...]:
    """Return the built-in accountants that may total a plan with this delta. At delta 0, only the pure one may."""
    if delta == 0:
        return (PureAccountant,)
    from dpframework.accountant.built_in import BUILT_IN

    return BUILT_IN


@attrs.frozen
class _Total:
    """One accountant's upper bound on the loss of some releases, or the reason why it failed to give one."""

    accountant: type[Accountant[Any]]
    loss: PrivacyLoss | None = None
    failure: str | None = None


@attrs.frozen(eq=False)
class AccountedPlan(Plan):
    """A plan that can be totalled in several notions of loss, some of which may come from plugins.

    An accountant that fails on a plan gives no total, and `failures` says why. The others are not affected.

    Attributes
    ----------
    verified
        The verification records of the plan's code, which the checks report. The plan's claims do not depend on them.
        None if no records are given.
    """

    verified: VerificationRecords | None = attrs.field(default=None, kw_only=True)

    @property
    def accountants(self) -> tuple[type[Accountant[Any]], ...]:
        """The accountants of the totals, one for each notion. A study's plan includes plugins' accountants."""
        return built_in_at(self.budget.delta)

    def error_bounds(self) -> Mapping[str, tuple[ErrorBound, ...]]:
        """Return the error bounds of each result's steps, by the result's name."""
        return {part.name: part.bounds_of_steps() for part in planned_parts(self)}

    def total(self) -> PrivacyLoss:
        """Return the smallest valid total.

        Raises
        ------
        PlanRefused
            If the plan has no valid total under its relation. `check` says why.
        """
        return next(iter(self._require_totals().values()))

    @functools.cached_property
    def _finite_totals(self) -> dict[str, PrivacyLoss]:
        known = [(name, total.loss) for name, total in self._totals.items() if total.loss is not None]
        finite = [(loss.epsilon, name, loss) for name, loss in known if loss.epsilon is not None]
        return {name: loss for _, name, loss in sorted(finite, key=lambda one: one[0])}

    def totals(self) -> dict[str, PrivacyLoss]:
        """Return all finite totals, the smallest first, by the names of their notions of loss."""
        return dict(self._finite_totals)

    def smallest_total(self) -> PrivacyLoss | None:
        """Return the smallest valid total, or None if the plan has none."""
        return next(iter(self.totals().values()), None)

    def smallest_epsilon(self) -> Fraction | None:
        """Return the epsilon of the smallest valid total, or None if the plan has none."""
        smallest = self.smallest_total()
        return None if smallest is None else smallest.epsilon

    def failures(self) -> dict[str, str]:
        """Return the reasons why accountants fail on the plan, by the accountants' names."""
        return {name: total.failure for name, total in self._totals.items() if total.failure is not None}

    def amount(self, kind: type[Accountant[A]], node: Node) -> A | None:
        """Return an upper bound on the cost of all releases below a node. It is computed once for each node.

        Returns
        -------
        A or None
            The cost in the accountant's own terms, such as a rho. None if the accountant cannot work at the plan's
            delta.
        """
        key = kind, id(node)
        if key not in self._amounts:
            accountant = self._accountant_of(kind)
            if accountant is None:
                return None
            amount = accountant.amount_of(node, self)
            if self.index.find(node) is None:
                return amount
            self._amounts[key] = amount
        known: A = self._amounts[key]
        return known

    def loss(self, kind: type[Accountant[Any]], node: Node) -> PrivacyLoss | None:
        """Return an upper bound on the loss of all releases below a node, in one notion of loss.

        The result is None without a valid claim, or if the accountant does not work at the plan's delta.
        """
        accountant = self._accountant_of(kind)
        if accountant is None:
            return None
        return accountant.loss_with_exact_delta(self.amount(kind, node), self.exact_delta(node))

    def exact_delta(self, node: Node) -> Fraction | None:
        """Return the exact delta below a node (see `exact_delta_composition`); None without a valid claim."""
        return exact_delta_of(node, self).under(self.relation)

    @functools.cached_property
    def _amounts(self) -> dict[tuple[type[Accountant[Any]], int], Any]:
        return {}

    def losses(self, node: Node) -> dict[str, PrivacyLoss | None]:
        """Return bounds on the loss of all releases below a node, by accountant. Accountants that fail are left out."""
        working = [total.accountant for total in self._totals.values() if total.failure is None]
        totals = [self._total(accountant, node) for accountant in working]
        return {total.accountant.name: total.loss for total in totals if total is not None}

    def accountant(self) -> Accountant[Any]:
        """Return an accountant with the plan's budget, in the notion of loss with the smallest total.

        Raises
        ------
        PlanRefused
            If the plan has no valid total.
        """
        kind = self._totals[next(iter(self._require_totals()))].accountant
        delta = kind.delta_for(self.budget.delta)
        assert delta is not None  # since the notion has a total
        return kind(self.relation, epsilon=self.budget.epsilon, delta=delta)

    def _require_totals(self) -> dict[str, PrivacyLoss]:
        known = self.totals()
        if not known:
            raise PlanRefused(f"the plan has no valid total under {self.relation}; check() says why")
        return known

    @functools.cached_property
    def _totals(self) -> dict[str, _Total]:
        """The whole plan's total in each notion, composed once, since a plan does not change."""
        return {kind.name: total for kind in self.accountants if (total := self._total(kind, self.root)) is not None}

    def _accountant_of(self, kind: type[Accountant[A]]) -> Accountant[A] | None:
        """Return the accountant that computes the plan's totals, or None if it cannot work at the plan's delta."""
        if kind not in self._accountants_by_kind:
            delta = kind.delta_for(self.budget.delta)
            self._accountants_by_kind[kind] = (
                None if delta is None else kind(self.relation, epsilon=self.budget.epsilon, delta=delta)
            )
        return self._accountants_by_kind[kind]

    @functools.cached_property
    def _accountants_by_kind(self) -> dict[type[Accountant[Any]], Accountant[Any] | None]:
        return {}

    def _total(self, kind: type[Accountant[Any]], node: Node) -> _Total | None:
        """Compose the releases below a node, and turn any failure of a plugin's accountant into a reason."""
        try:
            accountant = self._accountant_of(kind)
            if accountant is None:
                return None
            loss: object = accountant.loss_with_exact_delta(self.amount(kind, node), self.exact_delta(node))
        except (Exception, SystemExit) as error:
            return _Total(kind, failure=f"{type(error).__name__}: {first_line(error) or 'no reason given'}")
        if loss is None:
            return _Total(kind)
        if not isinstance(loss, PrivacyLoss):
            return _Total(kind, failure=f"its loss is of type {type(loss).__name__}, not PrivacyLoss")
        if loss.delta > self.budget.delta:
            own, allowed = decimal_text(loss.delta), decimal_text(self.budget.delta)
            return _Total(kind, failure=f"its loss holds at delta {own}, above the study's {allowed}")
        return _Total(kind, loss)
