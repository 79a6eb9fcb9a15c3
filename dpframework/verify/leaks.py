"""Find data that code keeps after a run, in its objects, its classes or its modules' globals.

A run's releases are all that may come of it. A query that keeps rows hands them to whoever gets the plan; a miner that
keeps a number of the first table that it saw tells it with each later result. Replays in one process could not show
that, since the number is the same in all of them: so what was there before the first run is put back.
"""

from __future__ import annotations

import collections
import copy
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any, final

import numpy as np

from dpframework.verify.sameness import same

CORE = __name__.partition(".")[0]
CODE = (types.FunctionType, types.ModuleType, type, property)
CONTAINERS = (dict, list, set, bytearray, collections.deque)


@final
class Before:
    """A snapshot of the globals of some objects' modules and of their classes.

    Only modules in which one of their classes is defined; those of Python and of the core keep nothing of rows.

    Parameters
    ----------
    things
        A miner, the queries and mechanisms of its plan.
    """

    def __init__(self, things: Iterable[Any]) -> None:
        kinds = dict.fromkeys(kind for thing in things for kind in type(thing).__mro__ if _is_foreign(kind))
        modules = dict.fromkeys(sys.modules[kind.__module__] for kind in kinds if kind.__module__ in sys.modules)
        self._known = [(place, dict(_state(place))) for place in (*kinds, *modules)]

    def put_back(self) -> None:
        """Restore the snapshot."""
        for place, known in self._known:
            for name in dict(_state(place)).keys() - known.keys():
                delattr(place, name)
            for name, (value, contents) in known.items():
                if vars(place).get(name) is not value:
                    setattr(place, name, value)
                if hasattr(cache := _function(value), "cache_clear"):
                    if cache.cache_info() != contents:
                        cache.cache_clear()
                elif contents is not None:
                    _refill(value, contents)


def _is_foreign(kind: type[Any]) -> bool:
    package = kind.__module__.partition(".")[0]
    return package != CORE and package not in sys.stdlib_module_names


def _state(place: Any) -> Iterator[tuple[str, Any]]:
    """Yield the data of a module or a class by name, each with its contents if these can change."""
    for name, value in list(vars(place).items()):
        if not isinstance(_function(value), CODE) and not name.startswith("__"):
            yield name, (value, _contents(value))


def _function(value: Any) -> Any:
    return getattr(value, "__func__", value)  # of a method that is the class's


def _contents(value: Any) -> Any:
    if hasattr(_function(value), "cache_clear"):
        return _function(value).cache_info()
    return copy.copy(value) if isinstance(value, (*CONTAINERS, np.ndarray)) else None


def _refill(value: Any, contents: Any) -> None:
    if isinstance(value, np.ndarray):
        if value.flags.writeable:
            value[...] = contents
        return
    value.clear()
    value.update(contents) if isinstance(value, dict | set) else value.extend(contents)


def kept(things: Iterable[Any]) -> list[Any]:
    """Return copies of some objects with all their data, None for one that cannot be copied."""
    copies = []
    for thing in things:
        try:
            copies.append(copy.deepcopy(thing))
        except Exception:
            copies.append(None)
    return copies


def changed(one: Iterable[Any], other: Iterable[Any]) -> list[str]:
    """Return the classes of those objects that hold something else in the one copy than in the other."""
    return sorted({type(a).__name__ for a, b in zip(one, other, strict=True) if a is not None and not same(a, b)})
