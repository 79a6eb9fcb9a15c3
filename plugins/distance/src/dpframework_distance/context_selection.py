"""Context selection on tables that may be read freely, since they are noisy or not private.

The context of a target is the set of attributes from which the distances between the target's values are learned.

Sources: DILCA's M and RR (Ienco, Pensa and Meo 2012), MaxRelevance and MaxDependency (Peng, Long and Ding 2005), as in
section 3 of Battaglia, Celano and Pensa 2021. Attributes are given by their positions. su[x, y] is the symmetric
uncertainty of x and y.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpframework_distance.distance_estimates import NoisyPair

Matrix = NDArray[np.float64]


def entropy_of(histogram: NDArray[np.float64]) -> float:
    """Return the entropy, in bits, of a histogram's counts divided by their sum. Negative counts are taken as 0.

    Examples
    --------
    >>> entropy_of(np.array([5, 5, -1]))
    1.0
    """
    known = np.maximum(histogram, 0).astype(np.float64)
    shares = known[known > 0] / max(known.sum(), 1e-300)
    return float(-(shares * np.log2(shares)).sum()) + 0.0


def symmetric_uncertainty(first: float, second: float, joint: float) -> float:
    """Return SU = 2 (H(X) + H(Y) - H(X, Y)) / (H(X) + H(Y)), 0 where the denominator is not positive.

    The entropies may be noisy, and all three may have a common factor.
    """
    return 2 * (first + second - joint) / (first + second) if first + second > 0 else 0.0


def above_the_mean(su: Matrix, target: int) -> tuple[int, ...]:
    """Return the context M: the attributes whose symmetric uncertainty with the target is at least the mean."""
    others = np.delete(np.arange(len(su)), target)
    values = su[others, target]
    best = others[values >= values.mean()]
    return tuple(int(k) for k in best) or (int(others[np.argmax(values)]),)  # rounding may put the mean above all


def relevant_not_redundant(su: Matrix, target: int) -> tuple[int, ...]:
    """Return the context RR: the most relevant attributes that are not redundant.

    Attributes are looked at in the order of their relevance to the target. The first is taken. A later one is taken if
    its symmetric uncertainty with the target is larger than that with each attribute taken before.
    """
    others = [int(k) for k in np.argsort(-su[:, target], kind="stable") if k != target]
    context = [others[0]]
    for k in others[1:]:
        if su[k, target] > su[k, context].max():
            context.append(k)
    return tuple(sorted(context))


def su_matrix(entropies: NDArray[np.float64], joint: Matrix) -> Matrix:
    """Return the symmetric uncertainty of every pair, 0 on the diagonal.

    Parameters
    ----------
    entropies
        The entropy of each attribute, shape (attributes,).
    joint
        The joint entropy of each pair, shape (attributes, attributes), symmetric.
    """
    number = len(entropies)
    su = np.zeros((number, number))
    for a in range(number):
        for b in range(a + 1, number):
            su[a, b] = su[b, a] = symmetric_uncertainty(entropies[a], entropies[b], joint[a, b])
    return su


def su_of_histograms(pairs: Iterable[NoisyPair], names: Sequence[str]) -> Matrix:
    """Return the symmetric uncertainties of the named attributes whose joint histograms are given, 0 for the others."""
    position = {name: k for k, name in enumerate(names)}
    su = np.zeros((len(names), len(names)))
    for pair in pairs:
        known = np.maximum(pair.counts, 0)
        entropies = entropy_of(known.sum(axis=1)), entropy_of(known.sum(axis=0)), entropy_of(known.ravel())
        a, b = position[pair.first], position[pair.second]
        su[a, b] = su[b, a] = symmetric_uncertainty(*entropies)
    return su
