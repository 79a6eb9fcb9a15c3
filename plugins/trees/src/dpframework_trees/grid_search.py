"""A grid search over trees on one budget, for scikit-learn."""

from __future__ import annotations

from typing import Any, final

import attrs
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from dpframework.facts import InputError, exact, positive
from dpframework.run import Miner
from dpframework_trees.estimator import TreeClassifier
from dpframework_trees.private_estimator import sklearn_estimator
from dpframework_trees.tree_choice import TreeChoice


@final
@sklearn_estimator
class PrivateTreeSearch(TreeClassifier):
    """Grid search on one budget, where `epsilon` pays for every candidate's fit and for the choice.

    The candidates get equal shares of the budget that the choice leaves. A tree is then selected
    privately by its number of correct predictions on the rows (see `dpframework_trees.tree_choice`).

    Parameters
    ----------
    estimator
        A `DPID3Classifier` or `DPTreeClassifier`. Of its parameters, only those that describe the tree are used, such
        as `max_depth`. The search's own values hold for all others: `epsilon`, `delta`, `schema`, `target`,
        `out_of_domain`, `relation`, `rows_per_unit`, `accountant` and `random_state`.
    param_grid
        For each parameter that is tried, a list of its values, as scikit-learn's searches take them.
    choice_share
        The share of the budget that the choice gets, between 0 and 1.

    Attributes
    ----------
    best_params_
        The chosen parameters.

    Examples
    --------
    >>> import dpframework as dpf
    >>> from dpframework_trees import DPID3Classifier
    >>> schema = dpf.Schema([dpf.Numeric("x", 0, 10, bins=10), dpf.Categorical("class", values=["no", "yes"])])
    >>> X = [[i % 10] for i in range(1000)]
    >>> y = ["yes" if 2 <= i % 10 < 6 else "no" for i in range(1000)]
    >>> grid = {"max_depth": [1, 2]}
    >>> search = PrivateTreeSearch(10, estimator=DPID3Classifier(), param_grid=grid, schema=schema, random_state=0)
    >>> search.fit(X, y).best_params_
    {'max_depth': 2}
    """

    estimator: Any = attrs.field(default=None, kw_only=True)
    param_grid: Any = attrs.field(default=None, kw_only=True)
    choice_share: float | str = attrs.field(default=0.1, kw_only=True)

    def _candidates(self) -> list[TreeClassifier]:
        if not isinstance(self.estimator, TreeClassifier) or isinstance(self.estimator, PrivateTreeSearch):
            given = None if self.estimator is None else type(self.estimator).__name__
            raise InputError(
                f"estimator is {given}; give estimator=DPID3Classifier() or DPTreeClassifier(), "
                "and the values to try as param_grid, such as {'max_depth': [2, 3]}"
            )
        return [clone(self.estimator).set_params(**parameters) for parameters in ParameterGrid(self.param_grid or {})]

    def _miner(self, target: str) -> Miner:
        """Return the choice among the candidates."""
        share, budget = exact(self.choice_share, "choice_share"), positive(self.epsilon)
        if not 0 < share < 1:
            raise InputError(f"choice_share is {self.choice_share!r}; a number between 0 and 1 is needed")
        candidates = self._candidates()
        each = budget * (1 - share) / len(candidates)
        miners = [candidate.set_params(epsilon=each)._miner(target) for candidate in candidates]
        return TreeChoice(target, miners, budget * share)

    def _list_assumptions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for candidate in self._candidates() for name in candidate._list_assumptions()))

    def _keep(self, result: Any) -> None:
        super()._keep(result)
        self.best_params_ = list(ParameterGrid(self.param_grid or {}))[result.position]
