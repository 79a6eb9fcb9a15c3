"""Integer points of the balls of two norms, drawn uniformly.

**Several histograms** (see `knorm`). A *section* is a set of integer vectors for one histogram: all vectors whose
entries add up to a given total, and whose negative entries add up to -depth or more. A *layer* is the part of a section
whose negative entries add up to exactly -depth. If all neighbours have the same number of rows, a *ball* of radius r is
a product of sections, one for each histogram, with total 0 and depth r. Otherwise a ball is a union of such products
over all totals t from 0 to r, with depth (r - t) / 2 rounded down. The negatives of all these vectors belong to it,
too.

**Several blocks** (see `block_knorm`). A ball is a product of l1 balls of equal radius, one for each block.

Below, C(n, k) is the binomial coefficient.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from math import comb
from typing import final

import attrs

from dpframework.mechanisms.knorm_ball_polynomials import (
    BallPolynomials,
    ball_square,
    common_sum_polynomials,
    points_of_ball,
    section_size,
    sum_zero_polynomials,
)
from dpframework.mechanisms.uniforms import WholeNumbers


def draw_section(size: int, total: int, depth: int, numbers: WholeNumbers) -> list[int]:
    """Draw one of the vectors that `section_size` counts, uniformly.

    First the sum of the negative entries is drawn: a position among all vectors is drawn, and its layer is found by
    bisection. Then the number of negative entries is drawn, then their positions, then all values.
    """
    position, low, high = numbers.below(section_size(size, total, depth)), 0, depth
    # Find the least depth whose section has more vectors than `position`.
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if section_size(size, total, middle) > position else (middle + 1, high)
    return draw_layer(size, total, low, numbers)


def layer_size(size: int, total: int, depth: int) -> int:
    """Return how many integer vectors have the sum `total`, and negative entries that add up to -`depth` exactly.

    A vector has `size` entries, and `total` is 0 or more.

    Examples
    --------
    >>> [layer_size(3, 0, depth) for depth in range(4)]
    [1, 6, 12, 18]
    """
    return sum(_counts_by_negatives(size, total, depth))


def draw_layer(size: int, total: int, depth: int, numbers: WholeNumbers) -> list[int]:
    """Draw one of the vectors that `layer_size` counts, uniformly."""
    # First the number of negative entries is drawn, then their positions, then the negative and the other values.
    weights = _counts_by_negatives(size, total, depth)
    position, negative = numbers.below(sum(weights)), 0
    while position >= weights[negative]:
        position, negative = position - weights[negative], negative + 1
    where = numbers.subset(size, negative)
    others = [entry for entry in range(size) if entry not in set(where)]
    values = dict(zip(where, (-value for value in numbers.composition(depth, negative, 1)), strict=True))
    values |= zip(others, numbers.composition(depth + total, size - negative, 0), strict=True)
    return [values[entry] for entry in range(size)]


def _counts_by_negatives(size: int, total: int, depth: int) -> list[int]:
    """Return how many vectors of a layer have p negative entries, for p = 0, 1, ...

    The other entries of each vector add up to total + depth.
    """
    return [
        comb(size, p)
        * (comb(depth - 1, p - 1) if p else int(depth == 0))
        * comb(depth + total + size - p - 1, size - p - 1)
        for p in range(min(size - 1, depth) + 1)
    ]


# Not slotted: the cached property needs an instance dictionary.
@final
@attrs.frozen(slots=False)
class Balls:
    """The balls of the K-norm around 0 for histograms of these sizes.

    Attributes
    ----------
    sizes
        The sizes of the histograms, each 2 or more.
    same_rows
        Whether neighbours have the same number of rows. Then the noise of each histogram adds up to 0. Otherwise the
        noise adds up to the same number in every histogram.
    """

    sizes: tuple[int, ...]
    same_rows: bool

    @property
    def dimension(self) -> int:
        """The dimension D of the space from which noise is drawn."""
        return sum(self.sizes) - len(self.sizes) + (not self.same_rows)

    def section(self, total: int, radius: int) -> int:
        """Return how many points of a ball have the sum `total`, 0 or more, in each histogram."""
        depth = radius if self.same_rows else (radius - total) // 2
        return math.prod(section_size(size, total, depth) ** number for size, number in self._alike)

    @functools.cached_property
    def _alike(self) -> tuple[tuple[int, int], ...]:
        """The pairs of a size and the number of histograms that have it."""
        return tuple(Counter(self.sizes).items())

    def number(self, radius: int) -> int:
        """Return the number of points of a ball (see `BallPolynomials`)."""
        dimension = self.dimension
        points = enumerate(self.polynomials.points)
        return sum(h * comb(radius - k + dimension, dimension) for k, h in points if k <= radius)

    @functools.cached_property
    def polynomials(self) -> BallPolynomials:
        """The number of points of a ball and the sums of squares over them, for every radius."""
        of_space = sum_zero_polynomials if self.same_rows else common_sum_polynomials
        return of_space(self.sizes, self.dimension)

    def find_total(self, position: int, radius: int) -> tuple[int, int]:
        """Return the absolute total of the point at a position, and the point's position among those with that total.

        A ball's points are in the order of their totals: 0, 1 and -1, 2 and -2, and so on. The first totals are tried
        in turn. The points of larger totals are counted by polynomials. This works since `section_size` is a polynomial
        in total and depth, of degree 2 (`size` - 1) at most. If the total grows by two, the depth falls by one. So the
        size of the section of an even total is a polynomial in half of the total. The same holds for odd totals, where
        half of the total is rounded down. Let d_k be Newton's forward differences of the first few of these sizes. Then
        the first m sizes add up to the sum over k of d_k C(m, k + 1).
        """
        degree = 2 * sum(size - 1 for size in self.sizes)
        sections, before = [], 0
        for total in range(min(radius, 2 * degree + 1) + 1):
            sections.append(self.section(total, radius))
            points = (1 if total == 0 else 2) * sections[-1]
            if before + points > position:
                return total, position - before
            before += points
        differences = [_forward_differences(sections[parity::2]) for parity in (0, 1)]

        def up_to(total: int) -> int:
            """Return how many points have a total between -`total` and `total`."""
            numbers = total // 2 + 1, (total + 1) // 2  # how many even and odd totals there are
            sums = (
                sum(d * comb(m, k + 1) for k, d in enumerate(known))
                for known, m in zip(differences, numbers, strict=True)
            )
            return 2 * sum(sums) - sections[0]

        low, high = len(sections), radius
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if up_to(middle) > position else (middle + 1, high)
        return low, position - up_to(low - 1)

    def draw(self, radius: int, numbers: WholeNumbers) -> list[int]:
        """Draw a uniform point of a ball, one histogram after another."""
        total, sign = 0, 1
        if not self.same_rows:
            total, position = self.find_total(numbers.below(self.number(radius)), radius)
            sign = -1 if total and position % 2 else 1
        depth = radius if self.same_rows else (radius - total) // 2
        return [sign * z for size in self.sizes for z in draw_section(size, total, depth, numbers)]


def _forward_differences(values: Sequence[int]) -> list[int]:
    """Return Newton's forward differences: the first value, the first difference, the first second difference, ..."""
    found, left = [], list(values)
    while left:
        found.append(left[0])
        left = [after - before for before, after in itertools.pairwise(left)]
    return found


