"""Errors of private predictions of a number: `dp-additive-regression` beside two peers, on the same five folds.

    python tests/benchmarks/compare_regression.py --peers peers/bin/python --epsilon 0.1 1
    python tests/benchmarks/compare_regression.py --tasks adult-age --methods dp-additive-regression boosting

The error is the root mean square over held-out rows, as a share of what the mean of the training rows leaves: so a
constant has 1. `covered` is the share of held-out rows in `dp-additive-regression`'s 90 % range, and `width` the mean
width of this, as a share of the target's public range. `diffprivlib` and `dp-ebm` (at a delta of 1e-6) run in an
environment of their own (see `regression_peers.py`); all are told the same public bounds. `least squares` on the same
columns and `boosting` are scikit-learn's, not private.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from benchmark_tasks import REPOSITORY, default_data
from classifier_tasks import CLIMATE, part
from dpframework_trees import DPAdditiveRegression
from numpy.typing import NDArray

import dpframework as dpf

Reals = NDArray[np.float64]
PEERS = ("diffprivlib", "dp-ebm")
OURS = "dp-additive-regression"
METHODS = (OURS, *PEERS, "least squares", "boosting")
FOLDS = 5


def _adult(data: Path) -> tuple[dpf.Table, str]:
    """Return people's age by all else."""
    schema = dpf.Schema.load(REPOSITORY / "docs" / "examples" / "adult" / "adult.schema.toml")
    return dpf.read_table(data / "adult" / "adult.csv", schema), "age"


def _climate(data: Path, folder: str, side: str) -> tuple[dpf.Table, str]:
    """Return the mean temperature of a place by its mammals: the mean of their teeth, or which species there are."""
    import polars as pl

    given, climate = (
        pl.read_csv(data / folder / f"{name}.csv", infer_schema_length=None) for name in (side, "right_climate")
    )
    columns = [column for column in given.columns if column != "id"]
    boolean = folder == "species_climate_SA"
    kinds = [
        dpf.Boolean(column) if boolean else dpf.Numeric(column, 0, 3 if "HYP" in column else 1, bins=16)
        for column in columns
    ]
    frame = given.join(climate, on="id").select(
        *(pl.col(column).cast(pl.Boolean if boolean else pl.Float64) for column in columns),
        pl.col("bio1:TMeanY").cast(pl.Float64).alias("temperature"),
    )
    target = dpf.Numeric("temperature", *CLIMATE["TMeanY"], bins=16)
    return dpf.table_from_frame(
        frame, dpf.Schema([*kinds, target], max_rows=100_000), out_of_domain="clamp"
    ), target.name


def _diabetes(data: Path) -> tuple[dpf.Table, str]:
    """Return scikit-learn's 442 patients: how far a disease has gone in a year."""
    import polars as pl
    from sklearn.datasets import load_diabetes

    found = load_diabetes(scaled=False)
    ends = {"age": (18, 80), "sex": (1, 2), "bmi": (15, 45), "bp": (60, 140), "s1": (90, 310), "s2": (40, 250)}
    ends |= {"s3": (20, 100), "s4": (2, 10), "s5": (3, 7), "s6": (50, 130), "progress": (0, 350)}
    frame = pl.DataFrame(np.column_stack([found.data, found.target]), schema=list(ends))
    kinds = [dpf.Numeric(name, low, high, bins=2 if name == "sex" else 8) for name, (low, high) in ends.items()]
    return dpf.table_from_frame(frame, dpf.Schema(kinds, max_rows=1_000), out_of_domain="clamp"), "progress"


TASKS: dict[str, Callable[[Path], tuple[dpf.Table, str]]] = {
    "adult-age": _adult,
    "teeth-temperature": lambda data: _climate(data, "teeth_climate", "left_dental_traits"),
    "species-temperature": lambda data: _climate(data, "species_climate_SA", "left_species"),
    "diabetes": _diabetes,
}


