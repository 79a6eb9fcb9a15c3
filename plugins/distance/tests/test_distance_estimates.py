"""From noisy histograms to distances."""

import functools
import math
from fractions import Fraction

import numpy as np
import pytest
from dpframework_distance.context_selection import (
    above_the_mean,
    entropy_of,
    relevant_not_redundant,
    su_matrix,
    su_of_histograms,
    symmetric_uncertainty,
)
from dpframework_distance.distance_budget import DistanceBudget
from dpframework_distance.distance_estimates import (
    Conditional,
    NoisyPair,
    distances_between,
    marginals_from,
    points_from,
    points_of,
    published_estimate,
    shrunken_estimate,
)
from dpframework_distance.forest import Forest
from dpframework_distance.pair_counts import PairCounts

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


def test_contexts_where_attributes_tell_as_much_as_each_other() -> None:
    equal = np.full((4, 4), 0.25)
    assert above_the_mean(equal, 2) == (0, 1, 3)  # each is the mean
    assert relevant_not_redundant(equal, 2) == (0,)  # the first; the others are as close to it as to the target
    rounded = np.full((4, 4), 0.1)
    assert np.full(3, 0.1).mean() > 0.1
    assert above_the_mean(rounded, 0) == (1,)
    su = np.array([[0, 0.3, 0.2, 0.25], [0.3, 0, 0.1, 0.26], [0.2, 0.1, 0, 0.1], [0.25, 0.26, 0.1, 0]])
    assert relevant_not_redundant(su, 0) == (1, 2)  # 3 is closer to 1, and so is not asked whether 2 is close to it


def test_uncertainty_is_0_where_nothing_is_uncertain() -> None:
    assert symmetric_uncertainty(1.0, 0.5, 1.0) == pytest.approx(2 / 3)
    assert symmetric_uncertainty(0.0, 0.0, 0.0) == symmetric_uncertainty(0.5, -0.75, 0.0) == 0
    assert entropy_of(np.array([-3, 0])) == 0
    assert str(entropy_of(np.array([7, 0]))) == "0.0"  # not -0.0
    joint = np.array([[0, 1.5, 2.0], [1.5, 0, 1.0], [2.0, 1.0, 0]])
    assert su_matrix(np.array([1.0, 1.0, 1.0]), joint).tolist() == [[0, 0.5, 0], [0.5, 0, 1], [0, 1, 0]]


def test_a_budget_is_spent_by_the_mechanisms_that_have_its_kind() -> None:
    """A selection of epsilon costs a rho of epsilon**2 / 8: of 1/2 a quarter is 1/8, the epsilon 1."""
    rho = DistanceBudget(Fraction(1, 2), zcdp=True, exponential=False)
    pure, exponential = (DistanceBudget(Fraction(1, 2), zcdp=False, exponential=one) for one in (False, True))
    share, m = Fraction(1, 4), dpf.mechanisms
    assert rho.selector(share) == m.Exponential(1)
    assert (rho.counter(share), rho.measurer(share)) == (m.Gaussian("1/8"), m.Gaussian("1/8"))
    assert (pure.selector(share), exponential.selector(share)) == (m.PermuteAndFlip("1/8"), m.Exponential("1/8"))
    for budget in (pure, exponential):
        assert (budget.counter(share), budget.measurer(share)) == (m.DiscreteLaplace("1/8"), m.Laplace("1/8"))


def test_a_histogram_is_pooled_and_moved_towards_equal_counts_by_its_noise() -> None:
    """Of two values T**2 / 12 is the spread: of 100 rows, and sums of two counts of variance 5/2, 833 beside 5."""
    pair = NoisyPair("y", "x", np.array([[60.0, 0.0], [0.0, 40.0]]), 2.5)
    moved = 10 * (10_000 / 12) / (10_000 / 12 + 5)
    assert marginals_from([pair], 100)["y"] == pytest.approx([50 + moved, 50 - moved], rel=1e-12)
    # three values: (3 - 1) / (9 * 4) of the square; a marginal of theirs adds up two counts
    wide = NoisyPair("z", "y", np.array([[20.0, 10.0], [30.0, 0.0], [40.0, 0.0]]), 8.0)
    spread = 10_000 / 18
    expected = 100 / 3 + spread / (spread + 16) * (np.array([30, 30, 40]) - 100 / 3)
    assert marginals_from([wide], 100)["z"] == pytest.approx(expected, rel=1e-12)
    # y: the one table's counts have the variance 5, the other's 24
    pooled = (np.array([60, 40]) / 5 + np.array([90, 10]) / 24) / (1 / 5 + 1 / 24)
    noise = 1 / (1 / 5 + 1 / 24)
    expected = 50 + (10_000 / 12) / (10_000 / 12 + noise) * (pooled - 50)
    assert marginals_from([pair, wide], 100)["y"] == pytest.approx(expected, rel=1e-12)


