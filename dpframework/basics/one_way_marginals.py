"""One-way marginals of several attributes, planned and released as part of a miner's budget.

By K-norm noise in groups of attributes by size (see `dpframework.mechanisms.KNorm`), or, in zCDP, by one release with
Gaussian noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.mechanisms import (
    Calibration,
    DiscreteLaplace,
    Gaussian,
    KNorm,
    Mechanism,
    cell_variances,
    groups_by_size,
)
from dpframework.plan.nodes import Step, step
from dpframework.plan.plan import Plan
from dpframework.queries.marginals import Marginals
from dpframework.run.private_table import PrivateTable


@final
@attrs.frozen(eq=False)
class NoisyHistogram:
    """A histogram with noise.

    Attributes
    ----------
    counts
        In rows, shape (codes,).
    variance
        The variance of the noise of each count.
    """

    counts: NDArray[np.float64]
    variance: float

    def with_another(self, counts: NDArray[np.float64], variance: float) -> NoisyHistogram:
        """Return the mean of two independent ones, weighted by the inverse of their variances."""
        weight = variance / max(self.variance + variance, 1e-300)
        combined = self.variance * variance / max(self.variance + variance, 1e-300)
        return NoisyHistogram(weight * self.counts + (1 - weight) * counts, combined)


@final
@attrs.frozen
class OneWayMarginals:
    """The histograms of several attributes, as steps of a plan and as their releases.

    Attributes
    ----------
    among
        The attributes.
    zcdp
        Whether the budget is a rho.
    """

    among: Sequence[Attribute]
    zcdp: bool

    def plan(self, amount: Fraction) -> dict[str, Step]:
        """Plan the histograms with an epsilon or a rho, by the names of their steps."""
        groups = self._groups()
        nodes: dict[str, Step] = {}
        for number, (members, part) in enumerate(groups):
            name, query = _step_of(number, len(groups)), Marginals([self.among[k] for k in members])
            nodes[name] = step(name, query, self._mechanism(query, amount * part))
        return nodes

    def variances(self, amount: Fraction, plan: Plan) -> list[float] | None:
        """Return the variance of the noise of each histogram's counts, or None where there is no valid claim.

        Parameters
        ----------
        amount
            The epsilon or rho.
        plan
            Any plan of the table, for the unit and the relation that the noise is for.
        """
        found: dict[int, float] = {}
        for (members, _), node in zip(self._groups(), self.plan(amount).values(), strict=True):
            calibration = plan.calibration(node)
            if calibration is None:
                return None
            found |= zip(members, _variances(calibration, len(members)), strict=True)
        return [found[k] for k in range(len(self.among))]

    def release(self, table: PrivateTable) -> list[NoisyHistogram]:
        """Release the histograms, in the order of the attributes."""
        groups = self._groups()
        names = [_step_of(number, len(groups)) for number in range(len(groups))]
        released = table.release_many((table, name, {}) for name in names)
        found: dict[int, NoisyHistogram] = {}
        for (members, _), name, own in zip(groups, names, released, strict=True):
            counts, variances = np.asarray(own, dtype=np.float64), _variances(table.calibration(name), len(members))
            ends = np.cumsum([self.among[k].size for k in members])
            for k, part, variance in zip(members, np.split(counts, ends[:-1]), variances, strict=True):
                found[k] = NoisyHistogram(part, variance)
        return [found[k] for k in range(len(self.among))]

    def _groups(self) -> list[tuple[tuple[int, ...], Fraction]]:
        if self.zcdp:
            return [(tuple(range(len(self.among))), Fraction(1))]
        return groups_by_size([attribute.size for attribute in self.among])

    def _mechanism(self, query: Marginals, amount: Fraction) -> Mechanism:
        if self.zcdp:
            return Gaussian(amount)
        best = KNorm(amount)
        return best if best.misfit(query.facts()) is None else DiscreteLaplace(best.epsilon)


def _variances(calibration: Calibration, histograms: int) -> Sequence[float]:
    """Return the variance of a count of each histogram of one release."""
    exact = isinstance(calibration.mechanism, KNorm)
    return cell_variances(calibration) if exact else (calibration.variance,) * histograms


def _step_of(number: int, groups: int) -> str:
    return "histograms" if groups == 1 else f"histograms {number + 1} of {groups}"
