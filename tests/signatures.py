"""What callers may rely on: the parameters of every function, class and method by a public name that has a default.

    python tests/signatures.py

writes `signatures.txt` anew. A test compares: a default that moves by accident changes what everybody's calls do, and
nothing else may notice, since calls that test a parameter give it. Fields that a value hides when it is printed, or
leaves out when it is compared, are listed too, and what a class says of itself, such as that its answers are whole.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import attrs

import dpframework

PAGE = Path(__file__).with_suffix(".txt")
PLUGINS = ("dpframework_distance", "dpframework_greedy", "dpframework_tables", "dpframework_trees")
LONGEST = 120  # letters of a default
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def modules() -> Iterator[Any]:
    """Yield every module of the core and of the built-in plugins, in the order of names."""
    for package in (dpframework, *map(importlib.import_module, PLUGINS)):
        for found in sorted(pkgutil.walk_packages(package.__path__, f"{package.__name__}."), key=lambda one: one.name):
            if not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def lines() -> Iterator[str]:
    """Yield a line for each function, class and method with a default, by public names, in the order of modules."""
    for module in modules():
        for name, value in sorted(vars(module).items()):
            if not name.startswith("_") and callable(value) and getattr(value, "__module__", "") == module.__name__:
                whole = f"{module.__name__}.{name}"
                told = _of_class(whole, value) if inspect.isclass(value) else [f"{whole}{_parameters(value)}"]
                yield from (line for line in told if "=" in line)


def _of_class(name: str, value: type) -> Iterator[str]:
    """Yield the lines of a class: how it is made, its fields' exceptions, and its own methods."""
    if issubclass(value, Enum | BaseException):
        return
    yield f"{name}{_parameters(value)}"
    if attrs.has(value):
        for field in attrs.fields(value):
            told = {"repr": field.repr, "eq": field.eq, "init": field.init}
            if odd := [f"{key}=False" for key, said in told.items() if said is False and not field.inherited]:
                yield f"{name}.{field.name}: {', '.join(odd)}"
    for own, member in sorted(vars(value).items()):
        bare = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if not own.startswith("_") and inspect.isfunction(bare):
            yield f"{name}.{own}{_parameters(bare)}"
        elif not own.startswith("_") and isinstance(bare, bool | int | float):
            yield f"{name}.{own} = {bare!r}"


def _parameters(value: Any) -> str:
    """Return the names, kinds and defaults of what something takes, without types."""
    try:
        signature = inspect.signature(value)
    except ValueError:  # of what is compiled
        return "(...)"
    bare = [_bare(one) for one in signature.parameters.values()]
    return ADDRESS.sub("", str(inspect.Signature(bare)))


def _bare(one: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter without its type, and the type alone of a default that takes more than a few words."""
    long = one.default is not inspect.Parameter.empty and len(repr(one.default)) > LONGEST
    return one.replace(annotation=inspect.Parameter.empty, **({"default": type(one.default)} if long else {}))


def page() -> str:
    """Return the whole list."""
    return "".join(f"{line}\n" for line in lines())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
