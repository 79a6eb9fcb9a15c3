"""The additive models of a class and of a number as scikit-learn estimators."""

from __future__ import annotations

from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from dpframework.facts import Attribute, Schema
from dpframework_trees.additive.miner import DPAdditive
from dpframework_trees.additive.regression import DPAdditiveRegression
from dpframework_trees.additive.residuals import COVERED
from dpframework_trees.estimator import PrivateClassifier
from dpframework_trees.estimator_inputs import InputColumns, Outcomes
from dpframework_trees.private_estimator import PrivateEstimator, sklearn_estimator


@final
@sklearn_estimator
class DPAdditiveClassifier(PrivateClassifier):
    """Additive classifier with one function of each attribute (see `dpframework_trees.DPAdditive` for the algorithm).

    `model_` is an `AdditiveModel`, which draws each function and returns what each attribute adds to a row's score.

    Parameters
    ----------
    attributes
        The columns to use, by the schema's names; by default all.
    interactions
        Whether a small tree adds its own part to the score: "no", "yes" (refused for more than two classes), or "auto"
        (for two classes and many rows).

    Examples
    --------
    >>> import dpframework as dpf
    >>> schema = dpf.Schema([dpf.Numeric("x", 0, 10, bins=5), dpf.Categorical("class", values=["no", "yes"])])
    >>> X = [[i % 10] for i in range(1000)]
    >>> y = ["yes" if 2 <= i % 10 < 6 else "no" for i in range(1000)]
    >>> model = DPAdditiveClassifier(epsilon=10, schema=schema, random_state=0).fit(X, y)
    >>> model.predict([[0], [5], [7]]).tolist()
    ['no', 'yes', 'no']
    """

    miner = DPAdditive

    attributes: Any = attrs.field(default=None, kw_only=True)
    interactions: str = attrs.field(default="no", kw_only=True)


@final
@sklearn_estimator
class DPAdditiveRegressor(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """Additive model of a number (see `dpframework_trees.DPAdditiveRegression` for the algorithm).

    `model_` is an `AdditiveRegression`, which draws each function and returns what each attribute adds to a row's sum.

    Parameters
    ----------
    attributes
        The columns to use, by the schema's names; by default all.

    Examples
    --------
    >>> import dpframework as dpf
    >>> schema = dpf.Schema([dpf.Numeric("x", 0, 10, bins=5), dpf.Numeric("y", 0, 100, bins=1)])
    >>> X = [[i % 10] for i in range(1000)]
    >>> y = [20 + 60 * (i % 10 >= 6) for i in range(1000)]
    >>> model = DPAdditiveRegressor(epsilon=10, schema=schema, random_state=0).fit(X, y)
    >>> model.predict([[1], [7]]).round(-1).tolist()
    [20.0, 80.0]
    """

    miner = DPAdditiveRegression

    attributes: Any = attrs.field(default=None, kw_only=True)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predicted mean of y for each row, shape (rows,)."""
        rows = self._rows(X)
        self._family.note_prediction(self)
        return np.asarray(self.model_.predict(rows))

    def predict_interval(self, X: Any, share: float = COVERED) -> NDArray[np.float64]:
        """Return a range for each row, shape (rows, 2). It holds y for about `share` of the rows, or for more.

        `AdditiveRegression.interval` says for which rows this is so.
        """
        rows = self._rows(X)
        self._family.note_prediction(self)
        return np.asarray(self.model_.interval(rows, share))

    def _describe_columns(self, given: InputColumns, columns: list[Any], outcomes: Outcomes) -> tuple[Schema, str]:
        return given.with_number(columns, outcomes)

    def _column(self, target: Attribute, outcomes: Outcomes) -> Any:
        return outcomes.cells
