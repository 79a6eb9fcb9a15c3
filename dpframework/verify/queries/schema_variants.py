"""Schemas, and parameters of miners and mechanisms, that an example's author did not think of.

A claim must hold for every schema that a miner plans, and for all its parameters. A declared sensitivity may depend on
a schema's labels or bounds, and be wrong for a schema unlike the examples: with missing cells, with more labels, with
numbers below 0 or only above it, with bins of different widths, or with a larger bound on the number of rows. Or it may
be right for a parameter k = 1 and wrong for k = 2. Or it may be right for one attribute and wrong for another, or wrong
if the same attribute is given twice.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from reprlib import Repr
from typing import Any

import attrs
import numpy as np

from dpframework.facts.attributes import Attribute, Categorical, Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions import Description
from dpframework.facts.open_attribute import Open
from dpframework.facts.schema import Schema
from dpframework.mechanisms import Mechanism
from dpframework.queries import Query
from dpframework.run.miner_base import Miner
from dpframework.verify.plugin_code_and_constants import is_foreign_module, words_compared_with
from dpframework.verify.queries.attribute_variants import (
    VALUES,
    more_flags,
    one_of_each_kind,
    with_later_labels,
    with_many_bins,
    with_many_values,
    with_missing,
    with_negative,
    with_positive,
    with_shift,
    with_uneven_bins,
    with_value,
    with_wider,
)

# What other mechanisms spend on a release, as shares of what the example spends. For an epsilon of 1 the scales are 1.8
# and 0.44.
SHARES = (Fraction(5, 9), Fraction(9, 4))
SMALLER = 4  # by what numbers are divided
FEW = 3  # a small public number of rows, or of units
MOST_ROWS = 60  # a larger one, of rows that a search can list
ROWS = 1_000  # the factor by which a public number of rows is enlarged
FAR = 123_456_789  # how many widths of their range numbers are moved above 0, where rounding changes their squares much
MOST_LONGER = 2  # how many attributes are given `VALUES` values, one at a time
MOST_NAMES = 3  # how many other attributes are tried in place of one that a parameter names
MOST_WORDS = 6  # how many other words are tried in place of one that the code compares with others
SHOWN = 100  # how many letters of a text, or of an object of a plugin's own are shown
NUMBERS = (int, float, Fraction, Decimal)
#: Objects of these classes have claims or meanings of their own, so their fields are not changed as settings.
COMPONENTS = (Attribute, Description, Mechanism, Miner, Query)
SPENT = ("epsilon", "rho", "delta")  # the parameters that say how much is spent

_SHORT = Repr()
_SHORT.maxother = _SHORT.maxstring = SHOWN


def related_schemas(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield schemas that a miner may be given in place of an example's, each with a text that says how it differs.

    Nothing is yielded for a schema with derived columns, since their values follow from other columns.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> for how, other in related_schemas(Schema([Boolean("ill"), Categorical("ward", ["x", "y"])])):
    ...     print(how, [attribute.size for attribute in other])
    on the example's schema with missing cells [3, 3]
    on the example's schema with one more value [2, 3]
    on the example's schema with 300 values of ward [2, 300]
    """
    if schema.derivation:
        return
    changes: dict[str, Callable[[Attribute], Attribute]] = {
        "with missing cells": with_missing,
        "with one more value": with_value,
        "with numbers below 0": with_negative,
        "with numbers above 0 only": with_positive,
        "with bins of other widths": with_uneven_bins,
    }
    for how, changed in changes.items():
        try:
            attributes = tuple(attribute if isinstance(attribute, Open) else changed(attribute) for attribute in schema)
        except InputError:  # such as bounds that become equal as floating-point numbers
            continue
        if attributes != schema.attributes:
            yield f"on the example's schema {how}", attrs.evolve(schema, attributes=attributes)
    categorical = [attribute for attribute in schema if isinstance(attribute, Categorical)]
    for longer in categorical[:MOST_LONGER]:
        attributes = tuple(with_many_values(own) if own is longer else own for own in schema)
        yield (
            f"on the example's schema with {VALUES} values of {longer.name}",
            attrs.evolve(schema, attributes=attributes),
        )
    if schema.max_rows is not None and schema.rows is None:
        yield (
            f"on the example's schema with {ROWS:,} times as many rows",
            attrs.evolve(schema, max_rows=ROWS * schema.max_rows),
        )


