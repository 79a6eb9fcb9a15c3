"""Pairs of unions of leaves, one of either tree, grown from single leaves while their cautious Jaccard index rises."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpframework_trees.kernels.arrays import Floats, Integers

BOTH = 2  # the place in `rows` of what both unions hold


class Unions(NamedTuple):
    """A union of leaves of either tree (side 0 and 1), with the sums that say what another leaf adds.

    Attributes
    ----------
    table
        Noisy counts, shape (leaves of the left tree, leaves of the right).
    leaves
        How many there are on either side.
    whole
        The rows of each leaf, shape (2, leaves).
    total
        All rows.
    member
        Which leaves are in the unions, shape (2, leaves).
    inside
        The rows of each leaf that the other side's union holds, shape (2, leaves).
    sizes
        How many leaves are in either union.
    added
        How many times either union has grown since its start.
    rows
        The support of either union, and of both.
    """

    table: Floats
    leaves: Integers
    whole: Floats
    total: float
    member: NDArray[np.bool_]
    inside: Floats
    sizes: Integers
    added: Integers
    rows: Floats


@njit(nogil=True, cache=True)
def grow_unions(pair: Unions, variance: float, most_added: int, unions: NDArray[np.bool_]) -> int:
    """Fill in a union of leaves of the left and one of the right tree, side by side, for each start.

    A start is a leaf or all but one on either side; leaves, or all but one, are joined to either side, `most_added`
    times a side at most, while the cautious Jaccard index grows. Returns how many pairs of unions were looked at.
    """
    left, right = pair.table.shape
    looked_at = 0
    for start in range(len(unions)):
        negated, cell = start // (left * right), start % (left * right)
        for side in range(2):
            pair.sizes[side] = pair.added[side] = 0
            pair.rows[side] = 0.0
            for k in range(pair.leaves[side]):
                pair.member[side, k], pair.inside[side, k] = False, 0.0
        pair.rows[BOTH] = 0.0
        score, step = 0.0, 0
        while True:
            if step < 2:  # the start
                side, leaf = step, cell // right if step == 0 else cell % right
                rest = negated >= 2 if step == 0 else negated % 2 == 1
            else:
                if step == 2:
                    both, support, size = pair.rows[BOTH], pair.rows[0], pair.sizes[0]
                    score = _cautious_jaccard(size, pair.sizes[1], left, right, both, support, pair.rows[1], variance)
                    looked_at += 1
                score, side, leaf, rest, looked = _best_addition(pair, score, variance, most_added)
                looked_at += looked
                if side < 0:
                    break
                pair.added[side] += 1
            _join(pair, side, leaf, rest)
            step += 1
        for k in range(left):
            unions[start, k] = pair.member[0, k]
        for k in range(right):
            unions[start, left + k] = pair.member[1, k]
    return looked_at


@njit(nogil=True, cache=True, inline="always")
def _best_addition(pair: Unions, score: float, variance: float, most_added: int) -> tuple[float, int, int, bool, int]:
    """Return the best index above `score` that one more leaf, or rest, reaches, and which; the side is -1 if none does.

    The last number says how many were looked at.
    """
    side, leaf, rest, looked_at = -1, -1, False, 0
    for own in range(2):
        if pair.added[own] >= most_added:
            continue
        other = 1 - own
        for k in range(pair.leaves[own]):
            for negated in range(pair.member[own, k], 2):  # a leaf that is in the union adds nothing, its rest does
                both, support, size = _joined(pair, own, k, negated == 1)
                looked_at += 1
                reached = _cautious_jaccard(
                    size,
                    pair.sizes[other],
                    pair.leaves[own],
                    pair.leaves[other],
                    both,
                    support,
                    pair.rows[other],
                    variance,
                )
                if reached > score + 1e-12:
                    score, side, leaf, rest = reached, own, k, negated == 1
    return score, side, leaf, rest, looked_at


@njit(nogil=True, cache=True, inline="always")
def _joined(pair: Unions, side: int, leaf: int, rest: bool) -> tuple[float, float, int]:
    """Return the support of both, and the support and size of one side, if a leaf, or all but it, were joined to that.

    A leaf in the union and the rest together are everything.
    """
    if not rest:
        return (
            pair.rows[BOTH] + pair.inside[side, leaf],
            pair.rows[side] + pair.whole[side, leaf],
            pair.sizes[side] + 1,
        )
    if pair.member[side, leaf]:
        return pair.rows[1 - side], pair.total, pair.leaves[side]
    return (
        pair.rows[1 - side] - pair.inside[side, leaf],
        pair.total - pair.whole[side, leaf],
        pair.leaves[side] - 1,
    )


@njit(nogil=True, cache=True)
def _cautious_jaccard(
    size: int,
    other_size: int,
    leaves: int,
    other_leaves: int,
    both: float,
    support: float,
    other_support: float,
    variance: float,
) -> float:
    """Return the Jaccard index of two unions less two standard deviations of its noise, to first order.

    One of them has `size` of its side's leaves, the other `other_size`; they share `both` rows.
    """
    both_cells = size * other_size
    apart_cells = size * other_leaves + other_size * leaves - 2 * both_cells
    apart = max(support + other_support - 2 * both, 0.0)
    both = max(both, 0.0)
    either = both + apart
    if either <= 0:
        return -1.0
    jaccard = both / either
    noise = (1 - jaccard) ** 2 * both_cells + jaccard**2 * apart_cells
    return jaccard - 2 * math.sqrt(noise * variance) / either


@njit(nogil=True, cache=True, inline="always")
def _join(pair: Unions, side: int, leaf: int, rest: bool) -> None:
    """Join a leaf, or all but it, to the union of one side."""
    other = 1 - side
    held = pair.member[side, leaf]
    pair.rows[BOTH], pair.rows[side], pair.sizes[side] = _joined(pair, side, leaf, rest)
    if rest:
        for k in range(pair.leaves[side]):
            pair.member[side, k] = True
    pair.member[side, leaf] = held or not rest
    for k in range(pair.leaves[other]):
        cell = pair.table[leaf, k] if side == 0 else pair.table[k, leaf]
        if not rest:
            pair.inside[other, k] += cell
        else:
            pair.inside[other, k] = pair.whole[other, k] if held else pair.whole[other, k] - cell
