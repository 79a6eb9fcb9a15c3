"""How the cells of one column are written. These options are public, and each cell is converted by itself."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Any, final

import attrs

from dpframework.facts.canonical_cells import Form, of_text
from dpframework.facts.choice_enum import Choice
from dpframework.facts.errors import InputError
from dpframework.facts.toml import refuse_unknown
from dpframework.facts.value_checks import finite_number, plain_number, printable_name, visible_text

#: The directives that a date format may hold, for dates and for times of day.
DATE_DIRECTIVES, TIME_DIRECTIVES = "YymdbBj", "HIMSp"
DECIMALS, THOUSANDS = (".", ","), (".", ",", " ", "'", "_")
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
ISO = "iso"


class DateUnit(Choice, what="date_unit"):
    """The unit of the number that a date or a time becomes."""

    YEARS = "years"
    """The year, and the share of the year that is over: noon of 2 July 2023 is 2023.5."""
    DAYS = "days"
    """Days since 1 January 1970, and the share of the day that is over."""
    HOURS = "hours"
    """Hours of the day, from 0 to 24: half past nine is 9.5. The date is ignored."""


def as_given_texts(given: Any, what: str) -> tuple[str, ...]:
    """Return one text, or a list of texts, as a tuple in which each text occurs once.

    Raises
    ------
    InputError
        If something else is given, or a text is blank.
    """
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, Iterable) or isinstance(listed, Mapping | bytes):
        raise InputError(
            f"{what} must be a text or a list of texts, not {type(given).__name__}; write numbers in quotes, too"
        )
    found = tuple(listed)
    for text in found:
        visible_text(text, f"each text of {what}")
    return tuple(dict.fromkeys(found))


def null_texts(given: Any) -> tuple[str, ...]:
    """Return the texts that stand for a missing value, as a tuple."""
    return as_given_texts(given, "null")


def _symbols(given: Any) -> tuple[str, ...]:
    symbols = as_given_texts(given, "symbols")
    for symbol in symbols:
        if re.search(r"[0-9]|^[+.,-]|[+.,-]$", visible_text(symbol, "each symbol").strip()):
            raise InputError(f"symbol '{symbol}' could be a part of a number; accepted are texts such as 'EUR' or '%'")
    return tuple(symbol.strip() for symbol in symbols)


def _formats(given: Any) -> tuple[str, ...]:
    formats = as_given_texts(given, "date")
    for text in formats:
        if text == ISO:
            continue
        named = _DIRECTIVE.findall(text)
        for directive in named:
            if not directive or directive not in f"{DATE_DIRECTIVES}{TIME_DIRECTIVES}%":
                raise InputError(
                    f"date format '{text}' has '%{directive}', which is not known; accepted are "
                    f"{', '.join(f'%{one}' for one in DATE_DIRECTIVES + TIME_DIRECTIVES)}, such as '%d.%m.%Y'"
                )
        days, clock = set(named) & set(DATE_DIRECTIVES), set(named) & set(TIME_DIRECTIVES)
        if clock and clock - {"S"} not in ({"H", "M"}, {"I", "M", "p"}):
            raise InputError(f"date format '{text}' names no time of day; write one such as '%H:%M' or '%I:%M %p'")
        if (days or not clock) and not (days & set("Yy") and days & set("mbBj")):
            raise InputError(f"date format '{text}' names no day of a year; write one such as '%d.%m.%Y'")
    return formats


def _decimal(given: str | None) -> str | None:
    return _sign(given, DECIMALS, "decimal")


def _thousands(given: str | None) -> str | None:
    return _sign(given, THOUSANDS, "thousands")


def _sign(given: Any, accepted: tuple[str, ...], what: str) -> str | None:
    if given is not None and given not in accepted:
        raise InputError(f"{what} {given!r} is unknown; accepted are {', '.join(map(repr, accepted))}")
    return None if given is None else str(given)


def _date_unit(given: DateUnit | str | None) -> DateUnit | None:
    return None if given is None else DateUnit.parse(given)


def _labels(given: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    pairs = dict(given).items() if isinstance(given, Mapping | tuple) else None
    if pairs is None:
        raise InputError('labels must be a table of lists, such as { female = ["f", "w"], male = ["m"] }')
    return tuple(
        (visible_text(label, "each label"), as_given_texts(texts, f"label '{label}'")) for label, texts in pairs
    )


def _ranges(given: Any) -> tuple[tuple[str, tuple[float, float]], ...]:
    accepted = "ranges must be a table of pairs of numbers, such as { child = [0, 18], adult = [18, 65] }"
    if not isinstance(given, Mapping | tuple):
        raise InputError(accepted)
    found = []
    for label, bounds in dict(given).items():
        if not isinstance(bounds, list | tuple) or len(bounds) != 2:
            raise InputError(accepted)
        low, high = (finite_number(bound, f"each bound of range '{label}'") for bound in bounds)
        if not low < high:
            raise InputError(f"range '{label}' must begin below its end")
        found.append((visible_text(label, "each label"), (low, high)))
    found.sort(key=lambda pair: pair[1])
    for (one, (_, end)), (other, (begin, _)) in itertools.pairwise(found):
        if begin < end:
            raise InputError(f"ranges '{one}' and '{other}' overlap; let each number lie in one only")
    return tuple(found)


@final
@attrs.frozen
class ColumnOptions:
    """How the cells of one column are written.

    The `ReadOptions` of a file add texts to `null`, and stand in for `decimal`, `thousands` and `date` if these are not
    given. The other options belong to single columns only.

    Attributes
    ----------
    null
        Texts that stand for a missing value, compared without the space around them. A number, such as "-99", also
        stands for that number in any spelling.
    decimal, thousands
        For numbers that are written as texts: the decimal sign (a point or a comma), and the sign between groups of
        three digits.
    symbols
        Texts that may stand before or after a number, such as "EUR" or "%". Only the number is read.
    date
        Formats of dates or times, of which the first that fits is used. A format is "iso", or a text with directives
        among `%Y %y %m %d %b %B %j %H %I %M %S %p`.
    date_unit
        The unit of the number that a date becomes, "years", "days" or "hours". By default years, or hours where
        no format has a date. A column with `date` or `date_unit` holds dates.
    labels
        For each label the texts that it stands for. A text that is not listed may get a label by `ranges` or `other`.
        Otherwise it stays as it is.
    ranges
        For each label the numbers that it stands for, from the first bound up to the second, which is excluded.
    other
        The label of all remaining values. These are not listed in `labels`, lie in no range, and are none of the labels
        in `labels`, `ranges` and `other`. None keeps such values.

    Raises
    ------
    InputError
        If the value of an option is not accepted, or two options contradict each other.

    Examples
    --------
    >>> ColumnOptions(date="%d.%m.%Y").unit.value
    'years'
    >>> ColumnOptions(labels={"female": ["f", "w"]}, other="other").to_dict()
    {'other': 'other', 'labels': {'female': ['f', 'w']}}
    """

    null: tuple[str, ...] = attrs.field(default=(), converter=null_texts)
    decimal: str | None = attrs.field(default=None, converter=_decimal)
    thousands: str | None = attrs.field(default=None, converter=_thousands)
    symbols: tuple[str, ...] = attrs.field(default=(), converter=_symbols)
    date: tuple[str, ...] = attrs.field(default=(), converter=_formats)
    date_unit: DateUnit | None = attrs.field(default=None, converter=_date_unit)
    labels: tuple[tuple[str, tuple[str, ...]], ...] = attrs.field(default=(), converter=_labels)
    ranges: tuple[tuple[str, tuple[float, float]], ...] = attrs.field(default=(), converter=_ranges)
    other: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.decimal is not None and self.decimal == self.thousands:
            raise InputError(f"decimal and thousands are both '{self.decimal}'; they must differ")
        if self.other is not None:
            printable_name(self.other, "other")
        if self.is_date and self.is_recoded:
            raise InputError("has options for dates, which become numbers, and for labels; give one of the two")
        sources: dict[Form | None, str] = {}
        for label, texts in self.labels:
            for text in texts:
                if sources.setdefault(of_text(text), label) != label:
                    raise InputError(f"text '{text}' stands for two labels; list it once")

    @property
    def is_date(self) -> bool:
        """Whether the column holds dates or times."""
        return bool(self.date) or self.date_unit is not None

    @property
    def is_recoded(self) -> bool:
        """Whether cells of the column become other labels."""
        return bool(self.labels or self.ranges or self.other is not None)

    @property
    def unit(self) -> DateUnit:
        """The unit of the number that a date of the column becomes."""
        if self.date_unit is not None:
            return self.date_unit
        dated = not self.date or any(
            one == ISO or set(DATE_DIRECTIVES) & set(_DIRECTIVE.findall(one)) for one in self.date
        )
        return DateUnit.YEARS if dated else DateUnit.HOURS

    @property
    def targets(self) -> tuple[str, ...]:
        """The labels that cells of the column may become."""
        found = [label for label, _ in (*self.labels, *self.ranges)]
        return tuple(dict.fromkeys([*found, *([] if self.other is None else [self.other])]))

    def to_dict(self) -> dict[str, Any]:
        """Return the options in a JSON-safe form, with the keys of a file, defaults left out."""
        form: dict[str, Any] = {}
        for name in ("null", "symbols", "date"):
            if getattr(self, name):
                form[name] = list(getattr(self, name))
        for name in ("decimal", "thousands", "other"):
            if getattr(self, name) is not None:
                form[name] = getattr(self, name)
        if self.date_unit is not None:
            form["date_unit"] = self.date_unit.value
        if self.labels:
            form["labels"] = {label: list(texts) for label, texts in self.labels}
        if self.ranges:
            form["ranges"] = {label: [plain_number(low), plain_number(high)] for label, (low, high) in self.ranges}
        return form

    @classmethod
    def of(cls, given: Any) -> ColumnOptions:
        """Return options that are given as `ColumnOptions`, or as a mapping from their names to their values.

        Raises
        ------
        InputError
            If a name is unknown (the message shows the nearest one), or a value is not accepted.
        """
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping):
            raise InputError(f'must be a table of options, such as {{ null = ["-"] }}, not {type(given).__name__}')
        refuse_unknown(given, [field.name for field in attrs.fields(cls)], "unknown key")
        return cls(**given)
