"""The noise of a group of blocks, its space, its draws and its moments.

A group of blocks of coordinates has the norm G(z) = max over blocks of the l1 norm of z's part, and noise of a density
in proportion to exp(-G(z) / scale), the K-norm mechanism (Hardt and Talwar 2010). There are three spaces:

- **free**: all integer vectors, K a product of l1 balls. Blocks of one coordinate make K a cube.
- **balanced**, of several outputs: the numbers of each column add up to 0, since a row's probabilities and its outcome
  both add up to 1.
- **with one sum**: those that a row's change may be, if each block is a histogram that counts the row once. Let r be
  what the row adds to its cell in each: then blocks of several coordinates all have the sum r, a block of one
  coordinate is the difference of a histogram of two cells, and the intercept's coordinate is r. K is the hull of all
  such changes: `dpframework.mechanisms.knorm` shows that in the norm of two cells max(abs(r), abs(difference)) is their
  l1 norm. Where all blocks have one coordinate, this is the free space.

Noise of fewer dimensions is less noise.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms import Balls, Randomness, draw_from_balls, unit_ball_moments
from dpframework_trees.additive.balanced_noise import balanced_noise
from dpframework_trees.additive.grouping import cells_of_block, dimensions
from dpframework_trees.additive.noise import free_noise


@final
@attrs.frozen
class GroupNoise:
    """The noise of a group.

    Attributes
    ----------
    blocks
        The number of columns of each block. The intercept's is the last, if the group has it.
    outputs
        The number of coordinates of each column.
    one_sum
        Whether it lies in the space with one sum.
    intercept
        Whether the group has the intercept.
    """

    blocks: tuple[int, ...]
    outputs: int
    one_sum: bool
    intercept: bool

    @classmethod
    def of(cls, blocks: Sequence[int], outputs: int, intercept: bool) -> GroupNoise:
        """Return the noise of some blocks, in the smallest space."""
        one_sum = outputs == 1 and max(blocks) > 1 and len(blocks) > 1
        return cls(tuple(blocks), outputs, one_sum, intercept)

    @property
    def histograms(self) -> tuple[int, ...]:
        """The numbers of cells of the histograms of a group with one sum."""
        return tuple(map(cells_of_block, self._functions))

    @property
    def _functions(self) -> tuple[int, ...]:
        """The blocks but for the intercept's."""
        return self.blocks[:-1] if self.intercept else self.blocks

    @property
    def dimension(self) -> int:
        """Of the space."""
        if self.one_sum:
            return dimensions(self.histograms)
        return sum(self.blocks) * max(self.outputs - 1, 1)

    def draw(self, scale: float, randomness: Randomness) -> NDArray[np.int64]:
        """Draw integer noise, exactly, block by block, shape (columns, outputs)."""
        if self.outputs > 1:  # a depth is half of an l1 norm
            return balanced_noise(self.blocks, self.outputs, scale / 2, randomness)
        return self._draw_columns(scale, randomness)[:, None]

    def _draw_columns(self, scale: float, randomness: Randomness) -> NDArray[np.int64]:
        if not self.one_sum:
            return free_noise(self.blocks, scale, randomness)
        sizes = self.histograms
        if len(sizes) == 1:
            drawn = free_noise(sizes, scale, randomness)
        else:
            drawn = draw_from_balls(_balls(sizes), scale, randomness)
        parts = np.split(drawn, np.cumsum(sizes)[:-1])
        total = parts[0].sum()
        found = [np.diff(part) if m == 1 else part for part, m in zip(parts, self._functions, strict=True)]
        return np.concatenate([*found, [total]] if self.intercept else found)

    @functools.cached_property
    def squares(self) -> tuple[float, ...]:
        """About the mean square of each block's coordinates, over the scale's square.

        It is that of a linear function of length 1, with the sum 0 over outputs, and over a block's columns with one
        sum.
        """
        radius = self._square_of_radius
        if self.outputs > 1:
            return tuple(radius / 4 * _square_of_balanced(m, self.outputs) for m in self.blocks)
        if not self.one_sum:  # a coordinate of an l1 ball of radius 1 has the mean square 2 / ((m + 1) (m + 2))
            return tuple(radius * 2 / ((m + 1) * (m + 2)) for m in self.blocks)
        moments = unit_ball_moments(self.histograms)
        # the difference of two cells has a length of the root of 2
        found = [moments.difference(size) * (2 if size == 2 else 1) for size in self.histograms]
        return tuple(radius * one for one in (*found, *([moments.total] if self.intercept else [])))

    @functools.cached_property
    def squares_of_means(self) -> tuple[float, ...]:
        """About the mean square of each block's coordinates along the unit vector of equal ones."""
        if not self.one_sum:
            return self.squares
        return tuple(self.square_of_sum / m for m in self.blocks)

    @functools.cached_property
    def square_of_sum(self) -> float:
        """About the mean square of what all blocks share, 0 where nothing is shared."""
        return self._square_of_radius * unit_ball_moments(self.histograms).total if self.one_sum else 0.0

    @property
    def _square_of_radius(self) -> int:
        """About the mean square of the radius of a uniform point's ball, over the scale's square."""
        return (self.dimension + 1) * (self.dimension + 2)

    @functools.cached_property
    def log_volume(self) -> float:
        """The logarithm of the volume of K in the space's coordinates, times the factorial of its dimension.

        Coordinates are those of the blocks, but for the last one of each column of several outputs, and with one sum
        the last one of all blocks of several but the first.
        """
        d = self.dimension
        if self.outputs > 1:  # see `balanced_noise`: B**m / d! is the volume of a block of m rows by depth
            most, rows = math.log(math.comb(2 * self.outputs - 2, self.outputs - 1)), sum(self.blocks)
            of_blocks = sum(math.lgamma(m * (self.outputs - 1) + 1) for m in self.blocks)
            return rows * most - of_blocks + math.lgamma(d + 1) - d * math.log(2)
        if not self.one_sum:
            return d * math.log(2) - sum(math.lgamma(m + 1) for m in self.blocks) + math.lgamma(d + 1)
        sizes = self.histograms
        # of the integer points; where a difference is a coordinate, these are half of all
        points = sizes[0] * math.log(2) if len(sizes) == 1 else math.log(sum(_balls(sizes).h))
        return points + sizes.count(2) * math.log(2)

    @property
    def rounded(self) -> int:
        """The largest norm of what 1 or -1 in each coordinate of the space, or less, adds up to.

        With one sum r, the last of m cells is r less the others, and changes by m. Of K outputs the last changes by as
        much as all others.
        """
        if self.one_sum:
            return 2 * max(self.histograms) - 1
        return max(self.blocks) * max(2 * self.outputs - 2, 1)

    @property
    def square_of_half(self) -> float:
        """The largest squared length of what a half in each coordinate of the space, or less, adds up to."""
        if not self.one_sum:  # of K outputs the last has K - 1 halves
            return sum(self.blocks) * max(self.outputs * (self.outputs - 1), 1) / 4
        return (sum(9 if m == 1 else m - 1 + m**2 for m in self._functions) + self.intercept) / 4


def _square_of_balanced(rows: int, outputs: int) -> float:
    """Return the mean square of a linear function with the sum 0 over outputs, of a block's point of depth 1 at most.

    Depths of rows are Dirichlet distributed (see `balanced_noise`), each with K - 1 of d + 1 parts. Of a row of depth n
    with p numbers below 0, these and the others are uniform on simplices, and the mean of the sum of squares of k
    numbers that add up to n is 2 n**2 / (k + 1).
    """
    k, d = outputs, rows * (outputs - 1)
    ways = [math.comb(k, p) * math.comb(k - 2, p - 1) for p in range(1, k)]
    squares = [Fraction(2, p + 1) + Fraction(2, k - p + 1) for p in range(1, k)]
    of_row = sum(way * square for way, square in zip(ways, squares, strict=True)) / sum(ways)
    return float(of_row * k / ((d + 1) * (d + 2)))


@functools.lru_cache(maxsize=64)
def _balls(sizes: tuple[int, ...]) -> Balls:
    return Balls(sizes, same_rows=False)
