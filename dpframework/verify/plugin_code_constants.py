"""Tell which code is a plugin's, and find numbers, texts and words in the code of queries, mechanisms and miners.

Verification tries these numbers as values and outputs, and these words as parameters, since code often treats them as
special cases.
"""

from __future__ import annotations

import dis
import functools
import itertools
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from dpframework.facts.installed_package_digests import CORE, distributions
from dpframework.facts.logical_descriptions_of_rows import Description
from dpframework.queries import Query

# Larger numbers are left out. At these, the difference of two log-densities in double precision is mostly rounding.
LARGEST = 10**8
LONGEST = 60  # longer texts are messages or documentation
MOST_LISTED = 50  # longer lists are data, and not special cases


def is_foreign_module(module: str) -> bool:
    """Tell whether a module, given by its full name, is a plugin's: neither dpframework's nor Python's own.

    The project's own plugins count as plugins.
    """
    package = module.partition(".")[0]
    return package != CORE and package not in sys.stdlib_module_names


def is_foreign(component: object) -> bool:
    """Tell whether some code of a miner, query or mechanism is from a plugin that is not the project's own.

    Code of the queries and descriptions that a query or a description holds counts, too.
    """
    if any(_is_foreign_package(kind.__module__.partition(".")[0]) for kind in type(component).__mro__):
        return True
    return isinstance(component, Query | Description) and any(map(is_foreign, _parts(component)))


def _parts(component: Query | Description) -> Iterator[object]:
    """Yield the queries and descriptions that a component holds in its fields, also in tuples."""
    kind: type[Any] = type(component)
    for field in attrs.fields(kind) if attrs.has(kind) else ():
        held = getattr(component, field.name, None)
        for one in held if isinstance(held, tuple) else (held,):
            if isinstance(one, Query | Description):
                yield one


@functools.cache
def _is_foreign_package(package: str) -> bool:
    return is_foreign_module(package) and _distribution(package) != _distribution(CORE)


@functools.cache
def _distribution(package: str) -> str:
    return distributions().get(package, (package, ""))[0]


def constants_of(things: Sequence[Any]) -> list[float]:
    """Return the numbers in the code of some objects, those farthest from 0 first.

    The numbers are taken from a plugin's functions and class attributes, from the globals that these functions use, and
    from the objects' fields, also where they are in short lists. Numbers that are only in short dictionaries, sets or
    arrays come last.
    """
    tables = list[Any]()
    numbers = dict.fromkeys(_numbers(_literals(things, tables=tables)))
    others = dict.fromkeys(_numbers(itertools.chain.from_iterable(map(_held, tables))))
    apart = [number for number in others if number not in numbers]
    return [*sorted(numbers, key=abs, reverse=True), *sorted(apart, key=abs, reverse=True)]


def _numbers(literals: Iterable[Any]) -> Iterator[float]:
    return (float(one) for one in literals if type(one) in (int, float) and abs(one) <= LARGEST)


def _held(table: Any) -> Iterator[Any]:
    """Yield what a dictionary, a set or an array holds, also in short collections within it."""
    left, known = [table], dict[int, Any]()  # known objects are kept, so that no other one gets their id
    while left:
        one = left.pop()
        if isinstance(one, np.ndarray | Mapping | list | tuple | set | frozenset):
            if id(one) in known:  # it may hold itself
                continue
            known[id(one)] = one
        if isinstance(one, np.ndarray):
            one = one.ravel().tolist() if one.size <= MOST_LISTED else []
        if isinstance(one, Mapping):
            one = [*one.keys(), *one.values()]
        if isinstance(one, list | tuple | set | frozenset):
            left += one if len(one) <= 2 * MOST_LISTED else []
        else:
            yield one


def texts_of(things: Sequence[Any]) -> list[str]:
    """Return the texts in the code of some objects, from the same places as `constants_of`.

    Docstrings are left out, and so are special methods, most of which attrs writes.
    """
    texts = (one for one in _literals(things, special=False) if isinstance(one, str))
    return list(dict.fromkeys(one for one in texts if 0 < len(one) <= LONGEST))


def _literals(things: Sequence[Any], *, special: bool = True, tables: list[Any] | None = None) -> Iterator[Any]:
    """Yield what is in the code of some objects. Special methods such as `__init__` are read only if `special` is true.

    Dictionaries, sets and arrays are added to `tables`.
    """
    kinds = {kind for thing in things for kind in type(thing).__mro__ if is_foreign_module(kind.__module__)}
    fields = [
        getattr(thing, field.name) for thing in things if attrs.has(type(thing)) for field in attrs.fields(type(thing))
    ]
    held = (vars(kind).items() for kind in kinds)
    left = [*fields, *(one for own in held for name, one in own if special or not name.startswith("__"))]
    seen = set[int]()
    while left:
        one = left.pop()
        yield one
        if tables is not None and isinstance(one, dict | set | np.ndarray):
            tables.append(one)
        if isinstance(one, tuple | list | frozenset) and len(one) <= MOST_LISTED and id(one) not in seen:
            seen.add(id(one))  # it may hold itself
            left += one
        if not isinstance(one, types.FunctionType) or id(one) in seen or not is_foreign_module(one.__module__ or ""):
            continue
        seen.add(id(one))
        for code in _codes_of(one.__code__):
            parts = (part for part in code.co_consts if not isinstance(part, types.CodeType))
            left += [part for part in parts if part is None or part is not one.__doc__]
            left += [one.__globals__[name] for name in code.co_names if name in one.__globals__]


