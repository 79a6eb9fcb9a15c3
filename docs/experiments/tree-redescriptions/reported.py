"""Table 2 and figures 2 to 5 of the paper: noisy and true Jaccard indices of each redescription. Not private.

    python reported.py                 # prints the two tables
    python reported.py --out FOLDER    # writes them and the pictures into a folder, which is made
    python reported.py --commit        # writes them into results/, and the tables onto the page

It takes --runs (4), and reads DPFRAMEWORK_DATA for the table of species. With epsilon 1 and the
paper's settings, AltMCMC and AltExpM alternate from one drawn attribute. The bands of the true index stand beside
those of trees without privacy (`clired.py`), on the first table of each kind.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dpframework as dpf
from dpframework.lab.evaluation import redescription_quality
from dpframework.lab.experiment.user_functions import Code
from dpframework.redescriptions.redescription import p_values

FOLDER = Path(__file__).parent
PAGE = FOLDER.with_suffix(".md")
RUNS, SEED, EPSILON = 4, 2023, 1.0
SIGNIFICANT = 0.01
BANDS = (0, 0.2, 0.4, 0.6, 0.8, 1)
#: Of the paper: InTr, the share of trees if all parts are equal, least support, and least noisy support after pruning.
DATA: Mapping[str, tuple[int, str, int, int]] = {
    "mammal-like": (4, "5/9", 10, 500),
    "cms-like": (20, "21/41", 100, 1000),
    "npas-like": (4, "5/9", 10, 200),
    "mimic-like": (20, "21/41", 100, 1000),
    "species": (4, "5/9", 10, 500),
}
METHODS: Mapping[str, Mapping[str, Any]] = {
    "AltMCMC": {"miner": "alt-mcmc", "sampler": "mcmc"},
    "AltExpM": {"miner": "alt-expm"},
    "MCMCTreePair": {"miner": "mcmc-tree-pair", "sampler": "mcmc", "tree_share": 0.1},
}


def table_of(name: str, seed: int) -> dpf.Table:
    """Return a table: made up anew for each seed, or the one of species."""
    if name != "species":
        made: dpf.Table = Code(f"generators.py:{name.replace('-', '_')}", FOLDER).load()(seed=seed)
        return made
    folder = Path(os.environ["DPFRAMEWORK_DATA"]) / "species_climate_SA"
    left, right = (pl.read_csv(folder / file) for file in ("left_species.csv", "right_climate.csv"))
    return dpf.table_from_frame(left.join(right, on="id"), dpf.Schema.load(FOLDER / "species.schema.toml"))


def points(runs: int) -> pl.DataFrame:
    """Return a line for each redescription: `data`, `method`, `run`, `noisy`, `true`, `kept`, `significant`."""
    run_of = Code("published.py:from_drawn_starts", FOLDER).load()
    lines = []
    for data, (starts, equal, least, pruned_at) in DATA.items():
        for run in range(runs):
            table = table_of(data, SEED + run)
            for method, params in METHODS.items():
                alternates = method.startswith("Alt")
                number = {"number": 1, "rounds": starts, "tree_share": equal} if alternates else {"number": starts}
                of = {"max_depth": 4, "sensitivity": "published", "constraints": {"min_support": least}}
                found = run_of(table, seed=SEED + run, epsilon=EPSILON, **params, **number, **of)
                quality = redescription_quality(found, table)
                for k, one in enumerate(found):
                    own = {"noisy": quality.noisy[k], "true": quality.true[k]}
                    good = bool(quality.p_values[k] <= SIGNIFICANT)
                    kept = one.support.value >= pruned_at
                    lines.append({"data": data, "method": method, "run": run, **own, "kept": kept, "significant": good})
    return pl.DataFrame(lines)


def without_privacy() -> pl.DataFrame:
    """Return the same columns of SplitT's and LayeredT's redescriptions, whose noisy index is the true one."""
    found_by, lines = Code("clired.py:found_by", FOLDER).load(), []
    for data, (_, _, least, pruned_at) in DATA.items():
        table = table_of(data, SEED)
        for method in ("SplitT", "LayeredT"):
            for left, right in found_by(table, layered=method == "LayeredT", least=least):
                both, either = int((left & right).sum()), int((left | right).sum())
                p = p_values(*(np.array([n]) for n in (both, left.sum(), right.sum())), rows=len(left))
                own = {"noisy": both / either, "true": both / either, "significant": bool(p[0] <= SIGNIFICANT)}
                lines.append({"data": data, "method": method, "run": 0, "kept": both >= pruned_at, **own})
    return pl.DataFrame(lines)


def correlations(found: pl.DataFrame) -> pl.DataFrame:
    """Return table 2: the median over runs of Spearman's correlation of what pruning leaves, and how many have one.

    `p` is the median of its p-values. Redescriptions of one run share trees and noise, so that p is too small, as it is
    in the paper. A run needs four redescriptions for one.
    """
    from scipy.stats import spearmanr

    lines = []
    for data in DATA:
        for method in METHODS:
            of_runs = []
            for _, run in found.filter(pl.col("kept"), data=data, method=method).group_by("run", maintain_order=True):
                if len(run) > 3 and min(run["noisy"].n_unique(), run["true"].n_unique()) > 1:
                    test = spearmanr(run["noisy"], run["true"])
                    of_runs.append((float(test.statistic), float(test.pvalue)))
            rho, p = (f"{value:.2g}" for value in np.median(of_runs, axis=0)) if of_runs else ("", "")
            lines.append({"data": data, "method": method, "rho": rho, "p": p, "runs": len(of_runs)})
    return pl.DataFrame(lines)


def bands(found: pl.DataFrame, runs: int) -> pl.DataFrame:
    """Return figures 4 and 5: redescriptions a run by the band of their true index, kept / all, and significance."""
    lines = []
    for data in DATA:
        for method in [*METHODS, "SplitT", "LayeredT"]:
            own = found.filter(data=data, method=method)
            number = runs if method in METHODS else 1
            line = {"data": data, "method": method}
            for low, high in itertools.pairwise(BANDS):
                within = own.filter((pl.col("true") >= low) & ((pl.col("true") < high) | (high == BANDS[-1])))
                line[f"{low:g} to {high:g}"] = f"{within['kept'].sum() / number:.1f} / {len(within) / number:.1f}"
            kept = own.filter("kept")
            line["significant"] = f"{kept['significant'].mean():.0%}" if len(kept) else "none"
            lines.append(line)
    return pl.DataFrame(lines)


def draw(found: pl.DataFrame, path: Path) -> None:
    """Draw figures 2 and 3: a point a redescription of the first run, the pruned ones as diamonds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 13), layout="constrained")
    grid = figure.subplots(len(DATA), len(METHODS), sharex=True, sharey=True)
    first = found.filter(run=0)
    for (row, data), (column, method) in [(r, c) for r in enumerate(DATA) for c in enumerate(METHODS)]:
        axes = grid[row, column]
        for kept, good, colour, marker in _looks():
            own = first.filter(data=data, method=method, kept=kept)
            own = own if good is None else own.filter(significant=good)
            axes.plot(own["true"], own["noisy"], marker, color=colour, markersize=4, linestyle="", alpha=0.6)
        axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.7)
        axes.set_title(f"{data}, {method}", fontsize=9)
    figure.supxlabel("true Jaccard index")
    figure.supylabel("noisy Jaccard index")
    figure.savefig(path, dpi=45)


def _looks() -> Iterator[tuple[bool, bool | None, str, str]]:
    yield False, None, "0.75", "D"
    yield True, True, "#4c9be8", "o"
    yield True, False, "#123a6b", "o"


def main(arguments: list[str] | None = None) -> None:
    """Compute everything, then write it."""
    given = Code("table_files.py:asked_runs", FOLDER.parent).load()(__doc__, RUNS, "species_climate_SA/", arguments)
    found = points(given.runs)
    every = pl.concat([found, without_privacy().select(found.columns)])
    tables = {"table-2": correlations(found), "figures-4-5": bands(every, given.runs)}
    pictures = {"figures-2-3.png": lambda path: draw(found, path)}
    Code("table_files.py:write_tables", FOLDER.parent).load()(tables, pictures, given.out, given.commit, FOLDER)


if __name__ == "__main__":
    main()
