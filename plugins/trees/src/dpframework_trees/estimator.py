"""Trees as scikit-learn classifiers, and the base class of all classifiers of this plugin."""

from __future__ import annotations

from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dpframework.facts import Attribute, Schema
from dpframework_trees.dptree import DPTree
from dpframework_trees.estimator_inputs import InputColumns, Outcomes, class_cells, ordered_classes
from dpframework_trees.id3 import DPID3
from dpframework_trees.private_estimator import PrivateEstimator, sklearn_estimator
from dpframework_trees.sampling import MarkovChainTrees


@sklearn_estimator
class PrivateClassifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """The base of this plugin's classifiers, with the parameters of `PrivateEstimator`.

    Attributes
    ----------
    classes_
        The classes, sorted, in the type of y, which is public. If the schema describes the class, these are all of its
        values there. A list has no type, so its classes are Booleans if the schema's labels are true and false, numbers
        if all labels are numbers, or else texts. For classes of a certain type, give an array or a series of that type.
    """

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row."""
        check_is_fitted(self)
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return class probabilities, shape (rows, classes), in the order of `classes_`."""
        rows = self._rows(X)
        self._family.note_prediction(self)
        return np.asarray(self.model_.predict_proba(rows)[:, self._order])

    def _describe_columns(self, given: InputColumns, columns: list[Any], outcomes: Outcomes) -> tuple[Schema, str]:
        return given.with_class(columns, outcomes)

    def _column(self, target: Attribute, outcomes: Outcomes) -> Any:
        known = self.schema is not None and target.name in self.schema
        cells, dtype = class_cells(target, outcomes if known else outcomes.typed)
        self.classes_, self._order = ordered_classes(target, dtype)
        return cells


@sklearn_estimator
class TreeClassifier(PrivateClassifier):
    """The base of estimators that fit a tree, with the parameters of `PrivateClassifier`.

    Attributes
    ----------
    tree_
        The fitted `DecisionTree`, which is `model_` too.
    """

    def _keep(self, result: Any) -> None:
        self.model_ = self.tree_ = result.tree

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Return each row's leaf in the tree that is shown, shape (rows,), as a position in `tree_.rules()`.

        A row whose path ends at an unknown cell is in no leaf, and gets -1.
        """
        return np.asarray(self.tree_.apply(self._rows(X)))


@final
@sklearn_estimator
class DPID3Classifier(TreeClassifier):
    """DP-ID3 decision tree classifier (see `dpframework_trees.DPID3` for the algorithm and its parameters).

    Parameters
    ----------
    max_depth, criterion, selection, splits, numeric, stopping, budget, pruning, attributes
        Parameters of the miner. Every `TreeClassifier` has the other parameters and the fitted attributes.

    Examples
    --------
    >>> import dpframework as dpf
    >>> schema = dpf.Schema([dpf.Numeric("x", 0, 10, bins=10), dpf.Categorical("class", values=["no", "yes"])])
    >>> X = [[i % 10] for i in range(1000)]
    >>> y = ["yes" if i % 10 >= 5 else "no" for i in range(1000)]
    >>> tree = DPID3Classifier(epsilon=10, max_depth=1, schema=schema, random_state=0).fit(X, y)
    >>> tree.predict([[2], [7]]).tolist()
    ['no', 'yes']
    """

    miner = DPID3

    max_depth: int | None = attrs.field(default=None, kw_only=True)
    criterion: str = attrs.field(default="norm", kw_only=True)
    selection: str = attrs.field(default="permute-and-flip", kw_only=True)
    splits: str = attrs.field(default="binary", kw_only=True)
    numeric: str = attrs.field(default="candidates", kw_only=True)
    stopping: str = attrs.field(default="none", kw_only=True)
    budget: str = attrs.field(default="growing", kw_only=True)
    pruning: bool = attrs.field(default=True, kw_only=True)
    attributes: Any = attrs.field(default=None, kw_only=True)


@final
@sklearn_estimator
class DPTreeClassifier(TreeClassifier):
    """A classification tree of fixed depth sampled as a whole (parameters as in `dpframework_trees.DPTree`).

    If you choose the sampler "mcmc", you also accept its assumption that the walk has converged.

    Parameters
    ----------
    max_depth, sampler, criterion, iterations, counts_share, pruning, attributes
        Parameters of the miner. Every `TreeClassifier` has the other parameters and the fitted attributes.

    Examples
    --------
    Neither attribute says anything about the class without the other, so no first test is better than another.

    >>> import dpframework as dpf
    >>> schema = dpf.Schema([dpf.Boolean("a"), dpf.Boolean("b"), dpf.Boolean("class")])
    >>> X = [[i % 2, i // 2 % 2] for i in range(1000)]
    >>> tree = DPTreeClassifier(epsilon=10, max_depth=2, schema=schema, random_state=0).fit(X, [a ^ b for a, b in X])
    >>> tree.predict([[0, 0], [0, 1], [1, 0], [1, 1]]).tolist()
    [False, True, True, False]
    """

    miner = DPTree

    max_depth: int = attrs.field(default=3, kw_only=True)
    sampler: str = attrs.field(default="auto", kw_only=True)
    criterion: str = attrs.field(default="norm", kw_only=True)
    iterations: int = attrs.field(default=10_000, kw_only=True)
    counts_share: float | str = attrs.field(default=0.4, kw_only=True)
    pruning: bool = attrs.field(default=True, kw_only=True)
    attributes: Any = attrs.field(default=None, kw_only=True)

    def _list_assumptions(self) -> tuple[str, ...]:
        return MarkovChainTrees.assumptions if self.sampler == "mcmc" else ()
