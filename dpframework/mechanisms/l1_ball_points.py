"""Integer points of products of l1 balls of equal radius, counted and drawn uniformly (see `block_knorm`)."""

from __future__ import annotations

import functools
import math
from collections import Counter
from math import comb
from typing import final

import attrs

from dpframework.mechanisms.ball_radii import h_of
from dpframework.mechanisms.uniforms import WholeNumbers


def points_of_ball(size: int, radius: int) -> int:
    """Return how many integer vectors of `size` numbers have an l1 norm of at most `radius`.

    For each j, count the choices of j positions for numbers other than 0, of their signs, and of j positive whole
    numbers whose sum is at most `radius`.

    Examples
    --------
    >>> points_of_ball(2, 1), points_of_ball(1, 3)
    (5, 7)
    """
    return sum(comb(size, j) * comb(radius, j) << j for j in range(min(size, radius) + 1))


def draw_from_ball(size: int, radius: int, numbers: WholeNumbers) -> list[int]:
    """Draw one of the vectors that `points_of_ball` counts, uniformly."""
    position = numbers.below(points_of_ball(size, radius))
    for j in range(min(size, radius) + 1):
        ways = comb(size, j) * comb(radius, j) << j
        if position < ways:
            break
        position -= ways
    found, before = [0] * size, -1
    # A subset of j numbers among 0, ..., radius - 1 stands for j positive steps whose sum is at most `radius`.
    for place, end in zip(numbers.subset(size, j), numbers.subset(radius, j), strict=True):
        step, before = end - before, end
        found[place] = -step if numbers.bits(1) else step
    return found


# Not slotted: the cached property needs an instance dictionary.
@final
@attrs.frozen(slots=False)
class CrossPolytopes:
    """Products of l1 balls (cross-polytopes) of equal radius. A product has one ball for each block.

    Attributes
    ----------
    sizes
        How many numbers each block has, 1 or more.
    """

    sizes: tuple[int, ...]

    @property
    def dimension(self) -> int:
        """The dimension D: how many numbers all blocks have together."""
        return sum(self.sizes)

    @functools.cached_property
    def _alike(self) -> tuple[tuple[int, int], ...]:
        return tuple(Counter(self.sizes).items())

    def number(self, radius: int) -> int:
        """Return the number of points for this radius.

        It is equal to the sum over k of h_k C(radius - k + D, D), where C is the binomial coefficient, D is the
        dimension, and the h_k are those of `h`.
        """
        return math.prod(points_of_ball(size, radius) ** times for size, times in self._alike)

    @functools.cached_property
    def h(self) -> tuple[int, ...]:
        """The numbers h_k, k = 0, ..., D, from which the number of points of every radius follows (see `number`).

        A product of cross-polytopes has integer vertices, and its facets are {z: l(z) = 1}, where l is a linear form
        with coefficients 1, 0 and -1. So, as in `knorm_ball_points.Balls.h`, each h_k is a whole number of 0 or more,
        and h_k = h_(D-k).
        """
        return h_of([self.number(radius) for radius in range(self.dimension // 2 + 1)], self.dimension)

    def draw(self, radius: int, numbers: WholeNumbers) -> list[int]:
        """Draw a uniform point, one block after another."""
        return [z for size in self.sizes for z in draw_from_ball(size, radius, numbers)]


@functools.lru_cache(maxsize=64)
def cross_polytopes(sizes: tuple[int, ...]) -> CrossPolytopes:
    """Return the products of balls with their h_k, computed once from public facts."""
    return CrossPolytopes(sizes)