def words_compared_with(kind: type[Any], name: str, given: str) -> list[str]:
    """Return other words that a class's code may accept in place of the value of a field, such as names of options.

    The words come from comparisons in functions that read an attribute of that name. They also come from collections
    (or the keys of dictionaries) that contain the value and that the class or these functions use.

    Parameters
    ----------
    kind
        The class. Its own code is read, and the code of the plugin's functions and classes that it uses.
    name
        The name of the field.
    given
        The field's value.
    """
    found = dict[str, None]()
    for one in _classes_and_functions(kind):
        if isinstance(one, type):
            found |= dict.fromkeys(word for held in vars(one).values() for word in _words_beside(held, given))
            continue
        for code in _codes_reading(name, one):
            held = (one.__globals__[used] for used in code.co_names if used in one.__globals__)
            found |= dict.fromkeys(word for other in held for word in _words_beside(other, given))
            found |= dict.fromkeys(filter(_is_word, _compared_constants(code)))
    return [word for word in found if word != given]


def numbers_compared_with(kind: type[Any], name: str) -> list[float]:
    """Return the numbers that a class's code treats as special cases, in functions that read an attribute of that name.

    They are the numbers that the code compares something with by `==`, `!=` or `in`, as in `order == 1`. Numbers on
    either side of a limit are tried elsewhere.

    Parameters
    ----------
    kind, name
        As for `words_compared_with`.
    """
    functions = (one for one in _classes_and_functions(kind) if not isinstance(one, type))
    codes = itertools.chain.from_iterable(_codes_reading(name, one) for one in functions)
    return list(dict.fromkeys(_numbers(itertools.chain.from_iterable(map(_equal_constants, codes)))))


def _classes_and_functions(kind: type[Any]) -> Iterator[type[Any] | types.FunctionType]:
    """Yield a class, its bases, and the functions and classes that their code uses, as far as they are a plugin's."""
    seen = set[int]()
    left: list[Any] = [own for own in kind.__mro__ if is_foreign_module(own.__module__)]
    while left:
        one = left.pop(0)
        one = getattr(one, "fget", None) or getattr(one, "func", None) or getattr(one, "__func__", one)
        if id(one) in seen or not is_foreign_module(getattr(one, "__module__", None) or ""):
            continue
        seen.add(id(one))
        if isinstance(one, type):
            left += vars(one).values()
            yield one
        elif isinstance(one, types.FunctionType):
            used = (name for code in _codes_of(one.__code__) for name in code.co_names if name in one.__globals__)
            held = (one.__globals__[name] for name in used)
            left += [other for other in held if isinstance(other, type | types.FunctionType)]
            yield one


def _codes_reading(name: str, function: types.FunctionType) -> Iterator[types.CodeType]:
    """Yield the code of a function, and of functions within it, if that code reads an attribute of the given name."""
    return (code for code in _codes_of(function.__code__) if name in code.co_names)


def _codes_of(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _codes_of(part)


def _words_beside(held: Any, given: str) -> list[str]:
    """Return the words in a collection or the keys of a dictionary, if the given word is among them."""
    known = isinstance(held, Collection) and not isinstance(held, str | bytes)
    try:
        return [word for word in held if isinstance(word, str)] if known and given in held else []
    except Exception:  # a collection of another library that cannot be asked this
        return []


def _equal_constants(code: types.CodeType) -> Iterator[Any]:
    return _compared_constants(code, lambda comparison: "<" not in comparison and ">" not in comparison)


def _compared_constants(code: types.CodeType, wanted: Callable[[str], bool] = lambda comparison: True) -> Iterator[Any]:
    """Yield the constants that a function compares something with, also those in a collection."""
    before: list[Any] = []
    for operation in dis.get_instructions(code):
        if operation.opname == "CONTAINS_OP" or (operation.opname == "COMPARE_OP" and wanted(str(operation.argval))):
            for constant in before[-2:]:
                yield from constant if isinstance(constant, tuple | frozenset) else [constant]
        before.append(operation.argval if operation.opname == "LOAD_CONST" else None)


def _is_word(constant: Any) -> bool:
    return isinstance(constant, str) and (constant.isidentifier() or "-" in constant)
