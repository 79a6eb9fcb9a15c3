"""The errors that results state: against what is measured, against exact distributions, and in words."""

from __future__ import annotations

import itertools
import math

import attrs
import numpy as np
import pytest
from asked_errors import CASES, Case, measure
from scipy import stats

import dpframework as dpf
from dpframework.basics.shares import share_error
from dpframework.mechanisms.laws import LaplaceLaw, NormalLaw
from dpframework.results.error_bounds import BoundKind, ErrorBound, TableSize

FALSE_FAILURE = 1e-6 / (2 * len(CASES))  # of each of the two tests of a case: 1e-6 in total
AGE = dpf.Schema([dpf.Numeric("age", 0, 100, bins=4)])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_more_than_5_percent_of_errors_are_larger_than_asked_for(case: Case) -> None:
    """And of a table on which the bound is tight, no fewer than 2 %.

    All cases together fail with a probability of at most 1e-6 if the bounds are exact. Errors are independent with a
    chance of 5 % at most, or (a quantile, whose other points miss by 9/10 of the bound) of none. The runs are seeded.
    """
    found = measure(case, 300, 150)
    assert stats.binomtest(found.beyond, len(found.errors), 0.05, alternative="greater").pvalue > FALSE_FAILURE
    if not case.easy:
        near = int((found.errors >= 0.8 * found.asked).sum())
        assert stats.binomtest(near, len(found.errors), 0.05, alternative="less").pvalue > FALSE_FAILURE


@pytest.mark.parametrize(("rows", "scale"), [(300, 1), (300, 10), (300, 40), (30_000, 10)])
@pytest.mark.parametrize("law", [LaplaceLaw, NormalLaw])
def test_the_error_of_a_share_is_that_of_the_worst_table(rows: int, scale: float, law: type) -> None:
    """Of 40,000 draws for each of ten means 5 % exceed the bound in the worst; the share is known to 0.11 %."""
    error, rng = share_error(rows, law(scale)), np.random.default_rng(rows)
    draw = rng.laplace if law is LaplaceLaw else rng.normal
    beyond = []
    for share in (0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1):
        first = np.maximum(rows * share + draw(0, scale, 40_000), 0)
        second = np.maximum(rows * (1 - share) + draw(0, scale, 40_000), 0)
        empty = first + second == 0
        found = np.where(empty, 0.5, first / np.where(empty, 1, first + second))
        beyond.append((np.abs(found - share) > error).mean())
    assert max(beyond) < 0.05 + 7 * 0.0011
    assert error >= 0.999 or max(beyond) > 0.05 - 0.01


def test_the_error_of_a_mean_grows_as_rows_become_fewer_and_never_beyond_its_range() -> None:
    errors = [share_error(rows, LaplaceLaw(3)) for rows in (1, 10, 100, 1000, 10_000)]
    assert all(more >= fewer for more, fewer in itertools.pairwise(errors))
    assert errors[0] <= 1
    assert errors[-1] == pytest.approx(3 * math.log(20) / 10_000, rel=0.01)


def bounds(schema: dpf.Schema, miner: str, relation: str = "add-or-remove-one", **parameters: object) -> ErrorBound:
    study = dpf.Study(schema, epsilon=1, relation=relation)
    study.add("it", dpf.miner(miner, **{"epsilon": "0.1", **parameters}))
    (bound,) = study.plan().error_bounds()["it"]
    return bound


def test_a_plan_says_what_is_known_of_the_number_of_rows() -> None:
    sizes = [({}, TableSize()), ({"rows": 9}, TableSize(9, exact=True, most=9)), ({"max_rows": 9}, TableSize(most=9))]
    for known, size in [*sizes, ({"about_rows": 7, "max_rows": 9}, TableSize(7, most=9))]:
        study = dpf.Study(attrs.evolve(AGE, **known), epsilon=1)
        study.add("n", dpf.miner("count", epsilon=1))
        assert study.plan().size == size


def test_a_mean_needs_a_number_of_rows_and_any_source_of_it_will_do() -> None:
    unknown = bounds(AGE, "mean", attribute="age")
    assert unknown.amount is None
    assert unknown.text.startswith("depends on the number of rows (±2.88 for 1,000")
    known = bounds(attrs.evolve(AGE, about_rows=7000), "mean", attribute="age")
    study = dpf.Study(AGE, epsilon=1)
    study.add("it", dpf.miner("mean", attribute="age", epsilon="0.1"))
    (told,) = study.plan().with_rows(7000).error_bounds()["it"]
    assert told.amount == known.amount
    assert known.text == "within ±0.4237, on the worst rows, 0.42 % of the range from 0 to 100"
    with pytest.raises(dpf.InputError, match="the error of 'it' depends on the number of rows, which is not public"):
        study.epsilon_for("it", within=1)
    assert study.epsilon_for("it", within=1, rows=7000) < study.epsilon_for("it", within=1, rows=700)


def test_a_plan_that_was_read_states_the_same_errors_with_its_schema() -> None:
    study = dpf.Study(attrs.evolve(AGE, about_rows=7000), epsilon=1)
    study.add("mean", dpf.miner("mean", attribute="age", epsilon="0.1"))
    study.add("count", dpf.miner("count", where={"below": ["age", 25]}, epsilon="0.1"))
    plan = study.plan()
    read = dpf.StudyPlan.from_json(plan.to_json())
    assert read.error_bounds()["mean"][0].amount is not None  # that of its step, without the schema
    assert attrs.evolve(read, schema=study.schema).error_bounds() == plan.error_bounds()


def test_about_how_many_rows_there_are_changes_no_claim() -> None:
    hashes = set()
    for rows in (None, 300, 7000):
        study = dpf.Study(attrs.evolve(AGE, about_rows=rows), epsilon=1)
        study.add("ages", dpf.miner("histogram", attribute="age", epsilon="0.1"))
        hashes.add(study.plan().hash)
    assert len(hashes) == 1
    assert dpf.Schema.loads(attrs.evolve(AGE, about_rows=300).dumps()).about_rows == 300
    for wrong, text in (({"rows": 5, "about_rows": 5}, "give one of the two"),
                        ({"max_rows": 5, "about_rows": 6}, "exceeds max_rows"),
                        ({"about_rows": 0}, "about_rows")):  # fmt: skip
        with pytest.raises(dpf.InputError, match=text):
            attrs.evolve(AGE, **wrong)


def test_errors_by_group_size_stop_at_the_size_of_the_table() -> None:
    bound = ErrorBound("counts", 30, "rows", BoundKind.COUNTS, TableSize(500))
    assert bound.by_group == ((10, 3.0), (100, 0.3))
    assert bound.group_text == "that is 300 % of a count of 10, 30 % of a count of 100"
    assert ErrorBound("mean", 30, "").by_group == ()


def test_a_miner_states_the_errors_of_its_steps_unless_it_says_more() -> None:
    bound = bounds(attrs.evolve(AGE, about_rows=7000), "quantile", attribute="age")
    assert bound.unit == "rows"
    assert any("nearest of 101 points" in bias for bias in bound.biases)
    few = bounds(attrs.evolve(AGE, about_rows=40), "quantile", attribute="age")
    assert (few.amount, few.hides_number) == (20, True)  # no point misses the median by more than half of the rows
