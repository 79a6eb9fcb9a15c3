"""What many tables and a synthetic table cost on 10^6 rows of 100 attributes, beside what is planned.

    python tests/benchmarks/wide_tables.py
    python tests/benchmarks/wide_tables.py --rows 100000 --attributes 50 --works pairs tree

Rows are made up: a chain, in which each attribute follows the one before it with probability .6. Attributes have 2, 4,
8 and 10 values in turn. Works are `pairs` (`marginals` of all pairs, zCDP), `largest` (the same with the objective
"largest"), `triples` (planned only: 166,750 tables) and `tree` (`synthetic-table` by its default method). Each runs in
a process of its own. Memory is beside the rows: above that of the same process with the rows and after a small study.

Planned are the most CPU seconds and MiB of a run, as the plan states them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

import numpy as np
from peers import peak_mib

import dpframework as dpf

SIZES = (2, 4, 8, 10)
FEW = 1000  # rows of a study that only loads what all studies need
WORKS = ("pairs", "largest", "triples", "tree")


def made(rows: int, attributes: int) -> dpf.Table:
    """Return a table of a chain."""
    rng = np.random.default_rng(0)
    codes = np.empty((attributes, rows), dtype=np.uint8)
    for k in range(attributes):
        size = SIZES[k % len(SIZES)]
        codes[k] = rng.integers(0, size, rows)
        if k:
            follows = rng.random(rows) < 0.6
            codes[k, follows] = codes[k - 1, follows] % size
    labels = [[str(v) for v in range(SIZES[k % len(SIZES)])] for k in range(attributes)]
    schema = dpf.Schema([dpf.Categorical(f"a{k}", own) for k, own in enumerate(labels)], about_rows=rows)
    return dpf.Table.from_codes(schema, codes)


def job(work: str, rows: int, attributes: int) -> dict[str, object]:
    """Plan and run one work, and return what it cost."""
    if rows > FEW:
        job(work, FEW, 4)
    table = made(rows, attributes)
    before, begun = peak_mib(), time.process_time()
    study = dpf.Study(table.schema, epsilon=1, delta="1e-9")
    if work == "tree":
        study.add("work", dpf.miner("synthetic-table", rho="0.014"))
    else:
        more = {"objective": "largest"} if work == "largest" else {"order": 3} if work == "triples" else {}
        study.add("work", dpf.miner("marginals", rho="0.014", **more))
    plan = study.plan()
    bounds, cost = len(plan.error_bounds()["work"]), plan.run_costs()["work"]
    stated = {"seconds": cost.seconds, "memory": cost.memory / 2**20}
    to_plan = time.process_time() - begun
    if work == "triples":
        return {"plan": to_plan, "bounds": bounds, "run": 0.0, "mib": peak_mib() - before, **stated}
    begun = time.process_time()
    found = study.run(table, seed=0)["work"]
    size = len(found.codes) if work == "tree" else len(found.tables)
    run = time.process_time() - begun
    return {"plan": to_plan, "run": run, "mib": peak_mib() - before, "size": size, "bounds": bounds, **stated}


def main() -> None:
    """Print a row for each work."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--attributes", type=int, default=100)
    parser.add_argument("--works", nargs="+", choices=WORKS, default=WORKS)
    parser.add_argument("--job", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        print(json.dumps(job(given.works[0], given.rows, given.attributes)))
        return
    print("| | plan, CPU s | run, CPU s | planned, CPU s | MiB beside the rows | planned, MiB |")
    print("|---|---|---|---|---|---|")
    for work in given.works:
        own = ["--job", "--works", work, "--rows", str(given.rows), "--attributes", str(given.attributes)]
        done = subprocess.run([sys.executable, __file__, *own], capture_output=True, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        cells = [f"{found[name]:.1f}" for name in ("plan", "run", "seconds", "mib", "memory")]
        print(f"| {work} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
