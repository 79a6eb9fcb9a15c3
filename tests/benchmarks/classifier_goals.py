"""What `dp-classifier` was built to show, measured and judged: one line a goal, "pass" or "FAIL" with the figures.

    python tests/benchmarks/classifier_goals.py run --out goals.jsonl            # all, about half an hour
    python tests/benchmarks/classifier_goals.py run --goals two --tasks teeth --out goals.jsonl
    python tests/benchmarks/classifier_goals.py show --out goals.jsonl

`run` appends a line for each task, method and epsilon that the file does not have yet, so it can be run in pieces.
`show` prints a table of these means, and the verdicts. DP-EBM needs `pip install interpret-core 'pandas<3'`.

The goals, at epsilon .1 and 1, on five folds of seeded fits:

- two: on seven tasks of two classes no accuracy is more than .02 below that of the best of our own miners, and each AUC
  is at least that of DP-EBM (delta 1e-6); log-loss is at most a constant's where n epsilon / k is 20 or more, and the
  calibration error at most .03.
- several: on four tasks of several classes accuracy and AUC are at least those of `dp-id3`; log-loss and calibration as
  above.
- wide: log-loss as above on made tables of 40 to 80 attributes, of `dp-additive` as well.
- cuts: a numeric attribute with `cuts` at equal distances predicts as well as with as many `bins`, within .005.
- time: a fit to a made table of 9,881 rows and 38 attributes takes at most one second of a processor.

A table of few rows has a calibration error even if all probabilities are right. `fair` is how large that is: the mean
error if classes were drawn by the predicted probabilities. A calibration error of at most .03, or of at most .03 above
the fair one, is a pass; the first only is shown as "pass", the second as "pass, for so few rows".
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
from additive_spread import ROWS, made
from benchmark_tasks import default_data
from classifier_tasks import BINARY, read_task
from compare_classifiers import FOLDS, calibration_error, classes_of, draw_classes, fitted, folds_of, measures
from numpy.typing import NDArray

import dpframework as dpf

EPSILONS = (0.1, 1.0)
TASKS = {
    "two": (*BINARY, "species", "interactions"),
    "several": ("nursery", "cmc", "soybean", "dermatology"),
    "wide": tuple(ROWS),
    "cuts": ("teeth", "interactions"),
    "time": ("made-38",),
}
METHODS = {
    "two": ("dp-classifier", "dp-tree", "dp-id3", "dp-additive", "dp-ebm"),
    "several": ("dp-classifier", "dp-id3"),
    "wide": ("dp-classifier", "dp-additive"),
    "cuts": ("bins", "cuts"),
    "time": ("dp-classifier",),
}
ENOUGH = 20  # rows times epsilon for each attribute, from which a constant must not have a smaller log-loss
BELOW, CALIBRATED, ALIKE = 0.02, 0.03, 0.005
DRAWS = 20  # of classes, for the fair calibration error
OWN = ("dp-tree", "dp-id3", "dp-additive")


def table_of(data: Path, task: str) -> tuple[dpf.Table, str]:
    """Return a task's table and the name of its class."""
    if task == "made-38":
        return of_38_attributes()
    return made(task) if task in ROWS else read_task(data, task)


def of_38_attributes() -> tuple[dpf.Table, str]:
    """Return 9,881 rows of 37 attributes of 2 to 12 values, some numeric, and a class that a few of them tell."""
    rng, rows = np.random.default_rng(1), 9_881
    attributes: list[dpf.Attribute] = []
    codes, values, score = [], {}, np.zeros(rows)
    for k in range(37):
        size = int(rng.integers(2, 13))
        own = rng.integers(0, size, rows)
        if k % 3 == 0:
            attributes.append(dpf.Numeric(f"a{k}", 0, size, bins=size))
            values[f"a{k}"] = own + 0.5
        else:
            attributes.append(dpf.Categorical(f"a{k}", [str(v) for v in range(size)]))
        codes.append(own)
        score += (k % 5 == 0) * (own / size - 0.5) * 2
    codes.append(rng.random(rows) < 1 / (1 + np.exp(-2 * score)))
    schema = dpf.Schema([*attributes, dpf.Boolean("y")], max_rows=100_000)
    return dpf.Table.from_codes(schema, np.array(codes), values), "y"


