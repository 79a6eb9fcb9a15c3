"""Checks of verification records: silent without records, and exact about whose claims they support."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.checks import Severity
from dpframework.checks.unverified_code_checks import MOST_NAMED, unproved_claims, verified_code
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan import VerificationRecords
from dpframework.plan.verification_records_file import VerifiedCode

SCHEMA = dpf.Schema([dpf.Boolean("ill")])
PlanOf = Callable[..., dpf.StudyPlan]


def steps(number: int) -> dpf.Node:
    return dpf.sequential(*(dpf.step(f"n{k}", dpf.queries.Count(), DiscreteLaplace(1)) for k in range(number)))


@given(st.integers(1, 9))
def test_each_claim_without_a_record_is_counted_and_the_first_are_named(plan_of: PlanOf, number: int) -> None:
    plan = plan_of(steps(number), SCHEMA)
    assert not list(unproved_claims(plan))
    ((severity, text),) = unproved_claims(plan.with_verified(VerificationRecords()))
    assert severity is Severity.WARNING
    assert [f"'n{k}'" in text for k in range(number)] == [k < MOST_NAMED for k in range(number)]
    assert (f"and {number - MOST_NAMED} more" in text) == (number > MOST_NAMED)


def studied() -> dpf.StudyPlan:
    """A plan of a study, which knows the code that it would run."""
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add_plan("n", steps(1))
    return study.plan()


def test_code_is_verified_only_where_records_are_given() -> None:
    plan = studied()
    assert not list(verified_code(plan))
    assert [severity for severity, _ in verified_code(plan.with_verified(VerificationRecords()))] == [Severity.WARNING]


@pytest.mark.parametrize(
    ("passed", "tightness", "severity"),
    [(True, 0.9, Severity.INFO), (True, 0.0, Severity.WARNING), (False, None, Severity.ERROR)],
)
def test_a_record_of_this_very_code_says_whether_it_passed(
    passed: bool, tightness: float | None, severity: Severity
) -> None:
    plan = studied()
    (component,) = (one for one in plan.code["components"] if one["kind"] == "mechanism")
    packages = tuple(plan.code["packages"])
    record = VerifiedCode(component, packages, plan.relation, "discrete-laplace", ("n",), passed, tightness)
    ((found, text),) = verified_code(plan.with_verified(VerificationRecords((record,))))
    assert found is severity
    assert text.startswith("mechanism 'discrete-laplace'")
    of_another = attrs.evolve(record, relation=dpf.Relation.REPLACE_ONE)
    assert [found for found, _ in verified_code(plan.with_verified(VerificationRecords((of_another,))))] == [
        Severity.WARNING
    ]
