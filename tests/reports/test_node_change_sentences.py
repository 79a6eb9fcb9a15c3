"""The changes in the nodes of a plan: one sentence for each, and none where two plans are the same."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, strategies as st
from random_plans import compositions

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan import Node
from dpframework.reports.difference.alignment import align_plans
from dpframework.reports.difference.node_change_sentences import composition_changes, step_changes

SCHEMA = dpf.Schema([dpf.Boolean("a")])
NAMES = st.sampled_from(["one", "two", "three"])
PlanOf = Callable[..., dpf.StudyPlan]


def count(name: str, epsilon: object = 1) -> Node:
    return dpf.step(name, dpf.queries.Count(), DiscreteLaplace(epsilon))


CUTS = st.sampled_from([None, SCHEMA["a"]])
PLANS = compositions(st.builds(count, NAMES), cuts=CUTS, names=NAMES, most_leaves=5, most_times=2)


def sentences(plan_of: PlanOf, before: Node, after: Node) -> tuple[list[str], list[str]]:
    tree = align_plans(plan_of(before, SCHEMA), plan_of(after, SCHEMA))
    return [*composition_changes(tree)], [*step_changes(tree)]


@given(PLANS)
def test_nothing_is_said_of_a_plan_that_stays(plan_of: PlanOf, node: Node) -> None:
    assert sentences(plan_of, node, node) == ([], [])


@given(st.lists(NAMES, unique=True), st.lists(NAMES, unique=True))
def test_each_step_that_comes_or_goes_has_one_sentence(plan_of: PlanOf, before: list[str], after: list[str]) -> None:
    sequences = [
        dpf.sequential(count("kept"), *(count(name, k + 2) for name in names))
        for k, names in enumerate((before, after))
    ]
    _, steps = sentences(plan_of, *sequences)
    assert len(steps) == max(len(before), len(after)) or len(steps) == len({*before, *after})
    assert sum(": name from" in one for one in steps) <= min(len(before), len(after))


def test_a_step_is_told_with_its_query_noise_and_cost(plan_of: PlanOf) -> None:
    one, two = dpf.sequential(count("kept")), dpf.sequential(count("kept"), count("n", "0.5"))
    text = dpf.queries.Count().facts().text
    assert sentences(plan_of, one, two)[1] == [f"'n' added: {text}, discrete-laplace, epsilon 0.5"]
    assert sentences(plan_of, two, one)[1] == [f"'n' removed: {text}, discrete-laplace, epsilon 0.5"]


def test_a_composition_that_is_put_around_a_step_says_around_what(plan_of: PlanOf) -> None:
    before, after = dpf.sequential(count("n")), dpf.sequential(dpf.repeat(2, count("n")))
    (told,), steps = sentences(plan_of, before, after)
    assert told.endswith("around 'n'")
    assert steps == []


def test_all_inside_a_composition_that_comes_is_one_sentence(plan_of: PlanOf) -> None:
    inner = dpf.sequential(dpf.repeat(2, count("m")), count("o"), name="new")
    (told,), steps = sentences(plan_of, dpf.sequential(count("n")), dpf.sequential(count("n"), inner))
    assert "added 'new'" in told
    assert told.endswith("with 2 steps")
    assert len(steps) == 2
