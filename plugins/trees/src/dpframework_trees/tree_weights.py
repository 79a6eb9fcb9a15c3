"""Sums of the weights of all complete trees on a set of rows, and bounds on their floating-point errors.

A tree's score is a sum over its leaves of f(S), the score of a leaf with the rows S. Its weight is exp(score / scale),
so the sum of weights over all trees factorizes. Let w(S) = exp(f(S) / scale), and let Z(S, d) be the sum of the weights
of all trees of d levels on the rows S. Then, with "S and t" for the rows of S for which test t holds,

    Z(S, 0) = w(S),    Z(S, d) = sum over tests t of Z(S and t, d - 1) Z(S and not t, d - 1).

**The error of a log-weight.** `Weights.of_tests` computes L_t = log Z(S and t, d - 1) + log Z(S and not t, d - 1). Let
u = 2**-53, n the rows of S and T the number of tests. As in `Criterion.rounding`, let K u n be the error of f and M n
its size. All library functions have a relative error of at most 8 u. To first order in u, the error of L_t is the sum
of the following errors.

- Leaves: K u n / scale, since the leaves below share the rows of S. Adding two scores and dividing: 2 u M n / scale.
- Each log-sum-exp of T terms. The sum is kept as exp(top) * total, with total in [1, T]. Let x >= 0 be the distance of
  a term e**-x to the top. The term is off by 8 u e**-x and by u x e**-x, which is at most u (e**-x + 1/e).
  Whenever the top moves up, the total is multiplied by such an exponential, which happens at most T times. With the T
  additions, the total has a relative error of 12 (T + 1) u. Its logarithm is off by that and by 8 u ln(T), at most
  8 T u more. In all that is 20 (T + 1) u, whatever the scale.
- Adding top and log(total), then the two sides: 3 u times the size of the log of a sum of weights, once for each level.
  That size is at most M n / scale plus the log of the number of trees.

For the d levels below a test, the errors from the rows add up to (K + 2 M + 3 M d) u n / scale. All other errors add up
to at most (20 (T + 1) m + 3 d m ln(T)) u, where m = 2**d - 1 is the number of tests of a tree of d levels.

**The allowance for a whole tree** is derived in `sampling`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias, TypeVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import InputError
from dpframework_trees.criteria import Criterion
from dpframework_trees.tree_data import Bits, TreeData

Counts: TypeAlias = NDArray[np.int64]
T = TypeVar("T")
MOST_WORK = 4 * 10**8  # the most pairs of tests that the exact sampler looks at, which takes minutes


def exact_work(tests: int, depth: int) -> int:
    """Return how many pairs of tests the exact sampler looks at."""
    return tests if depth == 1 else tests**2 * (2 * tests) ** (depth - 2)


def require_feasible(tests: int, depth: int) -> None:
    """Refuse trees for which the exact sampler would take too long.

    Raises
    ------
    InputError
        If the sampler would look at more than `MOST_WORK` pairs of tests.
    """
    work = exact_work(tests, depth)
    if work > MOST_WORK:
        raise InputError(
            f"the exact sampler would look at {work:.2g} pairs of tests for depth {depth} and {tests} tests, more than "
            f"the {MOST_WORK:.2g} allowed; lower the depth, give fewer attributes or cuts, or use sampler = 'mcmc'"
        )


@attrs.frozen(eq=False)
class RowsBelow:
    """The rows at a node, as a set.

    Attributes
    ----------
    weights
        The sums of weights. Their `data` holds the rows.
    rows
        The set, with one bit per row.
    """

    weights: Weights
    rows: Bits

    def log_weights(self, depth: int) -> NDArray[np.float64]:
        """Return, for each test, the log of the sum of weights of all trees of a depth with that test at the root."""
        return self.weights.of_tests(self.rows, depth)

    def side(self, test: int, holds: bool) -> RowsBelow:
        """Return the rows on one side of a test."""
        held = self.weights.data.bits[test]
        return attrs.evolve(self, rows=self.rows & (held if holds else ~held))


@final
class Weights:
    """Sums of weights of all trees on sets of rows, at one scale of the exponential mechanism.

    Parameters
    ----------
    data
        The rows with their tests and classes.
    scale
        The scale of the exponential mechanism.
    threads
        How many threads to use.
    """

    def __init__(self, data: TreeData, scale: float, *, threads: int = 1) -> None:
        self.data, self._starts = data, data.starts
        self._scale, self._threads = scale, threads

    @property
    def whole(self) -> RowsBelow:
        """The set of all rows, which are at the root."""
        return RowsBelow(self, self.data.rows)

    def of_tests(self, rows: Bits, depth: int) -> NDArray[np.float64]:
        """Return, for each test, the log of the sum of weights of all trees of a depth with that test at the root.

        `rows` is a set of rows of `data`.
        """
        counts = self._counts(rows)
        if depth == 1:
            return log_weights_of_stumps(counts, self.data.criterion, self._scale)
        if depth == 2:
            return self._roots_of_two(rows, counts)
        pairs = self._pairs(rows)
        return np.array(in_threads(self._of_test(rows, depth, counts, pairs), range(len(pairs)), self._threads))

    def of_all(self, depth: int) -> float:
        """Return log Z(S, depth) for the set S of all rows (see the module)."""
        return log_sum(self.of_tests(self.data.rows, depth))

    def _counts(self, rows: Bits) -> Counts:
        from dpframework_trees.kernels import count_tests

        counts = np.zeros((len(self.data.bits) + 1, len(self.data.class_bits)), dtype=np.int64)
        count_tests(self.data.bits, rows, self._starts, counts)
        return counts

    def _pairs(self, rows: Bits) -> Counts:
        return count_pairs(self.data.bits, rows, self._starts)

    def _roots(self, rows: Bits, depth: int, counts: Counts, pairs: Counts) -> NDArray[np.float64]:
        """Return what `of_tests` returns for `rows` and a depth of two or more, given the counts of `rows`."""
        if depth == 2:
            return log_weights_of_two(counts, pairs, self.data.criterion, self._scale)
        return np.array([*map(self._of_test(rows, depth, counts, pairs), range(len(pairs)))])

    def _of_test(self, rows: Bits, depth: int, counts: Counts, pairs: Counts) -> Callable[[int], float]:
        """Return the function that computes an entry of `of_tests`, for a depth of three or more."""

        def of_test(t: int) -> float:
            held = rows & self.data.bits[t]
            held_counts, held_pairs = self._counts(held), self._pairs(held)
            of_held = self._roots(held, depth - 1, held_counts, held_pairs)
            # The counts of the other side follow by subtraction.
            rest = self._roots(rows & ~held, depth - 1, counts - held_counts, pairs - held_pairs)
            return log_sum(of_held) + log_sum(rest)

        return of_test

    def _roots_of_two(self, rows: Bits, counts: Counts) -> NDArray[np.float64]:
        """Return what `of_tests` returns for depth 2.

        Pairs of tests are counted but not stored, so memory grows only in proportion to the number of tests.
        """
        from dpframework_trees.kernels import add_pairs

        data, threads = self.data, self._threads

        def share(first: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            top, total = _empty_sums(data.tests)
            weighing, both = _weighing(counts, data.criterion, self._scale), np.zeros_like(rows)
            pairs = np.zeros((1, *counts[:-1].shape), dtype=np.int64)
            for t in range(first, data.tests, threads):
                pairs[:] = 0
                add_pairs(data.bits, rows, self._starts, t, both, pairs)
                data.criterion.kernels.add_log_weights(pairs, t, weighing, top, total)
            return top, total

        tops, totals = (np.stack(each) for each in zip(*in_threads(share, range(threads), threads), strict=True))
        top = tops.max(axis=0)
        return _log_products(top, (totals * np.exp(tops - top)).sum(axis=0))


def count_pairs(bits: Bits, rows: Bits, starts: NDArray[np.int64]) -> Counts:
    """Return, for tests t <= u, in how many rows of a set both hold, by class, shape (tests, tests, classes)."""
    from dpframework_trees.kernels import add_pairs

    pairs = np.zeros((len(bits), len(bits), len(starts) - 1), dtype=np.int64)
    add_pairs(bits, rows, starts, 0, np.zeros_like(rows), pairs)
    return pairs


def _weighing(counts: Counts, criterion: Criterion, scale: float) -> Any:
    from dpframework_trees.kernels import Weighing

    scores, leaves = np.zeros((2, len(counts) - 1)), np.zeros((4, counts.shape[1]), dtype=np.int64)
    criterion.kernels.side_scores(counts, leaves[0], scores)
    return Weighing(counts, scores, leaves, scale)


def log_weights_of_stumps(counts: Counts, criterion: Criterion, scale: float) -> NDArray[np.float64]:
    """Return the log-weight of each tree that has a single test, shape (tests,)."""
    scores = _weighing(counts, criterion, scale).scores
    return np.asarray((scores[0] + scores[1]) / scale)


def log_weights_of_two(counts: Counts, pairs: Counts, criterion: Criterion, scale: float) -> NDArray[np.float64]:
    """Return, for each test, the log of the sum of weights of all trees of two levels with that test at the root.

    Parameters
    ----------
    counts
        The number of rows of each class for which each test holds, then of all rows, shape (tests + 1, classes).
    pairs
        The number of rows of each class for which tests t <= u both hold, shape (tests, tests, classes).
    """
    top, total = _empty_sums(len(pairs))
    criterion.kernels.add_log_weights(pairs, 0, _weighing(counts, criterion, scale), top, total)
    return _log_products(top, total)


def in_threads(function: Callable[[int], T], numbers: Iterable[int], threads: int) -> list[T]:
    """Return the results of a function for the numbers, in their order, computed in several threads."""
    if threads == 1:
        return [function(number) for number in numbers]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, numbers))


def _empty_sums(tests: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the tops and the totals of empty sums exp(top) * total for both sides of each root.

    Both arrays have the shape (2, tests).
    """
    return np.full((2, tests), -np.inf), np.zeros((2, tests))


def _log_products(top: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each root, the log of the product of the sums exp(top) * total of its two sides."""
    return np.asarray((top + np.log(total)).sum(axis=0))


def log_sum(logs: NDArray[np.float64]) -> float:
    """Return the log of the sum of numbers whose logs are given."""
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))
