"""Queries about two views: associations between tests, and scores of all pairs of complete trees."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute
from dpframework.formulas import Cells, ScoreClaims, absolute, cells, score_claims
from dpframework.queries import CandidateScores, Counting, Norm, ReadsAmong, RowSets, Sensitivity, in_common
from dpframework.tables import Block, JointCounts
from dpframework_trees.queries.literal_sets import sets_of
from dpframework_trees.queries.score_query_bases import CountedOrPacked
from dpframework_trees.queries.trees import all_of, pack, pack_classes
from dpframework_trees.splits import Candidates, Split, names_in
from dpframework_trees.tree_counts import TILE
from dpframework_trees.tree_pair_counts import SplitPairCounts, place_of_pair, sets_of_tests
from dpframework_trees.tree_pairs import PairData, PairScore, some_pairs

BITS_AT_ONCE = 1 << 28  # the most bits that the sets of a view take at once, which are 32 MiB


@final
@attrs.frozen
class Associations(CandidateScores):
    """How well each test of one view is associated with its best partner of the other view.

    The score of a test t is the largest abs(n_tu - n_t n_u / n) over tests u of the other view. This is by how many
    rows their common support differs from the support of independent tests. The score is near n / 4 for a test that
    holds for half of the rows and has an equal test, or its negation, on the other side. It is near 0 for tests that
    hold for few rows or for nearly all.

    Attributes
    ----------
    tests
        The tests that are scored. At run time, `candidates` holds the tests that may still be chosen.
    others
        The tests of the other view.
    """

    name = "associations"
    tests: Candidates
    others: Candidates

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes that the tests of both views read."""
        return names_in(self.tests, self.others)

    @property
    def text(self) -> str:
        """The score in words."""
        return f"association of each of {len(self.tests)} tests with its best of {len(self.others)} of the other view"

    @property
    def answer_length(self) -> int:
        """The number of tests."""
        return len(self.tests)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """1 under either relation.

        Let a and b be the shares of rows that t and u hold for. Let x and y in {0, 1} say whether t and u hold for an
        added row. Then n_tu - n_t n_u / n changes by n / (n + 1) (x - a) (y - b), which lies in (-1, 1). If a row
        (x, y) is replaced by (x', y'), it changes by the change of x y minus
        a (y' - y) + b (x' - x) + (x' - x) (y' - y) / n, which lies in (-1, 1) in each of the nine cases. The largest
        absolute value of several numbers changes by at most as much as the number that changes most.
        """
        source = "n times a covariance of two tests changes by less than 1: derived in queries/views.py"
        return (Sensitivity(Norm.LINF, 1, 1, source=source),)

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """The formula of one association. The largest of several changes by no more than one of them does."""
        both, first, second, neither = counted = cells("both", "first", "second", "neither")
        expected = (both + first) * (both + second) / (both + first + second + neither)
        return (score_claims(self.name, Cells(counted, absolute(both - expected)), 1, 1, 1, self._score),)

    def _score(self, counts: NDArray[np.int64], parameters: Mapping[str, Any]) -> float:
        """Return the association of two tests, from the numbers of rows that both, one or neither hold for."""
        both, first, second, _ = counts.tolist()
        return float(self.answer(np.array([[both, both + first], [both + second, counts.sum()]]))[0])

    def candidates(self, **inputs: Any) -> Sequence[Split]:
        """Return the tests that the query is given."""
        given: Candidates = inputs["candidates"]
        return given

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Return for how many rows each given test and each test of the other view both hold.

        The shape is (tests + 1, tests of the other view + 1). The last row and the last column stand for all rows.
        """
        from dpframework_trees.kernels import count_common

        given: Candidates = inputs["candidates"]
        everyone = all_of(block.rows)[np.newaxis]
        bits = [np.concatenate([pack(block, tests), everyone]) for tests in (given, self.others)]
        counts = np.zeros((len(given) + 1, len(self.others) + 1), dtype=np.int64)
        count_common(*bits, counts)
        return counts

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross tables of the attributes that the tests of both views read."""
        given: Candidates = inputs["candidates"]
        left, right = (
            [*sets_of(tests, 1, lambda t: t), RowSets.everyone(len(tests))] for tests in (given, self.others)
        )
        joint = in_common(left, right, (len(given) + 1, len(self.others) + 1))
        return attrs.evolve(joint, assemble=lambda counts: joint.assemble(counts)[0])

    def answer(self, counts: NDArray[Any], **inputs: Any) -> NDArray[np.float64]:
        """Return the score of each given test, shape (tests,)."""
        rows = counts[-1, -1]
        if rows == 0:
            return np.zeros(len(counts) - 1)
        expected = counts[:-1, -1:] * (counts[-1, :-1] / rows)
        return np.asarray(np.abs(counts[:-1, :-1] - expected).max(axis=1, initial=0.0))


