"""Ids of rows and of people. An id depends on its cell alone, in any container (such as a file or a dataframe).

Ids say whom a claim protects. So two different ids must never become equal, and a person must have the same id in every
container. Each cell therefore becomes a text by these rules:

- A number becomes its exact decimal digits, whatever its type: 7, 7.0, "7" and Decimal("7.00") are one id. A float that
  is not whole becomes the shortest decimal number that reads back as the same float.
- A text that is written as a number becomes that number. Any other text is kept, but stripped.
- True and false become the texts "true" and "false".
- Bytes become a mark and their hexadecimal digits, so that they equal no text. But 16 bytes are read as a UUID.
- A UUID becomes its usual text, in lower case with hyphens.
- Null, NaN, a blank text and an empty sequence of bytes are missing.

Nothing else can be an id. A column of another type, such as dates, is refused in every container. A type is public and
the same for all rows, so it may stop a run. In a column of Python objects such a cell counts as missing, since one
person's cell must not stop a run.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, final
from uuid import UUID

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.canonical_cells import EXACT, PLAIN, id_of_decimal, id_of_float, id_of_whole, of_id
from dpframework.facts.errors import DoesNotFit, InputError
from dpframework.facts.hidden_fields import hide_fields
from dpframework.tables.plain_cell_series import is_missing, plain_cells

if TYPE_CHECKING:
    import polars as pl

    from dpframework.tables.sources import Source

SPACE = (  # all characters that `str.strip` removes
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
MARK = "\0"  # the first character of ids of bytes, and of texts that cannot be encoded in UTF-8
UUID_BYTES = 16
_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"
_NUMBER = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
_FRACTION = r"^-?(0|[1-9][0-9]*)\.[0-9]+$"
_UNFIT: Any = object()
ACCEPTED = "ids are numbers, texts, booleans, bytes or UUIDs"
_CELL_TYPES = (bool, np.bool_, int, np.integer, float, np.floating, str, bytes, Decimal, UUID, np.object_)
_ARROW_TYPES = [
    "null",
    "boolean",
    "integer",
    "floating",
    "decimal",
    "string",
    "large_string",
    "string_view",
    "binary",
    "large_binary",
    "fixed_size_binary",
    "binary_view",
]


@final
@attrs.frozen(eq=False, repr=False, field_transformer=hide_fields)
class Ids:
    """The ids of some rows.

    Attributes
    ----------
    series
        The id of each row as a text, null where there is none. Rows with equal ids belong to the same person.
    unfit
        Whether each row's cell holds a value that cannot be an id, shape (rows,). Such a row has no id.
    wanted
        Whether each row needs an id, shape (rows,). None if all do.
    """

    series: pl.Series
    unfit: NDArray[np.bool_]
    wanted: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        """Return the number of rows (private)."""
        return len(self.series)

    def __repr__(self) -> str:
        """Show no id and no count."""
        return "Ids(rows are private)"

    def only(self, rows: NDArray[np.bool_]) -> Ids:
        """Return the ids of some rows. Other rows get no id, and `require_all` accepts this."""
        import polars as pl

        return Ids(self.series.set(pl.Series(~rows), None), self.unfit & rows, rows)

    def require_all(self, what: str) -> None:
        """Refuse rows without an id. `what` names the ids and begins the message.

        Raises
        ------
        DoesNotFit
            If there is such a row.
        """
        if self.any_unfit:
            raise DoesNotFit(unfit_ids(what))
        if self.any_missing:
            raise DoesNotFit(missing_ids(what))

    @property
    def any_unfit(self) -> bool:
        """Whether a cell holds a value that cannot be an id (private)."""
        return bool(self.unfit.any())

    @property
    def any_missing(self) -> bool:
        """Whether a row that needs an id has none (private)."""
        missing = self.series.is_null().to_numpy()
        return bool((missing if self.wanted is None else missing & self.wanted).any())


def exact_ids(series: pl.Series) -> Ids:
    """Return `Ids` of texts that are ids already."""
    return Ids(series, np.zeros(len(series), dtype=np.bool_))


def unfit_ids(what: str) -> str:
    """Return the sentence about cells that cannot be ids. `what` names the ids."""
    return f"{what} holds values that cannot be ids, such as dates or lists; {ACCEPTED}"


def missing_ids(what: str) -> str:
    """Return the sentence about rows without an id. `what` names the ids."""
    return f"{what} has missing values; each row needs an id"


def ids_of(values: Any, where: str) -> Ids:
    """Return the ids in a column.

    Parameters
    ----------
    values
        One column, in any form that `encode_column` takes, or its `Ids`.
    where
        The words that begin each error's message. They name the column.

    Raises
    ------
    InputError
        If `values` is no column, or its type cannot hold ids. The sentence names the type and shows no cell.
    """
    import polars as pl

    if isinstance(values, Ids):
        return values
    cells, _ = plain_cells(values, where)
    series: pl.Series | None = None
    if isinstance(cells, pl.Series):
        series = cells
    else:
        require_type_of_ids(values, where)
        # If a series can hold all objects exactly, reading the series is much faster than reading the objects.
        kinds = set(map(type, cells)) - {type(None)}
        exact = {str: pl.String, int: pl.Int64, float: pl.Float64, bytes: pl.Binary, bool: pl.Boolean}
        if len(kinds) == 1 and (kind := kinds.pop()) in exact:
            # This fails for a number of too many bits, or a text that is not UTF-8. Cells are then read one by one.
            with contextlib.suppress(Exception, pl.exceptions.PanicException):
                series = pl.Series(cells, dtype=exact[kind])
    if series is not None:
        return Ids(_of_series(series, where), np.zeros(len(series), dtype=np.bool_))
    found = [_of_object(cell) for cell in cells]
    unfit = np.array([one is _UNFIT for one in found], dtype=np.bool_)
    return Ids(pl.Series([None if one is _UNFIT else one for one in found], dtype=pl.String), unfit)


def ids_in(source: Source, name: str) -> Ids:
    """Return the ids of all rows of a source, block by block, since blocks may hold the column in different types.

    Raises
    ------
    InputError
        Where `ids_of` raises it, or if the source cannot be read.
    """
    import polars as pl

    where = f"{source.name}: column '{name}'"
    parts = [ids_of(block[name], where) for block in source.blocks([name])]
    return Ids(pl.concat([part.series for part in parts]), np.concatenate([part.unfit for part in parts]))


def _of_series(series: pl.Series, where: str) -> pl.Series:
    """Return the ids of cells of one type. Each id is the same as `_of_object` returns for the cell."""
    import polars as pl

    dtype = series.dtype
    if dtype.is_integer() or dtype == pl.Boolean:
        return series.cast(pl.String)
    if isinstance(dtype, pl.Decimal | pl.Categorical | pl.Enum) or dtype in (pl.String, pl.Null):
        return _of_texts(series.cast(pl.String))
    if dtype.is_float():
        series = series.cast(pl.Float64)
        numbers = series.fill_null(math.nan).to_numpy()
        # Most floats are small whole numbers, and these are written all at once. `whole` equals `numbers` only there.
        # For every other float it holds some other number.
        small = np.abs(numbers) < EXACT
        whole = np.where(small, numbers, 0.5)
        whole[small] = np.trunc(whole[small])
        plain = whole == numbers
        texts = pl.Series(np.where(plain, whole, 0).astype(np.int64)).cast(pl.String)
        texts = texts.set(pl.Series(~plain), None)
        others = pl.Series(~plain & ~np.isnan(numbers))
        return _replace(texts, series, others, id_of_float) if bool(others.any()) else texts
    if dtype == pl.Binary:
        size = series.bin.size()
        texts = MARK + "b" + series.bin.encode("hex")
        texts = texts.set((size == 0).fill_null(False), None)
        sixteen = (size == UUID_BYTES).fill_null(False)
        return _replace(texts, series, sixteen, lambda cell: str(UUID(bytes=cell))) if bool(sixteen.any()) else texts
    raise InputError(f"{where} has the type {dtype.base_type().__name__}; {ACCEPTED}")


def whole_numbers(ids: pl.Series) -> pl.Series | None:
    """Return ids as 64-bit numbers if possible, since sorting and joining these takes a third of the time.

    Each text must be null, or a whole number of at most 18 digits without a plus sign or leading zeros. Otherwise the
    result is None.
    """
    import polars as pl

    return ids.cast(pl.Int64) if ids.str.contains(_WHOLE).all() else None


def _of_texts(series: pl.Series) -> pl.Series:
    if series.str.contains(_WHOLE).all():
        return series
    series = series.str.strip_chars(SPACE)
    series = series.set(series == "", None)
    # A number in plain digits is its own id, so most texts are done. The others are converted one by one.
    short = series.str.len_bytes() <= PLAIN
    fractions = (short & series.str.contains(_FRACTION)).fill_null(False)
    if bool(fractions.any()):
        series = series.str.strip_chars_end("0").str.strip_chars_end(".").zip_with(fractions, series)
    odd = (series.str.contains(r"[eE]") | ~short) & series.str.contains(_NUMBER)
    odd = (odd | (series == "-0") | series.str.starts_with(MARK)).fill_null(False)
    return _replace(series, series, odd, _of_text) if bool(odd.any()) else series


def _replace(texts: pl.Series, cells: pl.Series, which: pl.Series, id_of: Callable[[Any], str]) -> pl.Series:
    """Return texts, with some of them replaced by the ids of their cells. Each distinct cell is converted once."""
    import polars as pl

    some = cells.filter(which).to_list()
    ids = {cell: id_of(cell) for cell in set(some)}
    return texts.scatter(which.arg_true(), pl.Series([ids[cell] for cell in some], dtype=pl.String))


def _of_object(cell: Any) -> Any:
    """Return the id of one Python object, None if it is missing, or _UNFIT."""
    if isinstance(cell, str):
        return _of_text(str.__str__(cell)) or None
    if is_missing(cell):
        return None
    if isinstance(cell, bool | np.bool_):
        return "true" if cell else "false"
    if isinstance(cell, np.timedelta64):  # a subclass of numpy's integers
        return _UNFIT
    if isinstance(cell, int | np.integer):
        return id_of_whole(int(cell))
    if isinstance(cell, float | np.floating):
        return None if np.isnan(cell) else _of_float(cell)
    if isinstance(cell, Decimal):
        return None if cell.is_nan() else id_of_decimal(cell)
    if isinstance(cell, UUID):
        return str(cell)
    if isinstance(cell, bytes | bytearray | memoryview):
        held = bytes(cell)
        return str(UUID(bytes=held)) if len(held) == UUID_BYTES else f"{MARK}b{held.hex()}" if held else None
    return _UNFIT


def _of_text(text: str) -> str:
    """Return the id of a text. A text that is not UTF-8, or begins with the mark, becomes the mark and its bytes."""
    stripped = of_id(text)
    try:
        stripped.encode()
    except UnicodeEncodeError:
        pass
    else:
        if not stripped.startswith(MARK):
            return stripped
    return f"{MARK}t{stripped.encode('utf-8', 'surrogatepass').hex()}"


def _of_float(number: Any) -> str:
    """Return the id of a float of any precision."""
    with np.errstate(all="ignore"):
        nearest = float(number)
    if nearest == number:
        return id_of_float(nearest)
    if number == np.trunc(number):  # whole, with more bits than a float has
        return id_of_whole(int(number))
    top, bottom = number.as_integer_ratio()
    power = bottom.bit_length() - 1  # top / 2^power = top 5^power / 10^power
    sign, digits, _ = Decimal(top * 5**power).as_tuple()
    return id_of_decimal(Decimal((sign, digits, -power)))


def require_type_of_ids(values: Any, where: str) -> None:
    """Refuse a series or array whose type cannot hold ids.

    A list and a polars series of Python objects pass, since their type does not say what their cells are.

    Parameters
    ----------
    values
        A series of polars, pandas or pyarrow (also through narwhals), a numpy array, or a list.
    where
        The words that begin each error's message. They name the column.

    Raises
    ------
    InputError
        If the type cannot hold ids. The sentence names the type.
    """
    import narwhals as nw
    import polars as pl

    native = nw.to_native(values, pass_through=True)
    if isinstance(native, list | tuple | pl.Series):  # a polars series gets here only if it holds objects
        return
    kind = _innermost(native.dtype if hasattr(native, "dtype") else native.type)
    if not _holds_ids(kind):
        raise InputError(f"{where} has the type {kind}; {ACCEPTED}")


def _innermost(kind: Any) -> Any:
    """Return the type of the values behind a pandas or Arrow type that encodes them, such as categories."""
    while True:
        match type(kind).__name__:  # classes of pandas, then of Arrow
            case "CategoricalDtype":
                kind = kind.categories.dtype
            case "SparseDtype":
                kind = kind.subtype
            case "ArrowDtype":
                kind = kind.pyarrow_dtype
            case "DictionaryType" | "RunEndEncodedType":
                kind = kind.value_type
            case _:
                return kind


def _holds_ids(kind: Any) -> bool:
    if type(kind).__module__.partition(".")[0] != "pyarrow":
        cell = getattr(kind, "type", None)  # timedelta64 is a subclass of numpy's integers
        return isinstance(cell, type) and issubclass(cell, _CELL_TYPES) and not issubclass(cell, np.timedelta64)
    from pyarrow import types

    if types.is_union(kind):
        return all(_holds_ids(_innermost(kind.field(k).type)) for k in range(kind.num_fields))
    return any(getattr(types, f"is_{name}")(kind) for name in _ARROW_TYPES)
