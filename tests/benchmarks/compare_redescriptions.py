"""Redescriptions from trees on two-view tables: what they are worth beside trees that are not private, and their time.

    python tests/benchmarks/compare_redescriptions.py quality --data FOLDER --out redescriptions.json
    python tests/benchmarks/compare_redescriptions.py time --data FOLDER

FOLDER holds mammal_like_L.csv and mammal_like_R.csv (presences of species, climate), cms_like_L.csv and cms_like_R.csv
(diagnoses, yearly amounts), and for `time` more of these if there are, such as cms_like_16_L.csv. Runs of `quality` are
seeded: figures repeat, and the results are for experiments only. Whether a redescription is truly significant, and its
true Jaccard index, are read off the exact counts, which no private run would show.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from compare_dp_id3 import PACKAGES
from dpframework_trees.complete_tree import CompleteTree
from dpframework_trees.queries import Associations
from dpframework_trees.redescription_extraction import Constraints, extract
from dpframework_trees.splits import Candidates
from numpy.typing import NDArray
from peers import peak_mib
from rich.console import Console
from rich.table import Table as Grid
from sklearn.tree import DecisionTreeClassifier

import dpframework as dpf
from dpframework.lab.evaluation import redescription_quality
from dpframework.redescriptions.redescription import Redescription

ALLOWED = ("mcmc-converged",)
EQUAL = Fraction(2, 3)  # of two trees and a table, as in the paper
OTHER = {dpf.View.LEFT: dpf.View.RIGHT, dpf.View.RIGHT: dpf.View.LEFT}
SIGNIFICANT = 0.01
NO_NOISE = 1e-12  # the variance that the extraction is told of exact counts


@attrs.frozen
class Paper:
    """What Mihelčić and Miettinen 2023 set for such a table: Table 6, and the noisy support that they prune at."""

    starts: int
    min_support: int
    pruned_at: int


PAPER = {"mammal": Paper(4, 10, 500), "cms": Paper(20, 100, 1000)}
#: CPU seconds of the authors' program with the same parameters; its walks may stop before their last iteration.
AUTHORS = {
    ("mammal_like", "mcmc-tree-pair"): "9.2",
    ("mammal_like", "alt-mcmc"): "12.4",
    ("mammal_like", "alt-expm"): "5.8",
    ("cms_like", "mcmc-tree-pair"): "653 to 708",
    ("cms_like", "alt-mcmc"): "132 to 153",
    ("cms_like", "alt-expm"): "131 to 147",
}


@attrs.frozen
class Method:
    """A miner with settings; with `table_6`, those of the paper besides."""

    miner: str
    settings: dict[str, Any]
    table_6: bool = False

    @property
    def text(self) -> str:
        """The miner and its settings."""
        settings = [value if isinstance(value, str) else f"{name} {value}" for name, value in self.settings.items()]
        return ", ".join([self.miner, *settings])

    def make(self, paper: Paper, names: Sequence[str], epsilon: float, seed: int) -> Any:
        """Return the miner; what the paper starts from is drawn without looking at the data."""
        settings = dict(self.settings)
        if self.table_6:
            starts = np.random.default_rng(seed).choice(names, paper.starts, replace=False)
            settings |= {"starts": starts.tolist(), "max_depth": 4, "constraints": {"min_support": paper.min_support}}
        return dpf.miner(self.miner, epsilon=epsilon, **settings)


SAMPLERS: list[tuple[str, dict[str, Any]]] = [
    ("alt-expm", {}),
    ("alt-mcmc", {"sampler": "exact"}),
    ("alt-mcmc", {"sampler": "mcmc"}),
    ("mcmc-tree-pair", {"sampler": "mcmc"}),
]
DEFAULTS = [
    *(Method(miner, settings) for miner, settings in SAMPLERS),
    Method("mcmc-tree-pair", {"score": "product", "sampler": "mcmc"}),
]
PUBLISHED = [Method(miner, {**settings, "sensitivity": "published"}) for miner, settings in SAMPLERS]
BIG: list[tuple[str, dict[str, Any]]] = [
    ("alt-expm", {"tree_share": EQUAL}),
    ("alt-mcmc", {"sampler": "mcmc", "tree_share": EQUAL}),
    ("mcmc-tree-pair", {"tree_share": 0.1, "sampler": "mcmc"}),
]
TABLE_6 = [
    Method(miner, {**settings, "sensitivity": sensitivity}, table_6=True)
    for sensitivity in ("published", "tight")
    for miner, settings in BIG
]
SHAPES = [
    Method("alt-mcmc", settings)
    for settings in (
        {"starts": 1},
        {"starts": 2},
        {"starts": 4},
        {"max_depth": 1},
        {"max_depth": 3, "sampler": "mcmc"},
        {"max_depth": 4, "sampler": "mcmc"},
        {"rounds": 3},
    )
]
NOT_PRIVATE = "not private"
GROUPS = {
    "defaults": DEFAULTS,
    "defaults but for depth, starts or rounds": SHAPES,
    "defaults but for the sensitivity": PUBLISHED,
    "settings of the paper's Table 6": TABLE_6,
}


def public_grid(data: str, column: str) -> dpf.Numeric:
    """Return the public range and cuts of a numeric column: common knowledge of climates, and of amounts of money."""
    if data.startswith("cms"):
        return dpf.Numeric(column, 0, 100_000, cuts=[10, 20, 50, 100, 200, 500, 1000, 2000, 5000], view="right")
    if column.startswith("prec"):
        return dpf.Numeric(column, 0, 1000, cuts=range(10, 160, 10), view="right")
    return dpf.Numeric(column, -60, 60, cuts=range(-15, 33, 3), view="right")


def read(folder: Path, data: str) -> dpf.Table:
    """Read a two-view table; the schema takes no more from the files than the names of their columns."""
    left, right = (folder / f"{data}_{side}.csv" for side in "LR")
    names = [path.open(encoding="utf-8").readline().strip().split(",") for path in (left, right)]
    attributes = [*(dpf.Boolean(n, view="left") for n in names[0]), *(public_grid(data, n) for n in names[1])]
    return dpf.read_two_views(left, right, dpf.Schema(attributes))


def mined(table: dpf.Table, miner: Any, seed: int | None) -> dpf.redescriptions.Redescriptions:
    """Plan, check and run a study of one miner."""
    study = dpf.Study(table.schema, epsilon=miner.epsilon, allow=ALLOWED)
    study.add("found", miner)
    found: dpf.redescriptions.Redescriptions = study.run(table, seed=seed)["found"]
    return found


class CartWheels:
    """Alternating CART trees on exact counts (Ramakrishnan et al. 2004): not private, with the same public tests.

    Parameters
    ----------
    table
        The rows.
    """

    def __init__(self, table: dpf.Table) -> None:
        self.schema = table.schema
        (self.block,) = dpf.InMemory().load(table)
        self.tests = {view: self.tests_of(view) for view in dpf.View}
        self.columns = {
            view: np.column_stack([test.holds(self.block) for test in tests])  # type: ignore[union-attr]
            for view, tests in self.tests.items()
        }

    def tests_of(self, view: dpf.View) -> Candidates:
        names = [a.name for a in self.schema.view(view)]
        return Candidates.of_schema(self.schema, names, multiway=False, cuts=True)

    def best_starts(self, number: int) -> Iterator[tuple[dpf.View, NDArray[Any]]]:
        """Yield the views and classes of the tests that are most associated with the other view, from views in turn."""
        engine, taken = dpf.InMemory(), dict.fromkeys(dpf.View, 0)
        for view in [(dpf.View.LEFT, dpf.View.RIGHT)[k % 2] for k in range(number)]:
            tests = self.tests[view]
            scores = Associations(tests, self.tests[OTHER[view]]).evaluate(engine, [self.block], candidates=tests)
            best = np.argsort(-scores, kind="stable")[taken[view]]
            taken[view] += 1
            yield view, self.columns[view][:, best]

    def drawn_starts(self, number: int, seed: int) -> Iterator[tuple[dpf.View, NDArray[Any]]]:
        """Yield the views and classes of the same attributes that `Method.make` draws."""
        for name in np.random.default_rng(seed).choice(self.schema.names, number, replace=False):
            view = self.schema[str(name)].view
            assert view is not None
            yield view, self.block.codes(str(name))

    def tree(self, view: dpf.View, classes: NDArray[Any], depth: int) -> CompleteTree | None:
        """Return CART's tree, filled up to a complete one by asking again what is known; None if it has no test."""
        grown = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(self.columns[view], classes).tree_
        if grown.feature[0] < 0:
            return None
        tests = np.zeros(2**depth - 1, dtype=np.int64)
        of_node = {0: 0}
        for node in range(len(tests)):
            at = of_node[node]
            inner = grown.feature[at] >= 0
            tests[node] = grown.feature[at] if inner else tests[(node - 1) // 2]
            # CART's right child is where the test holds, ours the first
            of_node[2 * node + 1] = grown.children_right[at] if inner else at
            of_node[2 * node + 2] = grown.children_left[at] if inner else at
        return CompleteTree(self.tests[view], tests)

    def mined(
        self, starts: Iterable[tuple[dpf.View, Any]], depth: int, constraints: Constraints
    ) -> list[Redescription]:
        """Return the redescriptions of a pair of trees for each start."""
        found: dict[tuple[str, str], Redescription] = {}
        for view, classes in starts:
            first = self.tree(OTHER[view], classes, depth)
            second = None if first is None else self.tree(view, first.leaf_codes(self.block), depth)
            if first is None or second is None:
                continue
            trees = {OTHER[view]: first, view: second}
            left, right = (trees[side].leaf_codes(self.block) for side in (dpf.View.LEFT, dpf.View.RIGHT))
            counts = np.bincount(left << depth | right, minlength=4**depth).reshape(2**depth, -1)
            for one in extract(trees, counts, NO_NOISE, constraints)[0]:
                found.setdefault((str(one.left), str(one.right)), one)
        return list(found.values())


def judged(table: dpf.Table, found: Iterable[Redescription]) -> NDArray[np.float64]:
    """Return the true Jaccard index, the noisy one and the true p-value of each, shape (redescriptions, 3)."""
    quality = redescription_quality(found, table)
    return np.stack([quality.true, quality.noisy, quality.p_values], axis=1)


def summary(runs: list[NDArray[np.float64]]) -> dict[str, Any]:
    """Return what several runs found, pooled as in the paper."""
    true, noisy, p_values = np.concatenate(runs).T
    some = len(true) > 0
    return {
        "count": len(true) / len(runs),
        "significant": float(np.mean(p_values <= SIGNIFICANT)) if some else None,
        "jaccard": float(np.median(true)) if some else None,
        "error": float(np.median(np.abs(noisy - true))) if some else None,
        "none": float(np.mean([len(run) == 0 for run in runs])),
    }


def quality(args: argparse.Namespace, data: str) -> list[dict[str, Any]]:
    """Return what every method finds at every epsilon, and what trees that are not private find."""
    table, paper = read(args.data, data), PAPER[data.split("_")[0]]
    baseline = CartWheels(table)
    rows: list[dict[str, Any]] = []

    def add(group: str, method: str, epsilon: float | None, runs: list[Any]) -> None:
        kept = {"pruned": [[one for one in run if one.support.value >= paper.pruned_at] for run in runs]}
        if epsilon is not None:
            kept["trusted"] = [[one for one, sure in zip(run, run.starred, strict=True) if sure] for run in runs]
        for which, lists in kept.items():
            row = {"data": data, "group": group, "method": method, "epsilon": epsilon, "kept": which}
            rows.append({**row, **summary([judged(table, run) for run in lists])})
        print(f"{data}: {method}, epsilon {epsilon}, {time.process_time():.0f} s", file=sys.stderr)

    for group, methods in GROUPS.items():
        for method in methods if group in args.groups else ():
            for epsilon in args.epsilon:
                made = [method.make(paper, table.schema.names, epsilon, seed) for seed in range(args.runs)]
                add(group, method.text, epsilon, [mined(table, miner, seed) for seed, miner in enumerate(made)])
    if NOT_PRIVATE not in args.groups:
        return rows
    few, many = Constraints(), Constraints(min_support=paper.min_support)
    add(NOT_PRIVATE, "CARTwheels, depth 2, best starts", None, [baseline.mined(baseline.best_starts(2), 2, few)])
    drawn = [baseline.mined(baseline.drawn_starts(paper.starts, seed), 4, many) for seed in range(args.runs)]
    add(NOT_PRIVATE, f"CARTwheels, depth 4, {paper.starts} starts", None, drawn)
    return rows


def cells(row: dict[str, Any]) -> str:
    """Return count (and share of runs with none), share significant, median true Jaccard index and median error."""
    if row["significant"] is None:
        return "none"
    none = f" ({100 * row['none']:.0f} %)" if row["none"] else ""
    count = f"{row['count']:.{0 if row['count'] >= 10 else 1}f}{none}"
    some = [count, f"{100 * row['significant']:.0f} %", f"{row['jaccard']:.2f}", f"{row['error']:.3f}"]
    return " / ".join(some)


CELL = "number a run (runs with none) / significant / median true Jaccard / median error"


def grids(rows: list[dict[str, Any]], epsilons: list[float]) -> Iterator[Grid]:
    """Yield a table for each data set and each way of pruning: methods down, epsilons across."""
    for data in dict.fromkeys(row["data"] for row in rows):
        for kept in ("pruned", "trusted"):
            grid = Grid(title=f"{data}, {kept}: {CELL}")
            grid.add_column("")
            for epsilon in epsilons:
                grid.add_column(f"epsilon {epsilon:g}", justify="right")
            here = [row for row in rows if row["data"] == data and row["kept"] == kept]
            for group in dict.fromkeys(row["group"] for row in here):
                grid.add_row(f"[b]{group}[/b]")
                for method in dict.fromkeys(row["method"] for row in here if row["group"] == group):
                    found = {r["epsilon"]: cells(r) for r in here if (r["group"], r["method"]) == (group, method)}
                    grid.add_row(method, *(found.get(epsilon, found.get(None, "")) for epsilon in epsilons))
            yield grid


def timed(folder: Path, data: str, method: Method) -> dict[str, Any]:
    """Return what one private run takes; called in a process of its own."""
    table, paper = read(folder, data), PAPER[data.split("_")[0]]
    few = dpf.Table.from_codes(table.schema, table.codes[:, :100], {k: v[:100] for k, v in table.values.items()})
    mined(few, method.make(attrs.evolve(paper, starts=1), table.schema.names, 1.0, 0), None)  # loads libraries, kernels
    gc.collect()
    gc.freeze()  # a pass over the libraries' objects, 0.1 s, falls into one run and not into another
    before, start = peak_mib(), time.process_time()
    found = mined(table, method.make(paper, table.schema.names, 1.0, 0), None)
    seconds = time.process_time() - start
    row = {"data": data, "rows": table.codes.shape[1], "method": method.text, "seconds": seconds, "found": len(found)}
    authors = AUTHORS.get((data, method.miner), "")
    return {**row, "peak_mib": peak_mib(), "peak_mib_before": before, "authors": authors}


def times(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return CPU seconds and peak memory with the paper's parameters, every run in a fresh process."""
    rows = []
    for data in sorted((path.name.removesuffix("_L.csv") for path in args.data.glob("*_L.csv")), key=len):
        if data.split("_")[0] not in PAPER or (args.only and data not in args.only):
            continue
        for method in TABLE_6[: len(BIG)]:
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(1, mp_context=context) as alone:
                rows.append(alone.submit(timed, args.data, data, method).result())
            print(rows[-1], file=sys.stderr)
    return rows


def times_grid(rows: list[dict[str, Any]]) -> Grid:
    """Return times as a table."""
    grid = Grid(title="One private run with the parameters of Table 6 at epsilon 1")
    for column in ("data", "rows", "method", "CPU s", "the authors' CPU s", "peak MiB", "before the run"):
        grid.add_column(column)
    for row in rows:
        used = [f"{row['seconds']:.2f}", row["authors"], f"{row['peak_mib']:.0f}", f"{row['peak_mib_before']:.0f}"]
        grid.add_row(row["data"], str(row["rows"]), row["method"], *used)
    return grid


def main() -> None:
    """Compare, print tables, and write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("quality", "time"))
    parser.add_argument("--data", type=Path, required=True, help="folder with mammal_like_L.csv and so on")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="some of the tables, such as mammal_like")
    parser.add_argument("--runs", type=int, default=10, help="seeded runs of each method")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 0.1, 0.01])
    parser.add_argument("--groups", nargs="+", choices=[*GROUPS, NOT_PRIVATE], default=[*GROUPS, NOT_PRIVATE])
    parser.add_argument("--out", type=Path, help="JSON file to write")
    args = parser.parse_args()
    console = Console(width=max(180, Console().width))
    if args.what == "quality":
        results = []
        for data in args.only or [f"{name}_like" for name in PAPER]:
            rows = quality(args, data)
            results += rows
            for grid in grids(rows, args.epsilon):
                console.print(grid)
    else:
        results = times(args)
        console.print(times_grid(results))
    if args.out is not None:
        packages = {package: version(package) for package in PACKAGES}
        report = {"python": platform.python_version(), "packages": packages, "results": results}
        args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {args.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
