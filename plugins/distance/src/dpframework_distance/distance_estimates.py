"""Estimate distances from noisy joint histograms, as post-processing.

Equation 1 of the paper: with P(y|x) for each value x of each attribute X of the context,

    d(y, z)**2 = sum over X, x of (P(y|x) - P(z|x))**2 / sum over X of the number of its values

So a value y is a point, and the distance is Euclidean. It remains a metric, whatever is done to the estimates of P.
Where an estimate has a variance, the expected square is taken: the square of the estimates' difference plus both
variances. That amounts to one more coordinate for each value, which is 0 for all other values. Where nothing is known,
all values are equally far apart.

Profiles are the other way round (Ahmad and Dey 2007). With P(x|y), which says how a value goes with the context,

    d(y, z)**2 = sum over X, x of (P(x|y) - P(x|z))**2 / (2 times the number of X)

Here it does not matter how common a value y is. In P(y|x), the share of y is a factor of all numbers that are compared.

If the joint counts with an attribute of the context are not known, P(y|x) is still not P(y): attributes depend on each
other, and a context holds those that tell most about the target. See `unsure`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.results import nearest_on_simplex

Array = NDArray[np.float64]


@attrs.frozen(eq=False)
class NoisyPair:
    """A released joint histogram of two attributes.

    Attributes
    ----------
    first, second
        The attributes' names.
    counts
        The noisy counts, shape (codes of the first, codes of the second).
    variance
        The variance of the noise of each count; 0 for exact counts.
    """

    first: str
    second: str
    counts: Array
    variance: float

    def of(self, name: str) -> Array:
        """Return the noisy counts, with the values of the named attribute in rows."""
        return self.counts if name == self.first else self.counts.T

    def marginal(self, name: str) -> tuple[Array, float]:
        """Return the noisy histogram of one of the two attributes, and the variance of each of its counts."""
        table = self.of(name)
        return table.sum(axis=1), self.variance * table.shape[1]


@attrs.frozen(eq=False)
class Conditional:
    """An estimate of P(y|x) from one joint histogram.

    Attributes
    ----------
    shares
        The share of each value y among the rows of each value x, shape (y, x); 0 for an x that has no rows.
    variance
        The variance of the error of each share, shape (y, x). It is at most shares (1 - shares), so that no distance is
        above 1, or else comes from `unsure`.
    """

    shares: Array
    variance: Array


def unsure(shares: Array, variance: Array, unknown: float) -> Conditional:
    """Return a conditional with the expected squared differences of shares whose mean and variance are given.

    Let P(.|x) have a Dirichlet distribution whose mean is these shares m, and whose parameters add up to 1/u - 1. Then
    a share has the variance u m (1 - m), and two shares have the covariance - u m m', so that

        E (P(y|x) - P(z|x))**2 = (1 - u) (m_y - m_z)**2 + u (m_y + m_z),

    which is the square for shares multiplied by sqrt(1 - u) and variances of u m. Where m itself has a variance v, (1 -
    u) v is added. If u is at most 1/2, all this is at most 1, since v is at most m (1 - m).

    Parameters
    ----------
    shares, variance
        m and v, shape (y, x).
    unknown
        u: 0 if P is m, 1 if each x goes with one y.
    """
    return Conditional(math.sqrt(1 - unknown) * shares, (1 - unknown) * variance + unknown * shares)


def marginals_from(pairs: Sequence[NoisyPair], rows: int | None) -> dict[str, Array]:
    """Return each attribute's histogram estimated from all released tables, non-negative and all with the same sum.

    A table's marginals are weighted by the inverse of their variance. The more noise is left in an estimated histogram,
    the closer it is moved to equal counts for all values, by as much as is best on average if all histograms are
    equally likely (the share of one of k values then has the variance (k - 1) / (k**2 (k + 1))).

    Parameters
    ----------
    pairs
        The released tables.
    rows
        The number of rows if it is public; otherwise it is estimated too.
    """
    sums: dict[str, Array] = {}
    weights: dict[str, float] = {}
    total = total_weight = 0.0
    for pair in pairs:
        weight = 1 / max(pair.variance * pair.counts.size, 1e-12)
        total, total_weight = total + weight * pair.counts.sum(), total_weight + weight
        for name in (pair.first, pair.second):
            marginal, variance = pair.marginal(name)
            weight = 1 / max(variance, 1e-12)
            sums[name] = sums.get(name, 0) + weight * marginal
            weights[name] = weights.get(name, 0.0) + weight
    known = float(rows) if rows is not None else max(total / total_weight, 1.0)
    found = {}
    for name, weight in weights.items():
        histogram, noise = nearest_on_simplex(sums[name] / weight, known), 1 / weight
        size, total = len(histogram), histogram.sum()
        spread = (size - 1) / (size**2 * (size + 1)) * total**2
        found[name] = np.asarray(total / size + spread / (spread + noise) * (histogram - total / size))
    return found


def published_estimate(pair: NoisyPair, target: str) -> Conditional:
    """Estimate P(y|x) as the paper's authors do, by the shares of each column with negative counts set to 0."""
    table = np.maximum(pair.of(target), 0.0)
    columns = table.sum(axis=0)
    return Conditional(table / np.where(columns > 0, columns, 1.0), np.zeros(table.shape))


