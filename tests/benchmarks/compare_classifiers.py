"""Accuracy, AUC, log-loss and calibration of the private classifiers and a peer, by epsilon: the same five folds.

    python tests/benchmarks/compare_classifiers.py --epsilon 0.1 1 --methods dp-additive dp-id3 dp-ebm
    python tests/benchmarks/compare_classifiers.py --tasks adult mushroom --repeats 2 --json results.jsonl

`dp-ebm` is the private boosting of interpret-core (`pip install interpret-core`), at a delta of 1e-6: it gets the
values where a column has some, and the schema's bounds. `boosting` is scikit-learn's, not private. AUC is the mean over
classes, each against the rest. Calibration is the expected error over ten bins of equal width of the probability of the
predicted class. Seconds are of this processor, of one fit.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from benchmark_tasks import default_data
from classifier_tasks import BINARY, TASKS, part, read_task
from dpframework_trees import DPID3, DPAdditive, DPClassifierMiner, DPTree
from numpy.typing import NDArray

import dpframework as dpf

METHODS: dict[str, Any] = {
    "dp-classifier": lambda target, epsilon: DPClassifierMiner(target, epsilon),
    "dp-additive": lambda target, epsilon: DPAdditive(target, epsilon),
    "dp-id3": lambda target, epsilon: DPID3(target, epsilon),
    "dp-tree": lambda target, epsilon: DPTree(target, epsilon, max_depth=2),
}
PEERS = ("dp-ebm", "boosting")
EBM_DELTA = 1e-6
FOLDS = 5
BINS = 10


def measures(p: NDArray[np.float64], y: NDArray[np.int64]) -> dict[str, float]:
    """Return accuracy, AUC, log-loss and calibration of probabilities, shape (rows, classes)."""
    from sklearn.metrics import roc_auc_score

    aucs = [roc_auc_score(y == c, p[:, c]) for c in range(p.shape[1]) if 0 < (y == c).sum() < len(y)]
    return {
        "accuracy": float((p.argmax(axis=1) == y).mean()),
        "auc": float(np.mean(aucs)),
        "log-loss": float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-12)).mean()),
        "calibration": calibration_error(p, y),
    }


def calibration_error(p: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    """Return the expected calibration error of probabilities, shape (rows, classes)."""
    best, top = p.argmax(axis=1), p.max(axis=1)
    bins = np.minimum((top * BINS).astype(int), BINS - 1)
    off = [abs(((best == y)[bins == b] - top[bins == b]).sum()) for b in range(BINS)]
    return float(sum(off) / len(y))


def draw_classes(p: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw a class for each row by its probabilities up to a factor, shape (rows, classes)."""
    ends = p.cumsum(axis=1)
    drawn = (rng.random((len(p), 1)) * ends[:, -1:] > ends).sum(axis=1)
    return np.asarray(drawn.clip(max=p.shape[1] - 1), dtype=np.int64)


def ours(method: str, epsilon: float, train: dpf.Table, target: str, seed: int | None) -> Any:
    """Return what one of our miners fits."""
    study = dpf.Study(train.schema, epsilon=epsilon, allow=["mcmc-converged"])
    study.add("model", METHODS[method](target, epsilon))
    found = study.run(train, seed=seed)["model"]
    return getattr(found, "tree", found)


def columns(table: dpf.Table, target: str) -> NDArray[np.float64]:
    """Return what peers are given, shape (rows, columns): values where a column has some, else codes."""
    schema = table.schema
    found = [table.values.get(name, table.codes[schema.index(name)]) for name in schema.names if name != target]
    return np.column_stack(found).astype(np.float64)


def peer(method: str, epsilon: float, table: dpf.Table, target: str, seed: int | None) -> Any:
    """Return an untrained peer, which is told what is public."""
    given = [table.schema[name] for name in table.schema.names if name != target]
    if method == "boosting":
        from sklearn.ensemble import HistGradientBoostingClassifier

        nominal = [attribute.name not in table.values for attribute in given]
        return HistGradientBoostingClassifier(categorical_features=nominal, random_state=seed)
    from interpret.privacy import DPExplainableBoostingClassifier

    numeric = [attribute.name in table.values for attribute in given]
    return DPExplainableBoostingClassifier(
        epsilon=epsilon,
        delta=EBM_DELTA,
        feature_names=[attribute.name for attribute in given],
        feature_types=["continuous" if own else "nominal" for own in numeric],
        privacy_bounds={a.name: (a.lower, a.upper) for a, own in zip(given, numeric, strict=True) if own},
        random_state=seed,
        n_jobs=1,
    )


def fitted(
    method: str, epsilon: float, train: dpf.Table, test: dpf.Table, target: str, seed: int | None
) -> tuple[NDArray[np.float64], float]:
    """Return probabilities of the classes for the test rows, and the seconds of the fit."""
    start = time.process_time()
    if method in METHODS:
        model = ours(method, epsilon, train, target, seed)
        return model.predict_proba(test), time.process_time() - start
    model = peer(method, epsilon, train, target, seed).fit(columns(train, target), classes_of(train, target))
    seconds = time.process_time() - start
    p = np.zeros((test.codes.shape[1], train.schema[target].size))
    p[:, model.classes_.astype(int)] = model.predict_proba(columns(test, target))
    return p, seconds


def classes_of(table: dpf.Table, target: str) -> NDArray[np.int64]:
    """Return the class of each row, shape (rows,)."""
    return table.codes[table.schema.index(target)].astype(np.int64)


def folds_of(table: dpf.Table) -> Iterator[tuple[dpf.Table, dpf.Table]]:
    """Yield the rows to fit to and the rows to predict of each fold, the same ones for every method."""
    folds = np.random.default_rng(0).permutation(np.arange(table.codes.shape[1]) % FOLDS)
    for fold in range(FOLDS):
        yield part(table, np.flatnonzero(folds != fold)), part(table, np.flatnonzero(folds == fold))


def fold_results(args: argparse.Namespace, name: str, method: str, epsilon: float) -> Iterator[dict[str, float]]:
    """Yield the measures of each fold and repeat."""
    table, target = read_task(args.data, name)
    for fold, (train, test) in enumerate(itertools.islice(folds_of(table), args.folds)):
        for repeat in range(args.repeats):
            seed = None if args.private else 100 * fold + repeat
            p, seconds = fitted(method, epsilon, train, test, target, seed)
            yield {**measures(p, classes_of(test, target)), "seconds": seconds}


@attrs.define
class _Means:
    of_methods: dict[tuple[str, float], list[dict[str, float]]] = attrs.field(factory=dict)

    def add(self, method: str, epsilon: float, found: dict[str, float]) -> None:
        self.of_methods.setdefault((method, epsilon), []).append(found)


def _line(name: str, method: str, epsilon: float, found: dict[str, float]) -> str:
    shown = "  ".join(f"{measure} {value:.3f}" for measure, value in found.items())
    return f"{name:15} {method:13} {epsilon:<5g} {shown}"


def main() -> None:
    """Print a line for each task, method and epsilon, then the means over tasks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=BINARY)
    parser.add_argument("--methods", nargs="+", choices=(*METHODS, *PEERS), default=list(METHODS))
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
