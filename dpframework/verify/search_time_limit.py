"""A limit on the processor seconds of a search, which could otherwise take very long on a large schema."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import final


@final
class Patience:
    """A number of processor seconds of this process, counted from when the object is made.

    Parameters
    ----------
    seconds
        The number of seconds, by default unlimited. A search that runs out of them keeps what it has found so far. How
        much that is depends on the machine.
    """

    def __init__(self, seconds: float = math.inf) -> None:
        self._end = time.process_time() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left, negative if all have passed."""
        return self._end if math.isinf(self._end) else self._end - time.process_time()

    @property
    def over(self) -> bool:
        """Whether all seconds have passed."""
        return self.left <= 0

    def part(self, share: float) -> Patience:
        """Return a new patience with a share of the seconds that are left."""
        return Patience(self.left * share)

    def allows(self, times: int, call: Callable[[], object]) -> bool:
        """Tell whether there is time for `times` calls of a function, judged by the time of one call."""
        if math.isinf(self._end):
            return True
        call()  # not timed, since a first call may compile a kernel
        started = time.process_time()
        call()
        return times * (time.process_time() - started) <= self.left
