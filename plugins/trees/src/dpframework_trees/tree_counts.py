"""Trees of one or two levels need no rows: counts of pairs of tests say what every leaf of every such tree holds.

Let n_tu be the number of rows of a class that tests t and u both hold for, n_t that of t, and n that of all. With t at
the root and u below it, the four leaves hold n_tu, n_t - n_tu, n_u - n_tu and n - n_t - n_u + n_tu rows: those where t
holds first. These counts add up over blocks of rows, so that no row needs to be gathered.
"""

from __future__ import annotations

import math

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework_trees.tree_data import Bits

MOST_LEVELS = 2  # that counts of pairs are enough for


@attrs.frozen(eq=False)
class TreeCounts:
    """Counts that a tree sampler reads: the answer of a `TreeScores` query on trees of few levels.

    Attributes
    ----------
    pairs
        Numbers of rows by class, shape (tests + 1, tests, classes): at [t, u], t <= u < tests, those that both hold
        for; at [tests, 0] those of all rows; else 0.
    depth
        Of the trees.
    criterion
        The number of the criterion that scores a leaf.
    """

    pairs: NDArray[np.int64]
    depth: int
    criterion: int

    @property
    def tests(self) -> int:
        """The number of tests."""
        return len(self.pairs) - 1

    def whole(self, scale: float, threads: int) -> Below:
        """Return all rows, as what can be below a node; one thread is enough."""
        counts = np.vstack([self.pairs[np.arange(self.tests), np.arange(self.tests)], self.pairs[-1, :1]])
        return Below(counts, self.pairs, self.criterion, scale)

    def score(self, tests: NDArray[np.int64]) -> float:
        """Return a tree's score."""
        return math.fsum(self.leaf_scores(tests))

    def leaf_scores(self, tests: NDArray[np.int64]) -> list[float]:
        """Return the score of each leaf of a tree."""
        from dpframework_trees.kernels import child_score

        parts = [self.whole(1.0, 1)]
        for level in range(self.depth):
            asked = tests[2**level - 1 : 2 ** (level + 1) - 1]
            parts = [part.side(int(t), holds) for part, t in zip(parts, asked, strict=True) for holds in (True, False)]
        return [child_score(part.counts[-1], self.criterion) for part in parts]


@attrs.frozen(eq=False)
class Below:
    """The rows below a node: how many of them each test holds for, by class, and in the last row all of them."""

    counts: NDArray[np.int64]
    pairs: NDArray[np.int64] | None
    criterion: int
    scale: float

    def log_weights(self, depth: int) -> NDArray[np.float64]:
        """Return the log of the sum of weights of all trees of that depth, for each test at the root."""
        from dpframework_trees.kernels import Weighing, log_weights_of_pairs, log_weights_of_stumps
        from dpframework_trees.weights import empty_sums, log_products

        weighing = Weighing(self.counts.astype(np.int32), self.criterion, self.scale)
        if depth == 1:
            weights = np.zeros(len(self.counts) - 1)
            log_weights_of_stumps(weighing, weights)
            return weights
        assert self.pairs is not None
        top, total = empty_sums(len(self.counts) - 1)
        log_weights_of_pairs(self.pairs[:-1].astype(np.int32), weighing, top, total)
        return log_products(top, total)

    def side(self, test: int, holds: bool) -> Below:
        """Return the rows on one side of a test; of these, pairs are not known, but for the test's own."""
        if self.pairs is None:  # only the number of rows is asked of them
            held = self.counts[test] if holds else self.counts[-1] - self.counts[test]
            return attrs.evolve(self, counts=held[np.newaxis])
        tests = len(self.counts) - 1
        k = np.arange(tests)
        held = np.vstack([self.pairs[np.minimum(k, test), np.maximum(k, test)], self.counts[test]])
        return attrs.evolve(self, counts=held if holds else self.counts - held, pairs=None)


def counted_pairs(bits: Bits, rows: Bits, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return `TreeCounts.pairs` of rows sorted by class: those of class c are in words starts[c] to starts[c + 1]."""
    from dpframework_trees.kernels import count_pairs, count_tests

    tests, classes = len(bits), len(starts) - 1
    found = np.zeros((tests + 1, tests, classes), dtype=np.int64)
    pairs, counts = np.zeros((tests, tests, classes), np.int32), np.zeros((tests + 1, classes), np.int32)
    count_pairs(bits, rows, starts, pairs)
    count_tests(bits, rows, starts, counts)
    found[:-1] = pairs
    found[np.arange(tests), np.arange(tests)] = counts[:-1]
    found[-1, 0] = counts[-1]
    return found
