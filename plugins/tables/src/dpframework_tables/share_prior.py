"""The likely number of rows of each value of an attribute, given noisy counts and how common rare values are.

A value's share of the rows is taken to come from a mixture: it is 0, or uniform between 0 and one of several limits.
The weights of the mixture are the most likely ones for all values of all attributes together (empirical Bayes; Stephens
2017, adaptive shrinkage). So if most values are rare, a count that hardly exceeds its noise is taken for noise. If most
values are frequent, such a count is kept.

Let y be an attribute's noisy shares and x its exact ones. Both add up to 1, and differences between noisy shares are as
exact as if each had independent noise of variance s. So the likelihood of x is proportional to exp(-norm(x - y)**2 / (2
s)). If a number c is added to each y, the likelihood changes only by a constant factor, since all x have the same sum.
So the shares are estimated by m(y + c), where m is the mean of one share, given its own noisy one, and c is such that
the estimates add up to 1. (If the prior said only that no share is below 0, and m were the most likely value, this
would be the nearest point of the simplex.) All of it is post-processing of releases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = "NDArray[np.float64]"

_LIMITS = np.logspace(-5, 0, 21)  # limits of a share; the last is not applied, since all shares add up to 1
_FIRST = np.array([0.5, *[0.5 / len(_LIMITS)] * len(_LIMITS)])  # the weights before any count is seen
_COUNT = 3.0  # how many values these first weights count for
_TURNS = 60  # the steps of expectation maximisation
_WIDTH = 4.0  # within how many standard deviations c is looked for first
_CLOSE = 1e-4  # how far off c may be, in standard deviations
_LEAST_NOISE = 1e-9  # the least noise of a share: with a very large budget it would be 0


@final
@attrs.frozen(eq=False)
class SharePrior:
    """The distribution of a value's share of the rows.

    Attributes
    ----------
    weights
        The probability of a share of 0, and then of a uniform share up to each limit.
    """

    weights: Array

    @classmethod
    def of(cls, tables: Sequence[Array], variances: Sequence[float], rows: float) -> SharePrior:
        """Return the most likely distribution of the shares of all values of some attributes.

        Parameters
        ----------
        tables
            The noisy counts of each attribute. All tables have the same sum.
        variances
            For each attribute, the variance of the noise of a count, as it appears in differences of counts if these
            were independent. Since the sum of the counts is known, the variance of a single count is smaller by the
            factor 1 - 1 / codes.
        rows
            The number of rows.
        """
        noise = [
            np.full(len(own), _deviation(variance, rows) * math.sqrt(1 - 1 / max(len(own), 2)))
            for own, variance in zip(tables, variances, strict=True)
        ]
        likely, _ = _components(np.concatenate(tables) / rows, np.concatenate(noise))
        likely = likely / np.maximum(likely.max(axis=0), 1e-300)
        weights = _FIRST
        for _ in range(_TURNS):
            found = weights[:, np.newaxis] * likely
            found = found / np.maximum(found.sum(axis=0), 1e-300)
            weights = (found.sum(axis=1) + _COUNT * _FIRST) / (found.sum() + _COUNT)
        return cls(weights)

    def mean(self, shares: Array, deviation: float) -> Array:
        """Return the expected share of each value, given noisy shares."""
        likely, means = _components(shares, np.full(len(shares), deviation))
        parts = self.weights[:, np.newaxis] * likely
        total = parts.sum(axis=0)
        return np.where(total > 0, (parts * means).sum(axis=0) / np.maximum(total, 1e-300), np.maximum(shares, 0.0))

    def counts(self, table: Array, variance: float, rows: float) -> Array:
        """Return the expected counts of an attribute's values. None is below 0, and they add up to `rows`.

        Parameters
        ----------
        table
            The noisy counts.
        variance
            The variance of their noise, as it appears in differences of counts if these were independent.
        rows
            The number of rows.
        """
        from scipy.optimize import brentq

        shares, noise = table / rows, _deviation(variance, rows)
        low, high = -_WIDTH * noise, _WIDTH * noise
        while self.mean(shares + low, noise).sum() > 1:
            low *= 2
        while self.mean(shares + high, noise).sum() < 1:
            high *= 2
        moved = brentq(lambda by: self.mean(shares + by, noise).sum() - 1, low, high, xtol=_CLOSE * noise)
        found = self.mean(shares + moved, noise)
        return np.asarray(found * (rows / found.sum()))


def _deviation(variance: float, rows: float) -> float:
    """Return the standard deviation of the noise of a share, at least `_LEAST_NOISE`."""
    return max(math.sqrt(variance) / rows, _LEAST_NOISE)


def _components(shares: Array, noise: Array) -> tuple[Array, Array]:
    """Return two arrays of shape (parts of the mixture, values).

    If a value's exact share comes from a part, the first holds the likelihood of its noisy share, and the second the
    mean of its exact share given the noisy one.
    """
    from scipy.special import ndtr

    ends, seen = (_LIMITS[:-1, np.newaxis] / noise), shares / noise
    density = _density(seen)
    # The chance that a share lies within the limits, as a difference of small tails, which keeps its digits.
    chance = np.where(seen > 0, ndtr(ends - seen) - ndtr(-seen), ndtr(seen) - ndtr(seen - ends))
    chance = np.vstack([chance, ndtr(seen)])
    steps = density - np.vstack([_density(ends - seen), np.zeros_like(seen)])
    means = shares + noise * np.divide(steps, chance, out=np.zeros_like(chance), where=chance > 0)
    means[:-1] = np.clip(means[:-1], 0, _LIMITS[:-1, np.newaxis])
    likely = np.vstack([density / noise, chance / _LIMITS[:, np.newaxis]])
    return likely, np.vstack([np.zeros_like(seen), np.maximum(means, 0)])


def _density(points: Array) -> Array:
    return np.asarray(np.exp(-points * points / 2) / math.sqrt(2 * math.pi))
