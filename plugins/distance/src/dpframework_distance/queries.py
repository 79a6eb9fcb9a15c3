"""Queries for scores of contexts, and for entropies of attributes and pairs, joint or conditional."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, final, overload

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, as_attributes
from dpframework.queries import CandidateScores, Sensitivity
from dpframework.tables import Block, JointCounts
from dpframework_distance.conditional_entropy import all_sums, scores_of
from dpframework_distance.entropy_terms import UNITS, Terms
from dpframework_distance.sensitivities import CONDITIONAL_ENTROPY, ENTROPY, OfEntropies, RowBounds
from dpframework_distance.subsets import Counts, Subsets, count_once, subsets, subsets_with


@final
@attrs.frozen(eq=False, repr=False)
class Contexts(Sequence[tuple[str, ...]]):
    """Candidate contexts, which are named on demand, since there may be very many.

    Attributes
    ----------
    of
        The attributes of the metric.
    members
        The positions of each context's attributes, shape (contexts, size).
    """

    of: tuple[Attribute, ...]
    members: NDArray[np.int64]

    def __len__(self) -> int:
        """Return the number of contexts."""
        return len(self.members)

    @overload
    def __getitem__(self, position: int) -> tuple[str, ...]: ...

    @overload
    def __getitem__(self, position: slice) -> Contexts: ...

    def __getitem__(self, position: int | slice) -> tuple[str, ...] | Contexts:
        """Return a context as names of attributes."""
        if isinstance(position, slice):
            return Contexts(self.of, self.members[position])
        return tuple(self.of[k].name for k in self.members[position])


@attrs.frozen
class _SubsetScores(OfEntropies, CandidateScores):
    """Scores of contexts, read off the joint histograms of subsets of attributes.

    Attributes
    ----------
    of
        The attributes of the metric.
    context_size
        The number of attributes in a context.
    bounds
        The public facts about the number of rows.
    """

    of: tuple[Attribute, ...] = attrs.field(converter=as_attributes)
    context_size: int
    bounds: RowBounds

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of all attributes of the metric."""
        return tuple(a.name for a in self.of)

    @property
    def text(self) -> str:
        """Name the size of the contexts, and their targets."""
        what = "attribute" if self.context_size == 1 else f"set of {self.context_size} attributes"
        return f"information of each {what} on {self._determined}"

    @property
    @abc.abstractmethod
    def _determined(self) -> str:
        """The words for the targets of a context."""

    @property
    def answer_length(self) -> int:
        """The number of contexts."""
        return math.comb(len(self._may_be_in_contexts), self.context_size)

    @property
    def _may_be_in_contexts(self) -> tuple[Attribute, ...]:
        return self.of

    def _subsets(self, order: int, containing: int | None = None) -> Subsets:
        return subsets(tuple(a.size for a in self.of), order, containing)


