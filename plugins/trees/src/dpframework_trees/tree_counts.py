"""Counts of rows for sets of tests, which give the rows in each leaf of any tree of up to three levels.

Let n_tu be the number of rows of a class that tests t and u both hold for, n_t the number that t holds for, and n the
number of all rows. If t is at the root and u below it on both sides, the four leaves hold n_tu, n_t - n_tu, n_u - n_tu
and n - n_t - n_u + n_tu rows. In a tree of three levels with t at the root, the subtree where t holds has n_tuv in
place of n_uv, and the other subtree has n_uv - n_tuv. A set of tests is counted once, for all trees that have these
tests on a path in any order. These counts add up over blocks of rows, so the rows need not be gathered.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework_trees.criteria import Criterion
from dpframework_trees.tree_data import Bits
from dpframework_trees.tree_weights import in_threads, log_sum, log_weights_of_stumps, log_weights_of_two

MOST_COUNTS = 1 << 22  # the most counts of sets of tests, which take 16 MiB
TILE = 1 << 17  # how many rows are counted at once, so that the sets of a hundred tests stay in the processor's cache


def counts_suffice(tests: int, classes: int, depth: int) -> bool:
    """Tell whether trees of a depth can be scored from counts of sets of tests that take little memory.

    Examples
    --------
    >>> counts_suffice(128, 2, 3), counts_suffice(129, 2, 3), counts_suffice(1000, 2, 2), counts_suffice(2, 2, 4)
    (True, False, True, False)
    """
    return depth <= 2 or (depth == 3 and tests**3 * classes <= MOST_COUNTS)


@attrs.frozen(eq=False)
class TreeCounts:
    """The answer of a `TreeScores` query on trees of few levels: the counts that the exact sampler reads.

    Attributes
    ----------
    cells
        Numbers of rows by class. For one or two levels, entry [t, u] with t <= u counts the rows that both tests hold
        for, shape (tests + 1, tests, classes). For three levels, entry [t, u, v] with t <= u <= v counts the rows that
        all three hold for, shape (tests + 1, tests, tests, classes). The entry with `tests` as its first position and 0
        as all others counts all rows. All other entries are 0.
    depth
        The number of levels of the trees.
    criterion
        The criterion that scores a leaf.
    """

    cells: NDArray[np.int32]
    depth: int
    criterion: Criterion

    @property
    def tests(self) -> int:
        """The number of tests."""
        return len(self.cells) - 1

    def whole(self, scale: float, threads: int) -> CountsBelow:
        """Return the counts of all rows, which are at the root."""
        t = np.arange(self.tests)
        alone = (t,) * (self.cells.ndim - 1)
        everyone = self.cells[(-1, *(0,) * (self.cells.ndim - 2))]
        counts = np.vstack([self.cells[alone], everyone]).astype(np.int64)
        return CountsBelow(counts, self.cells[:-1], self.criterion, scale, threads)

    def score(self, tests: NDArray[np.int64]) -> float:
        """Return a tree's score."""
        return math.fsum(self.leaf_scores(tests))

    def leaf_scores(self, tests: NDArray[np.int64]) -> list[float]:
        """Return the score of each leaf of a tree."""
        return self._leaf_scores(tests[np.newaxis])[0]

    def scores(self, trees: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the scores, shape (trees,), of many trees, shape (trees, nodes), faster than one by one."""
        return np.array([math.fsum(leaves) for leaves in self._leaf_scores(trees)])

    def _leaf_scores(self, trees: NDArray[np.int64]) -> list[list[float]]:
        leaves, child_score = [], self.criterion.kernels.child_score
        for leaf in range(2**self.depth):
            nodes = [2**level - 1 + (leaf >> (self.depth - level)) for level in range(self.depth)]
            holds = [not leaf >> (self.depth - 1 - level) & 1 for level in range(self.depth)]
            leaves.append(self._rows_where(list(trees.T[nodes]), holds))
        return [[child_score(counts) for counts in tree] for tree in np.stack(leaves, axis=1)]

    def _rows_where(self, tests: list[NDArray[np.int64]], holds: list[bool]) -> NDArray[np.int64]:
        """Return how many rows of each class are where each test holds or does not hold, shape (trees, classes).

        `tests` has an array for each test on the path, with one entry for each of many trees.
        """
        if not all(holds):  # The rows where a test does not hold are all rows minus those where it holds.
            k = holds.index(False)
            fewer = self._rows_where(tests[:k] + tests[k + 1 :], holds[:k] + holds[k + 1 :])
            return fewer - self._rows_where(tests, [*holds[:k], True, *holds[k + 1 :]])
        axes = self.cells.ndim - 1
        if not tests:
            place: Any = (-1, *(0,) * (axes - 1))
        else:
            least = np.minimum.reduce(tests)  # repeating a test does not change the set
            place = tuple(np.sort([*tests, *[least] * (axes - len(tests))], axis=0))
        return np.asarray(self.cells[place], dtype=np.int64)


@attrs.frozen(eq=False)
class CountsBelow:
    """The rows at a node, as numbers by test and class.

    Attributes
    ----------
    counts
        The numbers of rows for which each test holds, then the numbers of all rows, shape (tests + 1, classes).
    sets
        The numbers of rows for which two or three tests hold, as in `TreeCounts.cells`. None if they are not known.
    criterion
        The criterion that scores a leaf.
    scale
        The scale of the exponential mechanism, by which scores are divided.
    threads
        How many threads to use.
    """

    counts: NDArray[np.int64]
    sets: NDArray[np.integer] | None
    criterion: Criterion
    scale: float
    threads: int

    def log_weights(self, depth: int) -> NDArray[np.float64]:
        """Return, for each test, the log of the sum of weights of all trees of a depth with that test at the root."""
        if depth == 1:
            return log_weights_of_stumps(self.counts, self.criterion, self.scale)
        assert self.sets is not None
        if depth == 2:
            return log_weights_of_two(self.counts, self._pairs, self.criterion, self.scale)
        pairs = self._pairs

        def of_test(t: int) -> float:
            held = self.side(t, True)
            of_held = held.log_weights(2)
            held_pairs = held._pairs
            rest = log_weights_of_two(self.counts - held.counts, pairs - held_pairs, self.criterion, self.scale)
            return log_sum(of_held) + log_sum(rest)

        return np.array(in_threads(of_test, range(len(pairs)), self.threads))

    @property
    def _pairs(self) -> NDArray[np.int64]:
        """The numbers of rows for which tests t <= u both hold, shape (tests, tests, classes)."""
        assert self.sets is not None
        sets = self.sets
        if sets.ndim == 4:
            t = np.arange(len(sets))
            sets = sets[t, t]  # The set of t, t and u is that of t and u.
        return sets.astype(np.int64)

    def side(self, test: int, holds: bool) -> CountsBelow:
        """Return the counts of the rows on one side of a test."""
        if self.sets is None:  # Only the rows of this test's sides are known. They are enough for leaves.
            held = self.counts[test] if holds else self.counts[-1] - self.counts[test]
            return attrs.evolve(self, counts=held[np.newaxis])
        held_sets = _with(self.sets, test)
        if held_sets.ndim == 2:
            counts, sets = held_sets, None
        else:
            t = np.arange(len(held_sets))
            counts, sets = held_sets[t, t], held_sets if holds else self._pairs - held_sets
        held = np.vstack([counts, self.counts[test]]).astype(np.int64)
        return attrs.evolve(self, counts=held if holds else self.counts - held, sets=sets)


def _with(sets: NDArray[np.integer], test: int) -> NDArray[np.integer]:
    """Return the counts of sets among the rows that a test holds for. Sets name their tests in increasing order."""
    held = np.zeros(sets.shape[1:], dtype=sets.dtype)
    if sets.ndim == 3:
        held[:test], held[test:] = sets[:test, test], sets[test, test:]
    else:
        held[test:, test:] = sets[test, test:, test:]
        held[:test, test:] = sets[:test, test, test:]
        held[:test, :test] = sets[:test, :test, test]
    return held


def count_cells(tiles: Iterable[tuple[Bits, list[int]]], tests: int, classes: int, depth: int) -> NDArray[np.int32]:
    """Return `TreeCounts.cells`.

    Parameters
    ----------
    tiles
        For each tile of rows, one bit per row for each test, with rows sorted by class and each class starting with a
        new word; and the number of rows of each class.
    tests, classes
        The numbers of tests and of classes.
    depth
        The number of levels of the trees.
    """
    from dpframework_trees.kernels import add_pairs

    cells = np.zeros((tests + 1, *(tests,) * (2 if depth == 3 else 1), classes), dtype=np.int32)
    for bits, rows in tiles:
        starts = np.concatenate([[0], np.cumsum([-(-number // 64) for number in rows])]).astype(np.int64)
        both = np.zeros(starts[-1], dtype=np.uint64)
        if depth == 3:
            for t in range(tests):
                add_pairs(bits, bits[t], starts, t, both, cells[t, t:])
            cells[-1, 0, 0] += np.array(rows, dtype=np.int32)
        else:
            add_pairs(bits, np.full_like(both, ~np.uint64(0)), starts, 0, both, cells[:-1])
            cells[-1, 0] += np.array(rows, dtype=np.int32)
    return cells
