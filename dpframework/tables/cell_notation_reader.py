"""Read cells in the notation of their table: its texts for missing values, decimal commas, dates and labels.

The public options of a column (see `ReadOptions`) decide what each of its cells means, before the cells are encoded by
the schema. Cells are read together for speed, but each gives the same result as if it were read alone.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, Numeric
from dpframework.facts.canonical_cells import label_of, of_id, of_number, of_text
from dpframework.facts.column_read_options import ColumnOptions
from dpframework.facts.privacy_unit import ROW, PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.tables.date_reader import date_number, days_of, days_of_texts, numbers_of_times, times_of_texts
from dpframework.tables.ids import SPACE, Ids, ids_of
from dpframework.tables.plain_cell_series import Column, as_column, as_numbers, is_textual, plain_cells
from dpframework.tables.sources import Source

if TYPE_CHECKING:
    import polars as pl


def as_written(source: Source, schema: Schema, unit: PrivacyUnit = ROW) -> Source:
    """Return a source whose columns are read as the schema's options say.

    Parameters
    ----------
    source
        The rows, as they come from a file, a database or columns in memory.
    schema
        The public facts about the table. If its `read` has no options for cells, the source itself is returned.
    unit
        The privacy unit. It may name a column of ids and a column of dates, which the schema need not list. In the
        column of ids, only texts for missing values are replaced. The column of dates is read in the formats that its
        options list.
    """
    readers: dict[str, Callable[[Any, str], Any]] = {}
    for name in source.columns:
        options = schema.read.of_column(name)
        if name in schema:
            if options != ColumnOptions():
                readers[name] = functools.partial(read_cells, schema[name], options)
        elif name == unit.date and (options.date or options.null):
            readers[name] = functools.partial(read_days, options)
        elif options.null:
            readers[name] = functools.partial(read_ids, options)
    if not readers:
        return source

    def read(positions: Sequence[int]) -> Iterator[Sequence[Any]]:
        names = [source.columns[k] for k in positions]
        for block in source.read(positions):
            yield [
                readers[name](values, f"{source.name}: column '{name}'") if name in readers else values
                for name, values in zip(names, block, strict=True)
            ]

    return attrs.evolve(source, read=read)


def read_cells(attribute: Attribute, options: ColumnOptions, values: Any, where: str) -> Column:
    """Return the cells of an attribute's column, read as the column's options say.

    Parameters
    ----------
    attribute
        The attribute that the schema declares for the column.
    options
        How the column is written.
    values
        One column, in any form that `encode_column` takes, shape (rows,).
    where
        The words that begin each error's message. They name the column.

    Raises
    ------
    InputError
        If `values` is no column.
    """
    if isinstance(values, Column) or options == ColumnOptions():
        return as_column(values, where)
    if isinstance(attribute, Numeric):
        return _numbers(options, values, where)
    return _labels(options, values, where)


def _numbers(options: ColumnOptions, values: Any, where: str) -> Column:
    """Return a column of floats. A cell that is no number is foreign (see `Column`)."""
    import polars as pl

    cells, categories = plain_cells(values, where)
    if isinstance(cells, pl.Series):
        found, strange = _numbers_of_series(options, cells)
    else:  # texts and other objects are read separately, since one text would turn all numbers beside it into texts
        texts = as_column([cell if isinstance(cell, str) else None for cell in cells], where)
        found, strange = _numbers_of_series(options, texts.series.cast(pl.String))
        strange = strange if texts.foreign is None else strange | texts.foreign
        beside = np.array([isinstance(cell, str) for cell in cells], dtype=np.bool_)
        objects = [None if isinstance(cell, str) else cell for cell in cells]
        times = [date_number(cell, options.unit) if options.is_date else None for cell in objects]
        others = as_column([c if t is None else None for c, t in zip(objects, times, strict=True)], where)
        numbers, foreign = as_numbers(others.series)
        if options.is_date:
            numbers = _dates_as_numbers(options, numbers)
        numbers = np.array([n if t is None else t for n, t in zip(numbers, times, strict=True)], dtype=np.float64)
        foreign = foreign if others.foreign is None else foreign | others.foreign
        found, strange = np.where(beside, found, numbers), np.where(beside, strange, foreign)
    gone = np.isnan(found)
    for text in options.null:
        form = of_text(text)
        if isinstance(form, float):
            gone |= found == form
            strange &= found != form
    series = pl.Series(np.where(gone, math.nan, found)).fill_nan(None)
    return Column(series, strange if bool(strange.any()) else None, categories)


def _numbers_of_series(options: ColumnOptions, series: pl.Series) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the numbers of cells of one type, NaN where missing, and a mask of the cells that hold something else."""
    import polars as pl

    if isinstance(series.dtype, pl.Categorical | pl.Enum):
        series = series.cast(pl.String)
    if series.dtype.is_temporal():
        times = numbers_of_times(series, options.unit) if options.is_date else None
        if times is None:
            return np.full(len(series), math.nan), series.is_not_null().to_numpy()
        return times.fill_null(math.nan).to_numpy(), np.zeros(len(series), dtype=np.bool_)
    column = as_column(series, "")
    foreign = np.zeros(len(series), dtype=np.bool_) if column.foreign is None else column.foreign
    if not is_textual(column.series):
        numbers = as_numbers(column.series)[0]
        if options.is_date:
            numbers = _dates_as_numbers(options, numbers)
        return numbers, foreign
    texts = column.series.str.strip_chars(SPACE)
    gone = texts == ""
    if options.null:
        gone |= texts.is_in(list(map(str.strip, options.null)))
    texts = without_symbols(texts.set(gone.fill_null(False), None), options.symbols)
    if options.is_date:
        times = times_of_texts(texts, options.date, options.unit)
        rest = times.is_null() & texts.is_not_null()
        found = times.fill_null(math.nan).to_numpy()
        if not bool(rest.any()):
            return found, foreign
        own, strange = styled_numbers(options, texts.set(~rest, None))
        return np.where(rest.to_numpy(), own, found), strange | foreign
    numbers, strange = styled_numbers(options, texts)
    return numbers, strange | foreign


