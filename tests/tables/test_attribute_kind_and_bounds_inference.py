"""Bins and centres for a column of public numbers: at their edges, and beside a plain k-means."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from dpframework.facts.attributes import MOST_CODES
from dpframework.tables.attribute_kind_and_bounds_inference import feasible_bins, freedman_diaconis, k_means, midpoints

Numbers = NDArray[np.float64]


@pytest.mark.parametrize(
    ("bins", "lower", "upper", "found"),
    [
        (10, 0.0, 1.0, 10),
        (3, -1e-300, 1e-300, 3),
        (2, 1e16, 1e16 + 16, 1),  # bins of 8, where numbers are 2 apart
        (2, 1e16, 1e16 + 20, 2),
        (2, -1e16 - 20, -1e16, 2),
        (2, 2.0**53 - 8, 2.0**53 + 8, 1),  # where they are 1 apart below, and 2 above
        (2, -(2.0**53) - 8, -(2.0**53) + 8, 1),
        (2, 2.0**53 - 16, 2.0**53, 1),
        (2, 2.0**53 - 18, 2.0**53 - 1, 2),
    ],
)
def test_a_bin_is_wider_than_four_steps_of_its_numbers(bins: int, lower: float, upper: float, found: int) -> None:
    assert feasible_bins(bins, lower, upper) == found


def test_cuts_lie_midway_or_at_the_upper_of_two_neighbours() -> None:
    close = np.nextafter(1.0, 2.0)
    assert midpoints(np.array([-4.0, 1.0, close, 3.0])).tolist() == [-1.5, close, close + (3 - close) / 2]
    assert midpoints(np.array([5e-324, 1e-323, 2e-323])).tolist() == [1e-323, 1.5e-323]
    assert midpoints(np.array([7.0])).tolist() == []


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        (range(8), 2),  # of 3.5, on a range of 7
        (range(27), 3),  # of 26 / 3, on a range of 26
        (range(28), 4),  # of 27 / 28 ** (1 / 3), so 3.04 on a range of 27
        ([0, 1, 2, 3, 1000], 5),  # more than distinct values
        ([0, 1, 1, 2, 2, 2, 3, 3, 4, 4], 3),
        ([0, 1, 1, 1, 1, 9], 77),  # half share one value
        ([-1e308, 0, 5e-324, 1e308], 4),
        ([*np.linspace(0, 1, 2 * MOST_CODES), 1e9], MOST_CODES),
    ],
)
def test_bins_are_as_wide_as_quartiles_and_rows_say(numbers: object, found: int) -> None:
    assert freedman_diaconis(np.array(numbers, dtype=np.float64), 77) == found


def nearest(points: Numbers, centres: Numbers) -> NDArray[np.int64]:
    """The place of the centre nearest to each point, of two the upper one."""
    apart = np.abs(points[:, None] - centres[None, :])
    return len(centres) - 1 - np.argmin(apart[:, ::-1], axis=1)


def spread(rows: Numbers, centres: Numbers) -> float:
    return float(((rows - centres[nearest(rows, centres)]) ** 2).sum())


def moved(rows: Numbers, centres: Numbers) -> Numbers:
    """Centres that k-means moves as long as they move, on each row by itself."""
    while True:
        own = nearest(rows, centres)
        means = np.array([rows[own == k].mean() for k in range(len(centres)) if (own == k).any()])
        if len(means) == len(centres) and np.allclose(means, centres, rtol=0, atol=1e-9):
            return means
        centres = means


@pytest.mark.parametrize("seed", range(30))
def test_centres_are_the_best_of_three_runs_on_each_row_by_itself(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shift = 1e6 * (seed % 3)  # digits that they have in common cost none
    points = np.unique(np.round(rng.lognormal(1, 1.5, 25), 3)) + shift
    weights, most = rng.integers(1, 40, len(points)), 2 + seed % 5
    rows, shares = np.repeat(points, weights), (np.arange(most) + 0.5) / most
    starts = [
        np.unique([rows[math.ceil(share * len(rows)) - 1] for share in shares]),
        np.quantile(points, shares),
        np.array([rows[0] + share * (rows[-1] - rows[0]) for share in shares]),
    ]
    best = min((moved(rows, start) for start in starts), key=lambda centres: spread(rows, centres))
    found = k_means(points, weights, most)
    assert (np.diff(found) > 0).all()
    assert spread(rows, found) == pytest.approx(spread(rows, best), rel=1e-6)
    np.testing.assert_allclose(found, moved(rows, found), rtol=0, atol=1e-6)


@pytest.mark.parametrize("most", [3, 4])
def test_few_points_are_their_own_centres(most: int) -> None:
    points = np.array([1.0, 2.0, 7.0])
    assert k_means(points, np.array([1, 5, 2]), most).tolist() == points.tolist()


def test_a_cluster_that_runs_empty_is_gone() -> None:
    points, weights = np.array([0.0, 1.0, 100.0, 101.0]), np.array([1, 1, 1, 1])
    assert k_means(points, weights, 2).tolist() == [0.5, 100.5]
    assert len(k_means(np.array([0.0, 1.0, 2.0, 1e9]), np.array([1, 1, 1, 10**6]), 3)) <= 3


@pytest.mark.parametrize(
    ("points", "weights", "least"),
    [
        ([4, 27, 30, 43, 52, 56, 58], [5, 3, 4, 6, 7, 5, 2], 629.2285714),
        ([0, 9, 12, 13, 22, 30, 32, 51], [1, 5, 2, 3, 8, 5, 7, 6], 554.6363636),
        ([14, 32, 42, 46, 47, 49, 50, 58], [2, 3, 6, 6, 1, 8, 5, 1], 342.2857143),
    ],
)
def test_centres_that_begin_evenly_are_the_best_of_some(points: list[int], weights: list[int], least: float) -> None:
    rows = np.repeat(np.array(points, dtype=np.float64), weights)
    found = k_means(np.array(points, dtype=np.float64), np.array(weights), 3)
    assert spread(rows, found) == pytest.approx(least)
