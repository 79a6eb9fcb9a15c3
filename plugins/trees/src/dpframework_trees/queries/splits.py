"""Queries of a node: scores of its candidate splits and thresholds, and class counts by code."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Generator, Sequence
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, Cases, InputError
from dpframework.formulas import plain_score
from dpframework.queries import CandidateScores, CellCounts, Counting, PiecewiseScores, ReadsAmong
from dpframework.tables import Block, Crosstab, JointCounts, counts_by_class
from dpframework_trees.criteria import Criterion
from dpframework_trees.queries.score_query_bases import CriterionScores
from dpframework_trees.splits import BELOW, EQUALS, MULTIWAY, OFF_GRID, Candidates, Split

FEW = 1 << 10  # the most candidates times classes that are scored without loading numba
MOST_KEPT = 1 << 14  # the most codes, of all attributes together, for which a node's counts are kept


@final
@attrs.frozen
class SplitScores(CriterionScores, CandidateScores):
    """The score of every candidate split of a node.

    Attributes
    ----------
    answer_length
        The largest number of candidates.
    children
        The largest number of children of a candidate.
    """

    name = "split-scores"
    answer_length: int
    children: int = 2

    @property
    def text(self) -> str:
        """Name criterion and class."""
        return f"{self.scored_by} of each split for {self.target.name}"

    @property
    def rounding(self) -> Fraction:
        """The rounding of the criterion (see `Criterion.rounding`) for the largest number of children."""
        return self.criterion.rounding(self.target.size, self.rows.bound, self.children)

    def candidates(self, **inputs: Any) -> Sequence[Split]:
        """Return the candidates that the query is given."""
        given: Candidates = inputs["candidates"]
        return given

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count rows by class, and by code of each attribute or by side of each off-grid threshold.

        The attributes are those whose codes some candidate reads. If `only` is given, it holds positions in
        `candidates.attributes`, and only these attributes are counted. Off-grid thresholds are counted in any case.
        """
        candidates: Candidates = inputs["candidates"]
        on_grid = inputs.get("only", _attributes_on_grid(candidates))
        if len(on_grid) and candidates.attributes[on_grid].max() >= len(block.columns):
            raise InputError(
                "a derived attribute cannot be split on; derive a class, or split on the schema's attributes"
            )
        sizes = candidates.sizes[on_grid]
        width = int(sizes.sum())
        thresholds = np.flatnonzero(candidates.kinds == OFF_GRID)
        counts = np.zeros((width + 2 * len(thresholds), self.target.size), dtype=np.int64)
        if not len(counts):
            return counts  # All counts are known, so no code is read.
        classes = block.codes(self.target.name)
        counts[:width] = counts_by_class(block, candidates.attributes[on_grid], sizes, classes, self.target.size)
        for k, position in enumerate(thresholds):
            below = candidates[int(position)].holds(block)  # type: ignore[union-attr]
            for side, rows in enumerate((below, ~below)):
                counts[width + 2 * k + side] = np.bincount(classes[rows], minlength=self.target.size)
        return counts

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross tables of the class with each attribute, then with the sides of each off-grid threshold."""
        candidates: Candidates = inputs["candidates"]
        on_grid = inputs.get("only", _attributes_on_grid(candidates))
        split_on: list[Any] = [candidates.schema.attributes[k] for k in candidates.attributes[on_grid]]
        thresholds = [Cases([candidates[int(k)]]) for k in np.flatnonzero(candidates.kinds == OFF_GRID)]  # type: ignore[list-item]
        tables = [Crosstab([column, self.target]) for column in (*split_on, *thresholds)]
        empty = np.zeros((0, self.target.size), dtype=np.int64)
        return JointCounts(tables, lambda counts: np.concatenate([empty, *counts]))

    def counting(
        self, engine: Any, rows: Any, **inputs: Any
    ) -> Generator[Callable[[Block], NDArray[Any]], NDArray[Any], Any]:
        """Count and score. Kept counts of the node above, minus those of its other children, replace a count.

        The counts of this node are kept for nodes below it, if they are small.
        """
        candidates: Candidates = inputs["candidates"]
        on_grid = _attributes_on_grid(candidates)
        keys = [(SplitScores, self.target, int(candidates.attributes[k])) for k in on_grid]
        around = engine.related_caches(rows)
        known = [_of_relatives(around, key) for key in keys]
        only = on_grid[[table is None for table in known]]
        counted = yield Counting(self, {"candidates": candidates, "only": only})
        start, tables = 0, []
        for table, size in zip(known, candidates.sizes[on_grid].tolist(), strict=True):
            tables.append(counted[start : start + size] if table is None else table)
            start += size if table is None else 0
        if candidates.sizes[on_grid].sum() <= MOST_KEPT:
            engine.cache_of(rows).update(zip(keys, tables, strict=True))
        return self.answer(np.concatenate([*tables, counted[start:]]), **inputs)

    def answer(self, counts: NDArray[Any], **inputs: Any) -> NDArray[np.float64]:
        """Return the scores, shape (candidates,)."""
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
        kinds = np.where(off_grid, np.int8(EQUALS), candidates.kinds)  # An off-grid threshold holds on the first side.
        counts = self.criterion.weigh(counts)
        if len(candidates) * self.target.size <= FEW and "numba" not in sys.modules:
            score = plain_score(self.criterion.formula)
            return _plain_scores(score, counts, slots, widths, kinds, candidates.codes)
        scores = np.zeros(len(candidates))
        sides = np.zeros((3, self.target.size), dtype=np.int64)
        self.criterion.kernels.split_scores(counts, slots, widths, kinds, candidates.codes, sides, scores)
        return scores


def _plain_scores(
    score: Callable[[Sequence[int]], float],
    counts: NDArray[Any],
    slots: NDArray[np.int64],
    widths: NDArray[np.int64],
    kinds: NDArray[np.int8],
    codes: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the scores of the kernel `split_scores`, in plain numpy. For few candidates this is faster."""
    summed = np.concatenate([np.zeros((1, counts.shape[1]), dtype=np.int64), np.cumsum(counts, axis=0)])
    whole, below = summed[slots + widths] - summed[slots], summed[slots + codes + 1] - summed[slots]
    held = np.where((kinds == BELOW)[:, None], below, counts[slots + codes])
    pairs = zip(held.tolist(), (whole - held).tolist(), strict=True)
    scores = np.array([score(side) + score(rest) for side, rest in pairs], dtype=np.float64)
    for k in np.flatnonzero(kinds == MULTIWAY):
        scores[k] = functools.reduce(operator.add, map(score, counts[slots[k] : slots[k] + widths[k]].tolist()), 0.0)
    return scores


