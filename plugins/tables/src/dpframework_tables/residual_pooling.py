"""Make measured tables agree: each residual is estimated from all tables that contain its attributes.

A table of the attributes S is the sum, over the subsets A of S, of its *residual* of A: what the counts of A say beyond
the counts of its subsets (Xiao and others 2023). If each cell has noise of variance s, the residual of A has noise
whose variance is s times the number of cells of the attributes in S but not in A. The noises of different residuals are
independent. So the best estimate of a residual is the mean of the residuals of all tables that hold A, weighted by the
inverse of these variances. The sums of such means agree with each other. No measurement is lost: a table that says
nothing about how its attributes depend on each other still makes their own counts more exact.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.results import nearest_on_simplex
from dpframework_tables.junction import Set
from dpframework_tables.share_prior import SharePrior
from dpframework_tables.shrinkage import shrink_to_noise

Array: TypeAlias = "NDArray[np.float64]"


def residuals_of(of: Set, counts: Array) -> dict[Set, Array]:
    """Return the residual of each nonempty subset of a table's attributes, each with all axes of the table."""
    found = {}
    for size in range(1, len(of) + 1):
        for one in itertools.combinations(of, size):
            rest = tuple(axis for axis, a in enumerate(of) if a not in one)
            table = counts.sum(axis=rest, keepdims=True)
            for axis, a in enumerate(of):
                if a in one:
                    table = table - table.mean(axis=axis, keepdims=True)
            found[one] = table
    return found


@final
@attrs.frozen(eq=False)
class Pool:
    """The best estimate of each residual of the measured tables, by its set of attributes.

    Attributes
    ----------
    sizes
        The number of codes of each attribute.
    residuals
        The estimates, each in the shape of its set of attributes.
    variances
        For each set, the variance of the cells of a table of just this set, if its noise were that of the estimate. It
        is smaller where the estimate was moved towards an expected one.
    """

    sizes: Sequence[int]
    residuals: Mapping[Set, Array]
    variances: Mapping[Set, float]

    @classmethod
    def of(
        cls, tables: Iterable[tuple[Set, Mapping[Set, Array], float]], sizes: Sequence[int], order: int | None = None
    ) -> Pool:
        """Return the estimates that follow from some tables.

        Parameters
        ----------
        tables
            The attributes of each table, its residuals (or some of them), and the variance of its cells.
        sizes
            The number of codes of each attribute.
        order
            The most attributes of a residual that is estimated; None for any number.
        """
        sums: dict[Set, tuple[Array, float]] = {}
        for of, residuals, variance in tables:
            for one, own in residuals.items():
                if order is not None and len(one) > order:
                    continue
                weight = 1 / max(variance * _cells(of, one, sizes), 1e-12)
                before, known = sums.get(one, (0.0, 0.0))
                sums[one] = before + weight * own.reshape([sizes[a] for a in one]), known + weight
        means = {one: total / weight for one, (total, weight) in sums.items()}
        return cls(sizes, means, {one: 1 / weight for one, (_, weight) in sums.items()})

    def shrunk(self, expected: Mapping[Set, Array], rows: float) -> Pool:
        """Return the estimates, each moved towards its expected residual as far as noise explains the difference.

        Parameters
        ----------
        expected
            Expected residuals of some sets, possibly with more axes of length 1. The estimates of other sets stay the
            same.
        rows
            The number of rows.
        """
        found, variances = dict(self.residuals), dict(self.variances)
        for number in sorted({len(one) for one in found}):
            sets = [one for one in found if len(one) == number and one in expected]
            if not sets:
                continue
            off = [found[one] - np.reshape(expected[one], found[one].shape) for one in sets]
            kept = shrink_to_noise(off, [self.variances[one] for one in sets], [rows] * len(sets))
            for one, own, part in zip(sets, off, kept, strict=True):
                found[one] = found[one] - (1 - part) * own
                variances[one] = float(part**2) * variances[one]
        return attrs.evolve(self, residuals=found, variances=variances)

    def alone(self, a: int, prior: SharePrior | None, rows: float) -> Array:
        """Return an attribute's counts, none below 0: those expected by the prior, or without it the nearest ones."""
        table = self.table((a,), rows)
        return nearest_on_simplex(table, rows) if prior is None else prior.counts(table, self.variances[a,], rows)

    def table(self, of: Set, rows: float) -> Array:
        """Return the estimated table of a measured set, for a number of rows. Such tables agree with each other."""
        shape = [self.sizes[a] for a in of]
        found = np.full(shape, rows / math.prod(shape))
        for size in range(1, len(of) + 1):
            for one in itertools.combinations(of, size):
                own = self.residuals[one] / _cells(of, one, self.sizes)
                found += own.reshape([self.sizes[a] if a in one else 1 for a in of])
        return found


def _cells(of: Set, without: Set, sizes: Sequence[int]) -> int:
    """Return the number of cells of a table of the attributes that are in one set but not in another."""
    return math.prod(sizes[a] for a in of if a not in without)
