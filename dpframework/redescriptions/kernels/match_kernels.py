"""Numba kernels that count the rows that two sets have in common, and that score matches by these counts.

Import them inside functions, since numba takes 0.6 s to load.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpframework.tables.count_and_split_kernels import popcount

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def fill_sets(digits: NDArray[Any], codes: Integers, below: bool, sets: NDArray[Any]) -> None:
    """Fill in sets[t] with the rows whose code is codes[t], or at most codes[t] if `below`, in words of 64 rows.

    digits[k] is the set of rows whose code has a 1 in binary digit k, counted from the lowest digit.
    """
    _fill_sets(digits, codes, below, sets, np.empty(digits.shape[1], dtype=np.uint64))


@njit(nogil=True, cache=True)
def _fill_sets(digits: NDArray[Any], codes: Integers, below: bool, sets: NDArray[Any], equal: NDArray[Any]) -> None:
    """Do the work of `fill_sets`. `equal` is scratch memory for the rows that agree in all higher digits."""
    words = digits.shape[1]
    for t in range(len(codes)):
        less = sets[t]
        for w in range(words):
            equal[w], less[w] = ~np.uint64(0), np.uint64(0)
        for k in range(len(digits) - 1, -1, -1):
            digit = digits[k]
            if codes[t] >> k & 1:
                for w in range(words):
                    less[w] |= equal[w] & ~digit[w]
                    equal[w] &= digit[w]
            else:
                for w in range(words):
                    equal[w] &= ~digit[w]
        for w in range(words):
            less[w] = less[w] | equal[w] if below else equal[w]


def count_common(
    sets: NDArray[Any], others: NDArray[Any], within: NDArray[Any], asked: NDArray[np.bool_], counts: NDArray[Any]
) -> None:
    """Add the number of rows in sets[i], others[j] and within[k] to counts[k, i, j], where asked[i, j] is true.

    Sets are given as words of 64 rows.
    """
    _count_common(sets, others, within, asked, counts, np.empty(sets.shape[1], dtype=np.uint64))


@njit(nogil=True, cache=True)
def _count_common(
    sets: NDArray[Any],
    others: NDArray[Any],
    within: NDArray[Any],
    asked: NDArray[np.bool_],
    counts: NDArray[Any],
    some: NDArray[Any],
) -> None:
    """Do the work of `count_common`. `some` is scratch memory for the rows of one set that are counted."""
    words = sets.shape[1]
    for k in range(len(within)):
        for i in range(len(sets)):
            for w in range(words):
                some[w] = sets[i, w] & within[k, w]
            for j in range(len(others)):
                if asked[i, j]:
                    total = 0
                    for w in range(words):
                        total += popcount(some[w] & others[j, w])
                    counts[k, i, j] += total


@njit(nogil=True, cache=True, inline="always")
def _cells(counts: Any, i: int, j: int, known_left: int, known_right: int) -> tuple[int, int, int, int, int]:
    """Return how many rows have both tests true, only the left, only the right, neither, and just one value known."""
    n11 = counts[i, j]
    n10 = counts[i, known_right] - n11
    n01 = counts[known_left, j] - n11
    known = counts[known_left, known_right]
    last, end = counts.shape[0] - 1, counts.shape[1] - 1
    half = counts[known_left, end] + counts[last, known_right] - 2 * known
    return n11, n10, n01, known - n11 - n10 - n01, half


@njit(nogil=True, cache=True)
def match_scores(
    counts: NDArray[Any],
    known_left: Integers,
    known_right: Integers,
    target: float,
    cap: float,
    most: float,
    scores: Floats,
) -> None:
    """Fill in the scores of all matches, shape (2, left tests, right tests).

    scores[0] is for tests that should hold for the same rows. scores[1] is for tests of which one should hold exactly
    where the other fails.

    Parameters
    ----------
    counts
        The number of rows in common of each left set and each right set. The sets of a view are its tests, then the
        rows where each attribute is known, and last all rows.
    known_left, known_right
        For each test, the number of the set of rows where its attribute is known.
    target, cap, most
        The numbers w, c and m of the module `match_scores`.
    scores
        The array to fill in.
    """
    for i in range(len(known_left)):
        for j in range(len(known_right)):
            n11, n10, n01, n00, half = _cells(counts, i, j, known_left[i], known_right[j])
            gain = min((1 - target) * min(n11, n00, cap), target * (most - n11))
            scores[0, i, j] = gain - target * (n10 + n01 + half)
            gain = min((1 - target) * min(n10, n01, cap), target * (most - n10))
            scores[1, i, j] = gain - target * (n11 + n00 + half)


@njit(nogil=True, cache=True)
def lower_scores(
    counts: NDArray[Any],
    within: NDArray[Any],
    known_left: Integers,
    known_right: Integers,
    target: float,
    most: float,
    scores: Floats,
) -> None:
    """Lower the score of each match to at most its term for a known set of rows.

    Parameters
    ----------
    counts, within
        The numbers of rows in common, among all rows and among those in the known set (see `match_scores`).
    known_left, known_right
        See `match_scores`.
    target, most
        The numbers w and d of the module `match_scores`.
    scores
        The array of scores to lower.
    """
    weight, size = min((1 - target) / most, target / (1 - most)), within[-1, -1]
    for i in range(len(known_left)):
        for j in range(len(known_right)):
            n11, n10, n01, n00, _ = _cells(counts, i, j, known_left[i], known_right[j])
            s11, s10, s01, s00, _ = _cells(within, i, j, known_left[i], known_right[j])
            # d |M or S| - |M and S|, first with M as the rows where both sides hold, then as those where neither does
            least = min(most * (n11 + size) - (1 + most) * s11, most * (n00 + size) - (1 + most) * s00)
            scores[0, i, j] = min(scores[0, i, j], weight * least)
            least = min(most * (n10 + size) - (1 + most) * s10, most * (n01 + size) - (1 + most) * s01)
            scores[1, i, j] = min(scores[1, i, j], weight * least)
