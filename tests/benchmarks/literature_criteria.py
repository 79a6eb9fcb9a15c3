"""Whether criteria from the literature help DP-ID3: twoing beside the built-in ones, and errors by what they cost.

    python tests/benchmarks/literature_criteria.py --data ../shared/data
    python tests/benchmarks/literature_criteria.py --data ../shared/data --only costs --runs 12

`twoing` prints the mean accuracy of seeded trees of five levels, with its standard error; `costs` the mean cost of a
row, where an error in the rarer class costs so many times as much as one in the other, and all trees predict by costs.
"""

from __future__ import annotations

import argparse
import functools
from pathlib import Path
from typing import Any

import attrs
import dpframework_trees.kernels.scores as of_scores
import numpy as np
from classifier_tasks import read_task
from dpframework_trees import DPID3
from dpframework_trees.criteria import CRITERIA, Criterion
from dpframework_trees.kernels import CriterionKernels
from numba import njit

import dpframework as dpf
from dpframework.formulas import Cells, cells, score_kernel
from dpframework.queries import Norm, Sensitivity

a, b, c, d = cells("a", "b", "c", "d")  # rows of some classes and of the others, on either side
TWOING = Cells((a, b, c, d), (a * d - b * c) ** 2 / ((a + b) * (c + d) * (a + b + c + d)))


@functools.cache
def twoing_kernels() -> CriterionKernels:
    """Return the kernels of Gini, with scores of both sides together, compiled once."""
    of_cells, below = score_kernel(TWOING), of_scores.BELOW

    @njit
    def of_sides(held: Any, rest: Any) -> float:
        rows, others = held.sum(), rest.sum()
        counts = np.zeros(4, dtype=np.int64)
        for k in range(len(held)):
            group = 0 if held[k] * others > rest[k] * rows else 1
            counts[group] += held[k]
            counts[2 + group] += rest[k]
        return of_cells(counts)

    @njit
    def scores(counts: Any, slots: Any, widths: Any, kinds: Any, codes: Any, sides: Any, found: Any) -> None:
        for i in range(len(slots)):
            table, each = counts[slots[i] : slots[i] + widths[i]], np.arange(widths[i])
            on_true_side = each <= codes[i] if kinds[i] == below else each == codes[i]
            found[i] = of_sides(table[on_true_side].sum(axis=0), table[~on_true_side].sum(axis=0))

    return CRITERIA["gini"].kernels._replace(split_scores=scores)


@attrs.frozen
class Twoing(Criterion):
    """Twoing in rows: half of what two groups of classes gain in purity, for the groups that gain most."""

    @property
    def kernels(self) -> CriterionKernels:
        """The kernels of Gini, with scores of both sides together."""
        return twoing_kernels()

    def sensitivity(self, row_bound: int | None, **_: Any) -> Sensitivity:
        """Return 1 up and 1 down, as is proved of half of a purity less another (see `docs/proofs.md`)."""
        return Sensitivity(Norm.LINF, 1, 2, rise=1, fall=1, source="a formula of totals")

    def rounding(self, *given: Any) -> Any:
        """Return twice that of Gini."""
        return 2 * CRITERIA["gini"].rounding(*given)


def trees(table: dpf.Table, target: str, epsilon: str, runs: int, **settings: Any) -> Any:
    """Yield trees with class probabilities and classes of up to 3,000 rows each."""
    rows, at = len(table.codes[0]), table.schema.index(target)
    for seed in range(runs):
        study = dpf.Study(table.schema, epsilon=epsilon)
        study.add("tree", DPID3(target=target, epsilon=epsilon, max_depth=5, **settings))
        some = np.random.default_rng(seed).choice(rows, min(rows, 3000), replace=False)
        shown = dpf.Table.from_codes(table.schema, table.codes[:, some])
        yield study.run(table, seed=seed)["tree"].tree.predict_proba(shown), table.codes[at][some]


def figure(values: list[float]) -> str:
    """Return a mean with its standard error."""
    return f"{np.mean(values):.3f} ({np.std(values) / len(values) ** 0.5:.3f})"


def show_twoing(data: Path, runs: int) -> None:
    """Print accuracies by criterion."""
    gini = CRITERIA["gini"]
    CRITERIA["twoing"] = Twoing("gini", "twoing", gini.formula, gini.bounds)
    criteria = ("norm", "max", "gini", "twoing")
    print("| task | classes | epsilon |", " | ".join(criteria), "|")
    for name in ("nursery", "cmc", "teeth", "mushroom", "adult"):
        table, target = read_task(data, name)
        for epsilon in ("0.05", "0.2", "1", "10"):
            found = [
                figure(
                    [float((p.argmax(1) == y).mean()) for p, y in trees(table, target, epsilon, runs, criterion=one)]
                )
                for one in criteria
            ]
            print(f"| {name} | {table.schema[target].size} | {epsilon} |", " | ".join(found), "|", flush=True)


def show_costs(data: Path, runs: int) -> None:
    """Print costs by criterion, with and without costs in the choice of splits."""
    print("| task | cost | epsilon | norm | max | max with costs |")
    for name in ("adult", "teeth", "nltcs", "mushroom", "nursery-urgent"):
        table, target = read_task(data, name)
        rare = int(np.bincount(table.codes[table.schema.index(target)], minlength=2).argmin())
        for more in (3, 10):
            costs = np.where(np.arange(2) == rare, more, 1)
            for epsilon in ("0.1", "1", "10"):
                settings: list[dict[str, Any]] = [{"criterion": one} for one in ("norm", "max")]
                settings.append({"criterion": "max", "costs": costs.tolist()})
                found = []
                for setting in settings:
                    paid = [
                        float(np.where((p * costs).argmax(1) == y, 0, costs[y]).mean())
                        for p, y in trees(table, target, epsilon, runs, **setting)
                    ]
                    found.append(figure(paid))
                print(f"| {name} | {more} | {epsilon} |", " | ".join(found), "|", flush=True)


def main() -> None:
    """Read the command line, and print both tables, or one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--only", nargs="*", choices=["twoing", "costs"], default=["twoing", "costs"])
    asked = parser.parse_args()
    if "twoing" in asked.only:
        show_twoing(asked.data, asked.runs)
    if "costs" in asked.only:
        show_costs(asked.data, asked.runs)


if __name__ == "__main__":
    main()
