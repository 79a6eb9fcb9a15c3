"""Turning a private column into integer codes on the schema's public grid.

This module sees private cells, so no error here shows one, counts some, or keeps another library's error that
might.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, Boolean, Categorical, Numeric
from dpframework.facts.choices import Choice
from dpframework.facts.errors import InputError
from dpframework.facts.typechecks import typechecked

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")

_BOOLEAN_TEXTS = {
    **dict.fromkeys(("false", "no", "f", "0"), 0),
    **dict.fromkeys(("true", "yes", "t", "1"), 1),
}
FEW_CUTS = 64  # up to here one comparison a cut is faster than a search a number
_SMALL = 1 << 12  # whole numbers below this are looked up in an array
_WHOLE_FLOAT = re.compile(r"(-?\d+)\.0+")
# Marks in an array of codes that are not final yet; no code is negative.
_MISSING, _OUTSIDE = -1, -2


class OutOfDomain(Choice, what="out_of_domain"):
    """What to do with a value that the schema's domain does not hold.

    `ERROR` refuses the column; `CLAMP` moves a number to the nearest bound; `MISSING` makes the value
    missing, where the attribute allows that.
    """

    ERROR = "error"
    CLAMP = "clamp"
    MISSING = "missing"


@attrs.frozen(eq=False, repr=False)
class EncodedColumn:
    """One private column as codes.

    Attributes
    ----------
    codes
        uint8, uint16 or uint32, whichever is the smallest that fits the attribute, shape (rows,), each in
        [0, attribute.size).
    values
        For a numeric attribute the raw values, float64, shape (rows,), within its bounds, NaN where missing;
        None for the other kinds.
    """

    codes: NDArray[np.unsignedinteger]
    values: NDArray[np.float64] | None

    def __repr__(self) -> str:
        """Show no value and no count."""
        return "EncodedColumn(rows are private)"


def code_dtype(size: int) -> np.dtype[np.unsignedinteger]:
    """Return the smallest unsigned type that holds the codes 0 to `size` - 1.

    Examples
    --------
    >>> code_dtype(256), code_dtype(257)
    (dtype('uint8'), dtype('uint16'))
    """
    return np.dtype(np.min_scalar_type(max(size - 1, 0)))


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


@typechecked
def encode_column(
    attribute: Attribute,
    values: Any,
    *,
    out_of_domain: OutOfDomain | str = OutOfDomain.ERROR,
    source: str = "table",
) -> EncodedColumn:
    """Encode one column on an attribute's public grid.

    Null, NaN and empty or blank text are missing. Space around a text is ignored unless the schema's value
    has it too. Booleans may be stored as booleans, 0 and 1, or the texts true/false, yes/no, t/f, 1/0 in any
    case. A categorical value is compared as text, and the whole numbers 3 and 3.0 are the text "3". Numbers
    may be stored as texts. An infinite number is outside of every domain.

    Parameters
    ----------
    attribute
        What the column is declared to be.
    values
        One column, shape (rows,): a series of polars, pandas or pyarrow through narwhals, a polars series, a
        numpy array, or a list.
    out_of_domain
        What to do with a value outside the domain.
    source
        What errors call the table; usually the file's name.

    Raises
    ------
    InputError
        If the column's type does not fit, a value is outside the domain and the policy does not cover it, or
        a value is missing where the schema allows none. The sentence shows no value.

    Examples
    --------
    >>> column = encode_column(Numeric("age", 17, 90, cuts=[25, 65]), [17, 25, 64.5, 90])
    >>> column.codes
    array([0, 1, 1, 2], dtype=uint8)
    >>> encode_column(Boolean("smokes", missing=True), ["Yes", "no", None]).codes
    array([1, 0, 2], dtype=uint8)
    """
    policy = OutOfDomain.parse(out_of_domain)
    where = f"{source}: attribute '{attribute.name}'"
    series = as_series(values, where)
    if not is_plain(series):
        raise InputError(
            f"{where} is declared {attribute.kind} but its column holds values of type "
            f"{_type_name(series)}; accepted are numbers, texts and booleans"
        )
    raw: NDArray[np.float64] | None = None
    match attribute:
        case Numeric():
            codes, raw = _encode_numeric(attribute, series, policy, where)
        case Boolean():
            codes = _encode_distinct(series, lambda text: _BOOLEAN_TEXTS.get(text.lower()))
            _refuse_outside(attribute, codes, policy, where, "neither true nor false")
        case Categorical():
            codes = _encode_distinct(series, {value: k for k, value in enumerate(attribute.values)}.get)
            _refuse_outside(attribute, codes, policy, where, "not in its public list")
        case _:
            raise InputError(f"{where} is of the unknown kind '{attribute.kind}' and cannot be encoded")
    gone = codes < 0
    if bool(gone.any()):
        if attribute.missing_code is None:
            raise InputError(
                f"{where} has missing values, which the schema does not allow; "
                "set missing = true for it, or fill them in"
            )
        codes = np.where(gone, attribute.missing_code, codes)
    return EncodedColumn(codes.astype(code_dtype(attribute.size)), raw)


def as_series(values: Any, where: str) -> pl.Series:
    """Return a column as a polars series, whatever holds it; NaN and null both mean missing to the callers.

    Parameters
    ----------
    values
        See `encode_column`.
    where
        How the error's sentence begins.

    Raises
    ------
    InputError
        If it is no column of values that a series can hold.
    """
    import narwhals as nw
    import polars as pl

    if isinstance(values, pl.Series):
        return values
    values = nw.from_native(values, series_only=True, pass_through=True)
    if not isinstance(values, nw.Series | np.ndarray | list | tuple):
        raise InputError(f"{where}: a column must be a series, array or list, not {type(values).__name__}")
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InputError(f"{where}: a column must have one dimension")
    try:
        series = values.to_polars() if isinstance(values, nw.Series) else pl.Series(values)
        if series.dtype != pl.Object:
            return series
    except Exception:  # the error may quote a cell; mixed columns come next
        pass
    cells = values.to_list() if isinstance(values, nw.Series) else list(values)
    missing = values.is_null().to_list() if isinstance(values, nw.Series) else [c is None for c in cells]
    return _mixed_series(cells, missing, where)


def _mixed_series(cells: Sequence[Any], missing: Sequence[bool], where: str) -> pl.Series:
    """Return a column of Python objects as floats if all are numbers, else as texts."""
    import polars as pl

    kept = [None if gone else cell for cell, gone in zip(cells, missing, strict=True)]
    kinds = {type(cell) for cell in kept}
    accepted = (str, bool, int, float, Decimal, np.number, np.bool_, type(None))
    if not all(issubclass(kind, accepted) for kind in kinds):
        raise InputError(f"{where} holds objects that are neither numbers, texts nor booleans")
    if not any(issubclass(kind, str) for kind in kinds):
        return quietly(
            lambda: pl.Series([None if cell is None else float(cell) for cell in kept], dtype=pl.Float64),
            f"{where} holds objects that are neither numbers, texts nor booleans",
        )

    def text(cell: Any) -> str | None:
        if cell is None or (isinstance(cell, float) and math.isnan(cell)):
            return None
        return str(cell).lower() if isinstance(cell, bool | np.bool_) else str(cell)

    return pl.Series([text(cell) for cell in kept], dtype=pl.String)


def is_plain(series: pl.Series) -> bool:
    """Tell whether a series holds numbers, texts, booleans or nothing but missing values."""
    import polars as pl

    dtype = series.dtype
    return dtype.is_numeric() or dtype in (pl.Boolean, pl.Null) or is_textual(series)


def is_textual(series: pl.Series) -> bool:
    """Tell whether a series holds texts, dictionary-encoded or not."""
    import polars as pl

    return series.dtype in (pl.String, pl.Categorical, pl.Enum)


def _type_name(series: pl.Series) -> str:
    # The bare name: a full type may list categories or field names.
    return str(series.dtype.base_type().__name__).lower()


def as_numbers(series: pl.Series) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return a series of numbers or texts as floats, and the mask of texts that are no numbers.

    Missing values and the texts in the mask are NaN.
    """
    import polars as pl

    if not is_textual(series):
        floats = series.cast(pl.Float64).fill_null(math.nan).to_numpy()
        return floats, np.zeros(len(floats), dtype=np.bool_)
    texts = series.cast(pl.String)
    parsed = texts.cast(pl.Float64, strict=False)
    if parsed.null_count() > texts.null_count():
        # Space around a number is rare, and stripping every cell is not free.
        texts = texts.str.strip_chars()
        parsed = texts.cast(pl.Float64, strict=False)
    strange = parsed.is_null() & texts.is_not_null() & (texts != "").fill_null(False)
    return parsed.fill_null(math.nan).to_numpy(), strange.to_numpy()


