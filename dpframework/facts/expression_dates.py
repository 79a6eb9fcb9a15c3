"""Operations that take a part of a date, such as its year, from a cell (see `expression_operations`)."""

from __future__ import annotations

import math

import numpy as np

from dpframework.facts.column_read_options import DateUnit
from dpframework.facts.errors import InputError
from dpframework.facts.expression_operands_and_domains import Cells, Numbers, Operand, RowCells
from dpframework.facts.expression_operations import monotone

_MOST_DAYS = 2_900_000  # the most days before or after 1970, so up to about the year 9900
_MOST_LISTED = 400_000  # the most days for which the results are listed in a table
_HOURS = 24


def date_part(name: str, part: Operand) -> Operand:
    """Return the year, month, day, weekday (1 is Monday) or hour of a date.

    Raises
    ------
    InputError
        If the cells are not dates, their unit does not determine this part of a date, or they are too far from 1970.
    """
    domain = part.domain
    if not isinstance(domain, Numbers) or domain.date is None:
        raise InputError(f"{name}() takes a column of dates; say how they are written in [read.columns]")
    unit = domain.date
    if unit is DateUnit.YEARS and name == "year":
        return monotone(part, np.floor)
    if unit is DateUnit.HOURS and name == "hour":
        hours = Numbers(0.0, _HOURS - 1.0, True, domain.missing)
        return Operand(hours, lambda rows: np.minimum(np.floor(part.cells(rows)), _HOURS - 1.0))
    if unit is not DateUnit.DAYS:
        raise InputError(f'{name}() takes dates as days; set date_unit = "days" in [read.columns]')
    if max(-domain.low, domain.high) > _MOST_DAYS:
        raise InputError(f"{name}() takes dates within {_MOST_DAYS:,} days of 1970")
    ends = {"month": (1.0, 12.0), "day": (1.0, 31.0), "weekday": (1.0, 7.0), "hour": (0.0, _HOURS - 1.0)}
    if name == "year":
        low, high = (float(_of_days("year", np.array(end))) for end in (domain.low, domain.high))
    else:
        low, high = ends[name]
    found = Numbers(low, high, True, domain.missing)
    first, last = math.floor(domain.low), math.floor(domain.high)
    if name == "hour" or last - first > _MOST_LISTED:
        return Operand(found, lambda rows: _of_days(name, part.cells(rows)))
    listed = np.append(_of_days(name, np.arange(first, last + 1, dtype=np.float64)), math.nan)

    def cells(rows: RowCells) -> Cells:  # looked up in `listed`, so that each day is computed only once
        days = np.floor(part.cells(rows)) - first
        return listed[np.where(np.isnan(days), -1, days).astype(np.int32)]

    return Operand(found, cells)


def _of_days(name: str, cells: Cells) -> Cells:
    whole = np.floor(cells)
    if name == "hour":
        return np.asarray(np.minimum(np.floor((cells - whole) * _HOURS), _HOURS - 1.0))
    if name == "weekday":  # 1 January 1970 was a Thursday
        return np.asarray(np.mod(whole + 3, 7) + 1)
    days = np.nan_to_num(whole).astype(np.int64).astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    if name == "day":
        found = (days - months).astype(np.int64) + 1
    elif name == "month":
        found = months.astype(np.int64) % 12 + 1
    else:
        found = days.astype("datetime64[Y]").astype(np.int64) + 1970
    return np.where(np.isnan(cells), math.nan, found.astype(np.float64))
