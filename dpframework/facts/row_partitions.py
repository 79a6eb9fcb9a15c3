"""Cuts divide rows into disjoint parts by values, never by position. They follow from public facts and releases."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from dpframework.facts.attributes import Attribute
from dpframework.facts.logical_descriptions_of_rows import Cases, Description

#: What divides rows into parts: the values of an attribute, the cells of `Cases`, or disjoint descriptions.
Cut: TypeAlias = "Attribute | Cases | tuple[Description, ...]"


#: For each derived attribute, the names of the attributes that it depends on. A derived attribute whose sources are
#: unknown is left out.
AttributeSources: TypeAlias = "Mapping[str, frozenset[str]]"

NOTHING_DERIVED: AttributeSources = MappingProxyType({})


def attributes_of(by: Cut) -> tuple[str, ...]:
    """Return the names of the attributes that a cut tests; none if its descriptions list no literals."""
    if isinstance(by, Attribute):
        return (by.name,)
    descriptions = by.descriptions if isinstance(by, Cases) else by
    return tuple(dict.fromkeys(test.attribute for one in descriptions for test in one.literals()))


def sources_of(by: Cut, attribute_sources: AttributeSources) -> frozenset[str]:
    """Return the names of the attributes that a cut depends on; none if its descriptions list no literals.

    A derived attribute is replaced by its sources, or stands for itself if they are unknown.
    """
    return frozenset().union(*(attribute_sources.get(name, {name}) for name in attributes_of(by)))


def with_sources(attribute_sources: AttributeSources, derived: Attribute, cases: Cases) -> AttributeSources:
    """Return `attribute_sources` with the sources of one more derived attribute. Unknown sources are not added."""
    sources = sources_of(cases, attribute_sources)
    return {**attribute_sources, derived.name: sources} if sources else attribute_sources


def number_of_parts(by: Cut) -> int:
    """Return the number of parts that a cut makes."""
    if isinstance(by, Attribute):
        return by.size
    return len(by.descriptions) + 1 if isinstance(by, Cases) else len(by)
