"""The rows for which all tests of a set hold, as cells of cross tables, for engines that count such tables."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute
from dpframework.queries import RowSets
from dpframework_trees.splits import BELOW, Candidates


def sets_of(tests: Candidates, order: int, place: Callable[..., Any]) -> Iterator[RowSets]:
    """Yield all sets of up to `order` tests, in one `RowSets` for each choice of attributes.

    A set is named by `order` tests in increasing order. A smaller set repeats tests.

    Parameters
    ----------
    tests
        Tests of values and of public cuts.
    order
        The largest number of tests in a set, from 1 to 3.
    place
        Returns the positions of sets among all sets. It takes `order` arrays: the first tests of the sets, the second
        tests, and so on.
    """
    for groups in itertools.combinations_with_replacement(list(_by_attribute(tests)), order):
        own = list({attribute.name: attribute for attribute, *_ in groups}.values())
        sets = np.array(list(itertools.product(*(numbers for _, numbers, _ in groups))))
        if len(own) < order:  # Several tests on one attribute make each set more than once, so keep it once.
            sets = np.unique(np.sort(sets, axis=1), axis=0)
        places = np.asarray(place(*np.sort(sets, axis=1).T))
        yield RowSets(tuple(own), places, functools.partial(_members, groups, own, sets))


_Tested: TypeAlias = "tuple[Attribute, list[int], NDArray[np.bool_]]"


def _members(groups: Sequence[_Tested], own: Sequence[Attribute], sets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 1 for each cell of the attributes' cross table where a set's tests hold, else 0, shape (sets, cells)."""
    rows = {
        number: (attribute.name, codes)
        for attribute, numbers, members in groups
        for number, codes in zip(numbers, members, strict=True)
    }
    return np.array([_cells(own, [rows[t] for t in dict.fromkeys(some)]) for some in sets.tolist()])


def _by_attribute(tests: Candidates) -> Iterator[_Tested]:
    """Yield each tested attribute, the numbers of its tests, and a mask of the codes for which each test holds.

    The mask has the shape (tests, codes).
    """
    for k in sorted(set(tests.owner.tolist())):
        numbers = np.flatnonzero(tests.owner == k)
        attribute = tests.schema.attributes[tests.attributes[k]]
        codes, tested = np.arange(attribute.size), tests.codes[numbers, np.newaxis]
        below = (tests.kinds[numbers] == BELOW)[:, np.newaxis]
        yield attribute, numbers.tolist(), np.where(below, codes <= tested, codes == tested)


def _cells(of: Sequence[Attribute], tests: Sequence[tuple[str, NDArray[np.bool_]]]) -> NDArray[np.int64]:
    """Return 1 for each cell of the attributes' cross table where all tests hold, else 0, shape (cells,)."""
    held = np.ones([a.size for a in of], dtype=np.bool_)
    for name, codes in tests:
        axis = [a.name for a in of].index(name)
        held &= codes.reshape([-1 if k == axis else 1 for k in range(len(of))])
    return held.ravel().astype(np.int64)
