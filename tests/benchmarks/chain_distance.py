"""How far a walk over trees is from the distribution that its claim is about, against its number of steps.

    python tests/benchmarks/chain_distance.py --out chain-distance.png

The distribution of the root's test is known: the exact sampler computes it. Its total variation from that of many walks
is drawn, beside what as many exact draws show (the noise floor). Seeded: these are experiments on public data.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_tasks import Task, default_data
from dpframework_trees.criteria import KnownRows, criterion_named
from dpframework_trees.queries import TreeScores
from dpframework_trees.sampling import MarkovChainTrees, TreeData, Weights
from dpframework_trees.splits import Candidates
from numpy.typing import NDArray

from dpframework import InMemory, Relation
from dpframework.mechanisms.randomness import SeededRandomness

STEPS = (100, 300, 1_000, 3_000, 10_000, 30_000)
SETTINGS = ((2, 0.1), (2, 1.0), (3, 0.1), (3, 1.0))  # depth, epsilon


def distances(data: TreeData, query: TreeScores, epsilon: float, chains: int) -> tuple[list[float], float]:
    """Return the total variation after each of `STEPS`, and the noise floor."""
    calibration = MarkovChainTrees(epsilon).calibrate(query.facts(), Relation.ADD_OR_REMOVE_ONE)
    assert calibration is not None
    weights = Weights(data, float(calibration.scale), threads=2)
    logs = weights.of_tests(weights.data.rows, data.depth)
    exact = np.exp(logs - logs.max())
    exact /= exact.sum()

    def apart(roots: NDArray[np.int64]) -> float:
        return float(np.abs(np.bincount(roots, minlength=len(exact)) / len(roots) - exact).sum() / 2)

    randomness = SeededRandomness(0)
    found = []
    for steps in STEPS:
        walk = MarkovChainTrees(epsilon, steps)
        found.append(apart(np.array([walk.release(data, calibration, randomness)[0] for _ in range(chains)])))
    rng = np.random.default_rng(0)
    floor = float(np.mean([apart(rng.choice(len(exact), chains, p=exact)) for _ in range(100)]))
    return found, floor


def drawn(results: dict[tuple[int, float], tuple[list[float], float]], title: str, out: Path) -> None:
    """Draw one line a setting."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.6))
    for (depth, epsilon), (found, floor) in results.items():
        (line,) = axes.plot(STEPS, found, marker="o", label=f"depth {depth}, epsilon {epsilon:g}")
        axes.axhline(floor, color=line.get_color(), linestyle=":", linewidth=1)
    axes.set(xscale="log", ylim=(0, 1), xlabel="steps of the walk", ylabel="total variation of the root's test")
    axes.set_title(title, fontsize=10)
    axes.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(out, dpi=90, metadata={"Software": None})


def main() -> None:
    """Measure, print, and draw."""
    parser: Any = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data(), help="folder with mushroom/mushroom.csv")
    parser.add_argument("--chains", type=int, default=300)
    parser.add_argument("--out", type=Path, help="PNG file to write")
    args = parser.parse_args()
    task = Task.read(args.data, "mushroom")
    tests = Candidates.of_schema(task.schema, task.features, multiway=False, cuts=True)
    engine = InMemory()
    results = {}
    for depth, epsilon in SETTINGS:
        query = TreeScores(criterion_named("norm"), task.schema[task.target], KnownRows(), tests, depth)
        data = query.evaluate(engine, engine.load(task.table))
        found, floor = results[depth, epsilon] = distances(data, query, epsilon, args.chains)
        steps = ", ".join(f"{number}: {apart:.2f}" for number, apart in zip(STEPS, found, strict=True))
        print(f"depth {depth}, epsilon {epsilon:g}: {steps}; exact draws {floor:.2f}")
    if args.out is not None:
        drawn(results, f"Mushroom, {len(tests)} tests, {args.chains} walks each (dotted: exact draws)", args.out)
        print(f"wrote {args.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
