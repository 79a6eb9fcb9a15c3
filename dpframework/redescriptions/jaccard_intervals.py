"""Intervals of an exact Jaccard index from the noisy counts of both sides' rows and of one side's alone.

For exact counts, D(j) = (1 - j) both - j apart is positive if and only if the Jaccard index is above j. The noise of D
is known, so an interval leaves out an index j if D is further from 0 than noise reaches (Fieller's inversion).

**Selection bias.** A miner shows redescriptions with a noisy index of some `floor` or more. Their noise is often in
their favour, so intervals that ignore the selection hold too seldom. `least_jaccard_if_shown` allows for it, with an
error of alpha in these parts:

- alpha / 4 for the lower end, *given that the index shown is above the floor*: j is left out if noise that brought an
  exact index j above the floor brings it up to the index shown with a smaller chance, Pr[Z >= z] / Pr[Z >= c], where z
  is the distance from j to the index shown and c to the floor, in deviations of D(j) (a truncated distribution, as
  in Lee, Sun, Sun and Taylor 2016). The rows that one side holds for are taken to be the noisy ones.
- alpha / 10 for all `among` candidates at once: intervals at alpha / 10 / among hold for all of them together,
  whichever are shown (Bonferroni). No lower end needs to be below that of this interval, which matters just above the
  floor (the hybrid of Andrews, Kitagawa and McCloskey 2024).
- alpha / 2 for the upper end, as if there were no selection: with it, this end only holds more often.

The rest, 3 alpha / 20, is for a selection that the above ignores: of several redescriptions that hold for nearly the
same rows, the best is shown.
"""

from __future__ import annotations

import math

from dpframework.results.noisy_counts import Noisy, quantile
from dpframework.results.share_intervals import least_share, noise_at, round_down

HALVINGS = 30
OF_FLOOR, OF_ALL = 1 / 4, 1 / 10  # of the error (see the module)


def least_jaccard_if_shown(both: Noisy, apart: Noisy, error: float, floor: float, among: int) -> float:
    """Return the lower end of the interval of an index that is shown since it is above a floor (see the module).

    Parameters
    ----------
    both, apart
        The counts.
    error
        The chance that the interval may miss the exact index.
    floor
        The noisy Jaccard index from which one with this noise is shown.
    among
        How many were looked at.
    """
    low = least_share(both, apart, quantile(error * OF_ALL / among))
    high = least_share(both, apart, quantile(2 * error * OF_FLOOR))
    if high <= low:
        return high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _is_left_out(both, apart, floor, middle, error * OF_FLOOR) else (low, middle)
    return round_down(low)


def _is_left_out(both: Noisy, apart: Noisy, floor: float, j: float, chance: float) -> bool:
    """Tell whether noise that lifts an exact index j above the floor lifts it as high as shown too rarely."""
    deviation, step = noise_at(both, apart, j)
    # An interval that begins above 0 has a positive count.
    either = both.value + max(apart.value, 0.0)
    shown = ((1 - j) * both.value - j * apart.value - step) / deviation
    return so_far_above(shown, ((floor - j) * either + step) / deviation) < chance


def so_far_above(shown: float, floor: float) -> float:
    """Return the chance that noise is `shown` deviations above 0 or more, given that it is `floor` or more above.

    The larger one of normal noise and of Laplace noise; in between is what sums of them have. No proof is known to us:
    the tests draw many mixtures. From sqrt(2) on, where the normal's hazard is above Laplace's, Laplace's is larger.

    Examples
    --------
    >>> round(so_far_above(2.0, 0.0), 3), round(so_far_above(5.0, 4.0), 3)
    (0.059, 0.243)
    """
    shown = max(shown, floor)
    of_laplace = math.exp(_log_laplace_tail(shown) - _log_laplace_tail(floor))
    of_normal = math.erfc(shown / math.sqrt(2)) / math.erfc(min(floor / math.sqrt(2), 1.0))
    return max(of_laplace, of_normal)


def _log_laplace_tail(deviations: float) -> float:
    of_one_side = -math.sqrt(2) * abs(deviations) - math.log(2)
    return of_one_side if deviations > 0 else math.log1p(-math.exp(of_one_side))
