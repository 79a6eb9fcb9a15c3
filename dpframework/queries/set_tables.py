"""Counts of rows that two sets have in common, from cross tables of the attributes that tell who is in a set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.descriptions import And, Cases, Description
from dpframework.tables.joint_counts import Crosstab, JointCounts


@final
@attrs.frozen(eq=False)
class RowSets:
    """Some sets of rows, each told by the codes of the same few attributes.

    Attributes
    ----------
    of
        The attributes; none for the set of all rows.
    places
        Where the sets stand among all sets of their side, shape (sets,).
    members
        Makes, when they are needed, which cells of the attributes' cross table are in each set, as 1 and else 0, shape
        (sets, cells).
    """

    of: tuple[Attribute, ...]
    places: NDArray[np.int64]
    members: Callable[[], NDArray[np.int64]]

    @classmethod
    def everyone(cls, place: int) -> RowSets:
        """Return the set of all rows."""
        return cls((), np.array([place]), lambda: np.ones((1, 1), dtype=np.int64))

    @classmethod
    def codes(cls, attribute: Attribute, first: int = 0) -> RowSets:
        """Return a set for each code of an attribute, in turn from a first place."""
        number = attribute.size
        return cls((attribute,), first + np.arange(number), lambda: np.eye(number, dtype=np.int64))


def in_common(
    left: Sequence[RowSets],
    right: Sequence[RowSets],
    shape: tuple[int, int],
    within: Sequence[Description | None] = (None,),
) -> JointCounts:
    """Return the tables that tell how many rows are in each two sets, one a side.

    Parameters
    ----------
    left, right
        The sets of either side.
    shape
        How many sets either side has.
    within
        Descriptions of the rows that are counted, None for all rows.

    Returns
    -------
    JointCounts
        Whose counts have the shape (descriptions, left sets, right sets).
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
    """Return columns that tell who is described, each with the cells of the descriptions that it tells of.

    A column tells of two descriptions: where both hold, the first, the second or none. So half as many tables are
    counted as there are descriptions.
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
