"""What a study may allow by name: each name is needed, or a finding says that it is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.checks import BUILT_IN, Severity
from dpframework.checks.allowed_risks import ALLOWANCES, unknown_allowance
from dpframework.checks.claim_and_assumption_checks import HARMLESS, INFERRED, KNOWN_ASSUMPTIONS
from dpframework.facts.privacy_unit import ROWS_ASSERTED
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan.plan import DATA_FITS_SCHEMA, ROWS_FROM_QUERY

SCHEMA = dpf.Schema([dpf.Boolean("ill")])
PlanOf = Callable[..., dpf.StudyPlan]
CHECKS = {check.code: check for check in BUILT_IN}


def count(epsilon: object = 1, **options: object) -> dpf.Node:
    return dpf.step("n", dpf.queries.Count(), DiscreteLaplace(epsilon), **options)


@pytest.mark.parametrize("name", ALLOWANCES)
@given(st.sampled_from([1, 2, 20]), st.sampled_from([0, "1e-6", "0.1"]), st.sampled_from([None, "person", "visit"]))
def test_an_allowance_is_needed_where_its_own_check_warns_or_asks(
    plan_of: PlanOf, name: str, epsilon: int, delta: object, unit: str | None
) -> None:
    allowance = ALLOWANCES[name]
    plan = plan_of(count(epsilon), SCHEMA, delta=delta, unit=dpf.PrivacyUnit(unit))
    assert allowance.needed(plan) == any(CHECKS[allowance.code].findings(plan))


@given(st.sets(st.sampled_from(sorted({*ALLOWANCES, *KNOWN_ASSUMPTIONS}))))
def test_a_known_name_that_nothing_needs_is_a_warning(plan_of: PlanOf, allow: set[str]) -> None:
    plan = plan_of(count(), SCHEMA, allow=tuple(sorted(allow)))
    needed = {name for name in allow if name in ALLOWANCES and ALLOWANCES[name].needed(plan)}
    found = list(unknown_allowance(plan))
    assert [severity for severity, _ in found] == [Severity.WARNING] * len(allow - needed)


@pytest.mark.parametrize(
    "name",
    [INFERRED, DATA_FITS_SCHEMA, ROWS_ASSERTED, ROWS_FROM_QUERY, "mcmc-converged", "real-arithmetic", *HARMLESS],
)
def test_an_assumption_of_our_own_is_known_to_studies_that_do_not_need_it(plan_of: PlanOf, name: str) -> None:
    ((severity, text),) = unknown_allowance(plan_of(count(), SCHEMA, allow=(name,)))
    assert severity is Severity.WARNING
    assert text == f"the study allows '{name}', but nothing in the plan assumes it"


@given(st.sampled_from(sorted(ALLOWANCES)), st.integers(0, 5))
def test_a_misspelt_name_is_refused_with_the_one_that_was_meant(plan_of: PlanOf, name: str, place: int) -> None:
    wrong = name[:place] + name[place + 1 :]
    ((severity, text),) = unknown_allowance(plan_of(count(), SCHEMA, allow=(wrong,)))
    assert severity is Severity.ERROR
    assert f"did you mean '{name}'" in text


def test_an_assumption_that_a_step_makes_is_known(plan_of: PlanOf) -> None:
    assert not list(unknown_allowance(plan_of(count(assumptions=["our-own"]), SCHEMA, allow=("our-own",))))
