"""Numba kernels that count the rows of a block, divide them into two parts, or count the ones in a word of bits.

Import them inside functions, since numba takes 0.6 s to load.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray


@njit(nogil=True, cache=True)
def add_class_counts(
    column: NDArray[Any],
    index: NDArray[np.int32],
    whole: bool,
    classes: NDArray[Any],
    tables: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    """Add each row to counts[its code, its class].

    Rows are dealt out to four tables in turn. So if many consecutive rows fall into the same cell, an addition need not
    wait for the addition before. This is twice as fast on skewed attributes.

    Parameters
    ----------
    column
        The codes of one attribute.
    index, whole
        The positions of the counted rows in the column. If `whole`, all rows are counted and the index is not read.
    classes
        The class of each counted row, in the order of the rows, below the number of columns of `counts`.
    tables
        Four tables of zeros, shape (4, codes * classes). If the shape is (4, 0), rows are added to `counts` directly.
    counts
        The counts to add to, shape (codes, classes).
    """
    rows, n_classes = len(classes), counts.shape[1]
    size = tables.shape[1]
    if size == 0:
        for i in range(rows):
            code = column[i] if whole else column[np.uint32(index[i])]
            counts[np.uint32(code), np.uint32(classes[i])] += 1
        return
    first, second, third, fourth = tables[0], tables[1], tables[2], tables[3]
    stride, four = np.uint32(n_classes), rows - rows % 4
    if whole:
        for i in range(0, four, 4):
            # All codes are read before a count is written, since the compiler cannot know that the arrays differ.
            a, b = np.uint32(column[i]), np.uint32(column[i + 1])
            c, d = np.uint32(column[i + 2]), np.uint32(column[i + 3])
            a, b = a * stride + classes[i], b * stride + classes[i + 1]
            c, d = c * stride + classes[i + 2], d * stride + classes[i + 3]
            first[a] += 1
            second[b] += 1
            third[c] += 1
            fourth[d] += 1
    else:
        for i in range(0, four, 4):
            a, b = np.uint32(column[np.uint32(index[i])]), np.uint32(column[np.uint32(index[i + 1])])
            c, d = np.uint32(column[np.uint32(index[i + 2])]), np.uint32(column[np.uint32(index[i + 3])])
            a, b = a * stride + classes[i], b * stride + classes[i + 1]
            c, d = c * stride + classes[i + 2], d * stride + classes[i + 3]
            first[a] += 1
            second[b] += 1
            third[c] += 1
            fourth[d] += 1
    for i in range(four, rows):
        first[np.uint32(column[i] if whole else column[np.uint32(index[i])]) * stride + classes[i]] += 1
    for cell in range(size):
        counts[cell // n_classes, cell % n_classes] += first[cell] + second[cell] + third[cell] + fourth[cell]


@njit(nogil=True, cache=True)
def halve_rows(
    column: NDArray[Any],
    index: NDArray[np.int32],
    whole: bool,
    second: NDArray[np.bool_],
    positions: NDArray[np.int32],
) -> int:
    """Write the positions of two kinds of rows into an array.

    Positions of the first kind are written from the array's start, positions of the second kind from its end backwards.

    Each position is written at both ends, and the next position overwrites one of the two. So the loop has no branch.
    With a branch, which a processor could not predict, the loop would take three times as long.

    Parameters
    ----------
    column, index, whole
        As for `add_class_counts`.
    second
        For each code, whether its rows are of the second kind, shape (codes,).
    positions
        The array to write to, as long as the number of rows that are taken.

    Returns
    -------
    int
        The number of positions that were written from the start.
    """
    rows, first = len(positions), 0
    for i in range(rows):
        row = i if whole else index[i]
        positions[first] = row
        positions[rows - 1 - i + first] = row
        first += 1 - second[column[np.uint32(row)]]
    return first


@intrinsic
def popcount(context: Any, word: Any) -> Any:
    """Return the number of ones in a 64-bit word, by the processor's instruction for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate
