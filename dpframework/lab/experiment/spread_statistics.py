"""The spread of measured values: the mean and the median with confidence intervals, and quartiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95


@final
@attrs.frozen
class Spread:
    """The description of a sample of measured values.

    Attributes
    ----------
    n
        The number of values.
    mean, sd
        The mean, and the standard deviation with n - 1 in the denominator (NaN for one value).
    mean_low, mean_high
        Student's 95 % confidence interval of the mean; NaN for one value. The interval is exact for normal values, and
        close for ten or more values that are not too skewed.
    median, q1, q3
        The median and the quartiles, interpolated linearly.
    median_low, median_high
        The confidence interval of the median between order statistics. For any distribution, it holds the median with a
        probability of at least 95 %. NaN for fewer than six values, which are too few for such an interval.
    """

    n: int
    mean: float
    sd: float
    mean_low: float
    mean_high: float
    median: float
    q1: float
    q3: float
    median_low: float
    median_high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Describe at least one value, none of them NaN.

        Examples
        --------
        >>> found = Spread.of([1, 2, 3, 4, 5, 9])
        >>> found.mean, found.median, (found.median_low, found.median_high)
        (4.0, 3.5, (1.0, 9.0))
        """
        from scipy.special import stdtrit

        sample = np.sort(np.asarray(values, dtype=np.float64))
        with np.errstate(invalid="ignore"):  # values may be infinite
            mean = float(sample.mean())
            sd = float(sample.std(ddof=1)) if len(sample) > 1 else math.nan
            q1, median, q3 = (float(q) for q in np.quantile(sample, [0.25, 0.5, 0.75]))
        if len(sample) > 1 and sample[0] == sample[-1] and math.isfinite(sample[0]):
            mean, sd = float(sample[0]), 0.0  # exact, where rounding may change the last digit
        n = len(sample)
        # `half` is half the length of Student's interval, NaN for one value ("The probable error of a mean", Biometrika
        # 6, 1908).
        half = float(stdtrit(n - 1, (1 + CONFIDENCE) / 2)) * sd / math.sqrt(n)
        low, high = median_interval(sample)
        return cls(len(sample), mean, sd, mean - half, mean + half, median, q1, q3, low, high)

    def estimate(self, statistic: str) -> tuple[float, float, float]:
        """Return the statistic, and the lower and upper end that tables and plots show with it.

        For "mean" and "median" these are the ends of a confidence interval. For "quartiles" the estimate is the middle
        quartile, and the ends are the other two.
        """
        match statistic:
            case "median":
                return self.median, self.median_low, self.median_high
            case "quartiles":
                return self.median, self.q1, self.q3
        return self.mean, self.mean_low, self.mean_high

    def to_dict(self) -> dict[str, Any]:
        """Return every number by name."""
        return attrs.asdict(self)


def median_interval(ordered: Sequence[float] | NDArray[np.float64]) -> tuple[float, float]:
    """Return the narrowest symmetric 95 % interval of order statistics for the median, or NaN if there is none.

    The k-th smallest of n values exceeds the median with a probability of at most P(B < k), where B is binomial with n
    trials of probability 1/2 (David and Nagaraja, "Order Statistics", 3rd edition, section 7.1).

    Parameters
    ----------
    ordered
        The values in increasing order.

    Examples
    --------
    >>> median_interval([1, 2, 3, 4, 5, 6, 7, 8, 9])
    (2.0, 8.0)
    """
    n, below, k = len(ordered), 0.0, 0
    while below + math.comb(n, k) / 2**n <= (1 - CONFIDENCE) / 2:  # ends before the sum reaches a half
        below += math.comb(n, k) / 2**n
        k += 1
    return (float(ordered[k - 1]), float(ordered[n - k])) if k else (math.nan, math.nan)
