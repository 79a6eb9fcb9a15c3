"""A tree on axes: a box for each node above the middle of its children, and a line and a label for each branch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dpframework_trees.splits import Multiway
from dpframework_trees.tree import DecisionTree, Inner, Leaf, nodes_of
from dpframework_trees.tree_displays import LEAST_FONT, MOST_FONT, draw_tree
from drawn import Axes

import dpframework as dpf

COLOUR, SIZE = dpf.Categorical("colour", ["red", "green", "blue"]), dpf.Numeric("size", 0, 8, cuts=[3, 5])
GRADE = dpf.Boolean("good")
SCHEMA = dpf.Schema([COLOUR, SIZE, GRADE])
HALF = Leaf(np.array([1.0, 3]), np.array([0.25, 0.75]))


def inner(split: Any, *children: Any) -> Inner:
    counts = np.sum([child.counts for child in children], axis=0)
    return Inner(split, children, counts, counts / counts.sum())


DEEP = inner(Multiway("colour"), HALF, inner(dpf.Below("size", 3), HALF, inner(dpf.Below("size", 5), HALF, HALF)), HALF)


@pytest.mark.parametrize("root", [HALF, inner(dpf.Below("size", 3), HALF, HALF), DEEP])
def test_each_node_is_a_box_and_each_branch_a_line(root: Any) -> None:
    tree, axes = DecisionTree.over(root, GRADE, SCHEMA), Axes()
    draw_tree(tree, axes)
    number = sum(1 for _ in nodes_of(root))
    boxes = [at for at, options in axes.of("text") if "bbox" in options]
    assert len(boxes) == number
    assert len(axes.of("plot")) == len(axes.of("text")) - number == number - 1
    places = {(x, y) for x, y, _ in boxes}
    assert len(places) == number  # none covers another
    children: dict[Any, list[float]] = {}
    for (xs, ys), _ in axes.of("plot"):
        assert {(xs[0], ys[0]), (xs[1], ys[1])} <= places
        children.setdefault((xs[0], ys[0]), []).append(xs[1])
    assert all(x == np.mean(below) for (x, _), below in children.items())


def test_a_label_says_what_holds_of_the_attribute_without_its_name() -> None:
    axes = Axes()
    draw_tree(DecisionTree.over(DEEP, GRADE, SCHEMA), axes)
    labels = [at[2] for at, options in axes.of("text") if "bbox" not in options]
    assert not [label for label in labels if label.startswith(("colour", "size"))]


def test_many_leaves_are_written_small() -> None:
    for root, size in ((HALF, MOST_FONT), (inner(Multiway("colour"), DEEP, DEEP, DEEP), LEAST_FONT)):
        axes = Axes()
        draw_tree(DecisionTree.over(root, GRADE, SCHEMA), axes)
        assert {options["fontsize"] for _, options in axes.of("text")} == {size}
