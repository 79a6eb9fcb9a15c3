"""Walks over trees, and over pairs of trees, by Metropolis and Hastings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from dpframework_trees.kernels.arrays import Bits, Floats, Integers
from dpframework_trees.kernels.bits import common
from dpframework_trees.kernels.routing import Routed, keep, leaf_counts, leaves_below, own_rows, reroute, spare_rows
from dpframework_trees.kernels.scoring import child_score, pair_score


class PairTarget(NamedTuple):
    """What a walk over pairs converges to: probabilities proportional to exp(score / scale).

    Attributes
    ----------
    criterion
        What scores a leaf.
    product
        Whether a pair is scored by the published product (see `pair_score`).
    scale
        What scores are divided by.
    """

    criterion: int
    product: bool
    scale: float


class Steps(NamedTuple):
    """The steps of a walk, drawn before.

    Attributes
    ----------
    nodes
        Which node each step would change; of a pair of trees, those after the first tree's are the second's.
    proposals
        The test that it would ask.
    log_uniforms
        Logarithms of uniform numbers in (0, 1], which accept or reject.
    """

    nodes: Integers
    proposals: Integers
    log_uniforms: Floats


@njit(nogil=True, cache=True)
def walk_trees(tree: Routed, class_bits: Bits, criterion: int, scale: float, steps: Steps) -> int:
    """Walk over trees by Metropolis and Hastings: step i gives node nodes[i] the test proposals[i], or does not.

    A proposal is as likely as its reverse, so it is accepted with probability min(1, exp((new - old) / scale)) of the
    scores. The walk ends in `tree`; returns how many proposals were accepted.
    """
    nodes, proposals, log_uniforms = steps
    counts = np.zeros(len(class_bits), dtype=np.int64)
    scores = np.zeros(len(tree.tests) + 1)
    proposed = np.zeros(len(tree.tests) + 1)
    for leaf in range(len(scores)):
        for c in range(len(class_bits)):
            counts[c] = common(own_rows(tree, leaf), class_bits[c])
        scores[leaf] = child_score(counts, criterion)
    accepted = 0
    for i in range(len(nodes)):
        reroute(tree, nodes[i], proposals[i])
        first, end = leaves_below(tree, nodes[i])
        change = 0.0
        for leaf in range(first, end):
            rows = spare_rows(tree, leaf)
            for c in range(len(class_bits)):
                counts[c] = common(rows, class_bits[c])
            proposed[leaf] = child_score(counts, criterion)
            change += proposed[leaf] - scores[leaf]
        if log_uniforms[i] <= change / scale:
            accepted += 1
            keep(tree, nodes[i], proposals[i])
            scores[first:end] = proposed[first:end]
    return accepted


@njit(nogil=True, cache=True)
def walk_pairs(first: Routed, second: Routed, class_bits: Bits, target: PairTarget, steps: Steps) -> int:
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
    score = pair_score(counts[0], joint[0], target.criterion, target.product)
    accepted = 0
    for i in range(len(steps.nodes)):
        of_first = steps.nodes[i] < inner
        tree = first if of_first else second
        node = steps.nodes[i] if of_first else steps.nodes[i] - inner
        reroute(tree, node, steps.proposals[i])
        start, end = leaves_below(tree, node)
        if of_first:
            _count_first(first, second, class_bits, start, end, counts[1], joint[1])
        else:
            _count_second(first, second, start, end, joint[1])
        reached = pair_score(counts[1], joint[1], target.criterion, target.product)
        kept = steps.log_uniforms[i] <= (reached - score) / target.scale
        if kept:
            accepted += 1
            score = reached
            keep(tree, node, steps.proposals[i])
        source, sink = (1, 0) if kept else (0, 1)
        if of_first:
            counts[sink, start:end] = counts[source, start:end]
            joint[sink, :, start:end] = joint[source, :, start:end]
        else:
            joint[sink, start:end] = joint[source, start:end]
    return accepted


@njit(nogil=True, cache=True)
def _count_first(
    first: Routed, second: Routed, class_bits: Bits, start: int, end: int, counts: Integers, joint: Integers
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
