"""From noisy histograms to distances."""

import math

import numpy as np
import pytest
from dpframework_distance.contexts import above_the_mean, entropy_of, relevant_not_redundant
from dpframework_distance.estimates import (
    NoisyPair,
    as_published,
    distances_between,
    histograms,
    noise_variance,
    on_simplex,
    points_of,
    shrunk,
)

import dpframework as dpf

COUNTS = np.array([[30.0, 5.0, 0.0], [2.0, 40.0, 9.0]])
PAIR = NoisyPair("y", "x", COUNTS, 0.0)


def equation_1(tables):
    """The paper's formula, loop by loop; tables have the target's values in rows."""
    values = len(tables[0])
    matrix = np.zeros((values, values))
    for i in range(values):
        for j in range(values):
            total = 0.0
            for table in tables:
                for column in table.T:
                    if column.sum() > 0:
                        total += (column[i] / column.sum() - column[j] / column.sum()) ** 2
            matrix[i, j] = math.sqrt(total / sum(table.shape[1] for table in tables))
    return matrix


def test_distances_are_equation_1():
    other = np.array([[3.0, 0.0], [1.0, 0.0]])
    given = [as_published(PAIR, "y"), as_published(NoisyPair("z", "y", other.T, 0.0), "y")]
    assert distances_between(points_of(given)) == pytest.approx(equation_1([COUNTS, other]))


def test_without_noise_the_estimates_are_the_shares():
    marginals = histograms([PAIR], None)
    for target in ("y", "x"):
        assert shrunk(PAIR, target, marginals) == pytest.approx(as_published(PAIR, target), abs=1e-9)


def test_estimates_are_shares_whatever_the_noise():
    rng = np.random.default_rng(0)
    for scale in (1, 30, 1000):
        pair = NoisyPair("y", "x", COUNTS + rng.laplace(0, scale, COUNTS.shape), 2.0 * scale**2)
        marginals = histograms([pair], 86)
        for target in ("y", "x"):
            given = shrunk(pair, target, marginals)
            assert (given >= 0).all()
            assert np.isin(given.sum(axis=0).round(9), (0.0, 1.0)).all()
            matrix = distances_between(points_of([given]))
            assert (matrix <= 1).all()
            assert (matrix == matrix.T).all()
            assert (matrix.diagonal() == 0).all()


def test_where_there_is_only_noise_the_columns_are_more_alike():
    independent = np.outer([1800.0, 900.0, 300.0], np.full(10, 0.1))
    expected = np.array([[0.6], [0.3], [0.1]])
    errors = []
    for seed in range(20):
        noise = np.random.default_rng(seed).laplace(0, 20, (3, 10))
        pair = NoisyPair("y", "x", independent + noise, 800.0)
        both = shrunk(pair, "y", histograms([pair], 3000)), as_published(pair, "y")
        errors.append([np.abs(given - expected).mean() for given in both])
    ours, published = np.mean(errors, axis=0)
    assert ours < 0.9 * published


def test_marginals_are_pooled_over_tables_by_their_noise():
    first = NoisyPair("y", "x", np.array([[60.0, 0.0], [0.0, 40.0]]), 1.0)
    second = NoisyPair("y", "z", np.array([[0.0, 30.0], [70.0, 0.0]]), 9.0)
    assert histograms([first, second], 100)["y"] == pytest.approx([57, 43])
    assert histograms([first, second], 200)["y"].sum() == pytest.approx(200)


def test_the_closest_shares():
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = rng.normal(0, 2, 5)
        found = on_simplex(values, 1.0)
        assert found.sum() == pytest.approx(1)
        assert (found >= 0).all()
        others = rng.dirichlet(np.ones(5), 2000)
        assert np.square(found - values).sum() <= np.square(others - values).sum(axis=1).min() + 1e-12


def test_the_variance_of_the_noise_is_that_of_the_mechanism():
    facts = dpf.queries.Histogram(dpf.Boolean("a")).facts()
    for mechanism in (dpf.mechanisms.DiscreteLaplace("0.3"), dpf.mechanisms.Gaussian("0.02")):
        calibration = mechanism.calibrate(facts, dpf.Relation.REPLACE_ONE)
        from dpframework.randomness import SeededRandomness

        source = SeededRandomness(1)
        draws = [mechanism.release(np.zeros(2000, int)[:2], calibration, source) for _ in range(4000)]
        assert np.var(draws) == pytest.approx(noise_variance(calibration), rel=0.1)


def test_entropy_and_contexts():
    assert entropy_of(np.array([1, 1, 1, 1])) == 2.0
    su = np.array([[0, 0.5, 0.4, 0.1], [0.5, 0, 0.45, 0.0], [0.4, 0.45, 0, 0.0], [0.1, 0.0, 0.0, 0]])
    assert above_the_mean(su, 0) == (1, 2)
    assert relevant_not_redundant(su, 0) == (1, 3)  # 2 says more of 1 than of the target
