"""Columns of any container as series of plain cells, so that what is read of a cell follows from the cell alone.

A container may hold its cells in an array of one type, or as Python objects. Objects are spelled one by one, since a
library that converts them together chooses one type for all: one row more may change it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.canonical import TRUTHS
from dpframework.facts.errors import InputError

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")

_NUMBERS = (int, float, Decimal, np.integer, np.floating)
_MISSING_KINDS = {"NAType", "NaTType"}  # of pandas, which need not be installed


def quietly(action: Callable[[], T], sentence: str) -> T:
    """Run `action`; if it fails, raise an InputError with this sentence alone.

    Readers' errors quote cells. Raising outside of the handler leaves no context that could show them.
    """
    import polars as pl

    try:
        return action()
    except MemoryError:
        raise
    except (Exception, pl.exceptions.PanicException):
        pass
    raise InputError(sentence)


@attrs.frozen(eq=False, repr=False)
class Column:
    """One private column.

    Attributes
    ----------
    series
        Numbers, texts, booleans, or nothing but nulls; null where a cell is missing or foreign.
    foreign
        Which cells hold a value that no schema can hold, such as a date or a list; None if none does. Shape (rows,).
    categories
        Whether its container calls its values categories, even where they read as numbers: for inference only.
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
    """Return a column, whatever holds it.

    Parameters
    ----------
    values
        A series of polars, pandas or pyarrow (also through narwhals), a numpy array, a list, or a `Column`.
    where
        How the error's sentence begins.

    Raises
    ------
    InputError
        If it is none of these.
    """
    import narwhals as nw
    import polars as pl

    if isinstance(values, Column):
        return values
    if isinstance(values, pl.Series):
        return _of_series(values)
    values = nw.from_native(values, series_only=True, pass_through=True)
    if not isinstance(values, nw.Series | np.ndarray | list | tuple):
        raise InputError(f"{where}: a column must be a series, array or list, not {type(values).__name__}")
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InputError(f"{where}: a column must have one dimension")
    if isinstance(values, list | tuple):
        return _of_cells(values)
    if not _has_objects(values):
        try:
            return _of_series(values.to_polars() if isinstance(values, nw.Series) else pl.Series(values))
        except (Exception, pl.exceptions.PanicException):  # it may quote a cell; each cell comes next
            pass
    if not isinstance(values, nw.Series):
        return _of_cells(list(values))
    return attrs.evolve(_of_cells(values.to_list()), categories=values.dtype in (nw.Categorical, nw.Enum))


def _has_objects(values: Any) -> bool:
    """Tell whether a series or array holds Python objects, of which a conversion would choose one type for all."""
    native = values if isinstance(values, np.ndarray) else values.to_native()
    dtype = getattr(native, "dtype", None)
    kind = getattr(dtype, "kind", "")
    return kind == "O" and getattr(dtype, "storage", None) is None  # pandas has texts of a type of their own


def _of_series(series: pl.Series) -> Column:
    import polars as pl

    dtype = series.dtype
    if dtype == pl.Object:
        return _of_cells(series.to_list())
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return Column(series.cast(pl.String), categories=True)
    if isinstance(dtype, pl.Decimal):  # through its digits, which are rounded once, as those of a CSV file are
        return Column(series.cast(pl.String))
    if dtype.is_numeric() or dtype in (pl.String, pl.Boolean, pl.Null):
        return Column(series)
    return Column(pl.Series([None], dtype=pl.Null).new_from_index(0, len(series)), series.is_not_null().to_numpy())


def _of_cells(cells: Sequence[Any]) -> Column:
    """Return a column of Python objects: of their one type, or of texts that spell each."""
    import polars as pl

    kinds = set(map(type, cells)) - {type(None)}
    plain = {str: pl.String, bool: pl.Boolean, float: pl.Float64}
    if len(kinds) == 1 and (kind := kinds.pop()) in plain:
        try:
            return Column(pl.Series(cells, dtype=plain[kind]))
        except (Exception, pl.exceptions.PanicException):  # a text that UTF-8 cannot write
            pass
    foreign = np.zeros(len(cells), dtype=np.bool_)
    texts = [_spelled(cell) for cell in cells]
    for row, text in enumerate(texts):
        if text is _FOREIGN:
            foreign[row], texts[row] = True, None
    return Column(pl.Series(texts, dtype=pl.String), foreign if bool(foreign.any()) else None)


_FOREIGN: Any = object()


def _spelled(cell: Any) -> Any:
    """Return the text of one Python object; None if it is missing, or _FOREIGN."""
    if isinstance(cell, str):
        try:
            cell.encode()
        except UnicodeEncodeError:
            return _FOREIGN
        return str(cell)
    if cell is None or type(cell).__name__ in _MISSING_KINDS:
        return None
    if isinstance(cell, bool | np.bool_):
        return "true" if cell else "false"
    if isinstance(cell, _NUMBERS):
        number = _as_float(cell)
        return None if math.isnan(number) else repr(number)
    return _FOREIGN


def _as_float(number: Any) -> float:
    if isinstance(number, Decimal) and number.is_nan():
        return math.nan
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def is_textual(series: pl.Series) -> bool:
    """Tell whether a series holds texts."""
    import polars as pl

    return bool(series.dtype == pl.String)


def as_numbers(series: pl.Series) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return a series as floats, true as 1 and false as 0, and the mask of texts that are no numbers.

    Missing values and the texts in the mask are NaN.
    """
    import polars as pl

    if not is_textual(series):
        floats = series.cast(pl.Float64).fill_null(math.nan).to_numpy()
        return floats, np.zeros(len(floats), dtype=np.bool_)
    texts = series
    parsed = texts.cast(pl.Float64, strict=False)
    if parsed.null_count() != texts.null_count():
        # Space around a number, and truths among numbers, are rare, and stripping every cell is not free.
        texts = texts.str.strip_chars()
        parsed = texts.cast(pl.Float64, strict=False)
    if parsed.null_count() != texts.null_count():
        truths = texts.str.to_lowercase().replace_strict(TRUTHS, default=None, return_dtype=pl.Float64)
        parsed = parsed.fill_null(truths)
    strange = parsed.is_null() & texts.is_not_null() & (texts != "").fill_null(False)
    return parsed.fill_null(math.nan).to_numpy(), strange.to_numpy()
