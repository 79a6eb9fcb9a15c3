"""What cuts rows into disjoint parts: by value, from public facts and releases, never by position."""

from __future__ import annotations

from typing import TypeAlias

from dpframework.facts.attributes import Attribute
from dpframework.facts.descriptions import Cases, Description

#: What cuts rows into parts, by their values.
Cut: TypeAlias = "Attribute | Cases | tuple[Description, ...]"


def number_of_parts(by: Cut) -> int:
    """Return how many parts a cut makes."""
    if isinstance(by, Attribute):
        return by.size
    return len(by.descriptions) + 1 if isinstance(by, Cases) else len(by)
