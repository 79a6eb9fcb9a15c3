"""Ids: the columns that name rows, or whose rows they are, as texts that agree whatever file or type holds them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpframework.facts.canonical import of_id
from dpframework.facts.errors import DoesNotFit
from dpframework.tables.columns import Column, is_textual

if TYPE_CHECKING:
    import polars as pl


def ids_of(column: Column) -> pl.Series:
    """Return ids as texts that agree between a CSV and a Parquet file (see `of_id`); missing ones are null."""
    import polars as pl

    series = column.series
    if series.dtype.is_float():
        # written out by Python: a whole number with all of its digits
        texts = [None if number is None or math.isnan(number) else _digits(number) for number in series.to_list()]
        series = pl.Series(texts, dtype=pl.String)
    elif not is_textual(series):
        return series.cast(pl.String)
    series = series.str.strip_chars()
    series = series.set(series == "", None)
    odd = series.filter(
        series.str.contains(r"^-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$") & series.str.contains(r"[-.eE]")
    )
    distinct = odd.unique().drop_nulls()
    return series.replace(distinct, pl.Series([of_id(text) for text in distinct.to_list()], dtype=pl.String))


def require_all(ids: pl.Series, what: str) -> None:
    """Refuse ids of which some are missing; `what` they are begins the sentence.

    Raises
    ------
    DoesNotFit
        If some are.
    """
    if ids.null_count():
        raise DoesNotFit(f"{what} has missing values; each row needs an id")


def _digits(number: float) -> str:
    return str(int(number)) if math.isfinite(number) and number.is_integer() else repr(number)