def _encode_numeric(
    attribute: Numeric, series: pl.Series, policy: OutOfDomain, where: str
) -> tuple[NDArray[np.integer], NDArray[np.float64]]:
    import polars as pl

    if series.dtype == pl.Boolean:
        raise InputError(f"{where} is declared numeric but its column holds booleans; declare it boolean")
    numbers, strange = as_numbers(series)
    if bool(strange.any()):
        _refuse(attribute, policy, where, "holds text that is not a number")
    below, above = numbers < attribute.lower, numbers > attribute.upper
    outside = below | above
    if policy is OutOfDomain.CLAMP:
        numbers = np.clip(numbers, attribute.lower, attribute.upper)
    elif bool(outside.any()):
        bounds = f"[{attribute.lower:g}, {attribute.upper:g}]"
        found = f"holds values outside its public range {bounds}"
        _refuse(attribute, policy, where, found, clampable=True)
        numbers = np.where(outside, math.nan, numbers)
    codes = _bins(numbers, attribute.interior_cuts)
    codes[np.isnan(numbers)] = _MISSING
    return codes, np.array(numbers, dtype=np.float64)


def _bins(numbers: NDArray[np.float64], cuts: Sequence[float]) -> NDArray[np.integer]:
    """Return how many cuts are at or below each number; anything where it is NaN."""
    if len(cuts) > FEW_CUTS:
        return np.asarray(np.searchsorted(np.asarray(cuts), numbers, side="right"))
    codes = np.zeros(len(numbers), dtype=np.int16)
    for cut in cuts:
        codes += numbers >= cut
    return codes


