"""Workloads of marginals: what each residual's noise adds to the cells, and the weights and groups that are best."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.basics.marginals_minimax_noise import predict_largest
from dpframework.basics.marginals_workload_noise_and_errors import (
    MOST_RATIO,
    Workload,
    all_sets,
    cell_variance,
    marginal_of,
    sum_variance,
)
from dpframework.queries.base import Norm
from dpframework.queries.residual_changes import LARGEST_WEIGHT, subsets
from dpframework.results.marginal_tables import axis_share

SIZES = [(2, 3, 4), (2, 2, 2, 2), (5, 2, 3), (3,)]
Set = tuple[int, ...]


def workload(sizes: tuple[int, ...], *, rows_known: bool = False) -> Workload:
    attributes = tuple(dpf.Categorical(f"c{k}", [str(v) for v in range(size)]) for k, size in enumerate(sizes))
    wanted = {one: 1.0 + 0.5 * len(one) + one[0] for one in all_sets(len(sizes), 2)}
    return Workload(attributes, wanted, rows_known=rows_known)


def kept(one: Set, sizes: tuple[int, ...]) -> float:
    return math.prod(0.25 if sizes[a] == 2 else 1 - 1 / sizes[a] for a in one)


def importance_of(of: Workload, sizes: tuple[int, ...]) -> dict[Set, float]:
    """The factor of each residual's variance in the error: what is released of it, by how much of it is kept."""
    return {one: kept(one, sizes) * own for one, own in of.released().items()}


def length_of(one: Set, sizes: tuple[int, ...]) -> int:
    """How many numbers a residual is."""
    return math.prod(1 if sizes[a] == 2 else sizes[a] for a in one)


def root_of(among: Mapping[Set, float], in_blocks: bool, sizes: tuple[int, ...]) -> float:
    """The root of the error of residuals that are released together, as the module states it.

    At epsilon 1 the error is 2 (sum of cube roots)**3 for Laplace noise, and 2 (D+1) (D+2) sum of g / ((k+1) (k+2)) in
    blocks. A single block would be Laplace noise.
    """
    lengths = [length_of(one, sizes) for one in among]
    if not in_blocks:
        return 2 ** (1 / 3) * sum(math.cbrt(own) for own in among.values())
    if len(among) < 2:
        return math.inf
    whole = sum(lengths)
    parts = sum(own / ((k + 1) * (k + 2)) for own, k in zip(among.values(), lengths, strict=True))
    return math.cbrt(2 * (whole + 1) * (whole + 2) * parts)


def cells(one: Set, sizes: tuple[int, ...]) -> int:
    return math.prod(sizes[a] for a in one)


@pytest.mark.parametrize("sizes", SIZES)
def test_the_weighted_sum_of_variances_is_that_of_the_noise_by_importance(sizes: tuple[int, ...]) -> None:
    """For any noise: the sum over all marginals' cells is the sum of g_A V_A over the residuals."""
    of = workload(sizes)
    needed = of.released()
    assert list(needed) == [(), *all_sets(len(sizes), 2)]
    noise = dict(zip(needed, np.random.default_rng(0).uniform(1, 9, len(needed)).tolist(), strict=True))
    known = {one: kept(one, sizes) * own for one, own in noise.items()}
    total = sum(w * cells(one, sizes) * cell_variance(one, sizes, known) for one, w in of.wanted.items())
    assert total == pytest.approx(sum(importance_of(of, sizes)[one] * own for one, own in noise.items()))
    public = workload(sizes, rows_known=True)
    assert public.released() == {one: own for one, own in needed.items() if one}


@pytest.mark.parametrize("sizes", SIZES)
def test_weights_are_in_proportion_to_roots_of_the_importance(sizes: tuple[int, ...]) -> None:
    """The third root for Laplace noise; for Gaussian noise of V proportional to sqrt(q / g), weights of its root."""
    of = workload(sizes)
    importance = np.array(list(importance_of(of, sizes).values()))
    (laplace,) = of.laplace()
    assert laplace.share == 1
    assert laplace.query.norm is Norm.L1
    roots = np.cbrt(importance) / np.cbrt(importance).max() * MOST_RATIO
    assert laplace.query.weights == tuple(np.maximum(np.floor(roots), 1).astype(int).tolist())
    noise = {
        one: 2 * (sum(laplace.query.weights) / w) ** 2
        for one, w in zip(of.released(), laplace.query.weights, strict=True)
    }
    known = {one: kept(one, sizes) * own for one, own in noise.items()}
    largest = max(weight * cell_variance(one, sizes, known) for one, weight in of.wanted.items())
    assert predict_largest(of, [laplace]) == pytest.approx(largest)
    gaussian = of.gaussian()
    assert gaussian.share == 1
    assert gaussian.query.norm is Norm.SQUARED_L2
    left = np.array([math.prod(1 - 1 / sizes[a] for a in one if sizes[a] > 2) for one in of.released()])
    scale = np.array([math.prod(sizes[a] for a in one if sizes[a] > 2) for one in of.released()])
    stretch = np.array(gaussian.query.weights) * scale
    best = (importance / left) ** 0.25
    assert stretch / stretch.max() == pytest.approx(best / best.max(), rel=0.01)
    assert LARGEST_WEIGHT / 2 < stretch.max() <= LARGEST_WEIGHT