@final
@attrs.frozen
class TreePairScores(CountedOrPacked, ReadsAmong):
    """The score of every pair of complete trees, where the first predicts a class, and the second the first's leaves.

    There are too many pairs to answer with all scores. The query answers with data from which a sampler computes them.

    Attributes
    ----------
    score
        The score of a pair, which combines the scores of both trees (see `tree_pairs`).
    target
        The class attribute, of the second tree's view.
    first, second
        The tests that each tree may have.
    depth
        The number of levels of each tree.
    rows
        The public number of rows. None if there is none.
    gives_counts
        Whether the answer is `SplitPairCounts`, which the exact sampler reads, or `PairData`.
    """

    name = "tree-pair-scores"
    integer = False
    score: PairScore
    target: Attribute
    first: Candidates
    second: Candidates
    depth: int
    rows: int | None
    gives_counts: bool = False

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

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """The score of a pair as a formula (see `PairScore.formula_claims`)."""
        return self.score.formula_claims

    @property
    def rounding(self) -> Fraction:
        """See `PairScore.rounding`."""
        return self.score.rounding(self.target.size, 2**self.depth, self.rows)

    def coordinates(self, answer: PairData | SplitPairCounts) -> NDArray[np.float64]:
        """Return the scores of all pairs, or of 2000 random ones if there are more."""
        pairs = list(some_pairs((len(self.first), len(self.second)), self.depth, 2000))
        if isinstance(answer, SplitPairCounts):
            return answer.scores(*(np.array(trees) for trees in zip(*pairs, strict=True)))
        return np.array([answer.score(*pair) for pair in pairs])

    def count(self, block: Block, **inputs: Any) -> NDArray[Any]:
        """Return `SplitPairCounts.cells` if `gives_counts`.

        Else return a set of rows for each test of either tree, then for each class, as bits.
        """
        if self.gives_counts:
            sets = max(sets_of_tests(len(tests), self.depth) for tests in (self.first, self.second))
            tiles = block.tiles(min(TILE, max(64, BITS_AT_ONCE // sets)))
            return np.asarray(sum(self._counts(tile) for tile in tiles))
        return np.concatenate([pack(block, self.first), pack(block, self.second), self._classes(block)])

    def tables(self, **inputs: Any) -> JointCounts | None:
        """Return the cross tables of both views' sets of tests, and of the first view's sets and the class.

        None if they are not enough to answer.
        """
        if not self.gives_counts:
            return None
        sides = []
        for tests in (self.first, self.second):
            number = len(tests)
            order, place = (1, lambda t: t) if self.depth == 1 else (2, functools.partial(place_of_pair, number))
            sides.append([*sets_of(tests, order, place), RowSets.everyone(sets_of_tests(number, self.depth) - 1)])
        lines, columns = (sets_of_tests(len(tests), self.depth) for tests in (self.first, self.second))
        size = self.target.size
        classes = RowSets.codes(self.target, columns)
        joint = in_common(sides[0], [*sides[1], classes], (lines, columns + size))
        return attrs.evolve(joint, assemble=lambda counts: joint.assemble(counts)[0])

    def _classes(self, block: Block) -> NDArray[np.uint64]:
        return pack_classes(block.codes(self.target.name), self.target.size)

    def _counts(self, tile: Block) -> NDArray[np.int64]:
        from dpframework_trees.kernels import count_common

        first, second = (self._sets(pack(tile, tests), tile.rows) for tests in (self.first, self.second))
        counted = np.concatenate([second, self._classes(tile)])
        cells = np.zeros((len(first), len(counted)), dtype=np.int64)
        count_common(first, counted, cells)
        return cells

    def _sets(self, bits: NDArray[np.uint64], rows: int) -> NDArray[np.uint64]:
        """Return the rows of each counted set of a view's tests, and the set of all rows, shape (sets, words)."""
        if self.depth > 1:
            low, high = np.triu_indices(len(bits))
            bits = bits[low] & bits[high]
        return np.concatenate([bits, all_of(rows)[np.newaxis]])

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> PairData | SplitPairCounts:
        """Add up the counts of all blocks, or put the bits of the blocks side by side."""
        tests, of_first = (len(self.first), len(self.second)), len(self.first)
        if self.gives_counts:
            return SplitPairCounts(engine.sum(rows, Counting(self)), tests, self.depth, self.score)
        words = np.concatenate(engine.map(rows, self.count), axis=1)
        views = words[:of_first], words[of_first : sum(tests)], words[sum(tests) :]
        return PairData(*views, self.depth, self.score)
