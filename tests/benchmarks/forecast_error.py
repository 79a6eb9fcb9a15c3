"""Forecasts beside runs: what `dpframework forecast` says of time and memory, and what a run on other rows takes.

    python tests/benchmarks/forecast_error.py                     # ten miners, some two minutes of CPU
    python tests/benchmarks/forecast_error.py --only dp-id3 --tried 10000

The attributes of most tables depend on each other (see `kernel_time`), those of made-up rows do not. A run has a
process of its own. A forecast tries at most `--tried` rows, so that the rest is a guess.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import growth
import kernel_time
import prices

import dpframework as dpf
from dpframework.lab import run_cost_forecast as forecasts

HERE = Path(__file__).parent
TEN = partial(kernel_time.made, 10**6, 1)
BOUNDS = {"min_support": 10, "max_support": 150}
#: The table of each case, its miner, and the miner's parameters.
CASES: dict[str, tuple[Callable[[], dpf.Table], str, dict[str, Any]]] = {
    "histogram": (TEN, "histogram", {"attribute": "c0"}),
    "crosstab of three": (TEN, "crosstab", {"attributes": ["n0", "c0", "b0"]}),
    "marginals up to pairs": (TEN, "marginals", {"order": 2}),
    "dp-id3, depth 5": (TEN, "dp-id3", {"target": "b0", "max_depth": 5}),
    "dp-tree, exact, depth 2": (TEN, "dp-tree", {"target": "b0", "max_depth": 2, "sampler": "exact"}),
    "dp-dilca, max-relevance": (TEN, "dp-dilca", {"context": "max-relevance"}),
    "serenade-es": (TEN, "serenade-es", {}),
    "dp-additive, 100 attributes": (partial(growth.wide, 100, 10**5), "dp-additive", {"target": "y"}),
    "dp-tree, exact, 500 attributes": (
        partial(growth.wide, 500, 10**5),
        "dp-tree",
        {"target": "y", "max_depth": 2, "sampler": "exact"},
    ),
    "matched-trees, 313 + 52 attributes": (prices.two_views, "matched-trees", BOUNDS),
}


def study_of(name: str) -> tuple[dpf.Study, dpf.Table]:
    """Return the study of a case, and its table."""
    make, miner, parameters = CASES[name]
    table = attrs.evolve(make(), values={})  # none of the miners reads them
    study = dpf.Study(table.schema, epsilon=1, relation="replace-one")
    study.add("it", dpf.miner(miner, epsilon=1, **parameters))
    return study, table


def run_alone(name: str) -> None:
    """Run a case, and print its CPU seconds and the most memory of the process."""
    print(*forecasts.measure(*study_of(name)))


def main() -> None:
    """Read the command line, and print a line a case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], help="what is measured: beginnings of names")
    parser.add_argument("--tried", type=int, default=100_000, help="the most rows that a forecast tries")
    given = parser.parse_args()
    tried = tuple(size for size in forecasts.SIZES if size <= given.tried)
    print("| run | CPU s | forecast | ratio | MiB | forecast | ratio |\n|---|---|---|---|---|---|---|")
    for name in (name for name in CASES if name.startswith(tuple(given.only))):
        study, table = study_of(name)
        command = [sys.executable, "-c", f"import forecast_error; forecast_error.run_alone({name!r})"]
        ran = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True)
        seconds, megabytes = map(float, ran.stdout.split())
        found = forecasts.forecast(study, table.rows, sizes=tried)
        print(
            f"| {name} | {seconds:.2f} | {found.seconds:.2f} | {found.seconds / seconds:.2f} "
            f"| {megabytes:.0f} | {found.megabytes:.0f} | {found.megabytes / megabytes:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
