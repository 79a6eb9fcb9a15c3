"""The likely number of rows of a table, from released numbers and from what is declared about it.

If noise is about as large as the number of rows, a released number may be below 1, and a model of less than one row is
useless. So the declared approximate number counts too, as a prior with a heavy tail. The logarithm of the number of
rows has a Cauchy distribution around that of the declared number. With probability 1/2 the two numbers are within a
factor of 2. Where releases are exact, or clearly say that there are far more or far fewer rows, they decide alone. All
of it is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dpframework.results import Noisy

_FACTOR = 2.0  # the true and the declared number are within this factor with probability 1/2
_DEVIATIONS = 8.0  # how many standard deviations around the released number are searched, to both sides
_TRIED = 2001  # how many numbers in that range are tried at equal steps, and as many again at equal ratios


def number_of_rows(totals: Iterable[Noisy], rows: int | None, most: int | None, about: int | None) -> float:
    """Return the estimated number of rows, at least 1.

    Parameters
    ----------
    totals
        The released numbers of rows, with the variances of their noise.
    rows
        The public number of rows; None if it is private.
    most
        The largest number of rows that is possible; None if it is not public.
    about
        The declared approximate number of rows; None if there is none.

    Examples
    --------
    >>> number_of_rows([Noisy(-20, 90_000.0)], None, None, None)
    1.0
    >>> round(number_of_rows([Noisy(-20, 90_000.0)], None, None, 400))
    214
    >>> round(number_of_rows([Noisy(5000, 90_000.0)], None, None, 400))
    4968
    """
    if rows is not None:
        return float(max(rows, 1))
    released = Noisy.mean(totals)
    found = released.value if about is None else _likely(released, about)
    return max(found if most is None else min(found, most), 1.0)


def _likely(released: Noisy, about: int) -> float:
    """Return the expected number of rows, given a released number and the declared one."""
    deviation = math.sqrt(released.variance)
    low, high = (max(released.value + side * _DEVIATIONS * deviation, 1.0) for side in (-1, 1))
    if low == high:
        return low
    tried = np.union1d(np.linspace(low, high, _TRIED), np.geomspace(low, high, _TRIED))
    far = np.log(tried / max(about, 1)) / math.log(_FACTOR)
    log_likely = -((tried - released.value) ** 2) / (2 * max(released.variance, 1e-9)) - np.log(tried * (1 + far**2))
    weights = np.exp(log_likely - log_likely.max()) * np.gradient(tried)
    return float(np.average(tried, weights=weights))
