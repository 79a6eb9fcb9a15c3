"""Bounds on the time and memory of a run that follow from its plan.

The bounds use public facts only: how many contingency tables are counted, how many cells the tables have, the limits of
later computations, and approximately how many rows there are. `dpframework forecast` instead measures time and memory,
on made-up rows.
"""

from __future__ import annotations

import math
from typing import Any, final

import attrs

from dpframework.facts.errors import InputError

_MIB = 1 << 20


def _not_negative(_: Any, attribute: attrs.Attribute[Any], value: float | None) -> None:
    if value is not None and not 0 <= value < math.inf:
        raise InputError(f"the {attribute.name} of a run is {value}; a number from 0 on is needed, or None")


@final
@attrs.frozen
class RunCost:
    """Bounds on the time and memory of one part of a study. Reading and storing the rows come on top.

    Attributes
    ----------
    what
        A description of what is counted and computed.
    seconds
        The CPU time in seconds, on a machine of 2020 or later; None if it depends on the number of rows, which is
        unknown.
    memory
        The memory in bytes.

    Examples
    --------
    >>> print(RunCost("10 tables of 1,000 cells together", 1.5, 3 << 20).text)
    at most about 2 CPU s and 3 MiB: 10 tables of 1,000 cells together
    """

    what: str
    seconds: float | None = attrs.field(validator=_not_negative)
    memory: float = attrs.field(validator=_not_negative)

    @property
    def text(self) -> str:
        """The bounds in words, with the description of what is computed."""
        time = "a time that depends on the number of rows" if self.seconds is None else f"{_up(self.seconds)} CPU s"
        return f"at most about {time} and {_up(self.memory / _MIB)} MiB: {self.what}"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {"seconds": self.seconds, "memory": self.memory, "text": self.text}


def _up(number: float) -> str:
    """Return a number as text, rounded up to a whole number with two significant digits."""
    whole = max(math.ceil(number), 1)
    unit = 10 ** max(len(str(whole)) - 2, 0)
    return f"{-(-whole // unit) * unit:,}"
