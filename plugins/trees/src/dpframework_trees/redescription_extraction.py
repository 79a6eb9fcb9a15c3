"""Redescriptions from a pair of trees: a union of leaves of one tree that nearly matches a union of the other's leaves.

Source: Mihelčić and Miettinen 2023, section 4.5 (Algorithm 6). All supports come from one noisy table of the leaves of
one tree by the leaves of the other. Every row falls in one leaf of each tree, so it is in one cell of the table, and
the table's margins are the supports of the leaves. (The paper releases these supports again, at half the budget.) All
of this is post-processing.
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
from dpframework_trees.complete_tree import CompleteTree

MOST_ADDED = 3  # how many leaves, or complements of leaves, may be joined to the first one of each union
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
        The least number of rows that both sides hold for.
    max_support
        The largest share of all rows that both sides hold for. It keeps out near-tautologies, which nearly always hold.
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

    A leaf whose path contradicts itself has no row in any table of the schema. Its noisy counts are noise alone, so it
    is left out.

    Parameters
    ----------
    tree
        The tree whose leaves are joined.

    Attributes
    ----------
    possible
        Whether a row may be in each leaf, shape (leaves,).
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
        """Return the shortened description of a union of leaves, or None if it holds everywhere or nowhere.

        Parameters
        ----------
        union
            Whether each of the possible leaves is in the union, shape (possible leaves,).
        """
        key = union.tobytes()
        if key not in self._described:
            described = self._below(0, union)
            short = self._shortener.shorten(described) if isinstance(described, Description) else _NEVER
            self._described[key] = None if short in (_ALWAYS, _NEVER) else short
        return self._described[key]

    def _below(self, node: int, union: NDArray[np.bool_]) -> Description | bool | None:
        """Describe the union's leaves below a node, given the outcomes above it. None if no row can be at the node.

        True stands for all rows of the node, and False for none of them.
        """
        if node >= len(self._tests):
            leaf = node - len(self._tests)
            return bool(union[self._position[leaf]]) if self.possible[leaf] else None
        test, other = self._tests[node], self._rests[node]
        held, rest = self._below(2 * node + 1, union), self._below(2 * node + 2, union)
        if held is None or rest is None:  # The outcome of this test follows from the outcomes above it.
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
    """Return the redescriptions of a pair of trees, and how many candidates were looked at.

    A candidate starts with a leaf, or the complement of one, on each side. Up to three more leaves or complements are
    joined to each side, as long as that raises the Jaccard index minus two standard deviations of its noise.

    Parameters
    ----------
    trees
        The tree of each view.
    counts
        Noisy counts, shape (leaves of the left tree, leaves of the right).
    variance
        The variance of the noise of one cell.
    constraints
        The conditions that a redescription must fulfil.
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
    for k in np.flatnonzero(_fulfil_constraints(both, left_rows, right_rows, total, constraints)):
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
    """Write the unions grown from each start to `unions`, and return how many pairs were tried (`grow_unions`)."""
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
    """Return the distinct rows of an array of unions, each once."""
    packed = np.packbits(unions, axis=1)
    order = np.lexsort(packed.T[::-1])
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (packed[order[1:]] != packed[order[:-1]]).any(axis=1)
    return unions[order[first]]


def _fulfil_constraints(
    both: NDArray[np.float64],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    rows: float,
    constraints: Constraints,
) -> NDArray[np.bool_]:
    """Tell which pairs of sides fulfil all constraints, from the noisy supports of the pairs and of each side."""
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
    """Return the least noisy Jaccard index at which sides with these supports fulfil the constraints, shape (pairs,).

    The sides must share enough rows: at least the least support, and so many that the p-value is small enough.
    """
    size = max(round(rows), 1)
    expected = np.prod([np.clip(np.rint(side), 0, size) / size for side in (left, right)], axis=0)
    least = np.maximum(_first_below(constraints.max_p_value, size, expected), constraints.min_support)
    return np.asarray(np.maximum(least / np.maximum(left + right - least, least), constraints.min_jaccard))


def _first_below(p_value: float, size: int, expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least number, at least 1, that a binomial variable reaches with probability `p_value` at most.

    The number is found by bisection, since importing `scipy.stats` takes half a second.
    """
    from scipy.special import betainc

    low, high = np.ones(expected.shape), np.full(expected.shape, size + 1.0)  # The variable never exceeds `size`.
    while (low < high).any():
        middle = (low + high) // 2
        fits = betainc(middle, size + 1 - middle, expected) <= p_value
        low, high = np.where(fits | (low == high), low, middle + 1), np.where(fits, middle, high)
    return low
