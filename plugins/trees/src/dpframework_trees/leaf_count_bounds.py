"""The error bounds of a tree's class counts, before post-processing makes these counts consistent."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from dpframework.plan import PlannedPart
from dpframework.results import BoundKind, ErrorBound

OF_LEAVES = "class counts of leaves"
OF_NODES = "class counts of nodes above leaves"
OF_SPLITS, OF_TREE = "choice of each split", "choice of the tree"
CUT = "counts below 0 become 0, so small counts are too large on average"
PRUNED = "leaves are joined where their noisy counts agree"
CONSISTENT = (
    "counts of a node and of its leaves are averaged until they add up, which adds no bias and lowers the noise"
)
STOPPED = "a node becomes a leaf where its noisy count is small, so counts of such leaves are too small on average"


def class_count_bounds(
    part: PlannedPart, paths: Iterable[str], leaves: int, classes: int, biases: Iterable[str], chosen: str
) -> list[ErrorBound]:
    """Return the error bounds of all class counts of a tree, and of the steps that release other things.

    The counts of leaves are released. The counts of an inner node are sums over the leaves below it, which at the
    root are all leaves. A leaf of a pruned tree may have been an inner node, so its counts may be such sums, too.

    Parameters
    ----------
    part
        The part of the plan that releases the tree.
    paths
        The paths of the steps that release the leaves' class counts.
    leaves
        The largest number of leaves.
    classes
        The number of classes, which is also the number of counts of each leaf.
    biases
        Sentences on how post-processing may bias the counts, besides setting negative ones to 0.
    chosen
        What the other steps choose, as a phrase for the report.
    """
    released = [*paths]
    found = []
    for what, cells, counts in ((OF_LEAVES, 1, leaves * classes), (OF_NODES, leaves, classes)):
        bound = part.sum_bound(what, released, cells)
        if bound.amount is not None:
            of_counts = part.counts_bound(what, bound.amount, counts)
            bound = attrs.evolve(of_counts, steps=bound.steps, biases=[*biases, CUT])
        found.append(bound)
    others = part.bounds_of_others(found)
    named = [attrs.evolve(one, what=chosen) if one.kind is BoundKind.CHOICE else one for one in others]
    return [*found[: 2 if leaves > 1 else 1], *named]
