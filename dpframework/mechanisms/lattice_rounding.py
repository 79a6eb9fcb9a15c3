"""Real numbers rounded to multiples of a unit. Rounding in chunks saves memory, as there may be millions of scores."""

from __future__ import annotations

from typing import Any, TypeAlias, final, overload

import attrs
import numpy as np
from numpy.typing import NDArray

AT_ONCE = 1 << 18  # how many numbers are rounded at once
LARGEST_REAL = 1 << 52  # the largest rounded number, in units; larger floats have no fractions


@final
@attrs.frozen(eq=False)
class LatticePoints:
    """The lattice points of real numbers: each number divided by a unit, rounded and clamped when it is read.

    Attributes
    ----------
    numbers
        The real numbers, an array of one dimension.
    unit
        The step of the lattice.
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
        """Return one point, or the points of a slice."""
        return round_to(self.numbers[index], self.unit)[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return all points."""
        return round_to(self.numbers, self.unit).astype(dtype or np.int64, copy=False)

    def max(self) -> np.int64:
        """Return the largest point. Rounding keeps the order, so only the largest number is rounded."""
        return np.int64(round_to(self.numbers.max(), self.unit)[()])


#: Scores by which a choice is made. Both types have a length and a largest score, and give single scores or slices.
Scores: TypeAlias = NDArray[np.int64] | LatticePoints


def round_to(array: Any, unit: float) -> NDArray[np.int64]:
    """Return numbers divided by a unit, rounded, and clamped to a size of at most `LARGEST_REAL`, in the same shape."""
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
