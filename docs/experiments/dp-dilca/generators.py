"""The tables as the paper has them: every attribute categorical, on bins and domains that are taken from the rows."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpframework as dpf
from dpframework.facts.toml import resolved_path

BINS = 5


@functools.lru_cache(maxsize=8)
def _read(path: str, label: str | None) -> dpf.Table:
    file = resolved_path(path, Path(__file__).parent)
    frame = pl.read_csv(file, null_values=["?", ""], infer_schema_length=None)
    names = [name for name in frame.columns if name != label] + ([] if label is None else [label])
    attributes, codes = [], []
    for name in names:
        values, found = np.unique(_texts(frame[name], binned=name != label), return_inverse=True)
        if len(values) > 1:
            attributes.append(dpf.Categorical("class" if name == label else name, [str(value) for value in values]))
            codes.append(found)
    schema = dpf.Schema(attributes, rows=len(frame), inferred=["bins and domains: from the data"])
    return dpf.Table.from_codes(schema, np.array(codes))


def as_published(*, path: str, label: str | None = None, seed: int) -> dpf.Table:
    """Return a file's rows; bins and domains come from the data, which no epsilon covers, and the schema says so.

    A missing value becomes the column's most common one, and a numeric column of more than five values five clusters
    (k-means). An attribute with a single value is left out.

    Parameters
    ----------
    path
        Of the file, relative to this folder; `$NAME` works.
    label
        The column of classes, which comes last and under the name "class"; without it there is none.
    seed
        Not used: nothing is drawn.
    """
    return _read(path, label)


def _texts(column: pl.Series, *, binned: bool) -> NDArray[Any]:
    """Return a column as texts without gaps: values, or the numbers of bins."""
    from sklearn.cluster import KMeans

    if column.null_count():
        column = column.fill_null(column.drop_nulls().mode().sort()[0])
    if not (binned and column.dtype.is_numeric() and column.n_unique() > BINS):
        return column.cast(pl.String).to_numpy()
    numbers = column.cast(pl.Float64).to_numpy()
    edges = np.linspace(numbers.min(), numbers.max(), BINS + 1)
    middles = (edges[1:] + edges[:-1]) / 2  # where scikit-learn's KBinsDiscretizer starts
    centres = np.sort(KMeans(BINS, init=middles[:, None], n_init=1).fit(numbers[:, None]).cluster_centers_.ravel())
    return np.searchsorted((centres[1:] + centres[:-1]) / 2, numbers, side="right").astype(str)
