"""Encode a private column as integer codes of the values and bins that the schema lists, each cell by itself.

This module sees private cells. So no error here shows a cell or a number of cells. Errors of other libraries, which
might show cells, are not passed on.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.argument_type_checks import typechecked
from dpframework.facts.attributes import Attribute, Boolean, Categorical, Numeric
from dpframework.facts.canonical_cells import Form, label_of, numbers_of, of_number, of_text
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import DoesNotFit, InputError
from dpframework.facts.hidden_fields import hide_fields
from dpframework.facts.open_attribute import Open
from dpframework.tables.open_attribute_keys import KEY_CODES, NO_KEY, KeyBook, KeyColumn
from dpframework.tables.plain_cell_series import Column, as_column, as_numbers, is_textual

_TRUTHS: dict[Form, int] = {
    **dict.fromkeys((0.0, "no", "f"), 0),
    **dict.fromkeys((1.0, "yes", "t"), 1),
}
FEW_CUTS = 64  # up to this number of cut points, comparing every number with every cut point is faster than a search
_SMALL = 1 << 12  # columns of whole numbers below this are looked up in an array
# Marks of cells without a code, in an array of codes that are not final yet. Codes are never negative.
MISSING, OUTSIDE = -1, -2


@attrs.frozen(eq=False, repr=False, field_transformer=hide_fields)
class EncodedColumn:
    """One private column as codes.

    Attributes
    ----------
    codes
        The codes, each in [0, attribute.size), shape (rows,). Their type is the smallest of uint8, uint16 and uint32
        that fits the attribute.
    values
        For a numeric attribute the raw values, float64, within its bounds, NaN where missing, shape (rows,). None for
        the other kinds.
    keys
        For an open attribute, whose values the schema does not list, the keys: the texts of the cells. All codes are
        then 0. None for the other kinds.
    """

    codes: NDArray[np.unsignedinteger]
    values: NDArray[np.float64] | None
    keys: KeyColumn | None = None

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
    return np.dtype(np.min_scalar_type(size - 1))


def stored_dtype(attribute: Attribute) -> np.dtype[np.unsignedinteger]:
    """Return the type of an attribute's codes. An open attribute has codes that are all 0, and keys beside them."""
    return code_dtype(1 if isinstance(attribute, Open) else attribute.size)


class Unfit(enum.Enum):
    """The ways in which a cell can lie outside the schema."""

    OUTSIDE = "outside"
    """The cell is not of the attribute's kind, or not in its list."""
    BEYOND = "beyond"
    """The cell is a number beyond the attribute's bounds."""
    MISSING = "missing"
    """The cell is missing, and the schema allows no missing values."""


@attrs.frozen(eq=False, repr=False, field_transformer=hide_fields)
class EncodedCells:
    """The cells of one private column, before a policy (`OutOfDomain`) treats those that do not fit.

    Attributes
    ----------
    codes
        The code of each cell (for a number, its code after clamping), `MISSING` for a missing cell, or `OUTSIDE` for a
        cell outside the domain. Shape (rows,).
    values
        For a numeric attribute, the clamped numbers, NaN where a cell is no number. None for the other kinds.
    beyond
        For a numeric attribute, which numbers lay beyond a bound. None for the other kinds.
    keys
        For an open attribute, the keys of the cells. None for the other kinds.
    """

    codes: NDArray[np.integer]
    values: NDArray[np.float64] | None = None
    beyond: NDArray[Any] | None = None
    keys: KeyColumn | None = None

    def __repr__(self) -> str:
        """Show no value and no count."""
        return "EncodedCells(rows are private)"


