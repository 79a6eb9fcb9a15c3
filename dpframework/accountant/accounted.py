"""A plan with its totals: in each notion of loss that has one."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import attrs

from dpframework.accountant.base import Accountant
from dpframework.accountant.pld import PLDAccountant
from dpframework.accountant.pure import PureAccountant
from dpframework.accountant.rdp import RDPAccountant
from dpframework.accountant.zcdp import ZCDPAccountant
from dpframework.facts.errors import PlanRefused, first_line
from dpframework.facts.privacy import PrivacyLoss, decimal_text
from dpframework.plan.nodes import Node
from dpframework.plan.plan import Plan

if TYPE_CHECKING:
    from dpframework.plan.verified import Verified

#: The accountants that are always there.
BUILT_IN: tuple[type[Accountant[Any]], ...] = (PureAccountant, ZCDPAccountant, RDPAccountant, PLDAccountant)


@attrs.frozen
class _Total:
    """What releases cost at most in one notion of loss, or why its accountant could not say."""

    accountant: type[Accountant[Any]]
    loss: PrivacyLoss | None = None
    failure: str | None = None


@attrs.frozen(eq=False)
class AccountedPlan(Plan):
    """A plan that can be totalled, in notions of loss of which some may be a plugin's.

    An accountant that fails on a plan has no total of it, and `failures` says why; the others are not affected.

    Attributes
    ----------
    verified
        What was verified of its code, for the checks to say; no part of what the plan claims. None if nobody asks.
    """

    verified: Verified | None = attrs.field(default=None, kw_only=True)

    @property
    def accountants(self) -> tuple[type[Accountant[Any]], ...]:
        """The accountants that total it, one a notion of loss; those of a study's plan include plugins'."""
        return BUILT_IN

    def total(self) -> PrivacyLoss:
        """Return the smallest valid total.

        Raises
        ------
        PlanRefused
            If some step has no valid claim under the plan's relation; `check` says which.
        """
        return next(iter(self._required_totals().values()))

    def totals(self) -> dict[str, PrivacyLoss]:
        """Return the total in each notion of loss that has a finite one, the smallest first."""
        known = [(name, total.loss) for name, total in self._totals.items() if total.loss is not None]
        finite = [(loss.epsilon, name, loss) for name, loss in known if loss.epsilon is not None]
        return {name: loss for _, name, loss in sorted(finite, key=lambda one: one[0])}

    def smallest_total(self) -> PrivacyLoss | None:
        """Return the smallest valid total; None if there is none, where `total` refuses."""
        return next(iter(self.totals().values()), None)

    def failures(self) -> dict[str, str]:
        """Return why each accountant that fails on the plan does, by its name."""
        return {name: total.failure for name, total in self._totals.items() if total.failure is not None}

    def losses(self, node: Node) -> dict[str, PrivacyLoss | None]:
        """Return what all releases below a node cost at most, in each notion of loss whose accountant works."""
        working = [total.accountant for total in self._totals.values() if total.failure is None]
        totals = [self._total(accountant, node) for accountant in working]
        return {total.accountant.name: total.loss for total in totals if total is not None}

    def accountant(self) -> Accountant[Any]:
        """Return an accountant with the plan's budget, of the notion of loss with the smallest total.

        Raises
        ------
        PlanRefused
            If the plan has no valid total.
        """
        made = self._budgeted(self._totals[next(iter(self._required_totals()))].accountant)
        assert made is not None  # it has a total
        return made

    def _required_totals(self) -> dict[str, PrivacyLoss]:
        known = self.totals()
        if not known:
            raise PlanRefused(f"the plan has no valid total under {self.relation}; check() says why")
        return known

    @functools.cached_property
    def _totals(self) -> dict[str, _Total]:
        """The whole plan in each notion: composed once, since a plan does not change; a run composes its own charge."""
        return {kind.name: total for kind in self.accountants if (total := self._total(kind, self.root)) is not None}

    def _budgeted(self, kind: type[Accountant[Any]]) -> Accountant[Any] | None:
        """Return an accountant with the plan's budget; None if the plan's delta does not admit the notion."""
        delta = kind.delta_for(self.budget.delta)
        return None if delta is None else kind(self.relation, epsilon=self.budget.epsilon, delta=delta)

    def _total(self, kind: type[Accountant[Any]], node: Node) -> _Total | None:
        """Compose what is below a node, whatever a plugin's accountant may do; None as `_budgeted`."""
        try:
            accountant = self._budgeted(kind)
            if accountant is None:
                return None
            loss: object = accountant.loss(accountant.amount_of(node, self))
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
