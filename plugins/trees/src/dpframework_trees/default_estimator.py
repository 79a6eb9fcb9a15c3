"""The classifier that chooses its model by public facts, for scikit-learn."""

from __future__ import annotations

from typing import Any, final

import attrs

from dpframework_trees.default_classifier_miner import DPClassifierMiner
from dpframework_trees.estimator import PrivateClassifier
from dpframework_trees.private_estimator import sklearn_estimator


@final
@sklearn_estimator
class DPClassifier(PrivateClassifier):
    """Classifier that chooses its model by public facts (see `dpframework_trees.DPClassifierMiner` for the rule).

    Parameters
    ----------
    attributes
        The columns to use, by the schema's names; by default all.

    Attributes
    ----------
    kind_
        The kind of the chosen model: "additive" if `model_` is an `AdditiveModel`, or "sampled-2" to "sampled-5" if it
        is a `DecisionTree` with that number of levels.

    Examples
    --------
    >>> import dpframework as dpf
    >>> schema = dpf.Schema([dpf.Numeric("x", 0, 10, bins=5), dpf.Categorical("class", values=["no", "yes"])])
    >>> X = [[i % 10] for i in range(1000)]
    >>> y = ["yes" if 2 <= i % 10 < 6 else "no" for i in range(1000)]
    >>> DPClassifier(epsilon=10, schema=schema, random_state=0).fit(X, y).kind_
    'additive'
    """

    miner = DPClassifierMiner

    attributes: Any = attrs.field(default=None, kw_only=True)

    def _keep(self, result: Any) -> None:
        self.kind_, self.model_ = result.kind, result.model
