"""Counts of rows that two sets have in common, from cross tables of the attributes that tell who is in a set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.descriptions import Cases, Description
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
    chosen = [() if one is None else (Cases([one]),) for one in within]
    tables = [Crosstab([*one.of, *other.of, *own]) for own in chosen for one in left for other in right]

    def assemble(counts: Sequence[NDArray[np.int64]]) -> NDArray[Any]:
        found = np.zeros((len(within), *shape), dtype=np.int64)
        for k, one in enumerate(left):
            members = one.members()
            for j, other in enumerate(right):
                for d, own in enumerate(chosen):
                    table = counts[(d * len(left) + k) * len(right) + j]
                    joint = (table[..., 0] if own else table).reshape(members.shape[1], -1)
                    found[d][np.ix_(one.places, other.places)] = members @ joint @ other.members().T
        return found

    return JointCounts(tables, assemble)
