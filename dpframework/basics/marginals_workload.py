"""Workloads of marginals: which residuals are released, with how much noise each, and the error of every marginal.

Let u_A be one number in the block (the residual) of a set A, before the block's weight is applied, and V_A the variance
of its noise. A cell of the marginal of S then has the variance

    sum over A within S of V_A kept_A / (product of the sizes of S - A)**2,

where kept_A is the part of the variance that centring leaves (`Residuals.cell_variances`). So the weighted sum of the
variances of all cells is the sum of g_A V_A, with

    g_A = kept_A times the sum over S that contain A of w_S (product of sizes of A) / (product of sizes of S - A).

- **zCDP**: rho is half the sum of q_A / V_A, with q_A the squared change. So V_A proportional to sqrt(q_A / g_A) is
  best (Xiao and others 2023, for their form of the residuals). No solver is needed.
- **Pure epsilon, Laplace noise**: epsilon is the sum of 1 / b_A, and V_A = 2 b_A**2. So b_A proportional to g_A**(-1/3)
  is best, and the sum is 2 (sum of g_A**(1/3))**3 / epsilon**2.
- **Pure epsilon, noise in the shape of blocks** (`BlockNorm`): blocks of k_A numbers that share one radius have V_A = 2
  (D+1) (D+2) / ((k_A+1) (k_A+2) epsilon**2), with the dimension D = sum of k_A. Blocks are divided into groups by their
  size. Each group takes whichever noise is predicted to be better, and a share of epsilon proportional to the cube root
  of its predicted sum (as in `mechanisms.groups_by_size`).

All of it follows from public facts. Weights are rounded to whole numbers, and variances are computed exactly for the
rounded weights. The noise is best for rows that are added or removed; under replace-one the same proportions are used.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import final

import attrs
import numpy as np

from dpframework.facts.attributes import Attribute
from dpframework.facts.errors import InputError
from dpframework.mechanisms.ball_noise_base import LARGEST_DIMENSION
from dpframework.queries.base import Norm
from dpframework.queries.marginal_residuals import Residuals
from dpframework.queries.residual_changes import LARGEST_WEIGHT, subsets
from dpframework.results.marginal_tables import axis_share

MOST_SETS = 1_000_000  # the most marginals of a workload
MOST_RATIO = 1 << 16  # the largest ratio between two weights of Laplace noise

Set = tuple[int, ...]  # a set of attributes, as their positions in ascending order


@final
@attrs.frozen(eq=False)
class ResidualGroup:
    """Residuals that are released together.

    Attributes
    ----------
    query
        The query for the residuals.
    share
        The share of the budget; the shares of all groups add up to 1.
    """

    query: Residuals
    share: Fraction


@final
@attrs.frozen(eq=False)
class Workload:
    """The marginals that are wanted, with weights.

    Attributes
    ----------
    of
        The attributes, each with two or more values.
    wanted
        The weight of each set of positions in `of`; the empty set is the number of rows.
    rows_known
        Whether the number of rows is public, so that it needs no release.
    ordered
        The positions of the attributes of which ranges of values matter. For these attributes the mean error of all
        ranges counts, instead of that of single values.
    """

    of: tuple[Attribute, ...]
    wanted: Mapping[Set, float]
    rows_known: bool
    ordered: frozenset[int] = frozenset()

    def __attrs_post_init__(self) -> None:
        """Refuse more marginals than a plan can hold."""
        if len(self.wanted) > MOST_SETS:
            raise InputError(f"{len(self.wanted):,} marginals are more than {MOST_SETS:,}; take fewer or a lower order")

    @functools.cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each attribute."""
        return tuple(a.size for a in self.of)

    def released(self) -> dict[Set, float]:
        """Return g_A / kept_A for each set A that needs a residual, fewer attributes first."""
        sizes = self.sizes
        shares = {a: self._range_shares(a) for a in self.ordered}
        found: dict[Set, float] = defaultdict(float)
        for wanted, weight in self.wanted.items():
            ranges = [(a, *shares[a]) for a in wanted if a in shares]
            cells = math.prod(sizes[a] for a in wanted if a not in shares)
            for one in subsets(wanted):
                own = math.prod(sizes[a] for a in one if a not in shares)
                of_ranges = math.prod(within if a in one else beside for a, within, beside in ranges)
                found[one] += weight * own * own / cells * of_ranges
        if self.rows_known:
            found.pop((), None)
        return {one: found[one] for one in sorted(found, key=lambda one: (len(one), one))}

    def _range_shares(self, a: int) -> tuple[float, float]:
        """Return what residuals add to the variances of an attribute's ranges: those with the attribute, and others.

        For n single values these numbers would be n and 1 / n. For ranges they are n times the mean over all ranges.
        """
        size = self.sizes[a]
        ranges, lengths = size * (size + 1) / 2, range(1, size + 1)
        within = sum((size - k + 1) * axis_share(size, k, inside=True) for k in lengths)
        beside = sum((size - k + 1) * axis_share(size, k, inside=False) for k in lengths)
        return size * within / ranges, size * beside / ranges

    def gaussian(self) -> ResidualGroup:
        """Return all residuals with the weights that are best for Gaussian noise."""
        needed = self.released()
        sizes = self.sizes
        multipliers, stretch = [], []
        for one, importance in needed.items():
            large = [sizes[a] for a in one if sizes[a] > 2]
            multipliers.append(math.prod(large))
            # The best weight is proportional to 1 / deviation, and so to (g / q)**(1/4). The factor kept cancels.
            stretch.append((importance / 4 ** (len(one) - len(large))) ** 0.25)
        most = LARGEST_WEIGHT / max(stretch)
        weights = [
            max(1, math.floor(min(most * s, LARGEST_WEIGHT) / m)) for s, m in zip(stretch, multipliers, strict=True)
        ]
        return ResidualGroup(Residuals(self.of, needed, weights, Norm.SQUARED_L2), Fraction(1))

    def laplace(self) -> list[ResidualGroup]:
        """Return all residuals with the weights that are best for Laplace noise, as one group."""
        needed = self._importance()
        return [ResidualGroup(self._weigh(needed), Fraction(1))]

    def least_error(self) -> list[ResidualGroup]:
        """Return the groups of least predicted error in pure epsilon, with Laplace noise or noise in blocks."""
        needed = self._importance()
        by_length: dict[int, list[Set]] = defaultdict(list)
        for one in needed:
            by_length[self._length(one)].append(one)
        lengths = sorted(by_length)
        # For the first k lengths: the least sum of roots, the start of the last group, and whether it is in blocks.
        best: list[tuple[float, int, bool]] = [(0.0, 0, False)]
        for end in range(1, len(lengths) + 1):
            options = []
            for start in range(end):
                among = {one: needed[one] for length in lengths[start:end] for one in by_length[length]}
                for in_blocks in (False, True):
                    root = self._root(among, in_blocks)
                    options.append((best[start][0] + root, start, in_blocks))
            best.append(min(options))
        cuts, end = [], len(lengths)
        while end:
            _, start, in_blocks = best[end]
            among = {one: needed[one] for length in lengths[start:end] for one in by_length[length]}
            cuts.append((among, in_blocks))
            end = start
        # All residuals with Laplace noise form one group.
        parts = [(dict(among), True) for among, in_blocks in cuts if in_blocks]
        rest = {one: g for among, in_blocks in cuts if not in_blocks for one, g in among.items()}
        if rest:
            parts.append((dict(sorted(rest.items(), key=lambda item: (len(item[0]), item[0]))), False))
        roots = [self._root(among, in_blocks) for among, in_blocks in parts]
        shares = [Fraction(max(1, math.floor(1000 * root / sum(roots))), 1000) for root in roots]
        shares[-1] = 1 - sum(shares[:-1], Fraction(0))
        return [
            ResidualGroup(
                Residuals(self.of, among, [1] * len(among), Norm.BLOCKS) if in_blocks else self._weigh(among), share
            )
            for (among, in_blocks), share in zip(parts, shares, strict=True)
        ]

    def _root(self, among: Mapping[Set, float], in_blocks: bool) -> float:
        """Return the cube root of the predicted sum of variances at epsilon 1.

        It is infinite for noise in blocks that cannot be drawn, or that has one block only.
        """
        if not in_blocks:
            return float(2 ** (1 / 3) * np.cbrt(list(among.values())).sum())
        lengths = [self._length(one) for one in among]
        dimension = sum(lengths)
        if dimension > LARGEST_DIMENSION or len(among) == 1:
            return math.inf
        moments = sum(g * 2 / ((k + 1) * (k + 2)) for g, k in zip(among.values(), lengths, strict=True))
        return float(((dimension + 1) * (dimension + 2) * moments) ** (1 / 3))

    def _importance(self) -> dict[Set, float]:
        """Return g_A of each set A that needs a residual, for noise on blocks before these are centred."""
        sizes = self.sizes
        return {
            one: value * math.prod(0.25 if sizes[a] == 2 else 1 - 1 / sizes[a] for a in one)
            for one, value in self.released().items()
        }

    def _weigh(self, among: Mapping[Set, float]) -> Residuals:
        roots = np.cbrt(list(among.values()))
        scaled = np.floor(roots / roots.max() * MOST_RATIO)
        return Residuals(self.of, among, [max(1, int(k)) for k in scaled], Norm.L1)

    def _length(self, one: Set) -> int:
        return math.prod(self.sizes[a] for a in one if self.sizes[a] > 2)


