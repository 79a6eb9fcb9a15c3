"""Read dates and times in cells: as numbers or days in a column's formats, or as days to compare with a period.

A period is a public span of dates. To compare cells with a period, dates are read without formats (see `days_of`).
Three kinds of cell have a date: dates, points in time, and texts that begin with a date, such as 2026-03-09 or
2026-03-09T12:00. A point in time has the date of its own time zone. Every other cell has no date, and its row lies in
no period.
"""

from __future__ import annotations

import calendar
import datetime
import math
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.calendar_periods import Period
from dpframework.facts.column_read_options import DATE_DIRECTIVES, ISO, TIME_DIRECTIVES, DateUnit
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import DoesNotFit
from dpframework.tables.plain_cell_series import is_missing, plain_cells

if TYPE_CHECKING:
    import polars as pl

_EPOCH = datetime.date(1970, 1, 1)
# An offset from UTC is ignored, since a time counts as the clock showed it.
_ISO = (
    r"^([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]([0-9]{2}:[0-9]{2})(:[0-9]{2})?(\.[0-9]+)?)?"
    r"(?: ?(?:Z|[+-][0-9]{2}:?[0-9]{2}))?$"
)
_DATE = re.compile(r"^\s*(\d{4}-\d\d-\d\d)(?:[T\s].*)?$", re.ASCII | re.DOTALL)


def times_of_texts(texts: pl.Series, formats: Sequence[str], unit: DateUnit) -> pl.Series:
    """Return each text's date or time as a number (see `DateUnit`), read by the first format that fits, else null.

    Parameters
    ----------
    texts
        Dates and times as stripped texts.
    formats
        Formats as in `ColumnOptions.date`. If there is none, dates are in ISO 8601.
    unit
        The unit of the numbers.
    """
    import polars as pl

    found = pl.Series([None], dtype=pl.Float64).new_from_index(0, len(texts))
    for times in parse_times(texts, formats or (ISO,)):
        numbers = numbers_of_times(times, unit)
        if numbers is not None:
            found = found.fill_null(numbers) if found.null_count() < len(found) else numbers
        if found.null_count() == texts.null_count():
            break
    return found


def days_of_texts(texts: pl.Series, formats: Sequence[str]) -> pl.Series:
    """Return the day of each text, read by the first format that fits, null where no format does."""
    import polars as pl

    found = pl.Series([None], dtype=pl.Date).new_from_index(0, len(texts))
    for times in parse_times(texts, formats or (ISO,)):
        if times.dtype != pl.Time:
            found = found.fill_null(times.cast(pl.Date))
    return found


def parse_times(texts: pl.Series, formats: Sequence[str]) -> Iterator[pl.Series]:
    """Yield what each format finds in the texts: dates, points in time or times of day, null where it does not fit."""
    import polars as pl

    for form in formats:
        if form == ISO:
            parts = texts.str.extract_groups(_ISO).struct
            day, minute, second, fraction = (parts[k] for k in range(4))
            if minute.null_count() == len(minute):
                yield day.str.to_date("%Y-%m-%d", strict=False)
                continue
            # A day without a time is read as its midnight.
            space = pl.Series([" "]).new_from_index(0, len(day))
            whole = day + space + minute.fill_null("00:00") + second.fill_null(":00")
            times = whole.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="us")
            # Digits beyond a microsecond are cut off, as in columns of times.
            micros = fraction.fill_null("").str.slice(1, 6).str.pad_end(6, "0")
            yield times + micros.cast(pl.Int64, strict=False).cast(pl.Duration("us"))
            continue
        directives = set(re.findall(r"%(.)", form))
        days, clock = directives & set(DATE_DIRECTIVES), directives & set(TIME_DIRECTIVES)
        written = texts
        if days and not days & {"d", "j"}:  # a month counts as its first day
            written, form = texts + pl.Series(["|1"]).new_from_index(0, len(texts)), f"{form}|%d"
        if days and clock:
            yield written.str.to_datetime(form, strict=False, time_unit="us")
        elif clock:
            yield written.str.to_time(form, strict=False)
        else:
            yield written.str.to_date(form, strict=False)


