"""Tell whether two public values of a run are the same in all that somebody could read from them.

Whoever gets a result gets all of its contents, shown or not: attributes that no class declares, the values that a
function remembers, the whole array behind a view, every bit of a float, and what an object's own comparison leaves out.
"""

from __future__ import annotations

import collections
import functools
import inspect
import struct
from collections.abc import Iterator, Mapping, Set
from typing import Any

import attrs
import numpy as np

MOST_DEPTH = 40  # how deep values may be nested; deeper values are compared by their texts
# Types whose objects have no attributes of their own.
PLAIN = {type(None), bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, np.ndarray}


def same(one: Any, other: Any) -> bool:
    """Tell whether two public values are the same, numbers bit by bit, texts by value, objects by their contents.

    Functions are the same if their code is the same, and so are all values that they remember.
    """
    return _Comparison().same(one, other)


class _Comparison:
    """One comparison, which visits each pair of objects once, even if values refer to each other in a cycle."""

    def __init__(self) -> None:
        # The values are kept too, so that no other object gets their ids.
        self._begun: dict[tuple[int, int], tuple[Any, Any]] = {}

    def same(self, one: Any, other: Any, depth: int = 0) -> bool:
        if one is other:
            return True
        if type(one) is not type(other):
            return False
        if isinstance(one, float):
            return struct.pack("d", one) == struct.pack("d", other) and self._same_held(one, other, depth)
        if isinstance(one, str | bytes | int | complex | type(None)):
            return bool(one == other) and self._same_held(one, other, depth)
        if depth > MOST_DEPTH:
            return str(one) == str(other)
        if (id(one), id(other)) in self._begun:
            return True
        self._begun[id(one), id(other)] = one, other
        depth += 1
        if isinstance(one, np.ndarray | np.generic):
            a, b = np.asarray(one), np.asarray(other)
            if a.dtype != b.dtype or a.shape != b.shape:
                return False
            if a.dtype.kind == "O":
                if not self._same_values(a.ravel().tolist(), b.ravel().tolist(), depth):
                    return False
            elif a.tobytes() != b.tobytes():
                return False
            wholes = one.base, other.base
            if all(isinstance(whole, np.ndarray) for whole in wholes) and not self.same(*wholes, depth):
                return False
            return self._same_held(one, other, depth)
        if isinstance(one, Mapping):
            return self._same_items(dict(one), dict(other), depth) and self._same_held(one, other, depth)
        if isinstance(one, list | tuple | collections.deque):
            return self._same_values(one, other, depth) and self._same_held(one, other, depth)
        if isinstance(one, Set):
            found = {value: value for value in other}  # a set finds its values by their own comparison
            return (
                bool(one == other)
                and _order(one) == _order(other)
                and all(self.same(value, found[value], depth) for value in one)
                and self._same_held(one, other, depth)
            )
        if callable(one) and hasattr(one, "__qualname__"):
            return bool(one.__qualname__ == other.__qualname__) and all(
                self.same(a, b, depth) for a, b in zip(_memory_of(one), _memory_of(other), strict=True)
            )
        if (parts := _frame_parts(one)) is not None:
            return self.same(parts, _frame_parts(other), depth)
        if _fields_of(one) or _fields_of(other):
            return self._same_held(one, other, depth)
        compared = _compare(one, other)
        if compared is True:
            return True
        by_identity = inspect.getattr_static(type(one), "__eq__") is inspect.getattr_static(object, "__eq__")
        if compared is False and not by_identity:
            return False
        try:  # compare the states that pickles would hold
            return self.same(one.__reduce_ex__(4), other.__reduce_ex__(4), depth)
        except TypeError:
            return False

    def _same_values(self, one: Any, other: Any, depth: int) -> bool:
        return len(one) == len(other) and all(self.same(a, b, depth) for a, b in zip(one, other, strict=True))

    def _same_items(self, one: dict[Any, Any], other: dict[Any, Any], depth: int) -> bool:
        return self._same_values(list(one), list(other), depth) and self._same_values(
            list(one.values()), list(other.values()), depth
        )

    def _same_held(self, one: Any, other: Any, depth: int) -> bool:
        """Compare the fields of two objects. A cached property counts only if both objects have computed it."""
        if type(one) in PLAIN:
            return True
        held, held_by_other = _fields_of(one), _fields_of(other)
        for name in held.keys() ^ held_by_other.keys():
            if isinstance(inspect.getattr_static(type(one), name, None), functools.cached_property):
                held.pop(name, None)
                held_by_other.pop(name, None)
        return self._same_items(held, held_by_other, depth)


