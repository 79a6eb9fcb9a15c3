"""Sums of weights of all trees below each root, for the exact sampler."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpframework.tables import popcount
from dpframework_trees.kernels.arrays import Bits, Counts, Floats, Integers
from dpframework_trees.kernels.scoring import child_score


class Weighing(NamedTuple):
    """What weighs trees of one test, and stumps below them.

    Attributes
    ----------
    counts
        Of the rows, as `count_tests` fills them in.
    criterion
        What scores a leaf.
    scale
        What scores are divided by.
    """

    counts: Counts
    criterion: int
    scale: float


@njit(nogil=True, cache=True)
def count_classes(rows: Bits, test: Bits, starts: Integers, counts: NDArray[Any]) -> None:
    """Fill in counts[c]: rows of a set that a test holds for, where words starts[c] to starts[c + 1] hold class c."""
    for c in range(len(counts)):
        some, held = rows[starts[c] : starts[c + 1]], test[starts[c] : starts[c + 1]]
        total = np.int64(0)
        for w in range(len(some)):  # from 0: an index that may be negative keeps the compiler from many words at once
            total += popcount(some[w] & held[w])
        counts[c] = total


@njit(nogil=True, cache=True)
def count_tests(bits: Bits, rows: Bits, starts: Integers, counts: Counts) -> None:
    """Fill in counts[t, c]: rows of a set that test t holds for, by class; counts[-1, c] is for all rows of the set."""
    for t in range(len(bits)):
        count_classes(rows, bits[t], starts, counts[t])
    count_classes(rows, rows, starts, counts[-1])


@njit(nogil=True, cache=True)
def count_pairs(bits: Bits, rows: Bits, starts: Integers, pairs: Counts) -> None:
    """Fill in pairs[t, u, c] for t < u: rows of a set that both tests hold for, by class."""
    for t in range(len(bits)):
        held = rows & bits[t]
        for u in range(t + 1, len(bits)):
            count_classes(held, bits[u], starts, pairs[t, u])


@njit(nogil=True, cache=True)
def log_weights_of_stumps(weighing: Weighing, weights: Floats) -> None:
    """Fill in the log-weight of each tree of one test."""
    counts, criterion, scale = weighing
    rest = np.zeros(counts.shape[1], dtype=np.int64)
    for t in range(len(weights)):
        for c in range(len(rest)):
            rest[c] = counts[-1, c] - counts[t, c]
        weights[t] = (child_score(counts[t], criterion) + child_score(rest, criterion)) / scale


@njit(nogil=True, cache=True, inline="always")
def _add(log_weight: float, top: Floats, total: Floats, k: int) -> None:
    """Add a weight to the sum exp(top[k]) total[k]."""
    if log_weight <= top[k]:
        total[k] += math.exp(log_weight - top[k])
    else:
        total[k] = total[k] * math.exp(top[k] - log_weight) + 1.0
        top[k] = log_weight


@njit(nogil=True, cache=True)
def _add_pairs_of(t: int, pairs: Counts, weighing: Weighing, scores: Floats, top: Floats, total: Floats) -> None:
    """Add the weights of all subtrees of one test below a root, where root and test are t and any u >= t.

    top[side, root] and total[side, root] sum over the tests on one side of a root; scores[side, t] is of the leaf on
    one side of t.
    """
    counts, criterion, scale = weighing
    cell = np.zeros((4, counts.shape[1]), dtype=np.int64)
    for side in range(2):
        _add(scores[side, t] / scale, top[side], total[side], t)  # t again, below t: one leaf is empty
    for u in range(t + 1, len(pairs)):
        for c in range(counts.shape[1]):
            both = pairs[u, c]
            cell[0, c] = both
            cell[1, c] = counts[t, c] - both
            cell[2, c] = counts[u, c] - both
            cell[3, c] = counts[-1, c] - counts[t, c] - counts[u, c] + both
        both_score, t_score = child_score(cell[0], criterion), child_score(cell[1], criterion)
        u_score, neither_score = child_score(cell[2], criterion), child_score(cell[3], criterion)
        _add((both_score + t_score) / scale, top[0], total[0], t)
        _add((u_score + neither_score) / scale, top[1], total[1], t)
        _add((both_score + u_score) / scale, top[0], total[0], u)
        _add((t_score + neither_score) / scale, top[1], total[1], u)


@njit(nogil=True, cache=True)
def log_weights_of_pairs(pairs: Counts, weighing: Weighing, top: Floats, total: Floats) -> None:
    """Sum up the weights of all trees of one test below each root (see `_add_pairs_of`), from all `count_pairs`."""
    scores = _side_scores(weighing.counts, weighing.criterion)
    for t in range(len(pairs)):
        _add_pairs_of(t, pairs[t], weighing, scores, top, total)


@njit(nogil=True, cache=True)
def log_weights_of_rows(
    bits: Bits, rows: Bits, starts: Integers, weighing: Weighing, first: int, stride: int, top: Floats, total: Floats
) -> None:
    """Do the share of `log_weights_of_pairs` that has t = first, first + stride, ..., counting pairs on the way.

    Memory grows with the tests, not with their pairs.
    """
    scores = _side_scores(weighing.counts, weighing.criterion)
    pairs = np.zeros((len(bits), weighing.counts.shape[1]), dtype=np.int32)
    for t in range(first, len(bits), stride):
        held = rows & bits[t]
        for u in range(t + 1, len(bits)):
            count_classes(held, bits[u], starts, pairs[u])
        _add_pairs_of(t, pairs, weighing, scores, top, total)


@njit(nogil=True, cache=True)
def _side_scores(counts: Counts, criterion: int) -> Floats:
    scores = np.zeros((2, len(counts) - 1))
    for t in range(len(counts) - 1):
        scores[0, t] = child_score(counts[t], criterion)
        scores[1, t] = child_score(counts[-1] - counts[t], criterion)
    return scores
