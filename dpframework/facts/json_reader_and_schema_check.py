"""The one reader of JSON for all files, also those that strangers wrote, and a check of content against a JSON Schema.

The reader returns plain values: dictionaries, lists, texts, numbers, true, false and null. A name that a file holds is
never imported. Code looks it up in a table of known names, such as a registry.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
import math
from collections.abc import Callable
from typing import Any

from dpframework.facts.errors import InputError
from dpframework.facts.input_limits import MOST_NESTED_JSON
from dpframework.facts.value_checks import require_shallow, too_deep


def parsed_json(text: str) -> Any:
    """Return the contents of a JSON text as plain Python values.

    Raises
    ------
    InputError
        If the text is not JSON, is nested deeper than `MOST_NESTED_JSON`, names a key twice in one object, or has a
        number that Python cannot hold. The message names no file.

    Examples
    --------
    >>> parsed_json('{"epsilon": [1, 0.5]}')
    {'epsilon': [1, 0.5]}
    >>> parsed_json('{"epsilon": 1, "epsilon": 2}')
    Traceback (most recent call last):
    dpframework.facts.errors.InputError: names the key 'epsilon' twice in one object
    """
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_float=_number, parse_constant=_refuse)
    except InputError:
        raise
    except RecursionError:
        raise too_deep(MOST_NESTED_JSON) from None
    except ValueError as error:
        # Python refuses whole numbers with more than some thousands of digits, since reading them takes quadratic time.
        raise InputError("is not JSON" if isinstance(error, json.JSONDecodeError) else "has a huge number") from None
    require_shallow(found, MOST_NESTED_JSON)
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):  # refused, since other readers may keep the other value
        keys = [key for key, _ in pairs]
        twice = next(key for number, key in enumerate(keys) if key in keys[:number])
        raise InputError(f"names the key '{twice}' twice in one object")
    return found


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise InputError(f"has the number {text:.40}, which is too large")
    return number


def _refuse(text: str) -> Any:
    raise InputError(f"holds {text}, which is not JSON")


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
        The name of a definition in the JSON Schema, to check against that definition only. None for the whole file.
    more
        A function that changes the JSON Schema before it is used.

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
    """A number with a point or an exponent, such as 2.0. JSON Schema alone would accept 2.0 as an integer."""

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