def with_cuts(table: dpf.Table) -> dpf.Table:
    """Return the table with the edges of its bins as cuts, which says nothing else."""
    given = [
        dpf.Numeric(a.name, a.lower, a.upper, cuts=list(a.edges[1:-1]), missing=a.missing)
        if isinstance(a, dpf.Numeric)
        else a
        for a in table.schema
    ]
    return dpf.Table.from_codes(attrs.evolve(table.schema, attributes=given), table.codes, table.values)


def fair_calibration(p: NDArray[np.float64]) -> float:
    """Return the mean calibration error of classes drawn by the probabilities, shape (rows, classes)."""
    rng = np.random.default_rng(0)
    return float(np.mean([calibration_error(p, draw_classes(p, rng)) for _ in range(DRAWS)]))


def measured(args: argparse.Namespace, task: str, method: str, epsilon: float) -> dict[str, Any]:
    """Return mean measures over the folds, and public facts about the task."""
    table, target = table_of(args.data, task)
    given = with_cuts(table) if method == "cuts" else table
    found = []
    for fold, (train, test) in enumerate(folds_of(given)):
        y, others = classes_of(test, target), classes_of(train, target)
        known = "dp-classifier" if method in ("bins", "cuts") else method
        for repeat in range(1 if method == "dp-ebm" else args.repeats):
            p, seconds = fitted(known, epsilon, train, test, target, 100 * fold + repeat)
            constant = np.bincount(others, minlength=p.shape[1]) / len(others)
            of_constant = -np.log(np.maximum(constant[y], 1e-12)).mean()
            fair = fair_calibration(p)
            found.append({**measures(p, y), "constant": of_constant, "fair": fair, "seconds": seconds})
    mean = {name: round(float(np.mean([one[name] for one in found])), 4) for name in found[0]}
    each = table.codes.shape[1] * (FOLDS - 1) / FOLDS * epsilon / (len(table.schema) - 1)
    return {**mean, "rows_epsilon_each": round(each, 1)}


def seconds_of_a_fit(task: str, method: str, epsilon: float) -> dict[str, Any]:
    """Return the processor seconds of a fit to all rows, after one that compiles."""
    table, target = table_of(Path(), task)
    for _ in range(2):
        start = time.process_time()
        fitted(method, epsilon, table, table, target, 0)
        seconds = time.process_time() - start
    return {"seconds": round(seconds, 3)}


def run(args: argparse.Namespace) -> None:
    """Append what the file does not have yet."""
    have = {(row["goal"], row["task"], row["method"], row["epsilon"]) for row in rows_of(args.out)}
    for goal in args.goals:
        for task in TASKS[goal]:
            for epsilon in EPSILONS:
                for method in METHODS[goal]:
                    if (goal, task, method, epsilon) in have or not asked(args, task, method):
                        continue
                    if goal == "time":
                        found = seconds_of_a_fit(task, method, epsilon)
                    else:
                        found = measured(args, task, method, epsilon)
                    row = {"goal": goal, "task": task, "method": method, "epsilon": epsilon, **found}
                    print(json.dumps(row), flush=True)
                    with args.out.open("a", encoding="utf-8") as out:
                        out.write(json.dumps(row) + "\n")


def asked(args: argparse.Namespace, task: str, method: str) -> bool:
    """Return whether a task and a method are among those asked for."""
    return (not args.tasks or task in args.tasks) and (not args.methods or method in args.methods)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return what was measured."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


@attrs.frozen
class Verdict:
    """Whether a goal is met on a task at an epsilon.

    Attributes
    ----------
    goal, task, epsilon
        Which.
    shown
        The figures.
    passed
        Whether it is met.
    """

    goal: str
    task: str
    epsilon: float
    shown: str
    passed: bool


def verdicts(rows: list[dict[str, Any]]) -> Iterator[Verdict]:
    """Judge what was measured."""
    known = {(row["goal"], row["task"], row["epsilon"], row["method"]): row for row in rows}
    for goal, task, epsilon in dict.fromkeys(key[:3] for key in known):
        of = {method: known.get((goal, task, epsilon, method)) for method in METHODS[goal]}
        if not any(of[method] for method in ("dp-classifier", "cuts") if method in of):
            continue  # a piece that is to come
        judge = {"two": _two, "several": _several, "wide": _wide, "cuts": _cuts, "time": _time}[goal]
        for what, shown, passed in judge({method: row for method, row in of.items() if row}):
            yield Verdict(f"{goal}: {what}", task, epsilon, shown, passed)


