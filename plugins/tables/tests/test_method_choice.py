"""The choice of a method by public facts: more budget and more rows never make it more timid."""

from __future__ import annotations

from fractions import Fraction

import pytest
from dpframework_tables.method_choice import METHODS, ChoiceFacts
from dpframework_tables.miner import SyntheticTable
from hypothesis import given, settings, strategies as st

import dpframework as dpf

EPSILONS = st.sampled_from(["0.01", "0.1", "1", "10"])
NUMBERS = st.integers(1, 12)
ROWS = st.sampled_from([10, 1000, 100_000])


def facts(number: int, epsilon: str, rows: int | None, *, zcdp: bool = False) -> ChoiceFacts:
    schema = dpf.Schema([dpf.Categorical(f"a{k}", ["x", "y", "z"]) for k in range(number)], about_rows=rows)
    miner = SyntheticTable(rho=epsilon) if zcdp else SyntheticTable(epsilon=epsilon)
    found = miner.facts(schema)
    assert isinstance(found, ChoiceFacts)
    return found


@settings(max_examples=40)
@given(NUMBERS, EPSILONS, ROWS, st.booleans())
def test_shares_and_rounds_are_within_their_bounds(number: int, epsilon: str, rows: int, zcdp: bool) -> None:
    one = facts(number, epsilon, rows, zcdp=zcdp)
    assert Fraction(1, 10) <= one.share_of_singles < 1
    assert one.fewest() <= one.rounds() <= max(one.fewest(), 3 * number)
    assert one.method() in METHODS
    assert 0 <= one.given_back() <= one.rounds() // 2
    assert one.order() in (2, 3)


@settings(max_examples=40)
@given(NUMBERS, ROWS, st.booleans())
def test_noise_falls_with_the_budget_and_with_the_rows(number: int, rows: int, zcdp: bool) -> None:
    one, richer, larger = (
        facts(number, "0.1", rows, zcdp=zcdp),
        facts(number, "1", rows, zcdp=zcdp),
        facts(number, "0.1", 10 * rows, zcdp=zcdp),
    )
    for more in (richer, larger):
        assert (more.noise_of_singles(Fraction(1)) or 0) < (one.noise_of_singles(Fraction(1)) or 0)
        assert more.rounds() >= one.rounds()
        assert not (more.method() == "independent" and one.method() != "independent")
        assert more.share_of_singles <= one.share_of_singles
    assert (one.noise_of_pairs(5) or 0) < (one.noise_of_pairs(6) or 0)
    assert (one.most_cells(6, Fraction(1, 3)) or 0) <= (one.most_cells(5, Fraction(1, 3)) or 0)


def test_without_a_number_of_rows_the_choice_is_by_attributes_alone() -> None:
    one = facts(6, "0.001", None)
    assert (one.noise_of_singles(Fraction(1)), one.noise_of_pairs(3), one.most_cells(3, Fraction(1, 3))) == (None,) * 3
    assert (one.method(), one.rounds(), one.share_of_singles) == ("rounds", 6, Fraction(1, 5))


@pytest.mark.parametrize(("number", "method"), [(1, "independent"), (2, "rounds"), (46, "tree")])
def test_many_attributes_take_a_tree(number: int, method: str) -> None:
    assert facts(number, "10", 10**6).method() == method
