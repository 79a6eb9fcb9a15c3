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
def grow_unions(table: Floats, variance: float, most_added: int, unions: NDArray[np.bool_]) -> int:
    """Fill in a union of leaves of the left and one of the right tree, side by side, for each start.

    A start is a leaf or all but one on either side; leaves, or all but one, are joined to either side, `most_added`
    times a side at most, while the cautious Jaccard index grows. Returns how many pairs of unions were looked at.
    """
    pair = _empty_unions(table)
    left, right = table.shape
    looked_at = 0
    for start in range(len(unions)):
        negated, cell = start // table.size, start % table.size
        pair.member[:], pair.inside[:] = False, 0.0
        pair.sizes[:], pair.added[:], pair.rows[:] = 0, 0, 0.0
        _join(pair, 0, cell // right, negated >= 2)
        _join(pair, 1, cell % right, negated % 2 == 1)
        looked_at += _grow(pair, variance, most_added)
        unions[start, :left] = pair.member[0, :left]
        unions[start, left:] = pair.member[1, :right]
    return looked_at


@njit(nogil=True, cache=True)
def _empty_unions(table: Floats) -> Unions:
    leaves = np.array(table.shape)
    whole = np.zeros((2, leaves.max()))
    whole[0, : leaves[0]], whole[1, : leaves[1]] = table.sum(axis=1), table.sum(axis=0)
    sizes, added = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    member, inside = np.zeros(whole.shape, dtype=np.bool_), np.zeros(whole.shape)
    return Unions(table, leaves, whole, table.sum(), member, inside, sizes, added, np.zeros(3))


@njit(nogil=True, cache=True)
def _grow(pair: Unions, variance: float, most_added: int) -> int:
    """Join what raises the index most, until nothing does; return how many pairs of unions were looked at."""
    best = _cautious_jaccard(pair, 0, pair.rows[BOTH], pair.rows[0], pair.sizes[0], variance)
    looked_at = 1
    while True:
        best, side, leaf, rest, looked = _best_addition(pair, best, variance, most_added)
        looked_at += looked
        if side < 0:
            return int(looked_at)
        _join(pair, side, leaf, rest)
        pair.added[side] += 1


@njit(nogil=True, cache=True, inline="always")
def _best_addition(pair: Unions, score: float, variance: float, most_added: int) -> tuple[float, int, int, bool, int]:
    """Return the best index above `score` that one more leaf, or rest, reaches, and which; the side is -1 if none does.

    The last number says how many were looked at.
    """
    side, leaf, rest, looked_at = -1, -1, False, 0
    for own in range(2):
        if pair.added[own] >= most_added:
            continue
        for k in range(pair.leaves[own]):
            for negated in range(pair.member[own, k], 2):  # a leaf that is in the union adds nothing, its rest does
                both, support, size = _joined(pair, own, k, negated == 1)
                looked_at += 1
                reached = _cautious_jaccard(pair, own, both, support, size, variance)
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


@njit(nogil=True, cache=True, inline="always")
def _cautious_jaccard(pair: Unions, side: int, both: float, support: float, size: int, variance: float) -> float:
    """Return the Jaccard index of two unions less two standard deviations of its noise, to first order.

    One side has a support and size that are given, and shares `both` rows with the other; that is as it is in `pair`.
    """
    other = 1 - side
    other_size = pair.sizes[other]
    both_cells = size * other_size
    apart_cells = size * pair.leaves[other] + other_size * pair.leaves[side] - 2 * both_cells
    apart = max(support + pair.rows[other] - 2 * both, 0.0)
    both = max(both, 0.0)
    either = both + apart
    if either <= 0:
        return -1.0
    jaccard = both / either
    noise = (1 - jaccard) ** 2 * both_cells + jaccard**2 * apart_cells
    return float(jaccard - 2 * math.sqrt(noise * variance) / either)


@njit(nogil=True, cache=True, inline="always")
def _join(pair: Unions, side: int, leaf: int, rest: bool) -> None:
    """Join a leaf, or all but it, to the union of one side."""
    other = 1 - side
    held = pair.member[side, leaf]
    pair.rows[BOTH], pair.rows[side], pair.sizes[side] = _joined(pair, side, leaf, rest)
    if rest:
        pair.member[side, : pair.leaves[side]] = True
    pair.member[side, leaf] = held or not rest
    for k in range(pair.leaves[other]):
        cell = pair.table[leaf, k] if side == 0 else pair.table[k, leaf]
        if not rest:
            pair.inside[other, k] += cell
        else:
            pair.inside[other, k] = pair.whole[other, k] if held else pair.whole[other, k] - cell
