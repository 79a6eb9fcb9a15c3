"""The random radius of noise that is uniform on balls, drawn exactly (see `knorm` and `block_norm`).

Let D be the dimension of a space, and let N(r), the number of points of its ball of radius r, be the sum over k of h_k
C(r-k+D, D). Here C is the binomial coefficient, and h_0, ..., h_D are whole numbers of 0 or more that belong to the
space (see `knorm_ball_points`). Let the probability of radius r be proportional to N(r) q**r, where q is exp(-1 /
scale). Then the radius R is a sum of independent numbers: a k with probability proportional to h_k q**k, and D + 1
geometric numbers.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms.randomness import Randomness
from dpframework.mechanisms.uniforms import WholeNumbers, exp_bounds

_BITS = 128  # how many bits of the uniform number that chooses k are drawn at first


def geometric_sum(number: int, scale: float, randomness: Randomness) -> int:
    """Draw the sum of `number` independent k >= 0, each with probability proportional to exp(-k / scale).

    Each k is a draw of discrete Laplace noise, and negative draws are left out.
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

    A uniform number is compared with whole numbers that bound the sums of probabilities. If it has too few bits to
    decide, more bits of it are drawn.
    """

    def __init__(self, h: Sequence[int], scale: Fraction, bits: int = _BITS) -> None:
        self._h, self._scale, self._bits = h, scale, bits
        self._between: dict[int, tuple[list[int], list[int]]] = {}

    def draw(self, numbers: WholeNumbers) -> int:
        """Draw one k."""
        bits, number = self._bits, numbers.bits(self._bits)
        while True:
            below, above = self.between(bits)
            # The first k whose sum of probabilities is not below the number's upper end.
            k = bisect.bisect_left(below, number + 1)
            if k < len(below) and (k == 0 or above[k - 1] <= number):
                return k
            bits, number = 2 * bits, (number << bits) | numbers.bits(bits)

    def between(self, bits: int) -> tuple[list[int], list[int]]:
        """Return, for each k, a lower and an upper bound of 2**bits times the probability of 0, ..., k.

        The bounds are whole numbers, in one list of lower and one list of upper bounds.
        """
        if bits not in self._between:
            # All weights add up to at least h_0 = 1. So the relative error of this sum is at most its absolute error.
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
    """Balls of integer points around 0, of any radius, as a hashable value."""

    @property
    def h(self) -> tuple[int, ...]:
        """The numbers h_0, ..., h_D (see the module)."""

    @property
    def dimension(self) -> int:
        """The number D (see the module)."""

    def draw(self, radius: int, numbers: WholeNumbers) -> Sequence[int]:
        """Draw a uniform point of the ball of a radius."""

    def __hash__(self) -> int:
        """Hash the value."""


def draw_from_balls(space: BallsOfPoints, scale: float, randomness: Randomness) -> NDArray[np.int64]:
    """Draw a uniform point of a ball of random radius, shape (entries,), exactly."""
    numbers = WholeNumbers(randomness.words)
    radius = _weights(space, Fraction(scale)).draw(numbers) + geometric_sum(space.dimension + 1, scale, randomness)
    return np.array(space.draw(radius, numbers), dtype=np.int64)


@functools.lru_cache(maxsize=256)
def _weights(space: BallsOfPoints, scale: Fraction) -> RadiusWeights:
    return RadiusWeights(space.h, scale)


@functools.lru_cache(maxsize=256)
def log_normalizer(h: tuple[int, ...], dimension: int, scale: float) -> float:
    """Return the logarithm of the sum of exp(-norm / scale) over all integer points of a space (see the module).

    With h(q) as the sum of h_k q**k, it is the logarithm of h(q) / (1-q)**D.
    """
    logs = [math.log(weight) - k / scale for k, weight in enumerate(h)]
    most = max(logs)
    total = most + math.log(math.fsum(math.exp(log - most) for log in logs))
    return total - dimension * math.log(-math.expm1(-1 / scale))


def square_of_radius(h: Sequence[int], dimension: int, scale: float) -> float:
    """Return the mean of R (R + 1) over the random radius R.

    Times a second moment in the unit ball, it is a variance of the noise.
    """
    q = math.exp(-1 / scale)
    logs = np.array([math.log(weight) for weight in h]) - np.arange(len(h)) / scale
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()
    of_k = float(chances @ np.arange(len(chances)))
    spread = float(chances @ (np.arange(len(chances)) - of_k) ** 2)
    mean = of_k + (dimension + 1) * q / (1 - q)
    return mean**2 + spread + (dimension + 1) * q / (1 - q) ** 2 + mean
