"""Find data that code keeps after a run: in objects, classes, globals, closures, defaults, caches or the environment.

A run may leave nothing behind but its releases. A query that keeps rows hands them to everyone who gets the plan. A
query that keeps the counts of its first table gives them as its answer on every later table, so a replay in the same
process sees no difference. So before each replay, one check (`Behaviour.examine_memory`) restores the state from before
the first run. Runs with the same releases on different tables must then leave the same state.
"""

from __future__ import annotations

import array
import collections
import functools
import gc
import hashlib
import io
import os
import pickle
import random
import sys
import types
from collections.abc import Iterable
from typing import Any, TypeAlias, final

import numpy as np

from dpframework.facts.installed_package_digests import CORE
from dpframework.verify.miners.value_comparison import cell_content
from dpframework.verify.plugin_code_constants import is_foreign_module

ENVIRONMENT, CACHE = "the environment", "the cache of"
MOST_VISITED = 20_000  # the most objects that are visited in a walk from one place, or for one digest
ATOMS = (type(None), bool, int, float, complex, str, bytes, range, np.generic, np.dtype)
# The attributes and slots of objects from these packages are looked at, although the packages are Python's or the core.
WALKED = frozenset({CORE, "builtins", "collections", "types", "weakref", "threading", "_thread", "queue", "functools"})
# Objects of these packages are not looked into, except for the cells of small data frames.
OPAQUE = frozenset({"numba", "llvmlite", "polars", "pandas", "pyarrow", "pytest", "_pytest", "pluggy", "hypothesis"})
FRAMES = frozenset({("pandas", "DataFrame"), ("pandas", "Series"), ("polars", "DataFrame"), ("polars", "Series")})
#: The two random generators that all code of a process shares: the name of the owner, and a function that draws.
SHARED: tuple[tuple[str, Any], ...] = (("Python's", random.random), ("numpy's", np.random.random))
MOST_CELLS = 100_000  # the most cells of a data frame that is looked into
# Names with two underscores on either side that Python or attrs gives to modules and classes. Others may be a plugin's.
GIVEN_NAMES = frozenset({*dir(type), *dir(types.ModuleType), "__builtins__", "__cached__", "__file__", "__path__"})
GIVEN_NAMES |= frozenset({"__annotations__", "__slots__", "__warningregistry__", "__weakref__"})

Contents: TypeAlias = list[tuple[str, Any]]
"""The objects that a value holds, each with its name. A name may be an empty text."""


