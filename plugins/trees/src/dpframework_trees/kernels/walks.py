"""Walks over trees, and over pairs of trees, by Metropolis and Hastings."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from dpframework_trees.kernels.arrays import Bits, Integers, Kinds
from dpframework_trees.kernels.bits import common
from dpframework_trees.kernels.routing import Routed, keep, leaf_counts, leaves_below, own_rows, reroute, spare_rows
from dpframework_trees.kernels.scoring import child_score, pair_score

UNDECIDED = -1
CLOSE = 2.0**-40  # a share that two numbers must differ by, to be told apart in floating point


class TreeTarget(NamedTuple):
    """What a walk over trees converges to: probabilities proportional to exp(score / scale), in lattice steps.

    Attributes
    ----------
    criterion
        What scores a leaf.
    unit
        The lattice step that each leaf's score is rounded to.
    scale
        What the sum of them is divided by.
    """

    criterion: int
    unit: float
    scale: float


class PairTarget(NamedTuple):
    """The same of a walk over pairs, whose score is rounded as a whole.

    Attributes
    ----------
    criterion
        What scores a leaf.
    product
        Whether a pair is scored by the published product (see `pair_score`).
    unit
        The lattice step.
    scale
        What scores are divided by.
    """

    criterion: int
    product: bool
    unit: float
    scale: float


class Steps(NamedTuple):
    """The steps of a walk, drawn before.

    Attributes
    ----------
    nodes
        Which node each step would change; of a pair of trees, those after the first tree's are the second's.
    proposals
        The test that it would ask.
    words
        The first 64 bits of uniform numbers in [0, 1), which accept or reject.
    decided
        Whether a step is accepted, where that has been decided before; else UNDECIDED.
    """

    nodes: Integers
    proposals: Integers
    words: Bits
    decided: Kinds


@njit(nogil=True, cache=True)
def _accepts(change: int, scale: float, word: int, decided: int) -> int:
    """Tell whether a uniform number that starts with `word` is below exp(change / scale), or return UNDECIDED.

    The exponential is off by a share of 2**-42 at most: 8 u for itself and 3 u times its exponent, which is at most 745
    or the result is 0. Nearer to it than `CLOSE` nothing is decided.
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
def walk_trees(tree: Routed, class_bits: Bits, target: TreeTarget, steps: Steps, begin: int) -> tuple[int, int]:
    """Walk over trees by Metropolis and Hastings: step i gives node nodes[i] the test proposals[i], or does not.

    A proposal is as likely as its reverse, so it is accepted with probability min(1, exp((new - old) / scale)) of the
    scores, in lattice steps. The walk begins with step `begin`, and stops before one that cannot be decided in floating
    point: returns which, and by how much it would change the score; or the number of steps, and 0.
    """
    leaves = len(tree.tests) + 1
    counts = np.zeros(len(class_bits), dtype=np.int64)
    scores, proposed = np.zeros(leaves, dtype=np.int64), np.zeros(leaves, dtype=np.int64)
    for leaf in range(leaves):
        for c in range(len(class_bits)):
            counts[c] = common(own_rows(tree, leaf), class_bits[c])
        scores[leaf] = _rounded(child_score(counts, target.criterion), target.unit)
    for i in range(begin, len(steps.nodes)):
        reroute(tree, steps.nodes[i], steps.proposals[i])
        first, end = leaves_below(tree, steps.nodes[i])
        change = 0
        for leaf in range(first, end):
            rows = spare_rows(tree, leaf)
            for c in range(len(class_bits)):
                counts[c] = common(rows, class_bits[c])
            proposed[leaf] = _rounded(child_score(counts, target.criterion), target.unit)
            change += proposed[leaf] - scores[leaf]
        accepted = _accepts(change, target.scale, steps.words[i], steps.decided[i])
        if accepted == UNDECIDED:
            return i, change
        if accepted:
            keep(tree, steps.nodes[i], steps.proposals[i])
            scores[first:end] = proposed[first:end]
    return len(steps.nodes), 0


@njit(nogil=True, cache=True)
def _rounded(score: float, unit: float) -> int:
    return int(np.rint(score / unit))


@njit(nogil=True, cache=True)
def walk_pairs(
    first: Routed, second: Routed, class_bits: Bits, target: PairTarget, steps: Steps, begin: int
) -> tuple[int, int]:
    """Walk over pairs of trees as `walk_trees` does over trees; nodes from len(first.tests) on are the second's.

    counts[0] and joint[0] are of the pair where the walk is, counts[1] and joint[1] of the one that is proposed: rows
    by class in leaves of the first tree, and rows in pairs of a leaf of the second and one of the first.
    """
    inner = len(first.tests)
    counts = np.zeros((2, inner + 1, len(class_bits)), dtype=np.int64)
    joint = np.zeros((2, len(second.tests) + 1, inner + 1), dtype=np.int64)
    leaf_counts(first.members, first.which, class_bits, counts[0])
    for leaf in range(joint.shape[2]):
        for beside in range(joint.shape[1]):
            joint[0, beside, leaf] = common(own_rows(first, leaf), own_rows(second, beside))
    counts[1], joint[1] = counts[0], joint[0]
    score = _rounded(pair_score(counts[0], joint[0], target.criterion, target.product), target.unit)
    for i in range(begin, len(steps.nodes)):
        of_first = steps.nodes[i] < inner
        tree = first if of_first else second
        node = steps.nodes[i] if of_first else steps.nodes[i] - inner
        reroute(tree, node, steps.proposals[i])
        start, end = leaves_below(tree, node)
        if of_first:
            _count_first(first, second, class_bits, start, end, counts[1], joint[1])
        else:
            _count_second(first, second, start, end, joint[1])
        reached = _rounded(pair_score(counts[1], joint[1], target.criterion, target.product), target.unit)
        kept = _accepts(reached - score, target.scale, steps.words[i], steps.decided[i])
        if kept == UNDECIDED:
            return i, reached - score
        if kept:
            score = reached
            keep(tree, node, steps.proposals[i])
        source, sink = (1, 0) if kept else (0, 1)
        if of_first:
            counts[sink, start:end] = counts[source, start:end]
            joint[sink, :, start:end] = joint[source, :, start:end]
        else:
            joint[sink, start:end] = joint[source, start:end]
    return len(steps.nodes), 0


@njit(nogil=True, cache=True)
def _count_first(
    first: Routed,
    second: Routed,
    class_bits: Bits,
    start: int,
    end: int,
    counts: Integers,
    joint: Integers,
) -> None:
    """Count the rows of some leaves that are proposed for the first tree: by class, and by leaf of the second."""
    for leaf in range(start, end):
        rows = spare_rows(first, leaf)
        for c in range(len(class_bits)):
            counts[leaf, c] = common(rows, class_bits[c])
        for beside in range(len(joint)):
            joint[beside, leaf] = common(rows, own_rows(second, beside))


@njit(nogil=True, cache=True)
def _count_second(first: Routed, second: Routed, start: int, end: int, joint: Integers) -> None:
    """Count the rows of some leaves that are proposed for the second tree, by leaf of the first."""
    for beside in range(start, end):
        rows = spare_rows(second, beside)
        for leaf in range(joint.shape[1]):
            joint[beside, leaf] = common(rows, own_rows(first, leaf))
