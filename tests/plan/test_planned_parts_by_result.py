"""The parts of a study, one for each result."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Gaussian, Laplace
from dpframework.plan import Node
from dpframework.plan.error_bounds_by_result import parts_of, planned_parts
from dpframework.queries.released_row_cap_queries import AtReleasedRows

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


@pytest.mark.parametrize(
    ("mechanism", "norm"), [(Gaussian("0.02"), 50), (Laplace("0.5"), 50), (Gaussian("0.5"), 50)], ids=str
)
def test_noise_on_a_sum_is_told_in_rows_that_add_most(
    plan_of: Callable[..., dpf.StudyPlan], mechanism: dpf.Mechanism, norm: int
) -> None:
    """A row adds up to 50, in either norm: so many rows make up for the noise."""
    node = dpf.step("sum", dpf.queries.BoundedSum(dpf.Numeric("age", 0, 50, bins=2)), mechanism)
    plan = plan_of(node, dpf.Schema([dpf.Numeric("age", 0, 50, bins=2)]), delta="1e-6")
    ((bound,),) = plan.error_bounds().values()
    (step,) = plan.steps()
    calibration = plan.calibration(step)
    assert calibration is not None
    assert bound.amount == calibration.preview.within > 50
    assert bound.note == f"as much as {math.ceil(calibration.preview.within / norm)} rows can add"


@pytest.mark.parametrize(("nodes", "reads"), [(["one"], False), (["placed"], True), (["one", "placed"], True)])
def test_places_of_rows_are_read_where_some_query_needs_them(
    plan_of: Callable[..., dpf.StudyPlan], nodes: list[str], reads: bool
) -> None:
    steps = {"one": count("one"), "placed": count("placed", AtReleasedRows(dpf.queries.Count(), most=4))}
    plan = plan_of(dpf.sequential(*(steps[name] for name in nodes)), SCHEMA, unit=dpf.PrivacyUnit("who", 4))
    assert (plan.reads_places, plan.reads_units) == (reads, reads)
