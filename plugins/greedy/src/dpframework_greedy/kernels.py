"""Numba kernels of the greedy plugin: joint histograms, and scores of pairs and extensions read off them.

Symbols: `both` and `apart` are the numbers of rows in both supports and in exactly one; `parts` and `adds` make a score
of them (see `scores.Score.parts`). A literal is (position of its attribute, first, last, negated): a range of codes or
its complement. Scores are points of an integer lattice of step `unit`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(nogil=True, cache=True)
def add_pair_counts(
    matrix: NDArray[Any],
    index: NDArray[np.int32],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    left_tops: NDArray[np.int64],
    right_tops: NDArray[np.int64],
    pairs: NDArray[np.int64],
    offsets: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Add each row to the joint histogram of each pair of attributes.

    left[i] and right[j] are rows of `matrix`; the histogram of pair p starts at counts[offsets[p]], code of the left
    attribute first. Codes above an attribute's top are counted as its top.
    """
    rows = len(index)
    first = np.zeros(rows, dtype=np.uint32)
    table = np.zeros((2, 1), dtype=np.int32)
    before = -1
    for p in range(len(pairs)):
        i, j = pairs[p]
        width = np.uint32(right_tops[j] + 1)
        size = (left_tops[i] + 1) * (right_tops[j] + 1)
        if table.shape[1] < size:
            table = np.zeros((2, size), dtype=np.int32)
        table[:] = 0
        if i != before:
            column = matrix[left[i]]
            for r in range(rows):
                first[r] = min(np.int64(column[index[r]]), left_tops[i])
            before = i
        other = matrix[right[j]]
        top = right_tops[j]
        # two tables: an addition need not wait for the one before it where rows in turn fall in one cell
        for r in range(0, rows - 1, 2):
            table[0, first[r] * width + np.uint32(min(np.int64(other[index[r]]), top))] += 1
            table[1, first[r + 1] * width + np.uint32(min(np.int64(other[index[r + 1]]), top))] += 1
        if rows % 2:
            r = rows - 1
            table[0, first[r] * width + np.uint32(min(np.int64(other[index[r]]), top))] += 1
        for cell in range(size):
            counts[offsets[p] + cell] += table[0, cell] + table[1, cell]


@njit(nogil=True, cache=True)
def _cumulate(counts: NDArray[np.int64], height: int, width: int, sums: NDArray[np.int64]) -> None:
    """Fill in sums[v, w], the number of rows with codes below v and w."""
    for v in range(height):
        along = 0
        for w in range(width):
            along += counts[v * width + w]
            sums[v + 1, w + 1] = sums[v, w + 1] + along


@njit(nogil=True, cache=True)
def lattice_score(both: int, apart: int, parts: NDArray[np.float64], adds: bool, unit: float) -> np.int64:
    """Return the lattice point nearest to the score."""
    either = both + apart
    if adds:
        return np.int64(np.rint((parts[0, both] + parts[1, either]) / unit))
    if both == 0:
        return np.int64(0)
    return np.int64(np.rint(parts[0, both] * parts[1, either] * both / either / unit))


@njit(nogil=True, cache=True)
def pair_scores(
    counts: NDArray[np.int64],
    left_tests: NDArray[np.int64],
    right_tests: NDArray[np.int64],
    left_top: int,
    right_top: int,
    parts: NDArray[np.float64],
    adds: bool,
    unit: float,
    scores: NDArray[np.int64],
) -> None:
    """Fill in the score of every pair of literals of one pair of attributes, right literal fastest.

    `counts` is their joint histogram, shape ((left_top + 1) (right_top + 1),).
    """
    sums = np.zeros((left_top + 2, right_top + 2), dtype=np.int64)
    _cumulate(counts, left_top + 1, right_top + 1, sums)
    rows = sums[left_top + 1, right_top + 1]
    k = 0
    for a in range(len(left_tests)):
        low, high = left_tests[a, 1], left_tests[a, 2] + 1
        held = sums[high, right_top + 1] - sums[low, right_top + 1]
        for b in range(len(right_tests)):
            start, end = right_tests[b, 1], right_tests[b, 2] + 1
            left, right = held, sums[left_top + 1, end] - sums[left_top + 1, start]
            both = sums[high, end] - sums[low, end] - sums[high, start] + sums[low, start]
            if left_tests[a, 3]:
                left, both = rows - left, right - both
            if right_tests[b, 3]:
                right, both = rows - right, left - both
            scores[k] = lattice_score(both, left + right - 2 * both, parts, adds, unit)
            k += 1


