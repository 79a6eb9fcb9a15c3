"""Time of the tree samplers on made-up rows of the sizes that are named. Nothing here asserts a time.

python -m pytest tests/benchmarks/test_sampling_time.py --benchmark-only
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dpframework_trees.criteria import KnownRows, criterion_named
from dpframework_trees.queries import TreeScores
from dpframework_trees.sampling import ExactTrees, MarkovChainTrees
from dpframework_trees.splits import Candidates

import dpframework as dpf
from dpframework.mechanisms.randomness import SystemRandomness

CASES: dict[str, tuple[dpf.Mechanism, int, int, int, int]] = {  # depth, tests, rows, classes
    "exact-depth-2": (ExactTrees(1), 2, 200, 5_000, 4),
    "exact-depth-3": (ExactTrees(1), 3, 200, 5_000, 4),
    "exact-depth-3-rows-x10": (ExactTrees(1), 3, 200, 50_000, 4),
    "exact-depth-4": (ExactTrees(1), 4, 50, 5_000, 2),
    "mcmc-depth-4": (MarkovChainTrees(1, 10_000), 4, 604, 7_200, 2),
    "mcmc-depth-4-rows-x16": (MarkovChainTrees(1, 10_000), 4, 604, 115_200, 2),
}


@pytest.mark.parametrize("case", CASES)
def test_sampling_time(benchmark: Any, case: str) -> None:
    """Time the query and the draw, from encoded rows to a tree."""
    mechanism, depth, tests, rows, classes = CASES[case]
    names = [f"test {k}" for k in range(tests)]
    target = dpf.Categorical("class", [str(c) for c in range(classes)])
    schema = dpf.Schema([*map(dpf.Boolean, names), target])
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (tests + 1, rows), dtype=np.uint8)
    codes[-1] = (2 * codes[3] + codes[7] + (rng.random(rows) < 0.2)) % classes
    candidates = Candidates.of_schema(schema, names, multiway=False, cuts=True)
    query = TreeScores(criterion_named("norm"), target, KnownRows(), candidates, depth)
    calibration = mechanism.calibrate(query.facts(), dpf.Relation.ADD_OR_REMOVE_ONE)
    assert calibration is not None
    engine = dpf.Threads()
    table = engine.load(dpf.Table.from_codes(schema, codes))

    def draw() -> Any:
        return mechanism.release(query.evaluate(engine, table), calibration, SystemRandomness())

    tree = benchmark.pedantic(draw, rounds=3, warmup_rounds=1)
    assert len(tree) == 2**depth - 1
