"""Counts of rows that two sets have in common, from cross tables of the attributes that define the sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.logical_descriptions_of_rows import And, Cases, Description
from dpframework.tables.crosstab_expressions import Crosstab, JointCounts


@final
@attrs.frozen(eq=False)
class RowSets:
    """Several sets of rows, all defined by the codes of the same few attributes.

    Attributes
    ----------
    of
        The attributes. Empty for the set of all rows.
    places
        The positions of the sets among all left or all right sets (see `in_common`), shape (sets,).
    members
        A function that returns, for each set and each cell of the attributes' cross table, 1 if the cell is in the set
        and else 0, shape (sets, cells). It is called when counts are assembled.
    """

    of: tuple[Attribute, ...]
    places: NDArray[np.int64]
    members: Callable[[], NDArray[np.int64]]

    @classmethod
    def everyone(cls, place: int) -> RowSets:
        """Return the set of all rows, at a position among the left or the right sets."""
        return cls((), np.array([place]), lambda: np.ones((1, 1), dtype=np.int64))

    @classmethod
    def codes(cls, attribute: Attribute, first: int = 0) -> RowSets:
        """Return one set for each code of an attribute, at consecutive positions from `first` on."""
        number = attribute.size
        return cls((attribute,), first + np.arange(number), lambda: np.eye(number, dtype=np.int64))


def in_common(
    left: Sequence[RowSets],
    right: Sequence[RowSets],
    shape: tuple[int, int],
    within: Sequence[Description | None] = (None,),
) -> JointCounts:
    """Return cross tables that give, for each left set and each right set, the number of rows in both.

    Parameters
    ----------
    left, right
        The left sets and the right sets.
    shape
        The number of left sets, and of right sets.
    within
        Descriptions. For each of them, only the rows for which it holds are counted. None counts all rows.

    Returns
    -------
    JointCounts
        The tables. The counts that follow from them have the shape (descriptions, left sets, right sets).
    """
    chosen = _case_columns(within)
    tables = [Crosstab([*one.of, *other.of, *own]) for own, _ in chosen for one in left for other in right]

    def assemble(counts: Sequence[NDArray[np.int64]]) -> NDArray[Any]:
        found = np.zeros((len(within), *shape), dtype=np.int64)
        for k, one in enumerate(left):
            members = one.members()
            for j, other in enumerate(right):
                within_other = other.members().T
                for c, (own, cells) in enumerate(chosen):
                    table = counts[(c * len(left) + k) * len(right) + j]
                    for d, held in cells.items():
                        joint = table[..., held].sum(axis=-1) if own else table
                        common = members @ joint.reshape(members.shape[1], -1) @ within_other
                        found[d][np.ix_(one.places, other.places)] = common
        return found

    return JointCounts(tables, assemble)


def _case_columns(within: Sequence[Description | None]) -> list[tuple[tuple[Cases, ...], dict[int, list[int]]]]:
    """Return columns of cross tables, each with the cells in which each of its descriptions holds.

    Descriptions are identified by their positions in `within`. The entry for None has no column.

    A column covers two descriptions. Its cells hold the rows for which both hold, only the first holds, only the second
    holds, or neither holds. So one table serves two descriptions.
    """
    found: list[tuple[tuple[Cases, ...], dict[int, list[int]]]] = []
    described = [(d, one) for d, one in enumerate(within) if one is not None]
    found.extend(((), {d: []}) for d, one in enumerate(within) if one is None)
    for (d, one), (e, other) in zip(described[::2], described[1::2], strict=False):
        found.append(((Cases([And([one, other]), one, other]),), {d: [0, 1], e: [0, 2]}))
    if len(described) % 2:
        d, one = described[-1]
        found.append(((Cases([one]),), {d: [0]}))
    return found
