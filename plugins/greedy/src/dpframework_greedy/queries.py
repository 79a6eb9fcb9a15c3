"""Queries for the scores of initial pairs and of extensions, and for the cells of a redescription."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import And, Cases
from dpframework.formulas import ScoreClaims
from dpframework.queries import CellCounts, Counting, Query, ReadsAmong, Sensitivity
from dpframework.tables import Block, Crosstab, JointCounts, counts_by_class, tally
from dpframework_greedy.language import UNEXTENDED, Integers, Language, Redescribed
from dpframework_greedy.noisy_row_scores import AnyScore, Supports
from dpframework_greedy.scores import Floats
from dpframework_greedy.successive_choices import CandidatePool, Group, Lattice

if TYPE_CHECKING:
    from dpframework_greedy.kernels import Literals

BOTH, LEFT_ONLY, RIGHT_ONLY, NEITHER = range(4)
CLASS_OF_CELL = (3, 2, 1, 0)  # the class of each cell above: 2 where left holds, plus 1 where right does
TOGETHER = 1 << 13  # about how many candidates are scored at once
EXACT = 2.0**-40  # the step of a lattice so fine that rounding to it does not matter


class SupportScore(Protocol):
    """A function from supports to scores."""

    def of_supports(self, both: NDArray[Any], either: NDArray[Any]) -> Floats:
        """Return scores, given how many rows are in both supports and how many in at least one."""


def _on_lattice(score: SupportScore, both: Integers, either: Integers, unit: float) -> Lattice:
    """Return the lattice points nearest to the scores of some supports."""
    return np.asarray(np.rint(score.of_supports(both, either) / unit).astype(np.int64))


def _batches(groups: Sequence[Group], sizes: Sequence[int]) -> Iterator[list[Group]]:
    """Yield the groups in order, in batches whose scores stay in the processor's cache."""
    some: list[Group] = []
    number = 0
    for group in groups:
        if number > TOGETHER:
            yield some
            some, number = [], 0
        some.append(group)
        number += sizes[group.number]
    yield some


def _matrix_rows(block: Block, side: Sequence[Any]) -> Integers:
    return np.array([block.schema.index(a.name) for a in side], dtype=np.int64)


def literal_arrays(language: Language) -> Literals:
    """Return a language's literals and pairs as arrays for the kernels."""
    from dpframework_greedy.kernels import Literals

    return Literals(language.tops, language.known, language.tests, language.starts, language.pairs, language.offsets)


@attrs.frozen
class LanguageScores(Query):
    """The base class of queries for the scores of all candidates of a language.

    Attributes
    ----------
    language
        The language of redescriptions.
    score
        The score of a candidate.
    """

    integer = False
    candidate: ClassVar[str]  # the word for a candidate in texts
    language: Language
    score: AnyScore

    @property
    def text(self) -> str:
        """Name the score."""
        return f"{self.score.text} of each {self.candidate}"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes of both sides."""
        return self.language.names

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """The sensitivities of the score, which hold for any redescription."""
        return (self.score.sensitivity,)

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """The score's formula, if it has one."""
        return self.score.scored

    def for_rows(self, rows: int) -> tuple[Sensitivity, ...]:
        """Return the sensitivities of the score for a unit of several rows."""
        return self.score.for_rows(rows)

    def coordinates(self, answer: Any) -> NDArray[np.float64]:
        """Return the scores of the first round's candidates."""
        scores = [answer.scores(group, EXACT)[1] for group in answer.groups()]
        return np.asarray(np.concatenate(scores) * EXACT)


@final
@attrs.frozen
class PairScores(LanguageScores):
    """The score of every pair of literals, one from each side, grouped by pairs of attributes."""

    name = "pair-scores"
    candidate = "pair of literals"

    @property
    def answer_length(self) -> int:
        """The number of pairs of literals."""
        return self.language.number_of_pairs

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows in the joint histograms of all pairs of attributes, joined in one line."""
        language = self.language
        counts = np.zeros(language.offsets[-1], dtype=np.int64)
        positions, sizes = _matrix_rows(block, language.sides[0]), language.tops[0] + 1
        for j, (attribute, top) in enumerate(zip(language.sides[1], language.tops[1].tolist(), strict=True)):
            with_it = np.flatnonzero(language.pairs[:, 1] == j)
            of_left = language.pairs[with_it, 0]
            found = counts_by_class(block, positions[of_left], sizes[of_left], block.codes(attribute.name), top + 1)
            ends = np.cumsum(sizes[of_left])
            for p, end, size in zip(with_it.tolist(), ends.tolist(), sizes[of_left].tolist(), strict=True):
                counts[language.offsets[p] : language.offsets[p + 1]] = found[end - size : end].ravel()
        return counts

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table of each pair of attributes."""
        sides = self.language.sides
        tables = [Crosstab([sides[0][i], sides[1][j]]) for i, j in self.language.pairs.tolist()]
        return JointCounts(tables, lambda counts: np.concatenate([table.ravel() for table in counts]))

    def answer(self, counts: NDArray[Any], **inputs: Any) -> PairPool:
        """Return the pool of pairs."""
        return PairPool.of(self, counts, inputs.get("supports"))


