"""Redescriptions from a pair of trees: unions of leaves of one that hold for nearly the rows of unions of the other.

Source: Mihelčić and Miettinen 2023, section 4.5 (Algorithm 6). All supports come from one noisy table of leaves by
leaves: leaves are disjoint, so a row is in one cell, and since every row falls in one leaf of either tree, the table's
margins are the supports of the leaves. (The paper releases those again, at half the budget.) All of this is
post-processing.
"""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.errors import InputError
from dpframework.patterns import And, Description, Literal, Noisy, Not, Or, Redescription
from dpframework.schema import View
from dpframework_trees.complete import CompleteTree

MOST_ADDED = 3  # leaves, or rests without one leaf, that are joined to either side


def _share(instance: Any, attribute: attrs.Attribute[float], value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError(f"{attribute.name} is {value!r}; a number from 0 to 1 is needed")


def _rows(instance: Any, attribute: attrs.Attribute[float], value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise InputError(f"{attribute.name} is {value!r}; a number of rows is needed, 0 or more")


@attrs.frozen
class Constraints:
    """What a redescription must fulfil, all on noisy counts.

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

    min_jaccard: float = attrs.field(default=0.1, validator=_share)
    min_support: float = attrs.field(default=10.0, validator=_rows)
    max_support: float = attrs.field(default=0.8, validator=_share)
    max_p_value: float = attrs.field(default=0.01, validator=_share)


def description_of(tree: CompleteTree, leaves: NDArray[np.bool_]) -> Description | None:
    """Return what holds in some leaves of a tree and nowhere else, shortened; None if it holds everywhere or nowhere.

    Parameters
    ----------
    tree
        The tree.
    leaves
        Which leaves, shape (leaves,).
    """
    described = _described(tree, leaves, 0, {})
    return described if isinstance(described, Description) else None


def _described(
    tree: CompleteTree, leaves: NDArray[np.bool_], node: int, known: dict[Literal, bool]
) -> Description | bool:
    """Describe the leaves below a node, given the outcomes of the tests above it."""
    if node >= len(tree.tests):
        return bool(leaves[node - len(tree.tests)])
    test = tree.test(node)
    if test in known:  # asked before: one side is empty
        return _described(tree, leaves, 2 * node + (1 if known[test] else 2), known)
    held = _described(tree, leaves, 2 * node + 1, {**known, test: True})
    rest = _described(tree, leaves, 2 * node + 2, {**known, test: False})
    if held == rest:
        return held
    if isinstance(held, bool) and isinstance(rest, bool):
        return test if held else Not(test)
    if isinstance(held, bool):
        assert isinstance(rest, Description)
        return Or((test, rest)) if held else And((Not(test), rest))
    if isinstance(rest, bool):
        return Or((Not(test), held)) if rest else And((test, held))
    return Or((And((test, held)), And((Not(test), rest))))


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
        Of the noise of one cell.
    constraints
        What they must fulfil.
    """
    from dpframework_trees.kernels import grow_unions

    left, right = trees[View.LEFT], trees[View.RIGHT]
    unions = np.zeros((4 * left.leaves * right.leaves, left.leaves + right.leaves), dtype=np.bool_)
    looked_at = grow_unions(np.asarray(counts, dtype=np.float64), variance, MOST_ADDED, unions)
    found: dict[tuple[Description, Description], Redescription] = {}
    rows = Noisy(float(counts.sum()), variance * counts.size)
    for union in np.unique(unions, axis=0):
        of_left, of_right = union[: left.leaves], union[left.leaves :]
        sides = description_of(left, of_left), description_of(right, of_right)
        if sides[0] is None or sides[1] is None:
            continue

        def cells(rows_of: NDArray[np.bool_], columns: NDArray[np.bool_]) -> Noisy:
            return Noisy(float(counts[np.ix_(rows_of, columns)].sum()), variance * rows_of.sum() * columns.sum())

        redescription = Redescription(
            sides[0],
            sides[1],
            both=cells(of_left, of_right),
            left_only=cells(of_left, ~of_right),
            right_only=cells(~of_left, of_right),
            rows=rows,
        )
        if fulfils(redescription, constraints):
            found.setdefault((sides[0], sides[1]), redescription)
    return list(found.values()), looked_at


def fulfils(redescription: Redescription, constraints: Constraints) -> bool:
    """Tell whether a redescription fulfils all constraints, on its noisy counts."""
    rows, support, p_value = redescription.rows, redescription.support.value, redescription.p_value
    assert rows is not None
    assert p_value is not None
    return (
        redescription.jaccard >= constraints.min_jaccard
        and constraints.min_support <= support <= constraints.max_support * rows.value
        and p_value <= constraints.max_p_value
    )
