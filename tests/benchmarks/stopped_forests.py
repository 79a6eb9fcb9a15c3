"""Whether a forest of matched trees that stops early, in a block, would find more than one whose size is planned.

    python tests/benchmarks/stopped_forests.py --data FOLDER

A planned forest of k trees gives each a k-th of the budget. One that stops after j of them has made their choices at
that price, and has the rest for tables of leaves. So it is simulated by a forest of j trees whose choices cost a j-th
of k of what they would, as if it had known when to stop, at no cost: no rule of stopping does better with those j
trees. Figures are useful redescriptions in a run, means of seeded runs (see `compare_useful.py`).
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path

import numpy as np
from dpframework_trees.redescribe import matched_trees
from redescription_tasks import task

import dpframework as dpf
from dpframework.lab.evaluation import redescription_quality

TASKS = ("species", "teeth", "clinic")
CHOICES = matched_trees.CHOICES


def useful(table: dpf.Table, epsilon: str, trees: int, choices: Fraction, runs: int) -> float:
    """Return the mean number of useful redescriptions of so many trees, with a share of the budget for choices."""
    matched_trees.CHOICES = choices
    try:
        study = dpf.Study(table.schema, epsilon=epsilon)
        study.add("found", dpf.miner("matched-trees", trees=trees, epsilon=epsilon))
        found = [study.run(table, seed=seed)["found"] for seed in range(runs)]
    finally:
        matched_trees.CHOICES = CHOICES
    return float(np.mean([redescription_quality(one, table).useful.sum() for one in found]))


def main() -> None:
    """Print a row for each table and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--epsilon", nargs="+", default=["0.1", "0.3", "1", "3"])
    given = parser.parse_args()
    print("| table | epsilon | planned trees | found | stopped after 1 | 2 | 3 | 4 | 6 | 8 |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in TASKS:
        table = task(name, given.data)
        for epsilon in given.epsilon:
            miner = dpf.miner("matched-trees", epsilon=epsilon)
            planned = miner.number(table.schema)
            cells = [f"{useful(table, epsilon, planned, CHOICES, given.runs):.1f}"]
            for trees in (1, 2, 3, 4, 6, 8):
                choices = CHOICES * Fraction(trees, planned)
                cells.append(f"{useful(table, epsilon, trees, choices, given.runs):.1f}" if trees < planned else "")
            print(f"| {name} | {epsilon} | {planned} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
