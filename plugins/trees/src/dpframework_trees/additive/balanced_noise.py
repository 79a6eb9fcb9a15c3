"""Integer noise of rows that add up to 0, whose size is the largest positive part of some blocks, drawn exactly.

A row has K numbers with the sum 0; its *depth* is the sum of those above 0, half of its l1 norm. A block of m rows has
the sum of its rows' depths as its own, and a group of blocks the largest of these. `balanced_noise` draws a group's
rows with probability in proportion to exp(-depth / scale).

**Exact, over integers.** A point comes from a radius T, as in the core's `block-norm`, and is uniform among those of
depth T at most.

- There are c(n) rows of depth n (`layer_size`). The generating function of c is the sum over p of C(K-1, p)**2 x**p,
  divided by (1-x)**(K-1) (Conway and Sloane 1997, of the lattice A). So c(n) is at most B C(n+K-2, K-2), with B the sum
  of C(K-1, p)**2, which is C(2K-2, K-1).
- Proposed are a radius T, of D + 1 geometric numbers, D the sum of all blocks' d = m (K - 1), so that its probability
  is in proportion to (T+1) ... (T+D) q**T; then for each block d + 1 whole numbers that add up to T, uniformly. K - 1
  of them add up to the depth of each row, and one is left over. So depths n come with a probability in proportion to
  q**T (T+1) ... (T+D) times, over blocks, the product of C(n+K-2, K-2) over rows, divided by C(T+d, d).
- They are accepted with the product of c(n) / (B C(n+K-2, K-2)) over all rows, times the product of (T+1) ... (T+d)
  over blocks divided by (T+1) ... (T+D): each is 1 at most, and near 1 where depths are large. That leaves q**T times
  the product of c(n), which is the number of points with these depths.
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
    """Draw noise of a group, shape (rows, outputs).

    Parameters
    ----------
    blocks
        The number of rows of each block.
    outputs
        The number of integers of a row, 2 or more.
    scale
        Of the depth.
    randomness
        Where it is drawn from.
    """
    numbers = WholeNumbers(randomness.words)
    while True:
        depths = _propose(blocks, outputs, scale, randomness, numbers)
        if depths is not None:
            return np.array([draw_layer(outputs, 0, depth, numbers) for depth in depths], dtype=np.int64)


def _propose(
    blocks: Sequence[int], outputs: int, scale: float, randomness: Randomness, numbers: WholeNumbers
) -> list[int] | None:
    """Propose the depth of each row, and return them if they are accepted."""
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
    """Return the mean square of a linear function with the sum 0 over outputs, of a block's point of depth 1 at most.

    Depths of rows are Dirichlet distributed (see the module), each with K - 1 of d + 1 parts. Of a row of depth n
    with p numbers below 0, these and the others are uniform on simplices, and the mean of the sum of squares of k
    numbers that add up to n is 2 n**2 / (k + 1).
    """
    k, d = outputs, rows * (outputs - 1)
    ways = [math.comb(k, p) * math.comb(k - 2, p - 1) for p in range(1, k)]
    squares = [Fraction(2, p + 1) + Fraction(2, k - p + 1) for p in range(1, k)]
    of_row = sum(way * square for way, square in zip(ways, squares, strict=True)) / sum(ways)
    return float(of_row * k / ((d + 1) * (d + 2)))
