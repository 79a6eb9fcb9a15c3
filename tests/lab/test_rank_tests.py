"""Rank tests: beside scipy, by hand, and on the published example of Demšar 2006."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import f, friedmanchisquare, mannwhitneyu, page_trend_test, rankdata

import dpframework as dpf
from dpframework.lab.evaluation.rank_tests import friedman, mann_whitney, page_trend

NAMES = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]
#: Demšar 2006, table 6: ranks of the areas under the ROC curve, on 14 data sets.
RANKS = [
    [4, 3, 2, 1],
    [1, 2, 3, 4],
    [4, 1, 2, 3],
    [4, 1, 3, 2],
    [4, 2, 3, 1],
    [1, 2.5, 4, 2.5],
    [3, 2, 4, 1],
    [2.5, 2.5, 4, 1],
    [4, 3, 2, 1],
    [2.5, 2.5, 2.5, 2.5],
    [4, 2.5, 1, 2.5],
    [3, 2, 4, 1],
    [4, 1, 2, 3],
    [3, 1, 4, 2],
]
#: Demšar 2006, table 5: critical values of the two-tailed Nemenyi test, for 2 to 10 methods.
CRITICAL = {
    0.05: [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164],
    0.10: [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920],
}


def test_demsars_example():
    found = friedman(RANKS, NAMES, larger_is_better=False)
    assert found.ranks == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    # the paper does not correct for ties; without that its figures come out
    tied = sum(n**3 - n for row in RANKS for n in np.unique(row, return_counts=True)[1])
    statistic = found.statistic * (1 - tied / (14 * (4**3 - 4)))
    assert statistic == pytest.approx(9.28, abs=5e-3)
    assert 13 * statistic / (14 * 3 - statistic) == pytest.approx(3.69, abs=5e-3)
    assert found.critical_difference(0.05) == pytest.approx(1.25, abs=5e-3)
    assert found.critical_difference(0.10) == pytest.approx(1.12, abs=5e-3)
    # "differences of C4.5 from both with m": above 1.12 the paper finds both, above 1.25 neither
    for better in ("C4.5+m", "C4.5+m+cf"):
        assert found.differ("C4.5", better, 0.10)
        assert not found.differ("C4.5", better, 0.05)
    assert not found.differ("C4.5", "C4.5+cf", 0.10)
    with pytest.raises(dpf.InputError, match=r"method 'C4\.5\+n' is unknown; did you mean 'C4\.5\+m'"):
        found.differ("C4.5", "C4.5+n")
    with pytest.raises(dpf.InputError, match="a significance level must be between 0 and 1"):
        found.differ("C4.5", "C4.5+m", 5)


@pytest.mark.parametrize("alpha", CRITICAL)
def test_critical_differences_are_the_published_ones(alpha):
    for methods, q in enumerate(CRITICAL[alpha][1:], start=3):
        found = friedman([list(range(methods)), list(range(methods))])
        assert found.critical_difference(alpha) == pytest.approx(q * math.sqrt(methods * (methods + 1) / 12), rel=4e-4)


@pytest.mark.parametrize("tied", [False, True])
def test_friedman_is_scipys(tied):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 4, (9, 5)) if tied else rng.random((9, 5))
    expected = friedmanchisquare(*np.array(values).T)
    for larger in (True, False):
        found = friedman(values, larger_is_better=larger)
        assert found.statistic == pytest.approx(expected.statistic)
        assert found.p_value == pytest.approx(expected.pvalue)
        assert found.f_statistic == pytest.approx(8 * expected.statistic / (36 - expected.statistic))
        assert found.f_p_value == pytest.approx(f(4, 32).sf(found.f_statistic))
        assert found.ranks == pytest.approx(rankdata(-values if larger else values, axis=1).mean(axis=0))
        assert np.diag(found.pair_p_values) == pytest.approx(1)
        assert (found.pair_p_values == found.pair_p_values.T).all()


def test_nemenyi_agrees_with_its_critical_difference():
    found = friedman(np.random.default_rng(1).random((12, 4)) + np.array([0, 0.1, 0.4, 0.5]), NAMES)
    for (i, one), (j, other) in itertools.combinations(enumerate(NAMES), 2):
        apart = abs(found.ranks[i] - found.ranks[j])
        for alpha in (0.01, 0.05, 0.1):
            assert found.differ(one, other, alpha) == (apart >= found.critical_difference(alpha))


def test_methods_are_written_from_the_best_on():
    told = str(friedman(RANKS, NAMES, larger_is_better=False)).splitlines()
    assert told[0].startswith("Friedman: chi-squared = ")
    assert told[0].endswith(" (14 data sets)")
    assert told[1:] == [
        "C4.5+m+cf  mean rank 1.96",
        "C4.5+m     mean rank 2.00",
        "C4.5+cf    mean rank 2.89",
        "C4.5       mean rank 3.14",
        "Nemenyi: mean ranks differ if they are at least 1.25 apart (level 0.05)",
        "Not private: measured on the rows themselves.",
    ]


def test_methods_in_one_order_everywhere():
    found = friedman([[3, 2, 1]] * 6)
    assert found.f_statistic == math.inf
    assert found.f_p_value == 0
    assert found.ranks.tolist() == [1, 2, 3]
    assert str(found).endswith("Not private: measured on the rows themselves.")
    assert "not private" in repr(found)


def test_mann_whitney_is_scipys_with_its_effect():
    rng = np.random.default_rng(0)
    for one, other in (([19, 22, 16, 29, 24], [20, 11, 17, 12]), (rng.integers(0, 5, 30), rng.integers(1, 6, 20))):
        found = mann_whitney(one, other)
        expected = mannwhitneyu(one, other)
        assert (found.u, found.p_value) == (expected.statistic, expected.pvalue)
        larger = [(a > b) + (a == b) / 2 for a in one for b in other]
        assert found.effect == pytest.approx(np.mean(larger))
        assert mann_whitney(other, one).effect == pytest.approx(1 - found.effect)
    assert mann_whitney([19, 22, 16, 29, 24], [20, 11, 17, 12]).p_value == pytest.approx(1 / 9)  # scipy's manual
    assert str(found).endswith("Not private: measured on the rows themselves.")


def test_page_is_scipys():
    # the example of scipy's manual, after Page 1963
    ratings = [
        [3, 4, 3],
        [2, 2, 4],
        [3, 3, 5],
        [1, 3, 2],
        [2, 3, 2],
        [2, 4, 5],
        [1, 2, 4],
        [3, 4, 4],
        [2, 4, 5],
        [1, 3, 4],
    ]
    found = page_trend(ratings)
    assert found.statistic == 133.5
    assert found.p_value == pytest.approx(0.0018191161948127822)
    values = np.random.default_rng(0).random((20, 7)) + np.arange(7) / 10
    expected = page_trend_test(values)
    assert page_trend(values).p_value == pytest.approx(expected.pvalue)
    assert page_trend(values).p_value < 1e-4 < page_trend(values[:, ::-1]).p_value
    assert str(found).endswith("Not private: measured on the rows themselves.")


def test_the_fewest_figures_are_enough():
    assert page_trend([[1, 2, 3]] * 2).shape == (2, 3)
    assert friedman([[1, 2, 3]] * 2, larger_is_better=False).ranks.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("test", "values", "sentence"),
    [
        (friedman, [[1, 2]] * 3, "three methods"),
        (friedman, [[1, 2, 3]], "two data sets"),
        (friedman, [[1, 1, 1]] * 3, "nothing to test"),
        (friedman, [[1, 2, math.nan]] * 3, "must be finite"),
        (friedman, [1, 2, 3], "2 dimensions"),
        (page_trend, [[1, 2, 3]], "two subjects"),
        (page_trend, [[1, 2], [1, 2]], "three conditions"),
        (lambda v: mann_whitney(v, [1]), [], "not be empty"),
        (lambda v: mann_whitney([1], v), [math.inf], "must be finite"),
        (lambda v: friedman(v, ["a"]), [[1, 2, 3], [1, 3, 2]], "1 names do not fit"),
        (lambda v: friedman(v).critical_difference(0), [[1, 2, 3], [1, 3, 2]], "between 0 and 1"),
    ],
)
def test_what_cannot_be_tested_is_refused(test, values, sentence):
    with pytest.raises(dpf.InputError, match=sentence):
        test(values)
