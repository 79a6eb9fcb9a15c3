"""Rows routed down a complete tree: every node has a set of rows, and a spare set for a tree that is proposed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpframework_trees.kernels.arrays import Bits, Integers
from dpframework_trees.kernels.bits import common


class Routed(NamedTuple):
    """A complete tree, and the rows of its nodes.

    Attributes
    ----------
    bits
        The tests that it may ask, shape (tests, words).
    tests
        What each node but the leaves asks.
    members
        Two sets of rows a node, shape (2, nodes, words).
    which
        Which of the two is the node's own; the other is spare.
    """

    bits: Bits
    tests: Integers
    members: Bits
    which: NDArray[np.int8]


@njit(nogil=True, cache=True)
def _part(rows: Bits, test: Bits, held: Bits, rest: Bits) -> None:
    for w in range(len(rows)):
        held[w] = rows[w] & test[w]
        rest[w] = rows[w] & ~test[w]


@njit(nogil=True, cache=True)
def place_rows(bits: Bits, tests: Integers, members: Bits, which: NDArray[np.int8]) -> None:
    """Put the rows of every node below the root, whose own are members[which[0], 0], in its own set."""
    inner = len(tests)
    for k in range(inner):
        left, right = 2 * k + 1, 2 * k + 2
        _part(members[which[k], k], bits[tests[k]], members[which[left], left], members[which[right], right])


@njit(nogil=True, cache=True)
def reroute(tree: Routed, node: int, test: int) -> None:
    """Put the rows of each node below `node` in its spare set, as if `node` asked `test`."""
    members, which = tree.members, tree.which
    first = last = node
    while first < len(tree.tests):
        for k in range(first, last + 1):
            rows = members[which[k] if k == node else 1 - which[k], k]
            left, right = 2 * k + 1, 2 * k + 2
            asked = test if k == node else tree.tests[k]
            _part(rows, tree.bits[asked], members[1 - which[left], left], members[1 - which[right], right])
        first, last = 2 * first + 1, 2 * last + 2


@njit(nogil=True, cache=True)
def keep(tree: Routed, node: int, test: int) -> None:
    """Let `node` ask `test`, and take the spare sets of all nodes below it for their own."""
    tree.tests[node] = test
    first, last = 2 * node + 1, 2 * node + 2
    while first < len(tree.which):
        for k in range(first, last + 1):
            tree.which[k] = 1 - tree.which[k]
        first, last = 2 * first + 1, 2 * last + 2


@njit(nogil=True, cache=True)
def leaves_below(tree: Routed, node: int) -> tuple[int, int]:
    """Return the first leaf below a node, and the one after the last, counted from 0."""
    inner = len(tree.tests)
    first = last = node
    while first < inner:
        first, last = 2 * first + 1, 2 * last + 2
    return first - inner, last - inner + 1


@njit(nogil=True, cache=True)
def own_rows(tree: Routed, leaf: int) -> Bits:
    """Return the rows of a leaf."""
    node = len(tree.tests) + leaf
    rows: Bits = tree.members[tree.which[node], node]
    return rows


@njit(nogil=True, cache=True)
def spare_rows(tree: Routed, leaf: int) -> Bits:
    """Return the rows of a leaf of the tree that is proposed."""
    node = len(tree.tests) + leaf
    rows: Bits = tree.members[1 - tree.which[node], node]
    return rows


@njit(nogil=True, cache=True)
def leaf_counts(members: Bits, which: NDArray[np.int8], class_bits: Bits, counts: Integers) -> None:
    """Fill in counts[leaf, class]."""
    inner = len(which) - len(counts)
    for leaf in range(len(counts)):
        for c in range(len(class_bits)):
            counts[leaf, c] = common(members[which[inner + leaf], inner + leaf], class_bits[c])