_Judged = Iterator[tuple[str, str, bool]]


def _two(of: dict[str, dict[str, Any]]) -> _Judged:
    own = of["dp-classifier"]
    best = max((of[method]["accuracy"], method) for method in OWN if method in of)
    yield "accuracy", f"{own['accuracy']:.3f}, {best[1]} {best[0]:.3f}", own["accuracy"] >= best[0] - BELOW
    if "dp-ebm" in of:
        yield "AUC", f"{own['auc']:.3f}, DP-EBM {of['dp-ebm']['auc']:.3f}", own["auc"] >= of["dp-ebm"]["auc"]
    yield from _honest(own)


def _several(of: dict[str, dict[str, Any]]) -> _Judged:
    own, tree = of["dp-classifier"], of.get("dp-id3", {})
    for name in ("accuracy", "auc"):
        if name in tree:
            yield name, f"{own[name]:.3f}, dp-id3 {tree[name]:.3f}", own[name] >= tree[name]
    yield from _honest(own)


def _wide(of: dict[str, dict[str, Any]]) -> _Judged:
    for method, own in of.items():
        for what, shown, passed in _honest(own):
            if what == "log-loss":
                yield f"{what} of {method}", shown, passed


def _honest(own: dict[str, Any]) -> _Judged:
    each = own["rows_epsilon_each"]
    if each >= ENOUGH:
        shown = f"{own['log-loss']:.3f}, a constant {own['constant']:.3f} (n epsilon / k {each:.0f})"
        yield "log-loss", shown, own["log-loss"] <= own["constant"]
    few = "" if own["calibration"] <= CALIBRATED else ", for so few rows"
    close = own["calibration"] <= CALIBRATED + (own["fair"] if few else 0)
    yield "calibration", f"{own['calibration']:.3f}, fair {own['fair']:.3f}{few if close else ''}", close


def _cuts(of: dict[str, dict[str, Any]]) -> _Judged:
    if len(of) == 2:
        for name in ("accuracy", "auc"):
            cuts, bins = of["cuts"][name], of["bins"][name]
            yield name, f"{cuts:.4f}, bins {bins:.4f}", cuts >= bins - ALIKE


def _time(of: dict[str, dict[str, Any]]) -> _Judged:
    seconds = of["dp-classifier"]["seconds"]
    yield "CPU seconds", f"{seconds:.2f}", seconds <= 1


def show(args: argparse.Namespace) -> None:
    """Print the means as tables, then what is met and what is not."""
    rows = rows_of(args.out)
    for epsilon in EPSILONS:
        of_two = [row for row in rows if row["goal"] == "two" and row["epsilon"] == epsilon]
        print(f"\n| epsilon {epsilon:g} | {' | '.join(TASKS['two'])} | mean |\n|{'---|' * (len(TASKS['two']) + 2)}")
        for method in METHODS["two"]:
            cells = {row["task"]: (row["accuracy"], row["auc"]) for row in of_two if row["method"] == method}
            if len(cells) == len(TASKS["two"]):
                pairs = [cells[task] for task in TASKS["two"]]
                shown = [f"{a:.3f} / {b:.3f}" for a, b in (*pairs, np.mean(pairs, axis=0))]
                print(f"| {method} | {' | '.join(shown)} |")
    print()
    judged = list(verdicts(rows))
    for one in judged:
        print(f"{'pass' if one.passed else 'FAIL'}  {one.goal:28} {one.task:16} {one.epsilon:<4g} {one.shown}")
    print(f"{sum(one.passed for one in judged)} of {len(judged)} pass")


def main() -> None:
    """Measure, or judge what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "show"])
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--goals", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--tasks", nargs="+", help="of these goals, some")
    parser.add_argument("--methods", nargs="+", help="of these goals, some")
    parser.add_argument("--repeats", type=int, default=2, help="fits a fold, of our miners")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.what == "run":
        run(args)
    show(args)


if __name__ == "__main__":
    main()