@final
@attrs.frozen
class ContextScores(_SubsetScores):
    """-N H(Y|S), N times the paper's I'(Y, S): how well each context S of a given size determines the target Y.

    The context with the largest score has the largest mutual information with the target. The attributes that were
    chosen before are given at run time (`chosen`), and are in no candidate.

    Attributes
    ----------
    target
        The position of Y among the attributes.
    alone
        Whether this is the only target. If not, the joint histograms are counted once for all targets.
    """

    name = "context-scores"
    scored_formulas = (CONDITIONAL_ENTROPY,)
    target: int
    alone: bool = False

    @property
    def _determined(self) -> str:
        return self.of[self.target].name

    def _declare(self, bounds: RowBounds) -> tuple[Sensitivity, ...]:
        return bounds.of_scores(self.of[self.target].size)

    @property
    def _may_be_in_contexts(self) -> tuple[Attribute, ...]:
        return self.of[: self.target] + self.of[self.target + 1 :]

    def candidates(self, **inputs: Any) -> Sequence[tuple[str, ...]]:
        """Return the contexts, each as names of attributes."""
        return Contexts(self.of, self._contexts(inputs))

    def _contexts(self, inputs: Mapping[str, Any]) -> NDArray[np.int64]:
        """Return the contexts that hold neither the target nor an attribute chosen before, in the answer's order."""
        every = self._subsets(self.context_size).members
        barred = self._find_chosen(inputs)
        barred[self.target] = True
        return np.asarray(every[~barred[every].any(axis=1)])

    def _find_chosen(self, inputs: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Tell which attributes have been chosen before."""
        return np.array([attribute.name in inputs.get("chosen", ()) for attribute in self.of])

    def count(self, block: Block, **inputs: Any) -> Counts:
        """Return this block's joint histograms of each context with the target."""
        return count_once(block, self.of, self.context_size + 1, self.target)

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table of each context with the target."""
        return self._subsets(self.context_size + 1, self.target).tables(self.of)

    def answer(self, counts: Counts, **inputs: Any) -> NDArray[np.float64]:
        """Return the scores, shape (candidates,)."""
        layout = self._subsets(self.context_size + 1, self.target)
        possible = np.flatnonzero(~self._find_chosen(inputs)[layout.members].any(axis=1))
        return np.asarray(scores_of(counts, layout, possible, self.target) / UNITS)

    def counting(
        self, engine: Any, rows: Any, **inputs: Any
    ) -> Generator[Callable[[Block], NDArray[Any]], NDArray[Any], NDArray[np.float64]]:
        """Return the scores. If there are several targets, the counts are made once for all of them."""
        if self.alone:
            alone: NDArray[np.float64] = yield from super().counting(engine, rows, **inputs)
            return alone
        sums = yield from all_sums(engine, rows, self.of, self.context_size + 1)
        return sums.scores(self._contexts(inputs), self.target) / UNITS


@final
@attrs.frozen
class CommonContextScores(_SubsetScores):
    """The sum of -N H(Y|S without Y) over all attributes Y, for each context S of a given size.

    All attributes of the metric are targets; a context has two attributes or more.
    """

    name = "common-context-scores"
    _determined = "all others"

    def _declare(self, bounds: RowBounds) -> tuple[Sensitivity, ...]:
        """Return the changes of the sum, from the changes of one term (see `sensitivities`).

        There are m terms, k of them for attributes Y in S. An added row lowers the terms with Y not in S by g(n_S) -
        g(n_SY), and those with Y in S by g(n of S without Y) - g(n_S). With a = g(n_S), a fall with Y not in S is at
        most a, and one with Y in S is at most G - a. So together they are at most (m - k) a + k (G - a), which is at
        most max(m - k, k) G for a in [0, G].
        """
        return bounds.of_common_scores([a.size for a in self.of], self.context_size)

    def candidates(self, **inputs: Any) -> Sequence[tuple[str, ...]]:
        """Return the contexts, each as names of attributes."""
        return Contexts(self.of, self._subsets(self.context_size).members)

    def count(self, block: Block, **inputs: Any) -> Counts:
        """Return this block's joint histograms of contexts, then of contexts with each target."""
        return np.concatenate([count_once(block, self.of, self.context_size + more, None) for more in (0, 1)])

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross tables of contexts, then of contexts with each target."""
        each = [self._subsets(self.context_size + more).tables(self.of) for more in (0, 1)]
        return attrs.evolve(each[0], tables=[table for one in each for table in one.tables])

    def answer(self, counts: Counts, **inputs: Any) -> NDArray[np.float64]:
        """Return the scores, shape (contexts,)."""
        scores = np.zeros(self.answer_length, dtype=np.int64)
        inside, outside = self._subsets(self.context_size), self._subsets(self.context_size + 1)
        end = inside.offsets[-1]
        for layout, part in ((inside, counts[:end]), (outside, counts[end:])):
            for target in range(len(self.of)):
                which = subsets_with(layout, target)
                members = layout.members[which]
                of_target = scores_of(part, layout, which, target)
                if layout is inside:
                    scores[which] += of_target
                else:
                    rest = members[members != target].reshape(len(which), -1)
                    scores[[inside.position[tuple(context)] for context in rest.tolist()]] += of_target
        return scores / UNITS


@attrs.frozen
class _PairEntropies(OfEntropies):
    """Entropies of all attributes and of some pairs of them, from which symmetric uncertainties are computed.

    Attributes
    ----------
    of
        The attributes of the metric.
    target
        The position of the attribute whose pairs are asked for; None for all pairs.
    bounds
        The public facts about the number of rows.
    """

    integer = False
    of_all: ClassVar[str]  # words for the other entropies in the answer
    of_target: ClassVar[str]  # the same words if there is a target
    of: tuple[Attribute, ...] = attrs.field(converter=as_attributes)
    target: int | None
    bounds: RowBounds

    @property
    def text(self) -> str:
        """Name the target, if there is one."""
        pairs = self.of_all if self.target is None else self.of_target.format(self.of[self.target].name)
        return f"entropies of all attributes and of {pairs}"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of all attributes of the metric."""
        return tuple(a.name for a in self.of)

    @property
    def answer_length(self) -> int:
        """One number per attribute, and one per pair."""
        return len(self.of) + len(self._layout.members)

    @property
    def _layout(self) -> Subsets:
        return subsets(tuple(a.size for a in self.of), 2, self.target)

    @property
    def listed(self) -> list[tuple[int, int]]:
        """The pairs, as positions of attributes, in the order of the answer."""
        return [(a, b) for a, b in self._layout.members.tolist()]

    def count(self, block: Block, **inputs: Any) -> Counts:
        """Return this block's joint histograms of the pairs."""
        return count_once(block, self.of, 2, self.target)

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table of each pair."""
        return self._layout.tables(self.of)

    def _entropies(self, counts: Counts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return N H of each attribute and of each pair, as whole numbers of units (see `entropy_terms`)."""
        layout = self._layout
        alone = []
        for k in range(len(self.of)):
            # any attribute whose pair with k is in the layout
            other = self.target if self.target not in (None, k) else int(k == 0)
            alone.append(layout.histogram(counts, k, other).sum(axis=1))
        rows = alone[0].sum(keepdims=True)
        f = Terms.of(rows, counts, *alone)
        first = [f(rows) - f(own).sum() for own in alone]
        return np.concatenate(first), f(rows) - np.add.reduceat(f(counts), layout.offsets[:-1])

    def _matrix(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of pairs as a symmetric matrix, infinite for pairs that were not asked for."""
        matrix = np.full((len(self.of), len(self.of)), np.inf)
        for (a, b), value in zip(self.listed, values.tolist(), strict=True):
            matrix[a, b] = matrix[b, a] = value
        return matrix


@final
@attrs.frozen
class Entropies(_PairEntropies):
    """N H of each attribute, then of each pair that is asked for. This is the answer that the paper releases."""

    name = "entropies"
    scored_formulas = (ENTROPY,)
    of_all, of_target = "all pairs", "the pairs with {}"

    def _declare(self, bounds: RowBounds) -> tuple[Sensitivity, ...]:
        pairs = [self.of[a].size * self.of[b].size for a, b in self.listed]
        return bounds.of_entropies([*(a.size for a in self.of), *pairs])

    def answer(self, counts: Counts, **inputs: Any) -> NDArray[np.float64]:
        """Return the entropies, single attributes first."""
        return np.concatenate(self._entropies(counts)) / UNITS

    def read(self, released: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the released entropies of attributes, and of pairs as a matrix."""
        return released[: len(self.of)], self._matrix(released[len(self.of) :])


@final
@attrs.frozen
class ConditionalEntropies(_PairEntropies):
    """N H of each attribute, weighted, then N H(b|a) of each pair, where b is the target if there is one.

    A pair's mutual information is H(b) - H(b|a), so it has the noise of two numbers and not of three. An attribute's
    entropy is needed for many pairs (weight 2), or for all pairs with the target (weight 1), or only for one
    denominator (weight 1/4). The larger the weight of a number, the smaller is its noise compared with the others.
    """

    name = "conditional-entropies"
    of_all, of_target = "one attribute given another", "{} given each other"

    def _declare(self, bounds: RowBounds) -> tuple[Sensitivity, ...]:
        sizes = [a.size for a in self.of]
        given: list[list[int]] = [[] for _ in sizes]
        for a, b in self.conditions:
            given[a].append(sizes[b])
        return bounds.of_conditional_entropies(self.weights, sizes, given)

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """The weight of each attribute's entropy."""
        if self.target is None:
            return (Fraction(2),) * len(self.of)
        return tuple(Fraction(1) if k == self.target else Fraction(1, 4) for k in range(len(self.of)))

    @property
    def conditions(self) -> list[tuple[int, int]]:
        """The pairs (a, b) of H(b|a), in the order of the answer."""
        return [(b, a) if a == self.target else (a, b) for a, b in self.listed]

    def answer(self, counts: Counts, **inputs: Any) -> NDArray[np.float64]:
        """Return the weighted entropies, then the conditional ones."""
        alone, joint = self._entropies(counts)
        conditional = joint - alone[[a for a, _ in self.conditions]]
        return np.concatenate([alone * np.array(self.weights, dtype=np.float64), conditional]) / UNITS

    def read(self, released: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the released entropies of attributes, and of pairs as a matrix."""
        alone = released[: len(self.of)] / np.array(self.weights, dtype=np.float64)
        return alone, self._matrix(released[len(self.of) :] + alone[[a for a, _ in self.conditions]])
