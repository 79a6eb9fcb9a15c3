"""The noise of a group of blocks, its space, its draws and its moments.

A group of blocks of coordinates has the norm G(z) = max over blocks of the l1 norm of z's part, and noise of a density
in proportion to exp(-G(z) / scale), the K-norm mechanism (Hardt and Talwar 2010). There are two spaces:

- **free**: all integer vectors, K a product of l1 balls. Blocks of one coordinate make K a cube.
- **with one sum**: those that a row's change may be, if each block is a histogram that counts the row once. Let r be
  what the row adds to its cell in each: then blocks of several coordinates all have the sum r, a block of one
  coordinate is the difference of a histogram of two cells, and the intercept's coordinate is r. K is the hull of all
  such changes: `dpframework.mechanisms.knorm` shows that in the norm of two cells max(abs(r), abs(difference)) is their
  l1 norm. Noise of fewer dimensions is less noise. (Where all blocks have one coordinate the two spaces are one.)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms import Balls, Randomness, draw_from_balls, unit_ball_moments
from dpframework_trees.additive.grouping import cells_of_block, dimensions
from dpframework_trees.additive.noise import free_noise


@final
@attrs.frozen
class GroupNoise:
    """The noise of a group.

    Attributes
    ----------
    blocks
        The number of coordinates of each block. The intercept's is the last, if the group has it.
    one_sum
        Whether it lies in the space with one sum.
    intercept
        Whether the group has the intercept.
    """

    blocks: tuple[int, ...]
    one_sum: bool
    intercept: bool

    @classmethod
    def of(cls, blocks: Sequence[int], one_output: bool, intercept: bool) -> GroupNoise:
        """Return the noise of some blocks, in the smaller space where that is one."""
        one_sum = one_output and max(blocks) > 1 and len(blocks) > 1
        return cls(tuple(blocks), one_sum, intercept)

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
        return dimensions(self.histograms) if self.one_sum else sum(self.blocks)

    def draw(self, scale: float, randomness: Randomness) -> NDArray[np.int64]:
        """Draw integer noise, exactly, block by block, shape (coordinates,)."""
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
        """About the mean square of each block's coordinates, a mean of theirs aside, over the scale's square."""
        radius = (self.dimension + 1) * (self.dimension + 2)
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
        radius = (self.dimension + 1) * (self.dimension + 2)
        return radius * unit_ball_moments(self.histograms).total if self.one_sum else 0.0

    @functools.cached_property
    def log_volume(self) -> float:
        """The logarithm of the volume of K in the space's coordinates, times the factorial of its dimension.

        Coordinates are those of the blocks, but for the last one of all but the first block of several.
        """
        if not self.one_sum:
            d = self.dimension
            return d * math.log(2) - sum(math.lgamma(m + 1) for m in self.blocks) + math.lgamma(d + 1)
        sizes = self.histograms
        # of the integer points; where a difference is a coordinate, these are half of all
        points = sizes[0] * math.log(2) if len(sizes) == 1 else math.log(sum(_balls(sizes).h))
        return points + sizes.count(2) * math.log(2)

    @property
    def rounded(self) -> int:
        """The largest norm of what 1 or -1 in each coordinate of the space, or less, adds up to.

        With one sum r, the last of m cells is r less the others, and changes by m.
        """
        return 2 * max(self.histograms) - 1 if self.one_sum else max(self.blocks)

    @property
    def square_of_half(self) -> float:
        """The largest squared length of what a half in each coordinate of the space, or less, adds up to."""
        if not self.one_sum:
            return sum(self.blocks) / 4
        return (sum(9 if m == 1 else m - 1 + m**2 for m in self._functions) + self.intercept) / 4


@functools.lru_cache(maxsize=64)
def _balls(sizes: tuple[int, ...]) -> Balls:
    return Balls(sizes, same_rows=False)
