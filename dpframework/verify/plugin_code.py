"""Which code is a plugin's, and the numbers in the code of queries, mechanisms and miners.

Searches try these numbers, since special cases begin there.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Sequence
from typing import Any

import attrs

from dpframework.facts.packages import CORE, distributions

# Larger numbers are left out. At these, the difference of two log-densities in double precision is mostly rounding.
LARGEST = 10**8


def is_foreign_module(module: str) -> bool:
    """Tell whether a module, given by its full name, is a plugin's: neither dpframework's nor Python's own.

    The project's own plugins count as plugins.
    """
    package = module.partition(".")[0]
    return package != CORE and package not in sys.stdlib_module_names


def is_foreign(component: object) -> bool:
    """Tell whether some code of a miner, query or mechanism is from a plugin that is not the project's own."""
    packages = [kind.__module__.partition(".")[0] for kind in type(component).__mro__]
    return any(is_foreign_module(one) and _distribution(one) != _distribution(CORE) for one in packages)


@functools.cache
def _distribution(package: str) -> str:
    return distributions().get(package, (package, ""))[0]


def constants_of(things: Sequence[Any]) -> list[float]:
    """Return the numbers in the code of some objects, those farthest from 0 first.

    The numbers are taken from a plugin's functions and class attributes, from the globals that these functions use, and
    from the objects' fields.
    """
    kinds = {kind for thing in things for kind in type(thing).__mro__ if is_foreign_module(kind.__module__)}
    fields = [
        getattr(thing, field.name) for thing in things if attrs.has(type(thing)) for field in attrs.fields(type(thing))
    ]
    left = [*fields, *(held for kind in kinds for held in vars(kind).values())]
    found, seen = dict[float, None](), set[int]()
    while left:
        one = left.pop()
        if type(one) in (int, float) and abs(one) <= LARGEST:
            found[float(one)] = None
        if not isinstance(one, types.FunctionType) or id(one) in seen or not is_foreign_module(one.__module__ or ""):
            continue
        seen.add(id(one))
        codes = [one.__code__]
        while codes:
            code = codes.pop()
            codes += [part for part in code.co_consts if isinstance(part, types.CodeType)]
            left += [part for part in code.co_consts if not isinstance(part, types.CodeType)]
            left += [one.__globals__[name] for name in code.co_names if name in one.__globals__]
    return sorted(found, key=abs, reverse=True)
