"""The number of integer points of a ball, and the sums of the squares of their entries, as polynomials in its radius.

These are the balls of two norms (see `knorm` and `block_knorm`). A *section* is a set of integer vectors for one
histogram: all vectors whose entries add up to a given total, and whose negative entries add up to -d or more, for a
given *depth* d. A *ball* is a product of sections or of l1 balls, or a union of such products (see
`knorm_ball_points`).

Below, C(n, k) is the binomial coefficient.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from math import comb
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray


def _coefficients(values: Sequence[int], degree: int) -> tuple[int, ...]:
    """Return the c_0, ..., c_d for which a polynomial of this degree d in r is the sum of c_k C(r-k+d, d).

    `values` holds the polynomial's values for r = 0, ..., d // 2 or beyond. Consider the power series whose coefficient
    of x**r is the value for r. If this series is multiplied by (1-x)**(d+1), the coefficient of x**k is c_k. For the
    polynomials of this module, c_k and c_(d-k) are equal, so half of the values are enough.
    """
    half = np.array(values[: degree // 2 + 1], dtype=object)
    for _ in range(degree + 1):
        half[1:] = half[1:] - half[:-1].copy()
    return (*half, *half[: degree + 1 - len(half)][::-1])


@final
@attrs.frozen
class BallPolynomials:
    """Two polynomials in the radius of a ball: its number of points, and the sum of an entry's squares.

    The unit ball is a polytope with integer vertices, so the number of points is a polynomial of degree D, the
    dimension (Ehrhart 1962). Its coefficients h_k in the basis of all C(r-k+D, D) are whole numbers of 0 or more
    (Stanley 1980). Each facet is {z: l(z) = 1} for a linear form l with integer coefficients. So the interior of a
    ball of radius r has the same integer points as the ball of radius r - 1, and h_k and h_(D-k) are equal (Hibi 1992).
    The sum of the squares of an entry over the points of a ball is a polynomial of degree D + 2, which has the same
    symmetry (Brion and Vergne 1997).

    Attributes
    ----------
    points
        The number of points of radius r is the sum over k of points[k] C(r-k+D, D).
    squares
        A mapping from the size of a histogram or block. The sum of the squares of one of its entries, over the points
        of radius r, is the sum over k of squares[size][k] C(r-k+D+2, D+2).
    """

    points: tuple[int, ...]
    squares: Mapping[int, tuple[int, ...]]

    @classmethod
    def of(cls, points: Sequence[int], squares: Mapping[int, Sequence[int]], dimension: int) -> BallPolynomials:
        """Return the polynomials, given their values for the radii 0, ..., D // 2 + 1."""
        return cls(
            _coefficients(points, dimension),
            {size: _coefficients(values, dimension + 2) for size, values in squares.items()},
        )


