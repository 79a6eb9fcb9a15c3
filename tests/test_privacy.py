"""Losses as exact rationals, and the arithmetic of their composition under both relations."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.accountant.composition import either, parallel, repeat, sequential
from dpframework.facts.privacy import (
    NOTHING,
    ByRelation,
    PrivacyLoss,
    Relation,
    converted_above,
    decimal_text,
    exact,
    float_above,
    positive,
    rational_above,
    readable,
)

amounts = st.fractions(0, 100)
pairs = st.builds(lambda a, r: ByRelation(a, min(r, 2 * a)), amounts, amounts)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        (Decimal("0.30"), Fraction(3, 10)),
        (Fraction(2, 7), Fraction(2, 7)),
        (3, Fraction(3)),
        (0, Fraction(0)),
        ("1e-6", Fraction(1, 10**6)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.5), Fraction(1, 2)),
        (np.int64(2), Fraction(2)),
    ],
)
def test_numbers_are_read_as_they_are_written(value: Any, number: Fraction) -> None:
    assert exact(value) == number


@pytest.mark.parametrize(
    "value", ["", "one", "0.1.2", "nan", "inf", math.nan, math.inf, -math.inf, None, True, False, [1], "1/0", "1e+5000"]
)
def test_what_is_no_finite_number_is_refused(value: Any) -> None:
    with pytest.raises(dpf.InputError, match="a finite number is needed"):
        exact(value)


def test_negative_and_zero_are_named() -> None:
    with pytest.raises(dpf.InputError, match=r"^rho is -0\.5; it cannot be negative$"):
        exact(-0.5, "rho")
    with pytest.raises(dpf.InputError, match=r"^epsilon is 0; it must be positive$"):
        positive(0)


@pytest.mark.parametrize("value", ["1e999999999", "1e-999_999_999", "1e101", 1e200, "1e-101", 10**101])
def test_absurd_numbers_are_refused_at_once(value: Any) -> None:
    with pytest.raises(dpf.InputError, match="epsilon"):
        exact(value)


def test_the_largest_and_the_smallest_that_may_be_given() -> None:
    assert exact("1e100") == exact(10**100) == 10**100
    assert exact("1e-100") == Fraction(1, 10**100)
    for beyond in (10**100 + 1, f"1/{10**100 + 1}"):
        with pytest.raises(dpf.InputError, match="between 1e-100 and 1e100, or be 0"):
            exact(beyond)


def test_sums_are_equal_not_close() -> None:
    assert exact(0.1) + exact(0.2) == exact(0.3)
    assert sum(exact(0.1) for _ in range(10)) == 1
    assert 0.1 + 0.2 != 0.3  # which is why


def test_decimal_text() -> None:
    assert decimal_text(Fraction(3, 10)) == "0.3"
    assert decimal_text(Fraction(1, 3)) == "1/3"
    assert decimal_text(Fraction(10**6)) == "1000000.0"
    assert decimal_text(Fraction(1, 3 * 10**7)) == "3.33333e-08"
    assert decimal_text(Fraction(1, 10**12)) == "0.000000000001"
    assert decimal_text(Fraction(1, 2 * 10**12)) == "5e-13"
    assert decimal_text(Fraction(1, 999_999)) == "1/999999"
    assert decimal_text(Fraction(1, 1_000_001)) == "9.99999e-07"


def test_a_long_amount_is_shown_to_four_digits() -> None:
    assert readable(Fraction("0.12345678")) == "0.12345678"
    assert readable(Fraction("0.123456789")) == "~0.1235"
    assert readable(Fraction(1, 3)) == "~0.3333"


@given(st.integers(0, 10**9), st.integers(0, 9))
def test_a_decimal_is_written_as_one_that_is_read_the_same(numerator: int, places: int) -> None:
    number = Fraction(numerator, 10**places)
    assert exact(decimal_text(number)) == number


@given(st.fractions(0, 10**9))
def test_float_above_is_the_smallest_one(value: Fraction) -> None:
    above = float_above(value)
    assert Fraction(above) >= value
    assert Fraction(math.nextafter(above, -math.inf)) < value


@given(st.floats(1e-9, 1e9))
def test_conversions_round_up(value: float) -> None:
    assert rational_above(value) == Fraction(value) * Fraction(2**40 + 1, 2**40)  # the margin that proofs count on
    assert (
        Fraction(value) <= converted_above(value) <= Fraction(value) * Fraction(10**11 + 1, 10**11) + Fraction(1, 10**9)
    )


def test_relations_by_name() -> None:
    assert Relation.parse("replace-one") is Relation.REPLACE_ONE
    assert Relation.parse(Relation.ADD_OR_REMOVE_ONE) is Relation.ADD_OR_REMOVE_ONE
    with pytest.raises(dpf.InputError, match="'add-or-remove-one' and 'replace-one'"):
        Relation.parse("bounded")


@given(st.lists(pairs, min_size=1, max_size=6))
def test_parallel_under_both_relations(parts: list[ByRelation]) -> None:
    """The larger of a row that stays in its part and of one that leaves a part and enters another."""
    total = parallel(parts)
    added = [p.add_or_remove_one or Fraction(0) for p in parts]
    staying = max(p.replace_one or Fraction(0) for p in parts)
    moving = max((a + b for i, a in enumerate(added) for b in added[i + 1 :]), default=added[0])
    assert total == ByRelation(max(added), max(staying, moving))


def test_parallel_under_replace_one_is_not_the_largest_part() -> None:
    count = ByRelation(
        Fraction(1), Fraction(1)
    )  # such as the number of rows: a replacement inside a part changes it by 1
    assert parallel([count]) == ByRelation(Fraction(1), Fraction(1))
    assert parallel([count, count, count]) == ByRelation(Fraction(1), Fraction(2))
    assert parallel([ByRelation(Fraction(1), Fraction(2)), NOTHING]) == ByRelation(Fraction(1), Fraction(2))


@given(st.lists(pairs, max_size=5))
def test_sequential_either_repeat(parts: list[ByRelation]) -> None:
    added = [p.add_or_remove_one or Fraction(0) for p in parts]
    assert sequential(parts).add_or_remove_one == sum(added)
    assert either(parts).add_or_remove_one == max(added, default=0)
    for part in parts:
        assert repeat(part, 5) == sequential([part] * 5)
        assert repeat(part, 1) == part
        assert sequential([part, NOTHING]) == either([NOTHING, part]) == part


@given(st.builds(ByRelation, st.none() | amounts, st.none() | amounts))
def test_both_relations_are_written_and_read_back(amount: ByRelation) -> None:
    form = amount.to_dict()
    assert set(form) == {relation.value for relation in Relation}
    assert form["replace-one"] == (None if amount.replace_one is None else str(amount.replace_one))
    assert ByRelation.from_dict(form) == amount


def test_a_part_without_a_claim_leaves_none() -> None:
    only_replace, one = ByRelation(None, Fraction(1)), ByRelation(Fraction(1), Fraction(1))
    assert sequential([one, only_replace]) == ByRelation(None, Fraction(2))
    assert either([one, only_replace]) == ByRelation(None, Fraction(1))
    assert repeat(only_replace, 3) == ByRelation(None, Fraction(3))
    assert repeat(only_replace, 0) == NOTHING
    for parts in ([only_replace], [one, only_replace], [only_replace, only_replace]):
        assert parallel(parts) == ByRelation(None, None)  # a row that moves is added to a part


def test_losses_show_what_they_claim() -> None:
    assert repr(PrivacyLoss(epsilon=0.3)) == "PrivacyLoss(epsilon=0.3)"
    assert repr(PrivacyLoss(epsilon="0.5", rho="0.1", delta="1e-6")) == "PrivacyLoss(epsilon=0.5, delta=1e-06)"
    assert repr(PrivacyLoss(rho="1/3")) == "PrivacyLoss(rho=1/3)"
    assert PrivacyLoss(epsilon=2).zcdp == 2
    assert PrivacyLoss(epsilon=2, rho="0.5").zcdp == Fraction(1, 2)
    assert PrivacyLoss(epsilon=2, delta="1e-6").zcdp is None
    assert PrivacyLoss().zcdp is None
    with pytest.raises(dpf.InputError, match="delta"):
        PrivacyLoss(epsilon=1, delta=-1)


def test_nearest_names() -> None:
    from dpframework.facts.errors import nearest

    assert nearest("incme", ["income", "age"]) == "did you mean 'income'?"
    assert nearest("zzz", ["b", "a"]) == "known: a, b"
    assert nearest("zzz", []) == "none is known here"
    assert nearest("zzz", "abcdefghijk").endswith("h, ...")
