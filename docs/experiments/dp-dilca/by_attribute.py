"""Tables 3 and 4 and figure 9 of the paper, from the results of by-attribute.toml. Not private.

    python by_attribute.py FOLDER                # prints figure-9.csv, table-3.csv and table-4.csv
    python by_attribute.py FOLDER --out tables   # writes them into a folder
    python by_attribute.py FOLDER --commit       # writes them into results/, and beside the paper's on the page

It reads FOLDER/results.parquet. Each attribute is tested by itself, as in the paper: the scores of its runs beside
those of contexts and distances that are drawn, by Mann and Whitney's test. None of the paper's p-values exceeds one
half, so they are halves of two-sided ones, and so are ours. The paper holds the false discovery rate of all tests at
0.01 (Benjamini and Hochberg), and so do we, for contexts and for distances.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpframework.lab.evaluation import mann_whitney
from dpframework.lab.experiment.user_functions import Code

FOLDER = Path(__file__).parent
PAGE = FOLDER.with_suffix(".md")
DATA = ("dermatology", "soybean", "cmc", "mushroom", "nltcs", "adult")
LEVEL = 0.01
SCORES = {"f_score of ": "contexts", "pearson of ": "distances"}
SHOWN = ("figure-9", "table-3", "table-4")
TABLES = {"contexts": "3", "distances": "4"}


def tested(results: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each test.

    Columns: `of` ("contexts" or "distances"), `data`, `context`, `epsilon`, `attribute`, `p` (half of the two-sided
    one), and whether the runs are `better` than chance at a false discovery rate of 0.01.
    """
    from scipy.stats import false_discovery_control

    keys = ["data", "context", "epsilon"]
    rows: list[dict[str, Any]] = []
    for prefix, of in SCORES.items():
        first = len(rows)
        for column in (name for name in results.columns if name.startswith(prefix)):
            known = results.filter(pl.col(column).is_not_null())
            for (data, context, epsilon), runs in known.filter(method="published settings").group_by(
                keys, maintain_order=True
            ):
                chance = known.filter(method="chance", data=data, context=context)[column]
                test = mann_whitney(np.asarray(runs[column]), np.asarray(chance))
                at = {"of": of, "data": data, "context": context, "epsilon": epsilon}
                rows.append({**at, "attribute": column.removeprefix(prefix), "p": test.p_value / 2, "at": test.effect})
        adjusted = false_discovery_control([2 * row["p"] for row in rows[first:]])
        for row, p in zip(rows[first:], adjusted, strict=True):
            row["better"] = bool(p <= LEVEL) and row.pop("at") > 0.5
    return pl.DataFrame([{name: value for name, value in row.items() if name != "at"} for row in rows])


def share_better(tests: pl.DataFrame) -> pl.DataFrame:
    """Return figure 9: the percentage of attributes that are better than chance, a column an epsilon."""
    shares = tests.group_by("of", "data", "context", "epsilon", maintain_order=True).agg(
        (pl.col("better").mean() * 100).round(0).cast(pl.Int64), pl.len().alias("attributes")
    )
    across = _across(shares, ["of", "data", "attributes", "context"], "better")
    return across.sort("of", maintain_order=True)


def largest(tests: pl.DataFrame, of: str, paper: pl.DataFrame) -> pl.DataFrame:
    """Return table 3 or 4: the largest p-value of each data set, and the paper's, a column an epsilon."""
    ours = tests.filter(of=of).group_by("data", "epsilon", maintain_order=True).agg(pl.col("p").max())
    ours = _across(ours.with_columns(pl.col("p").map_elements(_short, pl.String)), ["data"], "p")
    theirs = paper.filter(table=TABLES[of]).drop("table").join(ours, on="data", how="semi")
    both = pl.concat(
        [ours.insert_column(1, pl.lit("here").alias("of")), theirs.insert_column(1, pl.lit("paper").alias("of"))]
    )
    return both.sort(pl.col("data").cast(pl.Enum(DATA)), pl.col("of"), descending=[False, True])


def _across(found: pl.DataFrame, index: list[str], value: str) -> pl.DataFrame:
    ordered = found.sort("epsilon", maintain_order=True).with_columns(pl.format("epsilon {}", pl.col("epsilon")))
    wide = ordered.pivot("epsilon", index=index, values=value, sort_columns=False)
    return wide.sort(pl.col("data").cast(pl.Enum(DATA)), maintain_order=True)


def _short(p: float) -> str:
    return f"{p:.1e}" if p < 0.01 else f"{p:.2f}"


def written(page: str, folder: Path = FOLDER) -> str:
    """Return a page with the committed table under each comment that names it."""
    on_page = Code("table_files.py:on_page", FOLDER.parent).load()
    for name in SHOWN:
        table = (folder / "results" / f"{name}.csv").read_text("utf-8")
        page = on_page(page, f"by attribute: {name}", table)
    return page


def tables(folder: Path) -> dict[str, pl.DataFrame]:
    """Return the tables of an experiment's folder, by the names of their files."""
    tests = tested(pl.read_parquet(folder / "results.parquet"))
    paper = pl.read_csv(FOLDER / "paper-tables-3-4.csv", infer_schema=False)
    found = {f"table-{number}": largest(tests, of, paper) for of, number in TABLES.items()}
    return {"figure-9": share_better(tests), **found}


def fill_page() -> None:
    """Put the committed tables on the page."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    tables_command = Code("table_files.py:tables_command", FOLDER.parent).load()
    tables_command(__doc__, tables, FOLDER / "results", fill_page)
