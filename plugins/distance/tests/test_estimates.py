"""From noisy histograms to distances."""

import functools
import math

import numpy as np
import pytest
from dpframework_distance.contexts import above_the_mean, entropy_of, relevant_not_redundant, su_of_histograms
from dpframework_distance.estimates import (
    Conditional,
    NoisyPair,
    distances_between,
    marginals_from,
    points_from,
    points_of,
    published_estimate,
    shrunken_estimate,
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
    given = [published_estimate(PAIR, "y"), published_estimate(NoisyPair("z", "y", other.T, 0.0), "y")]
    assert distances_between(points_of(given)) == pytest.approx(equation_1([COUNTS, other]))


def test_without_noise_the_estimates_are_the_shares():
    marginals = marginals_from([PAIR], None)
    for target in ("y", "x"):
        found = shrunken_estimate(PAIR, target, marginals)
        assert found.shares == pytest.approx(published_estimate(PAIR, target).shares, abs=1e-9)
        assert (found.variance == 0).all()


def test_estimates_are_shares_whatever_the_noise():
    rng = np.random.default_rng(0)
    for scale in (1, 30, 1000):
        pair = NoisyPair("y", "x", COUNTS + rng.laplace(0, scale, COUNTS.shape), 2.0 * scale**2)
        marginals = marginals_from([pair], 86)
        for target in ("y", "x"):
            given = shrunken_estimate(pair, target, marginals)
            assert (given.shares >= 0).all()
            assert np.isin(given.shares.sum(axis=0).round(9), (0.0, 1.0)).all()
            assert (given.variance <= given.shares * (1 - given.shares)).all()
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
        both = shrunken_estimate(pair, "y", marginals_from([pair], 3000)), published_estimate(pair, "y")
        errors.append([np.abs(given.shares - expected).mean() for given in both])
    ours, published = np.mean(errors, axis=0)
    assert ours < 0.9 * published


def test_marginals_are_pooled_over_tables_by_their_noise():
    first = NoisyPair("y", "x", np.array([[60.0, 0.0], [0.0, 40.0]]), 1.0)
    second = NoisyPair("y", "z", np.array([[0.0, 30.0], [70.0, 0.0]]), 9.0)
    assert marginals_from([first, second], 100)["y"] == pytest.approx([57, 43], rel=1e-3)
    assert marginals_from([first, second], 200)["y"].sum() == pytest.approx(200)


def test_histograms_of_nothing_but_noise_are_level():
    """And those of little noise are left as they are."""
    counts = np.array([[90.0, 0.0], [4.0, 0.0], [6.0, 0.0]])
    for variance, expected in ((1e-6, [90, 4, 6]), (1e9, [100 / 3] * 3)):
        found = marginals_from([NoisyPair("y", "x", counts, variance)], 100)["y"]
        assert found == pytest.approx(expected, rel=1e-3)
        assert found.sum() == pytest.approx(100)


def test_distances_are_roots_of_expected_squares():
    """Against draws of shares with these means and variances."""
    shares = np.array([[0.5, 0.1, 0.3], [0.2, 0.2, 0.3], [0.3, 0.7, 0.4]])
    given = Conditional(shares, 0.4 * shares * (1 - shares))
    draws = shares + np.random.default_rng(0).normal(size=(40_000, 3, 3)) * np.sqrt(given.variance)
    squares = np.square(draws[:, :, np.newaxis] - draws[:, np.newaxis]).mean(axis=(0, 3))
    found = distances_between(points_of([given]))
    above = np.triu_indices(3, 1)
    assert found[above] == pytest.approx(np.sqrt(squares)[above], rel=0.02)
    assert (found.diagonal() == 0).all()


def test_values_of_which_nothing_is_known_are_equally_far_apart():
    """Not 0, as two equal shares would be: a metric of noise is then the overlap distance."""
    rng = np.random.default_rng(2)
    pair = NoisyPair("y", "x", rng.normal(0, 1e6, (4, 5)), 1e12)
    matrix = distances_between(points_of([shrunken_estimate(pair, "y", marginals_from([pair], 300))]))
    assert matrix[np.triu_indices(4, 1)] == pytest.approx(0.5 * math.sqrt(3) / 2, rel=0.01)


@pytest.mark.parametrize("scale", [0.1, 10, 1000])
def test_profiles_are_distances_between_0_and_1(scale):
    rng = np.random.default_rng(4)
    for _ in range(20):
        tables = {x: rng.integers(0, 40, (3, size)) * rng.integers(0, 2, (3, 1)) for x, size in (("x", 4), ("z", 2))}
        pairs = {x: NoisyPair("y", x, t + rng.laplace(0, scale, t.shape), 2 * scale**2) for x, t in tables.items()}
        estimate = functools.partial(shrunken_estimate, marginals=marginals_from(list(pairs.values()), 100))
        for given in (estimate, published_estimate):
            matrix = distances_between(points_from(pairs, "y", given, True))
            assert matrix.shape == (3, 3)
            assert ((matrix >= 0) & (matrix <= 1 + 1e-12)).all()


def test_profiles_by_hand():
    pairs = {"x": PAIR, "z": NoisyPair("z", "y", np.array([[3.0, 1.0], [1.0, 1.0]]), 0.0)}
    first = [30 / 35 - 2 / 51, 5 / 35 - 40 / 51, -9 / 51]
    second = [3 / 4 - 1 / 2, 1 / 4 - 1 / 2]
    expected = math.sqrt(sum(d**2 for d in first + second) / 4)
    assert distances_between(points_from(pairs, "y", published_estimate, True))[0, 1] == pytest.approx(expected)


def test_the_variance_of_the_noise_is_that_of_the_mechanism():
    facts = dpf.queries.Histogram(dpf.Boolean("a")).facts()
    for mechanism in (dpf.mechanisms.DiscreteLaplace("0.3"), dpf.mechanisms.Gaussian("0.02")):
        calibration = mechanism.calibrate(facts, dpf.Relation.REPLACE_ONE)
        from dpframework.mechanisms.randomness import SeededRandomness

        source = SeededRandomness(1)
        draws = [mechanism.release(np.zeros(2000, int)[:2], calibration, source) for _ in range(4000)]
        assert np.var(draws) == pytest.approx(calibration.variance, rel=0.1)


def test_entropy_and_contexts():
    assert entropy_of(np.array([1, 1, 1, 1])) == 2.0
    su = np.array([[0, 0.5, 0.4, 0.1], [0.5, 0, 0.45, 0.0], [0.4, 0.45, 0, 0.0], [0.1, 0.0, 0.0, 0]])
    assert above_the_mean(su, 0) == (1, 2)
    assert relevant_not_redundant(su, 0) == (1, 3)  # 2 says more of 1 than of the target


def test_uncertainties_of_pairs_are_twice_what_they_share_over_both_entropies() -> None:
    """Of tables with other totals by row than by column; a negative count is none."""
    tables = {("a", "b"): [[4.0, 0.0, 1.0], [1.0, 3.0, -2.0]], ("c", "a"): [[6.0, 1.0], [1.0, 2.0], [0.0, 2.0]]}
    pairs = [NoisyPair(*names, np.array(table), 1.0) for names, table in tables.items()]
    found = su_of_histograms(pairs, ["a", "b", "c", "d"])
    expected = np.zeros((4, 4))
    for (first, second), table in tables.items():
        shares = np.maximum(table, 0) / np.maximum(table, 0).sum()
        one, other, both = (
            -sum(share * math.log(share) for share in part if share > 0)
            for part in (shares.sum(axis=1), shares.sum(axis=0), shares.ravel())
        )
        a, b = "abcd".index(first), "abcd".index(second)
        expected[a, b] = expected[b, a] = 2 * (one + other - both) / (one + other)
    np.testing.assert_allclose(found, expected, atol=1e-12)
