"""Write released values as JSON from which they can be read back exactly, with types, shapes and all bits of floats.

A class is looked up by its name among the classes that the plan's mechanisms declare (`Mechanism.outputs`). So a file
cannot cause an import.
"""

from __future__ import annotations

import base64
import enum
import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

import attrs
import numpy as np

from dpframework.facts.errors import InputError
from dpframework.facts.value_checks import read_ratio
from dpframework.ledger.entry_hash_chain import canonical

#: The accepted types of arrays, as NumPy writes them: numbers and texts, and no objects or records.
_DTYPE = re.compile(r"[<>|=][biufcSU][0-9]{1,9}")
_FRACTION = re.compile(r"-?[0-9]{1,4000}(/[0-9]{1,4000})?")


def fingerprint(*values: Any) -> str:
    """Return the SHA-256, in hex, of public values. For a value that cannot be written, its type is used."""
    return hashlib.sha256(canonical(_write(values, lambda value: {"of": _name_of(type(value))})).encode()).hexdigest()


def to_json(value: Any, classes: Iterable[type[Any]] = ()) -> Any:
    """Return a value in a JSON-safe form, from which `from_json` reads it back exactly.

    The value may hold numbers, texts, arrays, fractions, collections, and objects of the attrs classes and enumerations
    in `classes`.

    Raises
    ------
    InputError
        If the value holds anything else.

    Examples
    --------
    >>> from_json(to_json((1, 0.1, np.arange(3))))
    (1, 0.1, array([0, 1, 2]))
    """
    return _write(value, _refuse, frozenset(classes))


def _refuse(value: Any) -> Any:
    raise InputError(
        f"an output of type {type(value).__name__} cannot be kept for resuming; a mechanism lists in `outputs` the "
        "attrs classes and enumerations that its outputs are made of"
    )


def _write(value: Any, otherwise: Callable[[Any], Any], classes: frozenset[type[Any]] | None = None) -> Any:
    """Write a value. `otherwise` writes values of unknown types or classes. If `classes` is None, all are known."""

    def each(values: Any) -> list[Any]:
        return [_write(v, otherwise, classes) for v in values]

    known = classes is None or type(value) in classes
    match value:
        case enum.Enum() if known:
            return {"enum": _name_of(type(value)), "name": value.name}
        case np.ndarray() | np.generic() if value.dtype.kind in "biufcSU" and value.dtype.itemsize:
            # A NumPy scalar is written with the shape None, since () is the shape of an array without dimensions.
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
        case _ if known and attrs.has(type(value)):
            fields = [field for field in attrs.fields(type(value)) if field.init]
            return {"attrs": _name_of(type(value)), "fields": {f.alias: each([getattr(value, f.name)]) for f in fields}}
    return otherwise(value)


def from_json(form: Any, classes: Iterable[type[Any]] = ()) -> Any:
    """Read the output of `to_json`.

    Parameters
    ----------
    form
        The JSON-safe form.
    classes
        The attrs classes and enumerations whose objects the value may hold.

    Raises
    ------
    InputError
        If `to_json` cannot have returned this form for these classes.
    """
    known = {_name_of(kind): kind for kind in classes}
    try:
        return _read(form, known)
    except InputError:
        raise
    except Exception as error:  # the class may raise any error for its fields
        raise InputError(f"holds a value that cannot be read ({type(error).__name__})") from None


def _read(form: Any, known: Mapping[str, type[Any]]) -> Any:
    def each(values: list[Any]) -> list[Any]:
        return [_read(value, known) for value in values]

    if isinstance(form, list):
        return each(form)
    if not isinstance(form, Mapping):
        return form
    match form:
        case {"array": str(text), "dtype": str(dtype), "shape": None | list() as shape}:
            if not _DTYPE.fullmatch(dtype) or not all(type(length) is int and length >= 0 for length in shape or ()):
                raise InputError("holds an array of a type or shape that this dpframework does not know")
            array = np.frombuffer(base64.b64decode(text, validate=True), dtype=dtype)
            if len(array) != (1 if shape is None else math.prod(shape)):
                raise InputError("holds an array whose length does not fit its shape")
            return array[0] if shape is None else array.reshape(shape).copy()
        case {"float": str(text)}:
            return float.fromhex(text)
        case {"fraction": str(text)} if _FRACTION.fullmatch(text):
            return read_ratio(text)
        case {"tuple": list(values)}:
            return tuple(each(values))
        case {"set": list(values)}:
            return set(each(values))
        case {"frozenset": list(values)}:
            return frozenset(each(values))
        case {"dict": list(items)}:
            return dict(each(items))
        case {"enum": str(kind), "name": str(name)}:
            return _class(kind, known, enum.Enum)[name]
        case {"attrs": str(kind), "fields": dict(fields)}:
            made = {alias: _read(value, known) for alias, (value,) in fields.items()}
            return _class(kind, known, object)(**made)
    raise InputError("holds a value that this dpframework does not know")


def _name_of(kind: type[Any]) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _class(name: str, known: Mapping[str, type[Any]], base: type[Any]) -> Any:
    kind = known.get(name)
    if kind is None or not issubclass(kind, base):
        raise InputError(f"holds a value of '{name:.100}', which no mechanism of the plan outputs")
    return kind
