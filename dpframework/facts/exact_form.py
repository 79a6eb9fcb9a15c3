"""Values as JSON content for a hash: exact, and the same for what is the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Number
from typing import Any


def exact_form(value: Any, otherwise: Callable[[Any], Any]) -> Any:
    """Return JSON content: of a number that is not whole the text, of what JSON does not know what is given for it.

    Parameters
    ----------
    value
        Anything, with collections of anything inside.
    otherwise
        Writes what is neither a number, a text, nor a collection.

    Examples
    --------
    >>> from fractions import Fraction
    >>> exact_form({"epsilon": Fraction(1, 3), "of": (1, {2.5}, None)}, lambda value: type(value).__name__)
    {'epsilon': '1/3', 'of': [1, 'set', None]}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): exact_form(part, otherwise) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [exact_form(part, otherwise) for part in value]
    return str(value) if isinstance(value, Number) else otherwise(value)