def further_schemas(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield more schemas like those of `related_schemas`: some differ in one attribute only, others in several ways.

    If all attributes are changed in the same way, equal attributes stay equal. Then a query that takes the range of one
    attribute for that of another shows no mistake.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> for how, other in further_schemas(Schema([Numeric("age", 0, 8, bins=2), Numeric("pay", 0, 8, bins=2)])):
    ...     print(how, [attribute.lower for attribute in other], [attribute.missing for attribute in other])
    on the example's schema with missing cells of pay alone [0.0, 0.0] [False, True]
    on the example's schema with a wider range of pay alone [0.0, -16.0] [False, False]
    on the example's schema with another attribute of each kind [0.0, 0.0, 0.0] [False, False, False]
    on the example's schema with missing cells and numbers below 0 [-16.0, -16.0] [True, True]
    on the example's schema with missing cells and numbers above 0 [16.0, 16.0] [True, True]
    on the example's schema with 300 bins of age [0.0, 0.0] [False, False]
    """
    listed = [own for own in schema if not isinstance(own, Open)]
    if schema.derivation or not listed:
        return
    numeric = [own for own in listed if isinstance(own, Numeric)]
    last, wide = listed[-1], numeric[-1] if numeric else None
    tried: list[tuple[str, Callable[[], list[Attribute]]]] = []

    def replaced(old: Attribute, new: Attribute) -> list[Attribute]:
        return [new if own is old else own for own in schema]

    def of_each(*changes: Callable[[Attribute], Attribute]) -> list[Attribute]:
        made = list(schema)
        for change in changes:
            made = [own if isinstance(own, Open) else change(own) for own in made]
        return made

    if len(listed) > 1 and not last.missing:
        tried.append((f"with missing cells of {last.name} alone", lambda: replaced(last, with_missing(last))))
    if wide is not None and len(numeric) > 1:
        tried.append((f"with a wider range of {wide.name} alone", lambda: replaced(wide, with_wider(wide))))
    tried.append(("with another attribute of each kind", lambda: [*schema, *one_of_each_kind(listed, schema.names)]))
    if numeric:
        tried.append(("with missing cells and numbers below 0", lambda: of_each(with_missing, with_negative)))
        tried.append(("with missing cells and numbers above 0", lambda: of_each(with_missing, with_positive)))
        tried.append(
            (f"with {VALUES} bins of {numeric[0].name}", lambda: replaced(numeric[0], with_many_bins(numeric[0])))
        )
    if flags := more_flags(listed, schema.names):
        tried.append((f"with {len(flags)} more attributes of {flags[0].size} values", lambda: [*schema, *flags]))
    if (later := of_each(with_later_labels)) != list(schema):
        tried.append(("with other numbers in labels", lambda: later))
    for how, changed in tried:
        with contextlib.suppress(InputError):  # such as bounds that become equal as floating-point numbers
            yield f"on the example's schema {how}", attrs.evolve(schema, attributes=tuple(changed()))


def schemas_of_other_sizes(schema: Schema, unit: int) -> Iterator[tuple[str, Schema]]:
    """Yield copies of a schema with a public number of rows, with other numbers: one more, few, and twice as many.

    A bound may be right for even numbers only, or be that of one number. Without a public number there are none.

    Parameters
    ----------
    schema
        The schema of an example.
    unit
        The number of rows of a privacy unit. Each schema has room for three of them.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean
    >>> for how, other in schemas_of_other_sizes(Schema([Boolean("ill")], rows=40), 1):
    ...     print(how, other.rows)
    on the example's schema with 41 rows 41
    on the example's schema with 3 rows 3
    on the example's schema with 60 rows 60
    """
    if schema.rows is None:
        return
    for rows in dict.fromkeys((schema.rows + 1, FEW * unit, min(2 * schema.rows, MOST_ROWS))):
        if rows != schema.rows and FEW * unit <= rows <= MOST_ROWS:
            with contextlib.suppress(InputError):  # such as a bound on the rows that is smaller
                yield f"on the example's schema with {rows} rows", attrs.evolve(schema, rows=rows)


def far_schema(schema: Schema) -> Schema | None:
    """Return a schema whose numeric ranges keep their width, and lie `FAR` widths above 0.

    Rounding changes the squares of such numbers by up to about the square of the width. The result is None if
    the schema has no numeric attribute or has derived columns, or if bounds become equal as floating-point numbers.
    """
    if schema.derivation or not any(isinstance(own, Numeric) for own in schema):
        return None
    try:
        return attrs.evolve(schema, attributes=tuple(with_shift(own, FAR) for own in schema))
    except InputError:  # the bounds become equal as floating-point numbers
        return None


def related_miners(miner: Miner, schema: Schema) -> Iterator[tuple[str, Miner]]:
    """Yield copies of an example's miner, each with one parameter changed, and a text that says how.

    - A whole number is made one larger, and it is made negative. A real number is doubled, and it is made negative.
    - What is left out (None) becomes 1 or 2, a flag, an option, or the name of an attribute, if the type admits that.
    - A flag is flipped.
    - The name of an attribute becomes that of another attribute of the schema.
    - A value that a validator or a type lists becomes another of the listed values. A word that the code compares, or
      that is a key of one of its dictionaries, becomes another such word.
    - The first number of a list, of an array or of a dictionary's values is made negative. The last value of a list is
      repeated. The first value of any other list or dictionary is changed as a parameter is.
    - An object of a class of the plugin's own gets one of its fields changed, in the same ways.

    The budget stays as it is.
    """
    for field in attrs.fields(type(miner)):
        if field.name in SPENT or not field.init:
            continue
        given = getattr(miner, field.name)
        listed = _options(type(miner), field.name, given, field.validator, schema.names)
        if isinstance(given, str) and given not in schema.names:
            listed = listed or words_compared_with(type(miner), field.name, given)[:MOST_WORDS]
        for other in _other_parameters(given, listed, schema.names):
            yield from with_parameter(miner, field.name, other)


def with_parameter(miner: Miner, name: str, value: Any) -> Iterator[tuple[str, Miner]]:
    """Yield a copy of a miner with another value of a parameter, and a text that says so.

    Nothing is yielded if the miner refuses the value, and so claims nothing for it.
    """
    with contextlib.suppress(Exception):
        changed = attrs.evolve(miner, **{str(attrs.fields_dict(type(miner))[name].alias): value})
        yield f"with {name} = {_SHORT.repr(value)}", changed


def smaller_miners(miner: Miner) -> Iterator[tuple[str, Miner]]:
    """Yield copies of an example's miner in which one number is smaller: a whole number is 0, any other one a quarter.

    The numbers of `related_miners` are larger or below 0, and a share of 0.75 can be neither. The budget stays.
    """
    for field in attrs.fields(type(miner)):
        given = getattr(miner, field.name)
        if field.name in SPENT or not field.init or type(given) not in (*NUMBERS, np.float64):
            continue
        other = 0 if type(given) is int else given / SMALLER
        if other != given:
            yield from with_parameter(miner, field.name, other)


def with_other_numbers(miner: Miner, schema: Schema) -> Iterator[tuple[str, Miner]]:
    """Yield those of `related_miners` in which a whole number is another one, such as a number of rounds.

    Parameters of other types may be budgets, and a larger budget may rightly cost more.
    """
    for how, other in related_miners(miner, schema):
        numbers = [field.name for field in attrs.fields(type(miner)) if type(getattr(miner, field.name)) is int]
        if any(getattr(other, name) != getattr(miner, name) for name in numbers):
            yield how, other


def related_mechanisms(
    mechanism: Mechanism, shares: Sequence[Fraction] = SHARES, names: Sequence[str] = SPENT[:2]
) -> Iterator[tuple[str, Mechanism]]:
    """Yield copies of a mechanism that spend these shares of what it spends, by the parameters of these names.

    Examples
    --------
    >>> from dpframework.mechanisms import Laplace
    >>> [str(other.epsilon) for _, other in related_mechanisms(Laplace(1))]
    ['5/9', '9/4']
    """
    for name in names:
        given = getattr(mechanism, name, None)
        if not isinstance(given, Fraction | float):
            continue
        for share in shares:
            try:
                changed = attrs.evolve(mechanism, **{name: share * given})
            except Exception:  # the mechanism refuses this value, and so claims nothing for it
                continue
            yield f"with {name} = {float(share * given):.3g}", changed


def _options(kind: type[Any], name: str, given: Any, validator: Any, names: Sequence[str]) -> list[Any]:
    """Return the values that a field of a class may take, if its value, its validator or its type lists them."""
    if isinstance(given, enum.Enum):
        return list(type(given))
    # `and_` of attrs has several validators, and `in_` has the options.
    validators = [validator, *getattr(validator, "_validators", ())]
    if options := next((one.options for one in validators if hasattr(one, "options")), ()):
        return [*options]
    try:
        hint = typing.get_type_hints(kind)[name]
    except Exception:  # the annotation names something that cannot be found
        return []
    if typing.get_origin(hint) is typing.Literal:
        return [*typing.get_args(hint)]
    return list(_values_of(hint, names)) if given is None else []


def _other_parameters(given: Any, listed: Sequence[Any], names: Sequence[str]) -> Iterator[Any]:
    if listed:
        yield from (value for value in listed if type(value) is type(given) or given is None if value != given)
    elif type(given) is bool:
        yield not given
    elif isinstance(given, np.integer) and not isinstance(given, np.timedelta64):
        yield from (type(given)(given + 1), type(given)(-2 * abs(int(given)) - 1))
    elif type(given) is int:
        yield from (given + 1, -2 * abs(given) - 1)
    elif type(given) in (float, Fraction, Decimal, np.float64):
        yield from (2 * given, -2 * abs(given) - 1)
    elif isinstance(given, str) and given in names:
        yield from [name for name in names if name != given][:MOST_NAMES]
    elif type(given) in (tuple, list) and len(given) > 0:
        if all(type(one) in NUMBERS for one in given):
            yield type(given)([-2 * max(map(abs, given)) - 1, *given[1:]])
        elif not isinstance(given[0], str):
            yield from (type(given)([other, *given[1:]]) for other in _other_parameters(given[0], (), names))
        yield type(given)([*given, given[-1]])
    elif isinstance(given, Mapping) and given:
        if all(type(one) in NUMBERS for one in given.values()):
            yield {**given, next(iter(given)): -2 * max(map(abs, given.values())) - 1}
        else:
            name, first = next(iter(given.items()))
            yield from ({**given, name: other} for other in _other_parameters(first, (), names))
            if all(isinstance(text, str) for pair in given.items() for text in pair):
                yield from _other_texts(given)
    elif isinstance(given, np.ndarray) and given.dtype.kind in "if" and given.size:
        changed = given.copy()
        changed.flat[0] = -2 * np.abs(given).max() - 1
        yield changed
    elif is_foreign_module(type(given).__module__) and not isinstance(given, COMPONENTS):
        yield from _other_settings(given, names)


def _other_texts(given: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield copies of a dictionary of texts, such as a tree that maps each node to its parent, with one other value.

    The last key that is not a value itself, which is a leaf of a tree, gets the value of another key. If some values
    are keys, there is a second copy, in which this key gets another leaf as its value. So the tree gets deeper and
    never has a cycle.
    """
    leaves = [key for key in given if key not in given.values()]
    for others in (list(given.values()), leaves if len(leaves) < len(given) else []):
        other = next((text for text in others if leaves and text not in (leaves[-1], given[leaves[-1]])), None)
        if other is not None:
            yield {**given, leaves[-1]: other}


def _other_settings(given: Any, names: Sequence[str]) -> Iterator[Any]:
    """Yield copies of a plugin's own object of attrs or a dataclass, each with one of its fields changed."""
    kind = type(given)
    fields: list[tuple[str, str, Any]] = []
    evolve: Callable[..., Any] = attrs.evolve
    if attrs.has(kind):
        fields = [(field.name, field.alias, field.validator) for field in attrs.fields(kind) if field.init]
    elif dataclasses.is_dataclass(kind):
        fields, evolve = (
            [(own.name, own.name, None) for own in dataclasses.fields(kind) if own.init],
            dataclasses.replace,
        )
    for name, alias, validator in fields:
        held = getattr(given, name)
        listed = _options(kind, name, held, validator, names)
        for other in _other_parameters(held, listed, names) if name not in SPENT else ():
            with contextlib.suppress(Exception):  # the class refuses this value, and so claims nothing for it
                yield evolve(given, **{alias: other})


def _values_of(hint: Any, names: Sequence[str]) -> Iterator[Any]:
    """Yield values of a type that may also be None: numbers, flags, options and names of attributes."""
    kinds = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else ()
    for kind in kinds:
        if kind in NUMBERS:
            yield from (kind(1), kind(2))
        elif kind is bool:
            yield from (True, False)
        elif kind is str:
            yield from names[:MOST_NAMES]
        elif typing.get_origin(kind) is typing.Literal:
            yield from typing.get_args(kind)
        elif isinstance(kind, type) and issubclass(kind, enum.Enum):
            yield from kind