@final
class HiddenState:
    """A snapshot of all places where the code of some objects can keep data.

    The places are the objects themselves, their classes, the modules of their packages, the environment, and the
    generators of random numbers that Python and numpy share. Python's own modules and those of dpframework are left
    out, since they keep nothing of rows.

    Parameters
    ----------
    things
        A miner, and the queries and mechanisms of its plan.
    """

    def __init__(self, things: Iterable[Any]) -> None:
        things = list(things)
        kinds = dict.fromkeys(
            kind for thing in things for kind in type(thing).__mro__ if is_foreign_module(kind.__module__)
        )
        self._packages = {kind.__module__.partition(".")[0] for kind in kinds}
        modules = _modules_of(kinds, self._packages)
        self._roots: list[tuple[str, Any]] = [(ENVIRONMENT, os.environ._data)]  # type: ignore[attr-defined]
        self._roots += [(f"{whose} shared random generator", draw.__self__) for whose, draw in SHARED]
        self._roots += [(f"the {_role(thing)} '{thing.name}'", thing) for thing in things]
        self._roots += [(f"class '{kind.__qualname__}'", kind) for kind in kinds]
        self._roots += [(f"module '{module.__name__}'", module) for module in modules]
        self._own = {id(root) for _, root in self._roots}
        self._known = self._walk()

    def put_back(self) -> None:
        """Give every place the contents that it had in the snapshot, as far as that is possible."""
        changed = self._find_changes()
        for _, value, held in changed:
            _restore(value, held)
        for place, value, held in changed:
            if not _alike(held, self._contents_of(value) or []) and len(held) == 1 and isinstance(held[0][1], bytes):
                self._replace(place, value, held)

    def _replace(self, place: str, value: Any, held: Contents) -> None:
        """Put an earlier copy in the place of an object that cannot be set back, such as a counter."""
        try:
            copied = pickle.loads(held[0][1])
        except Exception:  # the bytes are no pickle
            return
        for k, (name, holder, parts) in enumerate(self._known):
            if holder is value:
                self._known[k] = (place, copied, held)
            elif any(part is value for _, part in parts):
                self._known[k] = (name, holder, [(label, copied if part is value else part) for label, part in parts])
                _restore(holder, self._known[k][2])

    def changed_places(self) -> dict[str, str]:
        """Return the names of places whose contents differ from the snapshot, each with a digest of the contents."""
        digests = {}
        for place, value, held in self._find_changes():
            if isinstance(value, types.ModuleType | type) or place == ENVIRONMENT:
                before, now = dict(held), dict(self._contents_of(value) or [])
                parts = [name for name in before | now if before.get(name) is not now.get(name)]
                digests.update({_place(place, value, name): self._digest(now.get(name)) for name in parts})
            else:
                digests[place] = self._digest(value)
        return digests

    def _walk(self) -> list[tuple[str, Any, Contents]]:
        """Return each object that can keep something, with its place and its contents."""
        seen: dict[int, Any] = {}
        found = []
        for place in self._roots:
            left, most = [place], len(seen) + MOST_VISITED
            while left and len(seen) < most:
                name, value = left.pop()
                if isinstance(value, ATOMS) or id(value) in seen:
                    continue
                seen[id(value)] = value  # the object is kept, so that no other object gets its id
                name = f"{CACHE} '{value.__qualname__}'" if _is_cached_function(value) else name
                held = self._contents_of(value)
                if held is not None:
                    found.append((name, value, held))
                    children = [named for named in held if not isinstance(named[1], types.ModuleType)]
                    left += [(_place(name, value, label), child) for label, child in reversed(children)]
        return found

    def _find_changes(self) -> list[tuple[str, Any, Contents]]:
        return [one for one in self._known if not _alike(one[2], self._contents_of(one[1]) or [])]

    def _contents_of(self, value: Any) -> Contents | None:
        """Return the contents of a value, or None where a run cannot change them."""
        match value:
            case types.ModuleType() | type():
                own = id(value) in self._own or (isinstance(value, type) and self._is_own(value))
                return [(name, held) for name, held in list(vars(value).items()) if _is_data(name)] if own else None
            case types.FunctionType() if not self._is_own(value):
                return None
            case types.FunctionType():
                cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
                return [
                    *((f"the enclosed variable '{name}'", cell) for name, cell in cells),
                    ("a default argument", value.__defaults__),
                    ("a default argument", value.__kwdefaults__),
                    ("an attribute", vars(value)),
                ]
            case staticmethod() | classmethod() | types.MethodType():
                return [("", value.__func__)]
            case property():
                return [("", value.fget), ("", value.fset)]
            case functools.cached_property():
                return [("", value.func)]
            case types.CellType():
                return [("", cell_content(value))]
            case functools.partial():
                return [("", value.func), ("", value.args), ("", value.keywords)]
            case np.ndarray() if value.dtype.kind != "O":
                return [("", value.tobytes())] if value.flags.writeable else None
            case dict():
                return [(str(pair[0])[:40], part) for pair in list(value.items()) for part in pair]
            case tuple() | list() | set() | frozenset() | collections.deque() | np.ndarray():
                return [("", held) for held in list(value.flat if isinstance(value, np.ndarray) else value)]
            case bytearray() | array.array():
                return [("", bytes(value))]
            case np.random.Generator():
                return [("", pickle.dumps(value.bit_generator.state))]
            case random.Random():
                return [("", pickle.dumps(value.getstate()))]
            case np.random.RandomState():
                return [("", pickle.dumps(value.get_state()))]
        if _is_cached_function(value):
            parts: list[Any] = []
            for referent in gc.get_referents(value):
                if isinstance(referent, dict):
                    parts += [part for pair in list(referent.items()) for part in pair]
                elif not isinstance(referent, type):
                    parts.append(referent)
            return [("", part) for part in parts]
        # An object's slots and attributes, or its state as pickle sees it.
        package = type(value).__module__.partition(".")[0]
        if package in OPAQUE:
            return _pickled(value) if _is_frame(value) and np.prod(value.shape) <= MOST_CELLS else None
        if package in WALKED or package not in sys.stdlib_module_names:
            kind: Any = type(value)
            held = [(name, getattr(value, name)) for name in _slots(kind) if hasattr(value, name)]
            held += getattr(value, "__dict__", {}).items()
            # An object that holds nothing yet may hold something after a run.
            return held if hasattr(value, "__dict__") or _slots(kind) else None
        return _pickled(value)

    def _is_own(self, value: Any) -> bool:
        return (getattr(value, "__module__", None) or "").partition(".")[0] in self._packages

    def _digest(self, value: Any) -> str:
        """Return a digest of a value and of all that it holds, but not of addresses in memory."""
        digest, seen = hashlib.blake2b(digest_size=16), dict[int, Any]()
        left = [value]
        while left and len(seen) < MOST_VISITED:
            value = left.pop()
            digest.update(type(value).__qualname__.encode())
            if isinstance(value, ATOMS):
                digest.update(repr(value).encode())
            elif id(value) not in seen:
                seen[id(value)] = value
                held = self._contents_of(value) or []
                digest.update(str(len(held)).encode())
                if isinstance(value, set | frozenset):
                    held = sorted(held, key=repr)
                left += [part for named in reversed(held) for part in reversed(named)]
        return digest.hexdigest()


def _pickled(value: Any) -> Contents | None:
    try:
        return [("", pickle.dumps(value))]
    except Exception:  # without a pickle, nothing tells whether it changed
        return None


def _role(thing: Any) -> str:
    kinds = (kind.__name__ for kind in type(thing).__mro__ if kind.__name__ in ("Query", "Mechanism", "Miner"))
    return next(kinds, "object").lower()


def _is_data(name: str) -> bool:
    own = name.startswith("__") and name.endswith("__")
    return not own or not (name in GIVEN_NAMES or name.startswith("__attrs_"))