def compositions(number: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the ways to cut so many lengths into runs."""
    for cuts in itertools.product((False, True), repeat=number - 1):
        ends = [k + 1 for k, cut in enumerate(cuts) if cut] + [number]
        yield list(zip([0, *ends], ends, strict=False))


@pytest.mark.parametrize("sizes", [*SIZES, (2,) * 6, (3, 3, 3), (2, 2, 7)])
def test_no_other_groups_are_predicted_to_have_less_error(sizes: tuple[int, ...]) -> None:
    of = workload(sizes)
    needed = importance_of(of, sizes)
    lengths = sorted({length_of(one, sizes) for one in needed})

    def least(start: int, end: int) -> float:
        among = {one: own for one, own in needed.items() if length_of(one, sizes) in lengths[start:end]}
        return min(root_of(among, in_blocks, sizes) for in_blocks in (False, True))

    best = min(sum(least(*run) for run in runs) for runs in compositions(len(lengths)))
    groups = of.least_error()
    roots = [
        root_of({one: needed[one] for one in group.query.sets}, group.query.norm is Norm.BLOCKS, sizes)
        for group in groups
    ]
    assert sum(roots) == pytest.approx(best)
    assert sorted(one for group in groups for one in group.query.sets) == sorted(needed)
    assert sum(group.share for group in groups) == 1
    for group, root in zip(groups[:-1], roots, strict=False):  # in proportion, rounded down to a thousandth
        assert group.share == Fraction(max(1, math.floor(1000 * root / sum(roots))), 1000)


@pytest.mark.parametrize("size", [2, 3, 7])
def test_an_ordered_attribute_counts_by_the_mean_of_all_its_ranges(size: int) -> None:
    of = attrs.evolve(workload((size, 3)), ordered=frozenset({0}))
    ranges = list(itertools.combinations(range(size + 1), 2))
    within, beside = (
        size * math.fsum(axis_share(size, end - first, inside=inside) for first, end in ranges) / len(ranges)
        for inside in (True, False)
    )
    assert of._range_shares(0) == pytest.approx((within, beside))
    alone, other, both = (of.wanted[one] for one in ((0,), (1,), (0, 1)))
    assert of.released() == pytest.approx(
        {
            (): alone * beside + other / 3 + both * beside / 3,
            (0,): alone * within + both * within / 3,
            (1,): other * 3 + both * 3 * beside,
            (0, 1): both * 3 * within,
        }
    )


@pytest.mark.parametrize("sizes", [(2, 3, 4), (3, 2)])
def test_a_marginal_is_the_sum_of_its_residuals_spread_evenly(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    whole: Set = tuple(range(len(sizes)))
    counts = rng.integers(0, 50, sizes).astype(float)

    def margin(one: Set) -> np.ndarray:
        return counts.sum(axis=tuple(a for a in whole if a not in one))

    residuals: dict[Set, np.ndarray] = {}
    for one in subsets(whole):  # what is left of a marginal beside those of fewer attributes
        residuals[one] = margin(one) - (marginal_of(one, sizes, residuals, 0.0) if residuals else 0.0)
    for one in subsets(whole):
        assert marginal_of(one, sizes, residuals, -1.0) == pytest.approx(margin(one))
    public = {one: own for one, own in residuals.items() if one}
    assert marginal_of(whole, sizes, public, counts.sum()) == pytest.approx(counts)


def test_the_variance_of_a_sum_of_cells_is_that_of_a_cell_or_of_a_smaller_marginal() -> None:
    sizes, rng = (2, 3, 4), np.random.default_rng(2)
    known = {one: float(rng.uniform(1, 9)) for one in subsets((0, 1, 2))}
    single = {one: kept(one, sizes) * own for one, own in known.items()}
    whole_cell = sum_variance({0: 1, 1: 1, 2: 1}, sizes, known)
    margin = sum_variance({0: 1, 2: 1}, sizes, known)
    assert sum_variance({0: 1, 1: 3, 2: 1}, sizes, known) == pytest.approx(margin)  # all values of one
    assert sum_variance({}, sizes, known) == pytest.approx(known[()])
    (in_first, out_first), (in_third, out_third) = (
        [axis_share(size, length, inside=inside) for inside in (True, False)] for size, length in ((2, 1), (4, 3))
    )
    alone = known[()] * out_first * out_third + known[0,] * in_first * out_third
    both = known[2,] * out_first * in_third + known[0, 2] * in_first * in_third
    assert sum_variance({0: 1, 2: 3}, sizes, known) == pytest.approx(alone + both)
    assert whole_cell != pytest.approx(margin)
    assert single[()] == known[()]
    assert all_sets(3, 3)[-1] == (0, 1, 2)
    assert all_sets(2, 1) == [(0,), (1,)]
