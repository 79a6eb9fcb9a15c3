"""Making a schema from private data: not private, and the schema says so.

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
from dpframework.facts.choices import Choice
from dpframework.facts.errors import InputError, nearest
from dpframework.facts.schema import Schema
from dpframework.facts.typechecks import typechecked
from dpframework.tables.encoding import as_numbers, as_series, is_plain, is_textual
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
) -> Schema:
    """Make a schema from a file or dataframe. This reads private data and is **not** private.

    A column of booleans, of only 0 and 1, or of only true and false is Boolean; one of numbers, also as text,
    is Numeric between its observed bounds; any other is Categorical with its observed values, sorted. An
    attribute may be missing if one of its values is.

    Parameters
    ----------
    data
        The path of a CSV or Parquet file, or a dataframe of polars, pandas or pyarrow.
    numeric
        How to take cut points: "equal-width", "quantile", "freedman-diaconis", "k-means" or "observed".
    bins
        Most bins of a numeric attribute, at least 1; "freedman-diaconis" and "observed" find their own
        number.
    max_categories
        Most values of a categorical attribute, at least 1.
    views
        "left" or "right" for the columns named.
    categorical
        Columns to declare categorical although they hold numbers.
    exclude
        Columns to leave out.

    Returns
    -------
    Schema
        Its `inferred` lists what was taken from the data. The row count is not put in it.

    Raises
    ------
    InputError
        If the data cannot be read, a name is unknown, or a column gives no attribute: it has no values,
        infinite ones, values of another type than number, text and boolean, or more texts than
        `max_categories`.

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
    choices = _checked(numeric, bins, max_categories, categorical)
    source = open_source(data)
    _refuse_unknown(categorical, source.columns, f"{source.name}: column to declare categorical")
    names = _kept(source, exclude)
    sides = dict(views or {})
    _refuse_unknown(sides, names, f"{source.name}: column with a view")
    columns = {n: as_series(c, _where(source, n)) for n, c in source.take(names).items()}
    return _schema(columns, {n: _where(source, n) for n in names}, sides, choices)


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
) -> Schema:
    """Make a two-view schema from two files or dataframes. This reads private data and is **not** private.

    Parameters
    ----------
    left, right
        Paths or dataframes; their columns become the left and the right view.
    id
        A column of both that joins them, left out of the schema; only the joined rows are looked at. Without
        it, rows are matched by position.
    numeric, bins, max_categories, categorical, exclude
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
    choices = _checked(numeric, bins, max_categories, categorical)
    sources = open_source(left), open_source(right)
    known = [name for source in sources for name in source.columns]
    _refuse_unknown(categorical, known, "column to declare categorical")
    _refuse_unknown(exclude, known, "column to exclude")
    excluded = {*exclude, *([] if id is None else [id])}
    left_names, right_names = ([n for n in s.columns if n not in excluded] for s in sources)
    for source, names in zip(sources, (left_names, right_names), strict=True):
        if not names:
            raise InputError(f"{source.name}: has no column left to make an attribute of")
    for name in left_names:
        if name in right_names:
            raise InputError(f"column '{name}' is on both sides; name it in exclude, or rename one")
    columns = joined((sources[0], left_names), (sources[1], right_names), id)
    views = dict.fromkeys(left_names, "left") | dict.fromkeys(right_names, "right")
    wheres = {
        name: _where(source, name)
        for source, names in zip(sources, (left_names, right_names), strict=True)
        for name in names
    }
    return _schema(columns, wheres, views, choices)


def _checked(numeric: CutMode | str, bins: int, max_categories: int, categorical: Collection[str]) -> _Choices:
    mode = CutMode.parse(numeric)
    if not 1 <= bins <= MOST_CODES:
        raise InputError(f"bins must be from 1 to {MOST_CODES}")
    if max_categories < 1:
        raise InputError("max_categories must be at least 1")
    return _Choices(mode, bins, max_categories, categorical)


def _kept(source: Source, exclude: Collection[str]) -> list[str]:
    _refuse_unknown(exclude, source.columns, f"{source.name}: column to exclude")
    names = [name for name in source.columns if name not in exclude]
    if not names:
        raise InputError(f"{source.name}: has no column left to make an attribute of")
    return names


def _refuse_unknown(names: Collection[str], known: Collection[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"{what}: there is no '{name}'; {nearest(name, known)}")


def _where(source: Source, name: str) -> str:
    return f"{source.name}: column '{name}'"


def _schema(
    columns: Mapping[str, pl.Series], wheres: Mapping[str, str], views: Mapping[str, str], choices: _Choices
) -> Schema:
    attributes = []
    for name, series in columns.items():
        attribute = _attribute(name, series, wheres[name], choices)
        attributes.append(attrs.evolve(attribute, view=views[name]) if name in views else attribute)
    inferred = ["attribute kinds: observed", "missing allowed: observed"]
    if any(isinstance(attribute, Categorical) for attribute in attributes):
        inferred.append("categorical values: observed")
    if any(isinstance(attribute, Numeric) for attribute in attributes):
        inferred += ["numeric bounds: observed", f"numeric cuts: {choices.numeric}"]
    return Schema(attributes, inferred=inferred)


def _attribute(name: str, series: pl.Series, where: str, choices: _Choices) -> Attribute:
    """Return the attribute that a column suggests."""
    import polars as pl

    if not is_plain(series):
        raise InputError(f"{where} holds neither numbers, texts nor booleans; leave it out with exclude")
    if series.dtype.is_float():
        series = series.fill_nan(None)
    # Dictionary-encoded texts were declared to be categories, even where they read as numbers.
    declared = name in choices.categorical or series.dtype in (pl.Categorical, pl.Enum)
    if is_textual(series):
        series = series.cast(pl.String).str.strip_chars()
        series = series.set(series == "", None)
    missing = series.null_count() > 0
    series = series.drop_nulls()
    if len(series) == 0:
        raise InputError(f"{where} has no values at all; leave it out with exclude")
    if series.dtype == pl.Boolean and not declared:
        return Boolean(name, missing=missing)
    if not declared:
        numbers, strange = as_numbers(series)
        if not strange.any():
            kept = numbers[~np.isnan(numbers)]
            missing = missing or len(kept) < len(numbers)
            if len(kept) == 0:
                raise InputError(f"{where} has no values at all; leave it out with exclude")
            # a text like "00" is a number, but not a way to write false
            written = not is_textual(series) or set(series.str.replace(r"^(-?\d+)\.0+$", "$1").unique()) <= {"0", "1"}
            if written and bool(np.isin(kept, (0.0, 1.0)).all()):
                return Boolean(name, missing=missing)
            return _numeric(name, kept, where, missing, choices)
        if set(series.str.to_lowercase().unique()) <= {"true", "false"}:
            return Boolean(name, missing=missing)
    texts = series.unique().cast(pl.String).str.replace(r"^(-?\d+)\.0+$", "$1")
    # Python knows a few more blanks than polars.
    distinct = {text.strip() for text in texts.to_list()}
    missing = missing or "" in distinct
    distinct.discard("")
    if not distinct:
        raise InputError(f"{where} has no values at all; leave it out with exclude")
    if len(distinct) > choices.max_categories:
        raise InputError(
            f"{where} has more than {choices.max_categories} distinct values; "
            "leave it out with exclude, or raise max_categories"
        )
    return Categorical(name, sorted(distinct), missing=missing)


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
            return Numeric(name, lower, upper, bins=_fitting(choices.bins, lower, upper), missing=missing)
        case CutMode.FREEDMAN_DIACONIS:
            bins = _fitting(_freedman_diaconis(numbers, choices.bins), lower, upper)
            return Numeric(name, lower, upper, bins=bins, missing=missing)
        case CutMode.QUANTILE:
            cuts = np.quantile(numbers, np.arange(1, choices.bins) / choices.bins)
        case CutMode.K_MEANS:
            centres = _k_means(*np.unique(numbers, return_counts=True), choices.bins)
            cuts = _midway(centres)
        case CutMode.OBSERVED:
            cuts = _midway(np.unique(numbers))
    cuts = np.unique(cuts)
    cuts = cuts[(cuts > lower) & (cuts < upper)]
    if len(cuts) >= MOST_CODES:
        raise InputError(f"{where} has more than {MOST_CODES} distinct values; choose other cuts")
    if len(cuts) == 0:
        return Numeric(name, lower, upper, bins=1, missing=missing)
    return Numeric(name, lower, upper, cuts=cuts.tolist(), missing=missing)


def _fitting(bins: int, lower: float, upper: float) -> int:
    """Return `bins`, or 1 where floating-point numbers are too coarse to cut so narrow a range."""
    return bins if (upper - lower) / bins > 4 * np.spacing(max(abs(lower), abs(upper))) else 1


def _midway(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a cut point between each two neighbours of increasing points, or the upper one if none lies there."""
    low, high = points[:-1], points[1:]
    middle = low + (high - low) / 2
    return np.asarray(np.where(middle > low, middle, high))


