"""The formats of files that machines write: JSON Schemas in the package, and what does not fit one, in a sentence."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Callable
from typing import Any

from dpframework.facts.errors import InputError


def require_form(form: Any, package: str, file: str, definition: str | None = None) -> None:
    """Refuse JSON content that does not fit a format.

    Parameters
    ----------
    form
        What was read.
    package, file
        Where the JSON Schema is.
    definition
        One of its definitions, if not the whole of it is meant.

    Raises
    ------
    InputError
        If it does not fit: names the field by its path, and what is wrong with it.
    """
    from fastjsonschema import JsonSchemaValueException

    try:
        _validator(package, file, definition)(form)
        json.dumps(form, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError("holds half a character, which no other file can") from None
    except JsonSchemaValueException as error:
        raise InputError(error.message.replace("data.", "field ", 1).replace("data ", "its content ", 1)) from None
    except RecursionError:
        raise InputError("is nested too deep") from None


@functools.cache
def _validator(package: str, file: str, definition: str | None) -> Callable[[Any], Any]:
    import fastjsonschema

    schema = json.loads(importlib.resources.files(package).joinpath(file).read_text(encoding="utf-8"))
    if definition is not None:
        schema = {"$schema": schema["$schema"], "$defs": schema["$defs"], "$ref": f"#/$defs/{definition}"}
    compiled: Callable[[Any], Any] = fastjsonschema.compile(schema, use_default=False)
    return compiled