def test_a_secret_number_of_rows_is_pooled_by_the_noise_of_whole_tables_and_is_1_at_least() -> None:
    one = NoisyPair("y", "x", np.array([[70.0, 10.0], [10.0, 10.0]]), 1.0)  # 100 in all, with a variance of 4
    other = NoisyPair("y", "z", np.array([[100.0, 10.0, 0.0], [10.0, 0.0, 10.0]]), 2.0)  # 130, of 12
    rows = (100 / 4 + 130 / 12) / (1 / 4 + 1 / 12)
    for histogram in marginals_from([one, other], None).values():
        assert histogram.sum() == pytest.approx(rows, rel=1e-12)
    nothing = NoisyPair("y", "x", np.array([[-70.0, 10.0], [10.0, 10.0]]), 1.0)
    assert marginals_from([nothing], None)["x"].sum() == pytest.approx(1, rel=1e-12)


AGREED = {"y": np.array([60.0, 40.0]), "x": np.array([50.0, 50.0])}


def shrunken(table: list[list[float]], variance: float, marginals: dict[str, np.ndarray]) -> Conditional:
    return shrunken_estimate(NoisyPair("y", "x", np.array(table), variance), "y", marginals)


def test_a_column_keeps_its_deviation_by_what_is_signal() -> None:
    """Of 60 and 40 S is .48, so 1,200 for a column of 50. Its deviations are 10 and -10, their energy 200.

    At a variance of 100 a column keeps 12/13; two columns have the energy 400, which at 400 is no more than noise.
    """
    for variance, kept in ((0, 1), (100, 12 / 13), (399, 1200 / 1599), (400, 0)):
        found = shrunken([[40, 20], [10, 30]], variance, AGREED)
        shares = np.array([[0.6, 0.6], [0.4, 0.4]]) + kept * np.array([[0.2, -0.2], [-0.2, 0.2]])
        assert found.shares == pytest.approx(shares, rel=1e-12)
        assert found.variance == pytest.approx(variance / (1200 + variance) / 2 * shares * (1 - shares), rel=1e-12)


def test_a_column_that_deviates_by_more_than_noise_can_speaks_for_itself() -> None:
    """By 3 standard deviations of one number's energy: at 162 up to a variance of 162 / (1 + 3 sqrt(2)), 30.9.

    Of 90 and 10 S is .18: a column of 10 has a signal of 18, less than its energy, and one of 90 has 1,458.
    """
    marginals = {"y": np.array([90.0, 10.0]), "x": np.array([10.0, 90.0])}
    for variance, first in ((20, 1 - 20 / 162), (30, 1 - 30 / 162), (31, 18 / 49)):
        found = shrunken([[0, 90], [10, 0]], variance, marginals)
        kept = np.array([first, 1458 / (1458 + variance)])
        shares = np.array([[0.9, 0.9], [0.1, 0.1]]) + kept * np.array([[-0.9, 0.1], [0.9, -0.1]])
        assert found.shares == pytest.approx(shares, rel=1e-12)
        unknown = variance / (np.array([18, 1458]) + variance)
        assert found.variance == pytest.approx(unknown / 2 * shares * (1 - shares), rel=1e-12)