@functools.lru_cache(maxsize=64)
def balls(sizes: tuple[int, ...], same_rows: bool) -> Balls:
    """Return the balls. They are cached, so that their polynomials are computed once, from public facts."""
    return Balls(sizes, same_rows)


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

    def number(self, radius: int) -> int:
        """Return the number of points for this radius."""
        return math.prod(points_of_ball(size, radius) ** times for size, times in Counter(self.sizes).items())

    @functools.cached_property
    def polynomials(self) -> BallPolynomials:
        """The number of points of a product and the sums of squares over them, for every radius.

        A product has integer vertices, and its facets are {z: l(z) = 1}, where l is a linear form with coefficients 1,
        0 and -1.
        """
        radii = range(self.dimension // 2 + 2)
        points = [self.number(r) for r in radii]
        squares = {k: [ball_square(k, r) * points[r] // points_of_ball(k, r) for r in radii] for k in set(self.sizes)}
        return BallPolynomials.of(points, squares, self.dimension)

    def draw(self, radius: int, numbers: WholeNumbers) -> list[int]:
        """Draw a uniform point, one block after another."""
        return [z for size in self.sizes for z in draw_from_ball(size, radius, numbers)]


@functools.lru_cache(maxsize=64)
def cross_polytopes(sizes: tuple[int, ...]) -> CrossPolytopes:
    """Return the products of balls. They are cached, so that their polynomials are computed once, from public facts."""
    return CrossPolytopes(sizes)
