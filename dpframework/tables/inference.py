"""Make a schema from private data, which is not private, and the schema says so.

Bounds, cut points and values taken from the data can give a row away, whatever noise comes later. Such a
schema lists in `inferred` what it took, and every plan made from it carries the assumption
`schema-inferred-from-data`. Use it for experiments, to reproduce published choices, or as a draft to replace
by public facts.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import MOST_CODES, Attribute, Boolean, Categorical, Numeric
from dpframework.facts.canonical import TRUTHS, Form, label_of, of_text
from dpframework.facts.choices import Choice
from dpframework.facts.errors import InputError, nearest
from dpframework.facts.open_attribute import Open
from dpframework.facts.schema import Schema
from dpframework.facts.typechecks import typechecked
from dpframework.tables.binning import fitting, freedman_diaconis, k_means, midway
from dpframework.tables.columns import Column, as_column, as_numbers, is_textual
from dpframework.tables.silence import silenced
from dpframework.tables.sources import Source, open_source
from dpframework.tables.views import joined

if TYPE_CHECKING:
    import polars as pl


class CutMode(Choice, what="numeric cut mode"):
    """How the cut points of a numeric attribute are taken from its column."""

    EQUAL_WIDTH = "equal-width"
    """Bins of equal width between the observed bounds."""
    QUANTILE = "quantile"
    """Bins of about equal numbers of rows."""
    FREEDMAN_DIACONIS = "freedman-diaconis"
    """Bins of the width 2 IQR / rows^(1/3)."""
    K_MEANS = "k-means"
    """Cut points midway between the centres of one-dimensional k-means."""
    OBSERVED = "observed"
    """A cut point midway between each two neighbouring observed values."""


@attrs.frozen
class _Choices:
    """How columns are turned into attributes."""

    numeric: CutMode
    bins: int
    max_categories: int
    categorical: Collection[str]
    open_columns: Collection[str]


@silenced(streams=True)
@typechecked
def infer_schema(
    data: Any,
    *,
    numeric: CutMode | str = CutMode.EQUAL_WIDTH,
    bins: int = 16,
    max_categories: int = 100,
    views: Mapping[str, str] | None = None,
    categorical: Collection[str] = (),
    exclude: Collection[str] = (),
    open_columns: Collection[str] = (),
) -> Schema:
    """Make a schema from a file or dataframe. This reads private data and is **not** private.

    A column of booleans, of only 0 and 1, or of only true and false is Boolean; one of numbers, also as text,
    is Numeric between its observed bounds; any other is Categorical with its observed values, sorted. An
    attribute may be missing if one of its values is. The schema's `inferred` lists what was taken from the data; the
    row count is not put in it.

    Parameters
    ----------
    data
        The path of a CSV or Parquet file, or a dataframe of polars, pandas or pyarrow.
    numeric
        How to take cut points: "equal-width", "quantile", "freedman-diaconis", "k-means" or "observed".
    bins
        Most bins of a numeric attribute, at least 1; "freedman-diaconis" and "observed" find their own number.
    max_categories
        Most values of a categorical attribute, at least 1.
    views
        "left" or "right" for the columns named.
    categorical, exclude
        Columns to declare categorical although they hold numbers, and columns to leave out.
    open_columns
        Columns to declare open: nothing is taken from them.

    Raises
    ------
    InputError
        If the data cannot be read, a name is unknown, or a column gives no attribute: it has no values, infinite
        ones, values of another type than number, text and boolean, or more texts than `max_categories`.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"age": [17, 40, 90], "sex": ["f", "m", None]})
    >>> schema = infer_schema(frame, bins=2)
    >>> schema["age"].labels, schema["sex"].labels
    (('[17, 53.5)', '[53.5, 90]'), ('f', 'm', 'missing'))
    >>> schema.inferred[-1]
    'numeric cuts: equal-width'
    """
    choices = _checked(numeric, bins, max_categories, categorical, open_columns)
    source = open_source(data)
    _refuse_undeclared(choices, source.columns, f"{source.name}: ")
    names = _kept(source, exclude)
    sides = dict(views or {})
    _refuse_unknown(sides, names, f"{source.name}: column with a view")
    columns = {n: as_column(c, _where(source, n)) for n, c in source.take(names).items()}
    return _schema(columns, {n: _where(source, n) for n in names}, sides, choices)


@silenced(streams=True)
@typechecked
def infer_two_view_schema(
    left: Any,
    right: Any,
    *,
    id: str | None = None,  # noqa: A002
    numeric: CutMode | str = CutMode.EQUAL_WIDTH,
    bins: int = 16,
    max_categories: int = 100,
    categorical: Collection[str] = (),
    exclude: Collection[str] = (),
    open_columns: Collection[str] = (),
) -> Schema:
    """Make a two-view schema from two files or dataframes. This reads private data and is **not** private.

    Parameters
    ----------
    left, right
        Paths or dataframes; their columns become the left and the right view.
    id
        A column of both that joins them, left out of the schema; only the joined rows are looked at. Without
        it, rows are matched by position.
    numeric, bins, max_categories, categorical, exclude, open_columns
        As for `infer_schema`; names may be of either side.

    Raises
    ------
    InputError
        As `infer_schema` and `read_two_views`; also if both sides have a column of the same name.

    Examples
    --------
    >>> import polars as pl
    >>> left = pl.DataFrame({"site": [1, 2], "puma": [0, 1]})
    >>> right = pl.DataFrame({"site": [2, 1], "rain": [310.5, 42.0]})
    >>> [str(a.view) for a in infer_two_view_schema(left, right, id="site")]
    ['left', 'right']
    """
    choices = _checked(numeric, bins, max_categories, categorical, open_columns)
    sources = open_source(left), open_source(right)
    known = [name for source in sources for name in source.columns]
    _refuse_undeclared(choices, known)
    _refuse_unknown(exclude, known, "column to exclude")
    excluded = {*exclude, *([] if id is None else [id])}
    left_names, right_names = ([n for n in s.columns if n not in excluded] for s in sources)
    for source, names in zip(sources, (left_names, right_names), strict=True):
        if not names:
            raise InputError(f"{source.name}: has no column left to make an attribute of")
    for name in left_names:
        if name in right_names:
            raise InputError(f"column '{name}' is on both sides; name it in exclude, or rename one")
    columns = joined((sources[0], left_names), (sources[1], right_names), id, strict=True)
    views = dict.fromkeys(left_names, "left") | dict.fromkeys(right_names, "right")
    wheres = {
        name: _where(source, name)
        for source, names in zip(sources, (left_names, right_names), strict=True)
        for name in names
    }
    return _schema(columns, wheres, views, choices)


def _checked(
    numeric: CutMode | str,
    bins: int,
    max_categories: int,
    categorical: Collection[str],
    open_columns: Collection[str],
) -> _Choices:
    mode = CutMode.parse(numeric)
    if not 1 <= bins <= MOST_CODES:
        raise InputError(f"bins must be from 1 to {MOST_CODES}")
    if max_categories < 1:
        raise InputError("max_categories must be at least 1")
    for name in open_columns:
        if name in categorical:
            raise InputError(f"column '{name}' is declared categorical and open; name it in one of the two")
    return _Choices(mode, bins, max_categories, categorical, open_columns)


def _kept(source: Source, exclude: Collection[str]) -> list[str]:
    _refuse_unknown(exclude, source.columns, f"{source.name}: column to exclude")
    names = [name for name in source.columns if name not in exclude]
    if not names:
        raise InputError(f"{source.name}: has no column left to make an attribute of")
    return names


def _refuse_undeclared(choices: _Choices, known: Collection[str], where: str = "") -> None:
    """Refuse columns to declare that are not there."""
    _refuse_unknown(choices.categorical, known, f"{where}column to declare categorical")
    _refuse_unknown(choices.open_columns, known, f"{where}column to declare open")


def _refuse_unknown(names: Collection[str], known: Collection[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"{what}: there is no '{name}'; {nearest(name, known)}")


def _where(source: Source, name: str) -> str:
    return f"{source.name}: column '{name}'"


def _schema(
    columns: Mapping[str, Column], wheres: Mapping[str, str], views: Mapping[str, str], choices: _Choices
) -> Schema:
    attributes = []
    for name, column in columns.items():
        attribute = _attribute(name, column, wheres[name], choices)
        attributes.append(attrs.evolve(attribute, view=views[name]) if name in views else attribute)
    inferred = ["attribute kinds: observed", "missing allowed: observed"]
    if any(isinstance(attribute, Categorical) for attribute in attributes):
        inferred.append("categorical values: observed")
    if any(isinstance(attribute, Numeric) for attribute in attributes):
        inferred += ["numeric bounds: observed", f"numeric cuts: {choices.numeric}"]
    return Schema(attributes, inferred=inferred)


def _attribute(name: str, column: Column, where: str, choices: _Choices) -> Attribute:
    """Return the attribute that a column suggests. An open one says nothing of its column."""
    import polars as pl

    if name in choices.open_columns:
        return Open(name)
    if column.foreign is not None and bool(column.foreign.any()):
        raise InputError(f"{where} holds neither numbers, texts nor booleans; leave it out with exclude")
    if len(column) == 0:
        raise InputError(f"{where} has no rows; at least one is needed")
    series, missing = _present(column.series)
    declared = name in choices.categorical or column.categories
    if series.dtype == pl.Boolean and not declared:
        return Boolean(name, missing=missing)
    if not declared and len(series):
        numbers, strange = as_numbers(series)
        if not strange.any():
            kept = numbers[~np.isnan(numbers)]
            missing = missing or len(kept) < len(numbers)
            if len(kept) and _written_as_truths(series):
                return Boolean(name, missing=missing)
            if len(kept):
                return _numeric(name, kept, where, missing, choices)
            series = series.clear()
    return _categorical(name, series, where, missing, choices)


def _present(series: pl.Series) -> tuple[pl.Series, bool]:
    """Return the cells that are not missing, and whether one was."""
    if series.dtype.is_float():
        series = series.fill_nan(None)
    if is_textual(series):
        series = series.str.strip_chars()
        series = series.set(series == "", None)
    return series.drop_nulls(), series.null_count() > 0


def _written_as_truths(series: pl.Series) -> bool:
    """Tell whether all values are 0 or 1. A text like "00" is a number, but no way to write false."""
    if is_textual(series):
        return {of_text(text) for text in series.unique().to_list()} <= {0.0, 1.0}
    return bool(series.cast(float).is_in([0.0, 1.0]).all())


def _categorical(name: str, series: pl.Series, where: str, missing: bool, choices: _Choices) -> Categorical:
    """Return an attribute of the values that occur, each in its canonical form."""
    written: dict[Form | None, str] = {}
    for value in sorted(map(str, series.unique().to_list())):
        form = of_text(value)
        truth = value.strip().lower()
        written.setdefault(form, truth if truth in TRUTHS or form is None else label_of(form))
    missing = missing or None in written  # Python knows a few more blanks than polars
    labels = [label for form, label in written.items() if form is not None]
    if not labels:
        raise InputError(f"{where} has no values at all; leave it out with exclude")
    if len(labels) > choices.max_categories:
        raise InputError(
            f"{where} has more than {choices.max_categories} distinct values; "
            "leave it out with exclude, declare it open with open_columns, or raise max_categories"
        )
    return Categorical(name, sorted(labels), missing=missing)


def _numeric(name: str, numbers: NDArray[np.float64], where: str, missing: bool, choices: _Choices) -> Numeric:
    lower, upper = float(numbers.min()), float(numbers.max())
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise InputError(f"{where} holds infinite numbers; leave it out with exclude, or correct it")
    if lower == upper:
        # Half a unit to each side, or more where floats are coarser than that.
        margin = max(0.5, abs(lower) * 1e-9)
        return Numeric(name, lower - margin, upper + margin, bins=1, missing=missing)
    match choices.numeric:
        case CutMode.EQUAL_WIDTH:
            return Numeric(name, lower, upper, bins=fitting(choices.bins, lower, upper), missing=missing)
        case CutMode.FREEDMAN_DIACONIS:
            bins = fitting(freedman_diaconis(numbers, choices.bins), lower, upper)
            return Numeric(name, lower, upper, bins=bins, missing=missing)
        case CutMode.QUANTILE:
            cuts = np.quantile(numbers, np.arange(1, choices.bins) / choices.bins)
        case CutMode.K_MEANS:
            centres = k_means(*np.unique(numbers, return_counts=True), choices.bins)
            cuts = midway(centres)
        case CutMode.OBSERVED:
            cuts = midway(np.unique(numbers))
    cuts = np.unique(cuts)
    cuts = cuts[(cuts > lower) & (cuts < upper)]
    if len(cuts) >= MOST_CODES:
        raise InputError(f"{where} has more than {MOST_CODES} distinct values; choose other cuts")
    if len(cuts) == 0:
        return Numeric(name, lower, upper, bins=1, missing=missing)
    return Numeric(name, lower, upper, cuts=cuts.tolist(), missing=missing)