def _encode_distinct(series: pl.Series, lookup: Callable[[str], int | None]) -> NDArray[np.integer]:
    """Return each cell's code, or a mark for missing or outside, by looking up each distinct value once."""
    import polars as pl

    small = _small_whole_numbers(series)
    if is_textual(series):
        series = series.cast(pl.String)
    elif series.dtype.is_float() and small is None:
        series = series.fill_nan(None)
    if series.dtype == pl.Null:
        return np.full(len(series), _MISSING, dtype=np.int64)
    distinct = series.unique().drop_nulls() if small is None else pl.Series(np.flatnonzero(np.bincount(small)))

    def code(text: str) -> int:
        stripped = text.strip()
        if not stripped:
            return _MISSING
        whole = _WHOLE_FLOAT.fullmatch(stripped)
        # pandas writes booleans as True and False, polars as true and false.
        capital = stripped.capitalize() if series.dtype == pl.Boolean else None
        for form in (text, stripped, whole and whole.group(1), capital):
            if form is not None and (found := lookup(form)) is not None:
                return found
        return _OUTSIDE

    codes = [code(text) for text in distinct.cast(pl.String).to_list()]
    if small is not None:
        code_of = np.full(_SMALL, _MISSING, dtype=np.int32)
        code_of[distinct.to_numpy()] = codes
        return np.asarray(code_of[small])
    coded = series.replace_strict(distinct, pl.Series(codes, dtype=pl.Int64), default=_MISSING)
    return np.asarray(coded.fill_null(_MISSING).to_numpy())


def _small_whole_numbers(series: pl.Series) -> NDArray[np.int16] | None:
    """Return a series of whole numbers in [0, _SMALL) without missing ones, else None.

    Such columns are common (codes) and need no hashing.
    """
    if not series.dtype.is_numeric() or series.null_count():
        return None
    numbers = series.to_numpy()
    if not len(numbers) or not (numbers.min() >= 0 and numbers.max() < _SMALL):
        return None
    whole = numbers.astype(np.int16)
    return whole if bool((whole == numbers).all()) else None


def _refuse_outside(
    attribute: Attribute, codes: NDArray[np.integer], policy: OutOfDomain, where: str, outside: str
) -> None:
    if bool((codes == _OUTSIDE).any()):
        _refuse(attribute, policy, where, f"holds values that are {outside}")


def _refuse(attribute: Attribute, policy: OutOfDomain, where: str, found: str, clampable: bool = False) -> None:
    """Raise with what was found and what can be done, unless the policy makes such values missing."""
    if policy is OutOfDomain.MISSING:
        if attribute.missing:
            return
        raise InputError(f"{where} {found}; out_of_domain='missing' needs missing = true in the schema")
    choices = ["'clamp'"] if clampable else []
    choices += ["'missing'"] if attribute.missing else []
    remedy = f"or choose out_of_domain={' or '.join(choices)}"
    if not choices:
        remedy = "or set missing = true for it and choose out_of_domain='missing'"
    clamped = ", which cannot be clamped" if policy is OutOfDomain.CLAMP else ""
    raise InputError(f"{where} {found}{clamped}; correct the schema, {remedy}")
