"""Integer points of the balls of two norms, counted and drawn uniformly.

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
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms.uniforms import WholeNumbers


def section_size(size: int, total: int, depth: int) -> int:
    """Return how many integer vectors have the sum `total`, and negative entries that add up to -`depth` or more.

    A vector has `size` entries, and `total` is 0 or more.

    Let a positive entry z stand for x**z, and a negative entry -z for y**z. Then one entry has the generating function
    1/(1-x) + y/(1-y) = (1-xy) / ((1-x)(1-y)). Take the `size`-th power of this function and divide it by 1-xy, which
    adds up the layers of all depths up to `depth`. The result is the coefficient of x**(total+depth) y**depth.

    Examples
    --------
    >>> section_size(2, 0, 3)  # (0, 0), and (k, -k) and (-k, k) for k = 1, 2, 3
    7
    """
    if depth < 0:
        return 0
    # Histograms of two cells are frequent, so their vectors are counted by a closed form.
    if size == 2:
        return total + 2 * depth + 1
    free = size - 1
    choose, above, below, count = 1, comb(total + depth + free, free), comb(depth + free, free), 0
    # The count is the sum over k of (-1)**k C(free, k) C(total + depth - k + free, free) C(depth - k + free, free).
    for k in range(min(free, depth) + 1):
        count += (-1) ** k * choose * above * below
        choose = choose * (free - k) // (k + 1)
        above = above * (total + depth - k) // (total + depth - k + free)
        below = below * (depth - k) // (depth - k + free)
    return count


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


def _h_of(points: Sequence[int], dimension: int) -> tuple[int, ...]:
    """Return h_0, ..., h_D, given the numbers of points of the balls of radius 0, ..., D // 2.

    h_k is the sum over j of (-1)**j C(D+1, j) times the number of points of radius k - j (see `ball_radii`). Here h_k
    and h_(D-k) are equal, so half of the numbers are enough.
    """
    signs = [(-1) ** j * comb(dimension + 1, j) for j in range(len(points))]
    first = [sum(signs[j] * points[k - j] for j in range(k + 1)) for k in range(len(points))]
    return (*first, *reversed(first[: dimension + 1 - len(points)]))


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
        noise of all histograms has a common sum.
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
        """Return the number of points of a ball, the sum over k of h_k C(radius - k + D, D), with D the dimension."""
        dimension = self.dimension
        return sum(h * comb(radius - k + dimension, dimension) for k, h in enumerate(self.h) if k <= radius)

    @functools.cached_property
    def h(self) -> tuple[int, ...]:
        """The numbers h_k, k = 0, ..., D, from which the number of points of every ball follows (see `number`).

        The unit ball is a polytope with integer vertices, so the number of points is a polynomial in the radius
        (Ehrhart 1962). Then each h_k is a whole number of 0 or more (Stanley 1980). Each facet is {z: l(z) = 1} for a
        linear form l with integer coefficients, so h_k = h_(D-k) (Hibi 1992).
        """
        return _h_of(self._first_numbers(self.dimension // 2 + 1), self.dimension)

    def _first_numbers(self, radii: int) -> list[int]:
        """Return how many points the balls of radius 0, ..., radii - 1 have."""
        if self.same_rows:
            known = {size: [section_size(size, 0, r) for r in range(radii)] for size in set(self.sizes)}
            return [math.prod(known[size][r] for size in self.sizes) for r in range(radii)]
        product: Any = 1  # becomes an array of numbers of points, indexed by total + depth and by depth
        for size, section in _sections(self.sizes, radii).items():
            product = product * section ** self.sizes.count(size)
        above = [[int(product[depth + total, depth]) for total in range(radii - 2 * depth)] for depth in range(radii)]
        return [
            sum((1 if t == 0 else 2) * above[(radius - t) // 2][t] for t in range(radius + 1))
            for radius in range(radii)
        ]  # totals t and -t have the same number of points

    def find_total(self, position: int, radius: int) -> tuple[int, int]:
        """Return the absolute total of the point at a position, and the point's position among those with that total.

        A ball's points are in the order of their totals: 0, 1 and -1, 2 and -2, and so on. The first totals are tried
        in turn. The points of larger totals are counted by polynomials. This works since `section_size` is a polynomial
        in total and depth, of degree 2 (`size` - 1) at most. If the total grows by two, the depth falls by one. So the
        sections of even totals have sizes that are a polynomial in the index of the total. The same holds for odd
        totals. Let d_k be Newton's forward differences of the first few of these sizes. Then the first m sizes add up
        to the sum over k of d_k C(m, k + 1).
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
            numbers = total // 2 + 1, (total + 1) // 2  # of even and of odd totals from 0 on
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
    """Return the balls with their h_k, computed once from public facts."""
    return Balls(sizes, same_rows)


def _sections(sizes: Sequence[int], radii: int) -> dict[int, NDArray[Any]]:
    """Return, for each size, an array of `section_size`, indexed by total + depth and by depth, both below `radii`."""
    found: dict[int, NDArray[Any]] = {}
    section = np.ones((radii, radii), dtype=object)  # the array of size 1
    for size in range(2, max(sizes) + 1):
        section = np.add.accumulate(np.add.accumulate(section, axis=0), axis=1)  # times 1 / ((1-x)(1-y))
        section[1:, 1:] = section[1:, 1:] - section[:-1, :-1].copy()  # times 1-xy
        if size in sizes:
            found[size] = section.copy()
    return found


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

    def number(self, radius: int) -> int:
        """Return the number of points for this radius.

        It is equal to the sum over k of h_k C(radius - k + D, D), where C is the binomial coefficient, D is the
        dimension, and the h_k are those of `h`.
        """
        return math.prod(points_of_ball(size, radius) ** times for size, times in Counter(self.sizes).items())

    @functools.cached_property
    def h(self) -> tuple[int, ...]:
        """The numbers h_k, k = 0, ..., D, from which the number of points of every radius follows (see `number`).

        A product of cross-polytopes has integer vertices, and its facets are {z: l(z) = 1}, where l is a linear form
        with coefficients 1, 0 and -1. So, as in `Balls.h`, each h_k is a whole number of 0 or more,
        and h_k = h_(D-k).
        """
        return _h_of([self.number(radius) for radius in range(self.dimension // 2 + 1)], self.dimension)

    def draw(self, radius: int, numbers: WholeNumbers) -> list[int]:
        """Draw a uniform point, one block after another."""
        return [z for size in self.sizes for z in draw_from_ball(size, radius, numbers)]


@functools.lru_cache(maxsize=64)
def cross_polytopes(sizes: tuple[int, ...]) -> CrossPolytopes:
    """Return the products of balls with their h_k, computed once from public facts."""
    return CrossPolytopes(sizes)