def shrunken_estimate(pair: NoisyPair, target: str, marginals: Mapping[str, Array]) -> Conditional:
    """Estimate P(y|x) with the marginals and the variance of the noise.

    The table is first made to agree with the marginals. Then each column x is shrunk towards the target's own shares.
    With n_x its size, and v the energy (the expected sum of squares) of the noise in a column, its deviation is
    multiplied by

        S n_x**2 / (S n_x**2 + v),    S = 1 - sum over y of P(y)**2

    (empirical Bayes, Efron and Morris 1973). S is the mean energy that P(y|x) - P(y) would have if each x went with one
    y: rare values x often do, and common ones keep their deviation anyway. If the table as a whole deviates from
    independence by no more than noise would, nothing of the deviations is kept. If a column's energy exceeds that of
    the noise by more than three standard deviations, its deviation is multiplied by 1 - v / abs(deviation)**2 (James
    and Stein 1961) instead, if this factor is larger. Last, the column is moved to the closest shares. A value x that
    seems to have no rows says nothing.

    Noise leaves v / (S n_x**2 + v) of a column unknown. The variance of a share could be up to P(y|x) (1 - P(y|x))
    if each x went with one y, and would be 0 if x told nothing. Half of the larger variance is taken.
    """
    other = pair.second if target == pair.first else pair.first
    table, of_target, of_other = pair.of(target), marginals[target], marginals[other]
    table = table + ((of_target - table.sum(axis=1)) / table.shape[1])[:, np.newaxis]
    table = table + (of_other - table.sum(axis=0)) / table.shape[0]
    alone = (of_target / of_target.sum())[:, np.newaxis]
    seen = of_other > 0
    sizes = of_other[seen]
    deviations = table[:, seen] - alone * sizes
    free = len(alone) - 1  # a column's deviations add up to 0
    noise, energy = free * pair.variance, np.square(deviations).sum(axis=0)
    signal = (1 - np.square(alone).sum()) * np.square(sizes)
    unknown = noise / np.maximum(signal + noise, 1e-300)
    dependent = energy.sum() > noise * max(len(sizes) - 1, 1)
    kept = 1 - unknown if dependent else np.zeros(len(sizes))
    telling = energy > noise * (1 + 3 * math.sqrt(2 / free))
    kept = np.where(telling, np.maximum(kept, 1 - noise / np.maximum(energy, 1e-300)), kept)
    shares, variance = np.zeros(table.shape), np.zeros(table.shape)
    shares[:, seen] = nearest_on_simplex((alone + kept * deviations / sizes).T, 1.0).T
    variance[:, seen] = unknown / 2 * shares[:, seen] * (1 - shares[:, seen])
    return Conditional(shares, variance)


def points_from(
    pairs: Mapping[str, NoisyPair], target: str, estimate: Callable[[NoisyPair, str], Conditional], profiles: bool
) -> Array:
    """Return each value of the target as a point. Euclidean distances are those of equation 1, or of profiles.

    Parameters
    ----------
    pairs
        The target's joint histogram with each attribute of its context, by that attribute's name.
    target
        The target's name.
    estimate
        The function that estimates a conditional from a pair: `shrunken_estimate` or `published_estimate`.
    profiles
        Whether the distances are those of profiles.

    Returns
    -------
    Shape (values, coordinates).
    """
    if not profiles:
        return points_of([estimate(pair, target) for pair in pairs.values()])
    return points_of_profiles([estimate(pair, other) for other, pair in pairs.items()])


def points_of_profiles(given: Sequence[Conditional]) -> Array:
    """Return each value y as a point, shape (values, coordinates), from P(x|y) of each attribute, shape (x, y)."""
    return _points([Conditional(one.shares.T, one.variance.T) for one in given], 2 * len(given))


def points_of(conditionals: Sequence[Conditional]) -> Array:
    """Return each value as a point, shape (values, coordinates), whose Euclidean distances are equation 1."""
    return _points(conditionals, sum(one.shares.shape[1] for one in conditionals))


def _points(conditionals: Sequence[Conditional], most: int) -> Array:
    """Return points with distances of at most 1, given that the sum of squares is at most `most`."""
    shares = np.concatenate([one.shares for one in conditionals], axis=1)
    own = np.concatenate([one.variance for one in conditionals], axis=1).sum(axis=1)
    return np.concatenate([shares, np.diag(np.sqrt(own))], axis=1) / math.sqrt(most)


def distances_between(points: Array) -> Array:
    """Return the Euclidean distances between all points, symmetric and 0 on the diagonal."""
    squares = np.square(points[:, np.newaxis] - points[np.newaxis]).sum(axis=2)
    return np.asarray(np.sqrt(squares))
