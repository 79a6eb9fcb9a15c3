"""Pairs of attributes that depend on each other, selected one after another so that they form a forest."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, as_attributes
from dpframework.formulas import Cells, ScoreClaims, absolute, cells, public, score_claims
from dpframework.plan import Node, repeat, step
from dpframework.queries import CandidateScores, Norm, Sensitivity
from dpframework.run import PrivateTable
from dpframework.tables import Block, JointCounts
from dpframework_distance.distance_budget import DistanceBudget
from dpframework_distance.subsets import Counts, Subsets, count_once, subsets

STEP = "edge"


def trees_of(number: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return the tree of each attribute in a forest, as the number of the tree's first attribute.

    Examples
    --------
    >>> trees_of(4, [(0, 2), (2, 3)])
    [0, 1, 0, 0]
    """
    tree = list(range(number))
    for a, b in edges:
        low, high = sorted((tree[a], tree[b]))
        tree = [low if one == high else one for one in tree]
    return tree


_CELLS = cells("left", "entered")
_EXPECTED = [public(name, 0, 2**31) for name in ("expected_left", "expected_entered")]


def _apart(counts: NDArray[Any], expected: NDArray[Any]) -> NDArray[Any]:
    """Return by how much each count differs from its expected count, which is public."""
    return np.asarray(np.abs(counts.astype(np.int64) - expected))


def _distance(counts: NDArray[np.int64], parameters: Mapping[str, Any]) -> float:
    return float(_apart(counts, np.array([float(parameters[str(one)]) for one in _EXPECTED])).sum())


_DISTANCE = score_claims(
    "pair-dependence",
    Cells(_CELLS, absolute(_CELLS[0] - _EXPECTED[0]) + absolute(_CELLS[1] - _EXPECTED[1])),
    1,
    1,
    2,
    _distance,
)


@final
@attrs.frozen
class PairDependence(CandidateScores):
    """For each pair of attributes, the l1 distance of their joint histogram from independence.

    The counts under independence are n p_a p_b, rounded to whole numbers. Here n is the estimated number of rows, and
    p_a and p_b are the estimated shares of two values. These follow from the estimated number of rows of each value,
    which is given at run time (`marginals`, shape (sum of sizes,)). The earlier choices (`chosen`, pairs of names) are
    given too, since a pair of attributes that are already connected is not a candidate.

    Attributes
    ----------
    of
        The attributes of the metric.
    """

    name = "pair-dependence"
    integer = True
    of: tuple[Attribute, ...] = attrs.field(converter=as_attributes)

    @property
    def text(self) -> str:
        """Say how many pairs of attributes there are."""
        return f"dependence of each of {self.answer_length} pairs of attributes"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of all attributes of the metric."""
        return tuple(a.name for a in self.of)

    @property
    def answer_length(self) -> int:
        """The number of pairs."""
        return len(self.of) * (len(self.of) - 1) // 2

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """Return the sensitivity, which is 1 when a row is added or removed and 2 when one is replaced.

        A score is the sum over cells of `|count - expected|`. The expected numbers are public and the same on both
        tables. An added row changes one count of a pair by 1, so that the pair's score rises or falls by at most 1, and
        one score may rise while another falls. A replaced row changes two counts of a pair, or none.
        """
        source = "an l1 distance from a public table: one cell changes by 1, or two do"
        return (Sensitivity(Norm.LINF, 1, 2, source=source),)

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """The claim about the two cells that a replaced row is in, before and after. It changes no other cell."""
        return (_DISTANCE,)

    def candidates(self, **inputs: Any) -> Sequence[tuple[str, str]]:
        """Return the pairs that would connect two trees, as names of attributes."""
        return [(self.of[a].name, self.of[b].name) for a, b in self._layout.members[self._possible(inputs)].tolist()]

    def count(self, block: Block, **inputs: Any) -> Counts:
        """Return this block's joint histograms of all pairs."""
        return count_once(block, self.of, 2, None)

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table of each pair."""
        return self._layout.tables(self.of)

    def answer(self, counts: Counts, **inputs: Any) -> NDArray[np.int64]:
        """Return the scores of the candidates."""
        marginals = np.asarray(inputs["marginals"], dtype=np.float64)
        total = max(float(marginals[: self.of[0].size].sum()), 1.0)
        first, second = _values_of_cells(tuple(a.size for a in self.of))
        expected = np.rint(marginals[first] * marginals[second] / total).astype(np.int64)
        return np.add.reduceat(_apart(counts, expected), self._layout.offsets[:-1])[self._possible(inputs)]

    @property
    def _layout(self) -> Subsets:
        return subsets(tuple(a.size for a in self.of), 2)

    def _possible(self, inputs: Any) -> NDArray[np.bool_]:
        position = {attribute.name: k for k, attribute in enumerate(self.of)}
        chosen = [(position[a], position[b]) for a, b in inputs["chosen"]]
        tree = np.array(trees_of(len(self.of), chosen))
        first, second = self._layout.members.T
        return np.asarray(tree[first] != tree[second])


@functools.lru_cache(maxsize=8)
def _values_of_cells(sizes: tuple[int, ...]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the two values of each cell of all pairs' joint histograms, as positions among all attributes' values."""
    places = np.split(np.arange(sum(sizes), dtype=np.int32), np.cumsum(sizes)[:-1])
    pairs = list(itertools.combinations(places, 2))
    first = [np.repeat(one, len(other)) for one, other in pairs]
    second = [np.tile(other, len(one)) for one, other in pairs]
    return np.concatenate(first), np.concatenate(second)


def plan(among: Sequence[Attribute], number: int, budget: DistanceBudget, share: Fraction, uses: Any) -> Node:
    """Plan `number` selections that share a part of the budget."""
    return repeat(number, step(STEP, PairDependence(among), budget.selector(share / number), uses=uses))


def release(
    table: PrivateTable, among: Sequence[Attribute], number: int, marginals: Sequence[NDArray[np.float64]]
) -> list[tuple[int, int]]:
    """Release `number` edges, given estimated marginals. Return them as positions (a, b) with a < b."""
    position = {attribute.name: k for k, attribute in enumerate(among)}
    release_edge = functools.partial(table.release, STEP, marginals=np.concatenate(list(marginals)))
    chosen: tuple[tuple[str, str], ...] = ()
    for _ in range(number):
        chosen = (*chosen, release_edge(chosen=chosen))
    return [(position[a], position[b]) for a, b in chosen]