@attrs.frozen(eq=False)
class PairPool(CandidatePool):
    """Pairs of literals, from the pairs of attributes that no choice has taken yet.

    Attributes
    ----------
    language
        The language of redescriptions.
    counts
        The joint histograms of all pairs of attributes.
    score
        The score of a pair.
    open
        The pairs of attributes that are left.
    """

    language: Language
    counts: Integers
    score: SupportScore
    open: tuple[Group, ...]

    @classmethod
    def of(cls, query: LanguageScores, counts: Integers, supports: Supports | None = None) -> PairPool:
        """Return the pool of the first round, with bounds on the support if the score takes them at run time."""
        groups = tuple(Group(k) for k in range(len(query.language.pairs)))
        return cls(query.language, counts, query.score.at(supports), groups)

    def groups(self) -> Sequence[Group]:
        """Return one group per pair of attributes."""
        return self.open

    def log_weights(self, groups: Sequence[Group], unit: float, scale: float) -> Lattice:
        """Return the log-weight of each pair of attributes, over all its pairs of literals."""
        from dpframework_greedy.kernels import log_weight

        weights = []
        for some in _batches(groups, self.language.sizes_of_pairs):
            ends = np.cumsum([self.language.sizes_of_pairs[group.number] for group in some])[:-1]
            weights += [log_weight(own, scale) for own in np.split(self._lattice(some, unit), ends)]
        return np.array(weights, dtype=np.int64)

    def scores(self, group: Group, unit: float) -> tuple[Lattice, Lattice]:
        """Return positions and scores for one pair of attributes, the right literal varying fastest."""
        scores = self._lattice([group], unit)
        return np.arange(len(scores)), scores

    def _lattice(self, groups: Sequence[Group], unit: float) -> Lattice:
        """Return the scores of all pairs of literals of some pairs of attributes, one after another."""
        from dpframework_greedy.kernels import pair_supports

        sizes, literals, end = self.language.sizes_of_pairs, literal_arrays(self.language), 0
        both, either = np.empty((2, sum(sizes[group.number] for group in groups)), dtype=np.int64)
        sums = np.zeros([int(tops.max()) + 2 for tops in self.language.tops], dtype=np.int64)
        for group in groups:
            start, end = end, end + sizes[group.number]
            pair_supports(self.counts, literals, group.number, sums, both[start:end], either[start:end])
        return _on_lattice(self.score, both, either, unit)

    def after(self, group: Group, position: int) -> PairPool:
        """Remove the chosen pair of attributes, since one of its pairs of literals is enough."""
        return attrs.evolve(self, open=tuple(other for other in self.open if other != group))


@final
@attrs.frozen
class ExtensionScores(LanguageScores):
    """The scores of redescriptions that are given at run time, and of each of their extensions by one literal.

    Each redescription is given with a Jaccard index to surpass, which comes from a release. The sensitivity holds for
    any index.

    Attributes
    ----------
    most
        The largest number of redescriptions.
    turns
        The largest number of times that each redescription may be chosen and extended.
    """

    name = "extension-scores"
    candidate = "extension by a literal"
    most: int
    turns: int

    @property
    def answer_length(self) -> int:
        """The largest number of candidates of a round."""
        return self.most * self.language.number_of_extensions

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows by code of each attribute and class of one redescription (see `CLASS_OF_CELL`)."""
        redescribed: Redescribed = inputs["redescribed"]
        left, right = redescribed.holds(block)
        classes = 2 * left.view(np.uint8) + right.view(np.uint8)
        positions = np.concatenate([_matrix_rows(block, side) for side in self.language.sides])
        sizes = np.concatenate(self.language.tops) + 1
        return counts_by_class(block, positions, sizes, classes, 4)

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross tables of each attribute with the cells where the sides of the redescription hold."""
        cells = _cells_of(inputs["redescribed"])
        tables = [Crosstab([attribute, cells]) for side in self.language.sides for attribute in side]
        return JointCounts(tables, lambda counts: np.concatenate(counts)[:, list(CLASS_OF_CELL)])

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> ExtensionPool:
        """Return the pool of the given redescriptions. It counts rows only when extensions are scored."""

        def counts_of(redescribed: Redescribed) -> Integers:
            return np.asarray(engine.sum(rows, Counting(self, {"redescribed": redescribed})))

        pool = tuple(redescribed for redescribed, _ in inputs["pool"])
        score = self.score.at(inputs.get("supports"))
        by = tuple(score.surpassing(float(index)) for _, index in inputs["pool"])
        turns = (self.turns,) * len(pool)
        return ExtensionPool(self.language, counts_of, {}, by, pool, turns)


