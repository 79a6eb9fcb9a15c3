"""The paper's tests and its table 6, from the results of contexts.toml. Not private.

    python comparison.py FOLDER                # prints mann-whitney.csv, page-trend.csv, friedman.csv and table-6.csv
    python comparison.py FOLDER --out tables   # writes them into a folder
    python comparison.py FOLDER --commit       # writes them into results/, and beside what the paper has on the page

It reads FOLDER/results.parquet and FOLDER/times.parquet.

The paper tests each attribute by itself. Here a run, with the mean over its attributes, is the unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpframework.lab.evaluation import friedman, mann_whitney, page_trend
from dpframework.lab.experiment.user_functions import Code

FOLDER = Path(__file__).parent
PAGE = FOLDER.with_suffix(".md")
SETTINGS = ("published settings", "dp-dilca")
CONTEXTS = ("mean-su", "max-relevance", "max-dependency")
MEASURES = {"contexts": "adjusted_f_score", "distances": "pearson"}
LEVEL = 0.01
SHOWN = ("mann-whitney", "page-trend", "friedman", "table-6")


def against_noise(results: pl.DataFrame) -> pl.DataFrame:
    """Return on how many data sets runs are better than what comes of noise alone, by Mann and Whitney's test.

    The false discovery rate of all tests of a measure is held at 0.01 (Benjamini and Hochberg), as in the paper. There
    is a row a measure, settings and context, and a column an epsilon.
    """
    from scipy.stats import false_discovery_control

    rows = []
    for what, value in MEASURES.items():
        tested = []
        for settings, context, epsilon in _runs_of(results):
            at = {"context": context}
            for data in _data_with(results, value):
                found = _figures(results.filter(method=settings, data=data, epsilon=epsilon, **at), value)
                chance = _figures(results.filter(method="noise", data=data, **at), value)
                tested.append((settings, context, epsilon, mann_whitney(found, chance)))
        p_values = false_discovery_control([test.p_value for *_, test in tested])
        better = pl.DataFrame(
            [
                (settings, context, epsilon, bool(p <= LEVEL and test.effect > 0.5))
                for (settings, context, epsilon, test), p in zip(tested, p_values, strict=True)
            ],
            schema=["settings", "context", "epsilon", "better"],
            orient="row",
        )
        for (settings, context), group in better.group_by("settings", "context", maintain_order=True):
            counted = {
                f"epsilon {epsilon:g}": f"{some['better'].sum()} of {len(some)}"
                for (epsilon,), some in group.group_by("epsilon", maintain_order=True)
            }
            rows.append({"measure of": what, "settings": settings, "context": context, **counted})
    return pl.DataFrame(rows)


def trends(results: pl.DataFrame, paper: pl.DataFrame) -> pl.DataFrame:
    """Return Page's test of growth with epsilon, each repetition on each data set a subject, and the paper's p."""
    rows = []
    for what, value in MEASURES.items():
        for context in CONTEXTS:
            row: dict[str, Any] = {"measure of": what, "context": context}
            row["paper: p"] = f"{paper.filter(context=context)[what].item():.2g}"
            for settings in SETTINGS:
                runs = results.filter(
                    pl.col("data").is_in(_data_with(results, value)), method=settings, context=context
                )
                by_epsilon = runs.pivot("epsilon", index=["data", "repetition"], values=value, sort_columns=False)
                figures = by_epsilon.select([str(e) for e in sorted(runs["epsilon"].unique())]).to_numpy()
                test = page_trend(figures)
                row[f"{settings}: p"] = f"{test.p_value:.2g}"
            rows.append({**row, "subjects": str(test.shape[0])})
    return pl.DataFrame(rows)


def variants(results: pl.DataFrame) -> pl.DataFrame:
    """Return Friedman's and Nemenyi's tests of the three ways to select contexts, by the distances' correlation."""
    rows = []
    for settings in SETTINGS:
        runs = results.filter(
            pl.col("data").is_in(_data_with(results, "pearson")), pl.col("context").is_in(CONTEXTS), method=settings
        )
        means = runs.group_by("data", "epsilon", "context").agg(pl.col("pearson").mean())
        figures = means.pivot("context", index=["data", "epsilon"], values="pearson").select(CONTEXTS).to_numpy()
        test = friedman(figures, CONTEXTS)
        ranks = {f"rank of {name}": f"{rank:.2f}" for name, rank in zip(CONTEXTS, test.ranks, strict=True)}
        pairs = {
            f"{CONTEXTS[one]}, {CONTEXTS[other]}: p": f"{test.pair_p_values[one, other]:.2g}"
            for one, other in ((0, 1), (0, 2), (1, 2))
        }
        rows.append({"settings": settings, "Friedman: p": f"{test.p_value:.2g}", **ranks, **pairs})
    return pl.DataFrame(rows)


def times(results: pl.DataFrame, paper: pl.DataFrame) -> pl.DataFrame:
    """Return table 6: the paper's seconds and, at epsilon 1, the medians of ours."""
    data = results["data"].unique(maintain_order=True).to_list()
    rows = []
    for context in CONTEXTS:
        theirs = {name: f"{paper.filter(data=name)[context].item():.2f}" for name in data}
        rows.append({"context": context, "seconds of": "paper", **theirs})
        for settings in SETTINGS:
            runs = results.filter(method=settings, context=context, epsilon=1)
            ours = {name: f"{np.median(_figures(runs.filter(data=name), 'seconds')):.2f}" for name in data}
            rows.append({"context": context, "seconds of": settings, **ours})
    return pl.DataFrame(rows)


def _runs_of(results: pl.DataFrame) -> Iterator[tuple[str, str, float]]:
    epsilons = sorted(results["epsilon"].drop_nulls().unique())
    return ((settings, context, epsilon) for settings in SETTINGS for context in CONTEXTS for epsilon in epsilons)


def _data_with(results: pl.DataFrame, value: str) -> list[str]:
    """Return the data sets that have the value: where every attribute has two values, no distances correlate."""
    known = results.filter(pl.col(value).is_not_null() & pl.col(value).is_not_nan())
    return known["data"].unique(maintain_order=True).to_list()


def _figures(runs: pl.DataFrame, value: str) -> Any:
    return np.asarray(runs[value])


def written(page: str, folder: Path = FOLDER) -> str:
    """Return a page with the committed table under each comment that names it whole."""
    on_page = Code("table_files.py:on_page", FOLDER.parent).load()
    for name in SHOWN:
        page = on_page(
            page, f"all of dp-dilca/results/{name}.csv", (folder / "results" / f"{name}.csv").read_text("utf-8")
        )
    return page


def tables(folder: Path) -> dict[str, pl.DataFrame]:
    """Return the tables of an experiment's folder, by the names of their files."""
    results = pl.read_parquet(folder / "results.parquet").join(pl.read_parquet(folder / "times.parquet"), on="cell")
    return {
        "mann-whitney": against_noise(results),
        "page-trend": trends(results, pl.read_csv(FOLDER / "paper-table-5.csv")),
        "friedman": variants(results),
        "table-6": times(results, pl.read_csv(FOLDER / "paper-table-6.csv")),
    }


def fill_page() -> None:
    """Put the committed tables on the page."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    tables_command = Code("table_files.py:tables_command", FOLDER.parent).load()
    tables_command(__doc__, tables, FOLDER / "results", fill_page)
