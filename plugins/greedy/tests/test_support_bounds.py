"""The errors of supports that the Serenade miners state: of the widest combination of pairs, and what noise hides."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from dpframework_greedy.literal_pairs import TOGETHER, _combinations, most_cells

import dpframework as dpf
from dpframework.facts import Boolean, Equals, View
from dpframework.redescriptions import Match

SCHEMA = dpf.Schema(
    [Boolean(name, view=View.LEFT) for name in ("wolf", "moose", "bear")]
    + [Boolean(name, view=View.RIGHT) for name in ("rain", "wind", "snow")]
)
MINERS = ("serenade-cs", "serenade-es")


def planned(miner, schema, epsilon, **parameters):
    study = dpf.Study(schema, epsilon=epsilon)
    study.add("it", dpf.miner(miner, epsilon=epsilon, **parameters))
    return study.plan()


def supports(miner, schema=SCHEMA, epsilon="1", **parameters):
    return planned(miner, schema, epsilon, **parameters).error_bounds()["it"][0]


@pytest.mark.parametrize("pairs", range(1, TOGETHER + 1))
def test_a_combination_adds_up_as_many_cells_as_the_bound_says(pairs):
    names = zip(("wolf", "moose", "bear"), ("rain", "wind", "snow"), strict=True)
    group = [Match(Equals(left, "true"), Equals(right, "true"), False) for left, right in names][:pairs]
    masks = [one.holds(np.arange(2**pairs), range(pairs)) for one in _combinations(group, SCHEMA)]
    cells = [mask.sum() ** 2 for mask in masks]
    assert max(cells) == most_cells(pairs)


@pytest.mark.parametrize("miner", MINERS)
def test_supports_of_more_pairs_add_up_more_noise(miner):
    one, two, three = (supports(miner, pairs=pairs).amount for pairs in (1, 2, 3))
    assert 2 * one < two < 9 * one  # nine cells
    assert 2 * two < three < 49 * one
    counted_alone = supports(miner, score="logistic", min_support=10, pairs=2, budget=[0.6, 0, 0.4])
    assert counted_alone.steps[0] == "quality"
    assert len(counted_alone.biases) == 1  # one cell


@pytest.mark.parametrize("miner", MINERS)
def test_supports_that_noise_hides_carry_a_mark(miner):
    """At a budget where no support can be seen on 7,252 rows: nothing is found, and the plan says so beforehand."""
    schema = attrs.evolve(SCHEMA, about_rows=7252)
    plan = planned(miner, schema, "0.001")
    assert {"DP024", "DP025"} <= {finding.code for finding in plan.check()}
    bound = plan.error_bounds()["it"][0]
    assert bound.warning.startswith("useless")
    small = supports(miner, schema, "0.003").warning
    assert small == "weak: the noise is larger than a quarter of the table"
    assert not {"DP024", "DP025"} & {finding.code for finding in planned(miner, schema, "2").check()}


@pytest.mark.parametrize("miner", MINERS)
def test_where_a_released_number_of_rows_decides_the_likely_branch_is_told_or_the_worst(miner):
    """About 7,252 rows lead to 4 pairs at this budget, and then a table has more noise than one of fewer pairs."""
    about, any_rows = (supports(miner, attrs.evolve(SCHEMA, about_rows=rows), "0.03") for rows in (7252, None))
    known = supports(miner, attrs.evolve(SCHEMA, rows=7252), "0.03")
    assert about.note == "if the number of rows leads to 4 pairs"
    assert known.amount < about.amount < 1.1 * known.amount  # a fiftieth is for the number
    assert any_rows.note == ""
    assert any_rows.amount > 3 * about.amount
    assert (
        len(about.steps) == len(any_rows.steps) > len(known.steps)
    )  # others of its branches are no bounds of their own
