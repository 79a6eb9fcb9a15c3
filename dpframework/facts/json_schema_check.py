"""Checks of JSON content against the JSON Schemas in the package. A misfit is reported in one sentence."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Callable
from typing import Any

from dpframework.facts.errors import InputError
from dpframework.facts.json_reader import parsed_json


def require_form(
    form: Any,
    package: str,
    file: str,
    definition: str | None = None,
    *,
    more: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Refuse JSON content that does not fit a format.

    Parameters
    ----------
    form
        The content to check.
    package, file
        The package that holds the JSON Schema, and the name of its file there.
    definition
        The name of a definition in the JSON Schema, to check against that definition only. None for the whole schema.
    more
        A function that changes the schema before it is used.

    Raises
    ------
    InputError
        If the content does not fit. The message names the field by its path and says what is wrong with it.
    """
    from fastjsonschema import JsonSchemaValueException

    try:
        validate = _validator(package, file, definition) if more is None else _compile(package, file, definition, more)
        validate(_with_reals(form))
        json.dumps(form, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError("holds half a character (a lone surrogate), which no file in UTF-8 can hold") from None
    except JsonSchemaValueException as error:
        raise InputError(error.message.replace("data.", "field ", 1).replace("data ", "its content ", 1)) from None
    except RecursionError:
        raise InputError("is nested too deep") from None


class _Real(float):
    """A number with a point or an exponent, such as 2.0. JSON Schema would take 2.0 for an integer."""

    def is_integer(self) -> bool:
        """Return False, since it was not written as an integer."""
        return False


def _with_reals(form: Any) -> Any:
    if isinstance(form, dict):
        return {name: _with_reals(value) for name, value in form.items()}
    if isinstance(form, list):
        return [_with_reals(value) for value in form]
    return _Real(form) if isinstance(form, float) else form


@functools.cache
def _validator(package: str, file: str, definition: str | None) -> Callable[[Any], Any]:
    return _compile(package, file, definition, lambda schema: None)


def _compile(
    package: str, file: str, definition: str | None, more: Callable[[dict[str, Any]], None]
) -> Callable[[Any], Any]:
    import fastjsonschema

    schema = parsed_json(importlib.resources.files(package).joinpath(file).read_text(encoding="utf-8"))
    more(schema)
    if definition is not None:
        schema = {"$schema": schema["$schema"], "$defs": schema["$defs"], "$ref": f"#/$defs/{definition}"}
    compiled: Callable[[Any], Any] = fastjsonschema.compile(schema, use_default=False)
    return compiled
