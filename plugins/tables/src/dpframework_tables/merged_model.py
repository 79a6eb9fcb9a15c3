"""A model of merged values, and the one-way marginals by which the rows of a group are dealt out to its values."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.basics import NoisyHistogram
from dpframework_tables.junction import JunctionTree, Set
from dpframework_tables.merging import Merging
from dpframework_tables.model import Measurement, Model, fit
from dpframework_tables.pooling import Pool, residuals_of
from dpframework_tables.share_prior import SharePrior

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
        sizes = [len(one.counts) for one in alone]
        given = [((a,), residuals_of((a,), one.counts), one.residual_variance) for a, one in enumerate(alone)]
        even: dict[Set, Floats] = {(a,): np.zeros(size) for a, size in enumerate(sizes)}
        pool = Pool.of(given, sizes).shrunk(even, rows)
        variances = [pool.variances[a,] for a in range(len(alone))]
        prior = SharePrior.of([pool.table((a,), rows) for a in range(len(alone))], variances, rows)
        likely = [pool.alone(a, prior, rows) for a in range(len(alone))]
        measured = [
            _of_groups(a, likely[a], merging, variances[a])
            if merging.merges(a)
            else Measurement.alone(a, one.counts, one.residual_variance, prior)
            for a, one in enumerate(alone)
        ]
        return cls(tuple(alone), merging, likely, _independent(measured, rows))

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


def _of_groups(a: int, likely: Floats, merging: Merging, noise: float) -> Measurement:
    """Return the groups' counts of a one-way marginal, with a variance that is the same for each of them.

    They are sums of likely counts: the prior is one of values, and says nothing of how many rows a group has.

    The model's number of rows is given, so what counts is their differences.

    Of a group of k of n values with noise of variance s, the best estimate, given the number of rows, has the variance
    k (1 - k / n) s. On average over the g = n - k + 1 groups that is (1 + (k - 1) / n) s (1 - 1 / g), as if each count
    had noise of variance (1 + (k - 1) / n) s.
    """
    counts = merging.table(likely, (a,))
    merged = len(likely) - len(counts) + 1
    return Measurement.alone(a, counts, noise * (1 + (merged - 1) / len(likely)))