def without_symbols(texts: pl.Series, symbols: Sequence[str]) -> pl.Series:
    """Return texts without a symbol (such as EUR or %) before or after the number, and without the space beside it."""
    if not symbols:
        return texts
    either = "|".join(re.escape(symbol) for symbol in sorted(symbols, key=len, reverse=True))
    return texts.str.replace(rf"^(?:{either})", "").str.replace(rf"(?:{either})$", "").str.strip_chars(SPACE)


def styled_numbers(options: ColumnOptions, texts: pl.Series) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the numbers of stripped texts, NaN where missing, and a mask of the texts that are no numbers.

    The options give the decimal sign and the thousands separator.
    """
    import polars as pl

    decimal, thousands = options.decimal or ".", options.thousands
    if decimal == "." and thousands is None:
        return as_numbers(texts)
    spelled = _number_pattern(decimal, thousands)
    plain = text = pl.col("text")
    if thousands is not None:
        plain = plain.str.replace_all(_GROUPING[thousands] if thousands == " " else re.escape(thousands), "")
    if decimal != ".":
        plain = plain.str.replace(decimal, ".", literal=True)
    number = pl.when(text.str.contains(spelled)).then(plain).cast(pl.Float64, strict=False)
    parsed = texts.alias("text").to_frame().select_seq(number).to_series()  # one step, since each step has a fixed cost
    found, strange = parsed.fill_null(math.nan).to_numpy(), np.zeros(len(texts), dtype=np.bool_)
    # inf, NaN, true and false are read whatever the decimal sign and the separator are. A text with a digit that does
    # not follow these two is no number.
    if parsed.null_count() != texts.null_count():
        words = texts.is_not_null() & parsed.is_null()
        strange = words.to_numpy()
        worded = texts.set(~words | texts.str.contains(r"[0-9]").fill_null(False), None)
        own, other = as_numbers(worded)
        lettered = worded.is_not_null().to_numpy()
        found, strange = np.where(lettered, own, found), np.where(lettered, other, strange)
    return found, strange


#: For a thousands separator that several characters may stand for: the pattern of these characters.
_GROUPING = {" ": "[ \u00a0\u2009\u202f]"}


@functools.cache
def _number_pattern(decimal: str, thousands: str | None) -> str:
    """Return the pattern of a number with a decimal sign and, if there is a thousands separator, groups of 3 digits."""
    point = re.escape(decimal)
    whole = "[0-9]+"
    if thousands is not None:
        group = _GROUPING.get(thousands, re.escape(thousands))
        whole = f"(?:[0-9]+|[0-9]{{1,3}}(?:{group}[0-9]{{3}})+)"
    return f"^[+-]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?$"


def _dates_as_numbers(options: ColumnOptions, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Replace numbers whose digits a format reads as a date, such as 20260309, by the number of that date."""
    import polars as pl

    formats = tuple(one for one in options.date if not re.sub(r"%[A-Za-z]", "", one))
    if not formats:
        return numbers
    series = pl.Series(numbers).fill_nan(None)
    distinct = series.unique().drop_nulls()
    texts = pl.Series(
        [label_of(number + 0.0) if math.isfinite(number) else None for number in distinct], dtype=pl.String
    )
    times = times_of_texts(texts, formats, options.unit).fill_null(distinct)
    return series.replace_strict(distinct, times, return_dtype=pl.Float64).fill_null(math.nan).to_numpy()