def _of_relatives(around: Any, key: Any) -> NDArray[np.int64] | None:
    """Return a node's counts as the counts of the node above minus those of its other children.

    `around` holds the counts that the node above has kept, and those that its other children have kept. Return None if
    one of these nodes has not kept the counts under `key`.
    """
    if around is None or not all(key in kept for kept in (around[0], *around[1])):
        return None
    return np.asarray(around[0][key] - sum(kept[key] for kept in around[1]))


def _attributes_on_grid(candidates: Candidates) -> NDArray[np.int64]:
    """Return the positions, in `candidates.attributes`, of the attributes whose codes some candidate reads."""
    used = np.zeros(len(candidates.attributes), dtype=np.bool_)
    used[candidates.owner[candidates.kinds != OFF_GRID]] = True
    return np.flatnonzero(used)


@final
@attrs.frozen
class ThresholdScores(CriterionScores):
    """The score of every threshold in an interval of a numeric attribute. Between two rows' values it is constant.

    The interval is given at run time (`lower`, `upper`). It is the part of the public range that the tests on the path
    allow.

    Attributes
    ----------
    attribute
        The numeric attribute.
    """

    name = "threshold-scores"
    attribute: Attribute

    @property
    def gathers(self) -> bool:
        """Whether the query gathers rows. It does, since it sorts values, which takes 16 bytes per row."""
        return True

    @property
    def text(self) -> str:
        """Name criterion, attribute and class."""
        return f"{self.scored_by} of each threshold of {self.attribute.name} for {self.target.name}"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attribute and of the class."""
        return (self.attribute.name, self.target.name)

    @property
    def rounding(self) -> Fraction:
        """The rounding of the criterion (see `Criterion.rounding`) for two sides."""
        return self.criterion.rounding(self.target.size, self.rows.bound, 2)

    def count(self, block: Block, **inputs: Any) -> NDArray[Any]:
        """Return this block's values and classes, shape (2, rows)."""
        return np.stack([block.values(self.attribute.name), block.codes(self.target.name).astype(np.float64)])

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> PiecewiseScores:
        """Sort the values of all blocks and score the pieces between them."""
        values, codes = np.concatenate(engine.map(rows, self.count), axis=1)
        classes = codes.astype(np.int64)
        known = ~np.isnan(values)
        order = np.argsort(values[known], kind="stable")
        ordered = np.clip(values[known][order], inputs["lower"], inputs["upper"])
        scores = np.zeros(len(ordered) + 1)
        below, above = np.zeros((2, self.target.size), dtype=np.int64)
        # Missing values are counted above every threshold, since a test on them does not hold.
        above += self.criterion.weigh(np.bincount(classes, minlength=self.target.size))
        each = self.criterion.weigh(np.ones(self.target.size, dtype=np.int64))
        self.criterion.kernels.threshold_scores(classes[known][order], each, below, above, scores)
        return PiecewiseScores(np.concatenate([[inputs["lower"]], ordered, [inputs["upper"]]]), scores)


@final
@attrs.frozen
class CodesByClass(ReadsAmong, CellCounts):
    """The number of rows of each class with each code of an attribute. The attribute is given at run time."""

    name = "codes-by-class"
    target: Attribute

    @property
    def text(self) -> str:
        """Name the class."""
        return f"joint histogram of an attribute and {self.target.name}"

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table of the attribute and the class, shape (codes, classes)."""
        attribute: Attribute = inputs["attribute"]
        return JointCounts([Crosstab([attribute, self.target])], operator.itemgetter(0))


def table_scores(candidates: Candidates, tables: dict[str, NDArray[Any]], criterion: Criterion) -> NDArray[np.float64]:
    """Score candidates from released tables of codes by class, as post-processing.

    Parameters
    ----------
    candidates
        Candidates of the kinds EQUALS, BELOW and MULTIWAY.
    tables
        For each attribute of the candidates, its non-negative noisy counts, shape (codes, classes).
    criterion
        The criterion that scores each child.
    """
    scores, child_score = np.zeros(len(candidates)), criterion.kernels.child_score
    for k in range(len(candidates)):
        attribute = candidates.schema.attributes[candidates.attributes[candidates.owner[k]]]
        table = criterion.weigh(tables[attribute.name])
        match int(candidates.kinds[k]):
            case kind if kind in (EQUALS, BELOW):
                codes = np.arange(len(table))
                held = codes == candidates.codes[k] if kind == EQUALS else codes <= candidates.codes[k]
                sides = [table[held].sum(axis=0), table[~held].sum(axis=0)]
            case _:
                sides = list(table)
        scores[k] = sum(child_score(side) for side in sides)
    return scores