def _compare(one: Any, other: Any) -> bool | None:
    """Return what two values' own comparison says; None if it is no answer, such as an expression or an array."""
    try:
        found = one == other
    except Exception:  # values that cannot be compared, such as lazy frames
        return None
    return bool(found) if isinstance(found, bool | np.bool_) else None


def _frame_parts(value: Any) -> list[Any] | None:
    """Return the names, types and cells of frames, columns and indexes of polars or pandas, and of sparse matrices.

    Their own fields are handles of memory, which differ between equal frames, or views of memory that was never filled.
    The result is None for anything else.
    """
    package, name = type(value).__module__.partition(".")[0], type(value).__name__
    if package == "polars" and name in ("DataFrame", "Series"):
        columns = value.get_columns() if name == "DataFrame" else [value]
        return [[column.name, _type_parts(column.dtype), column.to_list()] for column in columns]
    if package == "polars" and name in ("LazyFrame", "Expr"):
        return [(value if name == "LazyFrame" else value.meta).serialize()]
    if package == "pandas" and name in ("DataFrame", "Series"):
        columns = [value.iloc[:, k] for k in range(value.shape[1])] if name == "DataFrame" else [value]
        cells = [[column.name, _type_parts(column.dtype), column.tolist()] for column in columns]
        return [cells, _frame_parts(value.index), dict(value.attrs)]
    if package == "pandas" and name.endswith("Index"):
        levels = [_frame_parts(level) for level in getattr(value, "levels", ())]
        return [name, levels, list(value.names), _type_parts(value.dtype), value.tolist()]
    if package == "pandas" and hasattr(value, "dtype") and hasattr(value, "tolist"):
        return [name, _type_parts(value.dtype), value.tolist()]
    if package == "scipy" and hasattr(value, "tocoo"):
        cells = value.tocoo()
        return [name, value.shape, str(value.dtype), cells.data.tolist(), [own.tolist() for own in cells.coords]]
    return None


def _type_parts(dtype: Any) -> list[Any]:
    """Return the name of a column's type, with all categories that it lists, whether a cell has them or not."""
    categories = getattr(dtype, "categories", None)
    listed: list[Any] = getattr(categories, "to_list", list)()
    return [str(dtype), listed, getattr(dtype, "ordered", None)]


def _order(values: Set[Any]) -> list[Any]:
    """Return a set's values in the order in which it yields them, or [] if this may depend on addresses in memory."""
    return list(values) if all(isinstance(value, str | bytes | int | float | None) for value in values) else []


def _memory_of(function: Any) -> Iterator[Any]:
    """Yield the code of a function or class, and the values that it holds."""
    if isinstance(function, type):
        said = {name: value for name, value in vars(function).items() if not name.startswith("__")}
        yield {name: value for name, value in said.items() if callable(value) or not hasattr(value, "__get__")}
        return
    yield getattr(function, "__code__", None)
    yield getattr(function, "__defaults__", None)
    yield getattr(function, "__kwdefaults__", None)
    yield [cell_content(cell) for cell in getattr(function, "__closure__", None) or ()]
    owner = getattr(function, "__self__", None)
    yield None if inspect.ismodule(owner) else owner
    yield dict(getattr(function, "__dict__", {}))


def cell_content(cell: Any) -> Any:
    """Return the value of a variable that a function encloses, or None if it has none yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _fields_of(thing: Any) -> dict[str, Any]:
    """Return an object's fields and other attributes."""
    kind = type(thing)
    own = dict(getattr(thing, "__dict__", {}))
    if isinstance(thing, functools.partial):
        return {"func": thing.func, "args": thing.args, "keywords": thing.keywords} | own
    if attrs.has(kind):
        return {a.name: getattr(thing, a.name) for a in attrs.fields(kind)} | own
    names: list[str] = []
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots  # a class with one slot may give its name alone
    return {name: getattr(thing, name) for name in names if hasattr(thing, name)} | own