def test_a_table_is_first_made_to_agree_with_the_marginals_and_no_rows_say_nothing() -> None:
    # rows of 64 and 40, where 60 and 40 are known: 2 less in each cell of the first; then columns of 50 and 50
    assert shrunken([[41, 23], [11, 29]], 0, AGREED).shares == pytest.approx(np.array([[39, 21], [11, 29]]) / 50)
    # rows that agree, columns of 54 and 46: 2 less, and 2 more
    assert shrunken([[42, 18], [12, 28]], 0, AGREED).shares == pytest.approx(np.array([[40, 20], [10, 30]]) / 50)
    # three rows that agree, and columns of 33 and 27, where 30 are known: 1 less, and 1 more, in each cell
    three = {"y": np.array([30.0, 20.0, 10.0]), "x": np.array([30.0, 30.0])}
    assert shrunken([[20, 10], [8, 12], [5, 5]], 0, three).shares == pytest.approx(
        np.array([[19, 11], [7, 13], [4, 6]]) / 30
    )
    alone = shrunken([[60, 0], [40, 0]], 10, {"y": AGREED["y"], "x": np.array([100.0, 0.0])})
    assert alone.shares == pytest.approx(np.array([[0.6, 0], [0.4, 0]]))
    assert alone.variance[:, 0] == pytest.approx(np.full(2, 10 / 4810 / 2 * 0.24))
    assert alone.variance[:, 1].tolist() == [0, 0]


def test_three_values_have_two_numbers_free() -> None:
    """The noise of a column is then twice a count's.

    Columns of 30: of three equal values S is 2/3, the signal 600. Deviations of 6, -3 and -3 have the energy 54.
    """
    table, marginals = [[16, 4], [7, 13], [7, 13]], {"y": np.array([20.0, 20.0, 20.0]), "x": np.array([30.0, 30.0])}
    for variance, kept in ((5, 600 / 610), (53.9, 600 / 707.8), (54.1, 0)):
        found = shrunken(table, variance, marginals)
        shares = 1 / 3 + kept * np.array([[6, -6], [-3, 3], [-3, 3]]) / 30
        assert found.shares == pytest.approx(shares, rel=1e-12)


def test_columns_of_less_than_a_row_have_shares_too() -> None:
    """Noise leaves any sum; only a column of nothing says nothing."""
    table = np.array([[0.25, 1.0, -1.0, 2.0], [0.25, 0.0, -3.0, 6.0]])
    shares = np.array([[0.5, 1.0, 0.0, 0.25], [0.5, 0.0, 0.0, 0.75]])
    assert published_estimate(NoisyPair("y", "x", table, 1.0), "y").shares.tolist() == shares.tolist()
    known = NoisyPair("y", "x", np.array([[0.5, 4.0], [0.0, 6.0]]), 1e-12)
    found = shrunken_estimate(known, "y", {"y": np.array([4.5, 6.0]), "x": np.array([0.5, 10.0])}).shares
    assert found == pytest.approx(np.array([[1.0, 0.4], [0.0, 0.6]]), abs=1e-9)
    forest = Forest([np.array([0.5, 9.0, 0.0]), np.array([0.5, 9.0])], {(0, 1): np.array([[0.1, 0.4], [9, 0], [0, 0]])})
    assert forest.given(0)[1] == pytest.approx(np.array([[0.2, 0.8], [1, 0], [0, 0]]))


def test_a_pair_has_as_many_counts_as_the_two_largest_or_a_target_and_the_largest_other() -> None:
    among = [dpf.Categorical(f"a{size}", [str(v) for v in range(size)]) for size in (2, 3, 5)]
    assert PairCounts(among).answer_length == 15
    assert [PairCounts(among, target).answer_length for target in range(3)] == [10, 15, 15]


def test_a_table_of_any_shape_agrees_with_both_marginals() -> None:
    """Without noise, what each value of x goes with adds up to the target's rows."""
    rng = np.random.default_rng(1)
    for shape in ((2, 5), (5, 2), (3, 4)):
        table = rng.uniform(50, 90, shape)
        known = {"y": table.sum(axis=1), "x": table.sum(axis=0)}
        pair = NoisyPair("y", "x", table + rng.normal(0, 2, shape), 1e-12)
        shares = shrunken_estimate(pair, "y", known).shares
        assert shares @ known["x"] == pytest.approx(known["y"])
        assert shares == pytest.approx(table / known["x"], abs=0.03)
