"""Checks of claims: each step has one under the study's relation, and assumes only what the study allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.checks import Severity
from dpframework.checks.claim_and_assumption_checks import (
    HARMLESS,
    INFERRED,
    KNOWN_ASSUMPTIONS,
    asserted_rows,
    assumption_not_allowed,
    mechanism_does_not_fit,
    relation_not_supported,
    row_count_public,
    sample_without_claim,
    schema_inferred,
    undeclared_sensitivity,
)
from dpframework.mechanisms import DiscreteLaplace

SCHEMA = dpf.Schema([dpf.Boolean("ill")])
ADD, REPLACE = "add-or-remove-one", "replace-one"
RELATIONS = st.sampled_from([ADD, REPLACE])
PlanOf = Callable[..., dpf.StudyPlan]


@attrs.frozen
class Told(dpf.Query):
    """Declares what it is told."""

    name = "told"
    sensitivities: tuple[dpf.Sensitivity, ...] = ()

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.zeros(1, dtype=np.int64)


def told(added: Any, replaced: Any, *, norm: str = "l1", source: str = "by construction") -> dpf.Node:
    return dpf.step("n", Told((dpf.Sensitivity(norm, added, replaced, source=source),)), DiscreteLaplace(1))


def count(**options: Any) -> dpf.Node:
    return dpf.step("n", dpf.queries.Count(), DiscreteLaplace(1), **options)


@given(st.none() | st.integers(1, 3), st.none() | st.integers(1, 3), RELATIONS)
def test_a_step_needs_a_claim_under_the_relation_of_the_study(
    plan_of: PlanOf, added: int | None, replaced: int | None, relation: str
) -> None:
    found = list(relation_not_supported(plan_of(told(added, replaced), SCHEMA, relation)))
    (step,) = plan_of(told(added, replaced), SCHEMA, relation).steps()
    known = step.facts.sensitivities[0].change.under(dpf.Relation.parse(relation)) is not None
    assert [severity for severity, _ in found] == [] if known else [Severity.ERROR]


@given(st.integers(0, 2), st.sampled_from(["", " ", "a theorem"]))
def test_a_sensitivity_is_above_0_and_has_a_source(plan_of: PlanOf, added: int, source: str) -> None:
    found = [text for _, text in undeclared_sensitivity(plan_of(told(added, 2, source=source), SCHEMA))]
    assert any("sensitivity of 0" in text for text in found) == (added == 0)
    assert any("gives no source" in text for text in found) == (not source.strip())


def test_a_query_without_a_sensitivity_is_told_where_to_declare_it(plan_of: PlanOf) -> None:
    ((_, text),) = undeclared_sensitivity(plan_of(dpf.step("n", Told(), DiscreteLaplace(1)), SCHEMA))
    assert "define Query.sensitivities" in text


@pytest.mark.parametrize("norm", ["l1", "squared-l2", "linf"])
def test_noise_for_one_norm_does_not_fit_a_sensitivity_in_another(plan_of: PlanOf, norm: str) -> None:
    found = [text for _, text in mechanism_does_not_fit(plan_of(told(1, 2, norm=norm), SCHEMA))]
    assert ["needs a sensitivity in the l1 norm" in text for text in found] == [True] * (norm != "l1")


@pytest.mark.parametrize("assumption", sorted(KNOWN_ASSUMPTIONS))
def test_an_assumption_is_allowed_by_name_or_refused(plan_of: PlanOf, assumption: str) -> None:
    node = count(assumptions=[assumption])
    own = assumption not in (*HARMLESS, INFERRED, "data-fits-schema")  # which other checks ask about
    assert [severity for severity, _ in assumption_not_allowed(plan_of(node, SCHEMA))] == [Severity.ERROR] * own
    assert not list(assumption_not_allowed(plan_of(node, SCHEMA, allow=(assumption,))))


def test_a_schema_that_was_inferred_is_a_warning_only_where_it_is_allowed(plan_of: PlanOf) -> None:
    inferred = dpf.Schema(SCHEMA.attributes, inferred=["values of ill"])
    for allow, severity in (((), Severity.ERROR), ((INFERRED,), Severity.WARNING)):
        ((found, text),) = schema_inferred(plan_of(count(), inferred, allow=allow))
        assert found is severity
        assert "values of ill" in text
    assert not list(schema_inferred(plan_of(count(), SCHEMA)))


@given(st.sampled_from([None, "rows", "max_rows"]), RELATIONS)
def test_a_row_count_is_public_only_where_the_relation_keeps_it(
    plan_of: PlanOf, stated: str | None, relation: str
) -> None:
    schema = dpf.Schema(SCHEMA.attributes, **({} if stated is None else {stated: 90}))
    plan = plan_of(count(), schema, relation)
    assert bool(list(row_count_public(plan))) == (stated == "rows" and relation == ADD)
    asserted = stated == "max_rows" or (stated == "rows" and relation == REPLACE)
    assert [f"{stated} = 90" in text for _, text in asserted_rows(plan)] == [True] * asserted


@given(RELATIONS, st.booleans())
def test_a_sample_has_no_claim_under_replace_one(plan_of: PlanOf, relation: str, sampled: bool) -> None:
    node = dpf.sample("0.5", count()) if sampled else count()
    found = list(sample_without_claim(plan_of(node, SCHEMA, relation)))
    assert [severity for severity, _ in found] == [Severity.ERROR] * (sampled and relation == REPLACE)
