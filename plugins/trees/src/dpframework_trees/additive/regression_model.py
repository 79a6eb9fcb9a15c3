"""An additive model of a number, made of releases, with each attribute's part, noise bands and prediction ranges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, final

import attrs
import numpy as np

from dpframework.facts import InputError, Numeric, attribute_from_dict
from dpframework.tables import NewRows
from dpframework_trees.additive.additive_base import AdditiveSum
from dpframework_trees.additive.design import Reals
from dpframework_trees.additive.residuals import COVERED, NoisyResiduals
from dpframework_trees.additive.terms import Term, parts_by_function, round_for_result


@final
@attrs.frozen(eq=False, repr=False)
class AdditiveRegression(AdditiveSum):
    """A model of a number within bounds, a logistic function of a sum of one function of each attribute.

    The sum s of a row, including the intercept, is the log-odds of the number's relative position between its bounds.
    The prediction is lower + (upper - lower) / (1 + exp(-s)). The model is made of releases, so predicting with it,
    drawing it and keeping it costs no privacy.

    Attributes
    ----------
    target
        The number that is predicted.
    intercept
        The part of the sum that is the same for all rows.
    mean
        The noisy mean of the number over the rows of the fit.
    terms
        The functions, in the schema's order. Their values, of shape (cells, 1), are added to the sum.
    residuals
        Noisy counts of rows by how far their number was from its prediction.
    """

    name_in_errors: ClassVar[str] = "an additive model of a number"

    target: Numeric
    intercept: float
    mean: float
    terms: tuple[Term, ...]
    residuals: NoisyResiduals

    @property
    def width(self) -> float:
        """The target's upper bound minus its lower bound."""
        return float(self.target.upper - self.target.lower)

    def _contributions(self, given: NewRows) -> Reals:
        return np.concatenate(parts_by_function(self.terms, given), axis=1)

    def predict(self, rows: Any, *, out_of_domain: str = "error") -> Reals:
        """Return the predicted mean of the number for each row, shape (rows,)."""
        added = self.contributions(rows, out_of_domain=out_of_domain)
        return self._numbers(self.intercept + added.sum(axis=1))

    def interval(self, rows: Any, share: float = COVERED, *, out_of_domain: str = "error") -> Reals:
        """Return a range for each row's number, shape (rows, 2).

        About `share` of rows like the fitted ones, or more, have their number in the range. This holds for all rows
        together, not for each kind of row. The ends follow from noisy counts of the fit's own rows, with an allowance
        for their noise (see `NoisyResiduals.margins`).

        Raises
        ------
        InputError
            If the share is not between 0 and 1.
        """
        if not 0 < share < 1:
            raise InputError(f"share is {share}; a number between 0 and 1 is needed")
        below, above = (margin * self.width for margin in self.residuals.margins(share))
        predicted = self.predict(rows, out_of_domain=out_of_domain)
        return np.clip(np.column_stack([predicted - below, predicted + above]), self.target.lower, self.target.upper)

    @property
    def shown_terms(self) -> tuple[Term, ...]:
        """The functions in the target's units.

        A value is how far a cell moves a prediction from the mean. A band is the band of the sum, times the slope of
        the prediction at that value.
        """
        found, odds = [], (self.mean - self.target.lower) / (self.target.upper - self.mean)
        for term in self.terms:
            numbers = self._numbers(np.log(odds) + term.values)
            place = (numbers - self.target.lower) / self.width
            slope = (self.width * place * (1 - place))[:, 0]
            bands = (term.deviations * slope, term.most_deviations * slope)
            found.append(Term(term.attribute, term.bins, numbers - self.mean, *bands))
        return tuple(found)

    def importances(self) -> dict[str, float]:
        """Return the largest difference that each attribute makes to a prediction around the mean."""
        return {term.attribute.name: term.importance for term in self.shown_terms}

    def _numbers(self, sums: Reals) -> Reals:
        """Return the predictions for sums, in the same shape."""
        return np.asarray(self.target.lower + self.width / (1 + np.exp(-sums.clip(-700, 700))))

    @property
    def outputs(self) -> tuple[str, ...]:
        """The target's name, as the name of the only output."""
        return (self.target.name,)

    @property
    def added_to(self) -> str:
        """The target's name, since the functions are shown in the target's units."""
        return self.target.name

    def __str__(self) -> str:
        """Write the mean and the range of errors, then each function with one line per cell, important ones first."""
        below, above = (margin * self.width for margin in self.residuals.margins())
        lines = [
            f"{self.target.name}: {self.mean:.4g} on average",
            f"at least {COVERED:.0%} of rows are from {below:.3g} below to {above:.3g} above their prediction",
        ]
        return "\n".join([*lines, *self._term_lines(".3g")])

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        return {
            "target": self.target.to_dict(),
            "intercept": round_for_result(np.array(self.intercept)),
            "mean": round_for_result(np.array(self.mean)),
            "terms": [term.to_dict() for term in self.terms],
            "residuals": self.residuals.to_dict(),
        }

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> AdditiveRegression:
        """Build a model from a form that `to_dict` returned."""
        target = attribute_from_dict(form["target"], 0)
        if not isinstance(target, Numeric):
            raise InputError(f"target '{target.name}' must be numeric")
        terms = tuple(Term.from_dict(of_one, k) for k, of_one in enumerate(form["terms"]))
        return cls(
            target, float(form["intercept"]), float(form["mean"]), terms, NoisyResiduals.from_dict(form["residuals"])
        )
