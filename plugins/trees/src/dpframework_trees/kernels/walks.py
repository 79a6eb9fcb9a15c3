"""Walks over trees and over pairs of trees, by Metropolis and Hastings."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from dpframework.tables import popcount
from dpframework_trees.kernels.array_types import Bits, Integers, Kinds
from dpframework_trees.kernels.row_sets import common, route
from dpframework_trees.kernels.scores import child_score, pair_score

UNDECIDED = -1
CLOSE = 2.0**-40  # the relative difference from which on two numbers are told apart in floating point


class WalkedTree(NamedTuple):
    """A complete tree that a walk changes.

    Attributes
    ----------
    bits
        The rows that each test holds for, shape (tests, words).
    starts
        Words starts[c] to starts[c + 1] - 1 hold the rows of class c.
    tests
        The test of each node that is not a leaf, shape (nodes,).
    members
        The rows of each of these nodes, shape (nodes, words).
    memory
        Working memory for a part of the rows of each of these nodes, shape (nodes, words that are counted at once).
    counts
        Working memory for the rows of each leaf by class, shape (leaves, classes).
    scores
        The score of each leaf, and of each leaf of the proposed tree, in lattice steps, shape (2, leaves).
    """

    bits: Bits
    starts: Integers
    tests: Integers
    members: Bits
    memory: Bits
    counts: Integers
    scores: Integers


class Routed(NamedTuple):
    """One of two trees that a walk changes.

    Attributes
    ----------
    bits
        The rows that each test holds for, shape (tests, words).
    tests
        The test of each node that is not a leaf.
    members
        The rows of each node, then of each leaf, shape (nodes + leaves, words).
    """

    bits: Bits
    tests: Integers
    members: Bits


class WalkedPair(NamedTuple):
    """A pair of trees that a walk changes.

    Attributes
    ----------
    first, second
        The trees.
    class_bits
        The rows of each class, shape (classes, words).
    counts
        The rows by class in each leaf of the first tree, for the present pair and for the proposed one, shape
        (2, leaves, classes).
    joint
        The rows that each leaf of the second tree shares with each leaf of the first, for the present pair and for the
        proposed one, shape (2, leaves, leaves).
    sizes
        Working memory for one number per leaf of the first tree.
    spare
        Working memory for the rows of each node of a proposed tree.
    """

    first: Routed
    second: Routed
    class_bits: Bits
    counts: Integers
    joint: Integers
    sizes: Integers
    spare: Bits


class TreeTarget(NamedTuple):
    """The distribution to which a walk over trees converges, with probabilities proportional to exp(score / scale).

    Attributes
    ----------
    unit
        The lattice step to which each leaf's score is rounded.
    scale
        The scale of the exponential mechanism, in lattice steps.
    """

    unit: float
    scale: float


class PairTarget(NamedTuple):
    """The distribution to which a walk over pairs converges, like `TreeTarget`. The score of a pair is rounded once.

    Attributes
    ----------
    product
        Whether a pair is scored by the published product (see `pair_score`).
    unit
        The lattice step to which a pair's score is rounded.
    scale
        The scale of the exponential mechanism, in lattice steps.
    """

    product: bool
    unit: float
    scale: float


class Steps(NamedTuple):
    """The steps of a walk, which are drawn before the walk takes them.

    Attributes
    ----------
    nodes
        The node that each step would change. In a pair, the nodes of the second tree are numbered after the first's.
    proposals
        The test that each step proposes for its node.
    words
        For each step, the first 64 bits of a uniform number in [0, 1), which decides whether to accept.
    decided
        Whether each step is accepted, if that has been decided exactly; else UNDECIDED.
    """

    nodes: Integers
    proposals: Integers
    words: Bits
    decided: Kinds


@njit(nogil=True, cache=True)
def _accepts(change: int, scale: float, word: int, decided: int) -> int:
    """Return 1 if a uniform number that starts with `word` is below exp(change / scale), 0 if not, or UNDECIDED.

    The computed exponential has a relative error of at most 2**-42. That is 8 u for itself and 3 u times its exponent,
    which is at most 745 unless the result is 0. If the uniform number may lie within a relative distance of `CLOSE` of
    the exponential, nothing is decided.
    """
    if decided != UNDECIDED:
        return decided
    if change >= 0:
        return 1
    share = math.exp(change / scale) * 2.0**64
    number = np.float64(word)
    if number + 2 <= share * (1 - CLOSE):
        return 1
    if word > 0 and number >= share * (1 + CLOSE):
        return 0
    return UNDECIDED


@njit(nogil=True, cache=True)
def _count_below(tree: WalkedTree, node: int) -> tuple[int, int]:
    """Set counts[leaf, class] of the leaves below a node, and return the range of these leaves.

    A few words of rows are taken through all levels before the next, so that they stay in the processor's cache. Only
    nodes with tests need their sets of rows. For a leaf it is enough to count.
    """
    bits, starts, tests, members, memory, counts, _ = tree
    inner = len(tests)
    begin, end = node, node + 1
    while begin < inner:
        begin, end = 2 * begin + 1, 2 * end + 1
    for leaf in range(begin - inner, end - inner):
        for c in range(counts.shape[1]):
            counts[leaf, c] = 0
    for c in range(counts.shape[1]):
        for start in range(starts[c], starts[c + 1], memory.shape[1]):
            stop = min(start + memory.shape[1], starts[c + 1])
            first = last = node
            while first < inner:
                for k in range(first, last + 1):
                    some = members[k][start:stop] if k == node else memory[k][: stop - start]
                    test = bits[tests[k]][start:stop]
                    if 2 * k + 1 < inner:
                        held, rest = memory[2 * k + 1], memory[2 * k + 2]
                        for w in range(len(some)):
                            held[w] = some[w] & test[w]
                            rest[w] = some[w] & ~test[w]
                    else:
                        left = right = 0
                        for w in range(len(some)):
                            left += popcount(some[w] & test[w])
                            right += popcount(some[w] & ~test[w])
                        counts[2 * k + 1 - inner, c] += left
                        counts[2 * k + 2 - inner, c] += right
                first, last = 2 * first + 1, 2 * last + 2
    return begin - inner, end - inner


def walk_trees(tree: WalkedTree, target: TreeTarget, steps: Steps, begin: int) -> tuple[int, Any]:
    """Walk over trees by Metropolis and Hastings, where step i proposes test proposals[i] for node nodes[i].

    A proposal is as likely as its reverse. So it is accepted with probability min(1, exp((new - old) / scale)), where
    new and old are scores in lattice steps. The walk begins with step `begin`. If floating point cannot decide a step,
    the walk stops before it, and returns the step and by how much it would change the score. Else it returns the number
    of steps, and 0.
    """
    tests, scores = tree.tests, tree.scores
    for i in range(begin - 1, len(steps.nodes)):  # One round before the first step counts all leaves.
        node = steps.nodes[i] if i >= begin else np.int64(0)
        before = tests[node]
        if i >= begin:
            tests[node] = steps.proposals[i]
        first, end = _count_below(tree, node)
        change = np.int64(0)
        for leaf in range(first, end):
            scores[1, leaf] = np.int64(np.rint(child_score(tree.counts[leaf]) / target.unit))
            change += scores[1, leaf] - scores[0, leaf]
        accepted = _accepts(change, target.scale, steps.words[i], steps.decided[i]) if i >= begin else 1
        if accepted != 1:
            tests[node] = before
        if accepted == UNDECIDED:
            return i, change
        if accepted == 1:
            route(tree.bits, tests, node, tree.members[node], tree.members)
            for leaf in range(first, end):
                scores[0, leaf] = scores[1, leaf]
    return len(steps.nodes), np.int64(0)


@njit(nogil=True, cache=True)
def _count_pairs(
    members: Bits,
    begin: int,
    others: Bits,
    class_bits: Bits,
    counts: Integers,
    joint: Integers,
    side: int,
    first: int,
    end: int,
) -> None:
    """Count the rows of some leaves that are proposed for the tree on one side, in counts[1] and joint[1].

    `members` holds the rows of that tree's nodes, then the rows of its leaves from position `begin` on. `others` holds
    the rows of the other tree's nodes, then the rows of its leaves.
    """
    number = joint.shape[1]  # the number of leaves of each tree
    begin_of_others = len(others) - number
    for leaf in range(first, end):
        rows = members[begin + leaf]
        if side == 0:
            for c in range(counts.shape[2]):
                counts[1, leaf, c] = common(rows, class_bits[c])
        for beside in range(number):
            shared = common(rows, others[begin_of_others + beside])
            if side == 0:
                joint[1, beside, leaf] = shared
            else:
                joint[1, leaf, beside] = shared


@njit(nogil=True, cache=True)
def _copy_counts(counts: Integers, joint: Integers, side: int, first: int, end: int, source: int) -> None:
    """Copy the counts of some leaves of the tree on one side.

    If `source` is 1, the proposed counts replace the present ones. If it is 0, the present counts replace the proposed
    ones.
    """
    for leaf in range(first, end):
        if side == 0:
            for c in range(counts.shape[2]):
                counts[1 - source, leaf, c] = counts[source, leaf, c]
        for beside in range(joint.shape[1]):
            one, other = (beside, leaf) if side == 0 else (leaf, beside)
            joint[1 - source, one, other] = joint[source, one, other]


def walk_pairs(pair: WalkedPair, target: PairTarget, steps: Steps, begin: int) -> tuple[int, Any]:
    """Walk over pairs of trees as `walk_trees` does over trees. Nodes from len(first.tests) on are in the second."""
    inner = len(pair.first.tests)
    score = np.int64(0)
    for i in range(begin - 1, len(steps.nodes)):  # One round before the first step counts all leaves.
        side = 0 if i < begin or steps.nodes[i] < inner else 1
        tree = pair.first if side == 0 else pair.second
        node = steps.nodes[i] - side * inner if i >= begin else np.int64(0)
        before = tree.tests[node]
        if i >= begin:
            tree.tests[node] = steps.proposals[i]
        route(tree.bits, tree.tests, node, tree.members[node], pair.spare)
        first, end = node, node + 1
        while first < len(tree.tests):
            first, end = 2 * first + 1, 2 * end + 1
        first, end = first - len(tree.tests), end - len(tree.tests)
        others = pair.second.members if side == 0 else pair.first.members
        _count_pairs(pair.spare, len(tree.tests), others, pair.class_bits, pair.counts, pair.joint, side, first, end)
        reached = pair_score(pair.counts[1], pair.joint[1], pair.sizes, target.product)
        change = np.int64(np.rint(reached / target.unit)) - score
        accepted = _accepts(change, target.scale, steps.words[i], steps.decided[i]) if i >= begin else 1
        if accepted != 1:
            tree.tests[node] = before
        if accepted == UNDECIDED:
            return i, change
        if accepted == 1:
            score += change
            route(tree.bits, tree.tests, node, tree.members[node], tree.members)
        _copy_counts(pair.counts, pair.joint, side, first, end, accepted)
    return len(steps.nodes), np.int64(0)
