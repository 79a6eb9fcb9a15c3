"""Accuracy, AUC, log-loss and calibration of the private classifiers, by epsilon: five folds, five tables.

    python tests/benchmarks/compare_classifiers.py --epsilon 0.1 1 --methods dp-additive dp-id3
    python tests/benchmarks/compare_classifiers.py --tasks adult mushroom --repeats 2 --json results.jsonl

Attributes and cuts are those of `docs/examples` where there are some; else each value that occurs, which for these
tables is public. AUC is the mean over classes, each against the rest. Calibration is the expected error over ten bins
of equal width of the probability of the predicted class. Seconds are of this processor, of one fit.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from benchmark_tasks import Task, default_data
from dpframework_trees import DPID3, DPAdditive, DPClassifierMiner, DPTree
from numpy.typing import NDArray

import dpframework as dpf

TASKS = ("adult", "mushroom", "nursery", "nltcs", "cmc")
CLASS = {"adult": "income", "mushroom": "class", "nursery": "class", "nltcs": "traveling"}
METHODS: dict[str, Any] = {
    "dp-classifier": lambda target, epsilon: DPClassifierMiner(target, epsilon),
    "dp-additive": lambda target, epsilon: DPAdditive(target, epsilon),
    "dp-id3": lambda target, epsilon: DPID3(target, epsilon),
    "dp-tree": lambda target, epsilon: DPTree(target, epsilon, max_depth=2),
}
FOLDS = 5
BINS = 10


def read_task(data: Path, name: str) -> tuple[dpf.Table, str]:
    """Return a table and the name of its class."""
    if name in ("adult", "mushroom"):
        task = Task.read(data, name)
        return task.table, task.target
    import polars as pl

    frame = pl.read_csv(data / name / f"{name}.csv", infer_schema_length=None)
    frame = frame.select(pl.col(column).cast(pl.String) for column in frame.columns)
    numbers = {"cmc": {"wife_age": (16, 49), "children_born": (0, 16)}}.get(name, {})
    attributes: list[Any] = []
    for column in frame.columns:
        if column in numbers:
            low, high = numbers[column]
            attributes.append(dpf.Numeric(column, low, high, bins=8))
        else:
            attributes.append(dpf.Categorical(column, sorted(set(frame[column].to_list()))))
    numeric = frame.with_columns(pl.col(column).cast(pl.Float64) for column in numbers)
    schema = dpf.Schema(attributes, max_rows=100_000)
    return dpf.table_from_frame(numeric, schema), CLASS.get(name, frame.columns[-1])


def part(table: dpf.Table, rows: NDArray[np.int64]) -> dpf.Table:
    """Return some rows."""
    values = {column: raw[rows] for column, raw in table.values.items()}
    return dpf.Table.from_codes(table.schema, table.codes[:, rows], values)


def measures(p: NDArray[np.float64], y: NDArray[np.int64]) -> dict[str, float]:
    """Return accuracy, AUC, log-loss and calibration of probabilities, shape (rows, classes)."""
    from sklearn.metrics import roc_auc_score

    best, top = p.argmax(axis=1), p.max(axis=1)
    aucs = [roc_auc_score(y == c, p[:, c]) for c in range(p.shape[1]) if 0 < (y == c).sum() < len(y)]
    bins = np.minimum((top * BINS).astype(int), BINS - 1)
    off = [abs(((best == y)[bins == b] - top[bins == b]).sum()) for b in range(BINS)]
    return {
        "accuracy": float((best == y).mean()),
        "auc": float(np.mean(aucs)),
        "log-loss": float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-12)).mean()),
        "calibration": float(sum(off) / len(y)),
    }


def model_of(result: Any) -> Any:
    """Return what predicts."""
    return getattr(result, "tree", result)


def fold_results(args: argparse.Namespace, name: str, method: str, epsilon: float) -> Iterator[dict[str, float]]:
    """Yield the measures of each fold and repeat."""
    table, target = read_task(args.data, name)
    y = table.codes[table.schema.index(target)].astype(np.int64)
    rng = np.random.default_rng(0)
    folds = rng.permutation(np.arange(len(y)) % FOLDS)
    for fold in range(args.folds):
        train, test = (part(table, np.flatnonzero(chosen)) for chosen in (folds != fold, folds == fold))
        for repeat in range(args.repeats):
            study = dpf.Study(table.schema, epsilon=epsilon, allow=["mcmc-converged"])
            study.add("model", METHODS[method](target, epsilon))
            start = time.process_time()
            found = study.run(train, seed=None if args.private else 100 * fold + repeat)
            seconds = time.process_time() - start
            p = model_of(found["model"]).predict_proba(test)
            yield {**measures(p, y[folds == fold]), "seconds": seconds}


@attrs.define
class _Means:
    of_methods: dict[tuple[str, float], list[dict[str, float]]] = attrs.field(factory=dict)

    def add(self, method: str, epsilon: float, found: dict[str, float]) -> None:
        self.of_methods.setdefault((method, epsilon), []).append(found)


def _line(name: str, method: str, epsilon: float, found: dict[str, float]) -> str:
    shown = "  ".join(f"{measure} {value:.3f}" for measure, value in found.items())
    return f"{name:10} {method:14} {epsilon:<5g} {shown}"


def main() -> None:
    """Print a line for each task, method and epsilon, then the means over tasks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--folds", type=int, default=FOLDS, help="of the five, how many")
    parser.add_argument("--repeats", type=int, default=1, help="fits a fold")
    parser.add_argument("--private", action="store_true", help="draw cryptographic randomness")
    parser.add_argument("--json", type=Path, help="append a line for each result")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    means = _Means()
    for name in args.tasks:
        for epsilon in args.epsilon:
            for method in args.methods:
                found = list(fold_results(args, name, method, epsilon))
                mean = {measure: float(np.mean([one[measure] for one in found])) for measure in found[0]}
                means.add(method, epsilon, mean)
                print(_line(name, method, epsilon, mean), flush=True)
                if args.json:
                    with args.json.open("a", encoding="utf-8") as out:
                        out.write(
                            json.dumps({"task": name, "method": method, "epsilon": epsilon, "folds": found}) + "\n"
                        )
    for (method, epsilon), of_tasks in means.of_methods.items():
        mean = {measure: float(np.mean([one[measure] for one in of_tasks])) for measure in of_tasks[0]}
        print(_line("mean", method, epsilon, mean))


if __name__ == "__main__":
    main()
