"""Views of a tree: text, a table for notebooks, a dataframe, Graphviz's DOT, and a drawing on matplotlib axes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dpframework.facts import Attribute, Schema
from dpframework.results import TextTable
from dpframework_trees.splits import child_labels
from dpframework_trees.tree_nodes import Inner, Leaf, TreeNode, best_class, leaf_text, nodes_of

if TYPE_CHECKING:
    import polars as pl

    from dpframework_trees.tree import DecisionTree

MOST_FONT, LEAST_FONT = 9, 4  # the largest and the smallest size of text in a drawing, in points
_BLANK = "\u00a0"  # a space that HTML keeps


def tree_table(tree: DecisionTree, note: str = "") -> TextTable:
    """Return a table with one row for each outcome of a test, and the class there. `note` begins the line below it."""
    heads = (f"{tree.target.name}, if", "class", "probability", "rows")
    legend = "Rows and probabilities are estimates from noisy counts."
    branches = _branches(tree.root, "", tree.schema)
    rows = [(f"{lines.replace(' ', _BLANK)}{label}", *_cells(child, tree.target)) for lines, label, child in branches]
    return TextTable(heads, rows or [("always", *_cells(tree.root, tree.target))], legend=f"{note}{legend}")


def _cells(node: TreeNode, target: Attribute) -> tuple[str, str, str]:
    best = best_class(node)
    return target.labels[best], f"{100 * node.probabilities[best]:.0f} %", f"{node.counts.sum():.0f}"


def tree_frame(tree: DecisionTree) -> pl.DataFrame:
    """Return a dataframe with one row for each leaf (see `DecisionTree.to_frame`)."""
    import polars as pl

    rules, counts = tree.rules(), tree.leaf_counts()
    columns: dict[str, Any] = {
        "rule": [str(rule.description) for rule in rules],
        "class": [rule.label for rule in rules],
        "probability": [rule.probability for rule in rules],
        "rows": [rule.rows for rule in rules],
    }
    return pl.DataFrame(columns | {f"rows of {x}": counts[:, k] for k, x in enumerate(tree.target.labels)})


def tree_text(tree: DecisionTree) -> str:
    """Return the tree as text: a line for each branch, with class, probability and estimated rows at leaves."""
    drawn = []
    for lines, label, child in _branches(tree.root, "", tree.schema):
        leaf = f": {leaf_text(child, tree.target)}" if isinstance(child, Leaf) else ""
        drawn.append(f"{lines}{label}{leaf}")
    return "\n".join(drawn or [leaf_text(tree.root, tree.target)])


def _branches(node: TreeNode, indent: str, schema: Schema | None) -> Iterator[tuple[str, str, TreeNode]]:
    """Yield, for each branch below a node in tree order, the lines in front of it, its label, and its lower node."""
    if isinstance(node, Leaf) or schema is None:
        return
    for k, (child, label) in enumerate(zip(node.children, child_labels(node.split, schema), strict=True)):
        last = k == len(node.children) - 1
        yield f"{indent}{'└─' if last else '├─'} ", label, child
        yield from _branches(child, indent + ("   " if last else "│  "), schema)


def tree_dot(tree: DecisionTree) -> str:
    """Return the tree in Graphviz's DOT."""
    lines = ["digraph tree {", "    node [fontname=sans, shape=box];"]
    numbers = {id(node): k for k, node in enumerate(nodes_of(tree.root))}
    for node in nodes_of(tree.root):
        text = str(node.split) if isinstance(node, Inner) else leaf_text(node, tree.target)
        lines.append(f"    n{numbers[id(node)]} [label={_quote(text)}];")
    for node in nodes_of(tree.root):
        if isinstance(node, Inner) and tree.schema is not None:
            labels = child_labels(node.split, tree.schema)
            for child, label in zip(node.children, labels, strict=True):
                lines.append(f"    n{numbers[id(node)]} -> n{numbers[id(child)]} [label={_quote(label)}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


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
