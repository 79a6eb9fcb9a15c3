"""Turn any result into JSON-safe values, and into JSON text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def to_json_safe(result: Any) -> Any:
    """Return a result as JSON-safe values: by `to_dict`, by `tolist` (numpy), by its items, or else as text."""
    if hasattr(result, "to_dict"):
        return result.to_dict()
    if hasattr(result, "tolist"):
        return result.tolist()
    if isinstance(result, Mapping):
        return {str(key): to_json_safe(value) for key, value in result.items()}
    if isinstance(result, list | tuple):
        return [to_json_safe(value) for value in result]
    return result if isinstance(result, str | int | float | bool | None) else str(result)


def json_text(form: Any) -> str:
    """Return JSON for any result. Values of unknown types are written as text, since an error would lose the result."""
    return json.dumps(_finite(form), indent=2, default=lambda inner: _finite(to_json_safe(inner)))


def _finite(form: Any) -> Any:
    """Replace NaN and infinities, which JSON does not have, by None."""
    if isinstance(form, Mapping):
        return {str(key): value if isinstance(value, str | int) else _finite(value) for key, value in form.items()}
    if isinstance(form, list | tuple):
        return [value if isinstance(value, str | int) else _finite(value) for value in form]
    if hasattr(form, "tolist"):
        return _finite(form.tolist())
    return None if isinstance(form, float) and not math.isfinite(form) else form
