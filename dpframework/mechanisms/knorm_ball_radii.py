"""Exact draws of a random radius, for noise that is uniform on a ball of that radius (see `knorm` and `block_knorm`).

Let D be the dimension of a space of integer points, and let N(r) be the number of points in its ball of radius r. For
the spaces used here, N(r) is the sum over k of h_k C(r-k+D, D), where C is the binomial coefficient. The whole numbers
h_0, ..., h_D are 0 or more, and depend on the space (see `knorm_ball_polynomials`). Let the probability of radius r be
proportional to N(r) q**r, where q is exp(-1 / scale). Then the radius R is a sum of independent numbers: a k with
probability proportional to h_k q**k, and D + 1 geometric numbers with ratio q.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms.knorm_ball_polynomials import BallPolynomials
from dpframework.mechanisms.randomness import Randomness
from dpframework.mechanisms.uniforms import WholeNumbers, exp_bounds

_BITS = 128  # how many bits of the uniform number that chooses k are drawn at first


def geometric_sum(number: int, scale: float, randomness: Randomness) -> int:
    """Draw the sum of `number` independent k >= 0, each with probability proportional to exp(-k / scale).

    Each k is drawn as discrete Laplace noise. Negative draws are dropped.
    """
    found, lacking = 0, number
    while lacking:
        drawn = randomness.discrete_laplace(2 * lacking + 8, scale)
        kept = drawn[drawn >= 0][:lacking]
        found, lacking = found + int(kept.sum()), lacking - len(kept)
    return found


@final
class RadiusWeights:
    """Draws k with probability proportional to h_k exp(-k / scale), exactly.

    A uniform number is compared with whole numbers that bound the cumulative probabilities. If the bits drawn so far do
    not decide the comparison, more bits of the uniform number are drawn.
    """

    def __init__(self, h: Sequence[int], scale: Fraction, bits: int = _BITS) -> None:
        self._h, self._scale, self._bits = h, scale, bits
        self._between: dict[int, tuple[list[int], list[int]]] = {}

    def draw(self, numbers: WholeNumbers) -> int:
        """Draw one k."""
        bits, number = self._bits, numbers.bits(self._bits)
        while True:
            below, above = self.between(bits)
            # The uniform number lies between `number` and `number` + 1, in units of 2**-bits. Find the first k whose
            # cumulative probability is surely at least the upper end.
            k = bisect.bisect_left(below, number + 1)
            if k < len(below) and (k == 0 or above[k - 1] <= number):
                return k
            bits, number = 2 * bits, (number << bits) | numbers.bits(bits)

    def between(self, bits: int) -> tuple[list[int], list[int]]:
        """Return, for each k, a lower and an upper bound of 2**bits times the probability that at most k is drawn.

        The bounds are whole numbers. The first list holds all lower bounds, and the second all upper bounds.
        """
        if bits not in self._between:
            # The weights h_k q**k add up to at least 1, since h_0 is 1. So the sum's relative error is at most its
            # absolute error.
            wide = bits + 64 + sum(self._h).bit_length()
            low, high = exp_bounds(-1 / self._scale, wide)
            power_low = power_high = 1 << wide
            lows, highs = [0], [0]
            for weight in self._h:
                lows.append(lows[-1] + weight * power_low)
                highs.append(highs[-1] + weight * power_high)
                power_low, power_high = power_low * low >> wide, -(-power_high * high >> wide)
            each = list(zip(lows[1:], highs[1:], strict=True))
            below = [(least << bits) // (least + highs[-1] - most) for least, most in each]
            above = [-((-most << bits) // (most + lows[-1] - least)) for least, most in each]
            self._between[bits] = below, above
        return self._between[bits]


class BallsOfPoints(Protocol):
    """A space of integer points, with its balls around 0 of any radius. It is hashable."""

    @property
    def polynomials(self) -> BallPolynomials:
        """The number of points of a ball and the sums of squares over them. The h_k are `polynomials.points`."""

    @property
    def dimension(self) -> int:
        """The number D (see the module)."""

    def draw(self, radius: int, numbers: WholeNumbers) -> Sequence[int]:
        """Draw a uniform point of the ball of a radius."""

    def __hash__(self) -> int:
        """Return a hash, since the weights of radii are cached with the space as their key."""


def draw_from_balls(space: BallsOfPoints, scale: float, randomness: Randomness) -> NDArray[np.int64]:
    """Draw, exactly, a uniform point of a ball of random radius, shape (entries,)."""
    numbers = WholeNumbers(randomness.words)
    radius = _weights(space, Fraction(scale)).draw(numbers) + geometric_sum(space.dimension + 1, scale, randomness)
    return np.array(space.draw(radius, numbers), dtype=np.int64)


@functools.lru_cache(maxsize=256)
def _weights(space: BallsOfPoints, scale: Fraction) -> RadiusWeights:
    return RadiusWeights(space.polynomials.points, scale)


@functools.lru_cache(maxsize=256)
def log_normalizer(space: BallsOfPoints, scale: float) -> float:
    """Return the logarithm of the sum of exp(-norm / scale) over all integer points of a space (see the module).

    Let h(q) be the sum of h_k q**k. Then the result is the logarithm of h(q) / (1-q)**D.
    """
    return _log_of_series(space.polynomials.points, scale) - space.dimension * math.log(-math.expm1(-1 / scale))


@functools.lru_cache(maxsize=256)
def mean_squares(space: BallsOfPoints, scale: float) -> Mapping[int, float]:
    """Return the variance (mean square) of an entry of the noise, by the size of the histogram or block that it is in.

    Let g_k be the coefficients of the sums of squares of this entry (see `BallPolynomials`), and g(q) the sum of
    g_k q**k. The sum of the squares over all integer points, each times exp(-norm / scale), is g(q) / (1-q)**(D+2). So
    the mean square is g(q) / (h(q) (1-q)**2).
    """
    points, known = _log_of_series(space.polynomials.points, scale), -2 * math.log(-math.expm1(-1 / scale))
    squares = space.polynomials.squares
    return {size: math.exp(_log_of_series(series, scale) - points + known) for size, series in squares.items()}


def _log_of_series(coefficients: Sequence[int], scale: float) -> float:
    """Return the logarithm of the sum over k of c_k exp(-k / scale)."""
    logs = [(math.log(abs(c)) - k / scale, 1 if c > 0 else -1) for k, c in enumerate(coefficients) if c]
    most = max(log for log, _ in logs)
    return most + math.log(math.fsum(sign * math.exp(log - most) for log, sign in logs))
