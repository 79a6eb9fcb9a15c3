"""Schemas and parameters that an example's author did not think of.

A claim holds for every schema that a miner plans, and for all its parameters. What a query declares may follow from a
schema's labels or bounds, and be wrong where a cell may be missing, where there are more labels than in the examples,
or where numbers may be below 0. It may be right for k = 1 and wrong for k = 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from reprlib import repr as short
from typing import Any

import attrs

from dpframework.facts.attributes import Attribute, Categorical, Numeric
from dpframework.facts.open_attribute import Open
from dpframework.facts.schema import Schema
from dpframework.run.miner import Miner

MORE = "one more"  # the label of a value more
SPENT = ("epsilon", "rho", "delta")  # parameters that say how much is spent


def related_schemas(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield schemas that a miner may be given in place of an example's, each with how it differs.

    Of a schema with derived columns there are none: what they hold follows from the others.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> for how, other in related_schemas(Schema([Boolean("ill"), Categorical("ward", ["x", "y"])])):
    ...     print(how, [attribute.size for attribute in other])
    on the example's schema with missing cells [3, 3]
    on the example's schema with a value more [2, 3]
    """
    if schema.derivation:
        return
    changes: dict[str, Callable[[Attribute], Attribute]] = {
        "with missing cells": _with_missing,
        "with a value more": _with_value,
        "with numbers below 0": _with_negative,
    }
    for how, changed in changes.items():
        attributes = tuple(attribute if isinstance(attribute, Open) else changed(attribute) for attribute in schema)
        if attributes != schema.attributes:
            yield f"on the example's schema {how}", attrs.evolve(schema, attributes=attributes)


def related_miners(miner: Miner) -> Iterator[tuple[str, Miner]]:
    """Yield a miner with other parameters than an example's: each whole number one larger, a weight below 0.

    How much is to be spent stays as it is.
    """
    for field in attrs.fields(type(miner)):
        given = getattr(miner, field.name)
        other = None if field.name in SPENT or not field.init else _other_parameter(given)
        if other is None:
            continue
        try:
            changed = attrs.evolve(miner, **{field.alias: other})
        except Exception:  # it takes no such parameter, and so claims nothing for it
            continue
        yield f"with {field.name} = {short(other)}", changed


def _other_parameter(given: Any) -> Any:
    if type(given) is int:
        return given + 1
    if type(given) is float:
        return 2 * given
    numbers = type(given) in (tuple, list) and len(given) > 0 and all(type(one) in (int, float) for one in given)
    return type(given)([-2 * max(map(abs, given)) - 1, *given[1:]]) if numbers else None


def _with_missing(attribute: Attribute) -> Attribute:
    return attrs.evolve(attribute, missing=True)


def _with_value(attribute: Attribute) -> Attribute:
    if not isinstance(attribute, Categorical) or MORE in attribute.values:
        return attribute
    return attrs.evolve(attribute, values=(*attribute.values, MORE))


def _with_negative(attribute: Attribute) -> Attribute:
    if not isinstance(attribute, Numeric):
        return attribute
    return attrs.evolve(attribute, lower=-2 * max(abs(attribute.lower), abs(attribute.upper)))
