"""Accuracy / AUC and log-loss of sampled and of grown trees, and of an additive model, where rows are few.

    python tests/benchmarks/chosen_trees.py mushroom species nursery --each 3 10 30 49

A line for each task and number of rows times epsilon for each attribute and output: `dp-classifier` takes an additive
model from 50 on, and a tree below (figures are in `docs/classifiers.md`). Means over five folds of seeded fits.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from benchmark_tasks import default_data
from classifier_goals import table_of
from compare_classifiers import FOLDS, METHODS, classes_of, fitted, folds_of, measures
from dpframework_trees import DPID3, DPTree

import dpframework as dpf

LEVELS = {
    **{f"sampled-{d}": lambda target, epsilon, d=d: DPTree(target, epsilon, max_depth=d) for d in range(2, 6)},
    **{f"grown-{d}": lambda target, epsilon, d=d: DPID3(target, epsilon, max_depth=d) for d in range(3, 6)},
}


def scores(table: dpf.Table, target: str, method: str, epsilon: float, fits: int) -> dict[str, float]:
    """Return the means of some fits a fold."""
    found = []
    for fold, (train, test) in enumerate(folds_of(table)):
        for repeat in range(fits):
            predicted, _ = fitted(method, epsilon, train, test, target, 100 * fold + repeat)
            found.append(measures(predicted, classes_of(test, target)))
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


def main() -> None:
    """Print a row of a table for each task and size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--each", type=float, nargs="+", default=[3, 10, 30, 49])
    parser.add_argument(
        "--methods",
        nargs="+",
        default=["dp-classifier", "dp-additive", *LEVELS],
        choices=["dp-classifier", "dp-additive", *LEVELS],
    )
    parser.add_argument("--fits", type=int, default=2, help="a fold")
    args = parser.parse_args()
    METHODS.update(LEVELS)
    print("| task | rows times epsilon | " + " | ".join(args.methods) + " |", flush=True)
    for task in args.tasks:
        table, target = table_of(args.data, task)
        classes, rows = table.schema[target].size, table.codes.shape[1] * (FOLDS - 1) / FOLDS
        outputs = 1 if classes == 2 else classes
        for each in args.each:
            total = each * (len(table.schema) - 1) * outputs
            found = [scores(table, target, method, round(total / rows, 4), args.fits) for method in args.methods]
            cells = [f"{one['accuracy']:.3f} / {one['auc']:.3f}, {one['log-loss']:.3f}" for one in found]
            print(f"| {task} | {total:,.0f} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
