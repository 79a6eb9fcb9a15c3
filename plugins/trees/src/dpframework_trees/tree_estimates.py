"""Post-processing from noisy counts to a tree, with consistent counts, class probabilities and error-based pruning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, Schema
from dpframework.mechanisms import Calibration
from dpframework_trees.leaf_shares import Branch, NoisyLeaves, estimate_rows, posterior_shares
from dpframework_trees.splits import Split
from dpframework_trees.tree import DecisionTree, TreeResult
from dpframework_trees.tree_nodes import Inner, Leaf, TreeNode


@attrs.frozen(eq=False)
class ReleasedNode:
    """A node of a tree with its releases, before post-processing.

    Attributes
    ----------
    split
        The released split; None at a leaf.
    children
        The children, one for each outcome of the split; empty at a leaf.
    classes
        A leaf's noisy class counts, shape (classes,), and the variance of their noise; None at an inner node.
    rows
        The node's noisy number of rows and the variance of its noise; None if no such count was released.
    """

    split: Split | None
    children: tuple[ReleasedNode, ...]
    classes: tuple[NDArray[np.float64], float] | None
    rows: tuple[float, float] | None


def noise_variance(calibration: Calibration) -> float:
    """Return the variance of the noise of a released count, or a tiny number in place of 0."""
    return max(calibration.variance, 1e-12)  # A huge epsilon leaves no noise, but weights divide by the variance.


Counts: TypeAlias = NDArray[np.float64]


@attrs.frozen(eq=False)
class _CountedNode:
    """A node with its estimated class counts, and the variance of each of them."""

    released: ReleasedNode
    children: tuple[_CountedNode, ...]
    counts: Counts
    variance: float


def _upwards(released: ReleasedNode) -> _CountedNode:
    """Estimate class counts from the leaves up, weighting a node's own count and those below it by inverse variance."""
    children = tuple(_upwards(child) for child in released.children)
    if released.classes is not None:
        counts, variance = released.classes
    else:
        counts = np.sum([child.counts for child in children], axis=0)
        variance = sum(child.variance for child in children)
    if released.rows is not None:
        own, own_variance = released.rows
        total_variance = variance * len(counts)
        error = own - counts.sum()
        # All classes have the same variance, so each takes an equal share of the correction of their sum.
        counts = counts + error * total_variance / (total_variance + own_variance) / len(counts)
    return _CountedNode(released, children, counts, variance)


def _downwards(node: _CountedNode, counts: Counts) -> _CountedNode:
    """Make the counts of children add up to their parent's: each takes a part in proportion to its variance."""
    if not node.children:
        return attrs.evolve(node, counts=counts)
    difference = counts - np.sum([child.counts for child in node.children], axis=0)
    total = sum(child.variance for child in node.children)
    children = tuple(_downwards(c, c.counts + difference * (c.variance / total)) for c in node.children)
    return attrs.evolve(node, children=children, counts=counts)


def make_consistent(released: ReleasedNode) -> _CountedNode:
    """Return the tree with counts that add up from the leaves to the root (Hay et al. 2010, on an uneven tree)."""
    counted = _upwards(released)
    return _downwards(counted, counted.counts)


def finish(root: _CountedNode) -> TreeNode:
    """Return the whole tree, with non-negative counts and with the probabilities of `posterior_shares`.

    The probabilities of an inner node are means over its leaves, weighted by the estimated rows of the leaves.
    """
    leaves = list(_leaves_of(root))
    noisy = [leaf.released.classes for leaf in leaves if leaf.released.classes is not None]
    counts, variances = zip(*noisy, strict=True)
    totals = np.array([leaf.counts.sum() for leaf in leaves])
    rows = estimate_rows(totals, len(root.counts) * np.array([leaf.variance for leaf in leaves]))
    shares = posterior_shares(_branch(root, count()), NoisyLeaves(np.array(counts), np.array(variances), rows))
    return _finish(root, iter(shares * rows[:, np.newaxis]))[0]


def _leaves_of(node: _CountedNode) -> Iterator[_CountedNode]:
    if not node.children:
        yield node
    for child in node.children:
        yield from _leaves_of(child)


def _branch(node: _CountedNode, positions: Iterator[int]) -> Branch:
    if not node.children:
        return next(positions)
    return tuple(_branch(child, positions) for child in node.children)


def _finish(node: _CountedNode, expected: Iterator[Counts]) -> tuple[TreeNode, Counts]:
    """Return a node with its subtree, and its expected rows by class, given the leaves' expected rows in order."""
    counts = np.maximum(node.counts, 0)
    if node.released.split is None:
        rows = next(expected)
        return Leaf(counts, rows / rows.sum()), rows
    children, below = zip(*(_finish(child, expected) for child in node.children), strict=True)
    rows = np.sum(below, axis=0)
    return Inner(node.released.split, children, counts, rows / rows.sum()), rows


def prune_tree(node: TreeNode) -> TreeNode:
    """Return a tree with a leaf in place of each subtree that is not expected to lower the error (C4.5's pruning)."""
    if isinstance(node, Leaf):
        return node
    inner = attrs.evolve(node, children=tuple(map(prune_tree, node.children)))
    if expected_errors(node.counts, node.probabilities) <= _errors_below(inner) + 1e-9:
        return Leaf(node.counts, node.probabilities)
    return inner


def tree_result(released: ReleasedNode, target: Attribute, schema: Schema, *, prune: bool) -> TreeResult:
    """Return the result of a tree miner, the released tree with consistent counts.

    With `prune`, the pruned tree is shown, and the whole tree predicts.
    """
    whole = finish(make_consistent(released))
    if not prune:
        return TreeResult(DecisionTree.over(whole, target, schema))
    return TreeResult(DecisionTree.over(prune_tree(whole), target, schema, whole=whole))


def _errors_below(node: TreeNode) -> float:
    if isinstance(node, Leaf):
        return expected_errors(node.counts, node.probabilities)
    return sum(_errors_below(child) for child in node.children)


def expected_errors(counts: Counts | Sequence[float], probabilities: Counts | Sequence[float]) -> float:
    """Return C4.5's pessimistic number of errors of a leaf, N times the upper 25 % limit of its error rate.

    Source: Quinlan 1993, section 4.2, for the binomial upper limit. Here the counts need not be integers.

    Examples
    --------
    >>> round(expected_errors([6, 0], [1, 0]), 3)  # Quinlan's example: 6 * 0.206
    1.238
    """
    from scipy.special import betaincinv

    total = float(np.sum(counts))
    right = float(np.asarray(counts)[int(np.argmax(probabilities))])
    if total <= 0:
        return 0.0
    # At this error rate, as many errors or fewer have the probability 1/4.
    return total * float(betaincinv(total - right + 1, right, 0.75)) if right > 0 else total
