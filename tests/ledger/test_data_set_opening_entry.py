"""The entry for a data set that is opened: its caps exactly, or a sentence that says why they do not go together."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, strategies as st

from dpframework.facts import Boolean, InputError, PrivacyUnit, Schema
from dpframework.ledger.data_set_opening_entry import opening

AMOUNT = st.integers(1, 99).map(lambda hundredths: Fraction(hundredths, 100))
USUAL: dict[str, Any] = {
    "epsilon": 1,
    "delta": 0,
    "relation": "add-or-remove-one",
    "verified": None,
    "unit": None,
    "rows_per_unit": 1,
}
MONTHLY = PrivacyUnit("id", 3, period="month", date="day")


def opened(name: str = "people", **given_facts: Any) -> dict[str, Any]:
    return opening(name, **{**USUAL, **given_facts})


@given(AMOUNT, AMOUNT, AMOUNT, AMOUNT)
def test_caps_are_written_exactly(epsilon: Fraction, delta: Fraction, share: Fraction, verified: Fraction) -> None:
    form = opened(epsilon=epsilon, delta=delta, reserve=share * delta, verified=verified)
    assert [Fraction(form[name]) for name in ("epsilon", "delta", "reserve", "verified")] == [
        epsilon,
        delta,
        share * delta,
        verified,
    ]


@given(AMOUNT, AMOUNT)
def test_a_reserve_is_a_part_of_the_delta(delta: Fraction, reserve: Fraction) -> None:
    if reserve <= delta:
        assert Fraction(opened(delta=delta, reserve=reserve)["reserve"]) == reserve
    else:
        with pytest.raises(InputError, match="it is a part of delta, so it must be at most"):
            opened(delta=delta, reserve=reserve)


@given(AMOUNT, AMOUNT)
def test_a_history_caps_at_least_one_period(epsilon: Fraction, history: Fraction) -> None:
    if history >= epsilon:
        assert Fraction(opened(unit=MONTHLY, epsilon=epsilon, history=history)["history"]) == history
    else:
        with pytest.raises(InputError, match="below the cap of one period"):
            opened(unit=MONTHLY, epsilon=epsilon, history=history)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"unit": MONTHLY}, "need a second cap over a person's whole history"),
        ({"history": 2}, "needs a unit with a period"),
        ({"verified": 2}, "at most 1"),
        ({"relation": "none"}, "relation"),
        ({"name": "two\nlines"}, "name"),
    ],
)
def test_what_does_not_go_together_is_refused(facts: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        opened(**facts)


def test_an_entry_states_only_what_is_stated() -> None:
    schema = Schema([Boolean("ill")])
    assert opened().keys() == {"data_set", "relation", "epsilon", "delta", "schema"}
    assert opened(schema=schema)["schema"] == schema.fingerprint
    assert opened(unit="id", rows_per_unit=4)["unit"] == PrivacyUnit("id", 4).to_dict()
    assert "reserve" not in opened(reserve=0)
