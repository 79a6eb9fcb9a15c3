"""Estimates of each value's rows from released one-way marginals (see `dpframework.basics.OneWayMarginals`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.basics import NoisyHistogram
from dpframework_distance.distance_estimates import Conditional, unsure

Array = NDArray[np.float64]

_FAR = 1e3  # the standard deviations beyond which a cut-off normal distribution is close to exponential


@final
@attrs.frozen(eq=False)
class EstimatedRows:
    """Estimates of the number of rows of each value.

    Attributes
    ----------
    mean, variance
        The mean and the variance of each value's number of rows, shape (codes,).
    """

    mean: Array
    variance: Array


def number_of_rows(histograms: Sequence[NoisyHistogram], rows: int | None) -> float:
    """Return the public number of rows, or else the sum of the histogram whose sum has the least noise."""
    if rows is not None:
        return float(rows)
    best = min(histograms, key=lambda one: one.sum_variance)
    return max(float(best.counts.sum()), 1.0)


def estimate_rows(histogram: NoisyHistogram, rows: float) -> EstimatedRows:
    """Estimate numbers of rows from a noisy histogram, given that none is negative and that they add up to `rows`.

    It is assumed that all such histograms are equally likely beforehand, and that noise is normal. Then each number has
    a normal distribution, cut off below 0, whose mean is shifted so that the means add up to `rows`. (The known sum
    also ties the numbers to each other. That effect on single numbers is small, and neglected.)
    """
    from scipy.optimize import brentq
    from scipy.special import erfcx

    deviation = max(histogram.residual_variance, 1e-12) ** 0.5

    def cut_off(shift: float) -> tuple[Array, Array]:
        start = (shift - histogram.counts) / deviation  # where the distribution is cut off
        far = start > _FAR  # there the distribution is close to exponential
        hazard = (2 / np.pi) ** 0.5 / erfcx(start / 2**0.5)
        above = np.where(far, 1 / np.maximum(start, _FAR), hazard - start)
        rest = np.where(far, above * above, 1 - hazard * above)
        return deviation * above, deviation**2 * rest

    high = float(histogram.counts.max())
    low = high - rows - 1  # this shift puts the largest count alone above `rows`, so the root lies higher
    while cut_off(high)[0].sum() > rows:
        high = 2 * high - low
    mean, variance = cut_off(brentq(lambda shift: cut_off(shift)[0].sum() - rows, low, high))
    return EstimatedRows(mean * (rows / mean.sum()), variance)


def redraw_estimates(histogram: NoisyHistogram, known: EstimatedRows, draws: int) -> list[EstimatedRows]:
    """Return estimates from the estimated numbers of rows with fresh noise, which is as large as the released noise."""
    rng = np.random.default_rng(0)  # fixed: what follows from releases is the same for everybody
    noise = rng.normal(0.0, np.sqrt(histogram.residual_variance), (draws, len(known.mean)))
    rows = float(known.mean.sum())
    return [estimate_rows(attrs.evolve(histogram, counts=known.mean + one), rows) for one in noise]


def shares_in_unknown(known: EstimatedRows, columns: int, unknown: float) -> Conditional:
    """Return the same estimated P(y|x) for each x, from the shares of y alone.

    Parameters
    ----------
    known
        The estimated numbers of rows of the values y.
    columns
        The number of values x, of attributes whose joint counts with y are not known.
    unknown
        The share u of what P(y|x) could vary by (see `unsure`).
    """
    total = float(known.mean.sum())
    shares = known.mean / total
    variance = np.minimum(known.variance / total**2, shares * (1 - shares))  # so that no distance is above 1
    repeated = [np.repeat(one[:, np.newaxis], columns, axis=1) for one in (shares, variance)]
    return unsure(repeated[0], repeated[1], unknown)
