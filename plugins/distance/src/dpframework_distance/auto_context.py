"""The rule behind `context = "auto"`, which chooses a way of learning from public facts alone.

The size of the noise compared with what is to be learned follows from the budget, the number of rows, and the
attributes' sizes. The rule and its constants were found on Adult, Cmc, Mushroom and generated tables (docs/distances.md
has results):

- where even the joint histograms of all contexts would have hardly any noise, contexts are chosen from the rows;
- otherwise let f be the number of pairs whose joint histograms would have a relative noise of about a sixth, with the
  budget that marginals and the choice of edges leave. (The less noise marginals have, the less budget they get.) Only
  marginals are worth their budget if there is a single target, if f is below the number of attributes in a context, if
  all pairs have too many cells to be counted, or if marginals are noisy (a relative noise above 0.1 with half of the
  budget);
- otherwise distances come from a forest of f edges, or from a tree if f is large enough.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from fractions import Fraction

from dpframework.facts import Attribute, Schema
from dpframework.mechanisms import groups_by_size
from dpframework_distance.distance_budget import DistanceBudget
from dpframework_distance.subsets import MOST_CELLS, number_of_cells

CLEAR = 0.03  # contexts are chosen from the rows up to this relative noise of all contexts' joint histograms
CLEAR_FOR_ONE = 0.2  # the same if there is a single target
TABLES = 0.7  # the share of the budget for the joint histograms of contexts
TREE = Fraction(17, 20)  # the share for the marginals and the joint histograms of a tree; the rest selects its edges
NOISY = 0.15  # the largest relative noise of a joint histogram that is worth its budget
NOISY_MARGINALS = 0.1  # marginals with a larger relative noise, at half of the budget, need all of it
MARGINALS = 10  # the share of marginals in a tree's budget, divided by their relative noise at the whole budget
_LAPLACE = 2 * math.sqrt(2)  # the standard deviation of a count at epsilon 1, if a row may be replaced


def edges_or_contexts(
    among: Sequence[Attribute], targets: Sequence[int], schema: Schema, budget: DistanceBudget, context_size: int
) -> int | None:
    """Return the number of edges of a model, 0 for marginals alone, or None for contexts chosen from the rows.

    Without a bound on the number of rows, only marginals are released.
    """
    sizes = [attribute.size for attribute in among]
    rows = schema.rows if schema.rows is not None else schema.max_rows
    if rows is None:
        return 0
    if len(targets) == 1:
        cells = statistics.fmean(sizes[targets[0]] * size for k, size in enumerate(sizes) if k != targets[0])
        tables, bound, only = float(context_size), CLEAR_FOR_ONE, targets[0]
    else:
        cells = statistics.fmean(a * b for a, b in itertools.combinations(sizes, 2))
        every = len(sizes) * (len(sizes) - 1) // 2
        tables, bound, only = 0.75 * min(context_size * len(sizes), every), CLEAR, None
    fits = context_size < len(sizes) and number_of_cells(sizes, context_size + 1, only) <= MOST_CELLS
    if fits and cells * deviation_of(tables, budget) / rows <= bound:
        return None
    epsilon = like_epsilon(budget, len(sizes))
    edges = edges_worth(sizes, rows, epsilon * float(TREE - share_of_marginals(sizes, rows, budget)))
    noisy = number_of_cells(sizes, 2) > MOST_CELLS or noise_of_marginals(sizes, rows, budget) > NOISY_MARGINALS
    few = edges < min(context_size, len(sizes) - 1)
    return 0 if few or noisy or only is not None else edges


def deviation_of(tables: float, budget: DistanceBudget) -> float:
    """Return the standard deviation of a count if `tables` joint histograms share the budget under replace-one."""
    amount = TABLES * float(budget.amount)
    return math.sqrt(tables / amount) if budget.zcdp else _LAPLACE * tables / amount


def like_epsilon(budget: DistanceBudget, attributes: int) -> float:
    """Return the budget's epsilon or, for a rho, the epsilon that leaves as much noise on a tree's tables."""
    amount = float(budget.amount)
    return math.sqrt(8 * (attributes - 1) * amount) if budget.zcdp else amount


def edges_worth(sizes: Sequence[int], rows: int, epsilon: float) -> int:
    """Return how many joint histograms of pairs may share an epsilon, at a relative noise of about a sixth each."""
    cells = statistics.median(a * b for a, b in itertools.combinations(sizes, 2))
    return min(int(NOISY * rows * epsilon / (_LAPLACE * cells)), len(sizes) - 1)


def share_of_marginals(sizes: Sequence[int], rows: int | None, budget: DistanceBudget) -> Fraction:
    """Return the share of a tree's budget for its marginals, in steps of a 20th. Noisier marginals get more."""
    if rows is None:
        return Fraction(2, 5)
    needed = MARGINALS * noise_of_marginals(sizes, rows, budget) / 2
    return Fraction(min(max(round(20 * needed), 2), 10), 20)


def noise_of_marginals(sizes: Sequence[int], rows: int, budget: DistanceBudget) -> float:
    """Return the mean relative noise of one-way histograms at half of the budget, size x deviation / rows.

    In a group of attributes by size, the variance of a cell is (D+1) (D+2) v_s / epsilon**2 (see
    `dpframework.mechanisms.groups_by_size`). With Gaussian noise it is the number of attributes divided by rho.
    """
    half = float(budget.amount) / 2
    if budget.zcdp:
        return statistics.fmean(sizes) * math.sqrt(len(sizes) / half) / rows
    found = []
    for members, share in groups_by_size(sizes):
        dimension = sum(sizes[k] - 1 for k in members)
        for k in members:
            size = sizes[k]
            moment = 4 * (size - 1) * (2 * size - 1) / (size * (size + 1)) ** 2
            found.append(size * math.sqrt((dimension + 1) * (dimension + 2) * moment) / (half * float(share)) / rows)
    return statistics.fmean(found)
