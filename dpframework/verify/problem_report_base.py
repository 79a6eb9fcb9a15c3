"""The base class of reports that list problems."""

from __future__ import annotations

import abc
from typing import Any

import attrs


class ProblemReport(abc.ABC):
    """A report that passes if it lists no problem in `wrong`. Its subclasses are frozen attrs classes."""

    __slots__ = ()
    wrong: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing was found wrong."""
        return not self.wrong

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {**attrs.asdict(self), "passed": self.passed}  # type: ignore[arg-type]  # its subclasses are attrs classes

    @abc.abstractmethod
    def __str__(self) -> str:
        """Write the verdict, or the problems if there are any."""
