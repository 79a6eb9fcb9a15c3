"""The paper's tables 3 to 5 from the results of tables-3-to-5.toml. Not private.

    python comparison.py RESULTS.parquet                # prints table-3.csv, tables-4-5.csv and settings.csv
    python comparison.py RESULTS.parquet --out tables   # writes them into a folder
    python comparison.py RESULTS.parquet --commit       # writes them into results/, and beside the paper's on the page

Table 3 pools the redescriptions of all runs, as the paper does. Tables 4 and 5 compare runs, each by the median of its
redescriptions: those of one run share their trees and noise, so a test that takes them for independent, as the
paper's, finds differences too easily. Ours is two-sided, and leaves out methods with fewer than `LEAST_RUNS` runs that
found something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpframework.lab.evaluation import mann_whitney
from dpframework.lab.experiment.user_functions import Code

FOLDER = Path(__file__).parent
LEAST_RUNS = 4
DEFAULTS = "defaults"
PAPER_DATA = ("mammal-like", "cms-like")
DATA = (*PAPER_DATA, "species")
KINDS = ("", ", defaults")
MARKED = re.compile(r"^(?P<comment><!-- table (?P<name>\d(?:, defaults)?|of settings) -->)\n(?:\n?(?:\|.*\n)+)?", re.M)
SHORT = {"AltMCMC": "S", "AltExpM": "EM", "MCMCTreePair": "M", "MCMCTreePair b": "Mb"}
"""The paper's names in tables 4 and 5, where "stable" tells the two settings of the first two apart."""


def table_3(results: pl.DataFrame) -> pl.DataFrame:
    """Return, for each data set, epsilon, settings and method, what its runs found.

    Columns: `runs`, `runs with some`, `redescriptions` a run, and `significant`: the percentage of all of them.
    """
    keys = ["data", "epsilon", "settings", "method"]
    significant = (pl.col("count") * pl.col("significant").fill_nan(0)).sum() / pl.col("count").sum() * 100
    return (
        _with_settings(results)
        .group_by(keys, maintain_order=True)
        .agg(
            pl.len().alias("runs"),
            (pl.col("count") > 0).sum().alias("runs with some"),
            pl.col("count").mean().round(4).alias("redescriptions"),
            significant.round(2).alias("significant"),
        )
    )


def tables_4_and_5(results: pl.DataFrame) -> pl.DataFrame:
    """Return the comparisons of the best method with each other one, in every data set, epsilon and settings.

    Columns: `table` (4 of the true Jaccard index, the larger the better; 5 of the error of the noisy one), `stable`
    (of the settings "published" and "tight", as in the paper), `best`, `other`, their medians over runs, and `p`.
    """
    rows: list[dict[str, Any]] = []
    for (data, epsilon, settings), group in _with_settings(results).group_by(
        ["data", "epsilon", "settings"], maintain_order=True
    ):
        for table, value in ((4, "jaccard"), (5, "error")):
            for stable in ("",) if settings == DEFAULTS else ("no", "yes"):
                place = {"table": table, "data": data, "epsilon": epsilon, "settings": settings, "stable": stable}
                samples = {
                    name: figures
                    for name in group["method"].unique(maintain_order=True)
                    if _belongs(name, stable)
                    and len(figures := _figures(group.filter(pl.col("method") == name)[value])) >= LEAST_RUNS
                }
                rows += [place | row for row in _against_the_best(samples, larger=table == 4)]
    return pl.DataFrame(rows)


def table_of_settings(results: pl.DataFrame) -> pl.DataFrame:
    """Return what the runs of all methods found under each settings, by data set and epsilon.

    Columns: `significant` redescriptions a run, and, of runs that found some, the medians of `support` (rows),
    `jaccard` and `error`.
    """
    some = pl.col("count") > 0
    return (
        _with_settings(results)
        .group_by(["data", "epsilon", "settings"], maintain_order=True)
        .agg(
            (pl.col("count") * pl.col("significant").fill_nan(0)).mean().round(2).alias("significant"),
            *(pl.col(value).filter(some).median().round(4) for value in ("support", "jaccard", "error")),
        )
    )


def _with_settings(results: pl.DataFrame) -> pl.DataFrame:
    return results.with_columns(pl.col("sensitivity").fill_null(DEFAULTS).alias("settings"))


def _belongs(method: str, stable: str) -> bool:
    """Tell whether a method is compared: of two settings of the alternating ones, only the stable one, or the other."""
    return not method.startswith("Alt") or method.endswith(" S") == (stable == "yes")


def _figures(column: pl.Series) -> list[float]:
    return column.drop_nulls().drop_nans().to_list()


