"""The parts of a plan: how far their releases may be off, the largest error of each kind first."""

from __future__ import annotations

import math
from fractions import Fraction

import attrs
import numpy as np
import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, PermuteAndFlip
from dpframework.mechanisms.base import Mechanism
from dpframework.plan.error_bounds_by_result import PlannedPart, PlannedStep
from dpframework.redescriptions import MatchScores
from dpframework.results.error_bounds import BoundKind, TableSize

SCHEMA = dpf.Schema([dpf.Categorical("c", ["x", "y", "z"])])
HISTOGRAM = dpf.queries.Histogram(SCHEMA["c"])
ADD = dpf.Relation.ADD_OR_REMOVE_ONE
EPSILONS = st.sampled_from(["0.1", "0.5", "1", "2"])


def planned(name: str, mechanism: Mechanism, query: dpf.Query = HISTOGRAM, *, claimed: bool = True) -> PlannedStep:
    step = dpf.step(name.rpartition("/")[2], query, mechanism)
    return PlannedStep(name, step, mechanism.calibrate(step.facts, ADD) if claimed else None)


def part(*steps: PlannedStep, size: TableSize | None = None) -> PlannedPart:
    return PlannedPart("part", steps, ADD, size or TableSize(100, 100), SCHEMA)


def within(one: PlannedStep) -> float:
    assert one.calibration is not None
    return one.calibration.preview.within


@given(st.lists(EPSILONS, min_size=1, max_size=4))
def test_the_bound_of_a_kind_is_that_of_its_noisiest_step(epsilons: list[str]) -> None:
    steps = [planned(f"n{k}", DiscreteLaplace(epsilon)) for k, epsilon in enumerate(epsilons)]
    (bound,) = part(*steps).bounds_of_steps()
    assert bound.amount == max(map(within, steps))
    assert within(steps[int(bound.steps[0][1:])]) == bound.amount
    assert sorted(bound.steps) == [one.path for one in steps]


def test_each_kind_of_release_has_a_bound_of_its_own() -> None:
    bounds = part(planned("n", DiscreteLaplace(1)), planned("best", PermuteAndFlip(1))).bounds_of_steps()
    assert [bound.kind for bound in bounds] == [BoundKind.COUNTS, BoundKind.CHOICE]
    assert bounds[1].what == f"the best of 3 by {HISTOGRAM.facts().text}"


def test_a_step_without_a_claim_has_no_bound_and_says_so() -> None:
    (bound,) = part(planned("n", DiscreteLaplace(1), claimed=False)).bounds_of_steps()
    assert (bound.amount, bound.note) == (None, "no valid claim")
    assert part(planned("n", DiscreteLaplace(1))).calibration("m") is None


@pytest.mark.parametrize("relation", dpf.Relation)
def test_the_error_of_a_choice_is_worth_rows_that_are_added(relation: dpf.Relation) -> None:
    """Under replace-one, too: a row that is replaced may move this score twice as far as one that is added."""
    schema = dpf.Schema([dpf.Boolean("ill", view="left"), dpf.Boolean("old", view="right")], rows=100)
    step = dpf.step("best", MatchScores([schema["ill"]], [schema["old"]]), PermuteAndFlip(1))
    one = PlannedStep("best", step, step.mechanism.calibrate(step.facts, relation))
    (bound,) = PlannedPart("part", [one], relation, TableSize(100, 100), schema).bounds_of_steps()
    assert (bound.amount, bound.kind) == (2 * within(one), BoundKind.CHOICE)  # a row adds a half


def test_without_a_claim_for_rows_that_are_added_it_is_worth_rows_that_are_replaced() -> None:
    facts = attrs.evolve(HISTOGRAM.facts(), sensitivities=[dpf.Sensitivity("linf", None, 2, source="a test")])
    calibration = PermuteAndFlip(1).calibrate(facts, dpf.Relation.REPLACE_ONE)
    assert calibration is not None
    one = PlannedPart("part", [], dpf.Relation.REPLACE_ONE, TableSize(100, 100), SCHEMA)
    assert one.bound_of("best", calibration).amount == calibration.preview.within / 2


def test_what_a_miner_chooses_as_it_goes_has_no_bound_beforehand() -> None:
    one = planned("n", DiscreteLaplace(1))
    (bound,) = part(PlannedStep(one.path, one.step, one.calibration, chosen=True)).bounds_of_steps()
    assert bound.amount is None
    assert "during the run" in bound.note


@given(EPSILONS, st.integers(1, 40))
def test_a_sum_of_more_counts_is_off_by_more_as_the_root_of_their_number(epsilon: str, cells: int) -> None:
    one = planned("n", DiscreteLaplace(epsilon))
    found, more = (part(one).sum_bound("sums", ["n"], number).amount for number in (cells, cells + 1))
    assert found is not None
    assert more is not None
    assert within(one) <= found <= more
    # noise of each count has a deviation below the root of 2 over epsilon, of which 95 % is within 2.2
    assert found <= 2.2 * math.sqrt(2 * cells) / float(Fraction(epsilon)) + 1


def test_a_branch_bound_is_of_the_likely_branch_and_names_the_others() -> None:
    steps = [planned("few/n", DiscreteLaplace("0.1")), planned("many/n", DiscreteLaplace(1))]
    bound = part(*steps).branch_bound({"n"}, "many", 1)
    assert bound.amount == within(steps[1])
    assert bound.steps == ("many/n", "few/n")
    assert "leads to many" in bound.note
    assert part(*steps).branch_bound({"n"}, "", 1).amount == within(steps[0])


def test_the_other_steps_are_those_that_no_bound_rests_on() -> None:
    both = part(planned("n", DiscreteLaplace(1)), planned("best", PermuteAndFlip(1)))
    bounds = both.bounds_of_steps()
    assert both.bounds_of_others(bounds) == ()
    assert both.bounds_of_others(bounds[:1]) == bounds[1:]


@pytest.mark.parametrize("rows", [None, 10, 1000])
def test_counts_are_likely_as_large_as_their_average(rows: int | None) -> None:
    bound = part(size=TableSize(rows, rows)).counts_bound("counts", 3.0, 4)
    assert bound.likely == (None if rows is None else rows / 4)
    assert bound.unit == "rows"


def test_each_of_several_histograms_counts_all_rows() -> None:
    pair = [dpf.Boolean("a"), dpf.Categorical("c", ["x", "y", "z"])]
    for query, likely in (
        (dpf.queries.Marginals(pair), 2 * 100 / 5),
        (dpf.queries.Marginals(pair[:1]), 100 / 2),
        (dpf.queries.JointHistogram(pair), 100 / 6),
        (dpf.queries.Count(), 100),
    ):
        (bound,) = part(planned("n", DiscreteLaplace(1), query)).bounds_of_steps()
        assert bound.likely == likely


def test_an_error_of_a_number_is_told_in_rows_too() -> None:
    schema = dpf.Schema([dpf.Numeric("age", 0, 50, bins=5)])
    one = planned("s", dpf.mechanisms.Laplace(1), dpf.queries.BoundedSum(schema["age"]))
    (bound,) = part(one).bounds_of_steps()
    assert bound.kind is BoundKind.NUMBER
    rows = math.ceil(np.float64(within(one)) / 50 - 1e-9)
    assert bound.note == f"as much as {rows} rows can add"
