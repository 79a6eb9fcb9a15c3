"""A tree as text, as a table, as a dataframe and in DOT: each leaf once in each, with its class and rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dpframework_trees.splits import Multiway
from dpframework_trees.tree import DecisionTree, Inner, Leaf, nodes_of
from dpframework_trees.tree_displays import tree_dot, tree_frame, tree_table, tree_text
from hypothesis import given, strategies as st

import dpframework as dpf

COLOUR, SIZE = dpf.Categorical("colour", ["red", "green", 'blue "sky"']), dpf.Numeric("size", 0, 8, cuts=[3, 5])
GRADE = dpf.Categorical("grade", ["good", "fair", "bad"])
SCHEMA = dpf.Schema([COLOUR, SIZE, GRADE])


def leaf_of(counts: list[int]) -> Leaf:
    found = np.array(counts, dtype=np.float64)
    return Leaf(found, found / found.sum())


def inner_of(split: Any, children: list[Any]) -> Inner:
    children = (children * 3)[: 3 if isinstance(split, Multiway) else 2]
    counts = np.sum([child.counts for child in children], axis=0)
    return Inner(split, tuple(children), counts, counts / counts.sum())


SPLITS = st.sampled_from([Multiway("colour"), dpf.Below("size", 3), dpf.Equals("colour", "red")])
LEAVES = st.lists(st.integers(1, 99), min_size=3, max_size=3).map(leaf_of)
NODES = st.recursive(
    LEAVES, lambda inner: st.builds(inner_of, SPLITS, st.lists(inner, min_size=1, max_size=3)), max_leaves=5
)
TREES = NODES.map(lambda root: DecisionTree.over(root, GRADE, SCHEMA))


def ends(tree: DecisionTree) -> list[Leaf]:
    return [node for node in nodes_of(tree.root) if isinstance(node, Leaf)]


@given(TREES)
def test_each_leaf_is_a_line_of_the_text_with_its_class(tree: DecisionTree) -> None:
    lines = tree_text(tree).split("\n")
    assert sum(any(f"{label} (" in line for label in GRADE.labels) for line in lines) == len(ends(tree))
    assert len(lines) == max(sum(1 for _ in nodes_of(tree.root)) - 1, 1)  # one for each branch


@given(TREES)
def test_each_leaf_is_a_row_of_the_dataframe_with_its_counts(tree: DecisionTree) -> None:
    frame = tree_frame(tree)
    counts = frame.select([f"rows of {label}" for label in GRADE.labels]).to_numpy()
    assert counts.tolist() == tree.leaf_counts().tolist()
    assert frame["rows"].to_list() == pytest.approx(counts.sum(axis=1).tolist())
    for label, own in zip(frame["class"].to_list(), counts, strict=True):
        assert own[GRADE.labels.index(label)] == own.max()


@given(TREES)
def test_each_node_is_in_the_graph_and_each_branch_leads_to_it(tree: DecisionTree) -> None:
    text = tree_dot(tree)
    number = sum(1 for _ in nodes_of(tree.root))
    assert sum(" -> " in line for line in text.split("\n")) == number - 1
    assert text.count("[label=") == 2 * number - 1
    assert '"sky"' not in text.replace('\\"sky\\"', "")  # quotes in labels are escaped


def test_the_table_begins_its_legend_with_a_note() -> None:
    tree = DecisionTree.over(leaf_of([1, 2, 3]), GRADE, SCHEMA)
    table = tree_table(tree, "Pruned. ")
    assert table.legend.startswith("Pruned. Rows and probabilities")
    (row,) = table.rows
    assert row == ("always", "bad", "50 %", "6")


@given(TREES)
def test_the_table_has_a_row_for_each_branch(tree: DecisionTree) -> None:
    assert len(tree_table(tree).rows) == len(tree_text(tree).split("\n"))
