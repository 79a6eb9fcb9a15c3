"""The kernels of tree criteria, generated from formulas, beside kernels by hand: inside the miners, in one process.

    python tests/benchmarks/criterion_kernels.py
    python tests/benchmarks/criterion_kernels.py --only dp-tree --criteria norm gini --rows 100000

A kernel by hand is the one that the miners ran before, with one function for each criterion: it does not branch on the
criterion either. Prints CPU seconds of a seeded run, plan and result included, the least of several by turns, and CPU
milliseconds inside the kernels that score. The last column says whether both released the same.
"""

from __future__ import annotations

import argparse
import functools
import math
import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dpframework_trees.kernels as tree_kernels
import kernel_time
import numpy as np
from dpframework_greedy.surplus_score import Surplus
from dpframework_trees.criteria import CRITERIA
from dpframework_trees.kernels import (
    CriterionKernels,
    kernels_of,
    scores as of_scores,
    walks as of_walks,
    weight_kernels as of_weights,
)
from numba import njit

import dpframework as dpf
from dpframework.formulas import Cells, as_formula, compiled_for, public, score_kernel, scores_of
from dpframework.redescriptions import MatchScores
from dpframework.redescriptions.kernels.match_kernels import _cells, match_scores

MINERS: dict[str, tuple[str, dict[str, Any]]] = {
    "dp-id3, depth 5": ("dp-id3", {"target": "b0", "max_depth": 5}),
    "dp-id3, density": ("dp-id3", {"target": "b0", "max_depth": 3, "numeric": "density"}),
    "dp-tree, exact, depth 2": ("dp-tree", {"target": "b0", "max_depth": 2, "sampler": "exact"}),
    "dp-tree, exact, depth 3": ("dp-tree", {"target": "b0", "max_depth": 3, "sampler": "exact"}),
    "dp-tree, mcmc, depth 5": ("dp-tree", {"target": "b0", "max_depth": 5, "sampler": "mcmc"}),
    "alt-expm": ("alt-expm", {}),
    "mcmc-tree-pair": ("mcmc-tree-pair", {"sampler": "mcmc"}),
}
FIXED = ("alt-expm", "mcmc-tree-pair")  # miners whose criterion is the 3-norm


@njit(nogil=True)
def _norm(counts: Any) -> float:
    largest = 0.0
    for c in range(len(counts)):
        largest = max(largest, float(counts[c]))
    if largest == 0:
        return 0.0
    score = 0.0
    for c in range(len(counts)):
        share = counts[c] / largest
        score += share * (share * share)
    return largest * math.exp(math.log(score) / 3)


@njit(nogil=True)
def _max(counts: Any) -> float:
    total = largest = 0.0
    for c in range(len(counts)):
        total += float(counts[c])
        largest = max(largest, float(counts[c]))
    return 0.0 if total == 0 else largest


@njit(nogil=True)
def _gini(counts: Any) -> float:
    total = score = 0.0
    for c in range(len(counts)):
        total += float(counts[c])
    if total == 0:
        return 0.0
    for c in range(len(counts)):
        score += counts[c] * (counts[c] / total)
    return score


@njit(nogil=True)
def _information_gain(counts: Any) -> float:
    total = score = 0.0
    for c in range(len(counts)):
        total += float(counts[c])
    if total == 0:
        return 0.0
    for c in range(len(counts)):
        if counts[c] > 0:
            score += counts[c] * math.log2(counts[c] / total)
    return score


BY_HAND = {"norm": _norm, "max": _max, "gini": _gini, "information-gain": _information_gain}


@functools.cache
def kernels_by_hand(criterion: str) -> CriterionKernels:
    """Return the kernels with a score by hand in them, compiled in this process alone."""

    def compiled(function: Callable[..., Any], **calls: Any) -> Any:
        names = {**function.__globals__, "child_score": BY_HAND[criterion], **calls}
        return njit(nogil=True)(types.FunctionType(function.__code__, names, function.__name__))

    pair = compiled(of_scores.pair_score)
    return CriterionKernels(
        child_score=BY_HAND[criterion],
        split_scores=compiled(of_scores.split_scores),
        threshold_scores=compiled(of_scores.threshold_scores),
        pair_score=pair,
        walk_trees=compiled(of_walks.walk_trees),
        walk_pairs=compiled(of_walks.walk_pairs, pair_score=pair),
        side_scores=compiled(of_weights.side_scores),
        add_log_weights=compiled(of_weights.add_log_weights),
    )


