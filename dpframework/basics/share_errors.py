"""An error bound, over all tables, for the share of one noisy sum in the total of two.

A table of n rows has the sums n p and n (1 - p), where p is private. The releases are A = n p + X and B = n (1 - p) +
Y, with independent noise X and Y. The released share is max(A, 0) / (max(A, 0) + max(B, 0)), or 1/2 if A and B are both
at most 0. For a number h in (0, 1), with r = h / (1 - h),

    Pr[share > h] = Pr[A > 0, B <= 0] + Pr[A > r B, B > 0] + (h < 1/2) Pr[A <= 0, B <= 0],

where (h < 1/2) is 1 if h < 1/2, and else 0. The distribution of X is known, so this is an integral over Y alone. The
share exceeds p by more than t with the probability Pr[share > p + t]. It is below p by more than t with the probability
that the share of B exceeds 1 - p by more than t. This probability is given by the same formula with A and B exchanged,
and with 1 - p in place of p. The error bound is the smallest t for which the sum of both probabilities is at most 5 %
for every p. The code tries 25 values of p from 0 to 1/2, and computes each integral from 600 values of Y. The bound
also serves means, which are computed from such shares.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms.noise_laws import NoiseLaw
from dpframework.results.noisy_count_with_interval import CONFIDENCE

_NODES = 600  # the number of equally likely values of Y in each integral
_MEANS = 24  # the number of values of p above 0 that are tried; for the smallest, n p is well below the noise
_HALVINGS = 32  # the number of times that the bisection halves the range of t


@functools.lru_cache(maxsize=256)
def share_error(rows: float, law: NoiseLaw) -> float:
    """Return the error bound, from 0 to 1. For every p, at most 5 % of releases have a larger distance from p.

    Parameters
    ----------
    rows
        The number of rows n, above 0.
    law
        The distribution of the noise X and of the noise Y.

    Examples
    --------
    >>> from dpframework.mechanisms.noise_laws import LaplaceLaw
    >>> round(1000 * share_error(1000, LaplaceLaw(1)), 2)  # nearly ln 20, where p is near 0
    2.98
    """
    noise = law.quantile((np.arange(_NODES) + 0.5) / _NODES)
    smallest = min(float(noise[-1]) / (50 * rows), 0.25)
    shares = np.concatenate(([0.0], np.geomspace(smallest, 0.5, _MEANS)))

    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = _chance_above(shares, middle, rows, law, noise)
        below = _chance_above(1 - shares, middle, rows, law, noise)  # A and B exchanged
        is_exceeded = (above + below).max() > 1 - CONFIDENCE
        low, high = (middle, high) if is_exceeded else (low, middle)
    return high


def _chance_above(
    shares: NDArray[np.float64], error: float, rows: float, law: NoiseLaw, noise: NDArray[Any]
) -> NDArray[np.float64]:
    """Return, for each p in `shares`, the probability that the released share exceeds p by more than `error`."""
    limits = shares + error
    reachable = limits < 1
    limits = np.where(reachable, limits, 0.5)
    first, second = rows * shares, rows * (1 - shares[:, None]) + noise
    ratios = (limits / (1 - limits))[:, None]
    negative = law.at_most(-first)  # A <= 0
    beyond = 1 - law.at_most(ratios * second - first[:, None])
    without = (1 - negative + (limits < 0.5) * negative)[:, None]
    return np.asarray(np.where(reachable, np.where(second > 0, beyond, without).mean(axis=1), 0.0))
