"""How many rows each value of an attribute likely has, given noisy counts: most values of most attributes have few.

A value's share of the rows is drawn from a mixture: 0, or even between 0 and a limit, for each of a grid of limits. Its
weights are the most likely ones for all values of all attributes together (empirical Bayes; Stephens 2017, adaptive
shrinkage). So where most values are rare, a count that hardly stands out is taken for noise, and where they are not, it
is believed.

Let y be an attribute's noisy shares and x its exact ones. Both add up to 1, and differences have noise of variance s.
So the likelihood of x is proportional to exp(-norm(x - y)**2 / (2 s)). Among shares of one sum it stays the same, but
for a constant, when a number c is added to each y. So the shares are taken to be m(y + c), where m is the mean of one
share, given its own noisy one, and c is such that they add up to 1. (With a prior that says no more than that no share
is below 0, and most likely values for means, that is the nearest point of the simplex.) All of it is post-processing of
releases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = "NDArray[np.float64]"

_LIMITS = np.logspace(-5, 0, 21)  # of a share; the last one is none, since the sum of all is known
_FIRST = np.array([0.5, *[0.5 / len(_LIMITS)] * len(_LIMITS)])  # weights before anything is seen
_COUNT = 3.0  # how many values these weights count for
_TURNS = 60  # of expectation and maximisation
_WIDTH = 4.0  # deviations: where c is looked for first
_CLOSE = 1e-4  # deviations: how near c is found
_LEAST_NOISE = 1e-9  # of a share: a budget may be so large that the noise is 0


@final
@attrs.frozen(eq=False)
class SharePrior:
    """The distribution of a value's share of the rows.

    Attributes
    ----------
    weights
        Of a share of 0, and of shares that are even up to each limit.
    """

    weights: Array

    @classmethod
    def of(cls, tables: Sequence[Array], variances: Sequence[float], rows: float) -> SharePrior:
        """Return the most likely distribution of the shares of all values of some attributes.

        Parameters
        ----------
        tables
            The noisy counts of each attribute, all of the same sum.
        variances
            The variance of the noise that is in differences of the counts of each, as if counts were independent. Of a
            count, since their sum is known, it is smaller by the factor 1 - 1 / codes.
        rows
            How many rows there are.
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
        """Return the expected share of each value, given noisy ones."""
        likely, means = _components(shares, np.full(len(shares), deviation))
        parts = self.weights[:, np.newaxis] * likely
        total = parts.sum(axis=0)
        return np.where(total > 0, (parts * means).sum(axis=0) / np.maximum(total, 1e-300), np.maximum(shares, 0.0))

    def counts(self, table: Array, variance: float, rows: float) -> Array:
        """Return the expected counts of an attribute's values, none below 0, that add up to the rows.

        Parameters
        ----------
        table
            The noisy counts.
        variance
            That of the noise in their differences, as if counts were independent.
        rows
            How many rows there are.
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
    """Return the standard deviation of the noise of a share."""
    return max(math.sqrt(variance) / rows, _LEAST_NOISE)


def _components(shares: Array, noise: Array) -> tuple[Array, Array]:
    """Return the likelihood and the mean of each value's share by each part of the mixture, shape (parts, values)."""
    from scipy.special import ndtr

    ends, seen = (_LIMITS[:-1, np.newaxis] / noise), shares / noise
    density = _density(seen)
    # The chance that a share lies within the limits, from the side of the bell where it is small.
    chance = np.where(seen > 0, ndtr(ends - seen) - ndtr(-seen), ndtr(seen) - ndtr(seen - ends))
    chance = np.vstack([chance, ndtr(seen)])
    steps = density - np.vstack([_density(ends - seen), np.zeros_like(seen)])
    means = shares + noise * np.divide(steps, chance, out=np.zeros_like(chance), where=chance > 0)
    means[:-1] = np.clip(means[:-1], 0, _LIMITS[:-1, np.newaxis])
    likely = np.vstack([density / noise, chance / _LIMITS[:, np.newaxis]])
    return likely, np.vstack([np.zeros_like(seen), np.maximum(means, 0)])


def _density(points: Array) -> Array:
    return np.asarray(np.exp(-points * points / 2) / math.sqrt(2 * math.pi))
