"""Exact draws of integer noise, in rows of numbers that add up to 0.

Here a row has K numbers with the sum 0: one column of a model, with a number for each of K outputs. Its *depth* is the
sum of its positive numbers, which is half of its l1 norm. The depth of a block of m rows is the sum of its rows'
depths, and the depth of a group is the largest depth of its blocks. `balanced_noise` draws a group's rows with
probability in proportion to exp(-depth / scale).

**Exact, over integers.** First a radius T is drawn, as in the core's `block-norm`. The point is then uniform among the
points of depth at most T.

- There are c(n) rows of depth n (`layer_size`). With C as the binomial coefficient, the generating function of c is the
  sum over p of C(K-1, p)**2 x**p, divided by (1-x)**(K-1) (Conway and Sloane 1997, for the lattice A). So c(n) is at
  most B C(n+K-2, K-2), with B the sum of C(K-1, p)**2, which is C(2K-2, K-1).
- A proposal begins with a radius T, which is a sum of D + 1 geometric numbers. D is the sum of d = m (K - 1) over all
  blocks, so the probability of T is in proportion to (T+1) ... (T+D) q**T, with q = exp(-1 / scale). For each block,
  d + 1 whole numbers that add up to T are drawn uniformly. The depth of each row is the sum of K - 1 of them, and one
  number is left over. So depths n are proposed with a probability in proportion to q**T (T+1) ... (T+D), times a factor
  for each block. This factor is the product of C(n+K-2, K-2) over the block's rows, divided by C(T+d, d).
- A proposal is accepted with a probability that is a product of two factors. One is the product of
  c(n) / (B C(n+K-2, K-2)) over all rows. The other is the product of (T+1) ... (T+d) over blocks, divided by
  (T+1) ... (T+D). Both factors are at most 1, and near 1 if depths are large. What remains is q**T times the product of
  c(n), which is the number of points with these depths.
- A row of a given depth is uniform (`draw_layer`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms import Randomness, WholeNumbers, draw_layer, geometric_sum, layer_size


def balanced_noise(blocks: Sequence[int], outputs: int, scale: float, randomness: Randomness) -> NDArray[np.int64]:
    """Draw the noise of a group, shape (rows, outputs).

    Parameters
    ----------
    blocks
        The number of rows of each block.
    outputs
        The number of integers in a row, at least 2.
    scale
        The scale of the depth.
    randomness
        The source of random numbers.
    """
    numbers = WholeNumbers(randomness.words)
    while True:
        depths = _propose(blocks, outputs, scale, randomness, numbers)
        if depths is not None:
            return np.array([draw_layer(outputs, 0, depth, numbers) for depth in depths], dtype=np.int64)


def _propose(
    blocks: Sequence[int], outputs: int, scale: float, randomness: Randomness, numbers: WholeNumbers
) -> list[int] | None:
    """Propose a depth for each row. Return the depths if the proposal is accepted, else None."""
    dimensions = [rows * (outputs - 1) for rows in blocks]
    radius = geometric_sum(sum(dimensions) + 1, scale, randomness)
    above = math.prod(math.prod(range(radius + 1, radius + d + 1)) for d in dimensions)
    if numbers.below(math.prod(range(radius + 1, radius + sum(dimensions) + 1))) >= above:
        return None
    most, found = math.comb(2 * outputs - 2, outputs - 1), []
    for d in dimensions:
        parts = numbers.composition(radius, d + 1, 0)
        found += [sum(parts[k : k + outputs - 1]) for k in range(0, d, outputs - 1)]
    for depth in found:
        if numbers.below(most * math.comb(depth + outputs - 2, outputs - 2)) >= layer_size(outputs, 0, depth):
            return None
    return found


@functools.lru_cache(maxsize=1024)
def balanced_square(rows: int, outputs: int) -> float:
    """Return the mean square of a linear function of a point that is uniform in the points of depth at most 1.

    The points are those of a block. The function has length 1, and its coefficients add up to 0 over outputs. Let K be
    `outputs`, and d = `rows` (K - 1). The depths of rows are Dirichlet distributed (see the module), each with K - 1 of
    d + 1 parts. In a row of depth n, the p negative numbers and all others are uniform on simplices. If k such numbers
    have the sum n, the mean of their sum of squares is 2 n**2 / (k + 1).
    """
    k, d = outputs, rows * (outputs - 1)
    ways = [math.comb(k, p) * math.comb(k - 2, p - 1) for p in range(1, k)]
    squares = [Fraction(2, p + 1) + Fraction(2, k - p + 1) for p in range(1, k)]
    of_row = sum(way * square for way, square in zip(ways, squares, strict=True)) / sum(ways)
    return float(of_row * k / ((d + 1) * (d + 2)))
