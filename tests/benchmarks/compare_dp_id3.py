"""Accuracy of DP-ID3 on Adult and Mushroom, beside diffprivlib, a tree that is not private, and the majority class.

    python tests/benchmarks/compare_dp_id3.py --out dp_id3.json

Every method gets the same stratified folds, depth and budget, and the same public facts. Randomness is private unless
`--seeded`: figures then repeat exactly, and the fits are for experiments only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_tasks import TARGETS, Task, default_data, fit_table
from dpframework_trees import DPID3
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as Grid
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

PEERS = Path(__file__).with_name("peers.py")
GOALS = {("adult", 1.0): 0.835, ("adult", 0.1): 0.80, ("mushroom", 1.0): 0.97, ("mushroom", 0.1): 0.93}
PACKAGES = ("dpframework", "scikit-learn", "numpy", "numba", "opendp")


def folds_of(task: Task, folds: int) -> NDArray[np.int64]:
    """Return the fold of each row, stratified by class: the same folds for every method."""
    fold_of = np.empty(len(task.y), dtype=np.int64)
    split = StratifiedKFold(folds, shuffle=True, random_state=0).split(task.y, task.y)
    for fold, (_, test) in enumerate(split):
        fold_of[test] = fold
    return fold_of


def ours(task: Task, fold_of: NDArray[np.int64], args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the accuracies of DP-ID3, with its defaults and as published, by fold and repeat."""
    labels = np.array(task.schema[task.target].labels)
    methods: dict[str, Callable[..., DPID3]] = {"dp-id3": DPID3, "dp-id3, as published": DPID3.published}
    scores: dict[tuple[str, float], list[float]] = {}
    for fold in range(args.folds):
        train, test = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
        learned, held_out, truth = task.subset(train), task.subset(test), labels[task.y[test]]
        for method, make in methods.items():
            for epsilon in args.epsilon:
                miner = make(target=task.target, epsilon=epsilon, max_depth=args.depth)
                for repeat in range(args.repeats):
                    seed = fold * args.repeats + repeat if args.seeded else None
                    tree = fit_table(learned, miner, seed=seed)
                    scores.setdefault((method, epsilon), []).append(float(np.mean(tree.predict(held_out) == truth)))
    return [{"method": m, "epsilon": e, "accuracies": scores[m, e]} for m in methods for e in args.epsilon]


def not_private(task: Task, fold_of: NDArray[np.int64], args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the accuracies of CART of the same depth, and of the majority class."""
    X, y = task.array(), task.y
    methods = {
        "CART, not private": DecisionTreeClassifier(max_depth=args.depth, random_state=0),
        "majority, not private": DummyClassifier(),
    }
    return [
        {
            "method": method,
            "epsilon": None,
            "accuracies": [
                float(model.fit(X[fold_of != fold], y[fold_of != fold]).score(X[fold_of == fold], y[fold_of == fold]))
                for fold in range(args.folds)
            ],
        }
        for method, model in methods.items()
    ]


def theirs(task: Task, fold_of: NDArray[np.int64], args: argparse.Namespace, python: str) -> dict[str, Any]:
    """Return what `peers.py` measures in its own environment."""
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "task.npz"
        task.save(saved, folds=fold_of)
        command = [python, str(PEERS), "accuracy", str(saved)]
        command += ["--epsilon", *map(str, args.epsilon), "--repeats", str(args.repeats), "--depth", str(args.depth)]
        command += ["--seeded"] * args.seeded
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"the peers failed in {python}; it needs diffprivlib and 'scikit-learn<=1.7'")
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


@contextlib.contextmanager
def peers_python(given: str | None) -> Iterator[str]:
    """Give the interpreter of an environment with diffprivlib: the given one, or of a temporary environment."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", "diffprivlib", "scikit-learn<=1.7"], check=True)
        yield python


def grid(
    name: str, rows: list[dict[str, Any]], epsilons: list[float], goals: Mapping[tuple[str, float], float]
) -> Grid:
    """Return one data set's accuracies as a table: methods down, epsilons across."""
    table = Grid(title=f"{name}: accuracy, mean (standard error)")
    table.add_column("method")
    for epsilon in epsilons:
        table.add_column(f"epsilon {epsilon:g}", justify="right")
    for method in dict.fromkeys(row["method"] for row in rows):
        cells = {row["epsilon"]: f"{row['mean']:.4f} ({row['error']:.4f})" for row in rows if row["method"] == method}
        table.add_row(method, *(cells.get(epsilon, cells.get(None, "")) for epsilon in epsilons))
    if goals:
        table.add_section()
        table.add_row("goal for dp-id3", *(str(goals.get((name, epsilon), "")) for epsilon in epsilons))
    return table


def summarised(name: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return a method's accuracies with their mean, and its standard error over folds and repeats."""
    scores = np.array(row["accuracies"])
    error = scores.std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else 0.0
    return {"data": name, **row, "mean": float(scores.mean()), "error": float(error)}


def options(description: str | None) -> argparse.ArgumentParser:
    """Return the options that the comparisons of trees share."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data(), help="folder with adult/adult.csv and so on")
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=1, help="private fits a fold")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 0.5, 1.0, 2.0])
    parser.add_argument("--seeded", action="store_true", help="reproducible, without private randomness")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    return parser


def write_report(args: argparse.Namespace, results: list[dict[str, Any]], **more: Any) -> None:
    """Write JSON, if asked: the settings, the versions and the results."""
    if args.out is None:
        return
    report = {
        "folds": args.folds,
        "repeats": args.repeats,
        "private_randomness": not args.seeded,
        "python": platform.python_version(),
        "packages": {package: version(package) for package in PACKAGES},
        **more,
        "results": results,
    }
    args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {args.out}", file=sys.stderr)


def main() -> None:
    """Compare, print a table a data set, and write JSON if asked."""
    parser = options(__doc__)
    parser.add_argument("--depth", type=int, default=5)
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter with diffprivlib; default: a temporary one")
    args = parser.parse_args()
    results, environment = [], {}
    console = Console(width=max(110, Console().width))
    with peers_python(args.peers) as python:
        for name in TARGETS:
            task = Task.read(args.data, name)
            fold_of = folds_of(task, args.folds)
            measured = theirs(task, fold_of, args, python)
            environment = {"python": measured["python"], "packages": measured["packages"]}
            rows = [*ours(task, fold_of, args), *measured["result"], *not_private(task, fold_of, args)]
            rows = [summarised(name, row) for row in rows]
            console.print(grid(name, rows, args.epsilon, GOALS))
            results += rows
    write_report(args, results, depth=args.depth, peers=environment)


if __name__ == "__main__":
    main()
