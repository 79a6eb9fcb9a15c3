"""Counts of codes by class, and the leaf that each row falls in: one pass over the rows of a block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpframework_trees.splits import BELOW


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
def add_leaf_codes(
    matrix: NDArray[Any],
    index: NDArray[np.int32],
    attributes: NDArray[np.int64],
    kinds: NDArray[np.int8],
    codes: NDArray[np.int64],
    depth: int,
    leaves: NDArray[np.int64],
) -> None:
    """Fill in the leaf of each row: test k of a complete tree asks attributes[k] for a code."""
    for i in range(len(index)):
        node = 0
        for _ in range(depth):
            value = matrix[attributes[node], index[i]]
            held = value <= codes[node] if kinds[node] == BELOW else value == codes[node]
            node = 2 * node + (1 if held else 2)
        leaves[i] = node - ((1 << depth) - 1)