def sum_variance(lengths: Mapping[int, int], sizes: Sequence[int], known: Mapping[Set, float]) -> float:
    """Return the variance of a sum of cells of a marginal, namely those of some values of each of its attributes.

    Parameters
    ----------
    lengths
        How many values of each attribute are summed, by the attribute's position.
    sizes
        The number of values of each attribute.
    known
        The variance of the noise of a number in each residual.
    """
    one = tuple(sorted(lengths))
    return sum(
        known.get(part, 0.0) * math.prod(axis_share(sizes[a], lengths[a], inside=a in part) for a in one)
        for part in subsets(one)
    )


def cell_variance(one: Set, sizes: Sequence[int], known: Mapping[Set, float]) -> float:
    """Return the variance of a marginal's cell, from the variances of the residuals of all its subsets."""
    cells = math.prod(sizes[a] for a in one)
    return sum(known.get(part, 0.0) * (math.prod(sizes[a] for a in part) / cells) ** 2 for part in subsets(one))


def marginal_of(one: Set, sizes: Sequence[int], residuals: Mapping[Set, np.ndarray], rows: float) -> np.ndarray:
    """Return the counts of a marginal: the sum of its subsets' residuals, each repeated along the axes that it lacks.

    Parameters
    ----------
    one
        The marginal's set.
    sizes
        The number of values of each attribute.
    residuals
        The residuals by set. That of the empty set may be left out.
    rows
        The public number of rows, for when the residual of the empty set is left out.
    """
    shape = [sizes[a] for a in one]
    total = np.full(shape, (0.0 if () in residuals else rows) / math.prod(shape))
    for part in subsets(one):
        if part in residuals:
            spread = [sizes[a] if a in part else 1 for a in one]
            lacking = math.prod(shape) / math.prod(spread)
            total += residuals[part].reshape(spread) / lacking
    return total


def all_sets(attributes: int, order: int) -> list[Set]:
    """Return all sets of 1 to `order` attributes, each as positions.

    Examples
    --------
    >>> all_sets(3, 2)
    [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    """
    return [one for k in range(1, order + 1) for one in itertools.combinations(range(attributes), k)]
