"""Groups of an attribute's rare values, which are merged before several attributes are measured together.

A value whose released count hardly exceeds its noise says nothing about how attributes depend on each other. Yet its
cells carry as much noise as all other cells, and take room in the model. So such values share one group in marginals of
several attributes, as in MST (McKenna, Miklau and Sheldon 2021, "compress domain"). The rows of a group are then shared
among its values by the attribute's own counts. The price of merging is that marginals of several attributes no longer
make these counts more exact. So values are merged only where that removes at least half of an attribute's values, and
where the rare values have next to no rows.

Groups follow from released one-way marginals. A table that is measured afterwards is a coarser table of the same rows.
Each row is in one cell of this table, so sensitivities stay as they are.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpframework.facts import InputError

Codes: TypeAlias = "NDArray[np.int64]"

_RARE = 3.0  # the most standard deviations of noise that a rare value's count may have, as in MST
_OF_GROUP = 1.0  # the most standard deviations of noise that the mean count of a group's values may have
_SMALLER = 2  # values are merged only if their number is divided by at least this


def _groups(given: Iterable[ArrayLike]) -> tuple[Codes, ...]:
    return tuple(np.asarray(own, dtype=np.int64) for own in given)


# Not slotted: cached properties need an instance dictionary.
@final
@attrs.frozen(eq=False, slots=False)
class Merging:
    """The group of each code of each attribute.

    Attributes
    ----------
    groups
        For each attribute, the group of each of its codes: whole numbers from 0 on, each of which occurs.
    """

    groups: tuple[Codes, ...] = attrs.field(converter=_groups)

    def __attrs_post_init__(self) -> None:
        """Refuse groups that are not numbered from 0 on, and groups without a value."""
        for own in self.groups:
            if own.ndim != 1 or not np.array_equal(np.unique(own), np.arange(len(np.unique(own)))):
                raise InputError("the groups of merged values are not numbered from 0 on without gaps; number them so")

    @classmethod
    def none(cls, sizes: Sequence[int]) -> Merging:
        """Return groups of one code each."""
        return cls([np.arange(size) for size in sizes])

    @classmethod
    def of_rare(cls, counts: Sequence[NDArray[np.float64]], deviations: Sequence[float]) -> Merging:
        """Return groups in which each frequent value of an attribute is alone, and all rare ones share the last group.

        The most frequent value is never rare, so an attribute with two or more values keeps at least two groups.
        Nothing is merged where too many values would be left, or where the rare values have too many rows on average.

        Parameters
        ----------
        counts
            The released counts of each attribute's values.
        deviations
            The standard deviation of the noise of each attribute's counts.

        Examples
        --------
        >>> merging = Merging.of_rare([np.array([90.0, 2.0, 40.0, -3.0, 4.0, 6.0])], [5.0])
        >>> merging.groups[0].tolist()
        [0, 2, 1, 2, 2, 2]
        """
        groups = []
        for own, deviation in zip(counts, deviations, strict=True):
            frequent = own > _RARE * deviation
            frequent[int(np.argmax(own))] = True
            left = int(frequent.sum()) + 1
            if _SMALLER * left > len(own) or own[~frequent].mean() > _OF_GROUP * deviation:
                groups.append(np.arange(len(own)))
            else:
                groups.append(np.where(frequent, np.cumsum(frequent) - 1, left - 1))
        return cls(groups)

    @classmethod
    def of_flat(cls, flat: ArrayLike, sizes: Sequence[int]) -> Merging:
        """Return the groups of codes that are given in one array, one attribute after another."""
        return cls(np.split(np.asarray(flat, dtype=np.int64), np.cumsum(sizes)[:-1]))

    @property
    def flat(self) -> Codes:
        """The groups of all codes in one array, one attribute after another."""
        return np.concatenate(self.groups)

    @functools.cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of groups of each attribute."""
        return tuple(int(own.max()) + 1 for own in self.groups)

    def only(self, attributes: Collection[int]) -> Merging:
        """Return the same groups for the given attributes, and a group of its own for each code of other attributes."""
        return Merging([own if a in attributes else np.arange(len(own)) for a, own in enumerate(self.groups)])

    def merges(self, a: int) -> bool:
        """Return whether some values of an attribute are merged."""
        return self._sorted[a] is not None

    @functools.cached_property
    def _sorted(self) -> list[tuple[Codes, Codes] | None]:
        """The codes of each attribute sorted by group, and where each group begins; None where nothing is merged."""
        found: list[tuple[Codes, Codes] | None] = []
        for own, size in zip(self.groups, self.sizes, strict=True):
            order = np.argsort(own, kind="stable")
            same = np.array_equal(own, np.arange(len(own)))
            found.append(None if same else (order, np.searchsorted(own[order], np.arange(size))))
        return found

    def table(self, counts: NDArray[Any], of: Sequence[int]) -> NDArray[Any]:
        """Return the table of groups that follows from a table of codes, with one axis per attribute."""
        for axis, a in enumerate(of):
            if (known := self._sorted[a]) is not None:
                order, starts = known
                counts = np.add.reduceat(counts.take(order, axis=axis), starts, axis=axis)
        return counts
