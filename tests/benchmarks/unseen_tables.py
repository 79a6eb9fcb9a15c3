"""Tables for which no rule of `synthetic-table` was found: intrusions into a network of computers, and made-up ones.

The made-up ones are drawn from random Bayesian networks: attributes of 2 to 8 values, each of which depends on up to
two others before it, by probabilities from a Dirichlet distribution (1/2). The last, the class, depends on three.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dpframework as dpf

#: Attributes and rows of the made-up ones.
NETWORKS = {
    "network-10": (10, 5_000),
    "network-15": (15, 10_000),
    "network-22": (22, 20_000),
    "network-40": (40, 20_000),
}
UNSEEN = ("intrusions", *NETWORKS)
CLASS = "label"  # of intrusions: "normal", or the kind of an attack
INTRUSIONS = 20_000  # rows of 494,021
_CUTS = (0.5, 1.5, 3.5, 10.5, 31.5, 100.5, 316.5, 1000.5, 10000.5, 100000.5)  # of whole numbers
_RATES = 10  # bins of a number up to 1


def unseen_table(data: Path, name: str) -> tuple[dpf.Schema, NDArray[np.int64], int]:
    """Return a table's schema, its rows as codes, and the place of its class."""
    sizes, columns, names = _intrusions(data) if name == "intrusions" else _network(name)
    attributes = [dpf.Categorical(own, list(map(str, range(size)))) for own, size in zip(names, sizes, strict=True)]
    return dpf.Schema(attributes), np.array(columns, dtype=np.int64).T, len(sizes) - 1


def _network(name: str) -> tuple[list[int], list[NDArray[np.int64]], list[str]]:
    number, rows = NETWORKS[name]
    rng = np.random.default_rng(number)
    sizes = [*map(int, rng.integers(2, 9, number - 1)), 2]
    columns: list[NDArray[np.int64]] = []
    for k, size in enumerate(sizes):
        most = 3 if k == number - 1 else int(rng.integers(3))
        parents = rng.choice(k, min(k, most), replace=False) if k else []
        shape = tuple(sizes[p] for p in parents)
        cell = np.ravel_multi_index(tuple(columns[p] for p in parents), shape) if shape else np.zeros(rows, np.int64)
        chances = rng.dirichlet(np.full(size, 0.5), math.prod(shape)).cumsum(axis=1)
        columns.append(np.minimum((rng.random(rows)[:, None] > chances[cell]).sum(axis=1), size - 1))
    return sizes, columns, [f"a{k}" for k in range(number)]


def _intrusions(data: Path) -> tuple[list[int], list[NDArray[np.int64]], list[str]]:
    import polars as pl

    frame = pl.read_parquet(data / "kddcup99" / "kddcup99.parquet").sample(INTRUSIONS, seed=3)
    sizes, columns, names = [], [], [*(name for name in frame.columns if name != CLASS), CLASS]
    for name in names:
        cells = frame[name]
        if name == CLASS:
            codes, size = (cells.cast(pl.String) != "normal").to_numpy().astype(np.int64), 2
        elif cells.dtype.is_numeric():
            largest = float(cells.max())  # type: ignore[arg-type]
            share = 0 < largest <= 1 and cells.n_unique() > 2
            all_cuts = np.linspace(0, 1, _RATES + 1)[1:-1] if share else np.array(_CUTS)
            cuts = all_cuts[all_cuts < max(largest, 1.0)]
            codes, size = np.searchsorted(cuts, cells.to_numpy()), len(cuts) + 1
        else:
            values = cells.cast(pl.String).to_numpy()
            labels, codes = np.unique(values, return_inverse=True)
            size = max(len(labels), 2)
        sizes.append(size)
        columns.append(codes)
    return sizes, columns, names
