"""Results as values that JSON can write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def to_json_safe(result: Any) -> Any:
    """Return a result as JSON-safe values: by its `to_dict`, its `tolist` (numpy), its items, or its text."""
    if hasattr(result, "to_dict"):
        return result.to_dict()
    if hasattr(result, "tolist"):
        return result.tolist()
    if isinstance(result, Mapping):
        return {str(key): to_json_safe(value) for key, value in result.items()}
    if isinstance(result, list | tuple):
        return [to_json_safe(value) for value in result]
    return result if isinstance(result, str | int | float | bool | None) else str(result)
