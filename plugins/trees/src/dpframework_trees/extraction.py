"""Redescriptions from a pair of trees, as unions of leaves of one that nearly match unions of the other.

Source: Mihelčić and Miettinen 2023, section 4.5 (Algorithm 6). All supports come from one noisy table of leaves by
leaves: leaves are disjoint, so a row is in one cell, and since every row falls in one leaf of either tree, the table's
margins are the supports of the leaves. (The paper releases those again, at half the budget.) All of this is
post-processing.
"""

from __future__ import annotations

import math
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import And, Description, InputError, Or, Shortener, View, from_0_to_1, otherwise
from dpframework.redescriptions import Redescription, p_values
from dpframework.results import Noisy
from dpframework_trees.complete import CompleteTree

MOST_ADDED = 3  # leaves, or rests without one leaf, that are joined to either side
_ALWAYS, _NEVER = And(()), Or(())


def _rows(instance: Any, attribute: attrs.Attribute[float], value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise InputError(f"{attribute.name} is {value!r}; a number of rows is needed, 0 or more")


@attrs.frozen
class Constraints:
    """The conditions on a redescription, all on noisy counts.

    Attributes
    ----------
    min_jaccard
        The least Jaccard index.
    min_support
        The fewest rows that both sides hold for.
    max_support
        The largest share of all rows that both sides hold for: tautologies hold for nearly all.
    max_p_value
        The largest p-value.
    """

    min_jaccard: float = attrs.field(default=0.1, validator=from_0_to_1)
    min_support: float = attrs.field(default=10.0, validator=_rows)
    max_support: float = attrs.field(default=0.8, validator=from_0_to_1)
    max_p_value: float = attrs.field(default=0.01, validator=from_0_to_1)


@final
class LeafUnions:
    """The descriptions of unions of leaves of a tree.

    A leaf whose path contradicts itself has no row on any table of the schema: its noisy counts are noise alone, and
    it is left out.

    Parameters
    ----------
    tree
        The tree.

    Attributes
    ----------
    possible
        Which leaves a row may be in, shape (leaves,).
    """

    def __init__(self, tree: CompleteTree) -> None:
        self._tests = [tree.test(node) for node in range(len(tree.tests))]
        schema = tree.candidates.schema
        self._rests = [otherwise(test, schema[test.attribute]) for test in self._tests]
        literals = [*self._tests, *(literal for rest in self._rests for literal in rest.literals())]
        self._shortener = Shortener(schema, literals)
        self._described: dict[bytes, Description | None] = {}
        self.possible = np.array([not self._shortener.contradicts(tree.path(leaf)) for leaf in range(tree.leaves)])
        self._position = np.cumsum(self.possible) - 1

    def description(self, union: NDArray[np.bool_]) -> Description | None:
        """Return the shortened description of some leaves, or None if it holds everywhere or nowhere.

        Parameters
        ----------
        union
            Which of the possible leaves, shape (possible leaves,).
        """
        key = union.tobytes()
        if key not in self._described:
            described = self._below(0, union)
            short = self._shortener.shortened(described) if isinstance(described, Description) else _NEVER
            self._described[key] = None if short in (_ALWAYS, _NEVER) else short
        return self._described[key]

    def _below(self, node: int, union: NDArray[np.bool_]) -> Description | bool | None:
        """Describe the leaves below a node, given the outcomes above it, or return None if no row can be there."""
        if node >= len(self._tests):
            leaf = node - len(self._tests)
            return bool(union[self._position[leaf]]) if self.possible[leaf] else None
        test, other = self._tests[node], self._rests[node]
        held, rest = self._below(2 * node + 1, union), self._below(2 * node + 2, union)
        if held is None or rest is None:  # the outcome follows from those above
            return rest if held is None else held
        if held == rest:
            return held
        if isinstance(held, bool) and isinstance(rest, bool):
            return test if held else other
        if isinstance(held, bool):
            assert isinstance(rest, Description)
            return Or((test, rest)) if held else And((other, rest))
        if isinstance(rest, bool):
            return Or((other, held)) if rest else And((test, held))
        return Or((And((test, held)), And((other, rest))))


def extract(
    trees: dict[View, CompleteTree], counts: NDArray[Any], variance: float, constraints: Constraints
) -> tuple[list[Redescription], int]:
    """Return the redescriptions of a pair of trees, and how many were looked at.

    Every leaf or its negation on either side is a start; up to three more of a side's leaves, or negations, are joined
    to it as long as that raises the Jaccard index, less two standard deviations of its noise.

    Parameters
    ----------
    trees
        One tree a view.
    counts
        Noisy counts, shape (leaves of the left tree, leaves of the right).
    variance
        The variance of the noise of one cell.
    constraints
        What they must fulfil.
    """
    left, right = LeafUnions(trees[View.LEFT]), LeafUnions(trees[View.RIGHT])
    table = counts[np.ix_(left.possible, right.possible)].astype(np.float64)
    n_left, n_right = table.shape
    unions = np.zeros((4 * table.size, n_left + n_right), dtype=np.bool_)
    looked_at = _grow(table, variance, unions)
    of_left, of_right = np.split(_distinct(unions), [n_left], axis=1)
    total, left_rows, right_rows = table.sum(), of_left @ table.sum(axis=1), of_right @ table.sum(axis=0)
    both = ((of_left @ table) * of_right).sum(axis=1)
    floors = _shown_from(left_rows, right_rows, total, constraints)
    left_leaves, right_leaves = of_left.sum(axis=1), of_right.sum(axis=1)
    found = []
    for k in np.flatnonzero(_fulfilling(both, left_rows, right_rows, total, constraints)):
        sides = left.description(of_left[k]), right.description(of_right[k])
        if sides[0] is None or sides[1] is None:
            continue
        redescription = Redescription(
            sides[0],
            sides[1],
            both=Noisy(both[k], variance * left_leaves[k] * right_leaves[k]),
            left_only=Noisy(left_rows[k] - both[k], variance * left_leaves[k] * (n_right - right_leaves[k])),
            right_only=Noisy(right_rows[k] - both[k], variance * (n_left - left_leaves[k]) * right_leaves[k]),
            rows=Noisy(total, variance * table.size),
            shown_from=float(floors[k]),
        )
        found.append(redescription)
    return found, looked_at


def _grow(table: NDArray[np.float64], variance: float, unions: NDArray[np.bool_]) -> int:
    """Fill in the unions that grow from each start, and return the number of candidates (see `kernels.grow_unions`)."""
    from dpframework_trees.kernels import Unions, grow_unions

    left, right = table.shape
    both = np.zeros((left + right, left + right))
    both[:left, left:], both[left:, :left] = table, table.T
    pair = Unions(
        both,
        np.array(table.shape, dtype=np.int64),
        np.concatenate([table.sum(axis=1), table.sum(axis=0)]),
        float(table.sum()),
        inside=np.zeros(left + right),
        sizes=np.zeros(2, dtype=np.int64),
        added=np.zeros(2, dtype=np.int64),
        rows=np.zeros(3),
    )
    return int(grow_unions(pair, variance, MOST_ADDED, unions))


def _distinct(unions: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return each row once."""
    packed = np.packbits(unions, axis=1)
    order = np.lexsort(packed.T[::-1])
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (packed[order[1:]] != packed[order[:-1]]).any(axis=1)
    return unions[order[first]]


def _fulfilling(
    both: NDArray[np.float64],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    rows: float,
    constraints: Constraints,
) -> NDArray[np.bool_]:
    """Tell which redescriptions fulfil all constraints, from the noisy supports of both sides and of either one."""
    shared, apart = np.maximum(both, 0), np.maximum(left + right - 2 * both, 0)
    jaccard = np.divide(shared, shared + apart, out=np.zeros(len(both)), where=shared > 0)
    return np.asarray(
        (jaccard >= constraints.min_jaccard)
        & (both >= constraints.min_support)
        & (both <= constraints.max_support * rows)
        & (p_values(both, left, right, rows) <= constraints.max_p_value)
    )


def _shown_from(
    left: NDArray[np.float64], right: NDArray[np.float64], rows: float, constraints: Constraints
) -> NDArray[np.float64]:
    """Return the noisy Jaccard index from which sides with these supports fulfil the constraints.

    They do from a number of rows in both on: the least support, or the first number with a p-value that is small
    enough.
    """
    size = max(round(rows), 1)
    expected = np.prod([np.clip(np.rint(side), 0, size) / size for side in (left, right)], axis=0)
    least = np.maximum(_first_below(constraints.max_p_value, size, expected), constraints.min_support)
    return np.asarray(np.maximum(least / np.maximum(left + right - least, least), constraints.min_jaccard))


def _first_below(p_value: float, size: int, expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least number, at least 1, that a binomial variable reaches with at most that probability.

    By bisection: `scipy.stats` has it, and takes half a second to import.
    """
    from scipy.special import betainc

    low, high = np.ones(expected.shape), np.full(expected.shape, size + 1.0)  # no variable reaches more than the size
    while (low < high).any():
        middle = (low + high) // 2
        fits = betainc(middle, size + 1 - middle, expected) <= p_value
        low, high = np.where(fits | (low == high), low, middle + 1), np.where(fits, middle, high)
    return low
