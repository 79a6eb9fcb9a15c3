"""Numba kernels of the distance plugin: joint histograms of many subsets of attributes, and scores read off them.

Symbols: codes[a, i] is row i's code of attribute a; subsets[s] lists the attributes of subset s in increasing order;
counts[offsets[s] : offsets[s + 1]] is its joint histogram, last attribute fastest. f(n) = n log2(n) comes as
whole numbers: see `terms.Terms`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Integers: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
Counts: TypeAlias = "NDArray[np.int32]"


@njit(nogil=True, cache=True)
def add_joint_counts(
    codes: NDArray[Any], sizes: Integers, subsets: Integers, offsets: Integers, counts: Counts
) -> None:
    """Add each row to its cell of every subset's joint histogram.

    Subsets are in lexicographic order: what the first attributes of one share with the one before it is not computed
    again. Rows are dealt out to four tables where these are small: where many rows in turn fall in one cell, an
    addition then need not wait for the one before it.
    """
    number, order = subsets.shape
    rows = codes.shape[1]
    whole = rows - rows % 4
    prefix = np.zeros((max(order - 1, 1), rows), dtype=np.uint32)
    known = np.full(order, -1, dtype=np.int64)
    largest = 0
    for s in range(number):
        largest = max(largest, offsets[s + 1] - offsets[s])
    tables = np.zeros((4, min(largest, 4096)), dtype=np.int32)
    first, second, third, fourth = tables[0], tables[1], tables[2], tables[3]
    for s in range(number):
        fresh = False
        for level in range(order - 1):
            attribute = subsets[s, level]
            if not fresh and known[level] == attribute:
                continue
            fresh = True
            known[level] = attribute
            here, column = prefix[level], codes[attribute]
            if level == 0:
                for i in range(rows):
                    here[i] = column[i]
            else:
                before, size = prefix[level - 1], np.uint32(sizes[attribute])
                for i in range(rows):
                    here[i] = before[i] * size + column[i]
        cells = offsets[s + 1] - offsets[s]
        table = counts[offsets[s] : offsets[s + 1]]
        last = subsets[s, order - 1]
        here, column, size = prefix[order - 2], codes[last], np.uint32(sizes[last])
        if cells > 4096 or cells > rows:
            for i in range(rows):
                table[here[i] * size + column[i]] += 1
            continue
        for i in range(0, whole, 4):
            first[here[i] * size + column[i]] += 1
            second[here[i + 1] * size + column[i + 1]] += 1
            third[here[i + 2] * size + column[i + 2]] += 1
            fourth[here[i + 3] * size + column[i + 3]] += 1
        for i in range(whole, rows):
            first[here[i] * size + column[i]] += 1
        for c in range(cells):
            table[c] += first[c] + second[c] + third[c] + fourth[c]
            first[c] = second[c] = third[c] = fourth[c] = 0


@njit(nogil=True, cache=True)
def gather(counts: Counts, offsets: Integers, which: Integers, gathered: Counts) -> None:
    """Copy the histograms of some subsets, one after another."""
    to = 0
    for k in range(len(which)):
        cells = offsets[which[k] + 1] - offsets[which[k]]
        gathered[to : to + cells] = counts[offsets[which[k]] : offsets[which[k] + 1]]
        to += cells


@njit(nogil=True, cache=True)
def _term(number: int, small: Integers, large: Integers, of_large: Integers) -> int:
    """Return f of a number of rows."""
    if number < len(small):
        return int(small[number])
    return int(of_large[np.searchsorted(large, number)])


@njit(nogil=True, cache=True)
def conditional_scores(
    counts: Counts,
    sizes: Integers,
    subsets: Integers,
    begins: Integers,
    target: int,
    small: Integers,
    large: Integers,
    of_large: Integers,
) -> Integers:
    """Return, for each subset, the sum of f over its cells less that over the cells without the target.

    That is -N H(target | the others). Each subset holds the target; its histogram begins at begins[s]. The last three
    are f of all numbers that occur (see `terms.Terms`).
    """
    number, order = subsets.shape
    size = sizes[target]
    scores = np.zeros(number, dtype=np.int64)
    for s in range(number):
        inner = 1
        for level in range(order - 1, -1, -1):
            if subsets[s, level] == target:
                break
            inner *= sizes[subsets[s, level]]
        step = size * inner
        cells = 1
        for level in range(order):
            cells *= sizes[subsets[s, level]]
        score = np.int64(0)
        for outer in range(begins[s], begins[s] + cells, step):
            for cell in range(outer, outer + inner):
                together = 0
                for y in range(cell, cell + step, inner):
                    together += counts[y]
                if together == 0:
                    continue
                for y in range(cell, cell + step, inner):
                    score += _term(counts[y], small, large, of_large)
                score -= _term(together, small, large, of_large)
        scores[s] = score
    return scores


@njit(nogil=True, cache=True)
def add_squares(left: Integers, right: Integers, squares: Floats, total: Floats) -> None:
    """Add squares[left[i], right[j]] to total[i, j]: one attribute's part of the squared distances of two blocks."""
    for i in range(len(left)):
        row = squares[left[i]]
        for j in range(len(right)):
            total[i, j] += row[right[j]]
