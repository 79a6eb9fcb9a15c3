"""What cuts rows into disjoint parts: by value, from public facts and releases, never by position."""

from __future__ import annotations

from typing import TypeAlias

from dpframework.facts.attributes import Attribute
from dpframework.facts.descriptions import Cases, Description

#: What cuts rows into parts, by their values.
Cut: TypeAlias = "Attribute | Cases | tuple[Description, ...]"


def attributes_of(by: Cut) -> tuple[str, ...]:
    """Return the names of the attributes that a cut is about; none if its descriptions do not say."""
    if isinstance(by, Attribute):
        return (by.name,)
    descriptions = by.descriptions if isinstance(by, Cases) else by
    return tuple(dict.fromkeys(test.attribute for one in descriptions for test in one.literals()))


def number_of_parts(by: Cut) -> int:
    """Return how many parts a cut makes."""
    if isinstance(by, Attribute):
        return by.size
    return len(by.descriptions) + 1 if isinstance(by, Cases) else len(by)
