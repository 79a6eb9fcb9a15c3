"""Queries for scores of all complete trees, and for tables of the leaves of released trees."""

from __future__ import annotations

import abc
import itertools
import math
import operator
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute
from dpframework.queries import CellCounts, Counting, ReadsAmong, RowSets, in_common
from dpframework.tables import Block, Crosstab, JointCounts
from dpframework_trees.complete_tree import CompleteTree
from dpframework_trees.queries.literal_sets import sets_of
from dpframework_trees.queries.score_query_bases import CountedOrPacked, CriterionScores
from dpframework_trees.splits import BELOW, Candidates
from dpframework_trees.tree_counts import TILE, TreeCounts, count_cells
from dpframework_trees.tree_data import TreeData


def pack(block: Block, candidates: Candidates) -> NDArray[np.uint64]:
    """Return, for each test, one bit per row, which is 1 where the test holds, shape (tests, words)."""
    bits = _bytes(len(candidates), block.rows)
    names = [candidates.schema.attributes[k].name for k in candidates.attributes]
    tests = list(zip(candidates.owner.tolist(), candidates.kinds.tolist(), candidates.codes.tolist(), strict=True))
    begin = 0
    for tile in block.tiles():
        end, read = begin + (tile.rows + 7) // 8, None
        for t, (owner, kind, code) in enumerate(tests):
            if owner != read:
                codes, read = tile.codes(names[owner]), owner
            bits[t, begin:end] = np.packbits(codes <= code if kind == BELOW else codes == code, bitorder="little")
        begin = end
    return _words(bits)


def pack_classes(classes: NDArray[Any], number: int) -> NDArray[np.uint64]:
    """Return, for each class, one bit per row, which is 1 for the rows of the class, shape (classes, words)."""
    bits = _bytes(number, len(classes))
    for c in range(number):
        bits[c, : (len(classes) + 7) // 8] = np.packbits(classes == c, bitorder="little")
    return _words(bits)


def all_of(rows: int) -> NDArray[np.uint64]:
    """Return the set of all rows of a table or block as bits, given their number, shape (words,)."""
    return np.asarray(pack_classes(np.zeros(rows, dtype=np.uint8), 1)[0])


def _bytes(sets: int, rows: int) -> NDArray[np.uint8]:
    return np.zeros((sets, 8 * ((rows + 63) // 64)), dtype=np.uint8)


def _words(bits: NDArray[np.uint8]) -> NDArray[np.uint64]:
    words: NDArray[np.uint64] = np.asarray(bits.view("<u8"), dtype=np.uint64)
    return words


@final
@attrs.frozen
class TreeScores(CountedOrPacked, CriterionScores):
    """The score of every complete tree of a depth, the sum of a criterion over its leaves.

    There are too many trees to answer with all scores. The query answers with data from which a sampler computes them.

    Attributes
    ----------
    tests
        The tests that each node may have.
    depth
        The number of levels.
    gives_counts
        Whether the answer is `TreeCounts`, which only the exact sampler reads, or else `TreeData` (see
        `tree_counts.counts_suffice`).
    """

    name = "tree-scores"
    tests: Candidates
    depth: int
    gives_counts: bool = False

    @property
    def text(self) -> str:
        """Name criterion, class and depth."""
        return f"{self.criterion.name} score of each tree of depth {self.depth} for {self.target.name}"

    @property
    def answer_length(self) -> int:
        """The number of trees."""
        return int(len(self.tests) ** (2**self.depth - 1))

    @property
    def rounding(self) -> Fraction:
        """The rounding of the criterion (see `Criterion.rounding`), with leaves added up level by level."""
        return self.criterion.rounding(self.target.size, self.rows.bound, self.depth + 1)

    def coordinates(self, answer: TreeData | TreeCounts) -> NDArray[np.float64]:
        """Return the scores of all trees, or of 2000 random ones if there are more."""
        trees = np.random.default_rng(0).integers(0, len(self.tests), (2000, 2**self.depth - 1))
        if self.answer_length <= len(trees):
            trees = np.array(list(itertools.product(range(len(self.tests)), repeat=trees.shape[1])))
        return answer.scores(trees)

    def count(self, block: Block, **inputs: Any) -> NDArray[Any]:
        """Return `TreeCounts.cells` if `gives_counts`.

        Else return a set of rows for each test, then for each class, as bits sorted by class.
        """
        if self.gives_counts:
            tiles = (self._pack(tile) for tile in block.tiles(TILE))
            return count_cells(tiles, len(self.tests), self.target.size, self.depth)
        bits, rows = self._pack(block)
        classes, start = np.zeros((len(rows), bits.shape[1]), dtype=np.uint64), 0
        for c, number in enumerate(rows):
            of_class = all_of(number)
            classes[c, start : start + len(of_class)] = of_class
            start += len(of_class)
        return np.concatenate([bits, classes])

    def tables(self, **inputs: Any) -> JointCounts | None:
        """Return the cross tables of all sets of tests and the class, or None if the answer is bits of rows."""
        if not self.gives_counts:
            return None
        number, order = len(self.tests), 3 if self.depth == 3 else 2
        shape = (number + 1, *(number,) * (order - 1))
        sets = sets_of(self.tests, order, lambda *tests: np.ravel_multi_index(tests, shape))
        everyone = RowSets.everyone(number * number ** (order - 1))
        classes = RowSets.codes(self.target)
        joint = in_common([*sets, everyone], [classes], (math.prod(shape), self.target.size))
        return attrs.evolve(joint, assemble=lambda counts: joint.assemble(counts).reshape(*shape, -1).astype(np.int32))

    def _pack(self, block: Block) -> tuple[NDArray[np.uint64], list[int]]:
        """Return one bit per row for each test, with rows sorted by class, and the number of rows of each class."""
        index, classes = block.index, block.codes(self.target.name)
        parts = [block.at(index[classes == c]) for c in range(self.target.size)]
        return np.concatenate([pack(part, self.tests) for part in parts], axis=1), [part.rows for part in parts]

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> TreeData | TreeCounts:
        """Add up the counts of all blocks, or put the bits of the blocks side by side, sorted by class."""
        if self.gives_counts:
            return TreeCounts(engine.sum(rows, Counting(self)), self.depth, self.criterion)
        blocks = engine.map(rows, self.count)
        words = blocks[0]
        if len(blocks) > 1:
            words = np.concatenate(blocks, axis=1)
            words = words[:, np.argsort((words[len(self.tests) :] != 0).argmax(axis=0), kind="stable")]
        return TreeData(words[: len(self.tests)], words[len(self.tests) :], self.depth, self.criterion)


@attrs.frozen
class _LeafTable(ReadsAmong, CellCounts):
    """The number of rows in each cell of a table whose rows are the leaves of a released tree.

    The tree is given at run time.
    """

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, int]:
        """The numbers of leaves and of columns."""

    @abc.abstractmethod
    def cells(self, block: Block, **inputs: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the position of each row's leaf, and of its column in the table, shape (rows,) each."""

    @property
    def answer_length(self) -> int:
        """The number of cells."""
        return self.shape[0] * self.shape[1]

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows, shape (leaves, columns)."""
        leaves, columns = self.cells(block, **inputs)
        return np.bincount(leaves * self.shape[1] + columns, minlength=self.answer_length).reshape(self.shape)


@final
@attrs.frozen
class LeavesByClass(_LeafTable):
    """The number of rows of each class in each leaf of a released tree. The tree is given at run time."""

    name = "leaves-by-class"
    target: Attribute
    leaves: int

    @property
    def text(self) -> str:
        """Name the class."""
        return f"joint histogram of a tree's leaves and {self.target.name}"

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of leaves and of classes."""
        return self.leaves, self.target.size

    def cells(self, block: Block, **inputs: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the position of each row's leaf, and the code of its class."""
        tree: CompleteTree = inputs["tree"]
        return tree.leaf_codes(block), block.codes(self.target.name)

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table of the leaves and the class."""
        return JointCounts([Crosstab([inputs["tree"].cases, self.target])], operator.itemgetter(0))


@final
@attrs.frozen
class JointLeaves(_LeafTable):
    """The number of rows in each pair of leaves of two released trees. The trees are given at run time."""

    name = "joint-leaves"
    left: int
    right: int

    @property
    def text(self) -> str:
        """Name the numbers of leaves."""
        return f"joint histogram of {self.left} left and {self.right} right leaves"

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of leaves of the two trees."""
        return self.left, self.right

    def cells(self, block: Block, **inputs: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the position of each row's leaf in the left tree, and in the right tree."""
        left: CompleteTree = inputs["left"]
        right: CompleteTree = inputs["right"]
        return left.leaf_codes(block), right.leaf_codes(block)

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table of the two trees' leaves."""
        return JointCounts([Crosstab([inputs["left"].cases, inputs["right"].cases])], operator.itemgetter(0))
