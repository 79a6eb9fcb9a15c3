"""Released values as JSON that reads back exactly: types, shapes and every bit of a float."""

from __future__ import annotations

import base64
import builtins
import enum
import hashlib
import importlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import attrs
import numpy as np

from dpframework.facts.errors import InputError
from dpframework.ledger.chain import canonical


def fingerprint(*values: Any) -> str:
    """Return the SHA-256, in hex, of public values; what cannot be written counts by its type alone."""
    return hashlib.sha256(canonical(_written(values, lambda value: {"of": _place(type(value))})).encode()).hexdigest()


def to_json(value: Any) -> Any:
    """Write a value as JSON-safe content that `from_json` reads back exactly.

    Numbers, texts, arrays, fractions, enumerations, collections, and attrs objects of these.

    Raises
    ------
    InputError
        If it holds anything else.

    Examples
    --------
    >>> from_json(to_json((1, 0.1, np.arange(3))))
    (1, 0.1, array([0, 1, 2]))
    """
    return _written(value, _refused)


def _refused(value: Any) -> Any:
    raise InputError(f"an output of type {type(value).__name__} cannot be kept for resuming; use an attrs class")


def _written(value: Any, otherwise: Callable[[Any], Any]) -> Any:
    def each(values: Any) -> list[Any]:
        return [_written(v, otherwise) for v in values]

    match value:
        case enum.Enum():
            return {"enum": _place(type(value)), "name": value.name}
        case np.ndarray() | np.generic() if value.dtype.kind in "biufcSU" and value.dtype.itemsize:
            # Not what np.asarray returns of a scalar: they are told apart by their shape, None or ().
            shape = list(value.shape) if isinstance(value, np.ndarray) else None
            text = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
            return {"array": text, "dtype": value.dtype.str, "shape": shape}
        case None | bool() | int() | str() if type(value) in (type(None), bool, int, str):
            return value
        case float() if type(value) is float:
            return {"float": value.hex()}
        case Fraction():
            return {"fraction": str(value)}
        case list() if type(value) is list:
            return each(value)
        case tuple() if type(value) is tuple:
            return {"tuple": each(value)}
        case set() | frozenset():
            return {type(value).__name__: sorted(each(value), key=canonical)}
        case dict() if type(value) is dict:
            return {"dict": [each(item) for item in value.items()]}
        case _ if attrs.has(type(value)):
            fields = [field for field in attrs.fields(type(value)) if field.init]
            return {"attrs": _place(type(value)), "fields": {f.alias: each([getattr(value, f.name)]) for f in fields}}
    return otherwise(value)


def from_json(form: Any) -> Any:
    """Read what `to_json` wrote."""
    if isinstance(form, list):
        return [from_json(value) for value in form]
    if not isinstance(form, Mapping):
        return form
    match form:
        case {"array": text, "dtype": dtype, "shape": shape}:
            array = np.frombuffer(base64.b64decode(text), dtype=dtype)
            return array[0] if shape is None else array.reshape(shape).copy()
        case {"float": text}:
            return float.fromhex(text)
        case {"fraction": text}:
            return Fraction(text)
        case {"tuple": values}:
            return tuple(from_json(values))
        case {"set": values} | {"frozenset": values}:
            return getattr(builtins, next(iter(form)))(from_json(values))
        case {"dict": items}:
            return dict(from_json(items))
        case {"enum": place, "name": name}:
            return _at(place)[name]
        case {"attrs": place, "fields": fields}:
            return _at(place)(**{alias: from_json(value)[0] for alias, value in fields.items()})
    raise InputError("holds a value that this dpframework does not know")


def _place(kind: type[Any]) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _at(place: str) -> Any:
    module, _, name = place.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if not (isinstance(found, type) and (attrs.has(found) or issubclass(found, enum.Enum))):
        raise InputError(f"holds a value of '{place}', which is no attrs class")
    return found
