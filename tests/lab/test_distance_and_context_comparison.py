"""Distances beside others: correlation, L1, F-scores adjusted for chance, and the distance plugin's measure."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest
from dpframework_distance import DPDilca, LearnedDistances, ValueDistances, dilca
from dpframework_distance.evaluation import compare, distances
from scipy.stats import pearsonr

import dpframework as dpf
from dpframework.lab.evaluation import Trial
from dpframework.lab.evaluation.distance_and_context_comparison import (
    adjust_for_chance,
    chance_f_score,
    f_score,
    l1,
    pearson,
)


def random_distances(seed, size=6):
    matrix = np.random.default_rng(seed).random((size, size))
    matrix = (matrix + matrix.T) / 2
    np.fill_diagonal(matrix, 0)
    return matrix


def test_pearson_is_of_upper_triangles():
    one, other = random_distances(0), random_distances(1)
    above = np.triu_indices(6, 1)
    assert pearson(one, other) == pytest.approx(pearsonr(one[above], other[above]).statistic)
    assert pearson(one, one) == pytest.approx(1)
    assert pearson(one, np.ones((6, 6)) - np.eye(6)) == 0  # the diagonal alone would correlate
    assert math.isnan(pearson([[0, 1], [1, 0]], [[0, 2], [2, 0]]))


@pytest.mark.parametrize("kind", [np.uint8, np.float16])
@pytest.mark.parametrize("compared", [pearson, l1])
def test_matrices_of_small_numbers_are_compared_as_floats(compared, kind):
    """Else a difference below 0 would be a large one of bytes, and squares of short floats would be infinite."""
    one, other = ((250 * random_distances(seed)).astype(kind) for seed in (0, 1))
    wanted = compared(one.astype(np.float64), other.astype(np.float64))
    assert 0 < abs(wanted) < 250
    assert compared(one, other) == compared(other, one) == pytest.approx(wanted, rel=1e-12)


def test_l1_is_the_mean_over_all_entries():
    assert l1([[0, 1], [1, 0]], [[0, 0.5], [0.5, 0]]) == 0.25
    with pytest.raises(dpf.InputError, match="one shape"):
        l1([[0, 1], [1, 0]], [[0]])


def all_contexts(others, sizes):
    return [c for size in sizes for c in itertools.combinations("abcdef"[:others], size)]


@pytest.mark.parametrize("others", [1, 3, 6])
def test_the_f_score_of_chance_is_the_mean_over_all_contexts(others):
    for true in range(1, others + 1):
        context = "abcdef"[:true]
        same = statistics.fmean(f_score(c, context) for c in all_contexts(others, [true]))
        every = statistics.fmean(f_score(c, context) for c in all_contexts(others, range(1, others + 1)))
        assert chance_f_score(true, others) == pytest.approx(same)
        assert chance_f_score(true, others, any_size=True) == pytest.approx(every)


def test_f_scores_by_hand():
    assert f_score("abc", "cde") == pytest.approx(1 / 3)
    assert math.isnan(f_score([], []))
    assert adjust_for_chance(0.25, 0.25) == 0
    assert adjust_for_chance(1, 0.25) == 1
    assert adjust_for_chance(1, 1) == 1
    for true in (0, 4):
        with pytest.raises(dpf.InputError, match="from 1 to 3 attributes"):
            chance_f_score(true, 3)


@pytest.fixture(scope="module")
def table() -> dpf.Table:
    rng = np.random.default_rng(0)
    base = rng.integers(0, 4, 2000)
    noise = rng.integers(0, 4, (5, 2000))
    codes = np.where(rng.random((5, 2000)) < np.linspace(0.1, 0.9, 5)[:, None], noise, base)
    return dpf.Table.from_codes(
        dpf.Schema([dpf.Categorical(f"x{k}", list("wxyz")) for k in range(5)], rows=2000), codes
    )


def learned(table, miner, seed=0):
    study = dpf.Study(table.schema, epsilon=10**6, relation="replace-one")
    study.add("d", miner)
    return study.run(table, seed=seed)["d"]


@pytest.mark.parametrize("context", ["max-dependency", "max-relevance", "mean-su"])
def test_much_budget_finds_what_dilca_finds(table, context):
    parameters = {"context": context, "context_size": 2}
    trial = Trial(learned(table, DPDilca(100_000, **parameters)), table, parameters=parameters)
    found = distances(trial)
    assert found["f_score"] == found["adjusted_f_score"] == 1
    assert found["pearson"] > 0.999
    assert found["l1"] < 1e-3
    little = distances(Trial(learned(table, DPDilca("0.01", **parameters)), table, parameters=parameters))
    assert little["f_score"] < 0.99
    assert little["pearson"] < 0.9
    assert little["l1"] > 0.01


def test_one_target_and_the_baseline(table):
    for parameters in (
        {"target": "x0", "context_size": 2},
        {"context": "baseline", "target": "x0"},
        {"context": "common", "context_size": 2},
    ):
        trial = Trial(learned(table, DPDilca(100_000, **parameters)), table, parameters=parameters)
        assert distances(trial)["pearson"] > 0.9


def test_the_truth_is_the_truth(table):
    plain = dilca(table, context="mean-su")
    assert compare(plain, plain, any_size=True).to_dict() == pytest.approx(
        {"f_score": 1, "adjusted_f_score": 1, "pearson": 1, "l1": 0}
    )
    assert distances(Trial(plain, table), context="mean-su")["l1"] == 0
    assert str(compare(plain, plain)).endswith("Not private: measured on the rows themselves.")


def test_a_random_context_is_worth_nothing_on_average(table):
    schema = table.schema
    true = {name: ValueDistances(schema[name], ("x1", "x2"), random_distances(0, 4)) for name in ["x0"]}
    scores = []
    for context in itertools.combinations(["x1", "x2", "x3", "x4"], 2):
        found = {"x0": ValueDistances(schema["x0"], context, random_distances(1, 4))}
        both = (LearnedDistances(schema, found), LearnedDistances(schema, true))
        scores.append(compare(*both).adjusted_f_score)
    assert statistics.fmean(scores) == pytest.approx(0)


def test_what_is_no_distance_is_refused(table):
    with pytest.raises(dpf.InputError, match="not int"):
        distances(Trial(3, table))
    with pytest.raises(dpf.InputError, match="did you mean 'mean-su'"):
        distances(Trial(dilca(table), table), context="meansu")
