"""Accuracy, F-measure and AUC, on models whose figures are known by hand, and on trees of the project."""

from __future__ import annotations

import builtins
import math

import numpy as np
import pytest
from dpframework_trees import DPID3
from sklearn.metrics import f1_score, roc_auc_score

import dpframework as dpf
from dpframework.lab.clinic import clinic_table
from dpframework.lab.evaluation import cart, folds, select_rows
from dpframework.lab.evaluation.class_prediction_quality import prediction_of

SCHEMA = dpf.Schema([dpf.Categorical("x", list("abcdef")), dpf.Categorical("y", ["no", "yes", "maybe"])])
TABLE = dpf.Table.from_codes(SCHEMA, [[0, 1, 2, 3, 4, 5], [1, 1, 1, 0, 0, 0]])


class Fixed:
    """Predicts the same whatever the rows."""

    def __init__(self, labels, yes=None):
        self.labels = labels
        if yes is not None:
            self.classes_ = ["no", "yes"]
            self.predict_proba = lambda rows: np.stack([1 - np.array(yes), yes], axis=1)

    def predict(self, rows):
        return np.array(self.labels)


def test_by_hand():
    # two of three "yes" found, one "no" taken for it
    model = Fixed(["yes", "yes", "no", "yes", "no", "no"], yes=[0.9, 0.8, 0.3, 0.6, 0.2, 0.1])
    found = prediction_of(model, TABLE, "y", positive="yes")
    assert found.accuracy == pytest.approx(4 / 6)
    assert found.f_measure == pytest.approx(2 / 3)
    assert found.auc == pytest.approx(8 / 9)  # of nine pairs one is the wrong way round
    assert found.rows == 6
    assert str(found).endswith("Not private: measured on the rows themselves.")


def test_means_over_the_classes_that_occur():
    model = Fixed(["yes", "yes", "no", "yes", "yes", "maybe"])
    found = prediction_of(model, TABLE, "y")
    assert found.f_measure == pytest.approx((f_of(2, 2, 1) + f_of(0, 1, 3)) / 2)
    assert math.isnan(found.auc)  # no probabilities


def f_of(right, wrong, lacking):
    return 2 * right / (2 * right + wrong + lacking)


def test_one_class_has_no_area_and_an_absent_one_no_share():
    alone = select_rows(TABLE, [0, 1, 2])
    found = prediction_of(Fixed(["yes"] * 3, yes=[1, 1, 1]), alone, "y")
    assert (found.accuracy, found.f_measure) == (1, 1)
    assert math.isnan(found.auc)
    absent = prediction_of(Fixed(["yes"] * 6, yes=[0.5] * 6), TABLE, "y", positive="maybe")
    assert absent.f_measure == 0  # neither there nor predicted
    assert math.isnan(absent.auc)


def test_a_tree_of_the_project_and_a_tree_of_scikit_learn():
    target = "type 2 diabetes"
    train, test = next(folds(clinic_table(3000), 3, seed=0))
    study = dpf.Study(train.schema, epsilon=20)
    study.add("tree", DPID3(target=target, epsilon=20, max_depth=3))
    tree = study.run(train, seed=0)["tree"].tree
    truth = np.array(test.schema[target].labels)[test.codes[test.schema.index(target)]]
    for model in (tree, cart(train, target, max_depth=3, kind="ordinal")):
        found = prediction_of(model, test, target, positive="true")
        assert found.accuracy == np.mean(model.predict(test) == truth) > 0.9
        assert found.f_measure == pytest.approx(f1_score(truth, model.predict(test), pos_label="true"))
        assert found.auc == pytest.approx(roc_auc_score(truth == "true", model.predict_proba(test)[:, 1]))
        both = prediction_of(model, test, target)
        assert both.auc == pytest.approx(found.auc)  # of two classes one is the other's mirror


def test_a_class_that_a_classifier_has_not_seen():
    some = select_rows(TABLE, [0, 1, 4, 5])
    model = cart(some, "y")
    assert model.classes_ == ["no", "yes"]
    other = dpf.Table.from_codes(SCHEMA, [[0, 1, 4, 5], [1, 2, 0, 0]])
    found = prediction_of(model, other, "y", positive="maybe")
    assert (found.accuracy, found.f_measure, found.auc) == (0.75, 0, 0.5)


def test_bad_input_is_refused(monkeypatch):
    model = Fixed(["yes"] * 6)
    with pytest.raises(dpf.InputError, match="did you mean 'yes'"):
        prediction_of(model, TABLE, "y", positive="yess")
    with pytest.raises(dpf.InputError, match="a model that predicts is needed, such as a result's tree, not int"):
        prediction_of(3, TABLE, "y")
    with pytest.raises(dpf.InputError, match="no rows"):
        prediction_of(model, select_rows(TABLE, []), "y")
    real = builtins.__import__

    def without(name, *rest):
        if name == "sklearn":
            raise ModuleNotFoundError(name, name=name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'dpframework\[sklearn\]'"):
        prediction_of(model, TABLE, "y")


def test_folds_share_the_rows_out():
    schema = dpf.Schema([dpf.Numeric("x", 0, 100, bins=100)], rows=10)
    table = dpf.Table.from_codes(schema, [range(10)])
    parts = list(folds(table, 3, seed=1))
    assert sorted(np.concatenate([test.codes[0] for _, test in parts]).tolist()) == list(range(10))
    for train, test in parts:
        assert sorted([*train.codes[0].tolist(), *test.codes[0].tolist()]) == list(range(10))
        assert (train.schema.rows, test.schema.rows) == (train.codes.shape[1], test.codes.shape[1])
        assert (test.values["x"] == test.codes[0] + 0.5).all()
    for number in (1, 11):
        with pytest.raises(dpf.InputError, match="folds"):
            list(folds(table, number, seed=1))
