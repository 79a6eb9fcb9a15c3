"""Quality of Serenade's redescriptions beside greedy mining without privacy, as tables in Markdown.

    python tests/benchmarks/compare_serenade.py species clinic --runs 10

Every private setting is run with the same seeds. Columns: median and quartiles of the exact Jaccard index; Spearman
correlation of noisy and exact indices over all runs; share of redescriptions with an exact p-value below 0.01; share
that holds for more than 80 % of the rows; how many a run returns; seconds a run.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from dpframework_greedy import SerenadeCS, SerenadeES, greedy_without_privacy
from redescription_tasks import TASKS, default_data, task, two_view_table
from scipy.stats import spearmanr

import dpframework as dpf
from dpframework.lab.evaluation import exact_counts
from dpframework.redescriptions.redescriptions import Redescriptions

EPSILONS = ("0.5", "1", "10", "100")
PUBLISHED: dict[str, dict[str, Any]] = {
    "ES": {"pairs": 20, "rounds": 80, "budget": "d3", "score": "logistic"},
    "CS": {"pairs": 20, "extensions": 4, "budget": "d3", "score": "logistic"},
}
KINDS = {"ES": SerenadeES, "CS": SerenadeCS}
HEADING = (
    "| setting | epsilon | Jaccard (quartiles) | Spearman | p < .01 | near-tautologies | found | seconds |\n"
    "|---|---|---|---|---|---|---|---|"
)


def study_of(table: dpf.Table, miner: dpf.Miner, *, delta: Any = 0, epsilon: Any = None) -> dpf.Study:
    """Return a study of one miner under the relation that a public row count goes with."""
    study = dpf.Study(table.schema, epsilon=epsilon or miner.epsilon, relation="replace-one", delta=delta)
    study.add("found", miner)
    return study


def row(name: str, epsilon: str, table: dpf.Table, runs: int, find: Callable[[int], Redescriptions]) -> str:
    """Make all runs, and return a line of the table."""
    started = time.perf_counter()
    results = [find(seed) for seed in range(runs)]
    seconds = (time.perf_counter() - started) / runs
    found = [one for result in results for one in result]
    if not found:
        return f"| {name} | {epsilon} | none | | | | 0 | {seconds:.2f} |"
    exact = exact_counts(found, table)
    true, noisy = [one.jaccard for one in exact], [one.jaccard for one in found]
    low, middle, high = np.quantile(true, [0.25, 0.5, 0.75])
    spread = min(np.ptp(true), np.ptp(noisy)) > 0
    correlation = f"{spearmanr(true, noisy).statistic:.2f}" if spread else ""
    telling = np.mean([one.p_value is not None and one.p_value < 0.01 for one in exact])
    wide = np.mean([one.both.value > 0.8 * table.codes.shape[1] for one in exact])
    return (
        f"| {name} | {epsilon} | {middle:.2f} ({low:.2f} to {high:.2f}) | {correlation} | {telling:.2f} | {wide:.2f} | "
        f"{len(found) / runs:.1f} | {seconds:.2f} |"
    )


def equal_total(table: dpf.Table, kind: type[Any], settings: dict[str, Any], epsilon: float, delta: str) -> str:
    """Return the pure epsilon of a miner whose zcdp total is a given epsilon, by bisection."""
    low, high = epsilon, 100 * epsilon
    for _ in range(20):
        middle = (low + high) / 2
        total = study_of(table, kind(epsilon=middle, **settings), delta=delta, epsilon=10**6).plan().total()
        low, high = (middle, high) if float(total.epsilon or 0) <= epsilon else (low, middle)
    return f"{math.floor(low * 1000) / 1000:.3f}"


def report(table: dpf.Table, runs: int) -> None:
    """Print the table of one data set."""
    rows = table.codes.shape[1]
    support = {"min_support": rows // 10, "max_support": 7 * rows // 10}
    print(HEADING)
    print(row("greedy, not private", "", table, 1, lambda _: greedy_without_privacy(table, **support)))
    for epsilon in EPSILONS:
        for kind, miner in KINDS.items():
            settings: dict[str, dict[str, Any]] = {
                f"{kind}, default": {},
                f"{kind}, published score": {"score": "logistic"},
                f"{kind}, 20 pairs, extensions that pay": {"pairs": 20, "score": "logistic"},
                f"{kind}, as many as published": PUBLISHED[kind],
            }
            if kind == "ES":
                settings["pairs only, 20"] = {"pairs": 20, "budget": ["0.9", 0, "0.1"], "score": "logistic"}
                settings["ES without the lower sensitivity"] = {**PUBLISHED[kind], "score": "jaccard"}
            for name, given in settings.items():
                given = {**support, **given} if given.get("score") == "logistic" else given
                studied = study_of(table, miner(epsilon=epsilon, **given))
                print(row(name, epsilon, table, runs, lambda k, s=studied: s.run(table, seed=k)["found"]), flush=True)
    for epsilon in (1.0, 10.0):
        for kind, miner in KINDS.items():
            given = {**support, **PUBLISHED[kind]}
            pure = equal_total(table, miner, given, epsilon, "1e-6")
            studied = study_of(table, miner(epsilon=pure, **given), delta="1e-6", epsilon=epsilon)
            name = f"{kind}, as many, delta 1e-6 (pure {pure})"
            print(
                row(name, f"{epsilon:g}", table, runs, lambda k, s=studied: s.run(table, seed=k)["found"]), flush=True
            )


def main() -> None:
    """Read the command line, and print a table a data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=list(TASKS), help="data sets, of " + ", ".join(TASKS))
    parser.add_argument("--views", nargs=2, type=Path, metavar=("LEFT", "RIGHT"), help="two CSV files instead")
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--runs", type=int, default=10)
    given = parser.parse_args()
    tables = (
        {given.views[0].stem: two_view_table(*given.views)}
        if given.views
        else {name: task(name, given.data) for name in given.tasks}
    )
    for name, table in tables.items():
        print(f"\n{name}: {table.codes.shape[1]} rows, {len(table.schema)} attributes\n")
        report(table, given.runs)


if __name__ == "__main__":
    main()
