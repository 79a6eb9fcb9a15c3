"""The code that a plan would run: the files of its miners, mechanisms, queries and engine, and their packages.

Whoever approves a plan approves code and not only names: a mechanism that was changed to add no noise keeps its name.
For each component a digest (SHA-256) of the files that define its class and base classes tells whether it has changed.
The digest of the whole package also covers the helper functions that the component calls. Another package is included
only if the component has a base class there.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, final

from dpframework.facts.installed_package_digests import CORE, package_form, place_of
from dpframework.plan.nodes import Node, Step, walk
from dpframework.queries.plan_file_query import PlanFileQuery


@final
class PlannedCode(Mapping[str, Any]):
    """The code that will run (see `code_of`). Digests are computed at first access, since drawing a plan needs none.

    Parameters
    ----------
    root
        The planned releases, with their queries and mechanisms.
    others
        The other components that run, such as miners. Each is given as its kind ("miner"), name and class.
    """

    def __init__(self, root: Node, others: Iterable[tuple[str, str, type]]) -> None:
        self._root, self._others = root, tuple(others)

    @functools.cached_property
    def _content(self) -> dict[str, Any]:
        return code_of(self._root, self._others)

    def __getitem__(self, key: str) -> Any:
        """Return the list of components for the key "components", or of packages for the key "packages"."""
        return self._content[key]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the two keys."""
        return iter(self._content)

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._content)


def code_of(root: Node, others: Iterable[tuple[str, str, type]]) -> dict[str, Any]:
    """Return the components that will run and their packages, with digests, in a JSON-safe form."""
    components = list(others)
    for node in walk(root):
        if isinstance(node, Step):
            components.append(("mechanism", node.mechanism.name, type(node.mechanism)))
            if not isinstance(node.query, PlanFileQuery):  # a query from a file has no code
                components.append(("query", node.facts.name, type(node.query)))
    return code_form(components)


def code_form(components: Iterable[tuple[str, str, type]]) -> dict[str, Any]:
    """Return the output of `code_of` for components that are given by kind, name and class."""
    used = dict.fromkeys(components)
    described = [
        {"kind": kind, "name": name, "class": class_path(cls), "digest": component_digest(cls)}
        for kind, name, cls in used
    ]
    # Base classes may come from other packages, whose code runs too.
    tops = {base.__module__.partition(".")[0] for _, _, cls in used for base in cls.__mro__}
    packages = {CORE, *(top for top in tops if top not in sys.stdlib_module_names and place_of(top) is not None)}
    return {
        "components": sorted(described, key=lambda one: (one["kind"], one["name"], one["class"])),
        "packages": [dict(package_form(package)) for package in sorted(packages)],
    }


def class_path(cls: type) -> str:
    """Return the module and the name of a class, with a colon between them."""
    return f"{cls.__module__}:{cls.__qualname__}"


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return one text for each difference between the code of two plans.

    Components and packages that only one of the plans runs are left out. A change of the engine is included.
    """
    told, named = [], set()
    for new in after["components"]:
        same_kind = [old for old in before["components"] if old["kind"] == new["kind"]]
        same_name = [old for old in same_kind if old["name"] == new["name"]]
        if new["kind"] == "engine" and same_kind and not same_name:  # a plan has only one engine
            told.append(f"the engine is '{new['name']}', not '{same_kind[0]['name']}'")
        if not same_name or new in same_name:
            continue
        module = new["class"].partition(":")[0]
        named.add(module.partition(".")[0])
        if any(old["class"] == new["class"] for old in same_name):
            told.append(f"the code of {new['kind']} '{new['name']}' ({module}) has changed")
        else:
            told.append(f"{new['kind']} '{new['name']}' is now {new['class']}")
    packages = {package["package"]: package for package in before["packages"]}
    for new in after["packages"]:
        name, old = new["package"], packages.get(new["package"], new)
        if old["version"] != new["version"]:
            told.append(f"package '{name}' has version {new['version']}, not {old['version']}")
        elif old["digest"] != new["digest"] and name not in named:
            told.append(f"the code of package '{name}' has changed")
    return told


@functools.cache
def component_digest(cls: type) -> str:
    """Return the SHA-256, in hex, of the files that define a class and its bases.

    A class without a file is hashed as bytecode.
    """
    digest = hashlib.sha256()
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] not in sys.stdlib_module_names:
            digest.update(_class_digest(base))
    return digest.hexdigest()


def _class_digest(cls: type) -> bytes:
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if file is not None and Path(file).is_file():
        return hashlib.sha256(Path(file).read_bytes()).digest()
    digest = hashlib.sha256()
    for name, value in sorted(vars(cls).items()):
        # A property or a decorator wraps functions.
        wrapped = (getattr(value, inner, None) for inner in ("fget", "__func__", "func", "__wrapped__"))
        functions = [function for function in (value, *wrapped) if isinstance(function, types.FunctionType)]
        for held in functions or ([] if name.startswith("__") else [value]):
            digest.update(f"{name} {_text(held)}\n".encode())
    return digest.digest()


def _text(value: Any) -> str:
    """Return a text that changes when code or a constant changes. Other objects are written as their type."""
    match value:
        case types.FunctionType():
            defaults = *(value.__defaults__ or ()), *sorted((value.__kwdefaults__ or {}).items())
            return f"{_text(value.__code__)} {_text(defaults)}"
        case types.CodeType():
            return f"({value.co_code.hex()} {_text(value.co_consts)} {value.co_names})"
        case tuple():
            return f"({', '.join(map(_text, value))})"
        case frozenset():
            # A set is sorted, since its order differs from process to process.
            return f"{{{', '.join(sorted(map(_text, value)))}}}"
        case bool() | int() | float() | complex() | str() | bytes() | None:
            return repr(value)
    return type(value).__qualname__
