"""A tree made by hand: where its rows go, what it predicts, its rules, its numbers, and what is kept of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from dpframework_trees.splits import Multiway
from dpframework_trees.tree import DecisionTree, TreeResult
from dpframework_trees.tree_nodes import Inner, Leaf, leaf_text, nodes_of

import dpframework as dpf

SCHEMA = dpf.Schema(
    [
        dpf.Categorical("colour", ["red", "green", "blue"]),
        dpf.Numeric("size", 0, 8, cuts=[3, 5], missing=True),
        dpf.Boolean("idle"),
        dpf.Categorical("grade", ["good", "fair", "bad"]),
    ],
    rows=6,
)
GRADE = SCHEMA["grade"]


def leaf(*counts: float) -> Leaf:
    found = np.array(counts, dtype=np.float64)
    return Leaf(found, found / found.sum())


def inner(split: Any, *children: Any) -> Inner:
    counts = np.sum([child.counts for child in children], axis=0)
    return Inner(split, children, counts, counts / counts.sum())


RED, SMALL, LARGE, BLUE = leaf(6, 1, 1), leaf(1, 1, 2), leaf(0, 9, 3), leaf(2, 0, 8)
GREEN = inner(dpf.Below("size", 5), SMALL, LARGE)
ROOT = inner(Multiway("colour"), RED, GREEN, BLUE)
TREE = DecisionTree.over(ROOT, GRADE, SCHEMA)
#: The same, but that what is below green is shown as one leaf.
PRUNED = DecisionTree.over(inner(Multiway("colour"), RED, leaf(1, 10, 5), BLUE), GRADE, SCHEMA, whole=ROOT)
ALONE = DecisionTree.over(leaf(1, 3, 0), GRADE, SCHEMA)
ROWS = pl.DataFrame({"colour": ["blue", "green", "green", "red", "green"], "size": [1.0, 4.9, 5.0, 7.0, None]})
ENDS = [BLUE, SMALL, LARGE, RED, LARGE]  # a missing size is not below 5


def test_a_tree_keeps_the_attributes_that_it_tests_and_no_number_of_rows() -> None:
    assert TREE.schema is not None
    assert (TREE.schema.names, TREE.schema.rows) == (("colour", "size"), None)
    assert PRUNED.schema == TREE.schema  # the whole one tests the size
    assert ALONE.schema is None
    assert (TREE.predicting, PRUNED.predicting, ALONE.predicting) == (ROOT, ROOT, ALONE.root)


def test_each_row_has_the_probabilities_and_the_place_of_its_leaf() -> None:
    shares = [end.probabilities.tolist() for end in ENDS]
    for tree in (TREE, PRUNED):
        assert tree.predict_proba(ROWS).tolist() == shares
        assert tree.predict(ROWS).tolist() == ["bad", "bad", "fair", "good", "fair"]
    assert TREE.apply(ROWS).tolist() == [3, 1, 2, 0, 2]
    assert PRUNED.apply(ROWS).tolist() == [2, 1, 1, 0, 1]  # of the tree that is shown
    assert ALONE.apply(ROWS).tolist() == [0] * 5
    assert ALONE.predict_proba(ROWS).tolist() == [[0.25, 0.75, 0]] * 5


def test_costs_weigh_probabilities_by_class() -> None:
    """Of the five rows blue has 2, 0 and 8 of 10: 5 * 2 is more than 8."""
    assert TREE.predict(ROWS, costs=[5, 1, 1]).tolist() == ["good", "good", "fair", "good", "fair"]
    assert TREE.predict(ROWS, costs=[1, 1, 1]).tolist() == TREE.predict(ROWS).tolist()
    with pytest.raises(dpf.InputError, match="costs has 2 numbers; 'grade' has 3 classes"):
        TREE.predict(ROWS, costs=[1, 2])


@pytest.mark.parametrize("some", [[0, 1, 2, 3, 4], [4, 1], []])
def test_the_rows_of_a_block_have_codes_of_classes_and_of_leaves(some: list[int]) -> None:
    rows = dpf.Table.from_codes(SCHEMA, [[2, 1, 1, 0, 1], [0, 1, 2, 2, 3], [0] * 5, [0] * 5])
    (block,) = dpf.InMemory().load(rows)
    part = block.at(block.index[some])
    for tree in (TREE, PRUNED):
        assert tree.codes(part).tolist() == np.array([2, 2, 1, 0, 1])[some].tolist()
        assert tree.leaf_codes(part).tolist() == np.array([3, 1, 2, 0, 2])[some].tolist()
        assert tree.leaf_probabilities.tolist() == [one.probabilities.tolist() for one in (RED, SMALL, LARGE, BLUE)]


def test_rules_are_the_paths_with_class_share_and_rows() -> None:
    assert [str(rule) for rule in TREE.rules()] == [
        "colour = red  ->  good (75% of about 8 rows)",
        "colour = green and size < 5  ->  bad (50% of about 4 rows)",
        "colour = green and (size >= 5 or size = missing)  ->  fair (75% of about 12 rows)",
        "colour = blue  ->  bad (80% of about 10 rows)",
    ]
    assert [str(rule) for rule in ALONE.rules()] == ["always  ->  fair (75% of about 4 rows)"]
    assert [(rule.label, rule.probability, rule.rows) for rule in PRUNED.rules()] == [
        ("good", 0.75, 8),
        ("fair", 10 / 16, 16),
        ("bad", 0.8, 10),
    ]
    assert leaf_text(LARGE, GRADE) == "fair (75% of about 12)"
    assert [pattern.label.value for pattern in TREE.patterns()] == ["good", "bad", "fair", "bad"]
    assert TREE.leaf_counts().tolist() == [[6, 1, 1], [1, 1, 2], [0, 9, 3], [2, 0, 8]]


def test_depth_and_leaves_are_those_of_the_tree_that_is_shown() -> None:
    assert [(tree.depth, tree.leaves) for tree in (TREE, PRUNED, ALONE)] == [(2, 4), (1, 3), (0, 1)]
    assert list(nodes_of(ROOT)) == [ROOT, RED, GREEN, SMALL, LARGE, BLUE]


def test_importances_are_the_impurity_that_splits_remove() -> None:
    """Gini's, times the rows: N less the sum of squares over N. On an attribute that is tested twice it adds up."""

    def impurity(*counts: int) -> float:
        return sum(counts) - sum(n * n for n in counts) / sum(counts)

    of_colour = impurity(9, 11, 14) - impurity(6, 1, 1) - impurity(1, 10, 5) - impurity(2, 0, 8)
    of_size = impurity(1, 10, 5) - impurity(1, 1, 2) - impurity(0, 9, 3)
    for tree in (TREE, PRUNED):
        assert tree.importances() == pytest.approx({"colour": of_colour, "size": of_size})
    left, right = inner(dpf.Equals("idle", "true"), leaf(1, 0, 0), leaf(0, 2, 0)), leaf(0, 0, 3)
    twice = DecisionTree.over(inner(dpf.Equals("idle", "true"), left, right), GRADE, SCHEMA)
    assert twice.importances() == pytest.approx({"idle": impurity(1, 2, 3)})
    # noisy counts of a node need not be those of its children: what would be below 0 is 0, and no rows are pure
    odd = Inner(dpf.Below("size", 3), (leaf(2, 2, 0), leaf(3, 3, 0)), np.array([9.0, 0, 0]), np.array([1.0, 0, 0]))
    none = Inner(dpf.Below("size", 3), (RED, RED), np.zeros(3), np.ones(3) / 3)
    for node in (odd, none):
        assert DecisionTree.over(node, GRADE, SCHEMA).importances() == {"size": 0}
    empty = Leaf(np.zeros(3), np.ones(3) / 3)
    beside = Inner(dpf.Below("size", 3), (leaf(2, 1, 0), empty), np.array([2.0, 2.0, 0]), np.ones(3) / 3)
    assert DecisionTree.over(beside, GRADE, SCHEMA).importances() == pytest.approx({"size": 2 - 4 / 3})
    half = Inner(dpf.Below("size", 3), (leaf(0.25, 0, 0), leaf(0, 0.25, 0)), np.array([0.25, 0.25, 0]), np.ones(3) / 3)
    assert DecisionTree.over(half, GRADE, SCHEMA).importances() == pytest.approx({"size": 0.25})


