"""Unions of leaves of two trees, one union for each tree, grown while their cautious Jaccard index rises.

A union starts from a leaf or from the complement of one. The cautious Jaccard index is the noisy Jaccard index minus
two standard deviations of its noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpframework_trees.kernels.array_types import Floats, Integers

BOTH = 2  # the position in `rows` of the support of both unions


class Unions(NamedTuple):
    """A union of leaves of each tree (sides 0 and 1), with the counts from which the effect of one more leaf follows.

    The leaves of the left tree come first, then the leaves of the right tree.

    Attributes
    ----------
    table
        Noisy numbers of rows that a leaf shares with each leaf of the other side, shape (leaves, leaves).
    leaves
        The number of leaves on each side, shape (2,).
    whole
        The noisy number of rows of each leaf, shape (leaves,).
    total
        The noisy number of all rows.
    inside
        The noisy number of rows that each leaf shares with the other side's union, shape (leaves,).
    sizes
        The number of leaves in each union, shape (2,).
    added
        How many times each union has grown since its start, shape (2,).
    rows
        The support of each union, and of both together, shape (3,).
    """

    table: Floats
    leaves: Integers
    whole: Floats
    total: float
    inside: Floats
    sizes: Integers
    added: Integers
    rows: Floats


@njit(nogil=True, cache=True)
def grow_unions(pair: Unions, variance: float, most_added: int, unions: NDArray[np.bool_]) -> int:
    """Grow a union of leaves of the left tree and one of the right tree for each start, and write both to `unions`.

    A start is a leaf, or the complement of one, on each side. Leaves or complements are joined to the sides, at most
    `most_added` times on each, while the cautious Jaccard index grows. Returns how many pairs of unions were looked at.

    The two parts of a start are joined by the same code as all later leaves. In these two steps there is only one
    candidate. So this code is compiled once and not three times.
    """
    table, leaves, whole, _, inside, sizes, added, rows = pair
    left, right = leaves[0], leaves[1]
    looked_at = 0
    for start in range(len(unions)):
        member, negated, cell = unions[start], start // (left * right), start % (left * right)
        for k in range(left + right):
            inside[k] = 0.0
        for k in range(2):
            sizes[k], added[k], rows[k] = 0, -1, 0.0
        rows[BOTH], score, step = 0.0, 0.0, 0
        while True:
            first, end, low, high = 0, left + right, 0, 2
            if step < 2:
                first = cell // right if step == 0 else left + cell % right
                low = (negated >> (1 - step)) & 1
                end, high, score = first + 1, low + 1, -math.inf
            chosen, rest, both, support, size = -1, 0, 0.0, 0.0, 0
            for leaf in range(first, end):
                own = int(leaf >= left)
                if added[own] >= most_added:
                    continue
                for turned in range(
                    max(low, int(member[leaf])), high
                ):  # a leaf in the union adds nothing, but its complement does
                    new = _join(pair, own, leaf, turned == 1, member[leaf])
                    sides = sizes[1 - own], leaves[own], leaves[1 - own]
                    reached = _cautious_jaccard(new[2], *sides, new[0], new[1], rows[1 - own], variance)
                    looked_at += int(step > 0)
                    if reached > score + 1e-12:
                        score, chosen, rest = reached, leaf, turned
                        both, support, size = new
            if chosen < 0:
                break
            own, held = int(chosen >= left), member[chosen]
            rows[BOTH], rows[own], sizes[own] = both, support, size
            added[own] += 1
            for k in range(left + right):
                if int(k >= left) == own:
                    member[k] |= rest == 1
                elif rest == 0:
                    inside[k] += table[chosen, k]
                else:
                    inside[k] = whole[k] if held else whole[k] - table[chosen, k]
            member[chosen] = held or rest == 0
            step += 1
    return looked_at


@njit(nogil=True, cache=True, inline="always")
def _join(pair: Unions, side: int, leaf: int, rest: bool, held: bool) -> tuple[float, float, int]:
    """Return the supports and the size that a side would have if a leaf, or its complement (`rest`), were joined to it.

    These are the support of both unions, the support of this side, and its number of leaves. If this side's union
    already holds the leaf (`held`), then with the complement of that leaf it holds all rows.
    """
    if not rest:
        return pair.rows[BOTH] + pair.inside[leaf], pair.rows[side] + pair.whole[leaf], pair.sizes[side] + 1
    if held:
        return pair.rows[1 - side], pair.total, pair.leaves[side]
    return pair.rows[1 - side] - pair.inside[leaf], pair.total - pair.whole[leaf], pair.leaves[side] - 1


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
    """Return the Jaccard index of two unions minus two standard deviations of its noise, to first order.

    The unions have `size` and `other_size` leaves, out of `leaves` and `other_leaves`. They have `support` and
    `other_support` rows, and share `both` rows. `variance` is that of the noisy number of rows that two leaves of
    different trees share. The result is -1 if neither union has rows.
    """
    both_cells = size * other_size
    apart_cells = size * other_leaves + other_size * leaves - 2 * both_cells
    apart = max(support + other_support - 2 * both, 0.0)
    both = max(both, 0.0)
    either = both + apart
    if either <= 0:
        return -1.0
    jaccard = both / either
    noise = (1 - jaccard) * (1 - jaccard) * both_cells + jaccard * jaccard * apart_cells
    return jaccard - 2 * math.sqrt(noise * variance) / either
