"""Sets of rows as bits: how many rows two sets share, and which rows of a set reach each node of a complete tree."""

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


@njit(nogil=True, cache=True)
def route(bits: Bits, tests: Integers, node: int, rows: Bits, members: Bits) -> None:
    """Write the rows of each node k below `node` to members[k], given the rows of `node`."""
    first = last = node
    while 2 * first + 1 < len(members):
        for k in range(first, last + 1):
            some = rows if k == node else members[k]
            test, held, rest = bits[tests[k]], members[2 * k + 1], members[2 * k + 2]
            for w in range(len(some)):
                held[w] = some[w] & test[w]
                rest[w] = some[w] & ~test[w]
        first, last = 2 * first + 1, 2 * last + 2
