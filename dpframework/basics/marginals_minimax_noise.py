"""Find the noise that makes the largest variance of a cell of a workload's marginals as small as possible.

Let u be weights of the marginals that add up to 1, and consider all ways to spend one budget on noise. A weighted mean
of variances is at most the largest variance. So for every u, the smallest weighted mean of the variances is at most the
smallest possible largest variance. For the best u the two are equal (a saddle point), because the variances that a
budget can reach form a convex set. For each u, the noise with the smallest weighted mean has a closed form. In the
symbols of `marginals_workload_noise_and_errors`, V_A is the variance of the noise in the residual of a set A, g_A the
factor of V_A in the weighted mean, and q_A the squared l2 change of the residual by a row:

- zCDP: V_A = (sum of sqrt(q g)) sqrt(q_A / g_A), at rho 1/2;
- Laplace noise: V_A = 2 (sum of cbrt(g))**2 cbrt(g_A)**-2, at epsilon 1.

Let Var(u) be the vector of the variances of the marginals' cells with this noise. To find the best u, begin with equal
weights and repeat::

    u <- u Var(u) / (sum of u Var(u))

Each step gives two bounds on the smallest possible largest variance. The largest entry of Var(u) is an upper bound, and
the weighted mean is a lower bound. The search ends when the bounds differ by at most the share `GAP`, or after
`MOST_STEPS` steps. All of this follows from public facts.

For noise in the shape of blocks (`BlockNorm`) there is no such closed form. If this noise is allowed, the largest
variances of three plans are predicted, and the best plan is used: Laplace noise with the weights that were found, the
groups of `Workload.least_error` with these weights, and the groups of `Workload.least_error` with the workload's own
weights.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import final

import attrs
import numpy as np

from dpframework.basics.marginals_workload_noise_and_errors import ResidualGroup, Set, Workload, cell_variance
from dpframework.queries.base import Norm
from dpframework.queries.residual_changes import subsets

GAP = 0.005  # the search ends if the largest variance exceeds its lower bound by at most this share
MOST_STEPS = 400  # the largest number of steps of the search
#: The smallest weight of a marginal, times the number of marginals. A weight of 0 would make noise infinite.
_LEAST = 1e-9


@final
@attrs.frozen(eq=False)
class Saddle:
    """Weights of marginals, with bounds that show how close they are to the best weights.

    The noise that is *best* for some weights is the noise with the smallest weighted mean of the variances.

    Attributes
    ----------
    weights
        For each marginal, the weight of the variance of one of its cells. The weights add up to 1.
    largest
        The largest variance with the noise that is best for these weights.
    bound
        A lower bound: with the same budget, no noise makes the largest variance smaller than this.
    """

    weights: Mapping[Set, float]
    largest: float
    bound: float


def weights_of_largest(
    sizes: Sequence[int], wanted: Mapping[Set, float], released: Iterable[Set], *, gaussian: bool
) -> Saddle:
    """Return the weights for which the best noise (see `Saddle`) makes the largest variance as small as possible.

    Parameters
    ----------
    sizes
        The number of values of each attribute.
    wanted
        The marginals, each with a factor by which its variance is multiplied.
    released
        The sets of attributes whose residuals are released.
    gaussian
        Whether the noise is Gaussian (zCDP). Otherwise it is Laplace noise (pure epsilon).

    Examples
    --------
    >>> found = weights_of_largest([2, 2, 8], {(0,): 1.0, (1,): 1.0, (2,): 1.0}, [(), (0,), (1,), (2,)], gaussian=True)
    >>> found.weights[2,] > found.weights[0,]
    True
    """
    place = {one: k for k, one in enumerate(released)}
    listed = [one for one in wanted if one in place]
    entries = []
    for k, one in enumerate(listed):
        cells = math.prod(sizes[a] for a in one)
        for part in subsets(one):
            if part in place:
                kept = math.prod(0.25 if sizes[a] == 2 else 1 - 1 / sizes[a] for a in part)
                share = wanted[one] * kept * (math.prod(sizes[a] for a in part) / cells) ** 2
                entries.append((k, place[part], share))
    rows, columns, shares = map(np.array, zip(*entries, strict=True))
    changes = np.array([math.prod(1 - 1 / sizes[a] for a in one if sizes[a] > 2) for one in place])

    u = np.full(len(listed), 1 / len(listed))
    best = (math.inf, u)
    bound = 0.0
    for _ in range(MOST_STEPS):
        # This noise has the smallest mean of the variances with the weights u, so that mean is a lower bound.
        g = np.bincount(columns, u[rows] * shares, len(changes))
        if gaussian:
            noise = np.sqrt(changes * g).sum() * np.sqrt(changes / g)
        else:
            noise = 2 * (np.cbrt(g).sum() / np.cbrt(g)) ** 2
        variances = np.bincount(rows, shares * noise[columns], len(listed))
        mean = float(u @ variances)
        best = min(best, (float(variances.max()), u), key=lambda pair: pair[0])
        bound = max(bound, mean)
        if best[0] <= (1 + GAP) * bound:
            break
        # A marginal whose variance is above the mean gets more weight.
        u = np.maximum(u * variances / mean, _LEAST / len(u))
        u = u / u.sum()
    return Saddle(dict(zip(listed, best[1].tolist(), strict=True)), best[0], bound)


@functools.lru_cache(maxsize=8)
def _saddle_of(
    sizes: tuple[int, ...], wanted: tuple[tuple[Set, float], ...], released: tuple[Set, ...], gaussian: bool
) -> Saddle:
    return weights_of_largest(sizes, dict(wanted), released, gaussian=gaussian)


def for_largest(workload: Workload, *, gaussian: bool) -> Workload:
    """Return the workload with other weights: the noise that is best for these has the smallest largest variance.

    In this comparison, each variance is multiplied by the weight of its marginal in the given workload.
    """
    sizes, released = workload.sizes, workload.released()
    saddle = _saddle_of(sizes, tuple(workload.wanted.items()), tuple(released), gaussian)
    # A weight that was found applies to the variance of one cell. A weight in a workload applies to the sum of the
    # variances of a marginal's cells, so it is divided by their number.
    weights = {
        one: own * workload.wanted[one] / math.prod(sizes[a] for a in one) for one, own in saddle.weights.items()
    }
    return attrs.evolve(workload, wanted=weights)


def least_largest(workload: Workload, *, in_blocks: bool) -> list[ResidualGroup]:
    """Return the groups in pure epsilon whose largest variance is predicted to be smallest.

    If `in_blocks` is true, noise in the shape of blocks is considered, and else Laplace noise alone.
    """
    weighed = for_largest(workload, gaussian=False)
    plans = [weighed.laplace()]
    if in_blocks:
        plans += [weighed.least_error(), workload.least_error()]
    return min(plans, key=lambda groups: predict_largest(workload, groups))


def predict_largest(workload: Workload, groups: Iterable[ResidualGroup]) -> float:
    """Return the largest product of a marginal's weight and the variance of its cells, at epsilon 1.

    Variances are those under add-or-remove-one.
    """
    known: dict[Set, float] = {}
    for group in groups:
        query, share = group.query, float(group.share)
        if query.norm is Norm.BLOCKS:
            lengths = query.histograms
            radius = (sum(lengths) + 1) * (sum(lengths) + 2) / share**2
            each = [2 * radius / ((k + 1) * (k + 2)) for k in lengths]
        else:
            each = [2 * (sum(query.weights) / share) ** 2] * len(query.sets)
        known |= zip(query.sets, query.cell_variances(each), strict=True)
    return max(weight * cell_variance(one, workload.sizes, known) for one, weight in workload.wanted.items())
