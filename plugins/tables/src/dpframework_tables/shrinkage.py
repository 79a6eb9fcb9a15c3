"""Shrinkage of several noisy residuals: little of a residual is kept if noise explains it, and nearly all otherwise.

A residual (see `residual_pooling`) has some free numbers, called effects, each with noise of variance s. The effects of
one residual share a variance t, which comes from a mixture over a grid that includes 0. The weights of the mixture are
the most likely ones for all residuals together (Stephens 2017, adaptive shrinkage). So if most residuals are noise, a
residual that hardly exceeds its noise is taken for noise too. If most are not noise, such a residual is kept.

The best linear estimate of an effect is t / (t + s) times its noisy value. Such estimates vary less than the effects
do, so attributes would look too even. With the square root of that factor they vary as much (Louis 1984; Ghosh 1992),
and the estimated table is nearer to the exact one in total variation. All of it is post-processing of releases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = "NDArray[np.float64]"

_GRID = np.concatenate([[0.0], np.logspace(-6, 0, 25)])  # the values of t; see `shrink_to_noise` for the largest
_FIRST = np.array([0.5, *[0.5 / (len(_GRID) - 1)] * (len(_GRID) - 1)])  # the weights before any residual is seen
_COUNT = 3.0  # how many residuals these first weights count for
_LEAST_NOISE = 1e-15  # the least variance: a very large budget would make it 0, but computed shares are less exact
_TURNS = 60  # the steps of expectation maximisation


def shrink_to_noise(off: Sequence[Array], variances: Sequence[float], rows: Sequence[float]) -> Array:
    """Return which share of each table's deviations from an expected table is kept, from 0 to 1.

    In a table of n cells and N rows, deviations from even counts have a sum of squares of at most n - 1, in units of
    (N / sqrt(n))**2. The sum is n - 1 if all rows are in one cell.

    Parameters
    ----------
    off
        The deviations of each table, in rows. They add up to 0 along each axis.
    variances
        The variance of the noise of each table's cells.
    rows
        The number of rows of each table.
    """
    scales = [own.size / number**2 for own, number in zip(off, rows, strict=True)]
    squares = [scale * np.square(own).sum() for scale, own in zip(scales, off, strict=True)]
    noise = [scale * variance for scale, variance in zip(scales, variances, strict=True)]
    return parts_kept(squares, [math.prod(size - 1 for size in own.shape) for own in off], noise)


def parts_kept(squares: ArrayLike, free: Sequence[int], noise: ArrayLike) -> Array:
    """Return the factor by which each residual is multiplied, from 0 to 1.

    Parameters
    ----------
    squares
        The sum of squares of each residual.
    free
        How many free numbers each residual has.
    noise
        The variance of the noise of each free number.

    Examples
    --------
    >>> parts_kept([0.9, 0.01], [1, 1], [0.01, 0.01]).round(1).tolist()
    [1.0, 0.2]
    """
    sums, numbers, variances = (np.asarray(given, dtype=np.float64) for given in (squares, free, noise))
    total = _GRID[:, np.newaxis] + np.maximum(variances, _LEAST_NOISE)
    log_likely = -(numbers * np.log(total) + sums / total) / 2
    likely = np.exp(log_likely - log_likely.max(axis=0))
    weights, found = _FIRST, likely
    for _ in range(_TURNS):
        found = weights[:, np.newaxis] * likely
        found = found / found.sum(axis=0)
        weights = (found.sum(axis=1) + _COUNT * _FIRST) / (len(sums) + _COUNT)
    return np.asarray((found * np.sqrt(_GRID[:, np.newaxis] / total)).sum(axis=0))
