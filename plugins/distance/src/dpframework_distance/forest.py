"""A model in which attributes depend along the edges of a forest, and all its two-way tables.

Sources: Chow and Liu 1968 for trees of dependence; the estimates are ours. All of it is post-processing.

The table T of a pair that is an edge is estimated from its noisy table. The deviation of the noisy table from n p_a
p_b, the table under independence, is shrunk in two ways. The mean of the two results is taken, since it errs less than
each alone:

- cell by cell: multiplied by v E / (v E + noise) in a cell with E expected rows. There v E is the variance of
  deviations in such a cell (empirical Bayes, Efron and Morris 1973). It is estimated by the mean of their squares over
  the table, minus the variance of the noise. Where the energy (the sum of squares) of all deviations together exceeds
  that of the noise by at most two standard deviations, nothing is kept;
- direction by direction: most attributes depend on each other in one or two directions. So large singular values are
  kept, and those that noise alone would have are not, as is best for the squared error (Gavish and Donoho 2017).

Then negative counts are set to 0, and the table is fitted to the marginals, its rows and its columns in turn (Deming
and Stephan 1940). A pair that is not an edge gets its table along the path between its attributes: P(c|a) = sum over b
of P(c|b) P(b|a). Attributes of different trees are independent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework_distance.distance_estimates import NoisyPair

Array: TypeAlias = "NDArray[np.float64]"
Pair: TypeAlias = "tuple[int, int]"

_ROUNDS = 30  # how often the rows and the columns of a table are fitted to its marginals
_SURE = 2.0  # deviations are more than noise if their energy is this many standard deviations above that of noise


def dependence(table: Array, first: Array, second: Array, variance: float) -> Array:
    """Return the estimated table of a pair, with two given marginals of the same sum (see the module)."""
    expected = np.outer(first, second) / max(float(first.sum()), 1e-300)
    deviations = table - expected
    ways = (_shrunk_cells(deviations, expected, variance), _shrunk_directions(deviations, variance))
    return np.asarray(sum(fit_marginals(np.maximum(expected + kept, 0), first, second) for kept in ways) / len(ways))


def _shrunk_cells(deviations: Array, expected: Array, variance: float) -> Array:
    """Return the deviations, shrunk cell by cell: the smaller a cell's expected count, the less is kept."""
    noise = variance * deviations.size
    beyond = float(np.square(deviations).sum()) - noise
    if beyond <= noise * _SURE * math.sqrt(2 / deviations.size):
        return np.zeros(deviations.shape)
    signal = beyond / max(float(expected.sum()), 1e-300) * expected
    return np.asarray(deviations * signal / np.maximum(signal + variance, 1e-300))


def _shrunk_directions(deviations: Array, variance: float) -> Array:
    """Return centred deviations, with singular values shrunk for the least expected squared error.

    In a k x l matrix with noise of variance 1 / l, with k <= l and b = k / l, a singular value y becomes `sqrt((y**2 -
    b - 1)**2 - 4 b) / y`. It becomes 0 if it is at most 1 + sqrt(b), the largest that noise alone has.
    """
    centred = deviations - deviations.mean(axis=0) - deviations.mean(axis=1, keepdims=True) + deviations.mean()
    low, high = sorted(length - 1 for length in deviations.shape)  # the numbers of directions that centring leaves
    left, singular, right = np.linalg.svd(centred, full_matrices=False)
    unit, ratio = math.sqrt(max(variance, 1e-12) * high), low / high
    scaled = singular / unit
    above = scaled > 1 + math.sqrt(ratio)
    kept = np.sqrt(np.maximum((scaled**2 - ratio - 1) ** 2 - 4 * ratio, 0)) / np.maximum(scaled, 1e-300)
    return np.asarray((left * np.where(above, kept * unit, 0)) @ right)


def fit_marginals(table: Array, first: Array, second: Array) -> Array:
    """Return a table with the given marginals and, where possible, the odds ratios of the given table."""
    from dpframework_distance.kernels import fit_to_marginals

    found = table + 1e-9 * np.outer(first, second) / max(float(first.sum()), 1e-300)
    fit_to_marginals(found, first, second, _ROUNDS)
    return np.asarray(found)


@final
@attrs.frozen(eq=False)
class Forest:
    """A model of the joint distribution of all attributes.

    Attributes
    ----------
    marginals
        How many rows each value has, one array per attribute. All have the same sum.
    tables
        The table of each edge (a, b) with a < b, shape (codes of a, codes of b), with these marginals.
    """

    marginals: Sequence[Array]
    tables: Mapping[Pair, Array]

    @classmethod
    def of(cls, marginals: Sequence[Array], pairs: Mapping[Pair, NoisyPair]) -> Forest:
        """Return the model with an estimated table for each edge."""
        tables = {
            (a, b): dependence(pair.counts, marginals[a], marginals[b], pair.variance) for (a, b), pair in pairs.items()
        }
        return cls(marginals, tables)

    def is_edge(self, one: int, other: int) -> bool:
        """Tell whether two attributes are joined by an edge, so that their table was released."""
        return (min(one, other), max(one, other)) in self.tables

    def given(self, start: int) -> dict[int, Array]:
        """Return P(b|a) for a = `start` and each other attribute b of its tree, shape (codes of a, codes of b)."""
        found: dict[int, Array] = {start: np.eye(len(self.marginals[start]))}
        ahead = [start]
        while ahead:
            here = ahead.pop()
            for (a, b), table in self.tables.items():
                for one, other, counts in ((a, b, table), (b, a, table.T)):
                    if one == here and other not in found:
                        of_rows = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
                        found[other] = found[here] @ of_rows
                        ahead.append(other)
        del found[start]
        return found

    def tables_with(self, start: int) -> dict[int, Array]:
        """Return the table of `start` with each other attribute of its tree, shape (codes of start, codes of other)."""
        return {other: self.marginals[start][:, np.newaxis] * given for other, given in self.given(start).items()}


def information(table: Array) -> float:
    """Return the mutual information of a table's rows and columns in bits, 0 for an empty table."""
    total = float(table.sum())
    if total <= 0:
        return 0.0
    shares = table / total
    expected = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    seen = shares > 0
    return float((shares[seen] * np.log2(shares[seen] / expected[seen])).sum())


def most_informative(tables: Mapping[int, Array], size: int) -> tuple[int, ...]:
    """Return the positions of at most `size` attributes with the most information on a target, none without any."""
    bits = {other: information(table) for other, table in tables.items()}
    best = sorted((other for other in bits if bits[other] > 1e-9), key=lambda other: (-bits[other], other))
    return tuple(sorted(best[:size]))
