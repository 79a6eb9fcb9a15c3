"""The drawing of a tree on matplotlib axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpframework_trees.splits import child_labels
from dpframework_trees.tree_nodes import Leaf, TreeNode, leaf_text

if TYPE_CHECKING:
    from dpframework_trees.tree import DecisionTree

MOST_FONT, LEAST_FONT = 9, 4  # the largest and the smallest size of text, in points


def draw_tree(tree: DecisionTree, axes: Any) -> None:
    """Draw a tree on axes, with the root on top, and label each edge with the outcome of its test."""
    axes.set_axis_off()
    size = max(LEAST_FONT, min(MOST_FONT, 60 // max(tree.leaves, 1)))
    used = 0

    def place(node: TreeNode, level: int) -> float:
        """Draw a node and its subtree, and return the node's horizontal position."""
        nonlocal used
        if isinstance(node, Leaf) or tree.schema is None:
            at, used = float(used), used + 1
            text = leaf_text(node, tree.target).replace(" (", "\n(").replace(" of about", "\nof about")
        else:
            below = [place(child, level + 1) for child in node.children]
            at, text = sum(below) / len(below), str(node.split.attribute)
            for x, label in zip(below, child_labels(node.split, tree.schema), strict=True):
                axes.plot([at, x], [-level, -level - 1], color="grey", linewidth=0.8, zorder=1)
                short = label.removeprefix(node.split.attribute).strip()
                axes.text((at + x) / 2, -level - 0.5, short, ha="center", va="center", fontsize=size, color="C0")
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "grey"}
        axes.text(at, -level, text, ha="center", va="center", fontsize=size, bbox=box, zorder=2)
        return at

    place(tree.root, 0)
    axes.set_xlim(-0.6, used - 0.4)
    axes.set_ylim(-tree.depth - 0.4, 0.4)
