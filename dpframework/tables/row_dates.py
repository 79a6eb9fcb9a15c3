"""The dates of rows, each read from its cell alone, and the rows that lie in a period.

Three kinds of cell have a date: a date, a point in time (by its own time zone), and a text that begins with a date,
such as 2026-03-09 or 2026-03-09T12:00. Every other cell has no date, and its row lies in no period.
"""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import DoesNotFit
from dpframework.facts.periods import Period
from dpframework.tables.plain_cell_series import plain_cells

if TYPE_CHECKING:
    import polars as pl

_DATE = r"^\s*(\d{4}-\d\d-\d\d)(?:[T\s].*)?$"
_DATE_PATTERN = re.compile(_DATE, re.ASCII | re.DOTALL)


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
    found = _DATE_PATTERN.match(cell) if isinstance(cell, str) else None
    if found is None:
        return None
    try:
        return datetime.date.fromisoformat(found[1])
    except ValueError:
        return None


def rows_in(period: Period, values: Any, policy: OutOfDomain, where: str) -> NDArray[np.bool_]:
    """Return whether each row lies in a period by its cell in a column of dates, shape (rows,).

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
