"""Numba kernels of the trees plugin: class counts of every code, and scores of every candidate split.

Symbols: counts[v, c] is the number of rows with code v (codes of all attributes in one line, one attribute after the
other) and class c; f is the criterion of one child, and a split's score is the sum of f over its children.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpframework_trees.criteria import GINI, MAX, NORM
from dpframework_trees.splits import BELOW, MULTIWAY


@njit(nogil=True, cache=True)
def add_class_counts(
    matrix: NDArray[Any],
    index: NDArray[np.int32],
    attributes: NDArray[np.int64],
    sizes: NDArray[np.int64],
    classes: NDArray[Any],
    counts: NDArray[np.int64],
) -> None:
    """Add each row to counts[its code of attributes[k], its class], attribute after attribute.

    `sizes` holds each attribute's number of codes; `classes` is given for the rows of `index`, in their order,
    `matrix` for all rows of the block. Rows are dealt out to four tables: where many rows in turn fall in one cell,
    an addition then need not wait for the one before it (twice as fast on skewed attributes).
    """
    n_classes = counts.shape[1]
    tables = np.zeros((4, sizes.max() * n_classes if len(sizes) else 0), dtype=np.int32)
    first, second, third, fourth = tables[0], tables[1], tables[2], tables[3]
    stride = np.uint32(n_classes)
    whole = len(index) - len(index) % 4
    offset = 0
    for k in range(len(attributes)):
        codes = matrix[attributes[k]]
        tables[:] = 0
        for i in range(0, whole, 4):
            first[np.uint32(codes[index[i]]) * stride + classes[i]] += 1
            second[np.uint32(codes[index[i + 1]]) * stride + classes[i + 1]] += 1
            third[np.uint32(codes[index[i + 2]]) * stride + classes[i + 2]] += 1
            fourth[np.uint32(codes[index[i + 3]]) * stride + classes[i + 3]] += 1
        for i in range(whole, len(index)):
            first[np.uint32(codes[index[i]]) * stride + classes[i]] += 1
        for v in range(sizes[k]):
            for c in range(n_classes):
                cell = v * n_classes + c
                counts[offset + v, c] += first[cell] + second[cell] + third[cell] + fourth[cell]
        offset += sizes[k]


@njit(nogil=True, cache=True)
def child_score(counts: NDArray[np.int64], criterion: int) -> float:
    """Return f of one child's class counts, shape (classes,)."""
    total = 0.0
    largest = 0.0
    for n in counts:
        total += n
        largest = max(largest, n)
    if total == 0:
        return 0.0
    if criterion == MAX:
        return largest
    score = 0.0
    if criterion == NORM:
        for n in counts:
            score += (n / largest) ** 3
        return largest * math.exp(math.log(score) / 3)
    if criterion == GINI:
        for n in counts:
            score += n * (n / total)
        return score
    for n in counts:
        if n > 0:
            score += n * math.log2(n / total)
    return score


@njit(nogil=True, cache=True)
def split_scores(
    counts: NDArray[np.int64],
    slots: NDArray[np.int64],
    widths: NDArray[np.int64],
    kinds: NDArray[np.int8],
    codes: NDArray[np.int64],
    criterion: int,
    scores: NDArray[np.float64],
) -> None:
    """Fill in the score of every candidate.

    Candidate i splits on the attribute whose codes are counts[slots[i] : slots[i] + widths[i]]. Off-grid candidates
    have their true side's counts in counts[slots[i]] and their false side's in counts[slots[i] + 1].
    """
    n_classes = counts.shape[1]
    held = np.zeros(n_classes, dtype=np.int64)
    rest = np.zeros(n_classes, dtype=np.int64)
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
def threshold_scores(
    values: NDArray[np.float64],
    classes: NDArray[Any],
    missing: NDArray[np.int64],
    criterion: int,
    scores: NDArray[np.float64],
) -> None:
    """Fill in the score of a threshold between each two neighbours of sorted values, and at both ends.

    scores[i] belongs to a threshold with the first i values below it; missing values are never below.
    """
    n_classes = len(missing)
    below = np.zeros(n_classes, dtype=np.int64)
    above = missing.copy()
    for c in classes:
        above[c] += 1
    scores[0] = child_score(below, criterion) + child_score(above, criterion)
    for i in range(len(values)):
        below[classes[i]] += 1
        above[classes[i]] -= 1
        scores[i + 1] = child_score(below, criterion) + child_score(above, criterion)