class Timed:
    """Kernels, and the CPU time that passes inside them."""

    def __init__(self, of: CriterionKernels) -> None:
        self.seconds = 0.0
        self.kernels = CriterionKernels(*map(self._run_timed, of))

    def _timed(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            begun = time.thread_time()
            found = kernel(*given)
            self.seconds += time.thread_time() - begun
            return found

        return call


@contextmanager
def run_with(timed: Timed) -> Iterator[None]:
    """Let the miners run some kernels."""
    tree_kernels.kernels_of = lambda formula: timed.kernels  # type: ignore[assignment]
    try:
        yield
    finally:
        tree_kernels.kernels_of = kernels_of


def mined(kind: str, parameters: dict[str, Any], table: dpf.Table) -> Any:
    """Plan, check and run, seeded; return what was found."""
    study = dpf.Study(table.schema, epsilon=1, allow=["mcmc-converged", "real-arithmetic"])
    study.add("mined", dpf.miner(kind, epsilon=1, **parameters))
    return study.run(table, seed=1).to_dict()["results"]


def _matches_by_formula(counts: Any, known_left: Any, known_right: Any, room: Any, scores: Any) -> None:
    """Score matches as `match_scores` does, by the generated kernel of their formula."""
    for i in range(len(known_left)):
        for j in range(len(known_right)):
            n11, n10, n01, n00, half = _cells(counts, i, j, known_left[i], known_right[j])
            room[0], room[1], room[2] = n11, n00, n10 + n01 + half
            scores[0, i, j] = score(room)  # noqa: F821
            room[0], room[1], room[2] = n10, n01, n11 + n00 + half
            scores[1, i, j] = score(room)  # noqa: F821


def _least(run: Callable[[], Any], times: int) -> tuple[float, float]:
    """Return the CPU seconds of the first call, and the least of some later ones."""
    seconds = []
    for _ in range(times + 1):
        begun = time.process_time()
        run()
        seconds.append(time.process_time() - begun)
    return seconds[0], min(seconds[1:])


def show_parametrized(times: int, number: int = 500) -> None:
    """Compare kernels whose numbers are a study's or a release's: a generated one is compiled for each of them."""
    random = np.random.default_rng(3)
    query = MatchScores([dpf.Boolean("x", view="left")], [dpf.Boolean("y", view="right")], "0.6", 12_000)
    one, _ = query.scored_formulas
    counts = random.integers(0, 20_000, (number + 2, number + 2))
    counts[number:] = counts[:, number:] = 80_000
    known, room, scores = np.full(number, number), np.zeros(3, dtype=np.int64), np.zeros((2, number, number))
    by_formula = compiled_for(one.shape, _matches_by_formula, score=score_kernel(one.shape), _cells=_cells)
    runs = {
        "matches of 500 x 500 tests": (
            lambda: by_formula(counts, known, known, room, scores),
            lambda: match_scores(counts, known, known, 0.6, 12_000.0, math.inf, scores),
        )
    }
    both, only = random.integers(0, 50_000, (2, 10**5))
    surplus = Surplus(20_000, 0.71)
    (claimed,) = surplus.scored
    shape = Cells(claimed.shape.cells, claimed.shape.body.replaced({public("c", "1/2", 1): as_formula("0.71")}))
    runs["surplus of 10^5 extensions"] = (
        lambda: scores_of(shape, np.stack([both, only], axis=1)),
        lambda: surplus.of_supports(both, both + only),
    )
    for name, (generated, by_hand) in runs.items():
        first, spent = _least(generated, times)
        _, spent_by_hand = _least(by_hand, times)
        figures = (
            f"generated {spent * 1e3:.2f} ms, by hand {spent_by_hand * 1e3:.2f} ms, share {spent / spent_by_hand:.2f}"
        )
        print(
            f"{name}: {figures}; first call of a study or round {first:.2f} s (it compiles, unless that is kept)",
            flush=True,
        )


def main() -> None:
    """Read the command line, and print a line for each miner and criterion."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=[""], help="which miners: beginnings of names")
    parser.add_argument("--criteria", nargs="+", choices=BY_HAND, default=list(BY_HAND))
    asked = parser.parse_args()
    table = kernel_time.made(asked.rows, 1)
    heads = ("run: generated, by hand", "inside: generated, by hand")
    print(f"{'miner':<26}{'criterion':<18}{heads[0]:>24}{heads[1]:>28}  share  same")
    for name, (kind, parameters) in MINERS.items():
        if not name.startswith(tuple(asked.only)):
            continue
        for criterion in asked.criteria:
            if kind in FIXED and criterion != "norm":
                continue
            more = {} if kind in FIXED else {"criterion": criterion}
            sides = [kernels_of(CRITERIA[criterion].formula), kernels_by_hand(criterion)]
            least, outputs = [[math.inf, math.inf], [math.inf, math.inf]], [None, None]
            for turn in range(asked.times + 1):
                for side, kernels in enumerate(sides):
                    timed = Timed(kernels)
                    with run_with(timed):
                        begun = time.process_time()
                        outputs[side] = mined(kind, {**parameters, **more}, table)
                        spent = time.process_time() - begun
                    if turn:  # the first compiles
                        least[side] = [min(least[side][0], spent), min(least[side][1], timed.seconds)]
            (run, inside), (run_by_hand, inside_by_hand) = least
            times = f"{run:>15.3f}{run_by_hand:>9.3f}{inside * 1e3:>16.2f}{inside_by_hand * 1e3:>9.2f} ms"
            same = "yes" if outputs[0] == outputs[1] else "NO"
            print(f"{name:<26}{criterion:<18}{times}{inside / inside_by_hand:>7.2f}  {same}", flush=True)
    show_parametrized(asked.times)


if __name__ == "__main__":
    main()
