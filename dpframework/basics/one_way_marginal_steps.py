"""One-way marginals, or histograms, of several attributes: plan and release them with a part of a miner's budget.

In pure epsilon the histograms have K-norm noise (see `dpframework.mechanisms.KNorm`), in groups of attributes with
similar numbers of values. If `KNorm` does not fit a group, the group has Laplace noise.

In zCDP one release with Gaussian noise holds residuals (see `marginals_workload_noise_and_errors`): the number of rows,
once for all attributes, and the differences of each histogram's counts from their mean. If each count had its own
noise, every histogram would measure the number of rows again, which costs 1/n of the budget of a histogram with n
values. With residuals, all histograms have the same noisy sum. A public number of rows is not released.

The differences have noise of variance T on each count. The number of rows has noise of variance S = T / sqrt(sum of
1 / n**2), where each sum here runs over the attributes, and n is an attribute's number of values. This minimizes the
mean variance of a count, averaged over the histograms. For the same rho, independent noise of variance N on each count
is never better for any count:

- If a row is added or removed, 2 rho is 1 / S + sum of (1 - 1/n) / T, which is
  (sqrt(sum of 1 / n**2) + sum of (1 - 1/n)) / T. The root of a sum of squares is at most the sum, so this is at most
  the number of histograms divided by T. With independent noise, 2 rho is the number of histograms divided by N. So
  T <= N. If a row is replaced, 2 rho is 2 / T for each histogram, and 2 / N with independent noise. So T = N;
- A count's variance is (1 - 1/n) T + S / n**2, where S / n**2 <= T / n, since the root in S is at least 1/n. So the
  variance is at most T, and at most N.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.basics.marginals_workload_noise_and_errors import Set, Workload, cell_variance, marginal_of
from dpframework.facts.attributes import Attribute
from dpframework.mechanisms import (
    Calibration,
    DiscreteLaplace,
    Gaussian,
    KNorm,
    cell_variances,
    groups_by_size,
)
from dpframework.plan.error_bounds_by_result import PlannedPart
from dpframework.plan.nodes import Step, step
from dpframework.plan.plan import Plan
from dpframework.queries.counts import Marginals
from dpframework.queries.marginal_residuals import Residuals
from dpframework.queries.residual_changes import LARGEST_WEIGHT
from dpframework.results.error_bounds import ErrorBound
from dpframework.results.noisy_count_with_interval import Noisy
from dpframework.run.private_table import PrivateTable

STEP = "histograms"
#: Residuals are released if no attribute has more values than this. Then all weights are at least 100, so that rounding
#: them to whole numbers changes little.
_MOST_VALUES = LARGEST_WEIGHT // 100


@final
@attrs.frozen(eq=False)
class NoisyHistogram:
    """A released histogram, with the variances of its noise.

    The noise in the sum of the counts shifts all counts by the same amount. This noise is independent of the noise in
    the counts' differences.

    Attributes
    ----------
    counts
        The noisy counts in rows, shape (codes,).
    variance
        The variance of the noise of each count.
    sum_variance
        The variance of the noise of the counts' sum. By default, the noise of the counts is independent. Histograms of
        one release may share one noisy sum, so averaging their sums need not help.
    """

    counts: NDArray[np.float64]
    variance: float
    sum_variance: float = attrs.field(
        default=attrs.Factory(lambda one: len(one.counts) * one.variance, takes_self=True)
    )

    @property
    def residual_variance(self) -> float:
        """The variance of independent noise on each count that would give the counts' differences the same noise.

        The difference of one count from the mean of all counts has a variance of 1 - 1 / codes times this number.
        """
        codes = len(self.counts)
        if codes == 1:
            return self.variance
        return max(codes * self.variance - self.sum_variance / codes, 0.0) / (codes - 1)

    def with_another(self, other: NoisyHistogram) -> NoisyHistogram:
        """Return the best mean of two independent histograms, with separate weights for their sums and differences."""
        codes = len(self.counts)
        weight, residual = _mean(self.residual_variance, other.residual_variance)
        of_sum, total = _mean(self.sum_variance, other.sum_variance)
        counts = weight * self.counts + (1 - weight) * other.counts
        counts = counts + (of_sum - weight) * (self.counts.sum() - other.counts.sum()) / codes
        return NoisyHistogram(counts, residual * (1 - 1 / codes) + total / codes**2, total)


def _mean(variance: float, other: float) -> tuple[float, float]:
    """Return the weight of the first of two independent numbers in their best mean, and the mean's variance."""
    both = max(variance + other, 1e-300)
    return other / both, variance * other / both


