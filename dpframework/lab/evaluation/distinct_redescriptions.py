"""Counts of redescriptions that differ from all others, and of their literals that say nothing. Not private.

A literal *says nothing* if the description holds for nearly the same rows without it, so that less than a share
`NOTHING` of all rows change. Two redescriptions are *one finding* in three cases: if they hold for nearly the same
rows, if one holds for nearly the rows for which neither side of the other holds (its complement), or if they read the
same attributes on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.descriptions import And, Columns, Description, Not, Or
from dpframework.redescriptions.redescription import Redescription

NOTHING = 0.01
"""A literal says nothing if leaving it out changes its side on a smaller share of the rows than this."""
DIFFERENT = 0.8
"""Two redescriptions are one finding if their sets of rows have at least this Jaccard index."""
Masks = NDArray[np.bool_]


def leave_out_each(description: Description) -> Iterator[Description]:
    """Yield the description without each of its literals in turn, in reading order. Nothing if it has only one literal.

    Examples
    --------
    >>> from dpframework.facts.descriptions import Below
    >>> young, light = Below("age", 30), Below("weight", 60)
    >>> [str(one) for one in leave_out_each(Or([Not(young), And([young, light])]))]
    ['age < 30 and weight < 60', 'age >= 30 or weight < 60', 'age >= 30 or age < 30']
    """
    match description:
        case Not():
            for rest in leave_out_each(description.part):
                yield Not(rest)
        case And() | Or():
            for k, part in enumerate(description.parts):
                before, after = description.parts[:k], description.parts[k + 1 :]
                shorter, others = list(leave_out_each(part)), before + after
                if not shorter and others:
                    yield others[0] if len(others) == 1 else attrs.evolve(description, parts=others)
                for one in shorter:
                    yield attrs.evolve(description, parts=(*before, one, *after))


def without_nothing(description: Description, columns: Columns) -> Description:
    """Return the description without literals that say nothing. The one that changes fewest rows is left out first."""
    least = NOTHING * columns.rows
    while others := list(leave_out_each(description)):
        holds = description.holds(columns)
        changed = [int(np.count_nonzero(other.holds(columns) != holds)) for other in others]
        if min(changed) >= least:
            break
        description = others[changed.index(min(changed))]
    return description


@final
@attrs.frozen(eq=False)
class _Said:
    """The meaning of a redescription.

    Attributes
    ----------
    both, neither
        Whether both sides hold for each row, and whether neither side does, shape (rows,).
    attributes
        The names of the attributes that each side reads.
    """

    both: Masks
    neither: Masks
    attributes: tuple[frozenset[str], ...]

    @classmethod
    def of(cls, one: Redescription, columns: Columns) -> _Said:
        sides = [without_nothing(side, columns) for side in (one.left, one.right)]
        left, right = (side.holds(columns) for side in sides)
        neither = sides[0].fails(columns) & sides[1].fails(columns)
        names = tuple(frozenset(literal.attribute for literal in side.literals()) for side in sides)
        return cls(left & right, neither, names)

    def differs(self, other: _Said) -> bool:
        """Tell whether two redescriptions are different findings (see the module)."""
        return self.attributes != other.attributes and all(
            (self.both & rows).sum() < DIFFERENT * (self.both | rows).sum() for rows in (other.both, other.neither)
        )


def are_different(shown: Sequence[Redescription], which: Masks, columns: Columns) -> Masks:
    """Tell which redescriptions differ from all that were counted before them, shape (redescriptions,).

    Parameters
    ----------
    shown
        The redescriptions, in order.
    which
        Whether each of them counts at all, shape (redescriptions,).
    columns
        The rows.
    """
    before, different = list[_Said](), np.zeros(len(shown), dtype=np.bool_)
    for k in np.flatnonzero(which).tolist():
        said = _Said.of(shown[k], columns)
        if all(said.differs(other) for other in before):
            different[k] = True
            before.append(said)
    return different


def literals_of_nothing(shown: Sequence[Redescription], columns: Columns) -> NDArray[np.int64]:
    """Return how many literals of each redescription say nothing on their own, shape (redescriptions,)."""
    numbers = np.zeros(len(shown), dtype=np.int64)
    least = NOTHING * columns.rows
    for k, one in enumerate(shown):
        for side in (one.left, one.right):
            holds = side.holds(columns)
            shorter = (other.holds(columns) for other in leave_out_each(side))
            numbers[k] += sum(int(np.count_nonzero(other != holds)) < least for other in shorter)
    return numbers
