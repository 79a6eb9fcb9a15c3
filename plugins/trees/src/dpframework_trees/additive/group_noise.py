"""The noise of a group of blocks: its space, its draws and its moments.

A group of blocks of columns has noise z with a density in proportion to exp(-G(z) / scale), where G is a norm with the
unit ball K. This is the K-norm mechanism (Hardt and Talwar 2010). With one output, G is the largest l1 norm of a block,
in one of two spaces:

- **free**: all integer vectors. K is a product of l1 balls, as in the core's mechanism `block-norm`, and a cube if all
  blocks have one coordinate.
- **with one sum**: the possible changes by a row, if each block is a histogram that counts the row once. Let r be what
  the row adds to its cell in each histogram. Then all blocks of several coordinates have the sum r, a block of one
  coordinate is the difference of the two cells of its histogram, and the intercept's coordinate is r. K is the hull of
  all such changes and their negatives. As `dpframework.mechanisms.knorm` shows, the l1 norm of a histogram of two cells
  is max(abs(r), abs(difference)). If all blocks have one coordinate, this is the free space.

With several outputs, a row changes its cells in all blocks by the same numbers, one for each output. There are two
kinds of noise:

- **by output**: each output has noise of its own, as above, and G is the sum of the outputs' norms.
- **balanced**: in each column, the numbers of all outputs add up to 0, since a row's probabilities and its outcome both
  add up to 1. G is the largest l1 norm of a block over all outputs.

Noise by output has fewer dimensions if blocks have few columns, balanced noise if they have many. Fewer dimensions mean
less noise, and each group has the kind with less noise (`block_groups.is_balanced`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms import Balls, CrossPolytopes, Randomness, draw_from_balls, unit_ball_moments
from dpframework_trees.additive.block_groups import cells_of_block, dimensions, is_balanced
from dpframework_trees.additive.zero_sum_noise import balanced_noise, balanced_square


@final
@attrs.frozen
class GroupNoise:
    """The noise of a group of blocks of columns (see the module).

    Attributes
    ----------
    blocks
        The number of columns of each block. If the group has the intercept, its block is the last.
    outputs
        The number of outputs, each of which has a number in every column.
    one_sum
        Whether each output's noise lies in the space with one sum.
    intercept
        Whether the group has the intercept.
    balanced
        Whether the numbers of each column add up to 0 over outputs.
    """

    blocks: tuple[int, ...]
    outputs: int
    one_sum: bool
    intercept: bool
    balanced: bool = False

    @classmethod
    def of(cls, blocks: Sequence[int], outputs: int, intercept: bool) -> GroupNoise:
        """Return a group's noise, of the kind with less noise, for blocks with these numbers of columns."""
        of_functions = blocks[:-1] if intercept else blocks
        balanced = is_balanced([cells_of_block(width) for width in of_functions], outputs)
        one_sum = not balanced and max(blocks) > 1 and len(blocks) > 1
        return cls(tuple(blocks), outputs, one_sum, intercept, balanced)

    @property
    def histograms(self) -> tuple[int, ...]:
        """The numbers of cells of the histograms of a group with one sum."""
        return tuple(map(cells_of_block, self._functions))

    @property
    def _functions(self) -> tuple[int, ...]:
        """The numbers of columns of all blocks but the intercept's."""
        return self.blocks[:-1] if self.intercept else self.blocks

    @property
    def dimension(self) -> int:
        """The number of dimensions of the noise's space."""
        return self.radii * self.dimension_of_radius

    @property
    def radii(self) -> int:
        """The number of independent radii: one for each output, or a single one for balanced noise."""
        return 1 if self.balanced else self.outputs

    @property
    def dimension_of_radius(self) -> int:
        """The number of dimensions that share a radius."""
        if self.balanced:
            return sum(self.blocks) * (self.outputs - 1)
        return dimensions(self.histograms) if self.one_sum else sum(self.blocks)

    def norm(self, noise: NDArray[np.float64]) -> float:
        """Return the norm G of a noise vector, shape (columns, outputs)."""
        of_blocks = np.add.reduceat(np.abs(noise), np.cumsum([0, *self.blocks[:-1]]), axis=0)
        return float(of_blocks.sum(axis=1).max() if self.balanced else of_blocks.max(axis=0).sum())

    def draw(self, scale: float, randomness: Randomness) -> NDArray[np.int64]:
        """Draw integer noise exactly, with the blocks one after another, shape (columns, outputs)."""
        if self.balanced:  # `balanced_noise` takes the scale of a depth, which is half of an l1 norm.
            return balanced_noise(self.blocks, self.outputs, scale / 2, randomness)
        return np.column_stack([self._draw_output(scale, randomness) for _ in range(self.outputs)])

    def _draw_output(self, scale: float, randomness: Randomness) -> NDArray[np.int64]:
        if not self.one_sum:
            return draw_from_balls(CrossPolytopes(self.blocks), scale, randomness)
        sizes = self.histograms
        space = CrossPolytopes(sizes) if len(sizes) == 1 else _balls(sizes)
        drawn = draw_from_balls(space, scale, randomness)
        parts = np.split(drawn, np.cumsum(sizes)[:-1])
        total = parts[0].sum()
        found = [np.diff(part) if m == 1 else part for part, m in zip(parts, self._functions, strict=True)]
        return np.concatenate([*found, [total]] if self.intercept else found)

    @functools.cached_property
    def squares(self) -> tuple[float, ...]:
        """The approximate mean square of each block's coordinates, divided by the square of the scale.

        More exactly, it is the mean square of a linear function of the block's noise whose coefficients have the length
        1. In balanced noise they have the sum 0 over outputs, and with one sum they have the sum 0 over the columns of
        a block.
        """
        radius = self._square_of_radius
        if self.balanced:
            return tuple(radius / 4 * balanced_square(m, self.outputs) for m in self.blocks)
        if not self.one_sum:  # A coordinate of an l1 ball of radius 1 has the mean square 2 / ((m + 1) (m + 2)).
            return tuple(radius * 2 / ((m + 1) * (m + 2)) for m in self.blocks)
        moments = unit_ball_moments(self.histograms)
        # The difference of two cells has the length sqrt(2).
        found = [moments.difference(size) * (2 if size == 2 else 1) for size in self.histograms]
        return tuple(radius * one for one in (*found, *([moments.total] if self.intercept else [])))

    @functools.cached_property
    def squares_of_means(self) -> tuple[float, ...]:
        """The approximate mean square of the noise along the mean of each block's columns (see `squares`)."""
        if not self.one_sum:
            return self.squares
        return tuple(self.square_of_sum / m for m in self.blocks)

    @functools.cached_property
    def square_of_sum(self) -> float:
        """The approximate mean square of the sum that all blocks share in an output, 0 without one sum."""
        return self._square_of_radius * unit_ball_moments(self.histograms).total if self.one_sum else 0.0

    @property
    def _square_of_radius(self) -> int:
        """The approximate mean square of the radius, divided by the square of the scale."""
        return (self.dimension_of_radius + 1) * (self.dimension_of_radius + 2)

    @functools.cached_property
    def log_volume(self) -> float:
        """The logarithm of the integral of exp(-G), the volume of K times the factorial of its dimension.

        It is taken in coordinates of the space. For balanced columns, they leave out the last output. With one sum,
        they leave out the last coordinate of each wide block, except for the first such block.
        """
        return self.radii * self._log_volume_of_radius

    @property
    def _log_volume_of_radius(self) -> float:
        d = self.dimension_of_radius
        # If the depth is the norm, a block of m columns and n dimensions has the volume B**m / n!. `zero_sum_noise`
        # defines the depth and B, and calls a column a row.
        if self.balanced:
            most, rows = math.log(math.comb(2 * self.outputs - 2, self.outputs - 1)), sum(self.blocks)
            of_blocks = sum(math.lgamma(m * (self.outputs - 1) + 1) for m in self.blocks)
            return rows * most - of_blocks + math.lgamma(d + 1) - d * math.log(2)
        if not self.one_sum:
            return d * math.log(2) - sum(math.lgamma(m + 1) for m in self.blocks) + math.lgamma(d + 1)
        sizes = self.histograms
        # `points` is the log-volume if all coordinates are cells. For a histogram of two cells the coordinate is their
        # difference, which is twice a cell minus their sum. So it doubles the volume.
        points = sizes[0] * math.log(2) if len(sizes) == 1 else math.log(sum(_balls(sizes).polynomials.points))
        return points + sizes.count(2) * math.log(2)

    @property
    def rounded(self) -> int:
        """The largest norm G of a vector whose coordinates in the space all lie in [-1, 1].

        With one sum r, the last of a histogram's m cells is r minus the m - 1 others, and is at most m in size. The
        last balanced output is minus the sum of the others, and is at most as large as their number.
        """
        if self.balanced:
            return max(self.blocks) * (2 * self.outputs - 2)
        return self.outputs * (2 * max(self.histograms) - 1 if self.one_sum else max(self.blocks))

    @property
    def square_of_half(self) -> float:
        """The largest squared length of a vector whose coordinates in the space all lie in [-1/2, 1/2]."""
        if self.balanced:  # The last output is at most half as large as the number of the other outputs.
            return sum(self.blocks) * self.outputs * (self.outputs - 1) / 4
        if not self.one_sum:
            return self.outputs * sum(self.blocks) / 4
        # Four times the squares. A block of one column is the sum minus twice a cell, so it is at most 3/2. A block of
        # m columns has m - 1 cells of at most 1/2, and a last cell of at most m / 2.
        of_output = sum(9 if m == 1 else m - 1 + m**2 for m in self._functions) + self.intercept
        return self.outputs * of_output / 4


@functools.lru_cache(maxsize=64)
def _balls(sizes: tuple[int, ...]) -> Balls:
    return Balls(sizes, same_rows=False)