@final
@attrs.frozen
class OneWayMarginals:
    """The histograms of several attributes, which can be planned and released.

    Attributes
    ----------
    among
        The attributes.
    zcdp
        Whether the budget is a rho. Otherwise it is an epsilon.
    rows
        The public number of rows, None if there is none.
    """

    among: Sequence[Attribute]
    zcdp: bool
    rows: int | None = None

    def plan(self, amount: Fraction) -> dict[str, Step]:
        """Return the steps that release the histograms, by their names. `amount` is their epsilon or rho together."""
        if self.zcdp:
            residuals = self._residuals()
            query = Marginals(self.among) if residuals is None else residuals.query
            return {STEP: step(STEP, query, Gaussian(amount))}
        groups = self._groups()
        nodes: dict[str, Step] = {}
        for number, (members, part) in enumerate(groups):
            name, counts = _step_of(number, len(groups)), Marginals([self.among[k] for k in members])
            best = KNorm(amount * part)
            mechanism = best if best.misfit(counts.facts()) is None else DiscreteLaplace(best.epsilon)
            nodes[name] = step(name, counts, mechanism)
        return nodes

    def variances(self, amount: Fraction, plan: Plan) -> list[float] | None:
        """Return the variance of a count of each histogram; None if a step has no valid claim.

        Parameters
        ----------
        amount
            The epsilon or rho.
        plan
            Any plan for the table. Its unit and relation determine the noise.
        """
        calibrations = [plan.calibration(node) for node in self.plan(amount).values()]
        known = [own for own in calibrations if own is not None]
        if len(known) < len(calibrations):
            return None
        if (residuals := self._residuals()) is not None:
            return residuals.variances(known[0])
        found: dict[int, float] = {}
        for (members, _), calibration in zip(self._groups(), known, strict=True):
            found |= zip(members, _variances(calibration, len(members)), strict=True)
        return [found[k] for k in range(len(self.among))]

    def release(self, table: PrivateTable) -> list[NoisyHistogram]:
        """Make the planned releases, and return the histograms in the order of the attributes."""
        groups = self._groups()
        names = [_step_of(number, len(groups)) for number in range(len(groups))]
        released = [np.asarray(own) for own in table.release_many((table, name, {}) for name in names)]
        if (residuals := self._residuals()) is not None:
            return residuals.histograms(released[0], table.calibration(STEP))
        found: dict[int, NoisyHistogram] = {}
        for (members, _), name, own in zip(groups, names, released, strict=True):
            counts, variances = own.astype(np.float64), _variances(table.calibration(name), len(members))
            ends = np.cumsum([self.among[k].size for k in members])
            for k, part, variance in zip(members, np.split(counts, ends[:-1]), variances, strict=True):
                found[k] = NoisyHistogram(part, variance)
        return [found[k] for k in range(len(self.among))]

    def total(self, histograms: Sequence[NoisyHistogram]) -> Noisy:
        """Return the noisy number of rows that follows from released histograms, or from means of several releases.

        Histograms from residuals share one sum, which is returned. Otherwise each histogram has its own sum, with
        uncorrelated noise, and the best mean of these sums is returned.
        """
        sums = (Noisy(float(one.counts.sum()), one.sum_variance) for one in histograms)
        return next(sums) if self._by_residuals else Noisy.mean(sums)

    def error_bounds(self, part: PlannedPart) -> list[ErrorBound]:
        """Return the error bounds of the counts, computed from the noise of their first release.

        A part may release the same counts again, in a branch of its plan, with more noise. The mean of all releases,
        weighted by their variances, is nearer to the exact counts than the first one. So the noise of the other
        releases says nothing about the result. The noise of residuals is not in rows. If residuals are released, the
        bound holds for the count with the most noise.
        """
        found = []
        for node in self.plan(Fraction(1)).values():
            alike = [one for one in part.steps if one.step.query == node.query]
            first = next((one.calibration for one in alike if one.calibration is not None), None)
            if first is not None:
                found.append(attrs.evolve(self._bound(part, first), steps=[one.path for one in alike]))
        return found

    def _bound(self, part: PlannedPart, calibration: Calibration) -> ErrorBound:
        residuals = self._residuals()
        if residuals is None:
            return part.bound_of(calibration.facts.text, calibration)
        variances = residuals.variances(calibration)
        worst, mean = self.among[int(np.argmax(variances))], Noisy.margin_of(float(np.mean(variances)))
        bound = part.counts_bound(Marginals(self.among).text, Noisy.margin_of(max(variances)), worst.size)
        return attrs.evolve(bound, note=f"the worst, {worst.name}; ±{mean:.3g} for a count of mean variance")

    @property
    def _by_residuals(self) -> bool:
        """Whether residuals are released instead of counts.

        For one attribute and a secret number of rows, residuals would be no better than counts. For attributes with too
        many values, residuals would have small whole numbers as weights, whose rounding costs accuracy.
        """
        alone = len(self.among) == 1 and self.rows is None
        return self.zcdp and not alone and max(a.size for a in self.among) <= _MOST_VALUES

    def _residuals(self) -> ResidualHistograms | None:
        """Return the residuals that are released; None if counts are released."""
        return ResidualHistograms.of(self.among, self.rows) if self._by_residuals else None

    def _groups(self) -> list[tuple[tuple[int, ...], Fraction]]:
        if self.zcdp:
            return [(tuple(range(len(self.among))), Fraction(1))]
        return groups_by_size([attribute.size for attribute in self.among])


