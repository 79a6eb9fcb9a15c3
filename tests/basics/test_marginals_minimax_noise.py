"""The largest variance of a workload's cells is as small as any noise of the budget can make it."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import dpframework as dpf
from dpframework.basics import MarginalsMiner
from dpframework.basics.marginals_minimax_noise import (
    GAP,
    for_largest,
    least_largest,
    predict_largest,
    weights_of_largest,
)
from dpframework.basics.marginals_workload_noise_and_errors import Workload, all_sets
from dpframework.queries.base import Norm

WORKLOADS = [
    ([2, 3, 16], 2, {}),
    ([2, 2, 3, 5], 3, {}),
    ([4, 4, 9], 2, {(0, 1): 5.0, (2,): 0.25}),
]


def schema_of(sizes: list[int]) -> dpf.Schema:
    return dpf.Schema([dpf.Categorical(f"c{k}", [str(v) for v in range(n)]) for k, n in enumerate(sizes)])


def workload_of(sizes: list[int], order: int, weights: dict[tuple[int, ...], float]) -> Workload:
    wanted = {one: weights.get(one, 1.0) for one in all_sets(len(sizes), order)}
    return Workload(schema_of(sizes).attributes, wanted, rows_known=False)


def largest(workload: Workload, noise: dict[tuple[int, ...], float]) -> float:
    """Return the largest weighted variance, by the sum that `workloads` states, from the variance of each block."""
    sizes = workload.sizes
    found = []
    for one, weight in workload.wanted.items():
        cells = math.prod(sizes[a] for a in one)
        variance = 0.0
        for k in range(len(one) + 1):
            for part in itertools.combinations(one, k):
                kept = math.prod(0.25 if sizes[a] == 2 else 1 - 1 / sizes[a] for a in part)
                variance += noise[part] * kept * (math.prod(sizes[a] for a in part) / cells) ** 2
        found.append(weight * variance)
    return max(found)


def searched(workload: Workload, *, gaussian: bool) -> float:
    """Return the least largest variance that a general solver finds, at rho 1/2 or epsilon 1."""
    sets, sizes = list(workload.released()), workload.sizes
    changes = np.array([math.prod(1 - 1 / sizes[a] for a in one if sizes[a] > 2) for one in sets])

    def noise(logs: np.ndarray) -> dict[tuple[int, ...], float]:
        v = np.exp(logs)
        if gaussian:
            v *= (changes / v).sum()  # rho is half of this sum, made 1/2
        else:
            b = np.sqrt(v / 2)
            v = 2 * (b * (1 / b).sum()) ** 2  # epsilon is the sum of 1 / b, made 1
        return dict(zip(sets, v.tolist(), strict=True))

    alone = [Workload(workload.of, {one: w}, rows_known=False) for one, w in workload.wanted.items()]

    def smooth(logs: np.ndarray, power: float) -> float:
        held = noise(logs)
        return float(np.log(np.sum(np.exp(power * np.log([largest(one, held) for one in alone])))) / power)

    best = math.inf
    point = np.zeros(len(sets))
    for power in (2.0, 8.0, 32.0, 128.0):  # a smooth largest variance, ever nearer to it
        point = minimize(smooth, point, (power,), method="BFGS").x
        best = min(best, largest(workload, noise(point)))
    return best


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize(("sizes", "order", "weights"), WORKLOADS)
def test_no_solver_finds_a_smaller_largest_variance(
    sizes: list[int], order: int, weights: dict[tuple[int, ...], float], gaussian: bool
) -> None:
    workload = workload_of(sizes, order, weights)
    found = weights_of_largest(sizes, workload.wanted, workload.released(), gaussian=gaussian)
    assert found.bound <= found.largest <= (1 + GAP) * found.bound
    assert math.isclose(sum(found.weights.values()), 1)
    best = searched(workload, gaussian=gaussian)
    assert best >= found.bound * (1 - 1e-9)  # the bound is one
    assert best <= 1.02 * found.largest  # and the solver comes as near


@pytest.mark.parametrize(("sizes", "order", "weights"), WORKLOADS)
def test_the_plan_has_it(sizes: list[int], order: int, weights: dict[tuple[int, ...], float]) -> None:
    """The whole weights of the query lose at most 1 %, and the objective "mean" is worse."""
    workload = workload_of(sizes, order, weights)
    schema, sets = schema_of(sizes), all_sets(len(sizes), order)
    names = [[schema.names[a] for a in one] for one in sets]
    given = [weights.get(one, 1.0) for one in sets]
    for budget, gaussian, scale in (({"rho": "1/8"}, True, 4.0), ({"epsilon": 2, "noise": "laplace"}, False, 0.25)):
        bound = scale * weights_of_largest(sizes, workload.wanted, workload.released(), gaussian=gaussian).bound
        worst = {}
        for objective in ("mean", "largest"):
            miner = MarginalsMiner(of=names, weights=given, objective=objective, **budget)
            study = dpf.Study(schema, epsilon=50, delta="1e-6" if gaussian else 0)
            study.add("tables", miner)
            plan = study.plan()
            noise = {one.name: own for one in plan.steps() if (own := plan.calibration(one)) is not None}
            variances = miner.variances(schema, noise)
            worst[objective] = max(w * variances[tuple(one)] for one, w in zip(names, given, strict=True))
        assert bound * (1 - 1e-9) <= worst["largest"] <= 1.02 * bound
        assert worst["mean"] > 1.1 * worst["largest"]


def test_blocks_are_taken_where_they_are_predicted_to_be_better() -> None:
    """Twelve attributes of two values: blocks; the prediction is what a plan's noise has."""
    workload = workload_of([2] * 12, 2, {})
    groups = least_largest(workload, in_blocks=True)
    laplace = least_largest(workload, in_blocks=False)
    assert any(group.query.norm is Norm.BLOCKS for group in groups)
    assert all(group.query.norm is Norm.L1 for group in laplace)
    assert predict_largest(workload, groups) < 0.7 * predict_largest(workload, laplace)
    schema = schema_of([2] * 12)
    parameters: dict[str, Any] = {"epsilon": 1, "objective": "largest"}
    study = dpf.Study(schema, epsilon=1)
    study.add("tables", MarginalsMiner(**parameters))
    plan = study.plan()
    noise = {one.name: own for one in plan.steps() if (own := plan.calibration(one)) is not None}
    found = max(MarginalsMiner(**parameters).variances(schema, noise).values())
    assert math.isclose(found, predict_largest(workload, groups), rel_tol=0.01)


def test_weights_do_not_change_what_is_released() -> None:
    workload = workload_of([2, 3, 16], 2, {})
    weighed = for_largest(workload, gaussian=True)
    assert set(weighed.released()) == set(workload.released())