def _place(place: str, holder: Any, label: str) -> str:
    """Name a part of a place. If a reader knows no name for the part, return the name of the place."""
    match holder:
        case types.ModuleType():
            return f"the global '{label}' of {place}"
        case type():
            return f"the attribute '{label}' of {place}"
        case types.FunctionType():
            return f"{label} of '{holder.__qualname__}'" if label else place
    return f"the variable {label} of {place}" if place == ENVIRONMENT else place


def is_cache(place: str) -> bool:
    """Tell whether a place that `HiddenState.changed_places` names is a function's cache."""
    return place.startswith(CACHE)


def _is_cached_function(value: Any) -> bool:
    return hasattr(value, "cache_clear") and hasattr(value, "__qualname__")


def _modules_of(kinds: Iterable[type[Any]], packages: set[str]) -> list[types.ModuleType]:
    """Return the modules of some classes, and the modules of `packages` that those use, also indirectly.

    Other modules are left out: a package of tests, for example, may have hundreds that the classes never use.
    """
    known = {name: module for name, module in list(sys.modules.items()) if name.partition(".")[0] in packages}
    left, found = [kind.__module__ for kind in kinds], dict[str, types.ModuleType]()
    while left:
        name = left.pop()
        if name in known and name not in found:
            found[name] = known[name]
            left += (other for held in list(vars(known[name]).values()) for other in _modules_behind(held))
    return list(found.values())


def _modules_behind(held: Any) -> Iterable[str]:
    """Return some names, among them those of all modules that a module's global comes from or imports."""
    if isinstance(held, types.ModuleType):
        return (held.__name__,)
    names = {getattr(type(held), "__module__", None), getattr(held, "__module__", None)}
    left = list(vars(held).values()) if isinstance(held, type) else [held]
    codes = [code for part in left if isinstance(code := getattr(part, "__code__", None), types.CodeType)]
    while codes:
        code = codes.pop()
        names.update(code.co_names)  # a module that a function imports is among the names of its code
        codes += (part for part in code.co_consts if isinstance(part, types.CodeType))
    return [name for name in names if isinstance(name, str)]


@functools.cache
def _slots(kind: Any) -> list[str]:
    """Return the names of the slots of a class and its bases, without those that a subclass hides by a property."""
    bases = (vars(base) for base in kind.__mro__ if "__slots__" in vars(base))
    names = {name for base in bases for name, part in base.items() if isinstance(part, types.MemberDescriptorType)}
    return sorted(name for name in names if isinstance(getattr(kind, name, None), types.MemberDescriptorType))


def _alike(one: Contents, other: Contents) -> bool:
    """Tell whether two values hold the same objects under the same names. Numbers and texts are compared by value."""
    return len(one) == len(other) and all(
        name == again and (a is b or (type(a) is type(b) and isinstance(a, ATOMS) and bool(a == b)))
        for (name, a), (again, b) in zip(one, other, strict=True)
    )


def _is_frame(value: Any) -> bool:
    return (type(value).__module__.partition(".")[0], type(value).__name__) in FRAMES


def _restore(value: Any, held: Contents) -> None:
    """Give a value its earlier contents. Parts that cannot be put back stay as they are."""
    parts = [part for _, part in held]
    match value:
        case types.ModuleType() | type():
            known = dict(held)
            for name in [name for name in vars(value) if _is_data(name) and name not in known]:
                delattr(value, name)
            for name, part in known.items():
                if vars(value).get(name) is not part:
                    setattr(value, name, part)
        case types.FunctionType():
            value.__defaults__, value.__kwdefaults__ = parts[-3:-1]
        case types.CellType():
            value.cell_contents = parts[0]
        case np.ndarray() if value.dtype.kind != "O":
            value[...] = np.frombuffer(parts[0], value.dtype).reshape(value.shape)
        case np.ndarray():
            value[...] = parts
        case dict():
            value.clear()
            value.update(zip(parts[::2], parts[1::2], strict=True))
        case set():
            value.clear()
            value.update(parts)
        case list() | collections.deque():
            value.clear()
            value.extend(parts)
        case bytearray():
            value[:] = parts[0]
        case array.array():
            value[:] = array.array(value.typecode, parts[0])
        case np.random.Generator():
            value.bit_generator.state = pickle.loads(parts[0])
        case random.Random():
            value.setstate(pickle.loads(parts[0]))
        case np.random.RandomState():
            value.set_state(pickle.loads(parts[0]))
        case _ if _is_cached_function(value):
            value.cache_clear()
        case _ if type(value) in (io.StringIO, io.BytesIO) or _is_frame(value):
            value.__setstate__(pickle.loads(parts[0]).__getstate__())
        case _ if type(value).__module__.partition(".")[0] not in sys.stdlib_module_names - WALKED:
            kind: Any = type(value)
            slots = set(_slots(kind))
            for name in slots & dict(held).keys():
                object.__setattr__(value, name, dict(held)[name])
            if hasattr(value, "__dict__"):
                vars(value).clear()
                vars(value).update((name, part) for name, part in held if name not in slots)
