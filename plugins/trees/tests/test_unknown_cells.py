"""Unknown cells at prediction: they add nothing to a score, end a tree's path, and no order of labels matters."""

import warnings

import numpy as np
import polars as pl
import pytest
from dpframework_trees import DPAdditiveClassifier, DPID3Classifier, DPTreeClassifier
from dpframework_trees.additive import AdditiveModel, Term
from dpframework_trees.tree import DecisionTree
from dpframework_trees.tree_nodes import Inner, Leaf
from hypothesis import given, settings, strategies as st

import dpframework as dpf
from dpframework.facts import Equals
from dpframework.tables import NewRows, UnknownCellWarning

LABELS = ("a", "b", "c", "d")
TARGET = dpf.Boolean("class")
ORDERS = st.permutations(LABELS)
NUMBERS = st.lists(st.floats(-3, 3), min_size=4, max_size=4)
CELLS = st.lists(st.sampled_from([*LABELS, "unknown", None]), min_size=1, max_size=8)


def in_order(order):
    return dpf.Categorical("x", order), dpf.Categorical("y", order[::-1])


def additive(order, x, y):
    """Return a model that adds the same for each label, whatever their order."""
    terms = []
    for attribute, values in zip(in_order(order), (x, y), strict=True):
        own = np.array([values[LABELS.index(label)] for label in attribute.values])[:, None]
        terms.append(Term(attribute, (0, 1, 2, 3), own - own.mean(), np.ones(4), np.ones(4)))
    return AdditiveModel(TARGET, np.array([0.3]), tuple(terms))


def tree(order, x, y):
    """Return a tree that tests both attributes, with the same counts whatever their order."""
    counts = np.abs(np.array([*x, *y])).reshape(4, 2) + 1
    leaves = [Leaf(own, own / own.sum()) for own in counts]
    total = counts[1:].sum(axis=0)
    below = Inner(Equals("y", "b"), (leaves[1], leaves[2]), counts[1:3].sum(axis=0), total / total.sum())
    whole = counts.sum(axis=0)
    root = Inner(Equals("x", "c"), (leaves[0], below), whole, whole / whole.sum())
    return DecisionTree(root, TARGET, dpf.Schema(in_order(order)))


@pytest.mark.filterwarnings("ignore::dpframework.tables.UnknownCellWarning")
@pytest.mark.parametrize("model", [additive, tree])
@given(order=ORDERS, other=ORDERS, x=NUMBERS, y=NUMBERS, cells=CELLS)
@settings(deadline=None, max_examples=60)
def test_the_order_of_labels_changes_no_prediction(model, order, other, x, y, cells):
    frame = pl.DataFrame({"x": cells, "y": cells[::-1]}, schema={"x": pl.String, "y": pl.String})
    both = [model(own, x, y).predict_proba(frame, out_of_domain="clamp") for own in (order, other)]
    assert both[0] == pytest.approx(both[1], abs=1e-12)


def test_an_unknown_cell_adds_nothing_and_is_counted():
    model = additive(LABELS, (1, 2, 3, 6), (0, 0, 0, 4))
    frame = pl.DataFrame({"x": ["e", "a", None], "y": ["d", "e", None]})
    with pytest.warns(UnknownCellWarning, match=r"^4 cells are .*'x' 2, 'y' 2"):
        added = model.contributions(frame, out_of_domain="clamp")[:, :, 0]
    assert added.tolist() == [[0, 3], [-2, 0], [0, 0]]


def test_a_tree_answers_with_the_node_where_the_path_ends():
    model = tree(LABELS, (1, 2, 3, 4), (5, 6, 7, 8))
    frame = pl.DataFrame({"x": ["e", "c", "a", "a"], "y": ["b", "e", None, "b"]})
    with pytest.warns(UnknownCellWarning, match="3 cells"):
        p = model.predict_proba(frame, out_of_domain="missing")
    with pytest.warns(UnknownCellWarning, match="3 cells"):
        leaves = model.apply(frame, out_of_domain="missing")
    nodes = [model.root, model.root.children[0], model.root.children[1], model.root.children[1].children[0]]
    assert p.tolist() == [node.probabilities.tolist() for node in nodes]
    assert leaves.tolist() == [-1, 0, -1, 1]


@pytest.mark.parametrize("estimator", [DPAdditiveClassifier, DPID3Classifier, DPTreeClassifier])
def test_fitted_estimators_leave_unknown_cells_out(estimator):
    """With hardly any noise, the order of labels changes neither a fit nor what it predicts of unknown cells."""
    rng = np.random.default_rng(0)
    x, size = rng.choice(LABELS, 4_000), rng.uniform(0, 10, 4_000)
    y = rng.random(4_000) < np.array([0.9, 0.2, 0.4, 0.3])[[LABELS.index(label) for label in x]]
    X = pl.DataFrame({"x": x, "size": size})
    new = pl.DataFrame({"x": ["a", "b", "unknown", None], "size": [1.0, None, 3.0, None]})
    found = []
    for order in (LABELS, LABELS[::-1]):
        schema = dpf.Schema([dpf.Categorical("x", order), dpf.Numeric("size", 0, 10, bins=3), TARGET])
        model = estimator(10_000, schema=schema, random_state=0).fit(X, y)
        with pytest.warns(UnknownCellWarning, match="4 cells"):
            found.append(model.predict_proba(new)[:, 1])
    assert found[0] == pytest.approx(found[1], abs=0.01)
    assert found[0][0] > 0.8
    assert found[0][2] == pytest.approx(found[0][3], abs=0.02 if estimator is not DPAdditiveClassifier else 0.1)
    assert abs(found[0][3] - y.mean()) < 0.1


def test_a_kept_table_predicts_as_before():
    model = additive(LABELS, (1, 2, 3, 6), (0, 0, 0, 4))
    rows = {"x": ["a", "b"], "y": ["d", "c"]}
    table = dpf.table_from_columns(rows, dpf.Schema(in_order(LABELS)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.scores(table) == pytest.approx(model.scores(NewRows.read(rows, model.schema)))
