"""Class shares of a tree's leaves as the posterior of all counts, and by an earlier rule, of the same releases.

    python tests/benchmarks/leaf_shares.py soybean dermatology --epsilon 0.1
    python tests/benchmarks/leaf_shares.py cmc --method dp-id3 --epsilon 1 10

A line for each task and epsilon: the four measures of `compare_classifiers` by the posterior, the mean probability of
the predicted class, and the mean differences to the earlier rule with their standard errors. That rule drew a
node's shares towards its parent's by as many rows as two standard deviations of a count's noise, and took negative
counts off the others. Fits that are no tree are left out.

`right` is the calibration error if the posterior were right: that of the mean of shares that are drawn from it, on the
test rows, with classes drawn by one of these. All rows of a leaf share what is not known of it, so this is more than
`fair`, the error if classes were drawn by the probabilities themselves.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from benchmark_tasks import default_data
from classifier_goals import DRAWS, fair_calibration, table_of
from compare_classifiers import METHODS, calibration_error, classes_of, draw_classes, folds_of, measures, ours
from dpframework_trees import tree_estimates
from dpframework_trees.default_classifier_miner import ADDITIVE
from dpframework_trees.leaf_shares import (
    LEAF_CONCENTRATIONS,
    NODE_CONCENTRATIONS,
    Branch,
    NoisyLeaves,
    Reals,
    _Messages,
    _prior_of,
    _transitions,
    _weigh_concentrations,
)
from dpframework_trees.tree import DecisionTree
from dpframework_trees.tree_nodes import Inner, Leaf, TreeNode
from numpy.typing import NDArray

import dpframework as dpf

OF_MEAN = 100  # draws of shares, for their mean


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


def draw_shares(tree: Branch, leaves: NoisyLeaves, draws: int, rng: np.random.Generator) -> Iterator[Reals]:
    """Draw class shares of all leaves from the posterior, each of shape (leaves, classes)."""
    messages, root = _Messages.of(leaves), (tree,) if isinstance(tree, int) else tree
    likelihoods, prior = messages.send_up(root), _prior_of(leaves)
    likely = _weigh_concentrations(likelihoods, prior)
    for _ in range(draws):
        at = np.unravel_index(rng.choice(likely.size, p=(likely / likely.sum()).ravel()), likely.shape)
        rows, cells = np.zeros(leaves.counts.shape), draw_classes(sent_at(messages, root, at) * prior, rng)
        draw_below(messages, root, cells, at, rows, rng)
        yield rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-12)


def sent_at(messages: _Messages, children: tuple[Branch, ...], at: tuple[Any, ...]) -> Reals:
    """Return the likelihood of each cell of a node by its children's messages, shape (classes, cells)."""
    sent = [messages.sent[child] for child in children]
    logs = sum((one[min(at[0], len(one) - 1), at[1]] for one in sent), np.zeros(1))
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def draw_below(
    messages: _Messages,
    children: tuple[Branch, ...],
    cells: NDArray[np.int64],
    at: tuple[Any, ...],
    rows: Reals,
    rng: np.random.Generator,
) -> None:
    """Draw the rows by class of all leaves below a node whose shares are in some cells, one a class."""
    for child in children:
        if isinstance(child, int):
            own = draw_classes(_transitions(LEAF_CONCENTRATIONS)[at[1]][cells] * messages.likelihoods[child], rng)
            rows[child] = messages.means[child][np.arange(len(own)), own]
        else:
            own = draw_classes(_transitions(NODE_CONCENTRATIONS)[at[0]][cells] * sent_at(messages, child, at), rng)
            draw_below(messages, child, own, at, rows, rng)


def both(task: str, method: str, epsilon: float, args: argparse.Namespace) -> NDArray[np.float64]:
    """Return measures, what is said, right and fair, shape (fits, 2, measures + 3), by the posterior and that rule."""
    table, target = table_of(args.data, task)
    released: list[Any] = []
    finish, posterior_shares = tree_estimates.finish, tree_estimates.posterior_shares
    counted: list[tuple[Branch, NoisyLeaves]] = []

    def keep_counts(tree: Branch, leaves: NoisyLeaves) -> Reals:
        counted.append((tree, leaves))
        return posterior_shares(tree, leaves)

    def finish_and_keep(root: Any) -> TreeNode:
        released.append(root)
        return finish(root)

    tree_estimates.finish, tree_estimates.posterior_shares = finish_and_keep, keep_counts
    found, rng = [], np.random.default_rng(0)
    for fold, (train, test) in enumerate(folds_of(table)):
        for repeat in range(args.fits):
            model, attribute = ours(method, epsilon, train, target, 100 * fold + repeat), train.schema[target]
            if getattr(model, "kind", "") == ADDITIVE:
                continue
            even = np.full(attribute.size, 1 / attribute.size)
            before = DecisionTree.over(former(released[-1], even), attribute, train.schema)
            predicted = [tree.predict_proba(test) for tree in (model, before)]
            of_right = right_calibration(counted[-1], getattr(model, "model", model), test, rng)
            others = [of_right, fair_calibration(predicted[0])]
            y = classes_of(test, target)
            found.append([[*measures(p, y).values(), p.max(axis=1).mean(), *others] for p in predicted])
    tree_estimates.finish, tree_estimates.posterior_shares = finish, posterior_shares
    return np.array(found)


def right_calibration(
    counted: tuple[Branch, NoisyLeaves], tree: DecisionTree, test: dpf.Table, rng: np.random.Generator
) -> float:
    """Return the mean calibration error on rows whose leaves have shares drawn from the posterior, by their mean."""
    places = attrs.evolve(tree, root=tree.predicting, whole=None).apply(test)
    drawn = np.array(list(draw_shares(*counted, OF_MEAN, rng)))[:, places]
    mean = drawn.mean(axis=0)
    return float(np.mean([calibration_error(mean, draw_classes(shares, rng)) for shares in drawn[:DRAWS]]))


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
    heads = ("task", "epsilon", "fits", "accuracy / AUC, log-loss, calibration", "said", "right, fair", "differences")
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for task in args.tasks:
        for epsilon in args.epsilon:
            found = both(task, args.method, epsilon, args)
            mean, less = found[:, 0].mean(axis=0), found[:, 0] - found[:, 1]
            errors = less.std(axis=0, ddof=1) / math.sqrt(len(less))
            shown = " / ".join(f"{d:+.4f} ({e:.4f})" for d, e in zip(less.mean(axis=0)[:4], errors[:4], strict=True))
            now = f"{mean[0]:.3f} / {mean[1]:.3f}, {mean[2]:.3f}, {mean[3]:.3f}"
            said = f"{mean[4]:.3f} | {mean[5]:.3f}, {mean[6]:.3f}"
            print(f"| {task} | {epsilon:g} | {len(less)} | {now} | {said} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
