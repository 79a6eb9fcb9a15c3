"""Scores of splits, thresholds and pairs of trees, as sums of f over children or leaves."""

from __future__ import annotations

import math
from typing import Any

from numba import njit

from dpframework_trees.criteria import GINI, MAX, NORM
from dpframework_trees.kernels.arrays import Floats, Integers, Kinds
from dpframework_trees.splits import BELOW, MULTIWAY


@njit(nogil=True, cache=True)
def child_score(counts: Integers, criterion: int) -> float:
    """Return f of one child's class counts, shape (classes,)."""
    total = largest = 0.0
    for c in range(len(counts)):
        n = float(counts[c])
        total += n
        largest = max(largest, n)
    if total == 0:
        return 0.0
    if criterion == MAX:
        return largest
    score = 0.0
    if criterion == NORM:
        for c in range(len(counts)):
            share = counts[c] / largest
            score += share * (share * share)
        return largest * math.exp(math.log(score) / 3)
    for c in range(len(counts)):
        n = counts[c]
        if criterion == GINI:
            score += n * (n / total)
        elif n > 0:
            score += n * math.log2(n / total)
    return score


@njit(nogil=True, cache=True)
def split_scores(
    counts: Integers,
    slots: Integers,
    widths: Integers,
    kinds: Kinds,
    codes: Integers,
    criterion: int,
    sides: Integers,
    scores: Floats,
) -> None:
    """Fill in the score of every candidate.

    Candidate i splits on the attribute whose codes are counts[slots[i] : slots[i] + widths[i]]. Off-grid candidates
    have their true side's counts in counts[slots[i]] and their false side's in counts[slots[i] + 1]. `sides` is room
    for the counts of two sides, shape (2, classes).
    """
    n_classes = counts.shape[1]
    held, rest = sides[0], sides[1]
    for i in range(len(slots)):
        first, width = slots[i], widths[i]
        if kinds[i] == MULTIWAY:
            total = 0.0
            for v in range(first, first + width):
                total += child_score(counts[v], criterion)
            scores[i] = total
            continue
        held[:] = 0
        rest[:] = 0
        for v in range(width):
            on_true_side = v <= codes[i] if kinds[i] == BELOW else v == codes[i]
            for c in range(n_classes):
                if on_true_side:
                    held[c] += counts[first + v, c]
                else:
                    rest[c] += counts[first + v, c]
        scores[i] = child_score(held, criterion) + child_score(rest, criterion)


@njit(nogil=True, cache=True)
def threshold_scores(classes: Integers, below: Integers, above: Integers, criterion: int, scores: Floats) -> None:
    """Fill in the score of a threshold between each two neighbours of sorted values, and at both ends.

    scores[i] belongs to a threshold with the first i values below it. The classes are those of sorted values; `below`
    and `above` count rows by class on either side, first all of them above.
    """
    scores[0] = child_score(below, criterion) + child_score(above, criterion)
    for i in range(len(classes)):
        below[classes[i]] += 1
        above[classes[i]] -= 1
        scores[i + 1] = child_score(below, criterion) + child_score(above, criterion)


@njit(nogil=True, cache=True)
def pair_score(target_counts: Integers, joint: Integers, sizes: Integers, criterion: int, product: bool) -> Any:
    """Return the score of a pair of trees, from counts by class in leaves of the first, and in pairs of leaves.

    The first tree is scored by the target's classes, the second by the leaves of the first, which are the columns of
    `joint`. The score is half of the first's and of what the second gains over no tree at all; or, as published, the
    first's times half of one plus the second's share of the rows. `sizes` is room for a number a leaf of the first.
    """
    first = second = 0.0
    rows = 0
    for leaf in range(len(target_counts)):
        first += child_score(target_counts[leaf], criterion)
        sizes[leaf] = 0
        for beside in range(len(joint)):
            sizes[leaf] += joint[beside, leaf]
        rows += sizes[leaf]
    for beside in range(len(joint)):
        second += child_score(joint[beside], criterion)
    if product:
        return first * (1 + second / rows) / 2 if rows else 0.0
    return (first + second - child_score(sizes, criterion)) / 2
