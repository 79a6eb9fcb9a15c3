"""diffprivlib's tree and forest on a saved task: accuracy by fold, or time and peak memory of one fit.

Runs in an environment of its own, because diffprivlib needs an older scikit-learn:

    python -m venv peers && peers/bin/pip install diffprivlib 'scikit-learn<=1.7'
    peers/bin/python peers.py accuracy TASK.npz --epsilon 0.1 1
    peers/bin/python peers.py time TASK.npz --peer tree

TASK.npz holds X (rows, features), y (rows,), the public bounds `lower` and `upper` (features,), the public `classes`,
and for `accuracy` the fold of each row, `folds` (rows,). Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import sys
import time
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PEERS = ("tree", "forest")
TREES = 10
PACKAGES = ("diffprivlib", "scikit-learn", "numpy")


def build(peer: str, task: Mapping[str, NDArray[Any]], epsilon: float, depth: int, seed: int | None) -> Any:
    """Return an untrained peer that is told the public bounds and classes."""
    from diffprivlib import models

    shared = {
        "max_depth": depth,
        "epsilon": epsilon,
        "bounds": (task["lower"], task["upper"]),
        "classes": task["classes"],
        "random_state": seed,
    }
    if peer == "tree":
        return models.DecisionTreeClassifier(**shared)
    return models.RandomForestClassifier(n_estimators=TREES, **shared)


def peak_mib() -> float:
    """Return the peak resident memory of this process, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would count the process that started this one
        lines = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines())
        return int(lines["VmHWM"].split()[0]) / 2**10
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (2**20 if sys.platform == "darwin" else 2**10)


def accuracy(args: argparse.Namespace, task: Mapping[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """Return the accuracy of each peer at each epsilon, by fold and repeat."""
    X, y, folds = task["X"], task["y"], task["folds"]
    found = []
    for peer in PEERS:
        for epsilon in args.epsilon:
            scores: list[float] = []
            for fold in np.unique(folds):
                train, test = folds != fold, folds == fold
                for _ in range(args.repeats):
                    model = build(peer, task, epsilon, args.depth, len(scores) if args.seeded else None)
                    model.fit(X[train], y[train])
                    scores.append(float(np.mean(model.predict(X[test]) == y[test])))
            found.append({"method": f"diffprivlib {peer}", "epsilon": epsilon, "accuracies": scores})
    return found


def fit_time(args: argparse.Namespace, task: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the seconds of each fit of one peer on all rows, after a first that is not counted, and peak memory."""
    X, y = task["X"], task["y"]

    def fit() -> float:
        model = build(args.peer, task, 1.0, args.depth, 0 if args.seeded else None)
        start = time.perf_counter()
        model.fit(X, y)
        return time.perf_counter() - start

    build(args.peer, task, 1.0, args.depth, None).fit(X[::100], y[::100])  # the libraries belong to the floor
    before = peak_mib()
    fit()
    after = peak_mib()
    return {
        "peer": args.peer,
        "seconds": [fit() for _ in range(args.rounds)],
        "peak_mib_before": before,
        "peak_mib_after": after,
    }


def main() -> None:
    """Run one measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("accuracy", "time"))
    parser.add_argument("task", type=Path, metavar="TASK.npz")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0], help="for accuracy")
    parser.add_argument("--repeats", type=int, default=1, help="fits a fold, for accuracy")
    parser.add_argument("--peer", choices=PEERS, default="tree", help="for time")
    parser.add_argument("--rounds", type=int, default=15, help="fits that are timed")
    parser.add_argument("--depth", type=int, default=5)
    parser.add_argument("--seeded", action="store_true", help="reproducible, without private randomness")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    with np.load(args.task) as saved:
        task = dict(saved)
    result = accuracy(args, task) if args.what == "accuracy" else fit_time(args, task)
    packages = {package: version(package) for package in PACKAGES}
    print(json.dumps({"python": platform.python_version(), "packages": packages, "result": result}))


if __name__ == "__main__":
    main()
