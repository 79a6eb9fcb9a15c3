"""The additive model as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any, final

import attrs

from dpframework_trees.additive.miner import DPAdditive
from dpframework_trees.estimator import PrivateClassifier
from dpframework_trees.private_estimator import sklearn_estimator


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

    def _list_assumptions(self) -> tuple[str, ...]:
        return ()
