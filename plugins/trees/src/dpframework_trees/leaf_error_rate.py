"""An upper limit of a leaf's error rate, from the numbers of its rows that are predicted wrongly and correctly.

The limit is a quantile of a beta distribution. scipy has that as well, but importing `scipy.special` takes longer than
growing a tree on 1,000 rows.
"""

from __future__ import annotations

import math
import statistics

LEVEL = 0.75  # the limit is this quantile of the beta distribution
_NORMAL = statistics.NormalDist().inv_cdf(LEVEL)
_MOST_STEPS = 200  # enough even for bisection, which halves the interval at least every other step
#: The last step is at most this share of the standard deviation, of p and of 1 - p. Its error is about its cube.
_NEAR = 1e-4
_TINY = 1e-300  # stands for 0 as a divisor in Lentz's method
_EXACT = 1e-15  # the continued fraction ends at a factor that differs from 1 by at most this


def upper_error_rate(wrong: float, right: float) -> float:
    """Return the error rate p at which `wrong` errors or fewer have the probability 1/4.

    Halley's method starts from formula 26.5.22 of Abramowitz and Stegun (1964), and bisects where a step leaves the
    interval. For a thousand rows or more, the formula is mostly so near that one step is enough.

    Parameters
    ----------
    wrong
        How many rows of a leaf are predicted wrongly, at least 0. It need not be a whole number.
    right
        How many rows are predicted correctly, more than 0. It need not be a whole number.

    Returns
    -------
    float
        The p with I_p(wrong + 1, right) = 3/4, for the regularized incomplete beta function I.

    Examples
    --------
    >>> round(upper_error_rate(0, 6), 3)  # 1 - (1/4)**(1/6)
    0.206
    """
    a, b = wrong + 1, right
    low, high = 0.0, 1.0
    deviation = math.sqrt(a * b / (a + b + 1)) / (a + b)
    rate = _first_guess(a, b)
    for _ in range(_MOST_STEPS):
        excess = regularized_beta(a, b, rate) - LEVEL
        low, high = (low, rate) if excess > 0 else (rate, high)
        density = math.exp(_log_power(a, b, rate)) / (rate * (1 - rate))
        step = excess / density if density > 0 else math.inf
        step /= max(1 - step * ((a - 1) / rate - (b - 1) / (1 - rate)) / 2, 0.5)
        after = rate - step
        if not low < after < high:
            after = (low + high) / 2
            if after in (low, high):
                return after
        elif abs(step) <= _NEAR * min(deviation, rate, 1 - rate):
            return after
        rate = after
    return rate


def _first_guess(a: float, b: float) -> float:
    """Return an approximate 3/4 quantile of a beta distribution: by formula 26.5.22 where it applies, else the mean."""
    if min(a, b) <= 1:
        return a / (a + b)
    of_a, of_b = 1 / (2 * a - 1), 1 / (2 * b - 1)
    size, bend = 2 / (of_a + of_b), (_NORMAL**2 - 3) / 6
    shift = _NORMAL * math.sqrt(size + bend) / size + (of_b - of_a) * (bend + 5 / 6 - 2 / (3 * size))
    return a / (a + b * math.exp(-2 * shift))


def regularized_beta(a: float, b: float, x: float) -> float:
    """Return I_x(a, b), for 0 < x < 1, by the continued fraction of DLMF 8.17.22."""
    if x > (a + 1) / (a + b + 2):  # Here the continued fraction of the other tail converges sooner.
        return 1 - regularized_beta(b, a, 1 - x)
    return math.exp(_log_power(a, b, x)) / a * _fraction(a, b, x)


def _log_power(a: float, b: float, x: float) -> float:
    """Return the logarithm of x**a (1 - x)**b / B(a, b)."""
    return a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)


def _fraction(a: float, b: float, x: float) -> float:
    """Return the value of the continued fraction, by Lentz's method; it takes about sqrt(a + b) steps."""
    above, below = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or _TINY)
    found = below
    for m in range(1, 10 * math.isqrt(math.ceil(a + b)) + 100):
        place = a + 2 * m
        part = m * (b - m) * x / ((place - 1) * place)
        below = 1 / ((1 + part * below) or _TINY)
        above = (1 + part / above) or _TINY
        found *= above * below
        part = -(a + m) * (a + b + m) * x / (place * (place + 1))
        below = 1 / ((1 + part * below) or _TINY)
        above = (1 + part / above) or _TINY
        factor = above * below
        found *= factor
        if -_EXACT <= factor - 1 <= _EXACT:
            break
    return found
