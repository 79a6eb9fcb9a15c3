"""Workloads of marginals: the residuals to release, the noise of each, and the error of every marginal.

A workload is a list of marginals with weights w_S. The residual of a set A of attributes is the part of A's marginal
that does not follow from the marginals of its subsets. It is released as a block of numbers, which are multiplied by
whole numbers before noise is added, and divided by them afterwards. Let V_A be the variance of the noise of one number
in the block of A after the division. A cell of the marginal of a set S then has the variance

    sum over A within S of V_A kept_A / (product of the sizes of S - A)**2,

where size means an attribute's number of values, and kept_A is the share of the variance that is left after the block
is centred (`Residuals.cell_variances`). So the sum of the variances of all cells, with the weights w_S, is the sum of
g_A V_A, with

    g_A = kept_A times the sum over S that contain A of w_S (product of sizes of A) / (product of sizes of S - A).

- **zCDP**: rho is half the sum of q_A / V_A, where q_A is the squared l2 change of block A by one row. For a given rho,
  the sum of g_A V_A is smallest if V_A is proportional to sqrt(q_A / g_A) (Xiao and others 2023, for their form of the
  residuals). No solver is needed.
- **Pure epsilon, Laplace noise** of scale b_A in block A: epsilon is the sum of 1 / b_A, and V_A = 2 b_A**2. The
  weighted sum of variances is smallest if b_A is proportional to g_A**(-1/3). It is then 2 (sum of g_A**(1/3))**3 /
  epsilon**2.
- **Pure epsilon, noise in the shape of blocks** (`BlockNorm`): if blocks of k_A numbers share one random radius, V_A =
  2 (D+1) (D+2) / ((k_A+1) (k_A+2) epsilon**2), where D is the sum of all k_A. Blocks are divided into groups by their
  size. Each group gets Laplace noise or noise in the shape of blocks, whichever has the smaller predicted error. The
  group's share of epsilon is proportional to the cube root of its predicted sum of variances (as in
  `mechanisms.groups_by_size`).

All of this follows from public facts. Weights are rounded to whole numbers, and variances are computed for the rounded
weights. The proportions are best under add-or-remove-one. Under replace-one the same proportions are used.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np

from dpframework.facts.attributes import Attribute
from dpframework.facts.errors import InputError
from dpframework.mechanisms.knorm_ball_noise_base import LARGEST_DIMENSION
from dpframework.queries.base import Norm
from dpframework.queries.marginal_residuals import Residuals
from dpframework.queries.residual_changes import LARGEST_WEIGHT, subsets
from dpframework.results.marginal_tables import axis_share

MOST_SETS = 1_000_000  # the largest number of marginals in a workload
MOST_RATIO = 1 << 16  # the largest ratio between two weights of Laplace noise

Set = tuple[int, ...]  # a set of attributes, as ascending positions


@final
@attrs.frozen(eq=False)
class ResidualGroup:
    """Residuals that are released together, in one step.

    Attributes
    ----------
    query
        The query for the residuals.
    share
        The group's share of the budget. The shares of all groups add up to 1.
    """

    query: Residuals
    share: Fraction


@final
@attrs.frozen(eq=False)
class Workload:
    """The wanted marginals, with weights.

    Attributes
    ----------
    of
        The attributes, each with two or more values.
    wanted
        The weight of each wanted marginal, by its set of positions in `of`. The empty set stands for the number of
        rows.
    rows_known
        Whether the number of rows is public. It is not released then.
    ordered
        The positions of the attributes whose ranges will be used. For these attributes the mean error over all ranges
        is made small, instead of the error of single values.
    """

    of: tuple[Attribute, ...]
    wanted: Mapping[Set, float]
    rows_known: bool
    ordered: frozenset[int] = frozenset()

    def __attrs_post_init__(self) -> None:
        """Refuse more than `MOST_SETS` marginals."""
        if len(self.wanted) > MOST_SETS:
            raise InputError(f"{len(self.wanted):,} marginals are more than {MOST_SETS:,}; take fewer or a lower order")

    @functools.cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each attribute."""
        return tuple(a.size for a in self.of)

    def released(self) -> dict[Set, float]:
        """Return g_A / kept_A (see the module) for each set A whose residual must be released, smaller sets first."""
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
        """Return an attribute's factors in `released`: for residuals with this attribute, and for residuals without it.

        For n single values the two factors are n and 1 / n. For ranges, each factor is n times the mean of `axis_share`
        over all ranges.
        """
        size = self.sizes[a]
        ranges, lengths = size * (size + 1) / 2, range(1, size + 1)
        within = sum((size - k + 1) * axis_share(size, k, inside=True) for k in lengths)
        beside = sum((size - k + 1) * axis_share(size, k, inside=False) for k in lengths)
        return size * within / ranges, size * beside / ranges

    def gaussian(self) -> ResidualGroup:
        """Return all residuals as one group, with the best weights for Gaussian noise."""
        needed = self.released()
        sizes = self.sizes
        multipliers, stretch = [], []
        for one, importance in needed.items():
            large = [sizes[a] for a in one if sizes[a] > 2]
            multipliers.append(math.prod(large))
            # The best weight is proportional to 1 / sqrt(V), so to (g / q)**(1/4). The factor `kept` is in g and in q,
            # and cancels.
            stretch.append((importance / 4 ** (len(one) - len(large))) ** 0.25)
        most = LARGEST_WEIGHT / max(stretch)
        weights = [
            max(1, math.floor(min(most * s, LARGEST_WEIGHT) / m)) for s, m in zip(stretch, multipliers, strict=True)
        ]
        return ResidualGroup(Residuals(self.of, needed, weights, Norm.SQUARED_L2), Fraction(1))

    def laplace(self) -> list[ResidualGroup]:
        """Return all residuals as one group, with the best weights for Laplace noise."""
        needed = self._importance()
        return [ResidualGroup(self._weigh(needed), Fraction(1))]

    def least_error(self) -> list[ResidualGroup]:
        """Return the groups with the smallest predicted error in pure epsilon."""
        needed = self._importance()
        by_length: dict[int, list[Set]] = defaultdict(list)
        for one in needed:
            by_length[self._length(one)].append(one)
        lengths = sorted(by_length)
        # For the first k lengths: the smallest sum of cube roots (`_root`), the start of the last group in this sum,
        # and whether this group has noise in the shape of blocks.
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
        # All residuals with Laplace noise are joined into one group.
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
        """Return the cube root of the predicted weighted sum of variances of some blocks at epsilon 1.

        For noise in the shape of blocks, the result is infinite if the noise's dimension is too large to draw, or if
        there is only one block.
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
        """Return g_A for each set A whose residual must be released."""
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


def sum_variance(lengths: Mapping[int, Any], sizes: Sequence[int], known: Mapping[Set, float]) -> Any:
    """Return the variance of the sum of a marginal's cells for some values of each attribute.

    Parameters
    ----------
    lengths
        The number of summed values of each attribute, by the attribute's position. Arrays give an array of variances.
    sizes
        The number of values of each attribute.
    known
        For each residual, the variance of the noise of one of its numbers.
    """
    one = tuple(sorted(lengths))
    return sum(
        known.get(part, 0.0) * math.prod(axis_share(sizes[a], lengths[a], inside=a in part) for a in one)
        for part in subsets(one)
    )


def cell_variance(one: Set, sizes: Sequence[int], known: Mapping[Set, float]) -> float:
    """Return the variance of a cell of a marginal, from the variances of the residuals of all its subsets."""
    cells = math.prod(sizes[a] for a in one)
    return sum(known.get(part, 0.0) * (math.prod(sizes[a] for a in part) / cells) ** 2 for part in subsets(one))


def marginal_of(one: Set, sizes: Sequence[int], residuals: Mapping[Set, np.ndarray], rows: float) -> np.ndarray:
    """Return the counts of a marginal from the residuals of its subsets.

    Each residual is spread evenly along the attributes that it does not have, and the results are added up.

    Parameters
    ----------
    one
        The marginal's set.
    sizes
        The number of values of each attribute.
    residuals
        The residuals by their sets. The residual of the empty set may be left out.
    rows
        The public number of rows, used if the residual of the empty set is left out.
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
