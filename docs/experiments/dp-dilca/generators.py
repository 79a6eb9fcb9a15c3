"""The tables as the paper has them: real ones, on bins and domains that are taken from the rows, and made-up ones."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpframework as dpf
from dpframework.facts.toml import resolve_path

BINS = 5
MADE_UP_ROWS, WEAK = 10_000, 0.35


@functools.lru_cache(maxsize=8)
def _read(path: str, label: str | None) -> dpf.Table:
    file = resolve_path(path, Path(__file__).parent)
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


def made_up(*, kind: str, noise: float, seed: int) -> dpf.Table:
    """Return 10,000 rows of 11 Booleans, as in section A.1: "target", those of its context, weak ones, and random ones.

    The numbers of columns are those of the paper's table 2, in whose last two rows the names are exchanged: only so do
    they add up to 11 with the random columns of its text, and do four columns and a target make five blocks.

    Parameters
    ----------
    kind
        "A" (three columns like the target), "B" (the same, a fifth of the target ones), "C" (two, and two weak ones,
        swapped more often), or "D" (five blocks: a row has a one in the target or in one of the four others).
    noise
        The part of the cells of the context that is swapped; in "D", of the target too.
    seed
        Of the rows.
    """
    rng = np.random.default_rng(seed)
    share, context, weak = {"A": (0.5, 3, 0), "B": (0.2, 3, 0), "C": (0.3, 2, 2), "D": (0.2, 4, 0)}[kind]

    def swapped(column: NDArray[Any], part: float) -> NDArray[Any]:
        chosen = rng.permutation(MADE_UP_ROWS)[: round(part * MADE_UP_ROWS)]
        flipped = np.zeros(MADE_UP_ROWS, dtype=bool)
        flipped[chosen] = True
        return np.asarray(column ^ flipped)

    if kind == "D":
        blocks = np.repeat(np.arange(context + 1), MADE_UP_ROWS // (context + 1))
        target, *near = (swapped(blocks == k, noise) for k in range(context + 1))
    else:
        target = np.arange(MADE_UP_ROWS) < share * MADE_UP_ROWS
        near = [swapped(target, noise) for _ in range(context)]
    far = [swapped(target, WEAK) for _ in range(weak)]
    random = [rng.random(MADE_UP_ROWS) < 0.5 for _ in range(10 - context - weak)]
    columns = {f"context {k}": one for k, one in enumerate(near)} | {f"weak {k}": one for k, one in enumerate(far)}
    columns = {"target": target, **columns, **{f"random {k}": one for k, one in enumerate(random)}}
    schema = dpf.Schema([dpf.Boolean(name) for name in columns], rows=MADE_UP_ROWS)
    return dpf.Table.from_codes(schema, np.array(list(columns.values()), dtype=np.uint8))
