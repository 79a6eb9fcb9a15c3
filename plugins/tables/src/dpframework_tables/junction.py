"""Junction trees over sets of attributes, and how many cells they have.

A model may be a product of tables, one for each of some sets of attributes. It is computed on a tree of cliques. Each
set lies in a clique, and the cliques that hold an attribute are connected (Lauritzen and Spiegelhalter 1988). The tree
follows from the sets and the attributes' sizes alone, so time and memory are known before anything is fitted.
Attributes are eliminated one after another. The next attribute is always one whose elimination adds the fewest edges
between its neighbours (min-fill). Among several such attributes it is the one whose clique has the fewest cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias, final

import attrs

Set: TypeAlias = "tuple[int, ...]"


def _neighbours(number: int, sets: Iterable[Set]) -> list[int]:
    """Return the attributes that share a set with each attribute, as a bit mask."""
    found = [0] * number
    for one in sets:
        mask = sum(1 << a for a in one)
        for a in one:
            found[a] |= mask & ~(1 << a)
    return found


def _members(mask: int) -> list[int]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def _fill(a: int, near: Sequence[int]) -> int:
    """Return twice the number of edges that eliminating an attribute adds between its neighbours."""
    around = near[a]
    return sum((around & ~near[b] & ~(1 << b)).bit_count() for b in _members(around))


def elimination_order(sizes: Sequence[int], sets: Iterable[Set]) -> list[int]:
    """Return an order in which to eliminate all attributes, by min-fill.

    Parameters
    ----------
    sizes
        The number of codes of each attribute.
    sets
        Sets of attributes, each as their positions.
    """
    near = _neighbours(len(sizes), sets)
    fills = {a: _fill(a, near) for a in range(len(sizes))}
    order = []
    while fills:
        a = min(fills, key=lambda a: (fills[a], math.prod(sizes[b] for b in _members(near[a])) * sizes[a], a))
        del fills[a]
        order.append(a)
        touched = 0
        for b in _eliminate(a, near):
            touched |= near[b] | 1 << b
        for b in _members(touched):
            fills[b] = _fill(b, near)
    return order


def _eliminate(a: int, near: list[int]) -> list[int]:
    """Connect an attribute's neighbours with each other, remove the attribute, and return the neighbours."""
    around = near[a]
    members = _members(around)
    for b in members:
        near[b] = (near[b] | around) & ~(1 << b) & ~(1 << a)
    return members


def cliques_of(sizes: Sequence[int], sets: Iterable[Set], order: Sequence[int] | None = None) -> list[Set]:
    """Return the maximal cliques of a triangulation, in the order in which attributes are eliminated.

    Parameters
    ----------
    sizes
        The number of codes of each attribute.
    sets
        Sets of attributes, each as their positions. An attribute that is in no set gets a clique of its own.
    order
        The order in which attributes are eliminated. By default it follows min-fill.

    Examples
    --------
    >>> cliques_of([2, 2, 2, 2], [(0, 1), (1, 2), (2, 3), (0, 3)])
    [(0, 1, 3), (1, 2, 3)]
    """
    given = list(sets)
    near = _neighbours(len(sizes), given)
    found: list[int] = []
    for a in elimination_order(sizes, given) if order is None else order:
        clique = near[a] | 1 << a
        if not any(clique & ~other == 0 for other in found):
            found.append(clique)
        _eliminate(a, near)
    return [tuple(_members(clique)) for clique in found]


def cells_of(sizes: Sequence[int], cliques: Iterable[Set]) -> int:
    """Return the number of cells of some cliques."""
    return sum(math.prod(sizes[a] for a in clique) for clique in cliques)


@final
@attrs.frozen
class JunctionTree:
    """Cliques in an order in which each comes after its parent.

    Attributes
    ----------
    sizes
        The number of codes of each attribute.
    cliques
        The positions of each clique's attributes, increasing.
    parents
        The position of each clique's parent. The first clique is the root and its own parent.
    """

    sizes: tuple[int, ...]
    cliques: tuple[Set, ...]
    parents: tuple[int, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], sets: Iterable[Set]) -> JunctionTree:
        """Return a tree whose cliques hold the given sets, by min-fill."""
        return cls.of_cliques(sizes, cliques_of(sizes, sets))

    @classmethod
    def of_cliques(cls, sizes: Sequence[int], cliques: Sequence[Set]) -> JunctionTree:
        """Return a tree with large separators.

        The next clique is always one that shares as many attributes as possible with an earlier clique.
        """
        order, parents = [0], [0]
        shared = {k: (len(set(cliques[k]) & set(cliques[0])), 0) for k in range(1, len(cliques))}
        while shared:
            best = max(shared, key=lambda k: (shared[k][0], -k))
            parents.append(shared.pop(best)[1])
            order.append(best)
            for k in shared:
                own = len(set(cliques[k]) & set(cliques[best]))
                if own > shared[k][0]:
                    shared[k] = (own, len(order) - 1)
        return cls(tuple(sizes), tuple(cliques[k] for k in order), tuple(parents))

    @property
    def cells(self) -> int:
        """The number of cells of all cliques."""
        return cells_of(self.sizes, self.cliques)

    def shape(self, one: Set) -> tuple[int, ...]:
        """Return the shape of a table of some attributes: the number of codes of each."""
        return tuple(self.sizes[a] for a in one)

    def separator(self, place: int) -> Set:
        """Return the attributes that a clique shares with its parent. The root shares none."""
        if not place:
            return ()
        parent = set(self.cliques[self.parents[place]])
        return tuple(a for a in self.cliques[place] if a in parent)

    def home(self, one: Set) -> int:
        """Return the position of the smallest clique that holds a set.

        Raises
        ------
        KeyError
            If no clique holds it.
        """
        holding = [k for k, clique in enumerate(self.cliques) if set(one) <= set(clique)]
        if not holding:
            raise KeyError(one)
        return min(holding, key=lambda k: math.prod(self.shape(self.cliques[k])))
