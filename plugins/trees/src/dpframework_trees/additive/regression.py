"""`dp-additive-regression`, an additive model of a number within public bounds.

Claim: pure epsilon under either neighbouring relation; no assumptions. The fit is done like `dp-additive` for two
classes. The outcome is the number's relative position between its bounds (see `perturbation`, "Numbers as outcomes").
So predictions stay within the bounds, and noise in the gradient moves a prediction about as much as it moves a mean of
rows. Before the fit, the sums of the rows' distances to both bounds are released as one pair (`BoundDistances`). The
number of rows and the mean position follow from them. The log-odds of this mean are an offset of all scores, which
costs nothing. After the fit, rows are counted by how far their numbers are from the predictions (see `residuals`). The
budgets add up to epsilon.

The sufficient statistics of a least-squares fit (as in diffprivlib's `LinearRegression`) need noise for each pair of
columns. Here only the gradient needs noise.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import final

import attrs
import numpy as np

from dpframework.facts import Attribute, Numeric, Schema
from dpframework.mechanisms import DiscreteLaplace, Laplace
from dpframework.plan import Node, sequential, step
from dpframework.queries import BoundDistances
from dpframework.run import Example, PrivateTable
from dpframework_trees.additive.design import FINE, MOST_WHOLE, Design
from dpframework_trees.additive.fit_rows import NumberRows, numeric_target
from dpframework_trees.additive.miner import AdditiveFit
from dpframework_trees.additive.regression_model import AdditiveRegression
from dpframework_trees.additive.residuals import NoisyResiduals, ResidualCounts
from dpframework_trees.additive.terms import centred_terms
from dpframework_trees.additive.witnesses import SCHEMA, row_of_other_outcome, witness_of_added
from dpframework_trees.parameters import ModelMiner, other_attributes
from dpframework_trees.tree_estimates import noise_variance

MEAN, RESIDUALS = "mean", "residuals"
MEAN_SHARE, RESIDUAL_SHARE = Fraction(2, 25), Fraction(1, 20)


@final
@attrs.frozen
class DPAdditiveRegression(ModelMiner):
    """An additive model of a numeric target, with one function of each attribute, fitted jointly.

    Parameters
    ----------
    target
        The numeric attribute to predict. Values are clamped to its public bounds. Rows without a number are left out.
    epsilon
        The budget. The number of rows and the mean get 8 % of it, prediction ranges 5 %, and the fit the rest.
    attributes
        The attributes to use; by default all but the target.

    Examples
    --------
    >>> DPAdditiveRegression(target="hours", epsilon=1.0).epsilon
    Fraction(1, 1)
    """

    name = "dp-additive-regression"
    result = AdditiveRegression

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return an example with witnesses that lose nearly all of the claim, and one where numbers may be missing."""
        price = Numeric("price", 0, 10, bins=2)
        schema = Schema([*(a for a in SCHEMA if a.name != "grade"), price], max_rows=SCHEMA.max_rows)
        witnesses = [
            attrs.evolve(own, one=_priced_row(own.one), other=_priced_row(own.other))
            for own in (witness_of_added("grade"), row_of_other_outcome())
        ]
        missing = attrs.evolve(schema.replace(attrs.evolve(price, missing=True)), rows=12)
        return {
            "number": Example(schema, cls("price", 2), witnesses=witnesses),
            "missing": Example(missing, cls("price", 2), witnesses=witnesses[1:]),
        }

    def plan(self, schema: Schema) -> Node:
        """Plan the distances to both bounds, counts of bins if needed, the fit, and counts of residuals."""
        fit = RegressionFit.of(schema, self.target, self.attributes, self.epsilon)
        mean = step(MEAN, BoundDistances(fit.number), Laplace(self.epsilon * MEAN_SHARE))
        counts = DiscreteLaplace(self.epsilon * RESIDUAL_SHARE)
        residuals = step(RESIDUALS, ResidualCounts(fit.number, tuple(fit.given)), counts, uses=[MEAN])
        return sequential(mean, *fit.steps(self._of_fit, uses=[MEAN]), residuals)

    @property
    def _of_fit(self) -> Fraction:
        return self.epsilon * (1 - MEAN_SHARE - RESIDUAL_SHARE)

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return the target only, since all other attributes are read by bin."""
        return [self.target]

    def mine(self, table: PrivateTable) -> AdditiveRegression:
        """Release the mean, fit, and count residuals."""
        fit = RegressionFit.of(table.schema, self.target, self.attributes, self.epsilon)
        below, above = (float(distance) for distance in table.release(MEAN))
        rows, place = max(below + above, 1.0), mean_position(below, above, table.calibration(MEAN).variance)
        fit = attrs.evolve(fit, centre=round(math.log(place / (1 - place)) * FINE))
        tuned, coefficients, _ = fit.release_fit(table, rows, self._of_fit)
        intercept, terms = centred_terms(tuned, coefficients, np.ones(1), fit.given)
        whole = float(intercept[0]) + fit.centre / FINE
        of_codes = [float(term.values[cell, 0]) for term in terms for cell in term.bins]
        counts = table.release(RESIDUALS, added=[*of_codes, whole])
        deviation = math.sqrt(noise_variance(table.calibration(RESIDUALS)))
        residuals = NoisyResiduals(np.asarray(counts, dtype=np.float64), deviation)
        mean = fit.number.lower + (fit.number.upper - fit.number.lower) * place
        return AdditiveRegression(fit.number, whole, mean, terms, residuals)


def mean_position(below: float, above: float, variance: float) -> float:
    """Return the mean relative position of numbers between their bounds, clamped to [.01, .99].

    It follows from noisy sums of the distances to both bounds. Before the release, the position is expected around the
    middle with a variance of 1/12, as if it might be anywhere. The result is its posterior mean.

    Parameters
    ----------
    below, above
        The noisy sums of the distances to the lower and to the upper bound.
    variance
        The variance of the noise of each sum.

    Examples
    --------
    >>> mean_position(250.0, 750.0, 0.0), mean_position(-5.0, 3.0, 8.0)
    (0.25, 0.5)
    """
    rows = below + above
    if rows < 1:
        return 0.5
    noise = variance * (below**2 + above**2) / rows**4
    return min(max(0.5 + (below / rows - 0.5) / (1 + 12 * noise), 0.01), 0.99)


@attrs.frozen(eq=False)
class RegressionFit(AdditiveFit):
    """The fit to a number on a schema, with the plan of its steps (see `AdditiveFit`).

    Attributes
    ----------
    centre
        The centre of the design, which follows from the released mean (see `Design`).
    """

    centre: int = 0

    @classmethod
    def target_and_attributes(
        cls, schema: Schema, target: str, attributes: tuple[str, ...] | None
    ) -> tuple[Attribute, Collection[str]]:
        """Return the numeric attribute to predict, and the names of the attributes that predict it."""
        number = numeric_target(schema[target])
        return number, other_attributes(schema, number, attributes)

    @property
    def number(self) -> Numeric:
        """The target, as a numeric attribute."""
        return numeric_target(self.target)

    def design(self, rows: float, by_counts: Mapping[str, tuple[int, ...]], leaves: tuple[int, ...] = ()) -> Design:
        """Return the design for a number of rows, with bins merged as in `AdditiveFit.design`, and with the centre."""
        return attrs.evolve(super().design(rows, by_counts, leaves), centre=self.centre)

    @property
    def classes(self) -> int:
        """2, as the two bounds take the place of classes."""
        return 2

    @property
    def whole(self) -> int:
        """The number of units that make an outcome of 1, which is the upper bound."""
        return MOST_WHOLE

    @property
    def query(self) -> NumberRows:
        """The query for the rows that are fitted."""
        return NumberRows(self.number, tuple(attribute.name for attribute in self.given))


def _priced_row(row: Mapping[str, object] | None) -> Mapping[str, object] | None:
    """Return a row with a price in place of its grade: the highest price if the grade is bad, else the lowest."""
    if row is None:
        return None
    return {**{name: row[name] for name in row if name != "grade"}, "price": 10 if row["grade"] == "bad" else 0}
