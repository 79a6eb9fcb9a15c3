"""Values as exact JSON content, from which hashes are computed. Equal values of one type give equal content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Number
from typing import Any


def exact_form(value: Any, otherwise: Callable[[Any], Any]) -> Any:
    """Return a value as JSON content, in which numbers other than ints are texts.

    Parameters
    ----------
    value
        Any value, which may be a collection with any values inside.
    otherwise
        The function that gives the content of any value but None, numbers, texts, lists, tuples and mappings.

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
