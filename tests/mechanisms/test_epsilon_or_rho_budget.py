"""A budget in epsilon or in rho: shares of it cost what they are shares of."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.mechanisms.base import Mechanism
from dpframework.mechanisms.epsilon_or_rho_budget import MechanismBudget

SHARES = st.integers(1, 99).map(lambda hundredths: Fraction(hundredths, 100))
FACTS = dpf.queries.Histogram(dpf.Categorical("c", ["x", "y"])).facts()


def cost(mechanism: Mechanism, *, zcdp: bool) -> Fraction:
    calibration = mechanism.calibrate(FACTS, dpf.Relation.ADD_OR_REMOVE_ONE)
    assert calibration is not None
    losses = calibration.losses
    found = (losses.zcdp if zcdp else losses.pure).add_or_remove_one
    assert found is not None
    return found


@pytest.mark.parametrize("zcdp", [False, True])
@given(SHARES)
def test_a_share_costs_what_it_is_of_the_budget(zcdp: bool, share: Fraction) -> None:
    budget = MechanismBudget(Fraction(2), zcdp)
    assert cost(budget.counter(share), zcdp=zcdp) == 2 * share
    spent = cost(budget.selector(share), zcdp=zcdp)
    assert 2 * share * Fraction(999, 1000) < spent <= 2 * share
    assert isinstance(budget.selector(share), budget.selects)
    assert isinstance(budget.counter(share), budget.counts)
