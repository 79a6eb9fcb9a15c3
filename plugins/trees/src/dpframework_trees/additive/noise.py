"""Integer noise whose size is measured by the largest l1 norm of some blocks of its coordinates, drawn exactly.

A group of blocks of m_1, ..., m_B coordinates, d in all, has the norm G(z) = max over blocks of the l1 norm of z's
part. `free_noise` draws z with probability proportional to exp(-G(z) / s) on all integer vectors: the K-norm mechanism
(Hardt and Talwar 2010) whose K is a product of l1 balls. Blocks of one coordinate make K a cube.

**Exact, over integers.** With q = exp(-1 / s), q**G is (1 - q) times the sum of q**T over all T >= G. So z comes from
a radius T with probability proportional to W(T) q**T, W(T) the number of vectors with G <= T; then, T given, z is
uniform among these: each block uniform in its l1 ball.

- The radius: d + 1 geometric numbers of ratio q add up to T with probability proportional to C(T + d, d) q**T. An l1
  ball of m coordinates has at most 2**m C(T + m, m) points (each orthant has C(T + m, m)), and the product of all
  (T + 1) ... (T + m_j) is at most (T + 1) ... (T + d). So W(T) is at most 2**d (T + 1) ... (T + d) / (m_1! ... m_B!),
  and accepting T with the quotient of the two, a rational number, leaves exactly W(T) q**T.
- A geometric number of ratio q: discrete Laplace noise k of scale s, as k if k >= 0, else as -k - 1; both halves have
  the probabilities q**k.
- A point of an l1 ball: i coordinates are not 0 with probability proportional to C(m, i) C(T, i) 2**i; which ones, and
  their signs, are uniform; their sizes are the gaps of a uniform set of i numbers from 1 to T (Floyd's algorithm).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms import Randomness

WORD_BITS = 64


def ball_points(coordinates: int, radius: int) -> int:
    """Return how many integer vectors have an l1 norm of at most a radius.

    Examples
    --------
    >>> ball_points(1, 3), ball_points(2, 1), ball_points(3, 0)
    (7, 5, 1)
    """
    return sum(_shares(coordinates, radius))


def _shares(coordinates: int, radius: int) -> list[int]:
    """Return how many of them have i coordinates that are not 0, for i = 0, ..., coordinates."""
    return [2**i * math.comb(coordinates, i) * math.comb(radius, i) for i in range(coordinates + 1)]


def group_points(blocks: Sequence[int], radius: int) -> int:
    """Return how many integer vectors have an l1 norm of at most a radius in every block."""
    counts = {size: ball_points(size, radius) for size in set(blocks)}
    return math.prod(counts[size] for size in blocks)


def uniform_below(bound: int, randomness: Randomness) -> int:
    """Draw an integer uniformly from those in [0, bound), of any size, by rejection."""
    bits = (bound - 1).bit_length()
    number = -(-bits // WORD_BITS)
    while True:
        words: bytes = randomness.words(number).astype("<u8").tobytes()
        drawn = int.from_bytes(words, "little") >> (number * WORD_BITS - bits)
        if drawn < bound:
            return drawn


def draw_radius(blocks: Sequence[int], scale: float, randomness: Randomness) -> int:
    """Draw T with probability proportional to W(T) exp(-T / scale) (see the module)."""
    dimension = sum(blocks)
    factorials = math.prod(math.factorial(size) for size in blocks)
    while True:
        drawn = randomness.discrete_laplace(dimension + 1, scale)
        radius = int(sum(np.where(drawn >= 0, drawn, -drawn - 1).tolist()))
        most = 2**dimension * math.prod(range(radius + 1, radius + dimension + 1))
        if uniform_below(most, randomness) < group_points(blocks, radius) * factorials:
            return radius


def ball_point(coordinates: int, radius: int, randomness: Randomness) -> NDArray[np.int64]:
    """Draw an integer vector uniformly from those whose l1 norm is at most a radius, shape (coordinates,)."""
    shares = _shares(coordinates, radius)
    position, used = uniform_below(sum(shares), randomness), 0
    while position >= shares[used]:
        position -= shares[used]
        used += 1
    sizes = np.diff(np.array([0, *sorted(_subset(radius, used, randomness))], dtype=np.int64))
    signs = 2 * randomness.integers(2, used) - 1
    where = [place - 1 for place in _subset(coordinates, used, randomness)]
    point = np.zeros(coordinates, dtype=np.int64)
    point[sorted(where)] = sizes * signs
    return point


def _subset(largest: int, size: int, randomness: Randomness) -> set[int]:
    """Draw a uniform set of `number` numbers from 1 to the largest (Floyd's algorithm)."""
    chosen: set[int] = set()
    if size:
        bounds = np.arange(largest - size + 1, largest + 1, dtype=np.int64)
        for bound, drawn in zip(bounds.tolist(), (randomness.integers(bounds, size) + 1).tolist(), strict=True):
            chosen.add(bound if drawn in chosen else drawn)
    return chosen


def free_noise(blocks: Sequence[int], scale: float, randomness: Randomness) -> NDArray[np.int64]:
    """Draw noise z for a group with probability proportional to exp(-G(z) / scale), block by block."""
    radius = draw_radius(blocks, scale, randomness)
    if set(blocks) == {1}:
        return randomness.integers(2 * radius + 1, len(blocks)) - radius
    return np.concatenate([ball_point(size, radius, randomness) for size in blocks])