def _labels(options: ColumnOptions, values: Any, where: str) -> Column:
    """Return a column of texts, where each cell is replaced by the label that it means."""
    import polars as pl

    if not (options.null or options.is_recoded):
        return as_column(values, where)
    cells, categories = plain_cells(values, where)
    if isinstance(cells, pl.Series):
        column = as_column(cells, where)
        found = _relabel(options, column.series, styled=True)
        return Column(found, column.foreign, categories or column.categories)
    given = np.array([isinstance(cell, str) for cell in cells], dtype=np.bool_)  # only texts have a decimal sign
    texts = as_column([cell if text else None for cell, text in zip(cells, given, strict=True)], where)
    others = as_column([None if text else cell for cell, text in zip(cells, given, strict=True)], where)
    found = _relabel(options, texts.series, styled=True)
    found = found.zip_with(pl.Series(given), _relabel(options, others.series, styled=False))
    masks = [column.foreign for column in (texts, others) if column.foreign is not None]
    return Column(found, np.logical_or.reduce(masks) if masks else None, categories)


def _relabel(options: ColumnOptions, series: pl.Series, *, styled: bool) -> pl.Series:
    """Return the labels of cells. If `styled`, numbers in texts have the options' decimal sign and thousands separator.

    Otherwise they have a decimal point and no separator.
    """
    import polars as pl

    if series.dtype == pl.Null:
        return series.cast(pl.String)
    styled = styled and is_textual(series)
    if not is_textual(series):
        series = pl.Series(as_numbers(series)[0]).fill_nan(None)
    distinct = series.unique().drop_nulls()
    given = distinct.to_list()
    if is_textual(series):
        cells = [(text, of_text(text)) for text in given]
    else:
        forms = map(of_number, given)
        cells = [("" if form is None else label_of(form), form) for form in forms]
    numbers: list[float | None] = [None] * len(cells)
    if options.ranges:
        texts = pl.Series([text.strip() for text, _ in cells], dtype=pl.String)
        found, _ = styled_numbers(options if styled else ColumnOptions(), texts)
        numbers = [None if math.isnan(number) else number for number in found.tolist()]
    nulls = {of_text(text) for text in options.null}
    sources = {of_text(text): label for label, texts in options.labels for text in texts}
    own = {of_text(label) for label in options.targets}
    new: list[str | None] = []
    for (text, form), number in zip(cells, numbers, strict=True):
        around = [one for one, (low, high) in options.ranges if number is not None and low <= number < high]
        if form is None or form in nulls:
            new.append(None)
        elif form in sources:
            new.append(sources[form])
        elif around:
            new.append(around[0])
        else:
            new.append(text if form in own or options.other is None else options.other)
    return series.replace_strict(distinct, pl.Series(new, dtype=pl.String), default=None, return_dtype=pl.String)


def read_ids(options: ColumnOptions, values: Any, where: str) -> Ids:
    """Return the ids in a column. A text that the options list as null is a missing id."""
    ids = ids_of(values, where)
    gone = ids.series.is_in([of_id(text) for text in options.null]).fill_null(False)
    return Ids(ids.series.set(gone, None), ids.unfit)


def read_days(options: ColumnOptions, values: Any, where: str) -> Any:
    """Return the dates in a column, null where a cell has none. A row's date says which period the row lies in."""
    import polars as pl

    cells, _ = plain_cells(values, where)
    if isinstance(cells, pl.Series) and cells.dtype != pl.String:
        return days_of(cells, where)
    texts = as_column([cell if isinstance(cell, str) else None for cell in cells], where).series.cast(pl.String)
    texts = texts.str.strip_chars(SPACE)
    gone = texts.is_in(list(map(str.strip, options.null))).fill_null(False)
    known = days_of_texts(texts.set(gone, None), options.date)
    return known.fill_null(days_of([None if isinstance(cell, str) else cell for cell in cells], where))