@typechecked
def encode_column(
    attribute: Attribute,
    values: Any,
    *,
    out_of_domain: OutOfDomain | str = OutOfDomain.CLAMP,
    source: str = "table",
) -> EncodedColumn:
    """Encode one column as codes of an attribute's public values or bins.

    A cell's code depends on its canonical form alone (see `dpframework.facts.canonical_cells`). Null, NaN and blank
    text are missing. True and false may be stored as booleans, as 1 and 0, or as texts: true/false, yes/no,
    t/f, 1/0 in any case. Numbers may be stored as texts. Dates, lists and other types lie outside every domain. An
    infinite number lies beyond every bound.

    Where the schema allows no missing values, a missing cell counts as the attribute's first value: false, the first
    listed value, or the lower bound. `OutOfDomain.ERROR` refuses it.

    Parameters
    ----------
    attribute
        The attribute that the schema declares for the column.
    values
        One column, shape (rows,): a series of polars, pandas or pyarrow (also through narwhals), a numpy array, or a
        list.
    out_of_domain
        How to treat a value outside the domain.
    source
        The name of the table in errors, usually that of the file.

    Raises
    ------
    InputError
        If `values` is no column.
    DoesNotFit
        If the policy is `OutOfDomain.ERROR`, and a value lies outside the domain, or is missing although the schema
        allows no missing values. The sentence shows no value.

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
    cells = cells_of(attribute, as_column(values, where))
    if policy is OutOfDomain.ERROR:
        require_fit(attribute, unfit(attribute, cells), where)
    return settle(attribute, cells, policy)


def cells_of(attribute: Attribute, column: Column) -> EncodedCells:
    """Return the cells of a column with their codes for an attribute, before a policy treats them."""
    match attribute:
        case Numeric():
            numbers, strange = as_numbers(column.series)
            cells = cells_of_numbers(attribute, numbers)
            if bool(strange.any()):
                cells.codes[strange] = OUTSIDE
        case Boolean():
            cells = EncodedCells(_codes(column, _TRUTHS, any_case=True))
        case Categorical():
            forms = {of_text(value): code for code, value in enumerate(attribute.values)}
            cells = EncodedCells(_codes(column, {form: code for form, code in forms.items() if form is not None}))
        case Open():
            cells = EncodedCells(np.zeros(len(column), dtype=np.int8), keys=_key_column(attribute, column))
        case _:
            raise InputError(f"attribute '{attribute.name}' is of the unknown kind '{attribute.kind}'")
    if column.foreign is not None:
        cells.codes[column.foreign] = OUTSIDE
    return cells


def outside(cells: EncodedCells, policy: OutOfDomain) -> NDArray[np.bool_]:
    """Return which cells have no value of the domain under a policy, shape (rows,). `settle` takes these as missing."""
    gone = cells.codes < 0
    if policy is OutOfDomain.MISSING and cells.beyond is not None:
        gone |= cells.beyond
    return np.asarray(gone)


def settle(attribute: Attribute, cells: EncodedCells, policy: OutOfDomain) -> EncodedColumn:
    """Return codes and values, after a policy has put every cell into the domain."""
    if cells.keys is not None:
        return EncodedColumn(np.zeros(len(cells.codes), stored_dtype(attribute)), None, cells.keys)
    codes, values = cells.codes, cells.values
    gone = outside(cells, policy)
    if bool(gone.any()):
        codes = np.where(gone, 0 if attribute.missing_code is None else attribute.missing_code, codes)
        if isinstance(attribute, Numeric) and values is not None:
            values = np.where(gone, attribute.lower if attribute.missing_code is None else math.nan, values)
    return EncodedColumn(codes.astype(code_dtype(attribute.size)), values)


def unfit(attribute: Attribute, cells: EncodedCells) -> frozenset[Unfit]:
    """Return the ways in which some of the cells lie outside the schema."""
    found = {
        Unfit.OUTSIDE: (cells.codes == OUTSIDE).any(),
        Unfit.BEYOND: cells.beyond is not None and cells.beyond.any(),
        Unfit.MISSING: attribute.missing_code is None and (cells.codes == MISSING).any(),  # never so in open attributes
    }
    return frozenset(way for way, there in found.items() if there)


#: Values outside the domain of an attribute, in words, by the attribute's kind.
VALUES_OUTSIDE = {
    Numeric.kind: "values that are not numbers",
    Boolean.kind: "values that are neither true nor false",
    Categorical.kind: "values that are not in its public list",
    Open.kind: "values that are neither texts nor numbers",
}


def require_fit(attribute: Attribute, found: Collection[Unfit], where: str) -> None:
    """Refuse a column with cells outside the schema. The message begins with `where`.

    Raises
    ------
    DoesNotFit
        If there is such a cell. The sentence names only the first way in the order of `Unfit`, whatever the order of
        the rows.
    """
    remedy = "correct the schema, or choose out_of_domain='clamp' or 'missing'"
    if Unfit.OUTSIDE in found:
        raise DoesNotFit(f"{where} holds {VALUES_OUTSIDE[attribute.kind]}; {remedy}")
    if Unfit.BEYOND in found and isinstance(attribute, Numeric):
        bounds = f"[{attribute.lower:g}, {attribute.upper:g}]"
        raise DoesNotFit(f"{where} holds values outside its public range {bounds}; {remedy}")
    if Unfit.MISSING in found:
        raise DoesNotFit(
            f"{where} has missing values, which the schema does not allow; set missing = true for it, or fill them in"
        )


def cells_of_numbers(attribute: Numeric, numbers: NDArray[np.float64]) -> EncodedCells:
    """Return the cells of a numeric column, given its numbers, NaN where missing, shape (rows,)."""
    beyond = (numbers < attribute.lower) | (numbers > attribute.upper)
    if bool(beyond.any()):
        numbers = np.clip(numbers, attribute.lower, attribute.upper)
    codes = _bins(numbers, attribute.interior_cuts)
    codes[np.isnan(numbers)] = MISSING
    # Adding 0.0 turns -0.0 into 0.0.
    return EncodedCells(codes, np.array(numbers + 0.0, dtype=np.float64), beyond)


def _bins(numbers: NDArray[np.float64], cuts: Sequence[float]) -> NDArray[np.integer]:
    """Return the number of cuts at or below each number. For NaN the result is arbitrary."""
    if len(cuts) > FEW_CUTS:
        grid = np.asarray(cuts, dtype=np.float64)
        found = _bins_of_even(numbers, grid)
        return np.asarray(np.searchsorted(grid, numbers, side="right")) if found is None else found
    codes = np.zeros(len(numbers), dtype=np.int8)
    for cut in cuts:
        codes += (numbers >= cut).view(np.int8)
    return codes


def _bins_of_even(numbers: NDArray[np.float64], cuts: NDArray[np.float64]) -> NDArray[np.integer] | None:
    """Return the number of cuts at or below each number, None if the cuts are not nearly even. For NaN it is arbitrary.

    The even grid has equal steps from the first cut to the last. Each cut is less than a quarter of a step from its
    point of the grid, and rounding moves the quotient by far less than three quarters. So a division by the step finds
    the number of cuts up to an error of 1. Two comparisons with the cuts themselves correct the error.
    """
    steps = len(cuts) - 1
    even = np.linspace(cuts[0], cuts[-1], len(cuts))
    if not bool((np.abs(cuts - even) < (cuts[-1] - cuts[0]) / (4 * len(cuts))).all()):
        return None
    place = (numbers - cuts[0]) / ((cuts[-1] - cuts[0]) / steps)
    # np.fmin and np.fmax turn NaN into a number.
    codes = np.floor(np.fmax(np.fmin(place, steps), -1)).astype(np.int32) + np.int32(1)
    edges = np.concatenate(([-math.inf], cuts, [math.inf]))
    codes -= numbers < edges[codes]
    codes += numbers >= edges[codes + 1]
    return np.asarray(codes)


def _codes(column: Column, code_of: Mapping[Form, int], *, any_case: bool = False) -> NDArray[np.integer]:
    """Return the code of each cell's canonical form, `MISSING` or `OUTSIDE`.

    Each distinct text is looked up once, and all numbers together. Still, each cell gets the code that it would get
    alone.
    """
    import polars as pl

    series = column.series
    if series.dtype == pl.Null:
        return np.full(len(series), MISSING, dtype=np.int64)
    if series.dtype == pl.Boolean:
        codes = np.array([code_of.get(0.0, OUTSIDE), code_of.get(1.0, OUTSIDE), MISSING], dtype=np.int32)
        return np.asarray(codes[series.cast(pl.UInt8).fill_null(2).to_numpy()])
    if not is_textual(series):
        return _codes_of_numbers(as_numbers(series)[0], code_of)

    def code(text: str) -> int:
        form = of_text(text)
        if form is None:
            return MISSING
        return code_of.get(form.lower() if any_case and isinstance(form, str) else form, OUTSIDE)

    # Most texts are spelled as in the schema, and polars finds them together. Each other text is looked up by itself.
    labels = [form for form in code_of if isinstance(form, str)]
    place = series.cast(pl.Enum(labels), strict=False).to_physical().cast(pl.UInt32)
    codes = np.asarray(np.array([*map(code, labels), MISSING], dtype=np.int32)[place.fill_null(len(labels)).to_numpy()])
    if place.null_count() != series.null_count():
        others = (place.is_null() & series.is_not_null()).to_numpy()
        spelled = series.filter(pl.Series(others))
        distinct = spelled.unique()
        found = pl.Series([code(text) for text in distinct.to_list()], dtype=pl.Int32)
        codes[others] = spelled.replace_strict(distinct, found).to_numpy()
    return codes


def _codes_of_numbers(numbers: NDArray[np.float64], code_of: Mapping[Form, int]) -> NDArray[np.integer]:
    known = {number: code for form, code in code_of.items() if not isinstance(form, str) for number in numbers_of(form)}
    # Missing numbers become 0, and infinite ones very large.
    filled = np.nan_to_num(numbers)
    whole = filled.astype(np.int16) if len(filled) and filled.min() >= 0 and filled.max() < _SMALL else None
    # Columns of small whole numbers are common, and looking them up in an array is fastest.
    if whole is not None and bool((whole == filled).all()):
        small = np.full(_SMALL, OUTSIDE, dtype=np.int32)
        for number, code in known.items():
            if 0 <= number < _SMALL and number.is_integer():
                small[int(number)] = code
        codes = small[whole]
    else:
        codes = np.full(len(numbers), OUTSIDE, dtype=np.int32)
        if known:
            keys = np.array(sorted(known))
            place = np.minimum(np.searchsorted(keys, numbers), len(keys) - 1)
            codes = np.where(keys[place] == numbers, np.array([known[key] for key in keys.tolist()])[place], OUTSIDE)
    codes[np.isnan(numbers)] = MISSING
    return codes


def _key_column(attribute: Open, column: Column) -> KeyColumn:
    """Return the keys of a column's cells. Each distinct text or float is read once.

    Keys are numbered in the sorted order of the cells, so a piece of a table that is read again has the same codes.
    """
    import polars as pl

    series = column.series
    if series.dtype == pl.Null:
        return KeyColumn(np.zeros(len(series), dtype=KEY_CODES), KeyBook())
    if is_textual(series):
        distinct = series.unique().drop_nulls().sort()
        keys = [attribute.key_of(text) for text in distinct.to_list()]
    else:
        series = pl.Series(as_numbers(series)[0]).fill_nan(None)
        distinct = series.unique().drop_nulls().sort()
        forms = [of_number(number) for number in distinct.to_list()]
        keys = [None if form is None else label_of(form) for form in forms]
    book = KeyBook()
    numbers = pl.Series([book.number(key) for key in keys], dtype=pl.UInt32)
    codes = series.replace_strict(distinct, numbers, default=NO_KEY, return_dtype=pl.UInt32).fill_null(NO_KEY)
    found = codes.to_numpy().astype(KEY_CODES)
    if column.foreign is not None:
        found[column.foreign] = NO_KEY
    return KeyColumn(found, book)
