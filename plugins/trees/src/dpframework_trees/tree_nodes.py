"""The nodes of a tree, with their JSON form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, description_from_dict
from dpframework_trees.splits import Multiway, Split


@final
@attrs.frozen(eq=False)
class Leaf:
    """A leaf, where a path ends.

    Attributes
    ----------
    counts
        Estimated numbers of rows by class, shape (classes,). They follow from noisy counts and are not negative.
    probabilities
        Estimated class probabilities, shape (classes,).
    """

    counts: NDArray[np.float64]
    probabilities: NDArray[np.float64]


@final
@attrs.frozen(eq=False)
class Inner:
    """A node with a split, and with the counts and probabilities that it would have as a leaf.

    Attributes
    ----------
    split
        The released split.
    children
        The nodes below, one for each outcome of the split.
    counts, probabilities
        Estimated numbers of rows and probabilities by class, as in `Leaf`.
    """

    split: Split
    children: tuple[TreeNode, ...]
    counts: NDArray[np.float64]
    probabilities: NDArray[np.float64]


#: A node of a tree.
TreeNode: TypeAlias = "Leaf | Inner"


def nodes_of(node: TreeNode) -> Iterator[TreeNode]:
    """Yield a node and all nodes below it, in tree order."""
    yield node
    if isinstance(node, Inner):
        for child in node.children:
            yield from nodes_of(child)


def leaves_of(node: TreeNode) -> list[Leaf]:
    """Return the leaves below a node, in tree order, or the node itself if it is a leaf."""
    return [one for one in nodes_of(node) if isinstance(one, Leaf)]


def best_class(node: TreeNode) -> int:
    """Return the code of a node's most probable class."""
    return int(np.argmax(node.probabilities))


def leaf_text(node: TreeNode, target: Attribute) -> str:
    """Return a leaf in words: its most probable class, the probability of this class, and the estimated rows."""
    best = best_class(node)
    return f"{target.labels[best]} ({node.probabilities[best]:.0%} of about {node.counts.sum():.0f})"


def node_to_dict(node: TreeNode) -> dict[str, Any]:
    """Return a JSON-safe form of a node and all nodes below it."""
    form: dict[str, Any] = {
        "counts": [round(float(n), 3) for n in node.counts],
        "probabilities": [round(float(p), 6) for p in node.probabilities],
    }
    if isinstance(node, Inner):
        split = node.split
        form["split"] = {"each": split.attribute} if isinstance(split, Multiway) else split.to_dict()
        form["children"] = [node_to_dict(child) for child in node.children]
    return form


def node_from_dict(form: Mapping[str, Any]) -> TreeNode:
    """Read the output of `node_to_dict`."""
    counts, probabilities = np.array(form["counts"], dtype=float), np.array(form["probabilities"], dtype=float)
    if "split" not in form:
        return Leaf(counts, probabilities)
    split = Multiway(form["split"]["each"]) if "each" in form["split"] else description_from_dict(form["split"])
    return Inner(split, tuple(map(node_from_dict, form["children"])), counts, probabilities)  # type: ignore[arg-type]
