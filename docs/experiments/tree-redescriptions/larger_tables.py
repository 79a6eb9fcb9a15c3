"""The paper's tables 3 to 5 on CMS-2-4, -8 and -16, from the results of larger-tables.toml. Not private.

    python larger_tables.py RESULTS.parquet                # prints the tables
    python larger_tables.py RESULTS.parquet --out tables   # writes them into a folder
    python larger_tables.py RESULTS.parquet --commit       # writes them into results/ and onto the page

Of tables 4 and 5 there are the medians over runs without a test, which too few runs would not bear: `comparison.py` has
it for the smaller tables. A method that found something in fewer than two of several runs is left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl

from dpframework.lab.experiment.user_functions import Code

FOLDER = Path(__file__).parent
DATA = ("cms-like-4", "cms-like-8", "cms-like-16")
EPSILONS = (1, 0.1, 0.01)
LEAST_RUNS = 2
#: Of each table of the paper the value of a run, and whether the largest is the best.
VALUES = {4: ("jaccard", True), 5: ("error", False)}
MARKED = re.compile(r"^(?P<comment><!-- larger: table (?P<name>[\w ]+) -->)\n(?:\n?(?:\|.*\n)+)?", re.M)


def medians(results: pl.DataFrame) -> pl.DataFrame:
    """Return, for each table, data set, epsilon and method, the median over the runs that found something."""
    some = results.filter(pl.col("count") > 0)
    keys = ["data", "epsilon", "method"]
    frames = [
        some.group_by(keys, maintain_order=True)
        .agg(pl.col(value).median().round(4).alias("median"), pl.len().alias("runs"))
        .insert_column(0, pl.lit(table).alias("table"))
        for table, (value, _) in VALUES.items()
    ]
    return pl.concat(frames)


def shown_table_3(found: pl.DataFrame, paper: pl.DataFrame) -> list[list[str]]:
    """Return Table 3 beside the paper's: percent significant / redescriptions a run / runs that found some."""
    names = _known(found)
    rows = [["epsilon", "approach", *(f"{text}{name}" for name in names for text in ("paper: ", ""))]]
    for line in paper.iter_rows(named=True):
        at = {"epsilon": line["epsilon"], "method": line["method"]}
        pairs = [(f"{line[name]}", _found(found, data=name, **at)) for name in names]
        rows.append([f"{line['epsilon']:g}", line["method"], *(cell for pair in pairs for cell in pair)])
    return rows


def _known(found: pl.DataFrame) -> list[str]:
    """Return the data sets that there are results of."""
    return [name for name in DATA if name in set(found["data"])]


def _found(found: pl.DataFrame, **at: Any) -> str:
    (row,) = found.filter(**at).to_dicts()
    if not row["runs with some"]:
        return "none"
    number = row["redescriptions"]
    return f"{row['significant']:.0f} / {number:.{0 if number >= 10 else 1}f} / {row['runs with some']}"


def shown_medians(found: pl.DataFrame, paper: pl.DataFrame) -> list[list[str]]:
    """Return tables 4 and 5: the paper's best method, and ours in order, each with its median."""
    heads = (f"table {table}: {whose}" for table in VALUES for whose in ("paper", "here"))
    rows = [["data", "epsilon", "stable", *heads]]
    for data in _known(found):
        least = min(LEAST_RUNS, max(found.filter(data=data)["runs"]))  # of a single run nothing can be left out
        for epsilon in EPSILONS:
            for stable in ("no", "yes"):
                line = [data, f"{epsilon:g}", stable]
                for table, (_, larger) in VALUES.items():
                    (best,) = paper.filter(table=table, data=data, epsilon=epsilon, stable=stable)["best"]
                    ours = found.filter(table=table, data=data, epsilon=epsilon)
                    line += [best, _in_order(ours, stable, least, larger=larger)]
                rows.append(line)
    return rows


def _in_order(found: pl.DataFrame, stable: str, least: int, *, larger: bool) -> str:
    comparison = Code("comparison.py:_belongs", FOLDER).load()
    short = Code("comparison.py:_short", FOLDER).load()
    known = found.filter(pl.col("runs") >= least).sort("median", descending=larger).to_dicts()
    ours = [f"{short(row['method'])} {row['median']:.2g}" for row in known if comparison(row["method"], stable)]
    return "; ".join([f"**{ours[0]}**", *ours[1:]]) if len(ours) > 1 else "too few"


def tables(results: Path) -> dict[str, pl.DataFrame]:
    """Return the tables of the results, by the names of their files."""
    frame = pl.read_parquet(results)
    return {"larger-table-3": Code("comparison.py:table_3", FOLDER).load()(frame), "larger-tables-4-5": medians(frame)}


def tables_of_the_page(folder: Path = FOLDER) -> dict[str, str]:
    """Return the page's tables by name, from the committed files."""
    found = {
        name: (pl.read_csv(folder / "results" / f"larger-{name}.csv"), pl.read_csv(folder / f"paper-larger-{name}.csv"))
        for name in ("table-3", "tables-4-5")
    }
    shown = {
        "3": shown_table_3(*found["table-3"]),
        "4 and 5": shown_medians(*found["tables-4-5"]),
    }
    markdown = Code("comparison.py:markdown", FOLDER).load()
    return {name: markdown(rows) for name, rows in shown.items()}


def written(page: str, tables: dict[str, str]) -> str:
    """Return a page with a table under each comment `<!-- larger: table NAME -->`."""
    return MARKED.sub(lambda found: f"{found.group('comment')}\n\n{tables[found.group('name')]}\n", page)


def fill_page() -> None:
    """Put the committed tables on the page."""
    page = FOLDER.with_suffix(".md")
    page.write_text(written(page.read_text(encoding="utf-8"), tables_of_the_page()), encoding="utf-8")


if __name__ == "__main__":
    tables_command = Code("table_files.py:tables_command", FOLDER.parent).load()
    tables_command(__doc__, tables, FOLDER / "results", fill_page)
