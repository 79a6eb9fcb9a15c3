"""Schemas and parameters that an example's author did not think of.

A claim must hold for every schema that a miner plans, and for all its parameters. A declared sensitivity may depend on
a schema's labels or bounds, and be wrong for a schema unlike the examples: with missing cells, with more labels, with
numbers below 0 or only above it, or with bins of different widths. It may also be right for k = 1 and wrong for k = 2,
or right for one attribute and wrong for another or for the same one twice.
"""

from __future__ import annotations

import enum
import math
import typing
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from reprlib import repr as short
from typing import Any

import attrs

from dpframework.facts.attributes import Attribute, Categorical, Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.open_attribute import Open
from dpframework.facts.schema import Schema
from dpframework.mechanisms import Mechanism
from dpframework.run.miner import Miner

MORE = "one more"  # the label of a value more
SHARES = (Fraction(5, 9), Fraction(9, 4))  # of what an example spends on a release: of 1, scales of 1.8 and 0.44
MOST_NAMES = 3  # of other attributes
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
        "with missing cells": lambda attribute: attrs.evolve(attribute, missing=True),
        "with a value more": _with_value,
        "with numbers below 0": _with_negative,
        "with numbers above 0 only": _with_positive,
        "with bins of other widths": _with_uneven_bins,
    }
    for how, changed in changes.items():
        try:
            attributes = tuple(attribute if isinstance(attribute, Open) else changed(attribute) for attribute in schema)
        except InputError:  # such as bounds that floating-point numbers do not tell apart
            continue
        if attributes != schema.attributes:
            yield f"on the example's schema {how}", attrs.evolve(schema, attributes=attributes)


def related_miners(miner: Miner, schema: Schema) -> Iterator[tuple[str, Miner]]:
    """Yield a miner with one parameter other than an example's.

    Each whole number one larger, and one below 0; each flag the other way; another attribute of the schema; another of
    the values that a validator or a type lists; a list with a number below 0, or with its last value twice. How much is
    to be spent stays as it is.
    """
    for field in attrs.fields(type(miner)):
        if field.name in SPENT or not field.init:
            continue
        given = getattr(miner, field.name)
        # The values that the parameter may take, where its type or its validator lists them.
        if isinstance(given, enum.Enum):
            listed = list(type(given))
        else:
            # `and_` of attrs has several validators, and `in_` has the options.
            validators = [field.validator, *getattr(field.validator, "_validators", ())]
            options = next((one.options for one in validators if hasattr(one, "options")), ())
            try:
                hint = typing.get_type_hints(type(miner))[field.name]
            except Exception:  # it names what is not there
                hint = None
            listed = [*options] or [*typing.get_args(hint)] * (typing.get_origin(hint) is typing.Literal)
        for other in _other_parameters(given, listed, schema.names):
            try:
                changed = attrs.evolve(miner, **{field.alias: other})
            except Exception:  # it takes no such parameter, and so claims nothing for it
                continue
            yield f"with {field.name} = {short(other)}", changed


def related_mechanisms(mechanism: Mechanism) -> Iterator[tuple[str, Mechanism]]:
    """Yield a mechanism with less and with more to spend, where it has a parameter that says how much.

    Examples
    --------
    >>> from dpframework.mechanisms import Laplace
    >>> [str(other.epsilon) for _, other in related_mechanisms(Laplace(1))]
    ['5/9', '9/4']
    """
    for name in SPENT[:2]:
        given = getattr(mechanism, name, None)
        if not isinstance(given, Fraction):
            continue
        for share in SHARES:
            try:
                changed = attrs.evolve(mechanism, **{name: share * given})
            except Exception:  # it takes no such parameter, and so claims nothing for it
                continue
            yield f"with {name} = {float(share * given):.3g}", changed


def _other_parameters(given: Any, listed: Sequence[Any], names: Sequence[str]) -> Iterator[Any]:
    if listed:
        yield from (value for value in listed if type(value) is type(given) and value != given)
    elif type(given) is bool:
        yield not given
    elif type(given) is int:
        yield from (given + 1, -2 * abs(given) - 1)
    elif type(given) is float:
        yield from (2 * given, -2 * abs(given) - 1)
    elif isinstance(given, str) and given in names:
        yield from [name for name in names if name != given][:MOST_NAMES]
    elif type(given) in (tuple, list) and len(given) > 0:
        if all(type(one) in (int, float) for one in given):
            yield type(given)([-2 * max(map(abs, given)) - 1, *given[1:]])
        yield type(given)([*given, given[-1]])


def _with_value(attribute: Attribute) -> Attribute:
    """Return a categorical attribute with one value more: a number below 0 where all its values are numbers."""
    if not isinstance(attribute, Categorical):
        return attribute
    numbers = [_number(value) for value in attribute.values]
    known = [number for number in numbers if number is not None]
    more = f"{-2 * max(map(abs, known)) - 1:g}" if len(known) == len(numbers) else MORE
    return attribute if more in attribute.values else attrs.evolve(attribute, values=(*attribute.values, more))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _with_negative(attribute: Attribute) -> Attribute:
    if not isinstance(attribute, Numeric):
        return attribute
    return attrs.evolve(attribute, lower=-2 * max(abs(attribute.lower), abs(attribute.upper)))


def _with_positive(attribute: Attribute) -> Attribute:
    """Return a numeric attribute of the same width, whose numbers are all larger than that."""
    if not isinstance(attribute, Numeric):
        return attribute
    up = 2 * (attribute.upper - attribute.lower) - attribute.lower
    lower, upper, cuts = attribute.lower + up, attribute.upper + up, [cut + up for cut in attribute.cuts]
    return attrs.evolve(attribute, lower=lower, upper=upper, cuts=cuts)


def _with_uneven_bins(attribute: Attribute) -> Attribute:
    """Return a numeric attribute whose first bin is nearly all of its range."""
    if not isinstance(attribute, Numeric):
        return attribute
    number = max(len(attribute.edges) - 2, 1)
    width = (attribute.upper - attribute.lower) / 100 / number
    return attrs.evolve(attribute, bins=None, cuts=[attribute.upper - width * k for k in range(number, 0, -1)])
