"""One-way marginals of all attributes, planned, released, and turned into estimates of each value's rows.

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

from dpframework.facts import Attribute
from dpframework.mechanisms import DiscreteLaplace, KNorm, Mechanism, cell_variances, groups_by_size
from dpframework.plan import Node, step
from dpframework.queries import Marginals
from dpframework.run import PrivateTable
from dpframework_distance.budgets import DistanceBudget
from dpframework_distance.estimates import Conditional, unsure

Array = NDArray[np.float64]

_FAR = 1e3  # standard deviations


@final
@attrs.frozen(eq=False)
class NoisyHistogram:
    """A histogram with noise.

    Attributes
    ----------
    counts
        Shape (codes,).
    variance
        Of the noise of each count.
    """

    counts: Array
    variance: float

    def with_another(self, counts: Array, variance: float) -> NoisyHistogram:
        """Return the mean of two independent ones, weighted by the inverse of their variances."""
        weight = variance / max(self.variance + variance, 1e-300)
        combined = self.variance * variance / max(self.variance + variance, 1e-300)
        return NoisyHistogram(weight * self.counts + (1 - weight) * counts, combined)


@final
@attrs.frozen(eq=False)
class EstimatedRows:
    """Estimates of the number of rows of each value.

    Attributes
    ----------
    mean, variance
        Of each value's number of rows, shape (codes,).
    """

    mean: Array
    variance: Array


def _groups(among: Sequence[Attribute], budget: DistanceBudget) -> list[tuple[tuple[int, ...], Fraction]]:
    if budget.zcdp:
        return [(tuple(range(len(among))), Fraction(1))]
    return groups_by_size([attribute.size for attribute in among])


def _step_of(number: int, groups: int) -> str:
    return "histograms" if groups == 1 else f"histograms {number + 1} of {groups}"


def plan(among: Sequence[Attribute], budget: DistanceBudget, share: Fraction) -> dict[str, Node]:
    """Plan the histograms of all attributes with a share of the budget, by the names of their steps."""
    groups = _groups(among, budget)
    nodes: dict[str, Node] = {}
    for number, (members, part) in enumerate(groups):
        name, query = _step_of(number, len(groups)), Marginals([among[k] for k in members])
        nodes[name] = step(name, query, _mechanism(query, budget, share * part))
    return nodes


def _mechanism(query: Marginals, budget: DistanceBudget, share: Fraction) -> Mechanism:
    if budget.zcdp:
        return budget.counter(share)
    best = KNorm(budget.amount * share)
    return best if best.misfit(query.facts()) is None else DiscreteLaplace(best.epsilon)


def release(table: PrivateTable, among: Sequence[Attribute], budget: DistanceBudget) -> list[NoisyHistogram]:
    """Release the histograms, in the order of the attributes."""
    groups = _groups(among, budget)
    names = [_step_of(number, len(groups)) for number in range(len(groups))]
    released = table.release_many((table, name, {}) for name in names)
    found: dict[int, NoisyHistogram] = {}
    for (members, _), name, own in zip(groups, names, released, strict=True):
        counts, calibration = np.asarray(own, dtype=np.float64), table.calibration(name)
        exact = isinstance(calibration.mechanism, KNorm)
        variances = cell_variances(calibration) if exact else (calibration.variance,) * len(members)
        ends = np.cumsum([among[k].size for k in members])
        for k, part, variance in zip(members, np.split(counts, ends[:-1]), variances, strict=True):
            found[k] = NoisyHistogram(part, variance)
    return [found[k] for k in range(len(among))]


def number_of_rows(histograms: Sequence[NoisyHistogram], rows: int | None) -> float:
    """Return the public number of rows, or else the sum of the histogram with least noise."""
    if rows is not None:
        return float(rows)
    best = min(histograms, key=lambda one: one.variance * len(one.counts))
    return max(float(best.counts.sum()), 1.0)


def estimate_rows(histogram: NoisyHistogram, rows: float) -> EstimatedRows:
    """Estimate numbers of rows from a noisy histogram, given that none is negative and that they add up to `rows`.

    Taken that all such histograms are equally likely beforehand, and noise is normal: then each number has a normal
    distribution, cut off below 0, whose mean is shifted so that the means add up to `rows` (the sum is known; what is
    left of it in single numbers is small, and neglected).
    """
    from scipy.optimize import brentq
    from scipy.special import erfcx

    deviation = max(histogram.variance, 1e-12) ** 0.5

    def cut_off(shift: float) -> tuple[Array, Array]:
        start = (shift - histogram.counts) / deviation  # where it is cut off
        far = start > _FAR  # there it is close to exponential
        hazard = (2 / np.pi) ** 0.5 / erfcx(start / 2**0.5)
        above = np.where(far, 1 / np.maximum(start, _FAR), hazard - start)
        rest = np.where(far, above * above, 1 - hazard * above)
        return deviation * above, deviation**2 * rest

    high = float(histogram.counts.max())
    low = high - rows - 1  # where that count alone has more rows
    while cut_off(high)[0].sum() > rows:
        high = 2 * high - low
    mean, variance = cut_off(brentq(lambda shift: cut_off(shift)[0].sum() - rows, low, high))
    return EstimatedRows(mean * (rows / mean.sum()), variance)


def redrawn(histogram: NoisyHistogram, known: EstimatedRows, draws: int) -> list[EstimatedRows]:
    """Return estimates again, from the estimated numbers of rows with noise as large as the released."""
    rng = np.random.default_rng(0)  # fixed: what follows from releases is the same for everybody
    noise = rng.normal(0.0, np.sqrt(histogram.variance), (draws, len(known.mean)))
    rows = float(known.mean.sum())
    return [estimate_rows(attrs.evolve(histogram, counts=known.mean + one), rows) for one in noise]


def shares_in_unknown(known: EstimatedRows, columns: int, unknown: float) -> Conditional:
    """Return P(y|x) from shares alone, for `columns` values x of unknown attributes (see `unsure`)."""
    total = float(known.mean.sum())
    shares = known.mean / total
    variance = np.minimum(known.variance / total**2, shares * (1 - shares))  # which keeps distances within 1
    repeated = [np.repeat(one[:, np.newaxis], columns, axis=1) for one in (shares, variance)]
    return unsure(repeated[0], repeated[1], unknown)
