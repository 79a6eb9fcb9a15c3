"""A record of what clones of one estimator did, so that a search by exact scores is noticed."""

from __future__ import annotations

import warnings
from typing import Any

import attrs

from dpframework_trees.estimator_inputs import PrivacyWarning


@attrs.define(eq=False)
class EstimatorFamily:
    """A record of what the estimators of one family, which are clones of one another, have done.

    scikit-learn's searches fit clones, compare their predictions with the exact classes, and fit one more clone with
    the best parameters. So the parameters of that last fit depend on the private rows without any noise, and the fit's
    claim does not hold.
    """

    first_predictor: int | None = None  # the `id` of the first estimator that predicted
    others_predicted: bool = False  # whether another estimator predicted, too
    pickled_unfitted: bool = False  # whether an estimator was pickled before it was fitted
    fits: int = 0  # how many estimators were fitted without a shared accountant

    def note_prediction(self, estimator: Any) -> None:
        """Note that an estimator has predicted."""
        if self.first_predictor is None:
            self.first_predictor = id(estimator)
        elif self.first_predictor != id(estimator):
            self.others_predicted = True

    def note_pickling(self, *, fitted: bool) -> None:
        """Note that an estimator was pickled, as happens when it is sent to another process."""
        self.pickled_unfitted |= not fitted

    def note_fit(self, estimator: Any, *, alone: bool) -> None:
        """Note an estimator's first fit on a budget of its own, and warn if it is the family's second such fit."""
        if not alone or estimator.__dict__.get("_counted"):
            return
        estimator.__dict__["_counted"] = True
        self.fits += 1
        if self.fits == 2:
            warnings.warn(
                "two clones of one estimator were fitted without a shared accountant; on the same people their budgets "
                "add up, so give the estimator an accountant, such as "
                "accountant=dpf.PureAccountant('add-or-remove-one', epsilon=2)",
                PrivacyWarning,
                stacklevel=3,
            )

    def may_choose_by_scores(self, estimator: Any) -> bool:
        """Tell whether a fit's parameters may have been chosen by exact scores of other clones, and warn if so."""
        others = self.others_predicted or self.first_predictor not in (None, id(estimator))
        if others or self.pickled_unfitted:
            warnings.warn(
                "this fit follows predictions of other clones, as in a search by exact scores; its parameters may "
                "reveal something about the rows, so it is not private; PrivateTreeSearch chooses privately",
                PrivacyWarning,
                stacklevel=3,
            )
            return True
        return False

    def __deepcopy__(self, memo: dict[int, Any]) -> EstimatorFamily:
        """Return the family itself, since a copy of an estimator is one of its clones."""
        return self
