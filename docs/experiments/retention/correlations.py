"""Correlations of the six measures as noise grows, from the finished run of noise.toml (the paper's table 6).

    python docs/experiments/retention/correlations.py FOLDER OUT.csv

Pearson's correlation of each two measures over the levels above none, of their differences from the value without
noise, for each data set and kind of noise. Not private.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pandas as pd

from dpframework.lab.evaluation import Correlations, correlations
from dpframework.lab.experiment.spread import Spread

MEASURES = ("pattern_accuracy_loss", "psd", "pld", "accuracy", "f_measure", "auc")


def correlated(results: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each noise, pair of measures, data set and value.

    Parameters
    ----------
    results
        Columns "data", "method" (the noise), "level", "fold", and the measures.

    Returns
    -------
    Columns "noise", "of", "with", "data", "value" and "r". The value "averaged" is the correlation of the means over
    the folds, "within folds" the mean of each fold's own.
    """
    rows = []
    for (noise, data), found in results.groupby(["method", "data"], sort=False):
        averaged = _correlations(found.groupby("level")[list(MEASURES)].mean())
        folds = [_correlations(fold.set_index("level")[list(MEASURES)]) for _, fold in found.groupby("fold")]
        for one, other in itertools.combinations(MEASURES, 2):
            within = pd.Series([fold.between(one, other) for fold in folds]).mean()  # leaves NaN out
            for value, r in (("averaged", averaged.between(one, other)), ("within folds", within)):
                rows.append({"noise": noise, "of": one, "with": other, "data": data, "value": value, "r": r})
    return pd.DataFrame(rows)


def _correlations(by_level: pd.DataFrame) -> Correlations:
    by_level = by_level.sort_index()
    return correlations({name: by_level[name].tolist() for name in MEASURES})


def described(found: pd.DataFrame) -> pd.DataFrame:
    """Return how the correlations spread over the data sets, as the tables of an experiment are written."""
    rows = []
    for keys, group in found.dropna(subset="r").groupby(["noise", "of", "with", "value"], sort=False):
        rows.append(
            {**dict(zip(("noise", "of", "with", "value"), keys, strict=True)), **Spread.of(group["r"]).to_dict()}
        )
    return pd.DataFrame(rows)


if __name__ == "__main__":
    folder, out = map(Path, sys.argv[1:])
    found = correlated(pd.read_parquet(folder / "results.parquet"))
    described(found).to_csv(out, index=False, float_format="%.6g")
    print(found.pivot(index=["noise", "value", "of", "with"], columns="data", values="r").round(2).to_string())
