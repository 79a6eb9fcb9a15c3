"""Checks of structure, on random plans: names are unique and known, parts disjoint, and releases used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, strategies as st
from random_plans import compositions

import dpframework as dpf
from dpframework.checks import Severity
from dpframework.checks.plan_structure_checks import (
    duplicate_names,
    nothing_released,
    one_name_of_two_queries,
    parts_not_disjoint,
    unknown_use,
    unused_step,
)
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan import Node, Parallel, Step

SCHEMA = dpf.Schema([dpf.Boolean("a"), dpf.Categorical("c", ["x", "y", "z"])])
PlanOf = Callable[..., dpf.StudyPlan]
NAMES = st.sampled_from(["one", "two", "three"])


def count(name: str, uses: tuple[str, ...] = ()) -> Step:
    return dpf.step(name, dpf.queries.Count(), DiscreteLaplace(1), uses=uses)


PLANS = compositions(
    st.builds(count, NAMES), cuts=st.sampled_from([None, SCHEMA["a"]]), names=NAMES, most_leaves=6, most_times=2
)


def below(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from below(child)


def test_a_plan_of_post_processing_alone_releases_nothing(plan_of: PlanOf) -> None:
    assert [severity for severity, _ in nothing_released(plan_of(dpf.post("p", []), SCHEMA))] == [Severity.ERROR]
    assert not list(nothing_released(plan_of(count("n"), SCHEMA)))


@given(PLANS)
def test_each_parallel_without_a_cut_is_found(plan_of: PlanOf, node: Node) -> None:
    wrong = sum(isinstance(one, Parallel) and one.by is None for one in below(node))
    found = list(parts_not_disjoint(plan_of(node, SCHEMA)))
    assert [severity for severity, _ in found] == [Severity.ERROR] * wrong


@given(st.lists(st.sampled_from(["x", "y", "z"]), min_size=2, max_size=3))
def test_parts_by_value_overlap_where_they_name_a_value_twice(plan_of: PlanOf, values: list[str]) -> None:
    node = dpf.parallel(*(count("n") for _ in values), by=[dpf.Equals("c", value) for value in values])
    found = [text for _, text in parts_not_disjoint(plan_of(node, SCHEMA))]
    assert ["overlap" in text for text in found] == [True] * (len(set(values)) < len(values))


@given(st.lists(NAMES, min_size=1, max_size=5))
def test_each_name_that_two_parts_of_a_scope_share_is_found(plan_of: PlanOf, names: list[str]) -> None:
    found = [text for _, text in duplicate_names(plan_of(dpf.sequential(*map(count, names)), SCHEMA))]
    assert len(found) == sum(times > 1 for times in Counter(names).values())
    apart = dpf.sequential(*(dpf.sequential(count("n"), name=f"s{k}") for k, _ in enumerate(names)))
    assert not list(duplicate_names(plan_of(apart, SCHEMA)))


@given(st.sets(NAMES, min_size=1), st.sets(NAMES, min_size=1))
def test_releases_are_used_and_uses_are_released(plan_of: PlanOf, released: set[str], used: set[str]) -> None:
    node = dpf.sequential(*map(count, sorted(released)), dpf.post("p", sorted(used)))
    plan = plan_of(node, SCHEMA)
    unused, unknown = ([text for _, text in check(plan)] for check in (unused_step, unknown_use))
    assert [name for name in sorted(released) if any(f"'{name}'" in text for text in unused)] == sorted(released - used)
    assert len(unknown) == len(used - released)


class Other(dpf.queries.Count):
    """Has the name of another query."""


@pytest.mark.parametrize(("query", "clash"), [(dpf.queries.Count(), False), (Other(), True)])
def test_one_name_is_of_one_query(plan_of: PlanOf, query: dpf.Query, clash: bool) -> None:
    node = dpf.sequential(count("n"), dpf.step("m", query, DiscreteLaplace(1)))
    assert [severity for severity, _ in one_name_of_two_queries(plan_of(node, SCHEMA))] == [Severity.ERROR] * clash
