"""The largest error, over all tables, of one noisy sum's share in the total of two, from the exact law of the noise.

A table of n rows has the sums n p and n (1 - p), where p is private. The releases are A = n p + X and B = n (1 - p) +
Y, with independent noise X and Y. The share is max(A, 0) / (max(A, 0) + max(B, 0)), or 1/2 where both are 0. For a
number h in (0, 1), with r = h / (1 - h),

    Pr[share > h] = Pr[A > 0, B <= 0] + Pr[A > r B, B > 0] + (h < 1/2) Pr[A <= 0, B <= 0],

which is an integral over Y alone. The share is above p by more than t with the probability Pr[share > p + t]. It is
below p by more than t with the probability that B's share is above 1 - p by more than t, which is the same formula with
A and B exchanged and 1 - p in place of p. The stated error is the smallest t for which the sum of both probabilities is
at most 5 % for every p. The code tries 25 values of p from 0 to 1/2, and computes each integral from 600 values of Y.
A mean, too, is computed from such a share.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms.noise_laws import NoiseLaw
from dpframework.results.noisy_counts import CONFIDENCE

_NODES = 600  # how many equally likely values of Y the integral is computed from
_MEANS = 24  # how many values of p above 0 are tried: from one for which n p is well below the noise, to 1/2
_HALVINGS = 32  # how many times the bisection halves the range of t


@functools.lru_cache(maxsize=256)
def share_error(rows: float, law: NoiseLaw) -> float:
    """Return the stated error, from 0 to 1: in at most 5 % of releases the share is further from p, whatever p is.

    Parameters
    ----------
    rows
        The number of rows n, above 0.
    law
        The distribution of X and of Y.

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
    """Return, for each p, the probability that the share exceeds p by more than an error."""
    limits = shares + error
    reachable = limits < 1
    limits = np.where(reachable, limits, 0.5)
    first, second = rows * shares, rows * (1 - shares[:, None]) + noise
    ratios = (limits / (1 - limits))[:, None]
    negative = law.at_most(-first)  # A <= 0
    beyond = 1 - law.at_most(ratios * second - first[:, None])
    without = (1 - negative + (limits < 0.5) * negative)[:, None]
    return np.asarray(np.where(reachable, np.where(second > 0, beyond, without).mean(axis=1), 0.0))
