"""The place of each row within its unit, from 0. It is found when a query first reads it, and most never do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray


@final
class RowPlaces:
    """The places of some rows, which follow from each row's own unit alone.

    Parameters
    ----------
    find
        Returns the places, shape (rows,). It is called once, when they are first read.
    """

    def __init__(self, find: Callable[[], NDArray[np.unsignedinteger]]) -> None:
        self._find: Callable[[], NDArray[np.unsignedinteger]] | None = find
        self._found: NDArray[np.unsignedinteger] | None = None
        self._lock = threading.Lock()  # blocks of rows may be counted by several threads

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
                assert self._find is not None  # until they are found
                self._found, self._find = self._find().view(), None  # frees what they were found from
                self._found.flags.writeable = False
            return self._found

    def __getitem__(self, own: slice) -> RowPlaces:
        """Return the places of consecutive rows, which are not found before they are read either."""
        return RowPlaces(lambda: self.array[own])

    def __reduce__(self) -> tuple[Callable[[Any], RowPlaces], tuple[NDArray[np.unsignedinteger]]]:
        """Pickle as the places."""
        return RowPlaces.of, (self.array,)


def as_row_places(given: Any) -> RowPlaces | None:
    """Return places, or None, as an attribute of a table: an array is of places that are known."""
    return given if given is None or isinstance(given, RowPlaces) else RowPlaces.of(given)
