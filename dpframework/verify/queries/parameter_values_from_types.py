"""The values that a field of a class may take, as far as its validator or its type lists them.

The module also tells which values say by their name that they plant a mistake.
"""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

MOST_NAMES = 3  # how many other attributes are tried in place of one that a parameter names
NUMBERS = (int, float, Fraction, Decimal)
#: Words of flags and options with which tests plant mistakes. Nobody who uses a class chooses them inadvertently.
PLANTING = frozenset(
    {"wrong", "incorrect", "correct", "bug", "buggy", "broken", "faulty", "flawed", "honest", "cheat", "cheats"}
    | {"leak", "leaks", "leaky", "unsafe", "unsound", "mistake", "planted"}
)


def listed_values(kind: type[Any], name: str, given: Any, validator: Any, names: Sequence[str]) -> list[Any]:
    """Return the values that a field of a class may take, if its value, its validator or its type lists them.

    Parameters
    ----------
    kind, name
        The class and the name of its field.
    given
        The value of the field. If it is None, values that the type admits besides None are returned.
    validator
        The field's validator.
    names
        The names of attributes. A parameter that is a text may be one of them.

    Examples
    --------
    >>> import attrs
    >>> @attrs.frozen
    ... class Total:
    ...     bounds: tuple[float, float] | None = None
    ...     by: list[str] | None = None
    >>> listed_values(Total, "bounds", None, None, ()), listed_values(Total, "by", None, None, ["ill", "old"])
    ([(1.0, 2.0), (-2.0, -1.0)], [['ill'], ['ill', 'old']])
    """
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


def _values_of(hint: Any, names: Sequence[str]) -> Iterator[Any]:
    """Yield values of a type that may also be None: numbers, flags, options, names of attributes, or lists of them."""
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
        elif isinstance(typing.get_origin(kind), type):
            yield from _collections_of(typing.get_origin(kind), typing.get_args(kind), names)


def _collections_of(kind: type[Any], held: tuple[Any, ...], names: Sequence[str]) -> Iterator[Any]:
    """Yield collections of numbers or of names of attributes, such as two bounds, and dictionaries of such numbers.

    Parameters
    ----------
    kind
        The class of the collection, which may be an abstract one.
    held
        The types of what it holds, as in an annotation.
    names
        The names of attributes.
    """
    if issubclass(kind, Mapping):
        if held and held[0] is str and held[-1] in NUMBERS:
            yield {name: held[-1](k + 1) for k, name in enumerate(names[:2])}
        return
    if not issubclass(kind, Collection) or not held:
        return
    build = kind if kind in (list, set, frozenset) else tuple
    length = len(held) if kind is tuple and Ellipsis not in held else 2
    if held[0] in NUMBERS:
        yield build(held[0](k + 1) for k in range(length))
        yield build(held[0](k - length) for k in range(length))
    elif held[0] is str:
        yield from (build(names[:some]) for some in ((length,) if kind is tuple and Ellipsis not in held else (1, 2)))


def plants_mistake(name: str, value: Any) -> bool:
    """Tell whether a flag says by its name, or an option by its value, that a mistake is planted.

    Examples
    --------
    >>> plants_mistake("with_bug", True), plants_mistake("on_the_right", True), plants_mistake("rounding", "wrong")
    (True, False, True)
    """
    if isinstance(value, bool):
        return name == "right" or not PLANTING.isdisjoint(name.lower().split("_"))
    return isinstance(value, str) and value.lower() in PLANTING
