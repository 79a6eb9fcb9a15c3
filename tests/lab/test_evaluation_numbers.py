"""The figures of experiments, each beside its definition, on small numbers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import spearmanr

import dpframework as dpf
from dpframework.lab.evaluation.distance_and_context_comparison import (
    adjust_for_chance,
    chance_f_score,
    f_score,
    l1,
    pearson,
)
from dpframework.lab.evaluation.exact_redescription_quality import RedescriptionQuality
from dpframework.lab.evaluation.measure_correlations import correlations


def quality(noisy: list[float], true: list[float], nothing: list[int] | None = None) -> RedescriptionQuality:
    number = len(true)
    return RedescriptionQuality(
        np.array(noisy),
        np.array(true),
        np.arange(number, dtype=np.float64) * 10,
        np.array([0.0, 0.01, 0.011, 0.5, 1][:number]),
        100,
        np.arange(number) < 2,
        np.arange(number) < 1,
        np.array(nothing if nothing is not None else [0] * number, dtype=np.int64),
    )


def test_the_worth_of_redescriptions_in_numbers() -> None:
    noisy, true = [0.9, 0.5, 0.7, 0.2, 0.1], [0.8, 0.6, 0.55, 0.3, 0.05]
    found = quality(noisy, true, [0, 1, 2, 0, 0])
    assert found.empty == 2 / 5
    assert found.significant == 2 / 5
    assert found.quartiles == (0.3, 0.55, 0.6)
    assert found.error == pytest.approx(0.1)
    assert found.spearman == pytest.approx(spearmanr(noisy, true).statistic)
    form = found.to_dict()
    assert (form["count"], form["useful"], form["different"], form["support"]) == (5, 2, 1, 20)
    assert (form["jaccard_low"], form["jaccard"], form["jaccard_high"]) == (0.3, 0.55, 0.6)
    assert str(found).splitlines()[:3] == [
        "5 redescriptions, 40% with a p-value up to 0.01; 2 useful, 1 different findings; 40% with a literal that says "
        "nothing",
        "true Jaccard index: median 0.55, quartiles 0.30 and 0.60",
        f"noisy Jaccard index: median error 0.100, Spearman correlation {found.spearman:.2f}",
    ]
    assert repr(found) == "<quality of 5 redescriptions: not private>"


def test_correlations_that_are_not_defined_are_none() -> None:
    three = quality([0.1, 0.2, 0.3], [0.1, 0.3, 0.2])
    assert three.spearman == pytest.approx(0.5)
    for noisy, true in (([0.1, 0.2], [0.1, 0.2]), ([0.1] * 3, [0.1, 0.2, 0.3]), ([0.1, 0.2, 0.3], [0.1] * 3)):
        assert math.isnan(quality(noisy, true).spearman)
    none = quality([], [])
    assert all(math.isnan(value) for value in (none.empty, none.significant, none.error, *none.quartiles))
    assert math.isnan(none.to_dict()["support"])
    assert str(none).startswith("no redescriptions\n")


def test_a_correlation_is_at_most_1_where_rounding_gives_more() -> None:
    for seed in range(20):
        drawn = np.random.default_rng(seed).random(6)
        found = correlations({"one": drawn, "three": 3 * drawn, "less": -2 * drawn}).matrix
        assert (np.abs(found) <= 1).all()
        one = np.zeros((4, 4))
        one[np.triu_indices(4, 1)] = drawn
        assert pearson(one + one.T, 3 * (one + one.T)) <= 1
        assert pearson(one + one.T, -3 * (one + one.T)) >= -1
    for lengths in ((2, 3), (3, 2), (2, 2)):
        with pytest.raises(dpf.InputError, match="one value without noise"):
            correlations({str(k): [0.0] * length for k, length in enumerate(lengths)})


def test_distances_of_matrices() -> None:
    rng = np.random.default_rng(0)
    for size in (3, 4, 7):
        one, other = (part + part.T for part in rng.random((2, size, size)))
        above = np.triu_indices(size, 1)
        assert pearson(one, other) == pytest.approx(np.corrcoef(one[above], other[above])[0, 1])
        assert pearson(one, -3 * one + 2) == pytest.approx(-1)
        assert pearson(one, np.ones((size, size))) == 0
        assert l1(one, other) == pytest.approx(np.abs(one - other).sum() / size**2)
    assert math.isnan(pearson(np.eye(2), np.eye(2)))
    for wrong in (np.eye(4), np.zeros((3, 2)), np.zeros(3)):
        with pytest.raises(dpf.InputError, match="two matrices of one shape"):
            l1(np.eye(3), wrong)
    with pytest.raises(dpf.InputError, match="two matrices of one shape"):
        l1([1, 2], [1, 2])


def test_the_score_of_a_random_context_is_the_mean_over_all_contexts() -> None:
    assert f_score(["a", "b", "b"], ["b", "c"]) == 0.5
    assert f_score([], ["a"]) == 0
    assert math.isnan(f_score([], []))
    for others in range(1, 6):
        for true in range(1, others + 1):
            names = [*range(others)]
            for any_size in (False, True):
                contexts = [
                    some
                    for size in (range(1, others + 1) if any_size else [true])
                    for some in itertools.combinations(names, size)
                ]
                mean = sum(f_score(some, names[:true]) for some in contexts) / len(contexts)  # type: ignore[arg-type]
                assert chance_f_score(true, others, any_size=any_size) == pytest.approx(mean)
    for wrong in (0, 4):
        with pytest.raises(dpf.InputError, match="must have from 1 to 3 attributes"):
            chance_f_score(wrong, 3)
    assert [adjust_for_chance(score, 0.5) for score in (0.5, 1, 0)] == [0, 1, -1]
    assert adjust_for_chance(0.3, 1) == 1


def test_changes_of_measures_are_correlated_over_levels_of_noise() -> None:
    measured = {"a": [0, 1, 3, 2], "bb": [5, 4, 4, 6], "constant": [1, 1.5, 1.5, 1.5], "still": [2.0] * 4}
    found = correlations(measured)
    changes = {name: np.array(values[1:]) - values[0] for name, values in measured.items()}
    assert found.between("a", "bb") == pytest.approx(np.corrcoef(changes["a"], changes["bb"])[0, 1])
    assert found.between("a", "a") == pytest.approx(1)
    assert math.isnan(found.between("constant", "a"))
    assert math.isnan(found.between("still", "still"))
    with pytest.raises(dpf.InputError, match="measure 'stil' is unknown; did you mean 'still'"):
        found.between("a", "stil")
    lines = str(found).splitlines()
    assert lines[0] == "             a    bb constant still"
    assert lines[3] == "constant     -     -        -     -"
    assert repr(found) == "<correlations of 4 measures: not private>"
    for wrong in ({"a": [0, 1]}, {"a": [0, 1, 2], "b": [0, 1]}, {}):
        with pytest.raises(dpf.InputError, match="one value without noise"):
            correlations(wrong)
