"""The bin of a number in SQL, found by a division if the cuts are even, else by comparisons with the cuts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from dpframework.tables.sql_connection import double


def bin_of(number: str, lower: float, upper: float, cuts: Sequence[float]) -> str:
    """Return the SQL expression for the number of cuts at or below a number.

    Parameters
    ----------
    number
        The SQL expression of the number, in double precision, neither null nor NaN.
    lower, upper, cuts
        The ends of the range, and the increasing cuts within it. Numbers beyond the range lie in the first or last bin.

    Examples
    --------
    >>> bin_of("x", 0, 10, [5.0])
    "case when x >= cast('5.0' as double precision) then 1 else 0 end"
    """
    steps = EvenSteps.of(lower, upper, cuts)
    return _by_halves(number, cuts, 0) if steps is None else steps.bin_of(number)


def _by_halves(number: str, cuts: Sequence[float], first: int) -> str:
    if not cuts:
        return str(first)
    k = len(cuts) // 2
    low, high = _by_halves(number, cuts[:k], first), _by_halves(number, cuts[k + 1 :], first + k + 1)
    return f"case when {number} >= {double(cuts[k])} then {high} else {low} end"


@attrs.frozen
class EvenSteps:
    """A range whose cuts are `lower + width * k`, so that a division finds the bin of a number.

    Attributes
    ----------
    lower, width, last
        The lower end, the width of a bin, and the last cut.
    origin
        The number to subtract before dividing: the lower end, or slightly less, so that no bin is found too low.
    is_exact
        Whether the division alone finds the bin of each number. If not, it may find the next bin, and a comparison with
        the cut below that bin corrects it.
    """

    lower: float
    width: float
    last: float
    origin: float
    is_exact: bool = True

    @classmethod
    def of(cls, lower: float, upper: float, cuts: Sequence[float]) -> EvenSteps | None:
        """Return steps that give every number the right bin, None if there are no such steps or fewer than three cuts.

        A larger number never gets a smaller bin, since subtraction, division by a positive number and `floor` keep the
        order of numbers, even with rounding. So it is enough to test the lower end, each cut and the float before each
        cut. Every other number in the range lies between two of these that have the same bin. If both get the right
        bin, so does the number between them. If both get the right bin or the next one, so does the number between.
        """
        width = (upper - lower) / (len(cuts) + 1)
        even = all(lower + width * (k + 1) == cut for k, cut in enumerate(cuts))
        if len(cuts) < 3 or not even or not lower + width * (len(cuts) + 1) > cuts[-1]:
            return None
        right = [(lower, 0), *((cut, k + 1) for k, cut in enumerate(cuts))]
        right += [(math.nextafter(cut, -math.inf), k) for k, cut in enumerate(cuts)]
        exact = cls(lower, width, cuts[-1], lower)
        if all(exact._place(number) == place for number, place in right):
            return exact
        below = lower - 4 * math.ulp(max(abs(lower), abs(upper)))
        near = cls(lower, width, cuts[-1], below, is_exact=False)
        return near if all(0 <= near._place(number) - place <= 1 for number, place in right) else None

    def _place(self, number: float) -> int:
        """Return the place of a number, which must lie between the lower end and the last cut."""
        return math.floor((number - self.origin) / self.width)

    def bin_of(self, number: str) -> str:
        """Return the SQL expression for the bin of a number, given the expression of the number."""
        inside = f"least(greatest({number}, {double(self.lower)}), {double(self.last)})"
        place = f"floor(({inside} - {double(self.origin)}) / {double(self.width)})"
        if self.is_exact:
            return place
        cut = f"{double(self.lower)} + {double(self.width)} * {place}"
        return f"({place} - case when {inside} < {cut} then 1 else 0 end)"
