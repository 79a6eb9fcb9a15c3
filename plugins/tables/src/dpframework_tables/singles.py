"""The one-way marginals of all attributes, planned and released.

By K-norm noise in groups of attributes by size (`dpframework.mechanisms.KNorm`), or, in zCDP, by one release with
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
from dpframework_tables.budgets import TableBudget


@final
@attrs.frozen(eq=False)
class NoisySingle:
    """A one-way marginal with noise.

    Attributes
    ----------
    counts
        In rows, shape (codes,).
    variance
        Of the noise of each count.
    """

    counts: NDArray[np.float64]
    variance: float


def _groups(among: Sequence[Attribute], budget: TableBudget) -> list[tuple[tuple[int, ...], Fraction]]:
    if budget.zcdp:
        return [(tuple(range(len(among))), Fraction(1))]
    return groups_by_size([attribute.size for attribute in among])


def _step_of(number: int, groups: int) -> str:
    return "histograms" if groups == 1 else f"histograms {number + 1} of {groups}"


def plan(among: Sequence[Attribute], budget: TableBudget, share: Fraction) -> dict[str, Node]:
    """Plan the one-way marginals of all attributes with a share of the budget, by the names of their steps."""
    groups = _groups(among, budget)
    nodes: dict[str, Node] = {}
    for number, (members, part) in enumerate(groups):
        name, query = _step_of(number, len(groups)), Marginals([among[k] for k in members])
        nodes[name] = step(name, query, _mechanism(query, budget, share * part))
    return nodes


def _mechanism(query: Marginals, budget: TableBudget, share: Fraction) -> Mechanism:
    if budget.zcdp:
        return budget.counter(share)
    best = KNorm(budget.amount * share)
    return best if best.misfit(query.facts()) is None else DiscreteLaplace(best.epsilon)


def release(table: PrivateTable, among: Sequence[Attribute], budget: TableBudget) -> list[NoisySingle]:
    """Release the one-way marginals, in the order of the attributes."""
    groups = _groups(among, budget)
    names = [_step_of(number, len(groups)) for number in range(len(groups))]
    released = table.release_many((table, name, {}) for name in names)
    found: dict[int, NoisySingle] = {}
    for (members, _), name, own in zip(groups, names, released, strict=True):
        counts, calibration = np.asarray(own, dtype=np.float64), table.calibration(name)
        exact = isinstance(calibration.mechanism, KNorm)
        variances = cell_variances(calibration) if exact else (calibration.variance,) * len(members)
        ends = np.cumsum([among[k].size for k in members])
        for k, part, variance in zip(members, np.split(counts, ends[:-1]), variances, strict=True):
            found[k] = NoisySingle(part, variance)
    return [found[k] for k in range(len(among))]


def number_of_rows(singles: Sequence[NoisySingle], rows: int | None, most: int | None) -> float:
    """Return the public number of rows, or else the mean of the marginals' sums, by their noise, at most `most`."""
    if rows is not None:
        return float(max(rows, 1))
    weights = np.array([1 / max(one.variance * len(one.counts), 1e-12) for one in singles])
    sums = np.array([one.counts.sum() for one in singles])
    found = float(weights @ sums / weights.sum())
    return max(found if most is None else min(found, most), 1.0)
