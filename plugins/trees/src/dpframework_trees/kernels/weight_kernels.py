"""Sums of weights of all trees below each root, for the exact sampler."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpframework.tables import popcount
from dpframework_trees.kernels.array_types import Bits, Floats, Integers
from dpframework_trees.kernels.scores import child_score


class Weighing(NamedTuple):
    """The arrays from which the weights of trees of one and two levels are computed.

    Attributes
    ----------
    counts
        The number of rows of each class for which each test holds, then of all rows, shape (tests + 1, classes).
    scores
        The scores of the leaf where each test holds and of the other leaf, shape (2, tests) (see `side_scores`).
    leaves
        Working memory for the counts of four leaves, shape (4, classes).
    scale
        The scale of the exponential mechanism, by which scores are divided.
    """

    counts: Integers
    scores: Floats
    leaves: Integers
    scale: float


@njit(nogil=True, cache=True)
def count_tests(bits: Bits, rows: Bits, starts: Integers, counts: Integers) -> None:
    """Set counts[t, c] to the number of a set's rows of class c that test t holds for, and counts[-1, c] to the total.

    Words starts[c] to starts[c + 1] - 1 of a set hold its rows of class c.
    """
    for t in range(len(counts)):
        test = bits[t] if t < len(bits) else rows
        for c in range(len(starts) - 1):
            some, held = rows[starts[c] : starts[c + 1]], test[starts[c] : starts[c + 1]]
            total = 0
            for w in range(len(some)):  # Indexes start at 0, since possibly negative ones prevent vectorization.
                total += popcount(some[w] & held[w])
            counts[t, c] = total


@njit(nogil=True, cache=True)
def add_pairs(bits: Bits, rows: Bits, starts: Integers, first: int, both: Bits, pairs: NDArray[Any]) -> None:
    """Add to pairs[i, u, c] the number of a set's rows of class c for which tests t = first + i and u >= t both hold.

    `both` is working memory for a set.
    """
    for i in range(len(pairs)):
        test = bits[first + i]
        for w in range(len(both)):
            both[w] = rows[w] & test[w]
        for u in range(first + i, len(bits)):
            for c in range(len(starts) - 1):
                some, held = both[starts[c] : starts[c + 1]], bits[u, starts[c] : starts[c + 1]]
                total = 0
                for w in range(len(some)):
                    total += popcount(some[w] & held[w])
                pairs[i, u, c] += total


def side_scores(counts: Integers, rest: Integers, scores: Floats) -> None:
    """Write the scores of the leaf where each test holds, and of the other leaf, to `scores`.

    `rest` is working memory for counts by class.
    """
    for t in range(len(counts) - 1):
        for c in range(len(rest)):
            rest[c] = counts[-1, c] - counts[t, c]
        scores[0, t] = child_score(counts[t])
        scores[1, t] = child_score(rest)


@njit(nogil=True, cache=True)
def _add(log_weight: float, top: Floats, total: Floats, side: int, k: int) -> None:
    """Add a weight to the sum exp(top[side, k]) total[side, k]."""
    if log_weight <= top[side, k]:
        total[side, k] += math.exp(log_weight - top[side, k])
    else:
        total[side, k] = total[side, k] * math.exp(top[side, k] - log_weight) + 1.0
        top[side, k] = log_weight


def add_log_weights(pairs: Integers, first: int, weighing: Weighing, top: Floats, total: Floats) -> None:
    """Add the weights of all trees with tests t = first + i and u >= t, of which one is the root and one is below it.

    pairs[i, u, c] are as `add_pairs` counts them. The sum of weights over the tests on one side of a root is
    exp(top[side, root]) total[side, root].
    """
    counts, scores, leaf, scale = weighing
    # The sides are variables, so that numba does not compile `_add` once for each constant.
    last, held, rest = len(counts) - 1, np.int64(0), np.int64(1)
    for i in range(len(pairs)):
        t = first + i
        for side in range(2):
            _add(scores[side, t] / scale, top, total, side, t)  # With t below t itself, one of the leaves is empty.
        for u in range(t + 1, last):
            for c in range(counts.shape[1]):
                both = pairs[i, u, c]
                leaf[0, c] = both
                leaf[1, c] = counts[t, c] - both
                leaf[2, c] = counts[u, c] - both
                leaf[3, c] = counts[last, c] - counts[t, c] - counts[u, c] + both
            both_score, t_score = child_score(leaf[0]), child_score(leaf[1])
            u_score, neither_score = child_score(leaf[2]), child_score(leaf[3])
            _add((both_score + t_score) / scale, top, total, held, t)
            _add((u_score + neither_score) / scale, top, total, rest, t)
            _add((both_score + u_score) / scale, top, total, held, u)
            _add((t_score + neither_score) / scale, top, total, rest, u)
