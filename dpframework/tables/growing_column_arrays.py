"""Storage for the columns of a growing table, in memory or in files that nobody else can open.

A file is private to this process and has no name. So the file is gone when the process ends, even if it is killed. The
operating system keeps the file in memory as long as there is room.
"""

from __future__ import annotations

import abc
import mmap
import tempfile
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError


class GrowingArray(abc.ABC):
    """An array that grows by appended parts."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype, self.length = dtype, 0

    @abc.abstractmethod
    def append(self, part: NDArray[Any]) -> None:
        """Add numbers at the end."""

    @abc.abstractmethod
    def take(self) -> NDArray[Any]:
        """Return the whole array. Afterwards this storage is empty."""


def growing_array(dtype: np.dtype[Any], *, mapped: bool) -> GrowingArray:
    """Return an empty array that grows, in memory or in a file."""
    return _InFile(dtype) if mapped else _InMemory(dtype)


@final
class _InMemory(GrowingArray):
    """Storage in memory. The system can grow large arrays in place, so that no copy is needed."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        super().__init__(dtype)
        self._array = np.empty(0, dtype)

    def append(self, part: NDArray[Any]) -> None:
        """See `GrowingArray`."""
        end = self.length + len(part)
        if end > len(self._array):
            self._array.resize(end + end // 4 if self.length else end, refcheck=False)
        self._array[self.length : end] = part
        self.length = end

    def take(self) -> NDArray[Any]:
        """See `GrowingArray`."""
        array, self._array = self._array, np.empty(0, self.dtype)
        if len(array) != self.length:
            array.resize(self.length, refcheck=False)
        self.length = 0
        return array


@final
class _InFile(GrowingArray):
    """Storage in a nameless file in the folder for temporary files (`$TMPDIR`)."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        super().__init__(dtype)
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 it is closed once it is mapped

    def append(self, part: NDArray[Any]) -> None:
        """See `GrowingArray`.

        Raises
        ------
        InputError
            If the disk is full.
        """
        try:
            self._file.write(np.ascontiguousarray(part, self.dtype).data)
        except OSError as error:
            raise InputError(
                f"the table's temporary file cannot be written: {error.strerror}; name a folder with room in TMPDIR"
            ) from None
        self.length += len(part)

    def take(self) -> NDArray[Any]:
        """Return the array (see `GrowingArray`), as the file mapped into memory for reading."""
        self._file.flush()
        with self._file as file:
            if not self.length:
                return np.empty(0, self.dtype)
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), self.dtype)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of an array. Kernels (functions compiled by numba) are compiled for read-only arrays."""
    view = array.view()
    view.flags.writeable = False
    return view
