"""The small checks that the facts of a schema pass: texts, numbers, counts and lists, as a file may hold them.

Each one takes a value and what it is, for the error's sentence.
"""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Any

from dpframework.facts.errors import InputError


def visible_text(value: object, what: str) -> str:
    """Return `value` if it is a text that a UTF-8 file can hold and a reader can see, else raise."""
    if not isinstance(value, str):
        raise InputError(f"{what} must be a text, not {type(value).__name__}")
    if not value.strip():
        raise InputError(f"{what} must not be blank")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"{what} holds characters that UTF-8 cannot write") from None
    return str(value)


def finite_number(value: object, what: str) -> float:
    """Return `value` as a finite float; -0.0 becomes 0.0, so that equal schemas print alike."""
    # bool is an Integral for Python, but `lower = true` in a file is a slip, not the number 1.
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputError(f"{what} must be a number, not {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{what} must be a finite number")
    return number + 0.0


def positive_count(value: object, what: str) -> int:
    """Return `value` as an int of at least 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InputError(f"{what} must be a whole number, not {type(value).__name__}")
    if value < 1:
        raise InputError(f"{what} must be at least 1")
    return int(value)


def listed(value: object, what: str) -> tuple[Any, ...]:
    """Return a list-like as a tuple; a text is refused, since its letters are never what was meant."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InputError(f"{what} must be a list, not {type(value).__name__}")
    return tuple(value)


def as_texts(given: Iterable[str]) -> tuple[str, ...]:
    """Return texts as a tuple: the converter of an attrs field that keeps them."""
    return tuple(given)


def plain_number(number: float) -> int | float:
    """Return a whole float as an int, so that files read `lower = 17` as people write it.

    Examples
    --------
    >>> plain_number(107.0), plain_number(0.5), plain_number(2.0**53 - 1), plain_number(2.0**53)
    (107, 0.5, 9007199254740991, 9007199254740992.0)
    """
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def is_increasing(edges: tuple[float, ...]) -> bool:
    """Tell whether each number is below the next."""
    return all(low < high for low, high in itertools.pairwise(edges))
