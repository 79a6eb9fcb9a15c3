"""How many rows a table likely has, by released numbers and by what is publicly said of it.

Where noise is about as large as the table, a released number may be below 1, and a model of so few rows is of no use.
So the number that is said beforehand counts too, as a prior with a heavy tail: the logarithm of the number of rows has
a Cauchy distribution around that of the number said, and one time in two is within a factor of 2 of it. Where releases
are exact, or say clearly that there are far more rows or fewer, they decide alone. All of it is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dpframework.results import Noisy

_FACTOR = 2.0  # the number said is within it one time in two
_DEVIATIONS = 8.0  # of the released number, to both sides: where the number of rows is looked for
_TRIED = 2001  # numbers in that range, at even steps and at even factors


def number_of_rows(totals: Iterable[Noisy], rows: int | None, most: int | None, about: int | None) -> float:
    """Return how many rows there are, 1 at least.

    Parameters
    ----------
    totals
        Released numbers of rows.
    rows
        The public number of rows; None if it is secret.
    most
        The most rows that there may be, if that is public.
    about
        About how many rows there are, if that is said.

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
    """Return the mean of the number of rows, given a released one and the one that is said."""
    deviation = math.sqrt(released.variance)
    low, high = (max(released.value + side * _DEVIATIONS * deviation, 1.0) for side in (-1, 1))
    if low == high:
        return low
    tried = np.union1d(np.linspace(low, high, _TRIED), np.geomspace(low, high, _TRIED))
    far = np.log(tried / max(about, 1)) / math.log(_FACTOR)
    log_likely = -((tried - released.value) ** 2) / (2 * max(released.variance, 1e-9)) - np.log(tried * (1 + far**2))
    weights = np.exp(log_likely - log_likely.max()) * np.gradient(tried)
    return float(np.average(tried, weights=weights))