def _against_the_best(samples: dict[str, list[float]], *, larger: bool) -> Iterator[dict[str, Any]]:
    medians = {name: float(np.median(figures)) for name, figures in samples.items()}
    if len(medians) < 2:
        return
    best = (max if larger else min)(medians, key=medians.__getitem__)
    for other in samples:
        if other != best:
            p = mann_whitney(samples[best], samples[other]).p_value
            yield {
                "best": best,
                "best median": round(medians[best], 4),
                "other": other,
                "other median": round(medians[other], 4),
                "p": float(f"{p:.2g}"),
            }


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return a table, its first row the heading."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def shown_table_3(found: pl.DataFrame, paper: pl.DataFrame) -> tuple[str, str]:
    """Return Table 3 beside the paper's, and that of the defaults: percent significant / a run / runs with some."""

    def cell(**at: Any) -> str:
        (row,) = found.filter(**at).to_dicts()
        if not row["runs with some"]:
            return "none"
        number, some = row["redescriptions"], row["runs with some"]
        return f"{row['significant']:.0f} / {number:.{0 if number >= 10 else 1}f} / {some}"

    headings = ["epsilon", "approach", "paper: MAMMAL", "mammal-like", "tight", "paper: CMS-2-1", "cms-like", "tight"]
    rows = [[*headings, "species", "tight"]]
    for epsilon, method, mammal, cms in paper.iter_rows():
        ours = [
            cell(data=data, epsilon=epsilon, method=method, settings=settings)
            for data in DATA
            for settings in ("published", "tight")
        ]
        rows.append([f"{epsilon:g}", method, f"{mammal}", *ours[:2], f"{cms}", *ours[2:]])
    defaults = [["epsilon", "miner", "mammal-like", "cms-like", "species"]]
    for epsilon, method in (
        found.filter(settings=DEFAULTS).select("epsilon", "method").unique(maintain_order=True).rows()
    ):
        at = {"epsilon": epsilon, "method": method, "settings": DEFAULTS}
        defaults.append([f"{epsilon:g}", method, *(cell(data=data, **at) for data in DATA)])
    return markdown(rows), markdown(defaults)


def shown_settings(found: pl.DataFrame) -> str:
    """Return the table of settings, settings across."""
    settings = found["settings"].unique(maintain_order=True).to_list()
    lines = [["data", "epsilon", *settings]]
    for (data, epsilon), group in found.group_by(["data", "epsilon"], maintain_order=True):
        rows = {row["settings"]: row for row in group.to_dicts()}
        lines.append([str(data), f"{epsilon:g}", *(_in_short(rows[name]) for name in settings)])
    return markdown(lines)


def _in_short(row: Mapping[str, Any]) -> str:
    number = f"{row['significant']:.{0 if row['significant'] >= 10 else 1}f}"
    if row["support"] is None:
        return f"{number} / none"
    return f"{number} / {row['support']:,.0f} / {row['jaccard']:.2f} / {row['error']:.3f}"


def shown_comparison(number: int, found: pl.DataFrame, paper: pl.DataFrame) -> tuple[str, str]:
    """Return Table 4 or 5 beside the paper's, and that of the defaults: the best, then each other one with its p.

    Ours show medians too.
    """
    found, paper = found.filter(table=number), paper.filter(table=number)

    def ours(**at: Any) -> str:
        rows = found.filter(**at).to_dicts()
        if not rows:
            return "too few"
        best = f"**{_short(rows[0]['best'])}** {rows[0]['best median']:.2g}"
        return "; ".join(
            [best, *(f"{_short(row['other'])} {row['other median']:.2g}, p {_p(row['p'])}" for row in rows)]
        )

    def theirs(**at: Any) -> str:
        rows = paper.filter(**at).rows(named=True)
        return "; ".join([f"**{rows[0]['best']}**", *(f"{row['other']} {row['p']}" for row in rows)])

    lines = [["data", "epsilon", "stable", "paper: p", "published settings: median, p"]]
    defaults = [["data", "epsilon", "defaults: median, p"]]
    for data in DATA:
        for epsilon in (1, 0.1, 0.01):
            at = {"data": data, "epsilon": epsilon}
            defaults.append([data, f"{epsilon:g}", ours(settings=DEFAULTS, **at)])
            for stable in ("no", "yes"):
                published = theirs(stable=stable, **at) if data in PAPER_DATA else ""
                lines.append([data, f"{epsilon:g}", stable, published, ours(settings="published", stable=stable, **at)])
    return markdown(lines), markdown(defaults)


def _short(method: str) -> str:
    return SHORT.get(method.removesuffix(" S"), method)


def _p(p: float) -> str:
    return f"{p:.2g}" if p >= 0.0001 else "<0.0001"


def tables_of_the_page(folder: Path = FOLDER) -> dict[str, str]:
    """Return the page's tables by name, from the committed files."""
    ours, paper = (pl.read_csv(path) for path in (folder / "results" / "table-3.csv", folder / "paper-table-3.csv"))
    found = pl.read_csv(folder / "results" / "tables-4-5.csv")
    printed = pl.read_csv(folder / "paper-tables-4-5.csv", schema_overrides={"p": pl.String})
    tables = {"3": shown_table_3(ours, paper)}
    tables |= {str(number): shown_comparison(number, found, printed) for number in (4, 5)}
    shown = {f"{name}{kind}": text for name, pair in tables.items() for kind, text in zip(KINDS, pair, strict=True)}
    return shown | {"of settings": shown_settings(pl.read_csv(folder / "results" / "settings.csv"))}


def written(page: str, tables: Mapping[str, str]) -> str:
    """Return a page with a table under each comment `<!-- table NAME -->`."""
    return MARKED.sub(lambda found: f"{found.group('comment')}\n\n{tables[found.group('name')]}\n", page)


def tables(results: Path) -> dict[str, pl.DataFrame]:
    """Return the tables of the results, by the names of their files."""
    frame = pl.read_parquet(results)
    return {"table-3": table_3(frame), "tables-4-5": tables_4_and_5(frame), "settings": table_of_settings(frame)}


def fill_page() -> None:
    """Put the committed tables on the page."""
    page = FOLDER.with_suffix(".md")
    page.write_text(written(page.read_text(encoding="utf-8"), tables_of_the_page()), encoding="utf-8")


if __name__ == "__main__":
    tables_command = Code("table_files.py:tables_command", FOLDER.parent).load()
    tables_command(__doc__, tables, FOLDER / "results", fill_page)
