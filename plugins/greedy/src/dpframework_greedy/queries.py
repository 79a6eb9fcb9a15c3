"""Queries of the greedy plugin: scores of initial pairs and of extensions, and the cells of a redescription."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.queries import CellCounts, Query, Sensitivity
from dpframework.tables import Block, counts_by_class, tally
from dpframework_greedy.choices import Group, Lattice, Pool
from dpframework_greedy.language import UNEXTENDED, Integers, Language, Redescribed
from dpframework_greedy.scores import Floats, Score, Surplus

if TYPE_CHECKING:
    from dpframework_greedy.kernels import Literals

BOTH, LEFT_ONLY, RIGHT_ONLY, NEITHER = range(4)
CLASS_OF_CELL = (3, 2, 1, 0)  # in the order of the cells above: 2 where left holds, plus 1 where right does
EXACT = 2.0**-40  # a lattice so fine that scores on it are scores


def _matrix_rows(block: Block, side: Sequence[Any]) -> Integers:
    return np.array([block.schema.index(a.name) for a in side], dtype=np.int64)


def literals_of(language: Language) -> Literals:
    """Return what kernels are told of a language."""
    from dpframework_greedy.kernels import Literals

    return Literals(language.tops, language.known, language.tests, language.starts, language.pairs, language.offsets)


@attrs.frozen
class LanguageScores(Query):
    """Scores of redescriptions; a choice is made from all candidates of the language.

    Attributes
    ----------
    language
        What redescriptions are made of.
    score
        What is scored.
    """

    integer = False
    candidate: ClassVar[str]  # what is scored, for a reader
    language: Language
    score: Score | Surplus

    @property
    def text(self) -> str:
        """Name the score."""
        return f"{self.score.text} of each {self.candidate}"

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those of both sides."""
        return self.language.names

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """Those of the score: they hold for any redescription."""
        return (self.score.sensitivity,)

    def for_rows(self, rows: int) -> tuple[Sensitivity, ...]:
        """Those of the score, for a unit of several rows."""
        return self.score.for_rows(rows)

    def coordinates(self, answer: Any) -> NDArray[np.float64]:
        """Return the first round's scores."""
        scores = [answer.scores(group, EXACT)[1] for group in answer.groups()]
        return np.asarray(np.concatenate(scores) * EXACT)


@final
@attrs.frozen
class PairScores(LanguageScores):
    """The score of every pair of literals, one a side, grouped by pairs of attributes."""

    name = "pair-scores"
    candidate = "pair of literals"

    @property
    def answer_length(self) -> int:
        """The number of pairs."""
        return self.language.number_of_pairs

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows, in the joint histograms of all pairs of attributes in one line."""
        from dpframework_greedy.kernels import add_pair_counts

        language = self.language
        counts = np.zeros(language.offsets[-1], dtype=np.int64)
        left, right = (_matrix_rows(block, side) for side in language.sides)
        add_pair_counts(block.matrix, block.index, (left, right), literals_of(language), counts)
        return counts

    def answer(self, counts: NDArray[Any], **inputs: Any) -> PairPool:
        """Return the pool of pairs."""
        return PairPool.of(self, counts)


@attrs.frozen(eq=False)
class PairPool(Pool):
    """Pairs of literals, of the pairs of attributes that no choice has taken yet.

    Attributes
    ----------
    language
        See `PairScores`.
    counts
        The joint histograms.
    parts, adds
        What makes the scores (see `Score.parts`).
    open
        The pairs of attributes left.
    """

    language: Language
    counts: Integers
    parts: Floats
    adds: bool
    open: tuple[Group, ...]

    @classmethod
    def of(cls, query: PairScores, counts: Integers) -> PairPool:
        """Return the pool of a first round."""
        rows = int(counts[: query.language.offsets[1]].sum())
        groups = tuple(Group(k) for k in range(len(query.language.pairs)))
        return cls(query.language, counts, query.score.parts(rows), query.score.adds, groups)

    @property
    def rows(self) -> int:
        """The number of rows (private)."""
        return int(self.parts.shape[1]) - 1

    def groups(self) -> Sequence[Group]:
        """Return one group a pair of attributes."""
        return self.open

    def log_weights(self, groups: Sequence[Group], unit: float, scale: float) -> Lattice:
        """Return those of all pairs of literals of each pair of attributes."""
        from dpframework_greedy.kernels import Scoring, pair_log_weights

        numbers = np.array([group.number for group in groups], dtype=np.int64)
        scoring = Scoring(self.parts, self.adds, unit)
        return np.asarray(pair_log_weights(self.counts, literals_of(self.language), numbers, scoring, scale))

    def scores(self, group: Group, unit: float) -> tuple[Lattice, Lattice]:
        """Return those of one pair of attributes, right literal fastest."""
        from dpframework_greedy.kernels import Scoring, pair_scores

        scoring = Scoring(self.parts, self.adds, unit)
        scores = np.asarray(pair_scores(self.counts, literals_of(self.language), group.number, scoring))
        return np.arange(len(scores)), scores

    def after(self, group: Group, position: int) -> PairPool:
        """Take the chosen pair of attributes away: one pair of literals a pair of attributes is enough."""
        return attrs.evolve(self, open=tuple(other for other in self.open if other != group))


@final
@attrs.frozen
class ExtensionScores(LanguageScores):
    """The score of every extension by one literal, and of none, of redescriptions that are given at run time.

    Each is given with a Jaccard index that is to be surpassed, which comes from a release: its sensitivity holds for
    any.

    Attributes
    ----------
    most
        The largest number of redescriptions.
    turns
        How many choices each gets at most.
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

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> ExtensionPool:
        """Return the pool of the given redescriptions; rows are counted when it is asked for their extensions."""

        def counts_of(redescribed: Redescribed) -> Integers:
            return np.asarray(engine.sum(rows, functools.partial(self.count, redescribed=redescribed)))

        number = int(engine.sum(rows, lambda block: np.array([block.rows]))[0])
        pool = tuple(redescribed for redescribed, _ in inputs["pool"])
        parts = tuple(self.score.surpassing(float(index)).parts(number) for _, index in inputs["pool"])
        turns = (self.turns,) * len(pool)
        return ExtensionPool(self.language, counts_of, {}, number, parts, self.score.adds, pool, turns)


