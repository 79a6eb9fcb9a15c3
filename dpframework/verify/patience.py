"""A search's time in processor seconds, since each table of a large schema can cost as much as a small audit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import final


@final
class Patience:
    """Some processor seconds of this process, from now on.

    Parameters
    ----------
    seconds
        How many; without end by default. A search that they end found what it found by then: how much that is depends
        on the machine.
    """

    def __init__(self, seconds: float = math.inf) -> None:
        self._end = time.process_time() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left, below 0 if they have passed."""
        return self._end if math.isinf(self._end) else self._end - time.process_time()

    @property
    def over(self) -> bool:
        """Whether they have passed."""
        return self.left <= 0

    def part(self, share: float) -> Patience:
        """Return a share of the seconds that are left."""
        return Patience(self.left * share)

    def allows(self, times: int, call: Callable[[], object]) -> bool:
        """Tell whether something can be done `times` times, judged by one try."""
        if math.isinf(self._end):
            return True
        call()  # a kernel is compiled when it is called first
        started = time.process_time()
        call()
        return times * (time.process_time() - started) <= self.left
