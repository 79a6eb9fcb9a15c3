"""Attributes that differ from those of an example's schema: in missing cells, values, bounds or bins."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence

import attrs

from dpframework.facts.attributes import Attribute, Categorical, Numeric

MORE = "one more é"  # the label of the value that is added to an attribute; it has more bytes than letters
VALUES = 300  # a number of values for which codes need more than 8 bits
SMALL = 1 / 4  # a bound below 1, where the square of a number is smaller than the number
FLAGS = 9  # a number of flags for which a byte is too short
MOST_CELLS = 1 << 16  # the most cells of the cross table of all attributes where flags are added
LATER = 10  # by how much a number within a label is enlarged, and reduced
_DIGITS = re.compile(r"\d+")


def with_many_values(attribute: Categorical) -> Categorical:
    """Return an attribute with `VALUES` values, which are numbers if all of its own values are."""
    numbers = all(_as_number(value) is not None for value in attribute.values)
    more = (f"{k}" if numbers else f"{MORE} {k}" for k in itertools.count(1))
    new = itertools.islice((value for value in more if value not in attribute.values), VALUES)
    return attrs.evolve(attribute, values=(*attribute.values, *new)[:VALUES])


def with_value(attribute: Attribute) -> Attribute:
    """Return a categorical attribute with one more value, which is a number below 0 if all its values are numbers."""
    if not isinstance(attribute, Categorical):
        return attribute
    numbers = [_as_number(value) for value in attribute.values]
    known = [number for number in numbers if number is not None]
    more = f"{-2 * max(map(abs, known)) - 1:g}" if len(known) == len(numbers) else MORE
    return attribute if more in attribute.values else attrs.evolve(attribute, values=(*attribute.values, more))


def _as_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def with_negative(attribute: Attribute) -> Attribute:
    """Return a numeric attribute whose lower bound is -2 times the size of its larger bound."""
    if not isinstance(attribute, Numeric):
        return attribute
    return attrs.evolve(attribute, lower=-2 * max(abs(attribute.lower), abs(attribute.upper)))


def with_missing(attribute: Attribute) -> Attribute:
    """Return the attribute with missing cells."""
    return attrs.evolve(attribute, missing=True)


def with_small(attribute: Attribute) -> Attribute:
    """Return a numeric attribute, scaled so that its larger bound is 1/4, or 4 if its bounds are below 1 already.

    The square of a number below 1 is smaller than the number.
    """
    if not isinstance(attribute, Numeric):
        return attribute
    most = max(abs(attribute.lower), abs(attribute.upper))
    by = (SMALL if most >= 1 else 1 / SMALL) / most
    lower, upper, cuts = attribute.lower * by, attribute.upper * by, [cut * by for cut in attribute.cuts]
    return attrs.evolve(attribute, lower=lower, upper=upper, cuts=cuts)


def with_wider(attribute: Numeric) -> Numeric:
    """Return a numeric attribute with the same cuts between bounds of twice the size, on either side of 0."""
    most = 2 * max(abs(attribute.lower), abs(attribute.upper))
    return attrs.evolve(attribute, lower=-most, upper=most)


def with_positive(attribute: Attribute) -> Attribute:
    """Return a numeric attribute of the same width, whose lower bound is twice that width."""
    return with_shift(attribute, 2)


def with_shift(attribute: Attribute, widths: int) -> Attribute:
    """Return a numeric attribute of the same width, whose lower bound is `widths` times its width."""
    if not isinstance(attribute, Numeric):
        return attribute
    up = widths * (attribute.upper - attribute.lower) - attribute.lower
    lower, upper, cuts = attribute.lower + up, attribute.upper + up, [cut + up for cut in attribute.cuts]
    return attrs.evolve(attribute, lower=lower, upper=upper, cuts=cuts)


def one_of_each_kind(listed: Sequence[Attribute], names: Sequence[str]) -> list[Attribute]:
    """Return a copy of the last attribute of each kind, with a name of its own."""
    copies = [attrs.evolve(own, name=f"another {own.name}") for own in {type(own): own for own in listed}.values()]
    return [own for own in copies if own.name not in names]


def with_uneven_bins(attribute: Attribute) -> Attribute:
    """Return a numeric attribute whose first bin takes up nearly all of its range."""
    if not isinstance(attribute, Numeric):
        return attribute
    number = max(len(attribute.edges) - 2, 1)
    width = (attribute.upper - attribute.lower) / 100 / number
    return attrs.evolve(attribute, bins=None, cuts=[attribute.upper - width * k for k in range(number, 0, -1)])


def with_many_bins(attribute: Numeric) -> Numeric:
    """Return a numeric attribute with `VALUES` bins between the same bounds."""
    return attrs.evolve(attribute, bins=VALUES, cuts=())


def with_later_labels(attribute: Attribute) -> Attribute:
    """Return a categorical attribute with two more labels if all its labels hold numbers, such as "2019Q4" and "5+".

    One is the last label with its first number enlarged. The other is the first label with its first number reduced, if
    that number is large enough. If all labels are nothing but numbers, none is added here (see `with_value`).

    Examples
    --------
    >>> with_later_labels(Categorical("quarter", ["2019Q1", "2019Q2"])).values
    ('2019Q1', '2019Q2', '2029Q2', '2009Q1')
    >>> with_later_labels(Categorical("children", ["0", "1-2", "3+"])).values
    ('0', '1-2', '3+', '13+')
    """
    if not isinstance(attribute, Categorical):
        return attribute
    labels = attribute.values
    if not all(map(_DIGITS.search, labels)) or all(_as_number(label) is not None for label in labels):
        return attribute
    moved = (_moved(labels[-1], LATER), _moved(labels[0], -LATER))
    new = [label for label in dict.fromkeys(moved) if label is not None and label not in labels]
    return attrs.evolve(attribute, values=(*labels, *new))


def _moved(label: str, by: int) -> str | None:
    """Return a label with its first number enlarged; None if that would be below 0."""
    found = _DIGITS.search(label)
    assert found is not None
    number = int(found.group()) + by
    return None if number < 0 else f"{label[: found.start()]}{number:0{len(found.group())}}{label[found.end() :]}"


def more_flags(listed: Sequence[Attribute], names: Sequence[str]) -> list[Attribute]:
    """Return copies of the flag or categorical attribute with the fewest values, each with a name of its own.

    There are `FLAGS` copies. There are none without such an attribute, or if the cross table of all attributes, which a
    plan may hold, would have more than `MOST_CELLS` cells.
    """
    least = min((own for own in listed if not isinstance(own, Numeric)), key=lambda own: own.size, default=None)
    if least is None or math.prod(own.size for own in listed) * least.size**FLAGS > MOST_CELLS:
        return []
    copies = [attrs.evolve(least, name=f"{least.name} {k}") for k in range(2, 2 + FLAGS)]
    return [own for own in copies if own.name not in names]