@attrs.frozen(eq=False)
class ExtensionPool(CandidatePool):
    """The extensions of some redescriptions, one group per redescription.

    A chosen extension replaces the redescription that it extends. A redescription that has had its turns leaves the
    pool. Otherwise the best one would take all turns, and grow by literals that hardly change it.

    Attributes
    ----------
    language
        The language of redescriptions.
    counts_of
        A function that counts the rows by code and class of a redescription.
    counts
        The counts of redescriptions in the pool, kept because a round needs them twice, for a weight and for scores.
    by
        The score of each redescription's extensions.
    pool, turns
        The redescriptions, and how often each may still be chosen.
    """

    language: Language
    counts_of: Callable[[Redescribed], Integers]
    counts: dict[Redescribed, Integers]
    by: tuple[SupportScore, ...]
    pool: tuple[Redescribed, ...]
    turns: tuple[int, ...]

    def groups(self) -> Sequence[Group]:
        """Return one group per redescription that has a turn left."""
        return [Group(k, redescribed) for k, redescribed in enumerate(self.pool) if self.turns[k]]

    def log_weights(self, groups: Sequence[Group], unit: float, scale: float) -> Lattice:
        """Return the log-weight of each redescription, over all its extensions."""
        from dpframework_greedy.kernels import log_weight

        return np.array([log_weight(self.scores(group, unit)[1], scale) for group in groups], dtype=np.int64)

    def scores(self, group: Group, unit: float) -> tuple[Lattice, Lattice]:
        """Return the positions and scores of a redescription itself, and then of its open extensions."""
        redescribed, language = self.pool[group.number], self.language
        if redescribed not in self.counts:
            self.counts[redescribed] = self.counts_of(redescribed)
        counts = self.counts[redescribed]
        width = int((language.tops[0] + 1).sum())
        totals = counts[: int(language.tops[0][0]) + 1].sum(axis=0)
        unextended = np.array([[totals[3]], [totals[1:].sum()]])
        sides = enumerate((counts[:width], counts[width:]))
        of_all = [unextended, *(self._side_supports(of_side, totals, k) for k, of_side in sides)]
        positions = np.flatnonzero(language.open_extensions(redescribed))
        both, either = np.concatenate(of_all, axis=1)[:, positions]
        return positions, _on_lattice(self.by[group.number], both, either, unit)

    def _side_supports(self, counts: Integers, totals: Integers, side: int) -> Integers:
        """Return the supports of one side's extensions, from its rows by code and class."""
        from dpframework_greedy.kernels import extension_supports

        sizes = self.language.tops[side] + 1
        begins = np.concatenate([[0], np.cumsum(sizes + 1)]).astype(np.int64)
        sums = np.zeros((begins[-1], 4), dtype=np.int64)
        end = 0
        for begin, size in zip(begins.tolist(), sizes.tolist(), strict=False):
            np.cumsum(counts[end : end + size], axis=0, out=sums[begin + 1 : begin + 1 + size])
            end += size
        supports = np.zeros((2, 2 * len(self.language.tests[side])), dtype=np.int64)
        extension_supports(sums, begins, totals, literal_arrays(self.language), side, supports)
        return supports

    def after(self, group: Group, position: int) -> ExtensionPool:
        """Replace the chosen redescription by its extension, which has one turn fewer."""
        k, pool, turns = group.number, list(self.pool), list(self.turns)
        if position != UNEXTENDED:
            self.counts.pop(pool[k], None)
        pool[k] = self.language.extend(pool[k], position)
        turns[k] -= 1
        return attrs.evolve(self, pool=tuple(pool), turns=tuple(turns))


def _cells_of(redescribed: Redescribed) -> Cases:
    """Return where both sides hold, the left one only, the right one only, and neither, as cells."""
    left, right = redescribed.descriptions
    return Cases([And([left, right]), left, right])


@final
@attrs.frozen
class RedescriptionCells(ReadsAmong, CellCounts):
    """The number of rows in both supports of a redescription, in the left only, the right only, and in neither.

    The redescription is given at run time. The cells are disjoint, so together they cost as much as one of them.
    """

    name = "cells"

    @property
    def text(self) -> str:
        """Name the cells that are counted."""
        return "rows in both supports of a redescription, in one only, in neither"

    @property
    def answer_length(self) -> int:
        """4, one for each cell."""
        return 4

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows in each cell, in the order of the cells."""
        redescribed: Redescribed = inputs["redescribed"]
        left, right = redescribed.holds(block)
        classes = tally([2 * left.view(np.uint8) + right.view(np.uint8)], 4)
        return classes[list(CLASS_OF_CELL)]

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table of the cells where the sides hold."""
        return JointCounts([Crosstab([_cells_of(inputs["redescribed"])])], operator.itemgetter(0))