@njit(nogil=True, cache=True)
def log_weight(scores: NDArray[np.int64], scale: float) -> np.int64:
    """Return scale ln(sum of exp(score / scale)), rounded to the lattice."""
    top = scores.max()
    total = lost = 0.0
    for score in scores:  # a compensated sum: its error does not grow with the number of scores
        term = math.exp((score - top) / scale) - lost
        more = total + term
        lost = (more - total) - term
        total = more
    return np.int64(top + np.int64(np.rint(scale * math.log(total))))


@njit(nogil=True, cache=True)
def pair_log_weights(
    counts: NDArray[np.int64],
    offsets: NDArray[np.int64],
    pairs: NDArray[np.int64],
    wanted: NDArray[np.int64],
    left_tests: NDArray[np.int64],
    right_tests: NDArray[np.int64],
    left_starts: NDArray[np.int64],
    right_starts: NDArray[np.int64],
    left_tops: NDArray[np.int64],
    right_tops: NDArray[np.int64],
    parts: NDArray[np.float64],
    adds: bool,
    unit: float,
    scale: float,
    weights: NDArray[np.int64],
) -> None:
    """Fill in the log-weight of each wanted pair of attributes: of all its pairs of literals together."""
    for p in wanted:
        i, j = pairs[p]
        of_left = left_tests[left_starts[i] : left_starts[i + 1]]
        of_right = right_tests[right_starts[j] : right_starts[j + 1]]
        scores = np.zeros(len(of_left) * len(of_right), dtype=np.int64)
        pair_scores(
            counts[offsets[p] : offsets[p + 1]],
            of_left,
            of_right,
            left_tops[i],
            right_tops[j],
            parts,
            adds,
            unit,
            scores,
        )
        weights[p] = log_weight(scores, scale)


@njit(nogil=True, cache=True)
def add_class_counts(
    matrix: NDArray[Any],
    index: NDArray[np.int32],
    attributes: NDArray[np.int64],
    tops: NDArray[np.int64],
    classes: NDArray[np.uint8],
    counts: NDArray[np.int64],
) -> None:
    """Add each row to counts[its code of attributes[k], its class], one attribute after the other.

    Of four classes: 2 where the left side holds, plus 1 where the right one does.
    """
    offset = 0
    for k in range(len(attributes)):
        column, top = matrix[attributes[k]], tops[k]
        for r in range(len(index)):
            counts[offset + min(np.int64(column[index[r]]), top), classes[r]] += 1
        offset += top + 1


@njit(nogil=True, cache=True)
def extension_scores(
    counts: NDArray[np.int64],
    totals: NDArray[np.int64],
    tops: NDArray[np.int64],
    tests: NDArray[np.int64],
    left_side: bool,
    parts: NDArray[np.float64],
    adds: bool,
    unit: float,
    scores: NDArray[np.int64],
) -> None:
    """Fill in the scores of one side's extensions: first of every literal by `and`, then of every literal by `or`.

    `counts` are those of `add_class_counts` for the attributes of that side, `totals` the number of rows a class.
    """
    number = len(tests)
    held = np.zeros(4, dtype=np.int64)
    starts = np.zeros(len(tops) + 1, dtype=np.int64)
    for k in range(len(tops)):
        starts[k + 1] = starts[k] + tops[k] + 1
    sums = np.zeros((starts[len(tops)] + len(tops), 4), dtype=np.int64)
    for k in range(len(tops)):
        for v in range(tops[k] + 1):
            for c in range(4):
                sums[starts[k] + k + v + 1, c] = sums[starts[k] + k + v, c] + counts[starts[k] + v, c]
    # classes as this side sees them: both sides hold, this one only, the other only, neither
    mine, others = (2, 1) if left_side else (1, 2)
    for x in range(number):
        k = tests[x, 0]
        base = starts[k] + k
        for c in range(4):
            held[c] = sums[base + tests[x, 2] + 1, c] - sums[base + tests[x, 1], c]
            if tests[x, 3]:
                held[c] = totals[c] - held[c]
        both, apart = held[3], held[mine] + totals[3] - held[3] + totals[others]
        scores[x] = lattice_score(both, apart, parts, adds, unit)
        both = totals[3] + held[others]
        apart = totals[mine] + held[0] + totals[others] - held[others]
        scores[number + x] = lattice_score(both, apart, parts, adds, unit)
