"""Which marginals may be selected: public, from the attributes' sizes and the limits alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from dpframework_tables.junction import JunctionTree, Set, cells_of, cliques_of, elimination_order

MOST_COUNTED = 1 << 22  # cells of all candidates together: 32 MiB a block of rows


def candidate_sets(sizes: Sequence[int], order: int, most: int) -> list[Set]:
    """Return the sets of two attributes up to `order`, of at most `most` cells each, in lexicographic order.

    Where they have too many cells together to count, the largest are left out.

    Examples
    --------
    >>> candidate_sets([2, 3, 50], 3, 100)
    [(0, 1), (0, 2)]
    """
    listed = [
        (math.prod(sizes[a] for a in one), one)
        for k in range(2, order + 1)
        for one in itertools.combinations(range(len(sizes)), k)
    ]
    fitting = sorted(one for one in listed if one[0] <= most)
    sums = itertools.accumulate(cells for cells, _ in fitting)
    return sorted(one for (_, one), total in zip(fitting, sums, strict=True) if total <= MOST_COUNTED)


def rank(number: int, pairs: Iterable[Set]) -> int:
    """Return how many pairs of attributes a forest can have, whichever of some pairs are taken.

    Examples
    --------
    >>> rank(4, [(0, 1), (1, 2), (0, 2)])
    2
    """
    part = list(range(number))
    for pair in pairs:
        part = join_parts(part, pair)
    return number - len(set(part))


def join_parts(part: Sequence[int], one: Set) -> list[int]:
    """Return the part of a forest that each attribute is in, once the parts of some attributes are one.

    Examples
    --------
    >>> join_parts([0, 1, 1, 3], (2, 3))
    [0, 1, 1, 1]
    """
    names = {part[a] for a in one}
    return [min(names) if p in names else p for p in part]


def room_for(
    sizes: Sequence[int], sets: Iterable[Set], measured: Sequence[Set], now: JunctionTree, most: float
) -> list[int]:
    """Return the places of the sets that may be measured next, so that the junction tree has at most `most` cells.

    Whether one may follows from the sets measured before and from public sizes. Attributes are eliminated in the order
    that fits the tree of now, so that `tree_for` finds a tree as small.

    Parameters
    ----------
    sizes
        The number of codes of each attribute.
    sets
        Those that may be measured.
    measured
        The sets measured before.
    now
        Their tree.
    most
        The most cells.
    """
    order = elimination_order(sizes, now.cliques)
    cliques = [set(one) for one in now.cliques]
    fits = now.cells <= most
    found = []
    for k, one in enumerate(sets):
        if any(clique.issuperset(one) for clique in cliques):
            allowed = fits
        else:
            allowed = cells_of(sizes, cliques_of(sizes, [*measured, one], order)) <= most
        if allowed:
            found.append(k)
    return found


def tree_for(sizes: Sequence[int], measured: Sequence[Set], now: JunctionTree, last: Set) -> JunctionTree:
    """Return the smallest of the trees for some sets and one more: today's, or by its order, or by min-fill."""
    if any(set(clique).issuperset(last) for clique in now.cliques):
        return now
    before = cliques_of(sizes, [*measured, last], elimination_order(sizes, now.cliques))
    anew = cliques_of(sizes, [*measured, last])
    return JunctionTree.of_cliques(sizes, min(anew, before, key=lambda cliques: cells_of(sizes, cliques)))