@attrs.frozen(eq=False)
class ExtensionPool(Pool):
    """The extensions of some redescriptions, a group each; a choice replaces the one that it extends.

    A redescription that has had its turns leaves the pool: else the best one would take them all, and grow by what
    hardly changes it.

    Attributes
    ----------
    language
        See `ExtensionScores`.
    counts_of
        Counts the rows by code and class of a redescription.
    counted
        What it counted, while the redescription is in the pool: its weight and then its scores are read off the same.
    rows
        The number of rows (private).
    parts, adds
        What makes the scores of each redescription's extensions (see `Score.parts`).
    pool, turns
        The redescriptions, and how often each may still be chosen.
    """

    language: Language
    counts_of: Callable[[Redescribed], Integers]
    counted: dict[Redescribed, Integers]
    rows: int
    parts: tuple[Floats, ...]
    adds: bool
    pool: tuple[Redescribed, ...]
    turns: tuple[int, ...]

    def groups(self) -> Sequence[Group]:
        """Return one group a redescription that has a turn left."""
        return [Group(k, redescribed) for k, redescribed in enumerate(self.pool) if self.turns[k]]

    def log_weights(self, groups: Sequence[Group], unit: float, scale: float) -> Lattice:
        """Return those of all extensions of each redescription."""
        from dpframework_greedy.kernels import log_weight

        return np.array([log_weight(self.scores(group, unit)[1], scale) for group in groups], dtype=np.int64)

    def scores(self, group: Group, unit: float) -> tuple[Lattice, Lattice]:
        """Return those of a redescription's open extensions, itself first."""
        from dpframework_greedy.kernels import Scoring, extension_scores, lattice_score

        redescribed, language = self.pool[group.number], self.language
        scoring = Scoring(self.parts[group.number], self.adds, unit)
        if redescribed not in self.counted:
            self.counted[redescribed] = self.counts_of(redescribed)
        counts, literals = self.counted[redescribed], literals_of(language)
        width = int((language.tops[0] + 1).sum())
        totals = counts[: int(language.tops[0][0]) + 1].sum(axis=0)
        unextended = np.array([lattice_score(totals[3], totals[1] + totals[2], scoring)])
        sides = enumerate((counts[:width], counts[width:]))
        of_all = [unextended, *(extension_scores(of_side, totals, literals, k, scoring) for k, of_side in sides)]
        positions = np.flatnonzero(language.open_extensions(redescribed))
        return positions, np.concatenate(of_all)[positions]

    def after(self, group: Group, position: int) -> ExtensionPool:
        """Replace the chosen redescription by its extension, which has a turn less."""
        k, pool, turns = group.number, list(self.pool), list(self.turns)
        if position != UNEXTENDED:
            self.counted.pop(pool[k], None)
        pool[k] = self.language.extended(pool[k], position)
        turns[k] -= 1
        return attrs.evolve(self, pool=tuple(pool), turns=tuple(turns))


@final
@attrs.frozen
class Cells(CellCounts):
    """The number of rows in both supports of a redescription, in the left only, the right only, and in neither.

    The redescription is given at run time. The cells are disjoint: together they cost what one of them costs.

    Attributes
    ----------
    among
        The names of the attributes that it may be about; empty if that may be any.
    """

    name = "cells"
    among: tuple[str, ...] = ()

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those that the redescription may be about."""
        return self.among

    @property
    def text(self) -> str:
        """Say what is counted."""
        return "rows in both supports of a redescription, in one only, in neither"

    @property
    def answer_length(self) -> int:
        """Four cells."""
        return 4

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows, in the order of the cells."""
        redescribed: Redescribed = inputs["redescribed"]
        left, right = redescribed.holds(block)
        classes = tally([2 * left.view(np.uint8) + right.view(np.uint8)], 4)
        return classes[list(CLASS_OF_CELL)]