def test_a_tree_is_kept_with_three_digits_of_counts_and_six_of_shares() -> None:
    fine = Leaf(np.array([1.23456, 2.34567, 0]), np.array([0.33333333, 0.66666667, 0]))
    for tree in (TREE, PRUNED, ALONE, DecisionTree.over(fine, GRADE, SCHEMA)):
        form = tree.to_dict()
        again = DecisionTree.from_dict(form)
        assert again.to_dict() == form
        assert (again.target, again.schema, again.whole is None) == (tree.target, tree.schema, tree.whole is None)
        assert again.predict_proba(ROWS) == pytest.approx(tree.predict_proba(ROWS), abs=1e-6)
        result = TreeResult(tree)
        assert result.to_dict() == {"tree": form, "rules": [str(rule) for rule in tree.rules()]}
        assert TreeResult.from_dict(result.to_dict()).tree.to_dict() == form
        assert result.predict(ROWS).tolist() == tree.predict(ROWS).tolist()
        assert result.predict(ROWS, costs=[1, 9, 1]).tolist() == tree.predict(ROWS, costs=[1, 9, 1]).tolist()
        assert (result.predict_proba(ROWS) == tree.predict_proba(ROWS)).all()
    assert form["root"] == {"counts": [1.235, 2.346, 0.0], "probabilities": [0.333333, 0.666667, 0.0]}
    assert TREE.to_dict()["root"]["split"] == {"each": "colour"}
    assert TREE.to_dict()["root"]["children"][1]["split"] == dpf.Below("size", 5).to_dict()
    with pytest.raises(dpf.InputError, match="attribute number 0: has no name"):
        DecisionTree.from_dict({**TREE.to_dict(), "target": {"kind": "boolean"}})
