"""The rows in the form that a tree sampler reads, with one bit per row for each test and each class."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework_trees.criteria import Criterion

Bits: TypeAlias = "NDArray[np.uint64]"


class RowsByClass:
    """A base class for data that holds the rows of each class as a set, `class_bits` of shape (classes, words)."""

    class_bits: Bits

    @property
    def rows(self) -> Bits:
        """The set of all rows."""
        return np.asarray(np.bitwise_or.reduce(self.class_bits, axis=0))


@attrs.frozen(eq=False)
class TreeData(RowsByClass):
    """The answer of a `TreeScores` query: the rows in the form that a tree sampler reads, sorted by class.

    The rows of each class begin with a new word of 64 bits, so that one pass over the words counts all classes.

    Attributes
    ----------
    bits
        For each test, one bit per row, which is 1 where the test holds, shape (tests, words).
    class_bits
        For each class, one bit per row, shape (classes, words).
    depth
        The number of levels of the trees.
    criterion
        The criterion that scores a leaf.
    """

    bits: Bits
    class_bits: Bits
    depth: int
    criterion: Criterion

    @property
    def tests(self) -> int:
        """The number of tests."""
        return len(self.bits)

    @property
    def starts(self) -> NDArray[np.int64]:
        """The position at which the words of each class start, then the number of words, shape (classes + 1,)."""
        return np.concatenate([[0], np.cumsum((self.class_bits != 0).sum(axis=1))]).astype(np.int64)

    def score(self, tests: NDArray[np.int64]) -> float:
        """Return a tree's score."""
        return math.fsum(self.leaf_scores(tests))

    def scores(self, trees: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the scores, shape (trees,), of many trees, which are given as an array of shape (trees, nodes)."""
        return np.array([self.score(tests) for tests in trees])

    def leaf_scores(self, tests: NDArray[np.int64]) -> list[float]:
        """Return the score of each leaf of a tree."""
        from dpframework_trees.kernels import count_common

        leaves = place_rows(self.bits, tests, self.rows)[len(tests) :]
        counts = np.zeros((len(leaves), len(self.class_bits)), dtype=np.int64)
        count_common(leaves, self.class_bits, counts)
        return [self.criterion.kernels.child_score(of_leaf) for of_leaf in counts]


def is_tree(output: Any, tests: int, depth: int) -> bool:
    """Tell whether an output is a complete tree: a test's position for each node. Kernels do not check this again."""
    nodes = np.asarray(output)
    return nodes.shape == (2**depth - 1,) and bool(((nodes >= 0) & (nodes < tests)).all())


def place_rows(bits: Bits, tests: NDArray[np.int64], rows: Bits, *, leaves: bool = True) -> Bits:
    """Return the set of rows at each node, shape (nodes, words). Without `leaves`, only nodes with tests are in it."""
    from dpframework_trees.kernels import route

    members = np.zeros((2 * len(tests) + 1 if leaves else len(tests), len(rows)), dtype=np.uint64)
    members[0] = rows
    route(bits, tests, 0, rows, members)
    return members
