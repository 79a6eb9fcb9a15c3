"""The canonical form of a cell: the one value that it stands for, whatever file, column or type holds it.

A cell's form follows from the cell alone. A row that is added to a table may change the type of a whole column (a
missing value makes integers floats, a text makes numbers objects), and must not change what the other cells mean:

- a number is the float nearest to it, so 1, 1.0, "1", "1.0" and "1e0" are one value, and so are 0.0 and -0.0. Beyond
  2^53 a column of floats holds not every whole number, and numbers with the same float are one value;
- a number that a 32-bit float holds exactly is the shortest decimal number that rounds to it: 0.1 is the same value in
  either precision;
- a text is a number if it is written as programs write one ("-1.5e+16", "inf"; "007", "+1" and "1_000" are texts);
- true and false are 1 and 0, as which libraries hold them beside numbers, and so are the texts "true" and "false";
- another text is itself, without the space around it; a blank one is missing, as are null and NaN.

Labels of a schema are read by the same rule. A numeric attribute takes the number itself, in its full precision.
"""

from __future__ import annotations

import itertools
import math
import re
import struct
from decimal import Decimal

Form = float | str
"""A canonical form: a number, or a text that is none. Missing is None."""

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[+-]?[0-9]+)?|-?inf(inity)?", re.IGNORECASE | re.ASCII)
TRUTHS = {"false": 0.0, "true": 1.0}


def of_text(text: str) -> Form | None:
    """Return the canonical form of a text cell, or of a label.

    Examples
    --------
    >>> of_text(" 1.0 "), of_text("1e3"), of_text("TRUE"), of_text("007"), of_text(" ")
    (1.0, 1000.0, 1.0, '007', None)
    """
    stripped = text.strip()
    if _NUMBER.fullmatch(stripped):
        return of_number(float(stripped))
    if (truth := TRUTHS.get(stripped.lower())) is not None:
        return truth
    return stripped or None


def of_number(number: float) -> float | None:
    """Return the canonical form of a number.

    Examples
    --------
    >>> of_number(-0.0), of_number(0.10000000149011612), of_number(math.nan)
    (0.0, 0.1, None)
    """
    if math.isnan(number):
        return None
    if number.is_integer() or math.isinf(number):
        return number + 0.0  # -0.0 becomes 0.0
    if _narrow(number) != number:
        return number
    shorter = (float(f"{number:.{digits}g}") for digits in itertools.count())
    return next(short for short in shorter if _narrow(short) == number)  # with nine digits at the latest


def numbers_of(form: float) -> tuple[float, ...]:
    """Return the numbers that have a canonical form: itself, and perhaps the 32-bit float nearest to it."""
    if form.is_integer() or math.isinf(form):
        return (form,)
    narrow = _narrow(form)
    return (form, narrow) if narrow != form and of_number(narrow) == form else (form,)


def label_of(form: Form) -> str:
    """Return a label that has a canonical form: a whole number without a point.

    Examples
    --------
    >>> label_of(3.0), label_of(2.5), label_of("red")
    ('3', '2.5', 'red')
    """
    if isinstance(form, str):
        return form
    return str(int(form)) if form.is_integer() else repr(form)


def of_id(text: str) -> str:
    """Return an id as a text: as `of_text`, but a number keeps all of its digits, since an id names one row.

    Examples
    --------
    >>> of_id("9007199254740993.0"), of_id("1e3"), of_id(" 007 "), of_id("")
    ('9007199254740993', '1000', '007', '')
    """
    stripped = text.strip()
    if not _NUMBER.fullmatch(stripped) or len(stripped) > 60:
        return stripped
    number = Decimal(stripped)
    if not number.is_finite() or abs(number.adjusted()) > 60:
        return stripped
    digits = f"{number:f}"
    whole, _, fraction = digits.partition(".")
    fraction = fraction.rstrip("0")
    return "0" if number == 0 else f"{whole}.{fraction}" if fraction else whole


def _narrow(number: float) -> float:
    """Return the nearest 32-bit float of a number that is not whole, and so within their range."""
    narrow: float = struct.unpack("f", struct.pack("f", number))[0]
    return narrow
