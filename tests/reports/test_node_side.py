"""The nodes of one of two plans: their places, and all that is said of each besides its parts and losses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st
from random_plans import compositions

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Gaussian
from dpframework.plan import Node, Step
from dpframework.reports.difference.node_side import Side, own_content

SCHEMA = dpf.Schema([dpf.Boolean("a"), dpf.Categorical("c", ["x", "y", "z"])])
NAMES = st.sampled_from(["one", "two", "three"])
PlanOf = Callable[..., dpf.StudyPlan]


def count(name: str, mechanism: Any = None) -> Node:
    return dpf.step(name, dpf.queries.Count(), mechanism or DiscreteLaplace(1))


CUTS = st.sampled_from([None, SCHEMA["a"]])
PLANS = compositions(st.builds(count, NAMES), cuts=CUTS, names=NAMES, most_leaves=5, most_times=2)


@given(PLANS)
def test_each_node_is_told_with_its_place_and_its_cost(plan_of: PlanOf, node: Node) -> None:
    plan = plan_of(node, SCHEMA)
    for placed in plan.index.nodes:
        side = Side(placed, plan)
        form = json.loads(json.dumps(side.to_dict()))
        assert (form["number"], form["kind"], form["path"]) == (placed.number, placed.kind.name, placed.path)
        assert side.name is None or placed.path.endswith(side.name)
        assert side.where == (f"in '{placed.scope}': " if placed.scope else "")
        if side.loss is not None and side.loss.epsilon is not None:
            assert form["loss"]["epsilon"] == str(side.loss.epsilon)
        if isinstance(placed.node, Step):
            assert form["loss"]["epsilon"] == "1"


def test_post_processing_costs_nothing_and_noise_without_an_epsilon_its_rho(plan_of: PlanOf) -> None:
    plan = plan_of(dpf.sequential(count("g", Gaussian("0.1")), dpf.post("p", ["g"])), SCHEMA, delta="1e-6")
    forms = {placed.name: Side(placed, plan).to_dict() for placed in plan.index.nodes}
    assert forms["p"]["loss"] == {}
    assert forms["g"]["loss"] == {"rho": "1/10"}


@pytest.mark.parametrize(
    "other",
    [
        count("m"),
        count("n", DiscreteLaplace(2)),
        dpf.step("n", dpf.queries.Histogram(SCHEMA["a"]), DiscreteLaplace(1)),
        dpf.step("n", dpf.queries.Count(), DiscreteLaplace(1), threshold=3),
        dpf.step("n", dpf.queries.Count(), DiscreteLaplace(1), assumptions=["ours"]),
        dpf.post("n", []),
    ],
)
def test_a_node_that_is_declared_otherwise_has_another_content(other: Node) -> None:
    assert own_content(count("n")) == own_content(count("n"))
    assert own_content(other) != own_content(count("n"))


def test_the_parts_of_a_node_are_not_its_own() -> None:
    assert own_content(dpf.repeat(2, count("n"))) == own_content(dpf.repeat(2, count("m")))
    assert own_content(dpf.repeat(2, count("n"))) != own_content(dpf.repeat(3, count("n")))