@final
@attrs.frozen
class ResidualHistograms:
    """The residuals from which several histograms are computed.

    Attributes
    ----------
    query
        The query for the residuals. If the number of rows is secret, the residual of the empty set (the number of rows)
        comes first. The residuals of the single attributes follow.
    rows
        The public number of rows, None if there is none.
    """

    query: Residuals
    rows: int | None

    @classmethod
    def of(cls, among: Sequence[Attribute], rows: int | None) -> ResidualHistograms:
        """Return the residuals for some histograms. The weights minimize the sum of the histograms' mean variances."""
        wanted: dict[Set, float] = {(k,): 1 / a.size for k, a in enumerate(among)}
        return cls(Workload(tuple(among), wanted, rows_known=rows is not None).gaussian().query, rows)

    def variances(self, calibration: Calibration) -> list[float]:
        """Return the variance of a count of each histogram."""
        known = self._variances(calibration)
        return [cell_variance((k,), self.query.sizes, known) for k in range(len(self.query.sizes))]

    def histograms(self, released: NDArray[np.int64], calibration: Calibration) -> list[NoisyHistogram]:
        """Return the histograms that follow from released residuals."""
        residuals = dict(zip(self.query.sets, self.query.residuals(released), strict=True))
        sizes, rows, total = self.query.sizes, float(self.rows or 0), self._variances(calibration).get((), 0.0)
        return [
            NoisyHistogram(marginal_of((k,), sizes, residuals, rows), variance, total)
            for k, variance in enumerate(self.variances(calibration))
        ]

    def _variances(self, calibration: Calibration) -> dict[Set, float]:
        """Return, for each residual, the variance of the noise of one of its numbers."""
        each = [calibration.variance] * len(self.query.sets)
        return dict(zip(self.query.sets, self.query.cell_variances(each), strict=True))


def _variances(calibration: Calibration, histograms: int) -> Sequence[float]:
    """Return the variance of a count of each histogram in one release of counts."""
    exact = isinstance(calibration.mechanism, KNorm)
    return cell_variances(calibration) if exact else (calibration.variance,) * histograms


def _step_of(number: int, groups: int) -> str:
    return STEP if groups == 1 else f"{STEP} {number + 1} of {groups}"
