"""Schemas that an example's author did not think of: the same attributes with missing cells, or with a value more.

A claim holds for every schema that a miner plans. What a query declares may follow from a schema's labels, and be wrong
where a cell may be missing, or there are more of them than in the examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from dpframework.facts.attributes import Attribute, Categorical
from dpframework.facts.open_attribute import Open
from dpframework.facts.schema import Schema

MORE = "one more"  # the label of a value more


def related_schemas(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield schemas that a miner may be given in place of an example's, each with how it differs.

    Of a schema with derived columns there are none: what they hold follows from the others.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> for how, other in related_schemas(Schema([Boolean("ill"), Categorical("ward", ["x", "y"])])):
    ...     print(how, [attribute.size for attribute in other])
    with missing cells [3, 3]
    with a value more [2, 3]
    """
    if schema.derivation:
        return
    changes: dict[str, Callable[[Attribute], Attribute]] = {
        "with missing cells": _with_missing,
        "with a value more": _with_value,
    }
    for how, changed in changes.items():
        attributes = tuple(attribute if isinstance(attribute, Open) else changed(attribute) for attribute in schema)
        if attributes != schema.attributes:
            yield how, attrs.evolve(schema, attributes=attributes)


def _with_missing(attribute: Attribute) -> Attribute:
    return attrs.evolve(attribute, missing=True)


def _with_value(attribute: Attribute) -> Attribute:
    if not isinstance(attribute, Categorical) or MORE in attribute.values:
        return attribute
    return attrs.evolve(attribute, values=(*attribute.values, MORE))
