"""Infer an attribute from a column of private data: the attribute's kind, bounds, cut points and values."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import MOST_CODES, Attribute, Boolean, Categorical, Numeric
from dpframework.facts.canonical_cells import TRUTHS, Form, label_of, of_text
from dpframework.facts.choice_enum import Choice
from dpframework.facts.errors import InputError
from dpframework.facts.open_attribute import Open
from dpframework.tables.distinct_column_texts import DistinctCells
from dpframework.tables.plain_cell_series import Column, as_numbers, is_textual

if TYPE_CHECKING:
    import polars as pl


#: What an error, or a note on a drafted schema, says of a column without any value.
NO_VALUES = "has no values at all"
ROUNDS = 300  # the most rounds of Lloyd's algorithm for k-means; it ends earlier if no centre moves any more


class CutMode(Choice, what="numeric cut mode"):
    """How the cut points of a numeric attribute are taken from its column."""

    EQUAL_WIDTH = "equal-width"
    """Bins of equal width between the observed bounds."""
    QUANTILE = "quantile"
    """Bins of about equal numbers of rows."""
    FREEDMAN_DIACONIS = "freedman-diaconis"
    """Bins of equal width, about 2 IQR / n^(1/3), for a column of n numbers with the interquartile range IQR."""
    K_MEANS = "k-means"
    """Cut points midway between the centres of one-dimensional k-means."""
    OBSERVED = "observed"
    """A cut point midway between each pair of neighbouring observed values."""


@attrs.frozen
class Choices:
    """How columns are turned into attributes.

    Attributes
    ----------
    numeric
        How cut points are taken from columns of numbers.
    bins
        The number of bins of a numeric attribute. There are fewer if cut points coincide, and there is one if all
        values are equal or nearly so. `CutMode.FREEDMAN_DIACONIS` uses this number only if the interquartile range is
        0, and `CutMode.OBSERVED` does not use it.
    max_categories
        The most values that a categorical attribute may have. A column with more is refused.
    categorical
        Names of columns that are declared categorical although they may hold numbers.
    open_columns
        Names of columns that are declared open, so that the schema lists none of their values.

    Raises
    ------
    InputError
        If a number is out of range, or a column is declared twice.
    """

    numeric: CutMode
    bins: int
    max_categories: int
    categorical: Collection[str]
    open_columns: Collection[str]

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.bins <= MOST_CODES:
            raise InputError(f"bins must be from 1 to {MOST_CODES}")
        if self.max_categories < 1:
            raise InputError("max_categories must be at least 1")
        for name in self.open_columns:
            if name in self.categorical:
                raise InputError(f"column '{name}' is declared categorical and open; name it in one of the two")


def attribute_of(
    name: str,
    column: Column | DistinctCells,
    where: str,
    choices: Choices,
    *,
    number: bool = False,
    label: bool = False,
) -> Attribute:
    """Return the attribute that a column suggests. If the column is declared open, its cells are not read.

    Parameters
    ----------
    name
        The column's name.
    column
        The private cells, after the options that say how the column is written have been applied. `DistinctCells`,
        which hold each distinct cell once, are enough if the cut points depend on the distinct values alone.
    where
        The words that begin each error's message. They name the column.
    choices
        How columns are turned into attributes.
    number
        Whether the cells are known to be numbers. Then cells that are all 0 or 1 do not make a Boolean attribute.
    label
        Whether the cells are known to be labels. Then the attribute is categorical, also if all cells are numbers.

    Raises
    ------
    InputError
        If the column cannot become an attribute.
    """
    import polars as pl

    if name in choices.open_columns:
        return Open(name)
    series, missing, categories = _cells_of(column, where)
    declared = label or categories or name in choices.categorical
    if series.dtype == pl.Boolean and not declared:
        return Boolean(name, missing=missing)
    if not declared and len(series):
        if isinstance(column, DistinctCells):
            numbers, strange = column.numbers, column.strange
        else:
            numbers, strange = as_numbers(series)
        if not strange.any():
            kept = numbers[~np.isnan(numbers)]
            missing = missing or len(kept) < len(numbers)
            truths = bool(len(kept)) and not number and bool(((kept == 0) | (kept == 1)).all())
            if truths and is_textual(series):  # a text such as "00" equals 0 as a number, but does not mean false
                truths = {of_text(text) for text in series.unique().to_list()} <= {0.0, 1.0}
            if truths:
                return Boolean(name, missing=missing)
            if len(kept):
                return _numeric(name, kept, where, missing, choices)
            series = series.clear()
    return _categorical(name, series, where, missing, choices)


def _cells_of(column: Column | DistinctCells, where: str) -> tuple[pl.Series, bool, bool]:
    """Return the cells that are not missing, whether any cell is missing, and whether the column holds categories."""
    import polars as pl

    if isinstance(column, DistinctCells):
        rows, series, missing, categories = len(column.texts) or column.missing, column.texts, column.missing, False
    elif column.foreign is not None and bool(column.foreign.any()):
        raise InputError(
            f"{where} has cells that no schema can hold, such as lists or very long texts; leave it out with exclude"
        )
    else:
        rows, categories, series = len(column), column.categories, column.series
        if is_textual(series):
            text = pl.col("text").str.strip_chars()
            series = series.alias("text").to_frame().select_seq(text.filter(text != "")).to_series()
        else:
            series = (series.fill_nan(None) if series.dtype.is_float() else series).drop_nulls()
        missing = len(series) < rows
    if not rows:
        raise InputError(f"{where} has no rows; at least one is needed")
    return series, missing, categories


def _categorical(name: str, series: pl.Series, where: str, missing: bool, choices: Choices) -> Categorical:
    """Return a categorical attribute with the values that occur. Texts of the same number count as one value."""
    written: dict[Form | None, str] = {}
    for value in sorted(map(str, series.unique().to_list())):
        form = of_text(value)
        truth = value.strip().lower()
        written.setdefault(form, truth if truth in TRUTHS or form is None else label_of(form))
        if len(written) > choices.max_categories + 1:  # one more for the missing value
            break
    missing = missing or None in written  # a text that Python takes for blank, but polars does not
    labels = [label for form, label in written.items() if form is not None]
    if not labels:
        raise InputError(f"{where} {NO_VALUES}; leave it out with exclude")
    if len(labels) > choices.max_categories:
        raise InputError(
            f"{where} has more than {choices.max_categories} distinct values; "
            "leave it out with exclude, declare it open with open_columns, or raise max_categories"
        )
    return Categorical(name, sorted(labels), missing=missing)


def _numeric(name: str, numbers: NDArray[np.float64], where: str, missing: bool, choices: Choices) -> Numeric:
    lower, upper = float(numbers.min()), float(numbers.max())
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise InputError(f"{where} holds infinite numbers; leave it out with exclude, or correct it")
    if lower == upper:
        # Leave 0.5 on each side, or more for numbers so large that floats are coarse.
        margin = max(0.5, abs(lower) * 1e-9)
        return Numeric(name, lower - margin, upper + margin, bins=1, missing=missing)
    match choices.numeric:
        case CutMode.EQUAL_WIDTH:
            return Numeric(name, lower, upper, bins=feasible_bins(choices.bins, lower, upper), missing=missing)
        case CutMode.FREEDMAN_DIACONIS:
            bins = feasible_bins(freedman_diaconis(numbers, choices.bins), lower, upper)
            return Numeric(name, lower, upper, bins=bins, missing=missing)
        case CutMode.QUANTILE:
            cuts = np.quantile(numbers, np.arange(1, choices.bins) / choices.bins)
        case CutMode.K_MEANS:
            centres = k_means(*np.unique(numbers, return_counts=True), choices.bins)
            cuts = midpoints(centres)
        case CutMode.OBSERVED:
            cuts = midpoints(np.unique(numbers))
    cuts = np.unique(cuts)
    cuts = cuts[(cuts > lower) & (cuts < upper)]
    if len(cuts) >= MOST_CODES:
        raise InputError(f"{where} has more than {MOST_CODES} distinct values; choose another way to take cut points")
    if len(cuts) == 0:
        return Numeric(name, lower, upper, bins=1, missing=missing)
    return Numeric(name, lower, upper, cuts=cuts.tolist(), missing=missing)


def feasible_bins(bins: int, lower: float, upper: float) -> int:
    """Return `bins`, or 1 where floating-point numbers are too coarse to cut a range this narrow."""
    return bins if (upper - lower) / bins > 4 * np.spacing(max(abs(lower), abs(upper))) else 1


def midpoints(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the midpoint of each pair of neighbours among increasing points.

    If no float lies between two neighbours, the upper one stands for their midpoint.
    """
    low, high = points[:-1], points[1:]
    middle = low + (high - low) / 2
    return np.asarray(np.where(middle > low, middle, high))


