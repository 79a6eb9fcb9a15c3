"""A model of merged values, and the one-way marginals by which the rows of a group are dealt out to its values."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.basics import NoisyHistogram
from dpframework.results import nearest_on_simplex
from dpframework_tables.junction import JunctionTree
from dpframework_tables.merging import Merging
from dpframework_tables.model import Measurement, Model, fit
from dpframework_tables.pooling import Pool, residuals_of
from dpframework_tables.shrinkage import shrink_to_noise

Floats: TypeAlias = "NDArray[np.float64]"

_NONE = 1e-13  # the share of a group's rows that a value without any has


# Not slotted: the cached property needs an instance dictionary.
@final
@attrs.frozen(eq=False, slots=False)
class MergedModel:
    """A model of groups, whose first measurements are of one attribute each.

    Attributes
    ----------
    alone
        The one-way marginals of the attributes' own values.
    merging
        The groups.
    likely
        The counts of the attributes' values by these marginals.
    model
        Of the groups.
    """

    alone: tuple[NoisyHistogram, ...]
    merging: Merging
    likely: Sequence[Floats]
    model: Model

    @classmethod
    def of_alone(cls, alone: Sequence[NoisyHistogram], merging: Merging, rows: float) -> MergedModel:
        """Return the model of one-way marginals alone."""
        given = [((a,), residuals_of((a,), one.counts), one.residual_variance) for a, one in enumerate(alone)]
        pool = Pool.of(given, [len(one.counts) for one in alone]).shrunk({}, rows)
        likely = [pool.table((a,), rows) for a in range(len(alone))]
        measured = [_of_groups(a, one, merging, own) for a, (one, own) in enumerate(zip(alone, likely, strict=True))]
        values = _shrink_groups(alone, merging, [nearest_on_simplex(own, rows) for own in likely])
        return cls(tuple(alone), merging, values, _independent(measured, rows))

    def with_more(self, means: Sequence[NoisyHistogram], measured: Iterable[Measurement], rows: float) -> MergedModel:
        """Return the model of more exact one-way marginals, once some marginals were measured.

        Only the values of their attributes stay merged: others have nothing to gain from it.
        """
        return self.of_alone(means, self.merging.only({a for one in measured for a in one.of}), rows)

    def with_model(self, model: Model) -> MergedModel:
        """Return the same with a model that more was measured for."""
        return attrs.evolve(self, model=model)

    @functools.cached_property
    def potentials(self) -> list[Floats]:
        """What each value adds to the logarithm of a row's probability: its group's potential, and its share of it."""
        found = []
        for a, counts in enumerate(self.likely):
            groups = self.merging.groups[a]
            shares = np.maximum(counts, _NONE * self.model.rows)
            found.append(self.model.potentials[a][groups] + np.log(shares / np.bincount(groups, shares)[groups]))
        return found


def _independent(measured: Sequence[Measurement], rows: float) -> Model:
    return fit(JunctionTree.of([len(one.counts) for one in measured], [one.of for one in measured]), measured, rows)


def _of_groups(a: int, one: NoisyHistogram, merging: Merging, likely: Floats) -> Measurement:
    """Return the groups' counts of a one-way marginal, with a variance that is the same for each of them.

    The model's number of rows is given, so what counts is their differences.

    Of a group of k of n values with noise of variance s, the best estimate, given the number of rows, has the variance
    k (1 - k / n) s. On average over the g = n - k + 1 groups that is (1 + (k - 1) / n) s (1 - 1 / g), as if each count
    had noise of variance (1 + (k - 1) / n) s.
    """
    if not merging.merges(a):
        return Measurement.alone(a, one.counts, one.residual_variance)
    number = len(one.counts)
    counts = merging.table(one.counts + (likely.sum() - one.counts.sum()) / number, (a,))
    merged = number - len(counts) + 1
    variance = one.residual_variance * (1 + (merged - 1) / number)
    return Measurement.alone(a, counts, variance, merging.table(likely, (a,)))


def _shrink_groups(alone: Sequence[NoisyHistogram], merging: Merging, likely: list[Floats]) -> list[Floats]:
    """Return counts with those of each group's values taken to be even as far as noise explains why they are not."""
    merged = [a for a in range(len(alone)) if merging.merges(a)]
    if not merged:
        return likely
    inside = [merging.groups[a] == merging.sizes[a] - 1 for a in merged]
    rows = [max(float(likely[a][own].sum()), 1.0) for a, own in zip(merged, inside, strict=True)]
    off = [alone[a].counts[own] - alone[a].counts[own].mean() for a, own in zip(merged, inside, strict=True)]
    kept = shrink_to_noise(off, [alone[a].residual_variance for a in merged], rows)
    for a, own, number, moved, part in zip(merged, inside, rows, off, kept, strict=True):
        likely[a][own] = nearest_on_simplex(number / len(moved) + part * moved, number)
    return likely
