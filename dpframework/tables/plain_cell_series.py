"""Columns of any container as series of plain cells, so that the reading of a cell depends on that cell alone.

A container, such as a list or a dataframe, may hold its cells in an array of one type, or as Python objects. Objects of
several types become texts one by one. A library that converts them together chooses one type for all, and one more row
may change that type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.canonical_cells import TRUTHS
from dpframework.facts.errors import InputError, is_failure
from dpframework.facts.hidden_fields import hide_fields
from dpframework.facts.input_limits import MOST_CELL_BYTES

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")

_NUMBERS = (int, float, Decimal, np.integer, np.floating)
_MISSING_KINDS = {"NAType", "NaTType"}  # classes of pandas, by name because pandas need not be installed


def quietly(action: Callable[[], T], sentence: str, kind: type[InputError] = InputError) -> T:
    """Run `action`. If it fails, raise an InputError, or its subclass `kind`, with the message `sentence` alone.

    Readers' errors quote cells. The new error is raised outside the handler, so that it has no context, which could
    show cells.
    """
    try:
        return action()
    except MemoryError:
        raise
    except BaseException as error:
        if not is_failure(error):
            raise
    raise kind(sentence)


@attrs.frozen(eq=False, repr=False, field_transformer=hide_fields)
class Column:
    """One private column.

    Attributes
    ----------
    series
        The cells: numbers, texts, booleans, or nothing but nulls. Null where a cell is missing or foreign.
    foreign
        Whether each cell holds a value that no schema can hold, such as a date or a list, shape (rows,). None if no
        cell does.
    categories
        Whether the container calls the values categories, even where they read as numbers. Only schema inference uses
        this.
    """

    series: pl.Series
    foreign: NDArray[Any] | None = None
    categories: bool = False

    def __len__(self) -> int:
        """Return the number of rows (private)."""
        return len(self.series)

    def __repr__(self) -> str:
        """Show no value and no count."""
        return "Column(rows are private)"

    def take(self, rows: pl.Series) -> Column:
        """Return the column with these rows, in this order."""
        foreign = None if self.foreign is None else self.foreign[rows.to_numpy()]
        return Column(self.series.gather(rows), foreign, self.categories)


def as_column(values: Any, where: str) -> Column:
    """Return the cells of any container as a `Column`.

    Parameters
    ----------
    values
        A series of polars, pandas or pyarrow (also through narwhals), a numpy array, a list, or a `Column`.
    where
        The words that begin each error's message. They name the column.

    Raises
    ------
    InputError
        If `values` is none of these.
    """
    import polars as pl

    if isinstance(values, Column):
        return values
    cells, categories = plain_cells(values, where)
    found = _of_series(cells) if isinstance(cells, pl.Series) else _of_cells(cells)
    return attrs.evolve(found, categories=True) if categories else found


def plain_cells(values: Any, where: str) -> tuple[pl.Series | Sequence[Any], bool]:
    """Return a column's cells, as a series of one type or as Python objects, and whether they are categories.

    Raises
    ------
    InputError
        If `values` is no column. The message begins with `where`.
    """
    import polars as pl

    if isinstance(values, pl.Series):
        return (values.to_list(), False) if values.dtype == pl.Object else (values, False)
    import narwhals as nw

    values = nw.from_native(values, series_only=True, pass_through=True)
    if not isinstance(values, nw.Series | np.ndarray | list | tuple):
        raise InputError(f"{where}: a column must be a series, array or list, not {type(values).__name__}")
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InputError(f"{where}: a column must have one dimension")
    if isinstance(values, list | tuple):
        return values, False
    # A conversion would choose one type for all Python objects of a column. Such a column is of kind "O". Columns of
    # texts in pandas are of kind "O" too, but they also have the attribute `storage`, and hold texts only.
    native = values if isinstance(values, np.ndarray) else values.to_native()
    dtype = getattr(native, "dtype", None)
    has_objects = getattr(dtype, "kind", "") == "O" and getattr(dtype, "storage", None) is None
    if not has_objects:
        try:
            series = values.to_polars() if isinstance(values, nw.Series) else pl.Series(values)
            return (list(values), False) if series.dtype == pl.Object else (series, False)
        except (Exception, pl.exceptions.PanicException):  # the error may quote a cell; the cells are read one by one
            pass
    if not isinstance(values, nw.Series):
        return list(values), False
    return values.to_list(), values.dtype in (nw.Categorical, nw.Enum)


def _of_series(series: pl.Series) -> Column:
    import polars as pl

    dtype = series.dtype
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return attrs.evolve(_of_texts(series.cast(pl.String)), categories=True)
    if dtype == pl.String:
        return _of_texts(series)
    # A decimal becomes its digits. These are rounded to a float once, as the digits in a CSV file are.
    if isinstance(dtype, pl.Decimal):
        return Column(series.cast(pl.String))
    if dtype.is_numeric() or dtype in (pl.Boolean, pl.Null):
        return Column(series)
    return Column(pl.Series([None], dtype=pl.Null).new_from_index(0, len(series)), series.is_not_null().to_numpy())


def _of_texts(series: pl.Series) -> Column:
    """Return a column of texts. Texts longer than any label are marked as foreign before anything copies them."""
    sizes = series.str.len_bytes()
    if (sizes.max() or 0) <= MOST_CELL_BYTES:  # type: ignore[operator]
        return Column(series)
    long = (sizes > MOST_CELL_BYTES).fill_null(False)
    return Column(series.set(long, None), long.to_numpy())


def _of_cells(cells: Sequence[Any]) -> Column:
    """Return a column of Python objects, in their common type if there is one, else as texts."""
    import polars as pl

    kinds = set(map(type, cells)) - {type(None)}
    plain = {str: pl.String, bool: pl.Boolean, float: pl.Float64}
    if len(kinds) == 1 and (kind := kinds.pop()) in plain:
        try:
            return _of_series(pl.Series(cells, dtype=plain[kind]))
        except (Exception, pl.exceptions.PanicException):  # some text cannot be encoded in UTF-8, and is foreign below
            pass
    foreign = np.zeros(len(cells), dtype=np.bool_)
    texts = [_spell(cell) for cell in cells]
    for row, text in enumerate(texts):
        if text is _FOREIGN:
            foreign[row], texts[row] = True, None
    return Column(pl.Series(texts, dtype=pl.String), foreign if bool(foreign.any()) else None)


_FOREIGN: Any = object()


def _spell(cell: Any) -> Any:
    """Return the text of one Python object, None if it is missing, or _FOREIGN."""
    if isinstance(cell, str):
        try:
            if len(cell.encode()) > MOST_CELL_BYTES:
                return _FOREIGN
        except UnicodeEncodeError:
            return _FOREIGN
        # A member of an enumeration of texts is a text as well. This returns its value and not its name.
        return str.__str__(cell)
    if is_missing(cell):
        return None
    if isinstance(cell, bool | np.bool_):
        return "true" if cell else "false"
    if isinstance(cell, _NUMBERS) and not isinstance(cell, np.timedelta64):  # a time delta is one of numpy's integers
        if isinstance(cell, Decimal) and cell.is_nan():
            return None
        try:
            number = float(cell)
        except OverflowError:
            number = math.inf if cell > 0 else -math.inf
        return None if math.isnan(number) else repr(number)
    return _FOREIGN


def is_missing(cell: Any) -> bool:
    """Tell whether a Python object stands for a missing value. NaN counts as a number here."""
    return cell is None or type(cell).__name__ in _MISSING_KINDS


def is_textual(series: pl.Series) -> bool:
    """Tell whether a series is of type String."""
    import polars as pl

    return bool(series.dtype == pl.String)


def as_numbers(series: pl.Series) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return a series as floats, with true as 1 and false as 0, and a mask of the texts that are no numbers.

    Missing values and the texts in the mask are NaN.
    """
    import polars as pl

    if not is_textual(series):
        floats = series.cast(pl.Float64).fill_null(math.nan).to_numpy()
        return floats, np.zeros(len(floats), dtype=np.bool_)
    parsed = series.cast(pl.Float64, strict=False)
    if parsed.null_count() == series.null_count():
        return parsed.fill_null(math.nan).to_numpy(), np.zeros(len(series), dtype=np.bool_)
    # Cells are stripped only here, since that takes time. Few columns of numbers have spaces, or true and false.
    text = pl.col("text").str.strip_chars()
    truth = pl.lit(None, dtype=pl.Float64)
    for word, value in TRUTHS.items():
        truth = pl.when(text.str.to_lowercase() == word).then(float(value)).otherwise(truth)
    number = text.cast(pl.Float64, strict=False).fill_null(truth)
    both = series.alias("text").to_frame().select_seq(text, number=number)  # one step, since a step has a fixed cost
    parsed, texts = both["number"], both["text"]
    strange = parsed.is_null() & (texts != "").fill_null(False)
    return parsed.fill_null(math.nan).to_numpy(), strange.to_numpy()
