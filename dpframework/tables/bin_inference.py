"""Bins for a column of numbers, for schemas that are inferred from data. Inference is not private."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import MOST_CODES

ROUNDS = 300  # the most rounds of Lloyd's algorithm, which ends earlier once the centres no longer move


def feasible_bins(bins: int, lower: float, upper: float) -> int:
    """Return `bins`, or 1 where floating-point numbers are too coarse to cut a range this narrow."""
    return bins if (upper - lower) / bins > 4 * np.spacing(max(abs(lower), abs(upper))) else 1


def midpoints(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the midpoint of each pair of neighbours among increasing points.

    If no float lies between two neighbours, the upper one stands for their midpoint.
    """
    low, high = points[:-1], points[1:]
    middle = low + (high - low) / 2
    return np.asarray(np.where(middle > low, middle, high))


def freedman_diaconis(numbers: NDArray[np.float64], otherwise: int) -> int:
    """Return the number of bins of width 2 IQR / n^(1/3), for n numbers with the interquartile range IQR.

    The number of bins is at most the number of distinct values, and at most `MOST_CODES`. If the lower and the upper
    quartile are equal, the width is 0, and `otherwise` is returned.
    """
    first, third = np.quantile(numbers, (0.25, 0.75))
    width: float = 2 * float(third - first) / len(numbers) ** (1 / 3)
    if width <= 0:
        return otherwise
    bins = (float(numbers.max()) - float(numbers.min())) / width
    return math.ceil(min(bins, MOST_CODES, len(np.unique(numbers))))


def k_means(points: NDArray[np.float64], weights: NDArray[np.int64], most: int) -> NDArray[np.float64]:
    """Return the increasing centres of one-dimensional k-means, the best of three runs of Lloyd's algorithm.

    The runs start from quantiles of the rows, from quantiles of the distinct values, and from points spread evenly over
    the range. So the same column always gets the same centres.

    Parameters
    ----------
    points
        Distinct values, increasing.
    weights
        How many rows have each value.
    most
        The number of clusters. There are fewer if there are fewer points, or if a cluster runs empty.
    """
    if len(points) <= most:
        return points
    shares = (np.arange(most) + 0.5) / most
    rows = np.cumsum(weights)
    runs = [
        _lloyd(points, weights, starts)
        for starts in (
            np.unique(points[np.searchsorted(rows, shares * rows[-1])]),
            np.quantile(points, shares),
            points[0] + shares * (points[-1] - points[0]),
        )
    ]
    return min(runs, key=lambda centres: _spread(points, weights, centres))


def _spread(points: NDArray[np.float64], weights: NDArray[np.int64], centres: NDArray[np.float64]) -> float:
    """Return the sum over rows of the squared distance to the nearest centre."""
    nearest_centres = centres[np.searchsorted(midpoints(centres), points, side="right")]
    return float(np.sum(weights * (points - nearest_centres) ** 2))


def _lloyd(
    points: NDArray[np.float64], weights: NDArray[np.int64], centres: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Move increasing centres to the means of their points until no centre moves, for at most `ROUNDS` rounds.

    On a line a cluster is an interval, so each round needs only a search and differences of running sums.
    """
    rows = np.concatenate([[0], np.cumsum(weights)])
    # The mean is subtracted first, so that running sums lose no digits to a common offset of all values.
    offset = float(np.average(points, weights=weights))
    sums = np.concatenate([[0.0], np.cumsum((points - offset) * weights)])
    for _ in range(ROUNDS):
        edges = np.concatenate([[0], np.searchsorted(points, midpoints(centres)), [len(points)]])
        counts = np.diff(rows[edges])
        moved = np.asarray(np.diff(sums[edges])[counts > 0] / counts[counts > 0] + offset)
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres
