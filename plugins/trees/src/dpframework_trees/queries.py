"""Queries of the trees plugin: class counts by code and by leaf; scores of splits, of thresholds, of whole trees."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, InputError
from dpframework.queries import CandidateScores, Norm, PiecewiseScores, Query, Sensitivity, histogram_sensitivities
from dpframework.tables import Block
from dpframework_trees.complete import CompleteTree
from dpframework_trees.criteria import Criterion
from dpframework_trees.pairing import PairData, PairScore
from dpframework_trees.sampling import TreeData
from dpframework_trees.splits import BELOW, EQUALS, OFF_GRID, Candidates, Split


@final
@attrs.frozen
class SplitScores(CandidateScores):
    """The score of every candidate split of a node, by one criterion.

    Attributes
    ----------
    criterion
        What is scored.
    target
        The class attribute.
    most
        The largest number of candidates.
    row_bound
        A public bound on the rows, for criteria whose sensitivity needs it.
    exact_rows
        Whether that is the table's public number of rows.
    """

    name = "split-scores"
    criterion: Criterion
    target: Attribute
    most: int
    row_bound: int | None
    exact_rows: bool = False

    @property
    def text(self) -> str:
        """Name criterion and class."""
        return f"{self.criterion.name} score of each split for {self.target.name}"

    @property
    def answer_length(self) -> int:
        """The largest number of candidates."""
        return self.most

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """See `Criterion.sensitivity`."""
        return (self.criterion.sensitivity(self.row_bound, exact=self.exact_rows),)

    def candidates(self, **inputs: Any) -> Sequence[Split]:
        """Return the candidates that the query is given."""
        given: Candidates = inputs["candidates"]
        return given

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count rows by code and class, for each attribute of the candidates, then by side of each threshold."""
        from dpframework_trees.kernels import add_class_counts

        candidates: Candidates = inputs["candidates"]
        classes = block.codes(self.target.name)
        on_grid = _attributes_on_grid(candidates)
        if len(on_grid) and candidates.attributes[on_grid].max() >= len(block.matrix):
            raise InputError(
                "a derived attribute cannot be split on; derive a class, or split on the schema's attributes"
            )
        sizes = candidates.sizes[on_grid]
        width = int(sizes.sum())
        thresholds = np.flatnonzero(candidates.kinds == OFF_GRID)
        counts = np.zeros((width + 2 * len(thresholds), self.target.size), dtype=np.int64)
        add_class_counts(block.matrix, block.index, candidates.attributes[on_grid], sizes, classes, counts)
        for k, position in enumerate(thresholds):
            below = candidates[int(position)].holds(block)  # type: ignore[union-attr]
            for side, rows in enumerate((below, ~below)):
                counts[width + 2 * k + side] = np.bincount(classes[rows], minlength=self.target.size)
        return counts

    def answer(self, counts: NDArray[Any], **inputs: Any) -> NDArray[np.float64]:
        """Return the scores, shape (candidates,)."""
        from dpframework_trees.kernels import split_scores

        candidates: Candidates = inputs["candidates"]
        on_grid = _attributes_on_grid(candidates)
        ends = np.cumsum(candidates.sizes[on_grid])
        width = int(ends[-1]) if len(ends) else 0
        slot_of = np.zeros(len(candidates.attributes), dtype=np.int64)
        slot_of[on_grid] = ends - candidates.sizes[on_grid]
        slots, widths = slot_of[candidates.owner], candidates.sizes[candidates.owner]
        off_grid = candidates.kinds == OFF_GRID
        slots[off_grid] = width + 2 * np.arange(int(off_grid.sum()))
        widths[off_grid] = 2
        kinds = np.where(off_grid, np.int8(EQUALS), candidates.kinds)  # their true side is the first of two codes
        scores = np.zeros(len(candidates))
        split_scores(counts, slots, widths, kinds, candidates.codes, self.criterion.code, scores)
        return scores


def _attributes_on_grid(candidates: Candidates) -> NDArray[np.int64]:
    """Return the positions, in `candidates.attributes`, of those that some candidate reads codes of."""
    used = np.zeros(len(candidates.attributes), dtype=np.bool_)
    used[candidates.owner[candidates.kinds != OFF_GRID]] = True
    return np.flatnonzero(used)


@final
@attrs.frozen
class CodesByClass(Query):
    """The number of rows with each value of an attribute and each class; the attribute is given at run time."""

    name = "codes-by-class"
    target: Attribute

    @property
    def text(self) -> str:
        """Name the class."""
        return f"joint histogram of an attribute and {self.target.name}"

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """Counts of disjoint cells."""
        return histogram_sensitivities(2 * self.target.size)

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows, shape (codes, classes)."""
        attribute: Attribute = inputs["attribute"]
        cell = block.codes(attribute.name).astype(np.int64) * self.target.size + block.codes(self.target.name)
        return np.bincount(cell, minlength=attribute.size * self.target.size).reshape(attribute.size, -1)


@final
@attrs.frozen
class ThresholdScores(Query):
    """The score of every threshold in an interval of a numeric attribute: constant between its values.

    The interval is given at run time (`lower`, `upper`): the part of the public range that the path leaves.
    """

    name = "threshold-scores"
    integer = False
    criterion: Criterion
    target: Attribute
    attribute: Attribute
    row_bound: int | None
    exact_rows: bool = False

    @property
    def text(self) -> str:
        """Name criterion, attribute and class."""
        return f"{self.criterion.name} score of each threshold of {self.attribute.name} for {self.target.name}"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attribute and the class."""
        return (self.attribute.name, self.target.name)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """See `Criterion.sensitivity`: it holds at every threshold."""
        return (self.criterion.sensitivity(self.row_bound, exact=self.exact_rows),)

    def count(self, block: Block, **inputs: Any) -> NDArray[Any]:
        """Return this block's values and classes, shape (2, rows)."""
        return np.stack([block.values(self.attribute.name), block.codes(self.target.name).astype(np.float64)])

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> PiecewiseScores:
        """Sort the values of all blocks and score the pieces between them."""
        from dpframework_trees.kernels import threshold_scores

        values, codes = np.concatenate(engine.map(rows, self.count), axis=1)
        classes = codes.astype(np.int64)
        known = ~np.isnan(values)
        missing = np.bincount(classes[~known], minlength=self.target.size)
        order = np.argsort(values[known], kind="stable")
        ordered = np.clip(values[known][order], inputs["lower"], inputs["upper"])
        scores = np.zeros(len(ordered) + 1)
        threshold_scores(ordered, classes[known][order], missing, self.criterion.code, scores)
        return PiecewiseScores(np.concatenate([[inputs["lower"]], ordered, [inputs["upper"]]]), scores)


def packed(block: Block, candidates: Candidates, target: Attribute | None) -> NDArray[np.uint64]:
    """Return one bit a row for each test that holds, then for each class, shape (tests + classes, words)."""
    from dpframework_trees.kernels import pack_classes, pack_tests

    classes = 0 if target is None else target.size
    words = np.zeros((len(candidates) + classes, (len(block.index) + 63) // 64), dtype=np.uint64)
    attributes = candidates.attributes[candidates.owner]
    pack_tests(block.matrix, block.index, attributes, candidates.kinds, candidates.codes, words[: len(candidates)])
    if target is not None:
        pack_classes(block.codes(target.name), words[len(candidates) :])
    return words


@final
@attrs.frozen
class TreeScores(Query):
    """The score of every complete tree of a depth: the sum of a criterion over its leaves.

    Its answer is not the scores, of which there are too many, but what a tree sampler computes them from.

    Attributes
    ----------
    criterion
        What is scored.
    target
        The class attribute.
    tests
        What each node may ask.
    depth
        The number of levels.
    row_bound, exact_rows
        See `SplitScores`.
    """

    name = "tree-scores"
    integer = False
    criterion: Criterion
    target: Attribute
    tests: Candidates
    depth: int
    row_bound: int | None
    exact_rows: bool = False

    @property
    def text(self) -> str:
        """Name criterion, class and depth."""
        return f"{self.criterion.name} score of each tree of depth {self.depth} for {self.target.name}"

    @property
    def answer_length(self) -> int:
        """The number of trees."""
        return int(len(self.tests) ** (2**self.depth - 1))

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """See `Criterion.sensitivity`: a row is in one leaf of each tree, as in one child of each split."""
        return (self.criterion.sensitivity(self.row_bound, exact=self.exact_rows),)

    def coordinates(self, answer: TreeData) -> NDArray[np.float64]:
        """Return the scores of all trees, or of some if they are more than 2000."""
        trees = np.random.default_rng(0).integers(0, len(self.tests), (2000, 2**self.depth - 1))
        if self.answer_length <= len(trees):
            trees = np.array(list(itertools.product(range(len(self.tests)), repeat=trees.shape[1])))
        return np.array([answer.score(tests) for tests in trees])

    def count(self, block: Block, **inputs: Any) -> NDArray[np.uint64]:
        """Return this block's rows as bits (see `packed`)."""
        return packed(block, self.tests, self.target)

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> TreeData:
        """Put the blocks' bits side by side."""
        words = np.concatenate(engine.map(rows, self.count), axis=1)
        return TreeData(words[: len(self.tests)], words[len(self.tests) :], self.depth, self.criterion.code)


@final
@attrs.frozen
class LeavesByClass(Query):
    """The number of rows in each leaf of a released tree, with each class; the tree is given at run time."""

    name = "leaves-by-class"
    target: Attribute
    leaves: int

    @property
    def text(self) -> str:
        """Name the class."""
        return f"joint histogram of a tree's leaves and {self.target.name}"

    @property
    def answer_length(self) -> int:
        """The number of cells."""
        return self.leaves * self.target.size

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """Counts of disjoint cells."""
        return histogram_sensitivities(self.answer_length)

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows, shape (leaves, classes)."""
        tree: CompleteTree = inputs["tree"]
        cell = tree.leaf_codes(block) * self.target.size + block.codes(self.target.name)
        return np.bincount(cell, minlength=self.answer_length).reshape(self.leaves, -1)


@final
@attrs.frozen
class JointLeaves(Query):
    """The number of rows in each pair of leaves of two released trees; the trees are given at run time."""

    name = "joint-leaves"
    left: int
    right: int

    @property
    def text(self) -> str:
        """Say how many leaves there are."""
        return f"joint histogram of {self.left} left and {self.right} right leaves"

    @property
    def answer_length(self) -> int:
        """The number of cells."""
        return self.left * self.right

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """Counts of disjoint cells."""
        return histogram_sensitivities(self.answer_length)

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows, shape (leaves of the left tree, leaves of the right)."""
        left: CompleteTree = inputs["left"]
        right: CompleteTree = inputs["right"]
        cell = left.leaf_codes(block) * self.right + right.leaf_codes(block)
        return np.bincount(cell, minlength=self.answer_length).reshape(self.left, -1)


@final
@attrs.frozen
class Associations(CandidateScores):
    """How well each test of one view is associated with its best partner of the other view.

    The score of a test t is the largest abs(n_tu - n_t n_u / n) over tests u of the other view: by how many rows their
    common support exceeds, or falls short of, that of independent tests. Near n / 4 for a test that holds for half of
    the rows and has an equal, or a negation, on the other side; near 0 for tests that hold for few or nearly all.

    Attributes
    ----------
    tests
        What is scored; at run time, `candidates` says which of them are still to be had.
    others
        The tests of the other view.
    """

    name = "associations"
    tests: Candidates
    others: Candidates

    @property
    def text(self) -> str:
        """Say what is scored."""
        return f"association of each of {len(self.tests)} tests with its best of {len(self.others)} of the other view"

    @property
    def answer_length(self) -> int:
        """The number of tests."""
        return len(self.tests)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """1 under either relation.

        Let a and b be the shares of rows that t and u hold for, and let a row be added for which they hold or not,
        x, y in {0, 1}. Then n_tu - n_t n_u / n changes by n / (n + 1) (x - a) (y - b), which lies in (-1, 1). When a
        row (x, y) is replaced by (x', y'), it changes by the change of x y, less a (y' - y) + b (x' - x) + (x' - x)
        (y' - y) / n: in (-1, 1) for each of the nine cases. The largest absolute value of several numbers changes by
        no more than the one that changes most.
        """
        source = "n times a covariance of two tests changes by less than 1: derived in queries.py"
        return (Sensitivity(Norm.LINF, 1, 1, source=source),)

    def candidates(self, **inputs: Any) -> Sequence[Split]:
        """Return the tests that the query is given."""
        given: Candidates = inputs["candidates"]
        return given

    def count(self, block: Block, **inputs: Any) -> NDArray[np.uint64]:
        """Return this block's rows as bits: tests, tests of the other view, all rows."""
        from dpframework_trees.kernels import pack_classes

        everyone = np.zeros((1, (len(block.index) + 63) // 64), dtype=np.uint64)
        pack_classes(np.zeros(len(block.index), dtype=np.int64), everyone)
        given: Candidates = inputs["candidates"]
        return np.concatenate([packed(block, given, None), packed(block, self.others, None), everyone])

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> NDArray[np.float64]:
        """Score the tests that are given."""
        from dpframework_trees.kernels import best_associations

        words = np.concatenate(engine.map(rows, functools.partial(self.count, **inputs)), axis=1)
        given = len(inputs["candidates"])
        scores = np.zeros(given)
        best_associations(words[:given], words[given:-1], words[-1], np.arange(given), scores)
        return scores


@final
@attrs.frozen
class PairScores(Query):
    """The score of every pair of complete trees: the first for a class, the second for the leaves of the first.

    Its answer is what a sampler of pairs computes scores from.

    Attributes
    ----------
    score
        How the two trees' scores are put together (see `pairing`).
    target
        The class attribute, of the second tree's view.
    first, second
        The tests that each tree may ask.
    depth
        The number of levels of either tree.
    """

    name = "pair-scores"
    integer = False
    score: PairScore
    target: Attribute
    first: Candidates
    second: Candidates
    depth: int
    rows: int | None

    @property
    def text(self) -> str:
        """Name the score, the class and the depth."""
        return f"{self.score.text} of each pair of trees of depth {self.depth} for {self.target.name}"

    @property
    def answer_length(self) -> int:
        """The number of pairs."""
        return int((len(self.first) * len(self.second)) ** (2**self.depth - 1))

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """See `PairScore.sensitivity`."""
        return (self.score.sensitivity(self.rows),)

    def coordinates(self, answer: PairData) -> NDArray[np.float64]:
        """Return the scores of some pairs: of all, if they are few."""
        return np.array([answer.score(*pair) for pair in answer.some_pairs(2000)])

    def count(self, block: Block, **inputs: Any) -> NDArray[np.uint64]:
        """Return this block's rows as bits: the tests of both trees, then the classes."""
        return np.concatenate([packed(block, self.first, None), packed(block, self.second, self.target)])

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> PairData:
        """Put the blocks' bits side by side."""
        words = np.concatenate(engine.map(rows, self.count), axis=1)
        tests, of_first = len(self.first) + len(self.second), len(self.first)
        return PairData(words[:of_first], words[of_first:tests], words[tests:], self.depth, self.score)


def table_scores(candidates: Candidates, tables: dict[str, NDArray[Any]], criterion: Criterion) -> NDArray[np.float64]:
    """Score candidates from released tables of codes by class: post-processing.

    Parameters
    ----------
    candidates
        EQUALS, BELOW and MULTIWAY candidates.
    tables
        For each of their attributes, non-negative noisy counts, shape (codes, classes).
    criterion
        What to score.
    """
    from dpframework_trees.kernels import child_score

    scores = np.zeros(len(candidates))
    for k in range(len(candidates)):
        attribute = candidates.schema.attributes[candidates.attributes[candidates.owner[k]]]
        table = tables[attribute.name]
        match int(candidates.kinds[k]):
            case kind if kind in (EQUALS, BELOW):
                codes = np.arange(len(table))
                held = codes == candidates.codes[k] if kind == EQUALS else codes <= candidates.codes[k]
                sides = [table[held].sum(axis=0), table[~held].sum(axis=0)]
            case _:
                sides = list(table)
        scores[k] = sum(child_score(side, criterion.code) for side in sides)
    return scores
