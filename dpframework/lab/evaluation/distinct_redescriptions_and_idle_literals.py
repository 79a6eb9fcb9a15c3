"""Redescriptions that differ from all before them, and the number of their literals that say nothing. Not private.

A redescription is a pair of descriptions (its sides) that hold for nearly the same rows, and a literal is a test of one
attribute. If a literal is left out, its side may begin or cease to hold for some rows. A literal *says nothing* (is
idle) if these rows are less than a share `NOTHING` of all rows. Two redescriptions are *one finding* in each of three
cases:

- They hold for nearly the same rows.
- Both sides of the first hold for nearly the rows for which both sides of the second fail.
- Their left sides read the same attributes, and so do their right sides.

Two sets of rows are nearly the same if their Jaccard index is at least `DIFFERENT`. Literals that say nothing are left
out before redescriptions are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.logical_descriptions_of_rows import And, Columns, Description, Not, Or
from dpframework.redescriptions.redescription import Redescription

NOTHING = 0.01
"""A literal says nothing if its side, without it, begins or ceases to hold for less than this share of the rows."""
DIFFERENT = 0.8
"""Two redescriptions are one finding if their sets of rows have at least this Jaccard index."""
Masks = NDArray[np.bool_]


def leave_out_each(description: Description) -> Iterator[Description]:
    """Yield the description without its first literal, without its second one, and so on, in reading order.

    A description of a single literal yields nothing.

    Examples
    --------
    >>> from dpframework.facts.logical_descriptions_of_rows import Below
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


def without_idle_literals(description: Description, columns: Columns) -> Description:
    """Return the description without literals that say nothing (see the module).

    Literals are left out one at a time, first the one that changes the fewest rows, until no literal says nothing.
    """
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
class _Meaning:
    """The rows and attributes of a redescription, without the literals that say nothing.

    Attributes
    ----------
    both, neither
        For each row, whether both sides hold, and whether both sides fail, shape (rows,).
    attributes
        The names of the attributes that each side reads.
    """

    both: Masks
    neither: Masks
    attributes: tuple[frozenset[str], ...]

    @classmethod
    def of(cls, one: Redescription, columns: Columns) -> _Meaning:
        sides = [without_idle_literals(side, columns) for side in (one.left, one.right)]
        left, right = (side.holds(columns) for side in sides)
        neither = sides[0].fails(columns) & sides[1].fails(columns)
        names = tuple(frozenset(literal.attribute for literal in side.literals()) for side in sides)
        return cls(left & right, neither, names)

    def differs(self, other: _Meaning) -> bool:
        """Tell whether two redescriptions are different findings (see the module)."""
        return self.attributes != other.attributes and all(
            (self.both & rows).sum() < DIFFERENT * (self.both | rows).sum() for rows in (other.both, other.neither)
        )


def are_different(shown: Sequence[Redescription], which: Masks, columns: Columns) -> Masks:
    """Tell which redescriptions are findings of their own, shape (redescriptions,).

    The first redescription that is looked at is a finding of its own. A later one must differ from every such finding
    before it.

    Parameters
    ----------
    shown
        The redescriptions, in order.
    which
        Which redescriptions are looked at, shape (redescriptions,). The result is False for all others.
    columns
        All rows of the table.
    """
    before, different = list[_Meaning](), np.zeros(len(shown), dtype=np.bool_)
    for k in np.flatnonzero(which).tolist():
        meaning = _Meaning.of(shown[k], columns)
        if all(meaning.differs(other) for other in before):
            different[k] = True
            before.append(meaning)
    return different


def count_idle_literals(shown: Sequence[Redescription], columns: Columns) -> NDArray[np.int64]:
    """Return how many literals of each redescription say nothing, shape (redescriptions,).

    Each literal is left out alone, with all others in place.
    """
    numbers = np.zeros(len(shown), dtype=np.int64)
    least = NOTHING * columns.rows
    for k, one in enumerate(shown):
        for side in (one.left, one.right):
            holds = side.holds(columns)
            shorter = (other.holds(columns) for other in leave_out_each(side))
            numbers[k] += sum(int(np.count_nonzero(other != holds)) < least for other in shorter)
    return numbers
