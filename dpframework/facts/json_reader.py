"""The one reader of JSON for every file that is read back, whoever may have written it.

The reader returns plain values: dictionaries, lists, texts, numbers, true, false and null. Code that looks up a name
from a file uses a table of known names, such as a registry, and never imports a name from a file.
"""

from __future__ import annotations

import json
import math
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
