"""The place of each row within its unit, from 0. Few queries read places, so they are computed on the first reading."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray


@final
class RowPlaces:
    """The places of some rows within their units. A row's place depends on the rows of its own unit alone.

    Parameters
    ----------
    find
        A function that returns the places, shape (rows,). It is called once, when the places are first read.
    """

    def __init__(self, find: Callable[[], NDArray[np.unsignedinteger]]) -> None:
        self._find: Callable[[], NDArray[np.unsignedinteger]] | None = find
        self._found: NDArray[np.unsignedinteger] | None = None
        self._lock = threading.Lock()  # several threads may count blocks at the same time

    @classmethod
    def of(cls, places: Any) -> Self:
        """Return places that are known already."""
        known = np.asarray(places)
        return cls(lambda: known)

    @property
    def array(self) -> NDArray[np.unsignedinteger]:
        """The places, read-only, shape (rows,)."""
        with self._lock:
            if self._found is None:
                assert self._find is not None  # kept until the places are found
                self._found, self._find = self._find().view(), None  # frees the arrays that the function holds
                self._found.flags.writeable = False
            return self._found

    def __getitem__(self, own: slice) -> RowPlaces:
        """Return the places of a slice of the rows. They too are computed only when they are read."""
        return RowPlaces(lambda: self.array[own])

    def __reduce__(self) -> tuple[Callable[[Any], RowPlaces], tuple[NDArray[np.unsignedinteger]]]:
        """Pickle the places themselves, since the function may hold ids."""
        return RowPlaces.of, (self.array,)


def as_row_places(given: Any) -> RowPlaces | None:
    """Return places in the form that a table keeps. An array holds places that are known already. None stays None."""
    return given if given is None or isinstance(given, RowPlaces) else RowPlaces.of(given)