def columns(table: dpf.Table, target: str) -> tuple[Reals, Reals, Reals]:
    """Return a column for each number and each value of another attribute, shape (rows, columns), and their bounds."""
    found, lower, upper = [], [], []
    for name in table.schema.names:
        attribute, codes = table.schema[name], table.codes[table.schema.index(name)]
        if name == target:
            continue
        if isinstance(attribute, dpf.Numeric):
            found.append(np.nan_to_num(table.values[name])[:, None])
            lower.append(float(attribute.lower))
            upper.append(float(attribute.upper))
        else:
            values = range(1, attribute.size)  # the first is the others' absence
            found.append((codes[:, None] == np.array(values)).astype(np.float64))
            lower += [0.0] * len(values)
            upper += [1.0] * len(values)
    return np.concatenate(found, axis=1), np.array(lower), np.array(upper)


def of_peer(python: str, peer: str, epsilon: float, seed: int, task: dict[str, Reals]) -> Reals:
    """Return a peer's predictions of the test rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "task.npz"
        np.savez(path, **task)
        program = Path(__file__).with_name("regression_peers.py")
        subprocess.run([python, str(program), str(path), peer, str(epsilon), str(seed)], check=True)
        with Path(f"{path}.out.npy").open("rb") as out:
            return np.asarray(np.load(out))


def of_sklearn(method: str, task: dict[str, Reals]) -> Reals:
    """Return predictions that are not private."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import LinearRegression

    model = LinearRegression() if method == "least squares" else HistGradientBoostingRegressor(random_state=0)
    return np.asarray(model.fit(task["train"], task["y"]).predict(task["test"]))


def measured(args: argparse.Namespace, name: str, method: str, epsilon: float) -> dict[str, float]:
    """Return the mean error over folds, with its range's share of rows and width, if there is one."""
    table, target = TASKS[name](args.data)
    X, lower, upper = columns(table, target)
    y = table.values[target]
    number = table.schema[target]
    assert isinstance(number, dpf.Numeric)
    folds = np.random.default_rng(0).permutation(np.arange(len(y)) % FOLDS)
    errors, covered, widths = [], [], []
    for fold in range(args.folds):
        train, test = folds != fold, folds == fold
        given = {"train": X[train], "test": X[test], "y": y[train], "lower": lower, "upper": upper}
        given["ends"] = np.array([number.lower, number.upper], dtype=np.float64)
        seed = None if args.private else fold
        if method == OURS:
            study = dpf.Study(table.schema, epsilon=epsilon)
            study.add("model", DPAdditiveRegression(target, epsilon))
            model = study.run(part(table, np.flatnonzero(train)), seed=seed)["model"]
            rows = part(table, np.flatnonzero(test))
            predicted, ends = model.predict(rows), model.interval(rows)
            covered.append(float(((ends[:, 0] <= y[test]) & (y[test] <= ends[:, 1])).mean()))
            widths.append(float((ends[:, 1] - ends[:, 0]).mean() / model.width))
        elif method in PEERS:
            predicted = of_peer(args.peers, method, epsilon, fold, given)
        else:
            predicted = of_sklearn(method, given)
        of_constant = np.sqrt(((y[test] - y[train].mean()) ** 2).mean())
        errors.append(float(np.sqrt(((predicted - y[test]) ** 2).mean()) / of_constant))
    found = {"error": float(np.mean(errors)), "sd": float(np.std(errors))}
    return found if not covered else {**found, "covered": float(np.mean(covered)), "width": float(np.mean(widths))}


def main() -> None:
    """Print a line for each task, method and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--folds", type=int, default=FOLDS, help="of the five, how many")
    parser.add_argument("--peers", metavar="PYTHON", help="the interpreter of the peers; without it they are left out")
    parser.add_argument("--private", action="store_true", help="draw cryptographic randomness")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in args.tasks:
        for method in args.methods:
            if method in PEERS and args.peers is None:
                continue
            for epsilon in args.epsilon if method in (OURS, *PEERS) else [float("inf")]:
                shown = "  ".join(f"{key} {value:.3f}" for key, value in measured(args, name, method, epsilon).items())
                print(f"{name:20} {method:24} {epsilon:<5g} {shown}", flush=True)


if __name__ == "__main__":
    main()
