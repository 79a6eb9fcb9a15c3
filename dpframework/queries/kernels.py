"""Numba kernels of queries: rows that sets have in common, and scores of matches made of such numbers.

Import them inside functions: numba takes 0.6 s to load.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpframework.tables.kernels import popcount

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@njit(nogil=True, cache=True)
def count_common(sets: NDArray[Any], others: NDArray[Any], within: NDArray[Any], counts: NDArray[Any]) -> None:
    """Add to counts[k, i, j] the number of rows in sets[i], others[j] and within[k], given as words of 64 rows each."""
    words = sets.shape[1]
    some = np.zeros(words, dtype=np.uint64)
    for k in range(len(within)):
        for i in range(len(sets)):
            for w in range(words):
                some[w] = sets[i, w] & within[k, w]
            for j in range(len(others)):
                total = 0
                for w in range(words):
                    total += popcount(some[w] & others[j, w])
                counts[k, i, j] += total


@njit(nogil=True, cache=True, inline="always")
def _cells(counts: Any, i: int, j: int, known_left: int, known_right: int) -> tuple[int, int, int, int, int]:
    """Return the rows where both tests hold, the left one only, the right one only, none; and where one is unknown."""
    n11 = counts[i, j]
    n10 = counts[i, known_right] - n11
    n01 = counts[known_left, j] - n11
    known = counts[known_left, known_right]
    last, end = counts.shape[0] - 1, counts.shape[1] - 1
    half = counts[known_left, end] + counts[last, known_right] - 2 * known
    return n11, n10, n01, known - n11 - n10 - n01, half


@njit(nogil=True, cache=True)
def match_scores(
    counts: NDArray[Any], known_left: Integers, known_right: Integers, target: float, cap: float, most: float
) -> Floats:
    """Return the scores of all matches, shape (2, left tests, right tests): same orientation, then opposite.

    Parameters
    ----------
    counts
        Rows in common by left set and right set, shape (1 + known sets of rows, left sets, right sets): of all rows,
        then within each known set. Sets are the tests of a view, then where attributes are known; the last is everyone.
    known_left, known_right
        For each test which set says where its attribute is known.
    target, cap, most
        w, c and d of the module `matches`.
    """
    left, right = len(known_left), len(known_right)
    scores = np.zeros((2, left, right))
    weight = min((1 - target) / most, target / (1 - most))
    for i in range(left):
        for j in range(right):
            n11, n10, n01, n00, half = _cells(counts[0], i, j, known_left[i], known_right[j])
            same = (1 - target) * min(n11, n00, cap) - target * (n10 + n01 + half)
            opposite = (1 - target) * min(n10, n01, cap) - target * (n11 + n00 + half)
            for k in range(1, len(counts)):
                size = counts[k, -1, -1]
                s11, s10, s01, s00, _ = _cells(counts[k], i, j, known_left[i], known_right[j])
                # d |M or S| - |M and S|, of M the rows of both sides and those of neither
                least = min(most * (n11 + size) - (1 + most) * s11, most * (n00 + size) - (1 + most) * s00)
                same = min(same, weight * least)
                least = min(most * (n10 + size) - (1 + most) * s10, most * (n01 + size) - (1 + most) * s01)
                opposite = min(opposite, weight * least)
            scores[0, i, j], scores[1, i, j] = same, opposite
    return scores
