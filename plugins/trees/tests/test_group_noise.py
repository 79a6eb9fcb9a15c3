"""The noise of a group of an additive fit: its space is that of a row's changes, and it is drawn as stated."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from dpframework_trees.additive import Design
from dpframework_trees.additive.fitting import Loss, Rows, minimise
from dpframework_trees.additive.group_noise import GroupNoise
from dpframework_trees.additive.noise_and_ridge import NoiseAndRidge
from dpframework_trees.additive.perturbation import draw_noise, into_space
from scipy.stats import chi2

from dpframework.mechanisms.randomness import SeededRandomness

FALSE_ALARM = 1e-9
WIDE = Design([(0, 1, 2), (0, 1), (0, 1, 2, 3)], 2, 40, 100)
#: Groups of two attributes each, with a leaf's column as a block of its own.
SEVERAL = Design([range(40), range(40), (0, 1, 2), (0, 1)], 2, 40, 100, (16, -16, 4))
#: Six outputs, each with noise by itself.
OUTPUTS = Design([(0, 1, 2), (0, 1), (0, 1, 2, 3)], 6, 40, 100)
SMALL = [((3, 1), False), ((3, 1), True), ((3, 1, 1), True), ((3, 3), False), ((3, 3, 1), True)]


def space_of(blocks: tuple[int, ...], intercept: bool, reach: int) -> list[tuple[int, ...]]:
    """Return what rows may change, up to a multiple: the cells of each histogram add up to one sum."""
    last = len(blocks) - 1 if intercept else len(blocks)
    found = []
    for r in range(-reach, reach + 1):
        each = []
        for m in blocks[:last]:
            cells = itertools.product(range(-reach, reach + 1), repeat=max(m, 2))
            own = [one for one in cells if sum(one) == r and sum(map(abs, one)) <= reach]
            each.append([(b - a,) for a, b in own] if m == 1 else own)
        found += [tuple(itertools.chain(*parts, [r] * intercept)) for parts in itertools.product(*each)]
    return found


def norm_of(blocks: tuple[int, ...], point: tuple[int, ...]) -> int:
    edges = itertools.pairwise(itertools.accumulate(blocks, initial=0))
    return max(sum(map(abs, point[a:b])) for a, b in edges)


@pytest.mark.parametrize(("blocks", "intercept"), SMALL)
def test_noise_with_one_sum_is_drawn_as_stated(blocks: tuple[int, ...], intercept: bool) -> None:
    """In proportion to exp(-norm / scale), on all points of its space and on no other."""
    noise, scale, draws = GroupNoise.of(blocks, 1, intercept), 0.6, 4_000
    points = space_of(blocks, intercept, 5)
    weights = {point: math.exp(-norm_of(blocks, point) / scale) for point in points}
    whole = sum(weights.values()) * (1 + 1e-3)  # beyond the reach there is less than that
    randomness = SeededRandomness(1)
    drawn = Counter(tuple(noise.draw(scale, randomness)[:, 0].tolist()) for _ in range(draws))
    near = {point for point in drawn if norm_of(blocks, point) <= 5}
    assert near <= set(points)
    expected = np.array([weights[point] / whole * draws for point in points])
    observed = np.array([drawn[point] for point in points])
    kept = expected > 5
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    assert statistic < chi2.isf(FALSE_ALARM, kept.sum() - 1)


def test_noise_by_output_is_drawn_as_stated() -> None:
    """Each output by itself: its norm alone decides, and outputs of 4,000 draws are not correlated.

    A correlation of norms is beyond 6 / sqrt(4,000) with a probability below 1e-8.
    """
    one, several = (GroupNoise((3, 1), outputs, True, True) for outputs in (1, 3))
    drawn = np.array([several.draw(0.6, SeededRandomness(seed)) for seed in range(4_000)])
    alone = [tuple(one.draw(0.6, SeededRandomness(10_000 + seed))[:, 0].tolist()) for seed in range(12_000)]
    assert drawn.shape == (4_000, 4, 3)
    norms = np.array([[norm_of((3, 1), tuple(draw[:, c])) for c in range(3)] for draw in drawn])
    assert np.abs(np.corrcoef(norms.T)[np.triu_indices(3, 1)]).max() < 6 / 4_000**0.5
    for c in range(3):
        own, whole = Counter(tuple(draw[:, c].tolist()) for draw in drawn), Counter(alone)
        for point, number in whole.most_common(12):
            share = number / 12_000
            # 6 standard deviations of both samples' shares
            assert abs(own[point] / 4_000 - share) < 6 * math.sqrt(share * (1 / 4_000 + 1 / 12_000))
    assert several.norm(drawn[0].astype(float)) == norms[0].sum()
    assert (several.dimension, several.radii, several.dimension_of_radius) == (9, 3, 3)
    assert (several.rounded, several.square_of_half) == (3 * one.rounded, 3 * one.square_of_half)
    assert several.log_volume == pytest.approx(3 * one.log_volume)
    assert several.squares == one.squares


@pytest.mark.parametrize(("blocks", "intercept"), SMALL)
def test_what_is_said_of_its_space_is_so(blocks: tuple[int, ...], intercept: bool) -> None:
    """Its dimension, and the number of points in balls, of which the volume is the limit."""
    noise = GroupNoise.of(blocks, 1, intercept)
    points = np.array(space_of(blocks, intercept, 3))
    assert noise.one_sum
    assert noise.dimension == np.linalg.matrix_rank(points)
    # the number of points of the ball of radius r is a polynomial in r, whose first coefficient is the volume
    numbers = [len(space_of(blocks, intercept, r)) for r in range(noise.dimension + 1)]
    leading = sum((-1) ** (noise.dimension - r) * math.comb(noise.dimension, r) * n for r, n in enumerate(numbers))
    halves = blocks.count(1) - intercept  # a difference of two cells has every second number
    assert noise.log_volume == pytest.approx(math.log(leading) + halves * math.log(2))


def test_a_group_without_several_histograms_or_cells_has_no_sum() -> None:
    for blocks, intercept in (((1, 1, 1), True), ((5,), False)):
        noise = GroupNoise.of(blocks, 1, intercept)
        assert (noise.one_sum, noise.dimension, noise.square_of_sum) == (False, sum(blocks), 0)
        assert noise.squares_of_means == noise.squares
        assert (noise.rounded, noise.square_of_half) == (max(blocks), sum(blocks) / 4)


@pytest.mark.parametrize("design", [WIDE, SEVERAL, OUTPUTS], ids=["one", "several", "outputs"])
def test_gradients_of_rows_and_noise_lie_in_one_space(design: Design) -> None:
    """And so does the ridge times the minimiser, next to which `into_space` puts what is released."""
    rng, tuned = np.random.default_rng(0), NoiseAndRidge(design, Fraction(1))
    codes = [rng.integers(0, size, 30) for size in (*design.sizes, 1)]
    cells = np.column_stack([code + first for code, first in zip(codes, design.first_cells, strict=True)])
    rows = Rows(cells.astype(np.uint16), rng.integers(0, design.classes, 30).astype(np.uint16), design)
    noise = draw_noise(tuned, SeededRandomness(2))
    fitted = minimise(rows, tuned, noise)
    loss = Loss(rows, tuned, noise)
    for vector in (noise, loss.residuals(fitted), tuned.ridge[:, None] * fitted):
        for sums in sums_of(design, vector):
            assert np.ptp(sums) <= 1e-6 * np.abs(vector).max()
    assert into_space(tuned, fitted) == pytest.approx(fitted, abs=1e-6)
    moved = into_space(tuned, fitted + rng.normal(0, 1, fitted.shape))
    assert all(
        np.ptp(sums) < 1e-9 * np.abs(moved).max() * tuned.ridge.max()
        for sums in sums_of(design, tuned.ridge[:, None] * moved)
    )


def sums_of(design: Design, vector: Any) -> list[list[float]]:
    """Return the sums of a vector that are equal if it is in the space, for each group with one sum."""
    wide = [j for j, width in enumerate(design.widths) if width > 1 or j == len(design.widths) - 1]
    groups = [[j for j in group if j in wide] for group in design.groups]
    outputs = range(design.outputs)
    return [[float(vector[design.columns_of(j), c].sum()) for j in group] for group in groups for c in outputs]


def test_a_leaf_that_is_half_way_between_two_cells_is_within_the_hull() -> None:
    """Its part of a row's change is r times a number between -1 and 1, and the sum is r: the norm is abs(r)."""
    (noise,) = SEVERAL.noises[:1]
    assert noise.blocks == (3, 1, 1, 1)
    change = np.array([0, 0, 1, -1, 0.25, 1])
    assert norm_of(noise.blocks, tuple(change)) == 1
