"""The budget of an everyday miner: all of it is spent, in the notion that it is given in."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.basics.basic_miner_base import BasicMiner

AMOUNT = st.integers(1, 10**6).map(lambda millionths: Fraction(millionths, 10**6))
ADD = dpf.Relation.ADD_OR_REMOVE_ONE
SCHEMA = dpf.Schema([dpf.Categorical("c", ["x", "y"])])


class Bare(BasicMiner):
    """A miner with a budget alone."""

    def plan(self, schema: dpf.Schema) -> Any:
        raise NotImplementedError

    def mine(self, table: dpf.PrivateTable) -> Any:
        raise NotImplementedError


def loss(mechanism: Any) -> Any:
    calibration = mechanism.calibrate(dpf.queries.Histogram(SCHEMA["c"]).facts(), ADD)
    return calibration.losses


@given(AMOUNT)
def test_an_epsilon_is_spent_exactly_by_each_mechanism(epsilon: Fraction) -> None:
    miner = Bare(epsilon=epsilon)
    for mechanism in (miner.counter, miner.measurer, miner.selector):
        assert loss(mechanism).pure.add_or_remove_one == epsilon


@given(AMOUNT)
def test_a_rho_is_spent_exactly_by_noise_and_nearly_by_choices(rho: Fraction) -> None:
    miner = Bare(rho=rho)
    for mechanism in (miner.counter, miner.measurer):
        assert loss(mechanism).zcdp.add_or_remove_one == rho
    spent = loss(miner.selector).zcdp.add_or_remove_one
    assert rho * Fraction(999, 1000) < spent <= rho


@pytest.mark.parametrize("budget", [{}, {"epsilon": 1, "rho": 1}])
def test_one_budget_is_given(budget: Any) -> None:
    with pytest.raises(dpf.InputError, match="give one budget"):
        Bare(**budget)


@pytest.mark.parametrize("name", ["epsilon", "rho"])
@pytest.mark.parametrize("amount", [0, -1, "many"])
def test_a_budget_is_above_0(name: str, amount: Any) -> None:
    with pytest.raises(dpf.InputError):
        Bare(**{name: amount})
