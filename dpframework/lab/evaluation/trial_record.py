"""A trial: one run of a method on one data set, together with the exact rows. Measures of a trial are not private."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol, final

import attrs

from dpframework.tables.coded_table import Table

NOT_PRIVATE = "Not private: measured on the rows themselves."
"""The last line of every printed evaluation."""


def _freeze(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(dict(parameters))


@final
@attrs.frozen(eq=False, repr=False)
class Trial:
    """One run of a method on one data set, together with the exact rows. It is not private, whatever the method is.

    Attributes
    ----------
    result
        The result of `Miner.mine`, or of a baseline without privacy.
    table
        The rows from which the result was mined.
    held_out
        Other rows to predict, such as a fold of a cross-validation. None if there are none.
    parameters
        The method's parameters.
    seconds
        The CPU seconds of the run; NaN if they were not measured.
    """

    result: Any
    table: Table
    held_out: Table | None = None
    parameters: Mapping[str, Any] = attrs.field(factory=dict, converter=_freeze)
    seconds: float = math.nan

    def __reduce__(self) -> tuple[type[Trial], tuple[Any, ...]]:
        """Pickle the attributes, since a read-only view of a dictionary cannot be pickled."""
        return Trial, (self.result, self.table, self.held_out, dict(self.parameters), self.seconds)

    def __repr__(self) -> str:
        return f"<trial of a {type(self.result).__name__}: not private>"


_KNOWN: weakref.WeakKeyDictionary[Table, dict[Any, Any]] = weakref.WeakKeyDictionary()


def find_once(table: Table, key: Any, find: Callable[[], Any]) -> Any:
    """Return the result of `find`, which is called only once for a table and a key.

    Many trials compare with the same exact results on one table.
    """
    known = _KNOWN.setdefault(table, {})
    if key not in known:
        known[key] = find()
    return known[key]


class Measure(Protocol):
    """A function of a trial, with settings by name, that measures the result. Not private."""

    def __call__(self, trial: Trial, /, *args: Any, **settings: Any) -> Mapping[str, float]:
        """Return numbers by name. A number is NaN if there is nothing to measure, for example no redescription."""
