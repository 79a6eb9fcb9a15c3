"""The different claims of two nodes: each fact that differs is told once, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Laplace
from dpframework.plan import Node
from dpframework.reports.difference.merged_plan_node import compare_facts
from dpframework.reports.difference.node_side import Side

SCHEMA = dpf.Schema([dpf.Boolean("a"), dpf.Categorical("c", ["x", "y", "z"])])
QUERIES = {
    "count": dpf.queries.Count(),
    "a": dpf.queries.Histogram(SCHEMA["a"]),
    "c": dpf.queries.Histogram(SCHEMA["c"]),
}
PlanOf = Callable[..., dpf.StudyPlan]
STEPS = st.builds(
    lambda name, query, epsilon, threshold: dpf.step(
        name, QUERIES[query], DiscreteLaplace(epsilon), threshold=threshold
    ),
    st.sampled_from(["n", "m"]),
    st.sampled_from(sorted(QUERIES)),
    st.sampled_from(["0.5", "1"]),
    st.sampled_from([None, 3]),
)


def changes(plan_of: PlanOf, before: Node, after: Node, *, reordered: bool = False) -> dict[str, str]:
    old, new = (Side(plan.index.nodes[0], plan) for plan in (plan_of(before, SCHEMA), plan_of(after, SCHEMA)))
    return dict(compare_facts(old, new, reordered=reordered))


@given(STEPS, STEPS)
def test_two_steps_differ_in_what_they_were_given(plan_of: PlanOf, one: Any, other: Any) -> None:
    found = changes(plan_of, one, other)
    assert ("name" in found) == (one.name != other.name)
    assert ("query" in found) == (one.query != other.query)
    assert ("epsilon" in found) == (one.mechanism != other.mechanism)
    assert ("threshold" in found) == (one.threshold != other.threshold)
    assert changes(plan_of, other, one).keys() == found.keys()
    assert (found == {}) == (one == other)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (dpf.repeat(2, dpf.post("p", [])), dpf.either(dpf.post("p", [])), "kind"),
        (dpf.step("n", QUERIES["a"], DiscreteLaplace(1)), dpf.step("n", QUERIES["a"], Laplace(1)), "mechanism"),
        (dpf.parallel(dpf.post("p", []), by=SCHEMA["a"]), dpf.parallel(dpf.post("p", []), by=SCHEMA["c"]), "parts"),
    ],
)
def test_another_kind_of_anything_is_told(plan_of: PlanOf, before: Node, after: Node, told: str) -> None:
    assert told in changes(plan_of, before, after)


def test_the_values_of_a_cut_are_told_where_its_name_stays(plan_of: PlanOf) -> None:
    fewer = dpf.Categorical("c", ["x", "y"])
    before, after = (dpf.parallel(dpf.post("p", []), by=by) for by in (SCHEMA["c"], fewer))
    assert "the values of c" in changes(plan_of, before, after)["parts"]


def test_parts_in_another_order_are_told(plan_of: PlanOf) -> None:
    node = dpf.sequential(dpf.post("p", []), dpf.post("q", []))
    assert changes(plan_of, node, node, reordered=True) == {"order": "its parts are in another order"}
