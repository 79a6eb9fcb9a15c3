"""The parts of a study, one for each result."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan import Node
from dpframework.plan.preview import parts_of, planned_parts
from dpframework.queries.released_rows import AtReleasedRows

SCHEMA = dpf.Schema([dpf.Boolean("ill")])


def count(name: str = "n", query: dpf.Query | None = None) -> Node:
    return dpf.step(name, query or dpf.queries.Count(), DiscreteLaplace("0.25"))


SCOPE = dpf.sequential(count("a"), count("b"), name="two")


@pytest.mark.parametrize(
    ("node", "parts"),
    [
        (dpf.sequential(SCOPE, count("c")), {"two": ["a", "b"], "c": ["c"]}),
        (SCOPE, {"two": ["a", "b"]}),
        (dpf.repeat(2, SCOPE), {"repeat 2 times": ["two/a", "two/b"]}),
        (count(), {"n": ["n"]}),
    ],
)
def test_a_sequence_without_a_name_has_a_part_a_result_and_all_else_is_one(
    plan_of: Callable[..., dpf.StudyPlan], node: Node, parts: dict[str, list[str]]
) -> None:
    plan = plan_of(node, SCHEMA)
    assert [name for name, _ in parts_of(plan)] == list(parts)
    assert {part.name: [step.path for step in part.steps] for part in planned_parts(plan)} == parts


@pytest.mark.parametrize(("nodes", "reads"), [(["one"], False), (["placed"], True), (["one", "placed"], True)])
def test_places_of_rows_are_read_where_some_query_needs_them(
    plan_of: Callable[..., dpf.StudyPlan], nodes: list[str], reads: bool
) -> None:
    steps = {"one": count("one"), "placed": count("placed", AtReleasedRows(dpf.queries.Count(), most=4))}
    plan = plan_of(dpf.sequential(*(steps[name] for name in nodes)), SCHEMA, unit=dpf.PrivacyUnit("who", 4))
    assert (plan.reads_places, plan.reads_units) == (reads, reads)
