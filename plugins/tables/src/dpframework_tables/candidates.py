"""The marginals that may be selected, which follow from public sizes and limits and from earlier selections."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from dpframework_tables.junction import JunctionTree, Set, cells_of, cliques_of, elimination_order

MOST_COUNTED = 1 << 22  # the most cells of all candidates together: counting them takes 32 MiB per block of rows


def candidate_sets(sizes: Sequence[int], order: int, most: int) -> list[Set]:
    """Return the sets of 2 to `order` attributes with at most `most` cells each, in lexicographic order.

    If all of them together have more than `MOST_COUNTED` cells, the largest sets are left out.

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
    """Return the number of pairs in a spanning forest of the given pairs of attributes.

    It is the same for every spanning forest.

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
    """Return the tree of a forest that each attribute is in, after the trees of some attributes have been joined.

    A tree is given by the smallest position of its attributes.

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
    """Return the positions of the sets that may be measured next, so that the junction tree has at most `most` cells.

    The answer depends on public sizes and on the sets that were measured before. Attributes are eliminated in the order
    that suits the current tree. `tree_for` also tries another order, so it finds a tree at most as large.

    Parameters
    ----------
    sizes
        The number of codes of each attribute.
    sets
        The sets of attributes to choose from, each as positions.
    measured
        The sets measured before.
    now
        The junction tree of the measured sets.
    most
        The most cells that the next tree may have.
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
    """Return a small junction tree for the sets measured before and one more.

    It is the current tree if one of its cliques holds the new set. Otherwise it is the smaller of two new trees: one by
    the elimination order of the current tree, the other by min-fill.
    """
    if any(set(clique).issuperset(last) for clique in now.cliques):
        return now
    before = cliques_of(sizes, [*measured, last], elimination_order(sizes, now.cliques))
    anew = cliques_of(sizes, [*measured, last])
    return JunctionTree.of_cliques(sizes, min(anew, before, key=lambda cliques: cells_of(sizes, cliques)))
