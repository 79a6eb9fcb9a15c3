"""Numba kernels that count rows of a block: in one pass over its codes, or as bits.

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
    matrix: NDArray[Any],
    index: NDArray[np.int32],
    attributes: NDArray[np.int64],
    sizes: NDArray[np.int64],
    classes: NDArray[Any],
    counts: NDArray[np.int64],
) -> None:
    """Add each row to counts[its code of attributes[k], its class], attribute after attribute.

    Rows are dealt out to four tables: where many rows in turn fall in one cell, an addition then need not wait for the
    one before it (twice as fast on skewed attributes).

    Parameters
    ----------
    matrix, index
        Those of a block (see `Block`).
    attributes, sizes
        The rows of the matrix that are read, and how many codes each may hold.
    classes
        The class of each row of `index`, in its order, below the number of columns of `counts`.
    counts
        What is added to, shape (sum of sizes, classes).
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


@intrinsic
def popcount(context: Any, word: Any) -> Any:
    """Return the number of ones in a 64-bit word, by the processor's own instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate
