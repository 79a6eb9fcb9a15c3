"""Periods, which are days, weeks or months of the calendar. Periods of one kind do not overlap and cover all dates.

A privacy unit may be a person in one period. Rows of different periods are then disjoint parts of one table, divided by
a public date. Neighbours differ in the rows of one period only, so releases from other periods do not change.
"""

from __future__ import annotations

import calendar
import datetime
import re
from typing import Self, final

import attrs

from dpframework.facts.choice_enum import Choice
from dpframework.facts.errors import InputError


class PeriodKind(Choice, what="period"):
    """The kind of a period: a day, a week from Monday to Sunday (ISO 8601), or a month of the calendar."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


_FORMS = {
    PeriodKind.DAY: (r"(\d{4})-(\d\d)-(\d\d)", "2026-03-09"),
    PeriodKind.WEEK: (r"(\d{4})-W(\d\d)", "2026-W11"),
    PeriodKind.MONTH: (r"(\d{4})-(\d\d)", "2026-03"),
}


@final
@attrs.frozen
class Period:
    """A day, week or month of the calendar, with its name and its ends.

    Attributes
    ----------
    kind
        Whether the period is a day, a week or a month.
    name
        The name of the period, such as 2026-03. A period has only one name, and two periods of one kind are equal or do
        not overlap.
    first, last
        The first and the last day of the period.
    """

    kind: PeriodKind
    name: str
    first: datetime.date
    last: datetime.date

    @classmethod
    def parse(cls, kind: PeriodKind, name: str) -> Self:
        """Return the period with a name.

        Raises
        ------
        InputError
            If no period of this kind has that name.

        Examples
        --------
        >>> print(Period.parse(PeriodKind.WEEK, "2026-W11").first)
        2026-03-09
        """
        form, example = _FORMS[kind]
        found = re.fullmatch(form, name, re.ASCII)
        wrong = f"period '{name}' is no {kind}; write a {kind} as {example}, since other spans would overlap periods"
        if found is None:
            raise InputError(wrong)
        year, part, *rest = (int(number) for number in found.groups())
        try:
            match kind:
                case PeriodKind.DAY:
                    first = last = datetime.date(year, part, rest[0])
                case PeriodKind.WEEK:
                    first, last = (datetime.date.fromisocalendar(year, part, day) for day in (1, 7))
                case PeriodKind.MONTH:
                    first = datetime.date(year, part, 1)
                    last = datetime.date(year, part, calendar.monthrange(year, part)[1])
        except (ValueError, OverflowError):
            raise InputError(wrong) from None
        return cls(kind, name, first, last)

    def __str__(self) -> str:
        return self.name
