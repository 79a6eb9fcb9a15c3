"""Copies of releases for observers, so that observers cannot change the releases that a miner gets."""

from __future__ import annotations

import copy
import datetime
import enum
import numbers
import types
import uuid
from decimal import Decimal
from typing import Any

import attrs
import numpy as np

_FIXED = (
    str,
    bytes,
    numbers.Number,
    np.generic,
    Decimal,
    enum.Enum,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    uuid.UUID,
    range,
    type,
    types.NoneType,
    types.FunctionType,
    types.BuiltinFunctionType,
)
_CONTAINERS = (tuple, frozenset, list, set)  # these are rebuilt from copies of their parts


def read_only(value: Any) -> Any:
    """Return a copy of a value that shares nothing mutable with it.

    Arrays of numbers are returned read-only. Their memory is a `bytes` object, so that they cannot be made writable
    again. Containers are copied, and so are attrs values that contain something mutable. An immutable value is returned
    as it is.

    Raises
    ------
    Exception
        Whatever copying the value raises.

    Examples
    --------
    >>> counts = read_only({"counts": np.array([1, 2])})["counts"]
    >>> counts[0] = 3
    Traceback (most recent call last):
    ...
    ValueError: assignment destination is read-only
    """
    kind = type(value)
    if isinstance(value, _FIXED):
        return value
    if kind is np.ndarray and not value.dtype.hasobject:
        over_bytes = isinstance(value.base, bytes)
        return value if over_bytes else np.ndarray(value.shape, value.dtype, buffer=value.tobytes())
    if kind in _CONTAINERS:
        parts = [read_only(part) for part in value]
        same = kind in (tuple, frozenset) and all(a is b for a, b in zip(parts, value, strict=True))
        return value if same else kind(parts)
    if kind in (dict, types.MappingProxyType):
        return kind({read_only(name): read_only(own) for name, own in value.items()})
    if attrs.has(kind) and kind.__setattr__.__name__ == "_frozen_setattrs":
        fields = {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}
        fixed = {name: read_only(own) for name, own in fields.items()}
        if all(fixed[name] is own for name, own in fields.items()):
            return value
        copied = copy.copy(value)
        for name, own in fixed.items():
            object.__setattr__(copied, name, own)
        return copied
    return copy.deepcopy(value)
