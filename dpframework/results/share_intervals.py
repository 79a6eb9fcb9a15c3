"""Intervals of the share of one noisy count in the sum of two.

For exact counts, D(j) = (1 - j) first - j second is positive if and only if the share of the first is above j. The
noise of D is known, so an interval leaves out a share j if D is further from 0 than noise reaches (Fieller's
inversion).
"""

from __future__ import annotations

import math

from dpframework.results.noisy_counts import Noisy, heavy_deviation

STEPS = 60  # the most steps of Newton's method, more than are ever needed
GRID = 2**50  # ends of intervals are multiples of 1 / GRID, since digits beyond are rounding


def least_share(first: Noisy, second: Noisy, most: float) -> float:
    """Return the first j in [0, 1] at which (1 - j) first - j second is within reach of noise, or 1 if there is none.

    The difference is linear in j, and the reach of noise convex. So their gap is concave, and Newton's steps from 1
    come down to the first such j and never pass it.

    Parameters
    ----------
    first, second
        The counts.
    most
        How far noise reaches, in standard deviations.
    """
    deviations = heavy_deviation(first.variance), heavy_deviation(second.variance)
    j = 1.0
    if not first.value > most * deviations[0] + 0.5 * (deviations[0] > 0):
        return 0.0
    for _ in range(STEPS):
        deviation, step = _mix_noise(*deviations, j)
        beyond = (1 - j) * first.value - j * second.value - most * deviation - step
        if beyond >= 0:
            break
        growth = (j * deviations[1] ** 2 - (1 - j) * deviations[0] ** 2) / deviation if deviation > 0 else 0.0
        more = 0.5 * (deviations[1] > 0) if j * (deviations[1] > 0) >= (1 - j) * (deviations[0] > 0) else -0.5
        closer = j + beyond / (first.value + second.value + most * growth + more)
        if not closer < j:
            break
        j = max(closer, 0.0)
    return round_down(j)


def noise_at(first: Noisy, second: Noisy, j: float) -> tuple[float, float]:
    """Return the deviation of the noise of (1 - j) first - j second, and half of the larger step of this noise.

    The noise comes in steps, since the noise of a count is a whole number.
    """
    return _mix_noise(heavy_deviation(first.variance), heavy_deviation(second.variance), j)


def _mix_noise(first: float, second: float, j: float) -> tuple[float, float]:
    """Return what `noise_at` returns, given the deviations of both counts."""
    step = max((1 - j) * (first > 0), j * (second > 0)) / 2
    return math.hypot((1 - j) * first, j * second), step


def round_down(end: float) -> float:
    """Return the largest multiple of 1 / `GRID` that is at most `end`."""
    return math.floor(end * GRID) / GRID
