"""A plan's totals: in each notion of loss that has one."""

from __future__ import annotations

import weakref
from fractions import Fraction
from typing import Any

from dpframework.accountant.base import Accountant
from dpframework.accountant.pld import PLDAccountant
from dpframework.accountant.pure import PureAccountant
from dpframework.accountant.zcdp import ZCDPAccountant
from dpframework.facts.privacy import PrivacyLoss
from dpframework.plan.plan import Plan

#: The accountants that are always there.
BUILT_IN: tuple[type[Accountant[Any]], ...] = (PureAccountant, ZCDPAccountant, PLDAccountant)


def accountants(plan: Plan, delta: Fraction = Fraction(0)) -> list[Accountant[Any]]:
    """Return an unlimited accountant of each notion that a delta admits: pure alone if it is 0."""
    pure: list[Accountant[Any]] = [PureAccountant(plan.relation)]
    if delta == 0:
        return pure
    return [*pure, ZCDPAccountant(plan.relation, delta=delta), PLDAccountant(plan.relation, delta=delta)]


_TOTALS: weakref.WeakKeyDictionary[Plan, dict[Fraction, dict[str, PrivacyLoss]]] = weakref.WeakKeyDictionary()


def totals(plan: Plan, delta: Fraction = Fraction(0)) -> dict[str, PrivacyLoss]:
    """Return a plan's total in each notion of loss that has one, the smallest epsilon first.

    A plan does not change, so that its totals are composed once; a run is charged what it composes itself.
    """
    known = _TOTALS.setdefault(plan, {})
    if delta not in known:
        found = {a.name: t for a in accountants(plan, delta) if (t := a.total(plan)) is not None}
        finite = {name: total for name, total in found.items() if total.epsilon is not None}
        known[delta] = dict(sorted(finite.items(), key=lambda item: item[1].epsilon or 0))
    return dict(known[delta])
