"""Correlations of the six measures as noise grows, from the finished run of noise.toml (the paper's table 6).

    python docs/experiments/retention/correlations.py FOLDER OUT.csv

Pearson's correlation of each two measures over the levels above none, of their differences from the value without
noise, for each data set and kind of noise. Not private.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import polars as pl

from dpframework.lab.evaluation import Correlations, correlations
from dpframework.lab.experiment.spread_statistics import Spread

MEASURES = ("pattern_accuracy_loss", "psd", "pld", "accuracy", "f_measure", "auc")
PAIR = ("noise", "of", "with", "value")


def correlated(results: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each noise, pair of measures, data set and value.

    Parameters
    ----------
    results
        Columns "data", "method" (the noise), "level", "fold", and the measures.

    Returns
    -------
    Columns "noise", "of", "with", "data", "value" and "r". The value "averaged" is the correlation of the means over
    the folds, "within folds" the mean of each fold's own. A correlation that cannot be told is null.
    """
    rows = []
    for (noise, data), found in results.group_by("method", "data", maintain_order=True):
        averaged = _correlations(found.group_by("level").agg(pl.col(MEASURES).mean()))
        folds = [_correlations(fold) for _, fold in found.group_by("fold", maintain_order=True)]
        for one, other in itertools.combinations(MEASURES, 2):
            within = pl.Series([fold.between(one, other) for fold in folds]).fill_nan(None).mean()
            for value, r in (("averaged", averaged.between(one, other)), ("within folds", within)):
                rows.append({"noise": noise, "of": one, "with": other, "data": data, "value": value, "r": r})
    return pl.DataFrame(rows).with_columns(pl.col("r").fill_nan(None))


def _correlations(by_level: pl.DataFrame) -> Correlations:
    return correlations(by_level.sort("level").select(MEASURES).to_dict(as_series=False))


def described(found: pl.DataFrame) -> pl.DataFrame:
    """Return how the correlations spread over the data sets, as the tables of an experiment are written."""
    groups = found.drop_nulls("r").group_by(PAIR, maintain_order=True)
    return pl.DataFrame(
        [{**dict(zip(PAIR, keys, strict=True)), **Spread.of(group["r"]).to_dict()} for keys, group in groups]
    )


def written(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table with its numbers to six digits."""
    return table.with_columns(pl.col(pl.Float64).map_elements(lambda number: f"{number:.6g}", return_dtype=pl.String))


if __name__ == "__main__":
    folder, out = map(Path, sys.argv[1:])
    found = correlated(pl.read_parquet(folder / "results.parquet"))
    written(described(found)).write_csv(out)
    print(found.pivot("data", index=("noise", "value", "of", "with"), values="r").write_csv(float_precision=2))