def sum_zero_polynomials(sizes: Sequence[int], dimension: int) -> BallPolynomials:
    """Return the polynomials of histograms of these sizes whose entries add up to 0."""
    radii = range(dimension // 2 + 2)
    known = {size: [section_size(size, 0, r) for r in radii] for size in set(sizes)}
    points = [math.prod(known[size][r] for size in sizes) for r in radii]
    squares = {size: [section_square(size, r) * points[r] // known[size][r] for r in radii] for size in known}
    return BallPolynomials.of(points, squares, dimension)


def common_sum_polynomials(sizes: Sequence[int], dimension: int) -> BallPolynomials:
    """Return the polynomials of histograms of these sizes whose entries have a common sum."""
    sections = _sections(sizes, dimension // 2 + 2)
    product: Any = 1  # becomes a vector of numbers of points
    for size, (section, _) in sections.items():
        product = product * section ** sizes.count(size)
    squares = {size: _over_totals(product // section * square) for size, (section, square) in sections.items()}
    return BallPolynomials.of(_over_totals(product), squares, dimension)


def section_size(size: int, total: int, depth: int) -> int:
    """Return how many integer vectors have the sum `total`, and negative entries that add up to -`depth` or more.

    A vector has `size` entries, and `total` is 0 or more.

    Let a positive entry z stand for x**z, and a negative entry -z for y**z. Then one entry has the generating function
    1/(1-x) + y/(1-y) = (1-xy) / ((1-x)(1-y)). Take the `size`-th power of this function and divide it by 1-xy. The
    division adds up, for each d up to `depth`, the vectors whose negative entries add up to exactly -d. The number
    returned is the coefficient of x**(total+depth) y**depth.

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


def section_square(size: int, depth: int) -> int:
    """Return the sum of the squares of the first entry over the vectors that `section_size` counts for the total 0.

    As in `section_size`, one entry has the generating function (1-xy) / ((1-x)(1-y)). If each positive value z has the
    weight z**2, the function for this entry is x(1+x) / (1-x)**3. The product with the other entries is
    x(1+x) (1-xy)**(size-2) divided by (1-x)**(size+2) (1-y)**(size-1). The coefficient of (xy)**depth is taken twice,
    since negative values add as much.

    Examples
    --------
    >>> section_square(2, 3)  # 1, 4 and 9, each twice
    28
    """
    free = size - 2
    if not free:
        return 2 * (comb(depth + 2, 3) + comb(depth + 1, 3))
    choose, above, below, found = 1, comb(depth + size, size + 1), comb(depth + free, free), 0
    # Half of the result is the sum over k of (-1)**k C(free, k) A(depth - k) C(depth - k + free, free), where A(d) is
    # C(d + size, size + 1) + C(d - 1 + size, size + 1).
    for k in range(min(free, depth) + 1):
        next_above = above * (depth - k - 1) // (depth - k + size)
        found += (-1) ** k * choose * (above + next_above) * below
        choose, above = choose * (free - k) // (k + 1), next_above
        below = below * (depth - k) // (depth - k + free)
    return 2 * found


def _sections(sizes: Sequence[int], radii: int) -> dict[int, tuple[NDArray[Any], NDArray[Any]]]:
    """Return, for each size, a vector of `section_size` and a vector of the sums of squares of the first entry.

    For the vectors in a section, let p be the largest sum of positive entries, and -n the least sum of negative
    entries. Both results hold the sections with p + n < `radii` and n <= p, in the order of p + n.
    """
    found: dict[int, tuple[NDArray[Any], NDArray[Any]]] = {}
    p, n = _sums_of_sections(radii)
    section = np.ones((radii, radii), dtype=object)  # the array of size 1, indexed by p and n
    for size in range(2, max(sizes) + 1):
        square = section
        section = np.add.accumulate(np.add.accumulate(section, axis=0), axis=1)  # times 1 / ((1-x)(1-y))
        section[1:, 1:] = section[1:, 1:] - section[:-1, :-1].copy()  # times 1-xy
        if size in sizes:
            for _ in range(3):  # times x(1+x) / (1-x)**3 (see `section_square`)
                square = np.add.accumulate(square, axis=0)
            square[1:] = square[1:] + square[:-1].copy()
            square = np.concatenate([np.zeros((1, radii), dtype=object), square[:-1]])
            found[size] = section[p, n], square[p, n] + square[n, p]  # the latter with y in place of x
    return found


def _sums_of_sections(radii: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the p and the n of each section (see `_sections`)."""
    pairs = [(both - n, n) for both in range(radii) for n in range(both // 2 + 1)]
    p, n = np.array(pairs, dtype=np.int64).T
    return p, n


def _over_totals(vector: NDArray[Any]) -> list[int]:
    """Return, for each radius, the sum over the sections of its ball. The vector is indexed as in `_sections`.

    In a ball of radius r, a section has p + n = r if its total p - n is r, r - 2 and so on. If its total is r - 1,
    r - 3 and so on, it has p + n = r - 1.
    """
    found: list[int] = []
    start = before = 0
    while start < len(vector):
        both = len(found)
        part = vector[start : start + both // 2 + 1]
        # Totals t and -t have equally many points, with the same squares. For an even sum, the last total is 0.
        here = 2 * int(part.sum()) - (int(part[-1]) if both % 2 == 0 else 0)
        found.append(here + before)
        start, before = start + len(part), here
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


def ball_square(size: int, radius: int) -> int:
    """Return the sum of the squares of the first number over the vectors that `points_of_ball` counts.

    Count as in `points_of_ball`, with a first number other than 0. Over all choices of j positive whole numbers that
    add up to at most the radius r, the squares of the first number add up to 2 C(r+2, j+2) - C(r+1, j+1).

    Examples
    --------
    >>> ball_square(1, 3), ball_square(2, 1)
    (28, 2)
    """
    return sum(
        comb(size - 1, j - 1) * (2 * comb(radius + 2, j + 2) - comb(radius + 1, j + 1)) << j
        for j in range(1, min(size, radius) + 1)
    )
