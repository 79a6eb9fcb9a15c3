"""The rows as a tree sampler reads them: one bit a row for each test and each class."""

from __future__ import annotations

import math
from typing import TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

Bits: TypeAlias = "NDArray[np.uint64]"


class OfClasses:
    """Rows as sets, one a class: `class_bits`, shape (classes, words)."""

    class_bits: Bits

    @property
    def rows(self) -> Bits:
        """The set of all rows."""
        return np.asarray(np.bitwise_or.reduce(self.class_bits, axis=0))


@attrs.frozen(eq=False)
class TreeData(OfClasses):
    """The rows as a tree sampler reads them: the answer of a `TreeScores` query.

    Attributes
    ----------
    bits
        One bit a row for each test that holds, shape (tests, words).
    class_bits
        One bit a row for each class, shape (classes, words).
    depth
        Of the trees.
    criterion
        The number of the criterion that scores a leaf.
    """

    bits: Bits
    class_bits: Bits
    depth: int
    criterion: int

    @property
    def tests(self) -> int:
        """The number of tests."""
        return len(self.bits)

    def by_class(self) -> tuple[TreeData, NDArray[np.int64]]:
        """Return the rows sorted by class, each class from a word of its own on, and where each class starts."""
        from dpframework_trees.kernels import arrange

        of_classes = [
            np.flatnonzero(np.unpackbits(of_class.astype("<u8").view(np.uint8), bitorder="little"))
            for of_class in self.class_bits
        ]
        words = [(len(of_class) + 63) // 64 for of_class in of_classes]
        starts = np.concatenate([[0], np.cumsum(words)]).astype(np.int64)
        source = np.full(64 * starts[-1], -1, dtype=np.int64)
        for of_class, start in zip(of_classes, 64 * starts, strict=False):
            source[start : start + len(of_class)] = of_class
        arranged = [np.zeros((len(bits), starts[-1]), dtype=np.uint64) for bits in (self.bits, self.class_bits)]
        for bits, sorted_bits in zip((self.bits, self.class_bits), arranged, strict=True):
            arrange(bits, source, sorted_bits)
        return attrs.evolve(self, bits=arranged[0], class_bits=arranged[1]), starts

    def score(self, tests: NDArray[np.int64]) -> float:
        """Return a tree's score."""
        return math.fsum(self.leaf_scores(tests))

    def leaf_scores(self, tests: NDArray[np.int64]) -> list[float]:
        """Return the score of each leaf of a tree."""
        from dpframework_trees.kernels import child_score, leaf_counts

        members, which = placed(self.bits, tests, self.rows)
        counts = np.zeros((len(tests) + 1, len(self.class_bits)), dtype=np.int64)
        leaf_counts(members, which, self.class_bits, counts)
        return [child_score(of_leaf, self.criterion) for of_leaf in counts]


def placed(bits: Bits, tests: NDArray[np.int64], rows: Bits) -> tuple[Bits, NDArray[np.int8]]:
    """Return the rows of every node of a tree, twice (a spare set each, for walks), and which of the two is its own."""
    from dpframework_trees.kernels import place_rows

    nodes = 2 * len(tests) + 1
    members, which = np.zeros((2, nodes, len(rows)), dtype=np.uint64), np.zeros(nodes, dtype=np.int8)
    members[:, 0] = rows
    place_rows(bits, tests, members, which)
    return members, which
