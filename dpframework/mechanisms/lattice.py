"""Real numbers as whole numbers of a unit, some at a time: there may be millions of scores, each of eight bytes."""

from __future__ import annotations

from typing import Any, TypeAlias, final, overload

import attrs
import numpy as np
from numpy.typing import NDArray

AT_ONCE = 1 << 18  # numbers
LARGEST_REAL = 1 << 52  # in units: beyond, a float no longer tells neighbouring whole numbers apart


@final
@attrs.frozen(eq=False)
class LatticePoints:
    """Numbers over a unit, rounded and clamped, which are computed when they are asked for.

    Attributes
    ----------
    numbers
        The numbers, shape (numbers,).
    unit
        The unit.
    """

    numbers: NDArray[np.float64]
    unit: float

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> np.int64: ...
    @overload
    def __getitem__(self, index: slice) -> NDArray[np.int64]: ...
    def __getitem__(self, index: int | slice) -> Any:
        """Return one of them, or several."""
        return round_to(self.numbers[index], self.unit)[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return all of them."""
        return round_to(self.numbers, self.unit).astype(dtype or np.int64, copy=False)

    def max(self) -> np.int64:
        """Return the largest: rounding keeps the order."""
        return np.int64(round_to(self.numbers.max(), self.unit)[()])


#: Scores that a choice is made by. Both give their length, their largest, one of them, and some of them as an array.
Scores: TypeAlias = NDArray[np.int64] | LatticePoints


def round_to(array: Any, unit: float) -> NDArray[np.int64]:
    """Return numbers as whole numbers of a unit, clamped, in their own shape."""
    numbers = np.asarray(array)
    steps = np.empty(numbers.shape, dtype=np.int64)
    flat, given = steps.reshape(-1), numbers.reshape(-1)
    for start in range(0, len(flat), AT_ONCE):
        # A quotient may overflow to infinity, which is then clamped.
        with np.errstate(over="ignore"):
            some = given[start : start + AT_ONCE].astype(np.float64) / unit
        np.rint(some, out=some)
        np.maximum(some, -LARGEST_REAL, out=some)
        flat[start : start + AT_ONCE] = np.minimum(some, LARGEST_REAL, out=some)
    return steps
