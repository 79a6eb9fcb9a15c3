"""Estimators that are told whose each row is: `groups`, as scikit-learn says it."""

from __future__ import annotations

import numpy as np
import pytest
from dpframework_trees import DPID3Classifier, DPTreeClassifier, PrivateTreeSearch
from sklearn.base import clone

import dpframework as dpf

SCHEMA = dpf.Schema([dpf.Numeric("x0", 0, 10, bins=10), dpf.Categorical("class", values=["no", "yes"])])
X = np.array([[k % 10] for k in range(400)], dtype=float)
Y = np.array(["yes" if k % 10 >= 5 else "no" for k in range(400)])
GROUPS = np.array([k // 8 for k in range(400)])
ESTIMATORS = [
    DPID3Classifier(max_depth=1, schema=SCHEMA),
    DPTreeClassifier(max_depth=1, schema=SCHEMA),
    PrivateTreeSearch(estimator=DPID3Classifier(), param_grid={"max_depth": [1]}, schema=SCHEMA),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_a_fit_protects_the_groups_that_it_is_given(estimator) -> None:
    fitted = clone(estimator).set_params(epsilon=1000, rows_per_unit=4).fit(X, Y, GROUPS)
    assert fitted.plan_.unit == dpf.PrivacyUnit("the groups of the fit", 4)
    assert fitted.private_
    assert (fitted.predict(X) == Y).all()
    of_rows = clone(estimator).set_params(epsilon=1000).fit(X, Y)
    assert of_rows.plan_.unit == dpf.PrivacyUnit()
    assert fitted.plan_.total() == of_rows.plan_.total()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_rows_beyond_the_bound_and_rows_of_nobody_are_left_out(estimator) -> None:
    """Of each of 50 groups of eight, four are used, less one group that has no name: at this epsilon exactly."""
    ids = np.where(GROUPS == 0, np.nan, GROUPS.astype(float))
    fitted = clone(estimator).set_params(epsilon=10_000, rows_per_unit=4, random_state=1).fit(X, Y, ids)
    assert round(fitted.tree_.leaf_counts().sum()) == 49 * 4


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_groups_that_cannot_be_are_one_sentence(estimator) -> None:
    with pytest.raises(dpf.InputError, match="y has 400 rows and groups has 3; give the same number of both"):
        clone(estimator).fit(X, Y, GROUPS[:3])
    with pytest.raises(dpf.InputError, match="rows_per_unit is 4, and nothing says to which unit a row belongs; give"):
        clone(estimator).set_params(rows_per_unit=4).fit(X, Y)
    with pytest.raises(dpf.InputError, match="rows_per_unit is 0; write how many rows"):
        clone(estimator).set_params(rows_per_unit=0).fit(X, Y, GROUPS)


def test_a_seeded_fit_uses_the_same_rows_again() -> None:
    tree = DPTreeClassifier(10, max_depth=2, schema=SCHEMA, rows_per_unit=2, random_state=3)
    one, other = (clone(tree).fit(X, Y, GROUPS) for _ in range(2))
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))


def test_fits_share_a_budget_for_one_unit() -> None:
    accountant = dpf.PureAccountant("add-or-remove-one", epsilon=3)
    tree = DPTreeClassifier(1, max_depth=1, schema=SCHEMA, rows_per_unit=4, accountant=accountant)
    tree.fit(X, Y, GROUPS)
    with pytest.raises(dpf.PlanRefused, match="the plan protects one row, the accountant's budget protects"):
        clone(tree).set_params(rows_per_unit=1).fit(X, Y)
    assert accountant.spent == dpf.PrivacyLoss(1)
