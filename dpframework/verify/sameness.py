"""Whether two values that a run made public are the same, whatever their types."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Set
from typing import Any

import attrs
import numpy as np

MOST_DEPTH = 40  # of nested values; deeper ones are compared by their texts


def same(one: Any, other: Any, depth: int = 0) -> bool:
    """Tell whether two public values are the same: numbers and texts by value, objects by what they hold.

    NaN is the same as NaN. Functions are compared by where they are defined.
    """
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return bool(one == other or (one != one and other != other))
    if isinstance(one, str | bytes | int | complex | type(None)):
        return bool(one == other)
    if depth > MOST_DEPTH:
        return str(one) == str(other)
    if isinstance(one, np.ndarray | np.generic):
        return _same_arrays(np.asarray(one), np.asarray(other), depth)
    if isinstance(one, Mapping):
        return _same_items(dict(one), dict(other), depth)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(same(a, b, depth + 1) for a, b in zip(one, other, strict=True))
    if isinstance(one, Set):
        return bool(one == other)
    if callable(one) and hasattr(one, "__qualname__"):
        return bool(one.__qualname__ == other.__qualname__)
    held, held_by_other = _held(one), _held(other)
    return _same_items(held, held_by_other, depth) if held or held_by_other else bool(one == other)


def _same_arrays(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any], depth: int) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind == "O":
        return all(same(a, b, depth + 1) for a, b in zip(one.flat, other.flat, strict=True))
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))


def _same_items(one: dict[Any, Any], other: dict[Any, Any], depth: int) -> bool:
    return list(one) == list(other) and all(same(one[key], other[key], depth + 1) for key in one)


def _held(thing: Any) -> dict[str, Any]:
    """Return an object's fields, without what it computed from them and keeps."""
    kind = type(thing)
    if attrs.has(kind):
        return {a.name: getattr(thing, a.name) for a in attrs.fields(kind)}
    slots = [name for base in kind.__mro__ for name in getattr(base, "__slots__", ()) if hasattr(thing, name)]
    fields = {name: getattr(thing, name) for name in slots} | dict(getattr(thing, "__dict__", {}))
    return {name: value for name, value in fields.items() if not _is_kept(kind, name)}


def _is_kept(kind: type[Any], name: str) -> bool:
    return isinstance(inspect.getattr_static(kind, name, None), functools.cached_property)
