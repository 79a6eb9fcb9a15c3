"""Small checks and converters of texts, numbers, counts and lists, such as those in a schema's facts.

Most take a value, and a text `what` that names the value in an error message.
"""

from __future__ import annotations

import datetime
import itertools
import math
import numbers
import re
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dpframework.facts.control_character_escapes import is_printable, printable
from dpframework.facts.errors import InputError

#: The most rows of any table. Rows are numbered, and the rows of a block are counted, in 32 bits.
MOST_ROWS = 2**31 - 1

_LONG_POWER = re.compile(r"[eE][+-]?\d{4,}")


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


def printable_name(value: object, what: str) -> str:
    """Return a name if it is a text on one line in which every character is visible, else raise."""
    text = visible_text(value, what)
    if not is_printable(text):
        raise InputError(
            f"{what} is '{printable(text)}', which holds a character that is invisible or moves others; rename it"
        )
    return text


def finite_number(value: object, what: str) -> float:
    """Return `value` as a finite float. -0.0 becomes 0.0, so that equal schemas print alike."""
    # bool is an Integral for Python, but `lower = true` in a file is a slip, not the number 1.
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputError(
            f"{what} must be a number, not {type(value).__name__}"
            + ("; write it without quotes" if isinstance(value, str) else "")
            + (f"; {_date_as_number(value)}" if isinstance(value, datetime.date) else "")
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{what} must be a finite number")
    return number + 0.0


def _date_as_number(date: datetime.date) -> str:
    """Say which number a date is in each unit of dates."""
    first, last = date.replace(month=1, day=1).toordinal(), date.replace(month=12, day=31).toordinal()
    days = date.toordinal() - datetime.date(1970, 1, 1).toordinal()
    year = date.year + (date.toordinal() - first) / (last - first + 1)
    return f'with date_unit = "days" its day is {days}, and with "years" it is {year:.7g}'


def as_float(value: Any) -> float:
    """Return a float. As an attrs converter, `float` takes a hundred times as long, since attrs reads its signature."""
    return float(value)


def read_ratio(written: object) -> Fraction:
    """Return exactly the number that a file writes as a decimal, a ratio or a whole number.

    Raises
    ------
    ValueError, TypeError, ZeroDivisionError
        If it is not a number, or its exponent has four digits or more. A short text with such an exponent may stand for
        a number that takes gigabytes.

    Examples
    --------
    >>> read_ratio("1/3"), read_ratio("0.25"), read_ratio(2)
    (Fraction(1, 3), Fraction(1, 4), Fraction(2, 1))
    """
    if isinstance(written, Fraction | int):
        return Fraction(written)
    text = str(written)
    if not isinstance(written, str | numbers.Real | Decimal) or _LONG_POWER.search(text.replace("_", "")):
        raise ValueError("not a number that people write")
    return Fraction(text)


def positive_count(value: object, what: str) -> int:
    """Return `value` as an int of at least 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InputError(f"{what} must be a whole number, not {type(value).__name__}")
    if value < 1:
        raise InputError(f"{what} must be at least 1; write a whole number from 1 on")
    return int(value)


def check_counts(rows: int | None, max_rows: int | None, about_rows: int | None) -> dict[str, int]:
    """Return the counts that a schema states, by name.

    Raises
    ------
    InputError
        If a count is not a positive whole number or is above `MOST_ROWS`, or two counts contradict each other.
    """
    given = {"rows": rows, "max_rows": max_rows, "about_rows": about_rows}
    found = {name: positive_count(count, name) for name, count in given.items() if count is not None}
    for name, count in found.items():
        if count > MOST_ROWS:
            raise InputError(f"{name} exceeds {MOST_ROWS:,}, the most rows that a table may have; give fewer")
    if rows is not None and max_rows is not None and rows > max_rows:
        raise InputError(f"rows = {rows} exceeds max_rows = {max_rows}")
    if about_rows is not None and rows is not None:
        raise InputError("about_rows is given beside rows, which is exact; give one of the two")
    if about_rows is not None and max_rows is not None and about_rows > max_rows:
        raise InputError(f"about_rows = {about_rows} exceeds max_rows = {max_rows}")
    return found


def require_list(value: object, what: str) -> tuple[Any, ...]:
    """Return a list-like as a tuple. A text is refused, since nobody means its letters."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InputError(f"{what} must be a list, not {type(value).__name__}; write it in brackets, such as [1, 2]")
    return tuple(value)


def as_names(given: Collection[str] | None) -> frozenset[str] | None:
    """Convert names to a set, for an attrs field. None, which stands for all names, stays None."""
    return None if given is None else frozenset(given)


def as_texts(given: Iterable[str]) -> tuple[str, ...]:
    """Convert texts to a tuple, for an attrs field.

    Raises
    ------
    InputError
        If one of them is not a text, but for example a number in a file that was changed.
    """
    texts = tuple(given)
    for one in texts:
        if not isinstance(one, str):
            raise InputError(f"a list of texts holds something else, of the type '{type(one).__name__}'")
    return texts


def as_whole_numbers(given: Iterable[int]) -> tuple[int, ...]:
    """Convert whole numbers to a tuple, for an attrs field."""
    return tuple(map(int, given))


def as_pairs(given: Mapping[str, str] | Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Convert names with texts to a tuple of pairs, for an attrs field."""
    return tuple(dict(given).items())


def plain_number(number: float) -> int | float:
    """Return a whole float below 2**53 in size as an int, so that files hold `lower = 17` as people write it.

    Examples
    --------
    >>> plain_number(107.0), plain_number(0.5), plain_number(2.0**53 - 1), plain_number(2.0**53)
    (107, 0.5, 9007199254740991, 9007199254740992.0)
    """
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def is_increasing(edges: tuple[float, ...]) -> bool:
    """Tell whether each number is below the next."""
    return all(low < high for low, high in itertools.pairwise(edges))


def require_shallow(form: Any, most: int) -> None:
    """Refuse tables and lists that are nested deeper than a limit.

    Raises
    ------
    InputError
        If they are nested deeper than that. The message names no file.
    """
    level: list[Any] = [form] if isinstance(form, Mapping | list) else []
    for _ in range(most + 1):
        held = [outer.values() if isinstance(outer, Mapping) else outer for outer in level]
        level = [inner for values in held for inner in values if isinstance(inner, list | dict)]
        if not level:
            return
    raise too_deep(most)


def too_deep(most: int) -> InputError:
    """Return the error for nesting deeper than a limit."""
    return InputError(f"is nested deeper than {most} levels")
