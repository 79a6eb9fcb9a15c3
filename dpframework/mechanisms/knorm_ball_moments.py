"""Mean squares of the entries of a uniform point of a unit ball of the K-norm (see `knorm`), by quadrature.

A point of this ball consists of several histograms, whose entries all add up to the same sum.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

_NODES = 32  # the number of nodes of each quadrature


@final
@attrs.frozen
class BallMoments:
    """Mean squares in a uniform point of the unit ball.

    Attributes
    ----------
    total
        The mean square of the sum of a histogram's entries, which is the same for all histograms.
    entries
        The mean square of an entry of a histogram, by the size of that histogram.
    """

    total: float
    entries: Mapping[int, float]

    def difference(self, size: int) -> float:
        """Return the mean square of a weighted sum of a histogram's entries.

        The weights add up to 0, and their squares add up to 1. By symmetry, the result is the same for all such
        weights. To compute it, take an orthonormal basis of size - 1 such vectors of weights and one constant vector.
        In this basis, the sum of the squared entries is the sum of size - 1 squared weighted sums, plus
        (sum of all entries)**2 / size.
        """
        return (size * self.entries[size] - self.total / size) / (size - 1)


@functools.lru_cache(maxsize=256)
def unit_ball_moments(sizes: tuple[int, ...]) -> BallMoments:
    """Return the moments for histograms of these sizes, each 2 or more, whose sums are equal but not fixed.

    Let t be the sum of a histogram's entries. By symmetry, t may be taken as 0 or more. Let p entries be negative and
    add up to -n, and let the other entries add up to n + t. In the unit ball, 2 n + t is at most 1. Given t, p and n,
    both groups of entries are uniform on simplices. The volume of the first simplex is n**(p-1) / (p-1)!, and the
    volume of the second has the same form. The weight of p and n is the product of both volumes, times the number of
    ways to choose the negative entries. If k numbers are uniform on a simplex and add up to a, the mean of the sum of
    their squares is 2 a**2 / (k + 1).

    Examples
    --------
    >>> square = unit_ball_moments((2, 2))  # the sum and the difference of each pair are uniform between -1 and 1
    >>> round(square.total, 6), round(square.difference(2), 6)
    (0.333333, 0.166667)
    """
    at, weights = np.polynomial.legendre.leggauss(_NODES)
    totals, weights = (at + 1) / 2, weights / 2
    log_volumes, squares = {}, {}
    for size in set(sizes):
        found = [_volume_and_square(size, float(total), totals, weights) for total in totals]
        log_volumes[size] = np.array([volume for volume, _ in found])
        squares[size] = np.array([square for _, square in found])
    log_all = sum(sizes.count(size) * log_volumes[size] for size in log_volumes)
    chances = weights * np.exp(log_all - np.max(log_all))
    chances /= chances.sum()
    entries = {size: float(chances @ squares[size]) / size for size in squares}
    return BallMoments(float(chances @ totals**2), entries)


def _volume_and_square(
    size: int, total: float, at: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the log-volume of the histograms with the sum `total`, and the mean of the sum of squared entries."""
    reach = (1 - total) / 2
    negative = reach * at
    logs = [np.array([(size - 1) * math.log(total) - math.lgamma(size)])]
    square = [np.array([2 * total**2 / (size + 1)])]
    # With p negative entries, integrate over their total. Logarithms are added, since volumes may underflow.
    for p in range(1, size):
        ways = math.lgamma(size + 1) - math.lgamma(p + 1) - math.lgamma(size - p + 1)
        positive = negative + total
        of_parts = (size - p - 1) * np.log(positive) + (p - 1) * np.log(negative)
        logs.append(np.log(weights * reach) + ways + of_parts - math.lgamma(size - p) - math.lgamma(p))
        square.append(2 * positive**2 / (size - p + 1) + 2 * negative**2 / (p + 1))
    every = np.concatenate(logs)
    most = float(every.max())
    chances = np.exp(every - most)
    return most + math.log(chances.sum()), float(chances @ np.concatenate(square) / chances.sum())
