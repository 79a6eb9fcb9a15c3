"""The canonical form of a cell, the one value that it stands for in any file, column or type.

A cell's form follows from the cell alone. An added row may change the type of a whole column: a missing value makes
integers floats, and a text makes numbers objects. The row must not change what other cells mean. These are the rules:

- a number is the float nearest to it, so 1, 1.0, "1", "1.0" and "1e0" are one value, and so are 0.0 and -0.0. Beyond
  2^53 not every whole number is a float, and all numbers with the same nearest float are one value;
- a number that is not whole and that a 32-bit float holds exactly becomes the shortest decimal number that rounds to
  this 32-bit float. So 0.1 is the same value in either precision;
- a text is a number if it is written as programs write one ("-1.5e+16", "inf"; "007", "+1" and "1_000" are texts);
- true and false are 1 and 0, since libraries store them so in a column with numbers. The texts "true" and "false", in
  upper or lower case, are 1 and 0, too;
- any other text is itself, without the space around it; a blank text is missing, as are null and NaN.

Labels of a schema are read by the same rules. A numeric attribute takes the number itself, in its full precision.
"""

from __future__ import annotations

import itertools
import math
import re
import struct
from decimal import Decimal

Form = float | str
"""A canonical form: a number, or a text that is not a number. Missing is None."""

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[+-]?[0-9]+)?|-?inf(inity)?", re.IGNORECASE | re.ASCII)
_ID = re.compile(r"(-?)(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
PLAIN = 60  # an id whose absolute value is from 1e-60 to below 1e61 is written without an exponent
MOST_POWER = 4_000  # the most digits of an id's exponent; an id with a longer exponent is not read as a number
EXACT = 1 << 53  # floats hold every whole number up to this one
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
    return next(short for short in shorter if _narrow(short) == number)  # nine digits are always enough


def numbers_of(form: float) -> tuple[float, ...]:
    """Return all floats whose canonical form is `form`: `form`, and its nearest 32-bit float if that has this form."""
    if form.is_integer() or math.isinf(form):
        return (form,)
    narrow = _narrow(form)
    return (form, narrow) if narrow != form and of_number(narrow) == form else (form,)


def label_of(form: Form) -> str:
    """Return a canonical form as the text of a label, in which a whole number has no point.

    Examples
    --------
    >>> label_of(3.0), label_of(2.5), label_of("red")
    ('3', '2.5', 'red')
    """
    if isinstance(form, str):
        return form
    return str(int(form)) if form.is_integer() else repr(form)


def of_id(text: str) -> str:
    """Return the canonical form of an id that is a text. All spellings of one number have one form.

    An id names one person, so a number keeps all of its digits. A text that is not a number, such as "007", keeps its
    case and accents and loses only the space around it. Programs write whole floats beyond 2^53 with an exponent. So a
    text in that spelling stands for the float: "1.152921504606847e+18" is 2^60, as a column of floats holds it.

    Examples
    --------
    >>> of_id("9007199254740993.0"), of_id("1e3"), of_id(" 007 "), of_id("")
    ('9007199254740993', '1000', '007', '')
    >>> of_id("1.152921504606847e+18") == of_id(str(2**60))
    True
    """
    stripped = text.strip()
    number = _number_of(stripped)
    if number is None:
        return stripped
    if "e" in stripped or "E" in stripped:
        nearest = float(stripped)
        if nearest.is_integer() and abs(nearest) >= EXACT and number == _number_of(repr(nearest)):
            return id_of_whole(int(nearest))
    return _spell(*number)


def id_of_whole(number: int) -> str:
    """Return the canonical form of an id that is a whole number of any size.

    Examples
    --------
    >>> id_of_whole(2**53 + 1), id_of_whole(-(10**400))
    ('9007199254740993', '-1e400')
    """
    if abs(number) < 10 ** (PLAIN + 1):
        return str(number)
    # Exact, and quick even for numbers so long that Python refuses str(number).
    return id_of_decimal(Decimal(number))


def id_of_decimal(number: Decimal) -> str:
    """Return the canonical form of an id that is a decimal number, not NaN.

    Examples
    --------
    >>> id_of_decimal(Decimal("7.00")), id_of_decimal(Decimal("-0"))
    ('7', '0')
    """
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        return "-inf" if sign else "inf"
    return _spell(bool(sign), "".join(map(str, digits)), exponent)


def id_of_float(number: float) -> str:
    """Return the canonical form of an id that is a float, not NaN.

    A whole number has its exact digits. Any other number is written as the shortest decimal that reads back as the
    same float.

    Examples
    --------
    >>> id_of_float(7.0), id_of_float(0.1), id_of_float(2.0**60), id_of_float(-math.inf)
    ('7', '0.1', '1152921504606846976', '-inf')
    """
    if number.is_integer():
        return id_of_whole(int(number))
    written = repr(number)
    return of_id(written) if "e" in written else written


def _number_of(text: str) -> tuple[bool, str, int] | None:
    """Return whether a number is negative, its digits without zeros at either end, and its power of ten.

    None for a text that is not a number.
    """
    found = _ID.fullmatch(text)
    if found is None:
        return None
    sign, whole, fraction, power = found.groups(default="")
    power = power.replace("e", "").replace("E", "").replace("+", "")
    if len(power.lstrip("-0")) > MOST_POWER:
        return None
    digits = whole + fraction[1:]
    exponent = int(f"{power[:1]}{power[1:].lstrip('0') or '0'}" if power.startswith("-") else power.lstrip("0") or "0")
    return _reduce(bool(sign), digits, exponent - len(fraction[1:]))


def _reduce(negative: bool, digits: str, exponent: int) -> tuple[bool, str, int]:
    """Return the same number with no zero at either end of its digits."""
    digits = digits.lstrip("0")
    short = digits.rstrip("0")
    return (negative, short, exponent + len(digits) - len(short)) if short else (False, "0", 0)


def _spell(negative: bool, digits: str, exponent: int) -> str:
    """Write a number plainly, or with an exponent if it is very large or small. One number has one spelling."""
    negative, digits, exponent = _reduce(negative, digits, exponent)
    sign, last = "-" if negative else "", len(digits) + exponent
    if abs(last - 1) > PLAIN:
        return f"{sign}{digits}e{exponent}"
    if exponent >= 0:
        return f"{sign}{digits}{'0' * exponent}"
    whole, fraction = (digits[:last], digits[last:]) if last > 0 else ("0", "0" * -last + digits)
    return f"{sign}{whole}.{fraction}"


def _narrow(number: float) -> float:
    """Return the 32-bit float nearest to a number that is not whole, which lies within the range of 32-bit floats."""
    narrow: float = struct.unpack("f", struct.pack("f", number))[0]
    return narrow
