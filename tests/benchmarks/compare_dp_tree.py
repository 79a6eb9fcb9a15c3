"""Accuracy of sampled trees on Adult and Mushroom, beside DP-ID3 and trees that are not private, depth by depth.

    python tests/benchmarks/compare_dp_tree.py --out dp_tree.json

Every method gets the same stratified folds, and the same tests: CART too reads the public tests of values and cuts, one
0/1 column each. Randomness is private unless `--seeded`.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
from benchmark_tasks import TARGETS, Task, fit_table
from compare_dp_id3 import folds_of, grid, options, summarised, write_report
from dpframework_trees import DPID3, DPTree
from dpframework_trees.splits import Candidates
from numpy.typing import NDArray
from rich.console import Console
from sklearn.tree import DecisionTreeClassifier

from dpframework import InMemory

METHODS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "dp-tree, exact, depth 2": (DPTree, {"max_depth": 2, "sampler": "exact"}),
    "dp-tree, exact, depth 3": (DPTree, {"max_depth": 3, "sampler": "exact"}),
    "dp-tree, lookahead, depth 3": (DPTree, {"max_depth": 3, "sampler": "lookahead"}),
    "dp-tree, mcmc, depth 3": (DPTree, {"max_depth": 3, "sampler": "mcmc"}),
    "dp-tree, mcmc, depth 4": (DPTree, {"max_depth": 4, "sampler": "mcmc"}),
    "dp-tree, mcmc, depth 5": (DPTree, {"max_depth": 5, "sampler": "mcmc"}),
    "dp-tree, greedy, depth 3": (DPTree, {"max_depth": 3, "sampler": "greedy"}),
    "dp-tree, greedy, depth 5": (DPTree, {"max_depth": 5, "sampler": "greedy"}),
    "dp-id3, depth 3": (DPID3, {"max_depth": 3}),
    "dp-id3, depth 5": (DPID3, {"max_depth": 5}),
}
DEPTHS = (2, 3, 4, 5)


def ours(task: Task, fold_of: NDArray[np.int64], args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the accuracies of the private methods, by fold and repeat, and the median seconds of a fit."""
    labels = np.array(task.schema[task.target].labels)
    found = []
    for method, (make, settings) in METHODS.items():
        for epsilon in args.epsilon:
            miner, scores, seconds = make(target=task.target, epsilon=epsilon, **settings), [], []
            for fold in range(args.folds):
                learned, test = task.subset(np.flatnonzero(fold_of != fold)), np.flatnonzero(fold_of == fold)
                for repeat in range(args.repeats):
                    start = time.perf_counter()
                    tree = fit_table(learned, miner, seed=fold * args.repeats + repeat if args.seeded else None)
                    seconds.append(time.perf_counter() - start)
                    scores.append(float(np.mean(tree.predict(task.subset(test)) == labels[task.y[test]])))
            row = {"method": method, "epsilon": epsilon, "accuracies": scores, "seconds": float(np.median(seconds))}
            found.append(row)
            print(f"{task.name}: {method}, epsilon {epsilon:g}: {np.mean(scores):.4f}", file=sys.stderr)
    return found


def not_private(task: Task, fold_of: NDArray[np.int64], args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the accuracies of CART on the same tests."""
    (block,) = InMemory().load(task.table)
    tests = Candidates.of_schema(task.schema, task.features, multiway=False, cuts=True)
    X, y = np.column_stack([test.holds(block) for test in tests]), task.y  # type: ignore[union-attr]
    found = []
    for depth in DEPTHS:
        model = DecisionTreeClassifier(max_depth=depth, random_state=0)
        scores = [
            float(model.fit(X[fold_of != fold], y[fold_of != fold]).score(X[fold_of == fold], y[fold_of == fold]))
            for fold in range(args.folds)
        ]
        found.append({"method": f"CART, depth {depth}, not private", "epsilon": None, "accuracies": scores})
    return found


def main() -> None:
    """Compare, print a table a data set, and write JSON if asked."""
    parser = options(__doc__)
    args = parser.parse_args()
    results = []
    console = Console(width=max(110, Console().width))
    for name in TARGETS:
        task = Task.read(args.data, name)
        fold_of = folds_of(task, args.folds)
        rows = [summarised(name, row) for row in (*ours(task, fold_of, args), *not_private(task, fold_of, args))]
        console.print(grid(name, rows, args.epsilon, {}))
        results += rows
    write_report(args, results)


if __name__ == "__main__":
    main()
