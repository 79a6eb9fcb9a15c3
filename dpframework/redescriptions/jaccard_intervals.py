"""Intervals for the exact Jaccard index, from two noisy counts.

The counts are `both`, the rows for which both sides hold, and `apart`, the rows for which just one side holds. For
exact counts, D(j) = (1 - j) both - j apart is positive if and only if the Jaccard index is above j. The noise of D(j)
is known. An interval leaves out an index j if D(j) of the noisy counts is further from 0 than its noise is likely to be
(Fieller's inversion).

**Selection bias.** A miner shows redescriptions with a noisy index of some `floor` or more. Their noise is often in
their favour, so intervals that ignore the selection miss the exact index too often. `least_jaccard_if_shown` allows for
the selection. Its error alpha, the chance of a miss, has these parts:

- alpha / 4 for the lower end, *given that the index shown is above the floor*. Suppose that the exact index is j, and
  that noise lifted it above the floor. Then noise lifted it to the index shown or further with the chance
  Pr[Z >= z] / Pr[Z >= c]. Here Z is the noise of D(j), z is D(j) of the noisy counts, and c is D(j) of counts with
  an index at the floor, all in standard deviations of D(j). The index j is left out if this chance is below alpha / 4
  (a truncated distribution, as in Lee, Sun, Sun and Taylor 2016). To compute c, the number of rows for which at least
  one side holds is taken to be its noisy count.
- alpha / 10 for all `among` candidates at once. If each candidate has an interval of error alpha / 10 / among, then
  with an error of alpha / 10 all these intervals hold, whichever are shown (Bonferroni). So the lower end may be raised
  to the lower end of this interval of the candidate, if that is higher. It is if the index shown is just above the
  floor (the hybrid of Andrews, Kitagawa and McCloskey 2024).
- alpha / 2 for the upper end, as if there were no selection. Selection raises the index shown, so the upper end then
  holds even more often.

The rest, 3 alpha / 20, is a reserve for a selection that these parts ignore: of several redescriptions that hold for
nearly the same rows, only the best is shown.
"""

from __future__ import annotations

import math

from dpframework.results.noisy_count_with_interval import Noisy, quantile
from dpframework.results.share_intervals import least_share, noise_at, round_down

HALVINGS = 30  # steps of the bisection for the lower end
OF_FLOOR, OF_ALL = 1 / 4, 1 / 10  # the shares of the error for the two lower ends (see the module)


def least_jaccard_if_shown(both: Noisy, apart: Noisy, error: float, floor: float, among: int) -> float:
    """Return the lower end of the interval of an index that is shown since it is above a floor (see the module).

    Parameters
    ----------
    both, apart
        The noisy count of the rows for which both sides hold, and that of the rows for which just one side holds.
    error
        The chance that the interval may miss the exact index.
    floor
        A redescription with this noise is shown if its noisy Jaccard index is at least this.
    among
        The number of candidates among which the shown ones were chosen.
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
    """Tell whether noise that lifts j above the floor has a chance below `chance` to lift it to the index shown."""
    deviation, step = noise_at(both, apart, j)
    # `both.value` is positive here: otherwise the lower end is 0, and this function is not called.
    either = both.value + max(apart.value, 0.0)
    shown = ((1 - j) * both.value - j * apart.value - step) / deviation
    return so_far_above(shown, ((floor - j) * either + step) / deviation) < chance


def so_far_above(shown: float, floor: float) -> float:
    """Return the chance that noise is at least `shown` deviations above 0, given that it is at least `floor` above.

    The result is the larger of the chances for normal and for Laplace noise. The chances for sums of both seem to lie
    in between. We have no proof of this, so the tests draw many mixtures. If `floor` is above sqrt(2) deviations, the
    chance for Laplace noise is the larger one. The normal tail at `floor` may then round to 0, so the chance for normal
    noise is computed with the tail at sqrt(2), which makes it smaller.

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
