"""Whether a forest of private trees is better than one: accuracy, and how much it varies, by epsilon.

    python tests/benchmarks/compare_forests.py run --out forests.jsonl
    python tests/benchmarks/compare_forests.py run --tasks nltcs --epsilon 1 --methods dp-id3 --out forests.jsonl
    python tests/benchmarks/compare_forests.py show forests.jsonl

The talk of 2010 names a forest as the cure for the variance of one tree. Two kinds: `split`, each tree on all rows at
its share of the budget; `parts`, each tree at the whole budget on a part of the rows, which are drawn without a look at
them, so that under add-or-remove-one parts are disjoint and cost what one costs. Probabilities of the trees are
averaged. With `half`, each tree has half of the attributes, drawn without a look at the rows too. A cell of `show` is
the mean accuracy over folds and repeats, with the standard deviation of the repeats in a fold: what the mechanism's
randomness does. Runs are seeded; folds are the same for all.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from benchmark_tasks import default_data
from classifier_tasks import TASKS, part, read_task
from dpframework_trees import DPID3, DPAdditive, DPTree
from numpy.typing import NDArray

import dpframework as dpf

FOLDS = 5
MEANT = ("adult", "mushroom", "nltcs", "nursery")
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
MINERS: dict[str, Any] = {"dp-id3": DPID3, "dp-tree": DPTree, "dp-additive": DPAdditive}


@attrs.frozen
class Forest:
    """How a model is made.

    Attributes
    ----------
    miner
        The miner of each tree.
    trees
        How many; 1 is no forest.
    parts
        Whether each has a part of the rows and the whole budget, rather than all rows and a share.
    half
        Whether each has half of the attributes.
    """

    miner: str
    trees: int = 1
    parts: bool = False
    half: bool = False

    @property
    def name(self) -> str:
        """The name of the method."""
        if self.trees == 1:
            return self.miner
        return f"{self.trees} {self.miner}, {'parts' if self.parts else 'split'}{', half' if self.half else ''}"

    def probabilities(
        self, train: dpf.Table, test: dpf.Table, target: str, epsilon: float, seed: int
    ) -> NDArray[np.float64]:
        """Return the probabilities of the classes for test rows, shape (rows, classes)."""
        rng = np.random.default_rng([seed, self.trees])  # of parts and attributes, which see no row
        where = rng.integers(0, self.trees, train.codes.shape[1])
        names = [name for name in train.schema.names if name != target]
        found = []
        for k in range(self.trees):
            rows = part(train, np.flatnonzero(where == k)) if self.parts else train
            own = rng.permutation(names)[: (len(names) + 1) // 2].tolist() if self.half else names
            share = epsilon if self.parts else epsilon / self.trees
            given = {} if self.miner == "dp-additive" else {"attributes": own}
            study = dpf.Study(train.schema, epsilon=share)
            study.add("model", MINERS[self.miner](target, share, **given))
            model = study.run(rows, seed=1_000 * seed + k)["model"]
            found.append(getattr(model, "tree", model).predict_proba(test))
        return np.asarray(np.mean(found, axis=0))


FORESTS = [
    *(Forest(miner) for miner in MINERS),
    *(
        Forest(miner, trees, parts, half)
        for miner in ("dp-id3", "dp-tree")
        for parts in (False, True)
        for trees, half in ((3, False), (10, False), (10, True))
    ),
]


def run(given: argparse.Namespace) -> None:
    """Append a line for each task, epsilon and method."""
    warnings.simplefilter("ignore")
    methods = [forest for forest in FORESTS if given.methods is None or forest.name in given.methods]
    for name in given.tasks:
        table, target = read_task(given.data, name)
        y = table.codes[table.schema.index(target)].astype(np.int64)
        folds = np.random.default_rng(0).permutation(np.arange(len(y)) % FOLDS)
        for epsilon in given.epsilon:
            for forest in methods:
                right = []
                for fold in range(given.folds):
                    train, test = (part(table, np.flatnonzero(own)) for own in (folds != fold, folds == fold))
                    tries = range(100 * fold, 100 * fold + given.repeats)
                    chosen = [forest.probabilities(train, test, target, epsilon, seed).argmax(axis=1) for seed in tries]
                    right.append([float((best == y[folds == fold]).mean()) for best in chosen])
                line = {"task": name, "epsilon": epsilon, "method": forest.name, "accuracy": right}
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")


def show(given: argparse.Namespace) -> None:
    """Print a table of each task, in Markdown."""
    lines = [json.loads(text) for text in given.out.read_text(encoding="utf-8").splitlines()]
    for task in dict.fromkeys(line["task"] for line in lines):
        here = {(line["method"], line["epsilon"]): np.array(line["accuracy"]) for line in lines if line["task"] == task}
        epsilons = list(dict.fromkeys(epsilon for _, epsilon in here))
        print(f"\n| {task}, epsilon | " + " | ".join(f"{one:g}" for one in epsilons) + " |")
        print("|---" * (len(epsilons) + 1) + "|")
        for method in dict.fromkeys(method for method, _ in here):
            print(f"| {method} | " + " | ".join(cell(here.get((method, one))) for one in epsilons) + " |")


def cell(right: NDArray[np.float64] | None) -> str:
    """Return the mean accuracy and the standard deviation of repeats in a fold."""
    if right is None:
        return ""
    spread = float(np.sqrt(right.var(axis=1, ddof=1).mean())) if right.shape[1] > 1 else float("nan")
    return f"{right.mean():.3f} ({spread:.3f})"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    runner, printer = commands.add_parser("run"), commands.add_parser("show")
    runner.add_argument("--data", type=Path, default=default_data())
    runner.add_argument("--tasks", nargs="+", choices=TASKS, default=MEANT)
    runner.add_argument("--methods", nargs="+", choices=[forest.name for forest in FORESTS])
    runner.add_argument("--epsilon", type=float, nargs="+", default=EPSILONS)
    runner.add_argument("--folds", type=int, default=FOLDS, help="of the five, how many")
    runner.add_argument("--repeats", type=int, default=3, help="runs a fold")
    runner.add_argument("--out", type=Path, required=True)
    runner.set_defaults(call=run)
    printer.add_argument("out", type=Path)
    printer.set_defaults(call=show)
    given = parser.parse_args()
    given.call(given)


if __name__ == "__main__":
    main()
