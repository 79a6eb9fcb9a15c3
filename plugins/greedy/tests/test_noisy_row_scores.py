"""Serenade with a noisy number of rows: its scores change by no more than declared, whatever number is released."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from dpframework_greedy import SerenadeCS, SerenadeES
from dpframework_greedy.noisy_row_scores import FALL, REPLACED, RISE, RelativeScore, ScaledScore, supports_of, worth_of
from dpframework_greedy.scores import Score, Surplus
from dpframework_greedy.witnesses import PLANTED

import dpframework as dpf

SMALL_MINERS = (
    SerenadeCS(2, pairs=1, extensions=1, budget="d3", score="logistic", count_share=0.1),
    SerenadeES(2, pairs=2, rounds=2, budget="d3", score="logistic", count_share=0.1),
)


def changes(score: ScaledScore, largest: int) -> tuple[float, float, float]:
    """Return the largest rise and fall with a row, and the largest change if one is replaced, over all I and U."""
    both, either = np.meshgrid(np.arange(largest), np.arange(largest), indexing="ij")
    q = score.of_supports(both.ravel(), either.ravel()).reshape(both.shape)
    real = both <= either
    enters_both = np.where(real[:-1, :-1], q[1:, 1:] - q[:-1, :-1], 0)
    enters_one = np.where(real[:, :-1], q[:, 1:] - q[:, :-1], 0)
    passes = np.where(real[:-1] & (both[:-1] < either[:-1]), q[1:] - q[:-1], 0)
    rise = max(enters_both.max(), enters_one.max())
    fall = -min(enters_both.min(), enters_one.min())
    return rise, fall, max(rise, fall, np.abs(passes).max())


@pytest.mark.parametrize("rows", [10, 25, 39, 57, 80, 120, 250])
def test_a_score_changes_by_no_more_than_declared_whatever_number_is_released(rows: int) -> None:
    least, most = supports_of(rows)
    found = changes(ScaledScore.of((least, most)), 2 * most)
    declared = np.array([RISE, FALL, REPLACED], dtype=float)
    assert np.all(np.array(found) <= declared + 1e-12)
    assert (np.array(found) / declared).max() > 0.98  # nearly attained: no much larger score would do


@pytest.mark.parametrize("rows", [999, 2_000, 5_617, 10**5])
def test_noise_is_little_larger_than_with_bounds_that_are_known_beforehand(rows: int) -> None:
    scaled = ScaledScore.of(supports_of(rows))
    known = scaled.score.sensitivity.spread.add_or_remove_one
    assert known is not None
    assert 1 <= float(scaled.unit / known) < 1.14


def test_what_an_extension_must_be_worth_is_in_units_of_its_score() -> None:
    """Of an index as it is; of a surplus in rows, of those half-way between both bounds on supports."""
    one = worth_of(RelativeScore())
    for score in (Score(), Score(10, 1), Score(None, 0, 90, 1), Surplus(Fraction(1, 2), 90)):
        assert worth_of(score) == one
    assert worth_of(Score(10, 1, 90, 1)) == 50 * one


def test_supports_are_a_tenth_and_seven_tenths_of_what_is_released() -> None:
    assert [supports_of(rows) for rows in (-7, 10.4, 99, 5_617, 10**12)] == [
        (1, 7),
        (1, 7),
        (9, 63),
        (560, 3_920),
        (10**8, 7 * 10**8),
    ]


@pytest.mark.parametrize("miner", SMALL_MINERS, ids=lambda miner: miner.name)
def test_a_plan_costs_epsilon_and_the_number_of_rows_its_share(miner: Any) -> None:
    study = dpf.Study(PLANTED, epsilon=2)
    study.add("it", miner)
    plan = study.plan()
    assert plan.total() == dpf.PrivacyLoss(2)
    losses = {placed.name: placed.calibration for placed in plan.index.nodes}
    assert losses["rows"].losses.pure.add_or_remove_one == Fraction(1, 5)
    users = [placed for placed in plan.index.nodes if placed.name in ("pairs", "extension", "extensions")]
    assert len(users) == 2
    assert all("rows" in placed.node.uses for placed in users)


@pytest.mark.parametrize("miner", SMALL_MINERS, ids=lambda miner: miner.name)
def test_supports_of_a_run_follow_from_what_it_released(miner: Any) -> None:
    rng = np.random.default_rng(5)
    left = rng.random(400) < 0.3
    columns = [left, rng.random(400) < 0.5, left ^ (rng.random(400) < 0.02), *(rng.random((2, 400)) < 0.5)]
    table = dpf.Table.from_codes(PLANTED, np.array(columns, dtype=np.uint8))
    told: dict[str, Any] = {}

    class Listener(dpf.Observer):
        def released(self, release: Any) -> None:
            told[release.charge.path.rpartition("/")[2]] = release

    study = dpf.Study(PLANTED, epsilon=200)
    study.add("it", attrs.evolve(miner, epsilon=200))
    found = study.run(table, seed=1, observers=[Listener()])["it"]
    released = told["rows"].output
    assert abs(released - 400) < 5  # at an epsilon of 20
    assert found.min_support == supports_of(float(released))[0]
    assert str(found[0].left) == "wolf = true"
    assert str(found[0].right) == "rain = true"


@pytest.mark.parametrize(
    ("changed", "schema", "sentence"),
    [
        (
            {"score": "rows"},
            PLANTED,
            "count_share is given, but score = 'rows' needs no number of rows; leave it out",
        ),
        ({"score": "jaccard"}, PLANTED, "count_share is given, but score = 'jaccard' needs no number of rows"),
        ({"min_support": 5}, PLANTED, "count_share is given with min_support or max_support"),
        ({}, attrs.evolve(PLANTED, rows=90), "count_share is given, but the schema knows its 90 rows; leave it out"),
        ({"count_share": 1}, PLANTED, "count_share"),
    ],
)
def test_a_number_of_rows_from_which_nothing_follows_is_refused(
    changed: dict[str, Any], schema: dpf.Schema, sentence: str
) -> None:
    with pytest.raises(dpf.InputError, match=sentence):
        SerenadeCS(**{"epsilon": 1, "score": "logistic", "count_share": 0.1, **changed}).plan(schema)


def test_a_score_by_the_exact_number_of_rows_has_no_place_in_a_step() -> None:
    with pytest.raises(AssertionError):
        RelativeScore().at(None)