def numbers_of_times(series: pl.Series, unit: DateUnit) -> pl.Series | None:
    """Return dates, points in time (in their own zone) or times of day as numbers (see `DateUnit`).

    Return None for other types, and for times of day if the unit is not hours.
    """
    import polars as pl

    dtype = series.dtype
    if dtype == pl.Time and unit is not DateUnit.HOURS:
        return None
    if dtype == pl.Time or isinstance(dtype, pl.Datetime):
        if dtype != pl.Time:
            series = series.dt.replace_time_zone(None).cast(pl.Datetime("us"))
        share = _divide(series.dt.microsecond(), 1e6)
        seconds = series.dt.hour() * 3600.0 + series.dt.minute() * 60.0 + series.dt.second() + share
    elif dtype == pl.Date:
        # 0 seconds, but null where the date is null.
        seconds = series.cast(pl.Int32) * 0.0
    else:
        return None
    if unit is DateUnit.HOURS:
        return _divide(seconds, 3600)
    share = _divide(seconds, 86400)
    if unit is DateUnit.YEARS:
        days = series.dt.ordinal_day() - 1 + share
        return series.dt.year() + days / (365.0 + series.dt.is_leap_year().cast(pl.Float64))
    return series.cast(pl.Date).cast(pl.Int32) + share


def _divide(numbers: pl.Series, divisor: float) -> pl.Series:
    """Return quotients that are rounded once, as Python rounds them in `date_number`.

    Polars multiplies by the reciprocal of a constant, so the last digit may differ. The same cell would then be another
    number in a column of Python objects, which `date_number` reads. One more row can turn a column into such a column,
    and so would change the numbers of other rows.
    """
    import polars as pl

    return pl.Series(numbers.cast(pl.Float64).fill_null(math.nan).to_numpy() / divisor).fill_nan(None)


def date_number(cell: Any, unit: DateUnit) -> float | None:
    """Return a Python date or time as a number (see `DateUnit`).

    Return None for any other object, and for a time of day if the unit is not hours.
    """
    if is_missing(cell):
        return None
    if isinstance(cell, np.datetime64):
        cell = None if np.isnat(cell) else cell.astype("datetime64[us]").item()
    if not isinstance(cell, datetime.date | datetime.time):
        return None
    seconds = 0.0
    if isinstance(cell, datetime.datetime | datetime.time):
        seconds = cell.hour * 3600.0 + cell.minute * 60.0 + cell.second + cell.microsecond / 1e6
    if unit is DateUnit.HOURS:
        return seconds / 3600
    if isinstance(cell, datetime.time):
        return None
    day = datetime.date(cell.year, cell.month, cell.day)
    if unit is DateUnit.DAYS:
        return (day - _EPOCH).days + seconds / 86400
    days = day.timetuple().tm_yday - 1 + seconds / 86400
    return day.year + days / (365.0 + calendar.isleap(day.year))


def days_of(values: Any, where: str) -> pl.Series:
    """Return each cell's date, null where it has none.

    Parameters
    ----------
    values, where
        As for `cell_notation_reader.read_cells`.

    Raises
    ------
    InputError
        If `values` is no column.
    """
    import polars as pl

    cells, _ = plain_cells(values, where)
    if isinstance(cells, pl.Series):
        if cells.dtype == pl.Date:
            return cells
        if isinstance(cells.dtype, pl.Datetime):
            return cells.dt.date()
        if not (isinstance(cells.dtype, pl.Categorical | pl.Enum) or cells.dtype == pl.String):
            return pl.Series([None], dtype=pl.Date).new_from_index(0, len(cells))
        cells = cells.cast(pl.String).to_list()
    return pl.Series([_day(cell) for cell in cells], dtype=pl.Date)


def _day(cell: Any) -> datetime.date | None:
    if isinstance(cell, datetime.datetime):
        return None if cell != cell else cell.date()  # pandas' NaT is a datetime that differs from itself
    if isinstance(cell, datetime.date):
        return cell
    if isinstance(cell, np.datetime64):
        cell = str(cell)
    found = _DATE.match(cell) if isinstance(cell, str) else None
    if found is None:
        return None
    try:
        return datetime.date.fromisoformat(found[1])
    except ValueError:
        return None


def rows_in(period: Period, values: Any, policy: OutOfDomain, where: str) -> NDArray[np.bool_]:
    """Return for each row whether the date in its cell lies in a period, shape (rows,).

    Raises
    ------
    DoesNotFit
        If the policy is `OutOfDomain.ERROR`, and a row has no date.
    """
    days = days_of(values, where)
    if policy is OutOfDomain.ERROR and days.null_count():
        raise DoesNotFit(f"{where} holds values that are no dates; write them as 2026-03-09", kind="dates")
    inside = days.is_between(period.first, period.last).fill_null(False)
    return np.asarray(inside.to_numpy(), dtype=np.bool_)
