"""The plan and the releases of the joint histograms of targets with the attributes of their contexts.

One histogram serves two targets that are in each other's contexts. So how many are needed is known only once contexts
are known. A plan has one branch for each number, or, if there are many numbers, for some that are at most a tenth
apart. A number with a branch is a rung. The smallest planned number that suffices is taken, and that many histograms
share the budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from dpframework.facts import Attribute
from dpframework.plan import Node, either, repeat, step
from dpframework.run import PrivateTable
from dpframework_distance.distance_budget import DistanceBudget
from dpframework_distance.distance_estimates import NoisyPair
from dpframework_distance.pair_counts import PairCounts

MOST_RUNGS = 32  # about the most rungs, unless they would be further apart than `LARGEST_STEP`
LARGEST_STEP = 1.1  # the largest ratio between neighbouring rungs, unless they differ by 1


def rungs_between(low: int, high: int, *, every: bool = False) -> list[int]:
    """Return rungs from `low` to `high`: numbers that are at most a tenth apart, or all of them with `every`.

    Examples
    --------
    >>> rungs_between(3, 5)
    [3, 4, 5]
    >>> rungs_between(400, 1000)[:4]
    [400, 411, 422, 434]
    """
    if every:
        return list(range(low, high + 1))
    ratio = min(LARGEST_STEP, (high / low) ** (1 / MOST_RUNGS))
    rungs = [low]
    while rungs[-1] < high:
        rungs.append(min(max(rungs[-1] + 1, int(rungs[-1] * ratio)), high))
    return rungs


def step_of(rung: int) -> str:
    """Return the name of the step that releases one of `rung` histograms."""
    return f"histogram of {rung}" if rung > 1 else "histogram"


def plan(query: PairCounts, rungs: Sequence[int], budget: DistanceBudget, share: Fraction, uses: Sequence[str]) -> Node:
    """Plan the histograms, with a branch for each rung."""
    branches = [repeat(rung, step(step_of(rung), query, budget.counter(share / rung), uses=uses)) for rung in rungs]
    return branches[0] if len(branches) == 1 else either(*branches)


def release(
    table: PrivateTable, among: Sequence[Attribute], wanted: Iterable[tuple[int, int]], rung: int
) -> list[NoisyPair]:
    """Release the histograms of some pairs of attributes, given by position, in the branch of a rung."""
    variance = table.calibration(step_of(rung)).variance
    pairs = [(among[a].name, among[b].name) for a, b in wanted]
    counts = table.release_many((table, step_of(rung), {"pair": pair}) for pair in pairs)
    return [
        NoisyPair(*pair, np.asarray(own, dtype=np.float64), variance) for pair, own in zip(pairs, counts, strict=True)
    ]
