"""Parts of dates: those of Python's calendar at every day of a domain, and the domains that they have."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pytest

from dpframework.facts.column_read_options import DateUnit
from dpframework.facts.errors import InputError
from dpframework.facts.expression_dates import _MOST_DAYS, date_part
from dpframework.facts.expression_operands_and_domains import Numbers, Operand, Truths

PARTS = ("year", "month", "day", "weekday", "hour")
EPOCH = datetime.datetime(1970, 1, 1)


def column(low: float, high: float, unit: DateUnit | None, missing: bool = False) -> Operand:
    return Operand(Numbers(low, high, missing=missing, date=unit), lambda rows: rows["x"])


def found(name: str, part: Operand, cells: list[float]) -> list[float | None]:
    numbers = date_part(name, part).cells({"x": np.array(cells)}).tolist()
    return [None if math.isnan(number) else number for number in numbers]


def of_calendar(name: str, days: float) -> int:
    moment = EPOCH + datetime.timedelta(days=math.floor(days))
    if name == "hour":
        return min(math.floor((days - math.floor(days)) * 24), 23)
    return moment.isoweekday() if name == "weekday" else int(getattr(moment, name))


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize(
    ("low", "high"),
    [(-800.75, 800.5), (0.0, 0.0), (-1.0, 366.0), (19_700.0, 20_500.0), (-250_000.0, 250_000.0)],  # the last in no list
)
def test_each_day_has_the_parts_of_the_calendar(name: str, low: float, high: float) -> None:
    step = max(1, math.floor(high - low) // 2000)
    whole = [float(day) for day in range(math.ceil(low), math.floor(high) + 1, step)]
    days = [low, high, *whole, *(day + share for day in whole for share in (0.5, 1 - 1e-9) if day + share <= high)]
    expected: list[float | None] = [of_calendar(name, day) for day in days]
    assert found(name, column(low, high, DateUnit.DAYS), [*days, math.nan]) == [*expected, None]


def test_a_moment_before_midnight_that_rounds_to_a_whole_day_is_in_its_last_hour() -> None:
    for low in (-1.0, -(10.0**6)):  # in a list, and in none
        assert found("hour", column(low, 1.0, DateUnit.DAYS), [-1e-20, 0.0]) == [23, 0]
    assert found("hour", column(0.0, 24.0, DateUnit.HOURS), [24.0]) == [23]


@pytest.mark.parametrize("missing", [False, True])
def test_domains_of_parts_are_those_of_the_calendar_and_years_those_of_the_ends(missing: bool) -> None:
    days = column(-365.5, 365.0, DateUnit.DAYS, missing)
    ends = {"year": (1968, 1971), "month": (1, 12), "day": (1, 31), "weekday": (1, 7), "hour": (0, 23)}
    assert {name: date_part(name, days).domain for name in PARTS} == {
        name: Numbers(low, high, whole=True, missing=missing) for name, (low, high) in ends.items()
    }
    years = date_part("year", column(1899.5, 2024.25, DateUnit.YEARS, missing))
    assert years.domain == Numbers(1899.0, 2024.0, whole=True, missing=missing)
    hours = date_part("hour", column(6.0, 24.0, DateUnit.HOURS, missing))
    assert hours.domain == Numbers(0.0, 23.0, whole=True, missing=missing)


def test_years_and_hours_tell_themselves_alone() -> None:
    assert found("year", column(0, 3000, DateUnit.YEARS), [1969.99, 1970, math.nan]) == [1969, 1970, None]
    assert found("hour", column(0, 24, DateUnit.HOURS), [0, 12.99, 23.99, 24, math.nan]) == [0, 12, 23, 23, None]
    for unit, own in ((DateUnit.YEARS, "year"), (DateUnit.HOURS, "hour")):
        for name in PARTS:
            if name != own:
                with pytest.raises(InputError, match=rf'^{name}\(\) takes dates as days; set date_unit = "days" in'):
                    date_part(name, column(0, 20, unit))


@pytest.mark.parametrize("name", PARTS)
def test_what_is_no_date_or_too_far_away_is_refused(name: str) -> None:
    for part in (column(0, 20, None), Operand(Truths(), lambda rows: rows["x"])):
        with pytest.raises(InputError, match=rf"^{name}\(\) takes a column of dates; say how they are written in"):
            date_part(name, part)
    for low, high in ((0, _MOST_DAYS), (-_MOST_DAYS, 0)):
        date_part(name, column(low, high, DateUnit.DAYS))
        for further in ((low - 1, high), (low, high + 1)):
            if max(map(abs, further)) > _MOST_DAYS:
                with pytest.raises(InputError, match=rf"^{name}\(\) takes dates within 2,900,000 days of 1970"):
                    date_part(name, column(*further, DateUnit.DAYS))
