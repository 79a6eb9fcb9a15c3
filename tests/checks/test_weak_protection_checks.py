"""Checks that advise: how strong a claim is, and whom it protects."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.checks import Severity
from dpframework.checks.weak_protection_checks import (
    LARGE_DELTA,
    LARGE_EPSILON,
    MOST_DELTA,
    ONE_ROW_PER_PERSON,
    STRONG,
    WEAK,
    WEAK_UNIT,
    large_delta,
    large_epsilon,
    one_period,
    one_row_each,
    weak_unit,
)
from dpframework.mechanisms import DiscreteLaplace

SCHEMA = dpf.Schema([dpf.Boolean("ill")])
PlanOf = Callable[..., dpf.StudyPlan]


def count(epsilon: object = 1) -> dpf.Node:
    return dpf.step("n", dpf.queries.Count(), DiscreteLaplace(epsilon))


@given(st.integers(1, 2000), st.booleans())
def test_a_claim_is_strong_up_to_1_and_says_little_above_10(plan_of: PlanOf, hundredths: int, allowed: bool) -> None:
    epsilon = Fraction(hundredths, 100)
    found = list(large_epsilon(plan_of(count(epsilon), SCHEMA, allow=(LARGE_EPSILON,) * allowed)))
    if epsilon <= STRONG:
        assert found == []
    else:
        ((severity, text),) = found
        assert severity is (Severity.WARNING if epsilon > WEAK and not allowed else Severity.INFO)
        assert ("the study allows" in text) == allowed


@given(st.integers(1, 10**6), st.integers(1, 8), st.booleans())
def test_a_delta_is_small_beside_one_over_the_rows(plan_of: PlanOf, rows: int, digits: int, allowed: bool) -> None:
    delta, schema = Fraction(1, 10**digits), dpf.Schema(SCHEMA.attributes, max_rows=rows)
    found = list(large_delta(plan_of(count(), schema, delta=delta, allow=(LARGE_DELTA,) * allowed)))
    assert bool(found) == (delta * rows >= 1 or delta > MOST_DELTA)
    for severity, text in found:
        assert severity is (Severity.INFO if allowed else Severity.WARNING)
        assert (f"1/{rows}" in text) == (delta * rows >= 1)


@pytest.mark.parametrize(
    ("unit", "allow", "told"),
    [
        (dpf.PrivacyUnit(), (), "a person may have several"),
        (dpf.PrivacyUnit(), (ONE_ROW_PER_PERSON,), "the owner states"),
        (dpf.PrivacyUnit("person"), (), None),
    ],
)
def test_a_plan_that_protects_a_row_asks_whose_it_is(
    plan_of: PlanOf, unit: dpf.PrivacyUnit, allow: tuple[str, ...], told: str | None
) -> None:
    found = list(one_row_each(plan_of(count(), SCHEMA, unit=unit, allow=allow)))
    assert [severity for severity, _ in found] == [Severity.INFO] * (told is not None)
    assert all(str(told) in text for _, text in found)


@pytest.mark.parametrize("unit", ["visit", "visit_id", "Order No", "record key", "invoice"])
@pytest.mark.parametrize("allowed", [False, True])
def test_a_unit_named_as_an_event_is_weak(plan_of: PlanOf, unit: str, allowed: bool) -> None:
    ((severity, text),) = weak_unit(plan_of(count(), SCHEMA, unit=dpf.PrivacyUnit(unit), allow=(WEAK_UNIT,) * allowed))
    assert severity is (Severity.INFO if allowed else Severity.WARNING)
    assert f"'{unit}' seems to name an event" in text


@pytest.mark.parametrize(
    ("name", "weak"),
    [("patient_id", True), ("SSN", True), ("id", True), ("customers nr", True), ("patience", False), ("width", False)],
)
def test_a_column_of_ids_beside_protected_rows_is_named(plan_of: PlanOf, name: str, weak: bool) -> None:
    schema = dpf.Schema([*SCHEMA.attributes, dpf.Categorical(name, ["1", "2"])])
    found = [text for _, text in weak_unit(plan_of(count(), schema))]
    assert [f"'{name}' seems to name the person of each row" in text for text in found] == [True] * weak
    assert not list(weak_unit(plan_of(count(), schema, unit=dpf.PrivacyUnit("person"))))


def test_a_unit_in_one_period_says_what_it_leaves_unprotected(plan_of: PlanOf) -> None:
    unit = dpf.PrivacyUnit("person", 3, period="month", date="day")
    ((severity, text),) = one_period(plan_of(count(), SCHEMA, unit=unit))
    assert severity is Severity.INFO
    assert unit.gap in text
    assert not list(one_period(plan_of(count(), SCHEMA, unit=dpf.PrivacyUnit("person", 3))))
