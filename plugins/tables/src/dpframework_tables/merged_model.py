"""A model in which rare values are merged into groups, and the shares of a group's rows that its values have."""

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
from dpframework_tables.residual_pooling import Pool, residuals_of
from dpframework_tables.share_prior import SharePrior

Floats: TypeAlias = "NDArray[np.float64]"

_NONE = 1e-13  # the share of all rows that a value without rows gets, so that the logarithm of its share is finite


# Not slotted: the cached property needs an instance dictionary.
@final
@attrs.frozen(eq=False, slots=False)
class MergedModel:
    """A model of groups of values. Its first measurements are of one attribute each.

    Attributes
    ----------
    alone
        The released one-way marginals of the attributes' own values.
    merging
        The groups into which values are merged.
    likely
        For each attribute the likely counts of its values, estimated from the one-way marginals.
    model
        The model of the groups.
    """

    alone: tuple[NoisyHistogram, ...]
    merging: Merging
    likely: Sequence[Floats]
    model: Model

    @classmethod
    def of_alone(cls, alone: Sequence[NoisyHistogram], merging: Merging, rows: float) -> MergedModel:
        """Return the model of one-way marginals, without marginals of several attributes."""
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
        tree = JunctionTree.of([len(one.counts) for one in measured], [one.of for one in measured])
        return cls(tuple(alone), merging, likely, fit(tree, measured, rows))

    def with_more(self, means: Sequence[NoisyHistogram], measured: Iterable[Measurement], rows: float) -> MergedModel:
        """Return the model of one-way marginals that were made more exact after the measurements in `measured`.

        Values stay merged only for attributes in these marginals. Other attributes gain nothing from merging.
        """
        return self.of_alone(means, self.merging.only({a for one in measured for a in one.of}), rows)

    @functools.cached_property
    def potentials(self) -> list[Floats]:
        """The term of each value in the logarithm of a row's probability.

        It is the potential of the value's group plus the logarithm of the value's share of the group.
        """
        found = []
        for a, counts in enumerate(self.likely):
            groups = self.merging.groups[a]
            shares = np.maximum(counts, _NONE * self.model.rows)
            found.append(self.model.potentials[a][groups] + np.log(shares / np.bincount(groups, shares)[groups]))
        return found


def _of_groups(a: int, likely: Floats, merging: Merging, noise: float) -> Measurement:
    """Return the counts of groups from a one-way marginal, all with the same variance.

    The counts are sums of likely counts. The prior is about values, and says nothing about how many rows a group has.
    The model's number of rows is given, so only the differences of the counts matter.

    Let one group hold k of n values, and let the noise of each value have the variance s. Given the number of rows, the
    best estimate of that group's count has the variance k (1 - k / n) s. On average over the g = n - k + 1 groups that
    is (1 + (k - 1) / n) s (1 - 1 / g), as if each count had noise of variance (1 + (k - 1) / n) s.
    """
    counts = merging.table(likely, (a,))
    merged = len(likely) - len(counts) + 1
    return Measurement.alone(a, counts, noise * (1 + (merged - 1) / len(likely)))