def _freedman_diaconis(numbers: NDArray[np.float64], otherwise: int) -> int:
    """Return the number of bins of the width 2 IQR / rows^(1/3), and no more than distinct values.

    Half the rows may share one value, and then the width is zero: `otherwise` bins it is.
    """
    first, third = np.quantile(numbers, (0.25, 0.75))
    width = 2 * float(third - first) / len(numbers) ** (1 / 3)
    if width <= 0:
        return otherwise
    bins = (float(numbers.max()) - float(numbers.min())) / width
    most = min(MOST_CODES, len(np.unique(numbers)))
    return most if bins > most else math.ceil(bins)


def _k_means(points: NDArray[np.float64], weights: NDArray[np.int64], most: int) -> NDArray[np.float64]:
    """Return the centres, increasing, of one-dimensional k-means: the best of three runs of Lloyd's algorithm.

    It starts from quantiles of the rows, from quantiles of the distinct values, and evenly over the range: always
    the same centres for the same column.

    Parameters
    ----------
    points
        Distinct values, increasing.
    weights
        How many rows have each.
    most
        Number of clusters; fewer come out where there are fewer points, or a cluster runs empty.
    """
    if len(points) <= most:
        return points
    shares = (np.arange(most) + 0.5) / most
    rows = np.cumsum(weights)
    runs = [
        _lloyd(points, weights, starts)
        for starts in (
            np.unique(points[np.searchsorted(rows, shares * rows[-1])]),
            np.quantile(points, shares),
            points[0] + shares * (points[-1] - points[0]),
        )
    ]
    return min(runs, key=lambda centres: _spread(points, weights, centres))


def _spread(points: NDArray[np.float64], weights: NDArray[np.int64], centres: NDArray[np.float64]) -> float:
    """Return the sum over rows of the squared distance to the nearest centre."""
    nearest_centres = centres[np.searchsorted(_midway(centres), points, side="right")]
    return float(np.sum(weights * (points - nearest_centres) ** 2))


def _lloyd(
    points: NDArray[np.float64], weights: NDArray[np.int64], centres: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Move increasing centres to the means of their points until they stay.

    On a line a cluster is an interval, so that each round is a search and a difference of running sums.
    """
    rows = np.concatenate([[0], np.cumsum(weights)])
    # Around the mean, running sums lose no digits to a common offset.
    offset = float(np.average(points, weights=weights))
    sums = np.concatenate([[0.0], np.cumsum((points - offset) * weights)])
    for _ in range(300):
        edges = np.concatenate([[0], np.searchsorted(points, _midway(centres)), [len(points)]])
        counts = np.diff(rows[edges])
        moved = np.asarray(np.diff(sums[edges])[counts > 0] / counts[counts > 0] + offset)
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres
