"""Sets of rows as bits: how blocks become them, and how many rows two of them share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpframework.tables import popcount
from dpframework_trees.kernels.arrays import Bits, Index, Integers, Kinds
from dpframework_trees.splits import BELOW


@njit(nogil=True, cache=True)
def common(one: Bits, other: Bits) -> int:
    """Return the number of rows in both of two sets."""
    total = 0
    for w in range(len(one)):
        total += popcount(one[w] & other[w])
    return int(total)


@njit(nogil=True, cache=True)
def pack_tests(
    matrix: NDArray[Any], index: Index, attributes: Integers, kinds: Kinds, codes: Integers, bits: Bits
) -> None:
    """Set a bit of bits[t] for each row of `index` whose code of attributes[t] passes test t (EQUALS or BELOW).

    Codes are laid out in the order of the rows, once for all tests on an attribute that follow each other: then the
    compiler compares many at once.
    """
    rows, words = len(index), bits.shape[1]
    values = np.zeros(64 * words, dtype=matrix.dtype)
    last = ~np.uint64(0) >> np.uint64(-rows % 64)  # the bits of rows in the last word
    for t in range(len(attributes)):
        if t == 0 or attributes[t] != attributes[t - 1]:
            column = matrix[attributes[t]]
            for i in range(rows):
                values[i] = column[index[i]]
        code = codes[t]
        for w in range(words):
            word = np.uint64(0)
            if kinds[t] == BELOW:
                for b in range(64):
                    word |= np.uint64(values[64 * w + b] <= code) << np.uint64(b)
            else:
                for b in range(64):
                    word |= np.uint64(values[64 * w + b] == code) << np.uint64(b)
            bits[t, w] = word
        if words:
            bits[t, words - 1] &= last


@njit(nogil=True, cache=True)
def pack_classes(classes: NDArray[Any], class_bits: Bits) -> None:
    """Set a bit of class_bits[its class] for each row."""
    for i in range(len(classes)):
        class_bits[classes[i], i >> 6] |= np.uint64(1) << np.uint64(i & 63)


@njit(nogil=True, cache=True)
def arrange(bits: Bits, source: Integers, arranged: Bits) -> None:
    """Give row source[i] of each set the place i; where there is none (-1) the bit stays 0."""
    for t in range(len(bits)):
        for i in range(len(source)):
            row = source[i]
            if row >= 0 and (bits[t, row >> 6] >> np.uint64(row & 63)) & np.uint64(1):
                arranged[t, i >> 6] |= np.uint64(1) << np.uint64(i & 63)


@njit(nogil=True, cache=True)
def count_common(bits: Bits, others: Bits, counts: Integers) -> None:
    """Fill in counts[t, u]: rows of both set t of one kind and set u of another."""
    for t in range(len(bits)):
        for u in range(len(others)):
            counts[t, u] = common(bits[t], others[u])
