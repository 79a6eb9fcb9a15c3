"""Numba kernels for the joint histograms of many subsets of attributes, and for scores of these histograms.

Symbols: codes[a, i] is row i's code of attribute a; subsets[s] lists the attributes of subset s in increasing order;
counts[offsets[s] : offsets[s + 1]] is its joint histogram, the last attribute varying fastest. f(n) = n log2(n) is
given in whole numbers (see `entropy_terms.Terms`).
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Integers: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
Counts: TypeAlias = "NDArray[np.int32]"

TINY = 1e-300  # the divisor that takes the place of a sum of 0


class Room(NamedTuple):
    """The arrays that `add_joint_counts` writes to, allocated by its caller.

    Attributes
    ----------
    prefix
        The cell of each row among the first attributes of a subset, shape (order - 1, rows).
    known
        The attributes whose cells `prefix` holds, shape (order,); -1 where nothing is known.
    tables
        Four tables, each with as many cells as the largest joint histogram that is counted in four tables. All are 0.
    """

    prefix: NDArray[np.uint32]
    known: Integers
    tables: NDArray[np.int32]


@njit(nogil=True, cache=True)
def add_joint_counts(
    codes: NDArray[Any], sizes: Integers, subsets: Integers, offsets: Integers, room: Room, counts: Counts
) -> None:
    """Add each row to its cell of every subset's joint histogram.

    Subsets are in lexicographic order, so the cells of the first attributes that a subset shares with the one before it
    are kept. Where tables are small, rows are dealt out to four of them. If many consecutive rows fall into one cell,
    an addition then need not wait for the one before it.
    """
    number, order = subsets.shape
    rows = codes.shape[1]
    whole = rows - rows % 4
    prefix, known, tables = room
    first, second, third, fourth = tables[0], tables[1], tables[2], tables[3]
    for s in range(number):
        fresh = False
        for level in range(order - 1):
            attribute = subsets[s, level]
            if not fresh and known[level] == attribute:
                continue
            fresh = True
            known[level] = attribute
            here, column, before = prefix[level], codes[attribute], prefix[level - 1]
            size = np.uint32(sizes[attribute])
            if level == 0:
                for i in range(rows):
                    here[i] = column[i]
            else:
                for i in range(rows):
                    here[i] = before[i] * size + column[i]
        cells, begin = offsets[s + 1] - offsets[s], offsets[s]
        last = subsets[s, order - 1]
        here, column, size = prefix[order - 2], codes[last], np.uint32(sizes[last])
        if cells > len(first) or cells > rows:
            for i in range(rows):
                counts[begin + here[i] * size + column[i]] += 1
            continue
        for i in range(0, whole, 4):
            # all is read before anything is written: the compiler cannot know that these are different arrays
            one, two = here[i] * size + column[i], here[i + 1] * size + column[i + 1]
            three, four = here[i + 2] * size + column[i + 2], here[i + 3] * size + column[i + 3]
            first[one] += 1
            second[two] += 1
            third[three] += 1
            fourth[four] += 1
        for i in range(whole, rows):
            first[here[i] * size + column[i]] += 1
        for c in range(cells):
            counts[begin + c] += first[c] + second[c] + third[c] + fourth[c]
            first[c] = second[c] = third[c] = fourth[c] = 0


@njit(nogil=True, cache=True)
def _compute(number: int, large: Integers, of_large: Integers) -> Any:
    """Return f of a large number of rows, found by bisection."""
    low, high = 0, len(large) - 1
    while low < high:
        middle = (low + high) // 2
        if large[middle] < number:
            low = middle + 1
        else:
            high = middle
    return of_large[low]


@njit(nogil=True, cache=True)
def fill_sums(
    counts: Counts,
    begins: Integers,
    sizes: Integers,
    subsets: Integers,
    places: Integers,
    small: Integers,
    large: Integers,
    of_large: Integers,
    whole: Integers,
    less: Integers,
) -> None:
    """Fill in, for each subset, the sums of f over its joint histogram, and over those with one attribute summed out.

    The histogram of subset s begins at begins[s]. The sum with the attribute at a level left out is put at
    less[places[s, level]] if that entry is negative, which means that it is not known yet. A negative place means that
    the sum is not needed. `small`, `large` and `of_large` hold f of all numbers that occur (see `entropy_terms.Terms`).
    """
    number, order = subsets.shape
    for s in range(number):
        begin, inner = begins[s], 1
        for level in range(order - 1, -1, -1):
            inner *= sizes[subsets[s, level]]
        end = begin + inner
        found = np.int64(0)
        for cell in range(begin, end):
            own = np.int64(counts[cell])
            found += small[own] if own < len(small) else _compute(own, large, of_large)
        whole[s] = found
        inner = 1
        for level in range(order - 1, -1, -1):
            step, place = inner * sizes[subsets[s, level]], places[s, level]
            if place >= 0 and less[place] < 0:
                found = np.int64(0)
                for outer in range(begin, end, step):
                    for cell in range(outer, outer + inner):
                        together = np.int64(0)
                        for y in range(cell, cell + step, inner):
                            together += counts[y]
                        found += small[together] if together < len(small) else _compute(together, large, of_large)
                less[place] = found
            inner = step


@njit(nogil=True, cache=True)
def add_squares(left: Integers, right: Integers, squares: Floats, total: Floats) -> None:
    """Add squares[left[i], right[j]], one attribute's part of the squared distance of two rows, to total[i, j]."""
    for i in range(len(left)):
        row = squares[left[i]]
        for j in range(len(right)):
            total[i, j] += row[right[j]]


@njit(nogil=True, cache=True)
def fit_to_marginals(table: Floats, first: Floats, second: Floats, rounds: int) -> None:
    """Multiply the rows of a table, then its columns, so that they sum to the given marginals, in turn and in place."""
    height, width = table.shape
    sums = np.empty(width)
    for _ in range(rounds):
        sums[:] = 0.0
        for i in range(height):
            own = 0.0
            for j in range(width):
                own += table[i, j]
            factor = first[i] / max(own, TINY)
            for j in range(width):
                table[i, j] *= factor
                sums[j] += table[i, j]
        for j in range(width):
            sums[j] = second[j] / max(sums[j], TINY)
        for i in range(height):
            for j in range(width):
                table[i, j] *= sums[j]
