"""Counts of sets of tests, which give every leaf of every tree of up to three levels without the rows.

Let n_tu be the number of rows of a class that tests t and u both hold for, n_t that of t, and n that of all. With t at
the root and u below it, the four leaves hold n_tu, n_t - n_tu, n_u - n_tu and n - n_t - n_u + n_tu rows: those where t
holds first. With a third level, the same is said of the rows that t holds for by n_tuv in the place of n_uv, and of the
others by n_uv - n_tuv. A set of tests is counted once, for all trees that ask them in any order. These counts add up
over blocks of rows, so that no row needs to be gathered.
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
from dpframework_trees.weights import in_threads, log_sum, log_weights_of_stumps, log_weights_of_two

MOST_COUNTS = 1 << 22  # of sets of tests: 16 MiB
TILE = 1 << 17  # rows, whose sets for a hundred tests stay in the processor's cache


def enough(tests: int, classes: int, depth: int) -> bool:
    """Return whether counts suffice for the depth, and fit in memory.

    Examples
    --------
    >>> enough(128, 2, 3), enough(129, 2, 3), enough(1000, 2, 2), enough(2, 2, 4)
    (True, False, True, False)
    """
    return depth <= 2 or (depth == 3 and tests**3 * classes <= MOST_COUNTS)


@attrs.frozen(eq=False)
class TreeCounts:
    """The counts that a tree sampler reads, the answer of a `TreeScores` query on trees of few levels.

    Attributes
    ----------
    cells
        Numbers of rows by class: at [t, u], t <= u < tests, those that both tests hold for, shape (tests + 1, tests,
        classes); for three levels at [t, u, v], t <= u <= v; where the first is `tests`, and others 0, those of all
        rows; else 0.
    depth
        The depth of the trees.
    criterion
        What scores a leaf.
    """

    cells: NDArray[np.int32]
    depth: int
    criterion: Criterion

    @property
    def tests(self) -> int:
        """The number of tests."""
        return len(self.cells) - 1

    def whole(self, scale: float, threads: int) -> CountsBelow:
        """Return all rows, as the set at the root."""
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
        """Return the scores of many trees, shape (trees, nodes), faster than one by one."""
        return np.array([math.fsum(leaves) for leaves in self._leaf_scores(trees)])

    def _leaf_scores(self, trees: NDArray[np.int64]) -> list[list[float]]:
        leaves, child_score = [], self.criterion.kernels.child_score
        for leaf in range(2**self.depth):
            nodes = [2**level - 1 + (leaf >> (self.depth - level)) for level in range(self.depth)]
            holds = [not leaf >> (self.depth - 1 - level) & 1 for level in range(self.depth)]
            leaves.append(self._rows_where(list(trees.T[nodes]), holds))
        return [[child_score(counts) for counts in tree] for tree in np.stack(leaves, axis=1)]

    def _rows_where(self, tests: list[NDArray[np.int64]], holds: list[bool]) -> NDArray[np.int64]:
        """Return the rows by class that some tests hold for, and others not, each of many trees' tests."""
        if not all(holds):  # n where t does not hold is n less n where it does
            k = holds.index(False)
            fewer = self._rows_where(tests[:k] + tests[k + 1 :], holds[:k] + holds[k + 1 :])
            return fewer - self._rows_where(tests, [*holds[:k], True, *holds[k + 1 :]])
        axes = self.cells.ndim - 1
        if not tests:
            place: Any = (-1, *(0,) * (axes - 1))
        else:
            least = np.minimum.reduce(tests)  # a test that is named again changes no set
            place = tuple(np.sort([*tests, *[least] * (axes - len(tests))], axis=0))
        return np.asarray(self.cells[place], dtype=np.int64)


@attrs.frozen(eq=False)
class CountsBelow:
    """The rows below a node, as numbers by class.

    Attributes
    ----------
    counts
        Those that each test holds for, and in the last row all, shape (tests + 1, classes).
    sets
        Those that two or three tests hold for, as in `TreeCounts`; None where they are not known.
    criterion, scale
        What weighs leaves.
    threads
        How many to use.
    """

    counts: NDArray[np.int64]
    sets: NDArray[np.integer] | None
    criterion: Criterion
    scale: float
    threads: int

    def log_weights(self, depth: int) -> NDArray[np.float64]:
        """Return the log of the sum of weights of all trees of that depth, for each test at the root."""
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
        """Those that tests t <= u both hold for."""
        assert self.sets is not None
        sets = self.sets
        if sets.ndim == 4:
            t = np.arange(len(sets))
            sets = sets[t, t]  # with t twice, any u above it
        return sets.astype(np.int64)

    def side(self, test: int, holds: bool) -> CountsBelow:
        """Return the rows on one side of a test."""
        if self.sets is None:  # only the number of rows is asked of them
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
    """Return the rows of one test by all other tests, from the counts of increasing sets of tests."""
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
        One bit a row for each test, rows sorted by class, each class starting with a word; and how many rows are of
        each class.
    tests, classes
        Their numbers.
    depth
        The levels of the trees.
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
