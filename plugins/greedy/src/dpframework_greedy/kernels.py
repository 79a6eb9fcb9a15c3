"""Numba kernels of the greedy plugin: joint histograms, and scores of pairs and extensions read off them.

Symbols: `both` and `apart` are the numbers of rows in both supports and in exactly one. A literal is (position of its
attribute, first, last, negated): a range of known codes or its complement among these. What is read off the histograms
are numbers of rows in both supports, and in at least one. Scores are made of these by numpy,
at the numbers that occur (see `scores`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Integers: TypeAlias = "NDArray[np.int64]"


class Literals(NamedTuple):
    """The literals of a language, and the joint histograms of its pairs of attributes (see `language.Language`).

    Attributes
    ----------
    tops
        The top code of each attribute of either side.
    known
        How many of its codes are known, the first ones: not missing.
    tests
        The literals of either side, those of one attribute next to each other.
    starts
        Where the literals of each attribute start in those of its side, and the end.
    pairs
        The pairs of attributes, as positions in their sides, shape (pairs, 2).
    offsets
        Where each pair's joint histogram starts if all stand in one line, and the end; code of the left attribute
        first.
    """

    tops: tuple[Integers, Integers]
    known: tuple[Integers, Integers]
    tests: tuple[Integers, Integers]
    starts: tuple[Integers, Integers]
    pairs: Integers
    offsets: Integers


@njit(nogil=True, cache=True)
def add_pair_counts(
    matrix: NDArray[Any], index: NDArray[np.int32], sides: tuple[Integers, Integers], of: Literals, counts: Integers
) -> None:
    """Add each row to the joint histogram of each pair of attributes; sides[0][i] and sides[1][j] are their codes."""
    rows = len(index)
    left_tops, right_tops = of.tops
    first = np.zeros(rows, dtype=np.uint32)
    table = np.zeros((2, 1), dtype=np.int32)
    before = -1
    for p in range(len(of.pairs)):
        i, j = of.pairs[p]
        width = np.uint32(right_tops[j] + 1)
        size = (left_tops[i] + 1) * (right_tops[j] + 1)
        if table.shape[1] < size:
            table = np.zeros((2, size), dtype=np.int32)
        table[:] = 0
        if i != before:
            column = matrix[sides[0][i]]
            for r in range(rows):
                first[r] = column[index[r]]
            before = i
        other = matrix[sides[1][j]]
        # two tables: an addition need not wait for the one before it where rows in turn fall in one cell
        for r in range(0, rows - 1, 2):
            table[0, first[r] * width + np.uint32(other[index[r]])] += 1
            table[1, first[r + 1] * width + np.uint32(other[index[r + 1]])] += 1
        if rows % 2:
            r = rows - 1
            table[0, first[r] * width + np.uint32(other[index[r]])] += 1
        for cell in range(size):
            counts[of.offsets[p] + cell] += table[0, cell] + table[1, cell]


@njit(nogil=True, cache=True)
def _cumulate(counts: Integers, height: int, width: int, sums: Integers) -> None:
    """Fill in sums[v, w], the number of rows with codes below v and w."""
    for v in range(height):
        along = 0
        for w in range(width):
            along += counts[v * width + w]
            sums[v + 1, w + 1] = sums[v, w + 1] + along


@njit(nogil=True, cache=True)
def pair_supports(counts: Integers, of: Literals, p: int, of_both: Integers, of_either: Integers) -> None:
    """Fill in the supports of every pair of literals of pair p of attributes, right literal fastest.

    `counts` are the joint histograms of all pairs of attributes.
    """
    i, j = of.pairs[p]
    left_tests = of.tests[0][of.starts[0][i] : of.starts[0][i + 1]]
    right_tests = of.tests[1][of.starts[1][j] : of.starts[1][j + 1]]
    height, width = of.tops[0][i] + 1, of.tops[1][j] + 1
    sums = np.zeros((height + 1, width + 1), dtype=np.int64)
    _cumulate(counts[of.offsets[p] : of.offsets[p + 1]], height, width, sums)
    across, down = of.known[0][i], of.known[1][j]  # known codes of either attribute
    k = 0
    for a in range(len(left_tests)):
        low, high = left_tests[a, 1], left_tests[a, 2] + 1
        held = sums[high, width] - sums[low, width]
        known = sums[high, down] - sums[low, down]  # rows of the left literal whose right value is known
        if left_tests[a, 3]:
            held, known = sums[across, width] - held, sums[across, down] - known
        for b in range(len(right_tests)):
            start, end = right_tests[b, 1], right_tests[b, 2] + 1
            left, right = held, sums[height, end] - sums[height, start]
            both = sums[high, end] - sums[low, end] - sums[high, start] + sums[low, start]
            if left_tests[a, 3]:
                both = sums[across, end] - sums[across, start] - both
            if right_tests[b, 3]:
                right, both = sums[height, down] - right, known - both
            of_both[k], of_either[k] = both, left + right - both
            k += 1


@njit(nogil=True, cache=True)
def log_weight(scores: Integers, scale: float) -> np.int64:
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
def extension_supports(counts: Integers, totals: Integers, of: Literals, side: int) -> Integers:
    """Return the supports of one side's extensions: first of every literal by `and`, then of every literal by `or`.

    `counts` are the rows by code of each attribute of that side and class, `totals` the number of rows a class. Classes
    are 2 where the left side holds, plus 1 where the right one does.
    """
    tops, tests = of.tops[side], of.tests[side]
    number = len(tests)
    supports = np.zeros((2, 2 * number), dtype=np.int64)
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
    mine, others = (2, 1) if side == 0 else (1, 2)
    for x in range(number):
        k = tests[x, 0]
        base = starts[k] + k
        for c in range(4):
            held[c] = sums[base + tests[x, 2] + 1, c] - sums[base + tests[x, 1], c]
            if tests[x, 3]:
                held[c] = sums[base + of.known[side][k], c] - held[c]
        supports[0, x], supports[1, x] = held[3], held[mine] + totals[3] + totals[others]
        supports[0, number + x] = totals[3] + held[others]
        supports[1, number + x] = totals[3] + totals[mine] + held[0] + totals[others]
    return supports
