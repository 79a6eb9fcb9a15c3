"""Route rows down a complete tree, which gives the set of rows of each node."""

from __future__ import annotations

from numba import njit

from dpframework_trees.kernels.array_types import Bits, Integers


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
