"""Post-processing from noisy counts to a tree, with consistent counts, class probabilities and error-based pruning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, Schema
from dpframework.mechanisms import Calibration
from dpframework_trees.error_limits import upper_error_rate
from dpframework_trees.splits import Split
from dpframework_trees.tree import DecisionTree, Inner, Leaf, TreeNode, TreeResult


@attrs.frozen(eq=False)
class Grown:
    """A node as it was released.

    Attributes
    ----------
    split
        The released split; None at a leaf.
    children
        One a part; empty at a leaf.
    classes
        A leaf's noisy class counts, shape (classes,), and their noise's variance; None at an inner node.
    rows
        The node's noisy count and its noise's variance, if one was released.
    """

    split: Split | None
    children: tuple[Grown, ...]
    classes: tuple[NDArray[np.float64], float] | None
    rows: tuple[float, float] | None


def noise_variance(calibration: Calibration) -> float:
    """Return the variance of the noise of a released count, which is never 0."""
    return max(calibration.variance, 1e-12)  # a huge epsilon leaves no noise, and weights by variance need some


Counts: TypeAlias = NDArray[np.float64]


@attrs.frozen(eq=False)
class _CountedNode:
    """A node with its estimated class counts, and the variance of each of them."""

    grown: Grown
    children: tuple[_CountedNode, ...]
    counts: Counts
    variance: float


def _upwards(grown: Grown) -> _CountedNode:
    """Estimate class counts bottom-up, weighting a node's own count and its descendants' by inverse variance."""
    children = tuple(_upwards(child) for child in grown.children)
    if grown.classes is not None:
        counts, variance = grown.classes
    else:
        counts = np.sum([child.counts for child in children], axis=0)
        variance = sum(child.variance for child in children)
    if grown.rows is not None:
        own, own_variance = grown.rows
        total_variance = variance * len(counts)
        error = own - counts.sum()
        # what the sum of the classes is off by is spread evenly: their variances are equal
        counts = counts + error * total_variance / (total_variance + own_variance) / len(counts)
    return _CountedNode(grown, children, counts, variance)


def _downwards(node: _CountedNode, counts: Counts) -> _CountedNode:
    """Make children add up to their parent, spreading the difference in proportion to their variances."""
    if not node.children:
        return attrs.evolve(node, counts=counts)
    difference = counts - np.sum([child.counts for child in node.children], axis=0)
    total = sum(child.variance for child in node.children)
    children = tuple(_downwards(c, c.counts + difference * (c.variance / total)) for c in node.children)
    return attrs.evolve(node, children=children, counts=counts)


def consistent(grown: Grown) -> _CountedNode:
    """Return the tree with counts that add up from the leaves to the root (Hay et al. 2010, on an uneven tree)."""
    counted = _upwards(grown)
    return _downwards(counted, counted.counts)


def without_negative(counts: Counts) -> Counts:
    """Return the closest counts without a negative one, with the same sum: 0 if that is not positive.

    To take negative counts for 0 would add rows to classes that have none. Of these there are many where classes are
    many, and the node's own class would seem less sure than it is.

    Source: Duchi, Shalev-Shwartz, Singer and Chandra 2008, figure 1.

    Examples
    --------
    >>> without_negative(np.array([3.0, 1.0, -2.0])), without_negative(np.array([1.0, -2.0]))
    (array([2., 0., 0.]), array([0., 0.]))
    """
    total = float(counts.sum())
    if total <= 0:
        return np.zeros(len(counts))
    ordered = -np.sort(-counts)
    lacking = (np.cumsum(ordered) - total) / np.arange(1, len(counts) + 1)
    kept = int((ordered > lacking).sum())
    return np.asarray(np.maximum(counts - lacking[kept - 1], 0))


def _probabilities(counts: Counts, deviation: float, parent: Counts) -> Counts:
    """Shrink a node's class shares towards its parent's, by as many rows as two standard deviations of its noise."""
    known = without_negative(counts)
    weight = 2 * deviation
    total = known.sum() + weight
    return np.asarray((known + weight * parent) / total) if total > 0 else parent


def finish(node: _CountedNode, parent: Counts) -> TreeNode:
    """Return the whole tree, with non-negative counts and with probabilities that shrink towards the parent's.

    Source: Agarwal and others 2022 (hierarchical shrinkage); here by the noise of a node's counts.

    Parameters
    ----------
    node
        Consistent counts.
    parent
        Class probabilities to shrink towards, shape (classes,).
    """
    probabilities = _probabilities(node.counts, math.sqrt(node.variance), parent)
    counts = np.maximum(node.counts, 0)
    if node.grown.split is None:
        return Leaf(counts, probabilities)
    children = tuple(finish(child, probabilities) for child in node.children)
    return Inner(node.grown.split, children, counts, probabilities)


def prune_tree(node: TreeNode) -> TreeNode:
    """Return a tree whose subtrees are leaves where that is not expected to raise the error (C4.5's pruning)."""
    if isinstance(node, Leaf):
        return node
    inner = attrs.evolve(node, children=tuple(map(prune_tree, node.children)))
    if expected_errors(node.counts, node.probabilities) <= _errors_below(inner) + 1e-9:
        return Leaf(node.counts, node.probabilities)
    return inner


def tree_result(grown: Grown, target: Attribute, schema: Schema, *, prune: bool) -> TreeResult:
    """Return the result of a tree miner, the released tree with consistent counts.

    If it is pruned, that is what is shown; the whole tree predicts.
    """
    whole = finish(consistent(grown), np.full(target.size, 1 / target.size))
    if not prune:
        return TreeResult(DecisionTree.over(whole, target, schema))
    return TreeResult(DecisionTree.over(prune_tree(whole), target, schema, whole=whole))


def _errors_below(node: TreeNode) -> float:
    if isinstance(node, Leaf):
        return expected_errors(node.counts, node.probabilities)
    return sum(_errors_below(child) for child in node.children)


def expected_errors(counts: Counts | Sequence[float], probabilities: Counts | Sequence[float]) -> float:
    """Return C4.5's pessimistic number of errors of a leaf, N times the upper 25 % limit of its error rate.

    Source: Quinlan 1993, section 4.2: the binomial upper limit, here at counts that need not be integers.

    Examples
    --------
    >>> round(expected_errors([6, 0], [1, 0]), 3)  # Quinlan's example: 6 * 0.206
    1.238
    """
    total = float(np.sum(counts))
    right = float(np.asarray(counts)[int(np.argmax(probabilities))])
    if total <= 0:
        return 0.0
    return total * upper_error_rate(max(total - right, 0.0), right) if right > 0 else total
