"""Confidence intervals for the share of one count in the sum of two counts, from noisy counts.

Let D(j) = (1 - j) first - j second. For exact counts, D(j) is 0 if j is the share of the first count, and it is
positive if the share is above j. The noise of D(j) is known. So the interval leaves out a share j if D(j), computed
from the noisy counts, is further from 0 than noise can explain (Fieller's inversion).
"""

from __future__ import annotations

import math

from dpframework.results.noisy_count_with_interval import Noisy, heavy_deviation

STEPS = 60  # the largest number of steps of Newton's method, more than it needs
GRID = 2**50  # ends of intervals are multiples of 1 / GRID, since further digits are rounding errors


def least_share(first: Noisy, second: Noisy, most: float) -> float:
    """Return the lower end of the interval: the smallest j in [0, 1] for which noise can explain D(j).

    It is 1 if there is no such j. The noise is taken to reach `most` standard deviations plus half a step of D(j). D(j)
    is linear in j, and this reach is convex in j. So D(j) minus the reach is concave, and lies below its tangents.
    Newton's steps from j = 1 follow the tangents, so they decrease to the smallest such j without passing it.

    Parameters
    ----------
    first, second
        The two noisy counts.
    most
        The reach of the noise, in standard deviations of the noise of D(j).
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
        # The derivatives by j of `deviation` and of `step`, which is the larger of two lines.
        growth = (j * deviations[1] ** 2 - (1 - j) * deviations[0] ** 2) / deviation if deviation > 0 else 0.0
        more = 0.5 * (deviations[1] > 0) if j * (deviations[1] > 0) >= (1 - j) * (deviations[0] > 0) else -0.5
        closer = j + beyond / (first.value + second.value + most * growth + more)
        if not closer < j:
            break
        j = max(closer, 0.0)
    return round_down(j)


def noise_at(first: Noisy, second: Noisy, j: float) -> tuple[float, float]:
    """Return the standard deviation of the noise of (1 - j) first - j second, and half of its larger step.

    The noise of a count is a whole number, so this noise is a sum of steps of 1 - j and of j.
    """
    return _mix_noise(heavy_deviation(first.variance), heavy_deviation(second.variance), j)


def _mix_noise(first: float, second: float, j: float) -> tuple[float, float]:
    """Return the output of `noise_at`, from the standard deviations of both counts."""
    step = max((1 - j) * (first > 0), j * (second > 0)) / 2
    return math.hypot((1 - j) * first, j * second), step


def round_down(end: float) -> float:
    """Return the largest multiple of 1 / `GRID` that is at most `end`."""
    return math.floor(end * GRID) / GRID