def freedman_diaconis(numbers: NDArray[np.float64], otherwise: int) -> int:
    """Return the number of bins of width 2 IQR / n^(1/3), for n numbers with the interquartile range IQR.

    The number of bins is at most the number of distinct values, and at most `MOST_CODES`. If the lower and the upper
    quartile are equal, the width is 0, and `otherwise` is returned.
    """
    first, third = np.quantile(numbers, (0.25, 0.75))
    width: float = 2 * float(third - first) / len(numbers) ** (1 / 3)
    if width <= 0:
        return otherwise
    bins = (float(numbers.max()) - float(numbers.min())) / width
    return math.ceil(min(bins, MOST_CODES, len(np.unique(numbers))))


def k_means(points: NDArray[np.float64], weights: NDArray[np.int64], most: int) -> NDArray[np.float64]:
    """Return the centres of one-dimensional k-means in increasing order, from the best of three runs of Lloyd's method.

    The runs start from quantiles of the rows, from quantiles of the distinct values, and from points spread evenly over
    the range. No start is random, so the same column always gets the same centres.

    Parameters
    ----------
    points
        Distinct values, increasing.
    weights
        How many rows have each value.
    most
        The number of clusters. There are fewer if there are fewer points, or if a cluster runs empty.
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
    nearest_centres = centres[np.searchsorted(midpoints(centres), points, side="right")]
    return float(np.sum(weights * (points - nearest_centres) ** 2))


def _lloyd(
    points: NDArray[np.float64], weights: NDArray[np.int64], centres: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Move increasing centres to the means of their points until no centre moves, for at most `ROUNDS` rounds.

    On a line, each cluster is an interval. So each round needs only a search and differences of running sums.
    """
    rows = np.concatenate([[0], np.cumsum(weights)])
    # The mean is subtracted first, so that running sums lose no digits to a common offset of all values.
    offset = float(np.average(points, weights=weights))
    sums = np.concatenate([[0.0], np.cumsum((points - offset) * weights)])
    for _ in range(ROUNDS):
        edges = np.concatenate([[0], np.searchsorted(points, midpoints(centres)), [len(points)]])
        counts = np.diff(rows[edges])
        moved = np.asarray(np.diff(sums[edges])[counts > 0] / counts[counts > 0] + offset)
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres
