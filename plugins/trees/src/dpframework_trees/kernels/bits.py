"""Count the rows that sets of rows share, with sets as bits."""

from __future__ import annotations

from numba import njit

from dpframework.tables import popcount
from dpframework_trees.kernels.array_types import Bits, Integers


@njit(nogil=True, cache=True)
def common(one: Bits, other: Bits) -> int:
    """Return the number of rows in both of two sets."""
    total = 0
    for w in range(len(one)):
        total += popcount(one[w] & other[w])
    return total


@njit(nogil=True, cache=True)
def count_common(bits: Bits, others: Bits, counts: Integers) -> None:
    """Set counts[t, u] to the number of rows that set t of `bits` and set u of `others` share."""
    for t in range(len(bits)):
        for u in range(len(others)):
            counts[t, u] = common(bits[t], others[u])
