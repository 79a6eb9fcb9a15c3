"""The distributions of continuous noise, from which the errors of results with several noisy numbers are computed.

Noise is drawn on a lattice whose step is about 2**-20 of the sensitivity. Its difference from continuous noise is too
small to show in a printed figure.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Protocol, final

import attrs
import numpy as np
from numpy.typing import NDArray

#: The sum of more Laplace draws than this is treated as normal. For at most this many draws, the law is exact.
MOST_TERMS = 1_000
HALVINGS = 60  # how often an interval is halved, which makes it 2**-60 times as wide


class NoiseLaw(Protocol):
    """A distribution that is symmetric around 0, as a hashable value."""

    def __hash__(self) -> int:
        """Return a hash, since computed bounds are cached with the law as their key."""
        ...

    def at_most(self, noise: NDArray[Any]) -> NDArray[np.float64]:
        """Return, for each number in `noise`, the probability that the noise is at most this number."""
        ...

    def quantile(self, probability: NDArray[Any]) -> NDArray[np.float64]:
        """Return, for each probability, the number x such that the noise is at most x with this probability."""
        ...

    def sum_of(self, number: int) -> NoiseLaw:
        """Return the distribution of the sum of `number` independent copies of the noise."""
        ...


@final
@attrs.frozen
class LaplaceLaw:
    """The distribution of Laplace noise of this scale."""

    scale: float

    def at_most(self, noise: NDArray[Any]) -> NDArray[np.float64]:
        """See `NoiseLaw`."""
        tail = np.exp(-np.abs(noise) / self.scale) / 2
        return np.asarray(np.where(noise < 0, tail, 1 - tail))

    def quantile(self, probability: NDArray[Any]) -> NDArray[np.float64]:
        """See `NoiseLaw`."""
        tail = np.minimum(probability, 1 - probability)
        return np.asarray(-self.scale * np.sign(probability - 0.5) * np.log(2 * tail))

    def sum_of(self, number: int) -> NoiseLaw:
        """See `NoiseLaw`. The sum of more than `MOST_TERMS` draws is treated as normal."""
        if number == 1:
            return self
        if number > MOST_TERMS:
            return NormalLaw(self.scale * math.sqrt(2 * number))
        return LaplaceSumLaw(self.scale, number)


@final
@attrs.frozen
class LaplaceSumLaw:
    """The distribution of the sum of several independent draws of Laplace noise of this scale.

    The sum of k draws is the difference of two gamma variables of shape k. Let the scale be 1, let G be a gamma
    variable of shape k, and let x >= 0. Then

        Pr[sum > x] = E Q(k, x + G) = sum over i < k of Poisson(i; x) Pr[NB <= k - 1 - i],

    where Q is the tail of G, Poisson(i; x) is the probability of i under a Poisson distribution of mean x, and NB is
    the number of failures before the k-th success of a fair coin.

    Examples
    --------
    >>> law = LaplaceSumLaw(10, 9)
    >>> round(float(law.quantile(np.array(0.975))), 1)  # 83.2 for the normal law of equal variance
    84.2
    """

    scale: float
    number: int

    def at_most(self, noise: NDArray[Any]) -> NDArray[np.float64]:
        """See `NoiseLaw`."""
        distance = np.abs(np.asarray(noise, dtype=float))[..., None] / self.scale
        terms, factorials = np.arange(self.number), np.array([math.lgamma(k + 1) for k in range(self.number)])
        with np.errstate(divide="ignore", invalid="ignore"):
            powers = np.where(terms == 0, 0.0, terms * np.log(distance))
        tail = (np.exp(powers - distance - factorials) * _coin_tails(self.number)).sum(axis=-1)
        return np.asarray(np.where(noise < 0, tail, 1 - tail))

    def quantile(self, probability: NDArray[Any]) -> NDArray[np.float64]:
        """See `NoiseLaw`. It is found by bisection, to the precision of floats."""
        probability = np.asarray(probability, dtype=float)
        tail = np.minimum(probability, 1 - probability)
        low, high = np.zeros(probability.shape), -self.scale * self.number * np.log(tail / 2)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            beyond = self.at_most(-middle) > tail
            low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
        return np.asarray(np.sign(probability - 0.5) * high)

    def sum_of(self, number: int) -> NoiseLaw:
        """See `NoiseLaw`."""
        return LaplaceLaw(self.scale).sum_of(self.number * number)


@final
@attrs.frozen
class NormalLaw:
    """The distribution of normal noise of this standard deviation."""

    deviation: float

    def at_most(self, noise: NDArray[Any]) -> NDArray[np.float64]:
        """See `NoiseLaw`."""
        from scipy.special import ndtr

        return np.asarray(ndtr(noise / self.deviation))

    def quantile(self, probability: NDArray[Any]) -> NDArray[np.float64]:
        """See `NoiseLaw`."""
        from scipy.special import ndtri

        return np.asarray(self.deviation * ndtri(probability))

    def sum_of(self, number: int) -> NoiseLaw:
        """See `NoiseLaw`."""
        return NormalLaw(self.deviation * math.sqrt(number))


@functools.lru_cache(maxsize=64)
def _coin_tails(m: int) -> NDArray[np.float64]:
    """Return the probability of m or more heads in 2 m - 1 - k tosses of a coin, for k = 0, ..., m - 1."""
    # This is scipy's betainc(m, m - k, 1/2), but planning must not load scipy. One more toss adds half of the
    # probability that the tosses before it show exactly m - 1 heads.
    chance = 0.5**m
    found = [chance]
    for tosses in range(m, 2 * m - 1):
        ways = math.lgamma(tosses + 1) - math.lgamma(m) - math.lgamma(tosses - m + 2)
        chance += math.exp(ways - (tosses + 1) * math.log(2))
        found.append(chance)
    return np.array(found[::-1])
