"""Settings with a few named values, which files and callers give by name."""

from __future__ import annotations

import enum
from typing import Self

from dpframework.facts.errors import InputError, nearest


class Choice(enum.StrEnum):
    """A setting with a few named values. A subclass passes `what`, the setting's name in error messages."""

    _what: str

    def __init_subclass__(cls, *, what: str) -> None:
        super().__init_subclass__()
        cls._what = what

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the choice with a name, or raise InputError if no choice has that name."""
        try:
            return cls(text)
        except ValueError:
            names = [choice.value for choice in cls]
            hint = nearest(str(text), names) if len(names) > 2 else f"accepted are '{names[0]}' and '{names[1]}'"
            raise InputError(f"{cls._what} {text!r} is unknown; {hint}") from None
