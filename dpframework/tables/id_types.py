"""The column types that can hold ids, for columns that do not become a polars series and are read cell by cell.

A column's type is public and the same for all of its rows. So a wrong type may stop a run, although no cell may.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

from dpframework.facts.errors import InputError

ACCEPTED = "ids are numbers, texts, booleans, bytes or UUIDs"
_CELL_TYPES = (bool, np.bool_, int, np.integer, float, np.floating, str, bytes, Decimal, UUID, np.object_)
_ARROW_TYPES = [
    "null",
    "boolean",
    "integer",
    "floating",
    "decimal",
    "string",
    "large_string",
    "string_view",
    "binary",
    "large_binary",
    "fixed_size_binary",
    "binary_view",
]


def require_type_of_ids(values: Any, where: str) -> None:
    """Refuse a series or array whose type cannot hold ids.

    A list and a polars series of Python objects have no such type, so they pass.

    Parameters
    ----------
    values
        A series of polars, pandas or pyarrow (also through narwhals), a numpy array, or a list.
    where
        The beginning of an error's sentence, which names the column.

    Raises
    ------
    InputError
        If the type cannot hold ids. The sentence names the type.
    """
    import narwhals as nw
    import polars as pl

    native = nw.to_native(values, pass_through=True)
    if isinstance(native, list | tuple | pl.Series):  # a polars series gets here only if it holds objects
        return
    kind = _innermost(native.dtype if hasattr(native, "dtype") else native.type)
    if not _holds_ids(kind):
        raise InputError(f"{where} has the type {kind}; {ACCEPTED}")


def _innermost(kind: Any) -> Any:
    """Return the type of the values behind a pandas or Arrow type that encodes them, such as categories."""
    while True:
        match type(kind).__name__:  # classes of pandas, then of Arrow
            case "CategoricalDtype":
                kind = kind.categories.dtype
            case "SparseDtype":
                kind = kind.subtype
            case "ArrowDtype":
                kind = kind.pyarrow_dtype
            case "DictionaryType" | "RunEndEncodedType":
                kind = kind.value_type
            case _:
                return kind


def _holds_ids(kind: Any) -> bool:
    if type(kind).__module__.partition(".")[0] != "pyarrow":
        cell = getattr(kind, "type", None)  # timedelta64 is a subclass of numpy's integers
        return isinstance(cell, type) and issubclass(cell, _CELL_TYPES) and not issubclass(cell, np.timedelta64)
    from pyarrow import types

    if types.is_union(kind):
        return all(_holds_ids(_innermost(kind.field(k).type)) for k in range(kind.num_fields))
    return any(getattr(types, f"is_{name}")(kind) for name in _ARROW_TYPES)
