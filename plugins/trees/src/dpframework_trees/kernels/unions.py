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
    """A union of leaves of either tree (side 0 and 1), with the sums that another leaf would add.

    The left tree's leaves come first, then the right one's.

    Attributes
    ----------
    table
        Noisy counts, shape (leaves, leaves): of a leaf with each leaf of the other side.
    leaves
        How many there are on either side.
    whole
        The rows of each leaf.
    total
        All rows.
    inside
        The rows of each leaf that the other side's union holds.
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
    inside: Floats
    sizes: Integers
    added: Integers
    rows: Floats


@njit(nogil=True, cache=True)
def grow_unions(pair: Unions, variance: float, most_added: int, unions: NDArray[np.bool_]) -> int:
    """Fill in a union of leaves of the left tree and one of the right for each start, from empty ones.

    A start is a leaf or all but one on either side; leaves, or all but one, are joined to either side, `most_added`
    times a side at most, while the cautious Jaccard index grows. Returns how many pairs of unions were looked at.

    What a start joins is found as all later ones are, as the best of a single one: one place is compiled, not three.
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
                ):  # a leaf that is in it adds nothing, its rest does
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
    """Return the support of both, and the support and size of one side, if a leaf, or all but it, were joined to that.

    A leaf in the union and the rest together are everything.
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
    noise = (1 - jaccard) * (1 - jaccard) * both_cells + jaccard * jaccard * apart_cells
    return jaccard - 2 * math.sqrt(noise * variance) / either
