"""The leaf that each row falls in: one pass over the rows of a block."""

from __future__ import annotations

from typing import Any

from numba import njit
from numpy.typing import NDArray

from dpframework_trees.kernels.arrays import Index, Integers, Kinds
from dpframework_trees.splits import BELOW


@njit(nogil=True, cache=True)
def add_leaf_codes(
    matrix: NDArray[Any],
    index: Index,
    attributes: Integers,
    kinds: Kinds,
    codes: Integers,
    depth: int,
    leaves: Integers,
) -> None:
    """Fill in the leaf of each row: test k of a complete tree asks attributes[k] for a code."""
    for i in range(len(index)):
        node = 0
        for _ in range(depth):
            value = matrix[attributes[node], index[i]]
            held = value <= codes[node] if kinds[node] == BELOW else value == codes[node]
            node = 2 * node + (1 if held else 2)
        leaves[i] = node - ((1 << depth) - 1)
