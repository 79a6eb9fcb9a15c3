"""Class shares of a tree's leaves as the posterior of all counts, and by an earlier rule, of the same releases.

    python tests/benchmarks/leaf_shares.py soybean dermatology --epsilon 0.1
    python tests/benchmarks/leaf_shares.py cmc --method dp-id3 --epsilon 1 10

A line for each task and epsilon: the four measures of `compare_classifiers` by the posterior, the mean probability of
the predicted class, and the mean differences to the earlier rule with their standard errors. That rule drew a
node's shares towards its parent's by as many rows as two standard deviations of a count's noise, and took negative
counts off the others. Fits that are no tree are left out.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_tasks import default_data
from classifier_goals import table_of
from compare_classifiers import METHODS, classes_of, folds_of, measures, ours
from dpframework_trees import estimates
from dpframework_trees.default import ADDITIVE
from dpframework_trees.tree import DecisionTree, Inner, Leaf, TreeNode
from numpy.typing import NDArray


def former_shares(counts: NDArray[np.float64], deviation: float, parent: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a node's shares by the earlier rule."""
    total = max(float(counts.sum()), 0.0)
    ordered = -np.sort(-counts)
    lacking = (np.cumsum(ordered) - total) / np.arange(1, len(counts) + 1)
    known = np.maximum(counts - lacking[int((ordered > lacking).sum()) - 1], 0) if total else np.zeros(len(counts))
    return np.asarray((known + 2 * deviation * parent) / (total + 2 * deviation))


def former(node: Any, parent: NDArray[np.float64]) -> TreeNode:
    """Return a counted node as it was finished before."""
    shares = former_shares(node.counts, math.sqrt(node.variance), parent)
    if node.grown.split is None:
        return Leaf(node.counts, shares)
    children = tuple(former(child, shares) for child in node.children)
    return Inner(node.grown.split, children, node.counts, shares)


def both(task: str, method: str, epsilon: float, args: argparse.Namespace) -> NDArray[np.float64]:
    """Return measures and what is said, shape (fits, 2, measures + 1), by the posterior and by the earlier rule."""
    table, target = table_of(args.data, task)
    released: list[Any] = []
    finish = estimates.finish

    def finish_and_keep(root: Any) -> TreeNode:
        released.append(root)
        return finish(root)

    estimates.finish = finish_and_keep
    found = []
    for fold, (train, test) in enumerate(folds_of(table)):
        for repeat in range(args.fits):
            model, attribute = ours(method, epsilon, train, target, 100 * fold + repeat), train.schema[target]
            if getattr(model, "kind", "") == ADDITIVE:
                continue
            even = np.full(attribute.size, 1 / attribute.size)
            before = DecisionTree.over(former(released[-1], even), attribute, train.schema)
            predicted = [tree.predict_proba(test) for tree in (model, before)]
            found.append([[*measures(p, classes_of(test, target)).values(), p.max(axis=1).mean()] for p in predicted])
    estimates.finish = finish
    return np.array(found)


def main() -> None:
    """Print a row of a table for each task and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument(
        "--method", choices=[name for name in METHODS if name != "dp-additive"], default="dp-classifier"
    )
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1])
    parser.add_argument("--fits", type=int, default=20, help="a fold")
    args = parser.parse_args()
    print(f"| task | epsilon | fits | accuracy / AUC, log-loss, calibration | said | differences |\n|{'---|' * 6}")
    for task in args.tasks:
        for epsilon in args.epsilon:
            found = both(task, args.method, epsilon, args)
            mean, less = found[:, 0].mean(axis=0), found[:, 0] - found[:, 1]
            errors = less.std(axis=0, ddof=1) / math.sqrt(len(less))
            shown = " / ".join(f"{d:+.4f} ({e:.4f})" for d, e in zip(less.mean(axis=0)[:4], errors[:4], strict=True))
            now = f"{mean[0]:.3f} / {mean[1]:.3f}, {mean[2]:.3f}, {mean[3]:.3f}"
            print(f"| {task} | {epsilon:g} | {len(less)} | {now} | {mean[4]:.3f} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
