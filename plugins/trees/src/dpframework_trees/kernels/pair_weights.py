"""Weights of pairs of trees, summed over the second trees, from counts of sets of tests (see `tree_pair_counts`)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numba import njit

from dpframework_trees.kernels.array_types import Floats, Integers
from dpframework_trees.kernels.scores import child_score
from dpframework_trees.kernels.weight_kernels import Weighing, add_log_weights, side_scores


class PairScale(NamedTuple):
    """The numbers that give the weight exp(score / scale) of a pair of trees.

    Attributes
    ----------
    product
        Whether a pair is scored by the published product (see `pair_score`).
    divisor
        The divisor of the score: the number of rows if the score is normalised, else 1.
    scale
        The scale of the exponential mechanism.
    """

    product: bool
    divisor: float
    scale: float


class PairMemory(NamedTuple):
    """Working memory for the counts of one first tree.

    Attributes
    ----------
    by_class
        The number of rows of each class in each leaf of the first tree, shape (leaves, classes).
    sizes
        The number of rows in each leaf of the first tree, shape (leaves,).
    pairs
        The number of rows of each leaf for which tests x <= y of the second view both hold, shape
        (tests, tests, leaves).
    counts
        The number of rows of each leaf for which each test of the second view holds, and in the last line the number of
        all rows of each leaf, shape (tests + 1, leaves).
    leaf
        The number of rows in each leaf of a second tree and each leaf of the first, shape (4, leaves).
    scores
        The scores of the two sides of each test of the second view, shape (2, tests).
    top, total
        Sums of weights, as in `add_log_weights`, shape (2, tests).
    """

    by_class: Integers
    sizes: Integers
    pairs: Integers
    counts: Integers
    leaf: Integers
    scores: Floats
    top: Floats
    total: Floats


def pair_terms(by_class: Integers, sizes: Integers, product: bool, divisor: float) -> tuple[float, float]:
    """Return c and k of a first tree, so that a pair's score is c + k times the second tree's score.

    Parameters
    ----------
    by_class
        The number of rows of each class in each leaf of the first tree, shape (leaves, classes).
    sizes
        The number of rows in each leaf of the first tree.
    product, divisor
        See `PairScale`.
    """
    first = 0.0
    rows = 0
    for leaf in range(len(by_class)):
        first += child_score(by_class[leaf])
        rows += sizes[leaf]
    if product:
        return first / 2 / divisor, first / (2.0 * rows) / divisor if rows else 0.0
    return (first - child_score(sizes)) / 2, 0.5


def weigh_pairs(cells: Integers, t: int, memory: PairMemory, weighing: PairScale, logs: Floats) -> None:
    """Set logs[u, v] to the log-weight of all pairs whose first tree tests t, then u where t holds and v elsewhere.

    `cells` is `SplitPairCounts.cells` for two levels. A leaf here is a leaf of the first tree.
    """
    tests, second, classes = len(logs), len(memory.pairs), memory.by_class.shape[1]
    by_class, sizes, pairs, counts = memory.by_class, memory.sizes, memory.pairs, memory.counts
    columns, everyone = second * (second + 1) // 2, len(cells) - 1
    of_t = _place(t, t, tests)
    for u in range(tests):
        both = _place(min(t, u), max(t, u), tests)
        for v in range(tests):
            t_and_v, of_v, column = _place(min(t, v), max(t, v), tests), _place(v, v, tests), 0
            for x in range(second):
                for y in range(x, second):
                    held, rest = cells[both, column], cells[of_v, column] - cells[t_and_v, column]
                    pairs[x, y, 0] = held
                    pairs[x, y, 1] = cells[of_t, column] - held
                    pairs[x, y, 2] = rest
                    pairs[x, y, 3] = cells[everyone, column] - cells[of_t, column] - rest
                    column += 1
                for leaf in range(4):
                    counts[x, leaf] = pairs[x, x, leaf]
            sizes[:] = 0
            for c in range(classes):
                column = columns + 1 + c  # Classes come after the set of all rows.
                held, rest = cells[both, column], cells[of_v, column] - cells[t_and_v, column]
                by_class[0, c] = held
                by_class[1, c] = cells[of_t, column] - held
                by_class[2, c] = rest
                by_class[3, c] = cells[everyone, column] - cells[of_t, column] - rest
                for leaf in range(4):
                    sizes[leaf] += by_class[leaf, c]
            for leaf in range(4):
                counts[second, leaf] = sizes[leaf]
            constant, factor = pair_terms(by_class, sizes, weighing.product, weighing.divisor)
            scale = weighing.scale / factor if factor > 0 else math.inf
            side_scores(counts, memory.leaf[0], memory.scores)
            memory.top[:] = -math.inf
            memory.total[:] = 0.0
            add_log_weights(pairs, 0, Weighing(counts, memory.scores, memory.leaf, scale), memory.top, memory.total)
            logs[u, v] = constant / weighing.scale + _log_of_all(memory.top, memory.total)


@njit(nogil=True, cache=True)
def _place(low: int, high: int, tests: int) -> int:
    """Return the position of two tests low <= high among all such pairs, ordered by low and then by high."""
    return low * tests - low * (low - 1) // 2 + high - low


@njit(nogil=True, cache=True)
def _log_of_all(top: Floats, total: Floats) -> Any:
    """Return the log of the sum over roots of a product: the sums exp(top) total of the root's two sides."""
    largest = -math.inf
    for x in range(top.shape[1]):
        largest = max(largest, top[0, x] + math.log(total[0, x]) + top[1, x] + math.log(total[1, x]))
    weights = 0.0
    for x in range(top.shape[1]):
        weights += math.exp(top[0, x] + math.log(total[0, x]) + top[1, x] + math.log(total[1, x]) - largest)
    return largest + math.log(weights)
