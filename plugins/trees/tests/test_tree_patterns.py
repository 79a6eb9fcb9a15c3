"""A tree's patterns: one a leaf, which cover each row once and predict as the tree does."""

import numpy as np
import pytest
from dpframework_trees import DPID3
from dpframework_trees.tree import DecisionTree
from dpframework_trees.tree_nodes import Leaf

import dpframework as dpf
from dpframework.lab.evaluation import retention_of
from dpframework.lab.evaluation.pattern_retention_between_tables import class_counts

SCHEMA = dpf.Schema(
    [
        dpf.Categorical("colour", ["red", "green", "blue"]),
        dpf.Numeric("size", 0, 8, cuts=[3, 5], missing=True),
        dpf.Boolean("ripe"),
        dpf.Categorical("class", ["good", "bad"]),
    ]
)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    colour, size, ripe = rng.integers(0, 3, 800), rng.integers(0, 4, 800), rng.integers(0, 2, 800)
    return dpf.Table.from_codes(SCHEMA, [colour, size, ripe, (colour == 0) ^ ((ripe == 1) & (size < 2))])


@pytest.mark.parametrize("splits", ["binary", "multiway"])
def test_patterns_predict_as_the_tree_does(table, splits):
    study = dpf.Study(SCHEMA, epsilon=50)
    study.add("tree", DPID3(target="class", epsilon=50, max_depth=3, splits=splits))
    tree = study.run(table, seed=0)["tree"].tree
    patterns, counts = tree.patterns(), tree.leaf_counts()
    assert len(patterns) == tree.leaves == len(counts) > 2
    found = class_counts(patterns, table)
    assert found.sum() == 800
    (block,) = dpf.InMemory().load(table)
    predicted = tree.predict(table)
    for pattern, rule in zip(patterns, tree.rules(), strict=True):
        assert (pattern.description, pattern.label.value) == (rule.description, rule.label)
        assert (predicted[pattern.description.holds(block)] == pattern.label.value).all()
    right = np.mean(predicted == np.array(["good", "bad"])[table.codes[3]])
    assert retention_of(patterns, table, table).accuracy == pytest.approx(right)
    # each leaf's counts are those of its pattern, but for noise: Laplace of a scale below 1, 20 away at 2e-9
    assert np.abs(counts - found).max() < 20


def test_a_tree_without_splits_has_one_pattern(table):
    counts = np.array([5.0, 9.0])
    tree = DecisionTree.over(Leaf(counts, counts / 14), SCHEMA["class"], SCHEMA)
    (pattern,) = tree.patterns()
    assert str(pattern) == "always  ->  class = bad"
    assert tree.leaf_counts().tolist() == [[5, 9]]
    assert class_counts([pattern], table).sum() == 800
