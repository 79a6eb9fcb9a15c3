"""Numba kernels that count rows of a block, in one pass over its codes or as bits.

Import them inside functions: numba takes 0.6 s to load.
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

    Rows are dealt out to four tables: where many rows in turn fall in one cell, an addition then need not wait for the
    one before it (twice as fast on skewed attributes).

    Parameters
    ----------
    column
        The codes of one attribute.
    index, whole
        Which rows of it are counted: those of an index, or all, and the index is not read.
    classes
        The class of each of these rows, in their order, below the number of columns of `counts`.
    tables
        Four tables of the size of `counts`, all 0; or of none, where they are larger than that is worth.
    counts
        What is added to, shape (codes, classes).
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
            # all is read before anything is written: the compiler cannot know that these are different arrays
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
    """Write the positions of rows to both ends of an array: in order from its start, and from its end backwards.

    Each is written at both ends, and one of them is written over by the next: without a branch that is a third of the
    time, since no processor foresees the codes.

    Parameters
    ----------
    column
        The codes of one attribute.
    index, whole
        Which rows of it are taken: those of an index, or all, and the index is not read.
    second
        Whether each code's rows go to the end, shape (codes,).
    positions
        What is written, of the length of the rows that are taken.

    Returns
    -------
    int
        How many were written from the start.
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
    """Return the number of ones in a 64-bit word, by the processor's own instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate
