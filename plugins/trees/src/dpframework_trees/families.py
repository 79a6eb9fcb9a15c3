"""Estimators that are clones of one another, and their fits, so that a search by scores is noticed."""

from __future__ import annotations

import warnings
from typing import Any

import attrs

from dpframework_trees.columns import PrivacyWarning


@attrs.define(eq=False)
class EstimatorFamily:
    """Estimators that are clones of one another.

    scikit-learn's searches fit clones, compare their predictions with the classes, exactly, and fit one more clone with
    the parameters that did best. What that last fit is asked for depends on the private rows in a way that no noise
    covers, and its claim does not hold for it.
    """

    looked_at: int | None = None  # the first of them that predicted, by identity
    by_others_too: bool = False  # whether another one did
    in_other_processes: bool = False  # whether one was sent away before it was fitted
    fits: int = 0  # how many of them were fitted, each on a budget of its own

    def note_prediction(self, estimator: Any) -> None:
        """Note that an estimator has predicted."""
        if self.looked_at is None:
            self.looked_at = id(estimator)
        elif self.looked_at != id(estimator):
            self.by_others_too = True

    def note_pickling(self, *, fitted: bool) -> None:
        """Note that an estimator was pickled, as it is for another process."""
        self.in_other_processes |= not fitted

    def note_fit(self, estimator: Any, *, alone: bool) -> None:
        """Note a fit, and warn once if several clones were fitted, each on a budget of its own."""
        if not alone or estimator.__dict__.get("_counted"):
            return
        estimator.__dict__["_counted"] = True
        self.fits += 1
        if self.fits == 2:
            warnings.warn(
                "two clones of one estimator were fitted without a shared accountant: on the same people their budgets "
                "add up; give the estimator one, such as accountant=dpf.PureAccountant('add-or-remove-one', epsilon=2)",
                PrivacyWarning,
                stacklevel=3,
            )

    def may_choose_by_scores(self, estimator: Any) -> bool:
        """Tell whether the parameters of a fit may have been chosen by scores of other clones, and warn if so."""
        others = self.by_others_too or self.looked_at not in (None, id(estimator))
        if others or self.in_other_processes:
            warnings.warn(
                "this fit follows predictions of other clones, as in a search by exact scores: its parameters may tell "
                "of the rows, so it is not private; PrivateTreeSearch chooses privately",
                PrivacyWarning,
                stacklevel=3,
            )
            return True
        return False

    def __deepcopy__(self, memo: dict[int, Any]) -> EstimatorFamily:
        """Return itself, since a copy of an estimator is one of its clones."""
        return self
