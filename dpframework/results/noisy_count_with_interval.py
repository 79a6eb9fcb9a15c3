"""Noisy counts, with the variance of their noise and the confidence intervals that follow from it.

The noise must be discrete Laplace or discrete Gaussian noise, or a sum of such noises that are independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from statistics import NormalDist
from typing import Any, final

import attrs
import numpy as np

from dpframework.facts.errors import InputError
from dpframework.facts.parameter_checks import finite_from_0, require_level
from dpframework.facts.value_checks import as_float

CONFIDENCE = 0.95  # the default level of confidence intervals


def _finite(_: Any, attribute: attrs.Attribute[float], value: float) -> None:
    if not math.isfinite(value):
        raise InputError(f"the {attribute.name} of a noisy count must be finite, not {value}")


@final
@attrs.frozen
class Noisy:
    """A released count, with the variance of its noise.

    Sums and differences of counts with independent noise have the sum of their variances. A public number has the
    variance 0.

    Attributes
    ----------
    value
        The released count; it may be negative.
    variance
        The variance of the noise. For Gaussian noise, this is the `scale` of the calibration. For Laplace noise, use
        the method `laplace`.
    correlated
        The numbers of the tables behind the count, for tables whose cells have correlated noise. If two counts come
        from one such table, their sum or difference gets the largest variance that any correlation can cause.

    Examples
    --------
    >>> both = Noisy(400, 128) + Noisy(112, 128)
    >>> both, str(both)
    (Noisy(value=512.0, variance=256.0), '512 ± 35')
    """

    value: float = attrs.field(converter=as_float, validator=_finite)
    variance: float = attrs.field(converter=as_float, validator=finite_from_0("the variance of a count's noise"))
    correlated: frozenset[int] = attrs.field(default=frozenset(), kw_only=True, eq=False, repr=False)

    @classmethod
    def laplace(cls, value: float, scale: float) -> Noisy:
        """Return a count with discrete Laplace noise of this scale. The calibration of the step has the scale.

        Examples
        --------
        >>> round(Noisy.laplace(400, scale=10).variance, 2)
        199.83
        """
        return cls(value, discrete_laplace_variance(scale))

    @classmethod
    def mean(cls, numbers: Iterable[Noisy]) -> Noisy:
        """Return the weighted mean with the smallest variance, of noisy versions of one number.

        The noise of the versions must be uncorrelated.

        Examples
        --------
        >>> Noisy.mean([Noisy(400, 30), Noisy(430, 60)])
        Noisy(value=410.0, variance=20.0)
        """
        weights, values = np.array([(1 / max(one.variance, 1e-12), one.value) for one in numbers]).T
        return cls(float(weights @ values / weights.sum()), float(1 / weights.sum()))

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        return math.sqrt(self.variance)

    def margin(self, level: float = CONFIDENCE) -> float:
        """Return the half-width of `interval`: with at least the probability `level`, the noise is at most this."""
        return self.margin_of(self.variance, level)

    @staticmethod
    def margin_of(variance: float, level: float = CONFIDENCE) -> float:
        """Return the `margin` of a count whose noise has this variance."""
        step = 0.5 if variance > 0 else 0.0  # half a row, since noise is a whole number of rows
        return quantile(error_of(level)) * heavy_deviation(variance) + step

    def interval(self, level: float = CONFIDENCE) -> tuple[float, float]:
        """Return the interval that holds the exact count with at least this probability, on any table.

        Raises
        ------
        InputError
            If the level is not between 0 and 1.
        """
        margin = self.margin(level)
        return self.value - margin, self.value + margin

    def __add__(self, other: Noisy | float) -> Noisy:
        """Add a count, or a public number."""
        return self._combined(as_noisy(other), 1)

    __radd__ = __add__  # so that `sum` works on noisy counts

    def __sub__(self, other: Noisy | float) -> Noisy:
        """Subtract a count, or a public number."""
        return self._combined(as_noisy(other), -1)

    def _combined(self, other: Noisy, sign: int) -> Noisy:
        """Add a count with a sign. For any correlation, the deviation is at most the sum of both (Cauchy, Schwarz)."""
        variance = self.variance + other.variance
        if self.correlated & other.correlated:
            variance = (self.deviation + other.deviation) ** 2
        return Noisy(self.value + sign * other.value, variance, correlated=self.correlated | other.correlated)

    def to_dict(self) -> dict[str, float]:
        """Return the form {"value": value, "variance": variance}."""
        return {"value": self.value, "variance": self.variance}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Noisy:
        """Read the output of `to_dict`.

        Raises
        ------
        InputError
            If the form is not that of a noisy count.
        """
        try:
            return cls(form["value"], form["variance"])
        except (KeyError, TypeError, ValueError):
            raise InputError("a noisy count is written as its 'value' and its 'variance', two finite numbers") from None

    def __str__(self) -> str:
        """Write the count and the half-width of its 95 % interval."""
        return f"{self.value:.0f} ± {math.ceil(self.margin())}" if self.variance else f"{self.value:.0f}"


def discrete_laplace_variance(scale: float) -> float:
    """Return the variance of integer noise k with probability proportional to `exp(-|k| / scale)`.

    It is 2 q / (1 - q)**2 with q = exp(-1 / scale); see Ghosh, Roughgarden and Sundararajan 2009.
    """
    return 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2


def as_noisy(number: Noisy | float) -> Noisy:
    """Return a noisy count as it is, or a public number as a count without noise."""
    return number if isinstance(number, Noisy) else Noisy(number, 0)


def error_of(level: float) -> float:
    """Return the probability that an interval misses the exact number: 1 minus the confidence level.

    Raises
    ------
    InputError
        If the level is not between 0 and 1.
    """
    require_level(level, "a confidence level")
    return 1 - level


def quantile(error: float) -> float:
    """Return the number of standard deviations that noise exceeds, on either side, with at most this probability.

    The noise is a sum of independent Laplace and normal noise. Such a sum is normal with a random variance. There are
    two extreme cases: the variance is constant (normal noise alone), or it has an exponential distribution (Laplace
    noise alone). We take the larger of the quantiles in these two cases as a bound for all sums. Up to a level (1 -
    `error`) of 0.9 the quantile of normal noise is larger, and from 0.92 on the quantile of Laplace noise. The bound is
    not proved. Tests compare it with the quantiles of many such sums.
    """
    return max(-math.log(error) / math.sqrt(2), -NormalDist().inv_cdf(error / 2))


def heavy_deviation(variance: float) -> float:
    """Return the standard deviation that intervals use. It is at least the square root of the variance.

    Take the scale of discrete Laplace noise with this variance. The result is the standard deviation of continuous
    Laplace noise of that scale. It is larger than the deviation of the discrete noise. So intervals also cover the
    tails of noise that is nearly always 0.
    """
    return 1 / (math.sqrt(2) * math.asinh(1 / math.sqrt(2 * variance))) if variance > 0 else 0.0
