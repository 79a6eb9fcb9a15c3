"""The losses of outputs given two answers, and the divergences and deltas that are sums over these outputs."""

from __future__ import annotations

import functools
import math
from typing import final

import numpy as np
from numpy.typing import NDArray

# Probabilities on a coarse grid are scaled to add up to 1 if the logarithm of their sum is at most this far from 0.
COARSE = 0.1


@final
class LossCurve:
    """The log-probabilities of the same outputs given two answers, which are compared in both directions.

    On a coarse grid, each output stands for a cell, and its probability is only about that of the cell.
    """

    def __init__(self, one: NDArray[np.float64], other: NDArray[np.float64], coarse: bool) -> None:
        self.coarse = coarse
        possible = ~(np.isneginf(one) & np.isneginf(other))
        self._both = [(one[possible], other[possible]), (other[possible], one[possible])]

    @property
    def epsilon(self) -> float:
        """The largest absolute difference of the log-probabilities of an output."""
        one, other = self._both[0]
        return float(np.abs(one - other).max(initial=0.0))

    def renyi(self, order: float) -> float:
        """Return the Renyi divergence of an order, in the direction where it is larger."""
        found = []
        for given in self._both:
            one, other = map(_whole, given) if self.coarse else given
            held = ~np.isneginf(one)
            p, q = one[held], other[held]
            if np.isneginf(q).any():
                return math.inf
            terms = order * p + (1 - order) * q
            top = float(terms.max(initial=-math.inf))
            found.append((top + math.log(float(np.exp(terms - top).sum()))) / (order - 1) if terms.size else 0.0)
        return max(0.0, *found)

    def delta(self, epsilon: float) -> float:
        """Return the probability beyond an epsilon, in the direction where it is larger."""
        # Here p and q are logarithms. Where the term would be negative, the second exponent is cut at p. The term is
        # then 0, and exp does not overflow.
        found = max(float((np.exp(p) - np.exp(np.minimum(epsilon + q, p))).sum()) for p, q in self._both)
        return found / math.exp(self._common_mass) if self.coarse else found

    @functools.cached_property
    def _common_mass(self) -> float:
        """The logarithm of the factor by which both sums of probabilities are too large, on average; 0 if unknown."""
        masses = [float(np.logaddexp.reduce(logs)) for logs in self._both[0]]
        return sum(masses) / 2 if max(map(abs, masses)) <= COARSE else 0.0


def _whole(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale the probabilities of the cells of a coarse grid so that they add up to 1, if they nearly do.

    A divergence of order a is the logarithm of a sum, divided by a - 1. If a is near 1, small errors of the sum grow.
    Only divergences need this: in ratios and in deltas, it would add to the error. For a density that jumps, the sums
    for the two answers differ, and so would the factors by which they are scaled.
    """
    mass = float(np.logaddexp.reduce(logs))
    return logs - mass if abs(mass) <= COARSE else logs
