"""Noise of several outputs, which add up to 0: counted and drawn as stated."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from dpframework_trees.additive import Design
from dpframework_trees.additive.fitting import Loss, Rows, minimise
from dpframework_trees.additive.group_noise import GroupNoise
from dpframework_trees.additive.noise_and_ridge import NoiseAndRidge
from dpframework_trees.additive.perturbation import draw_noise, into_space
from dpframework_trees.additive.zero_sum_noise import balanced_noise
from scipy.stats import chi2

from dpframework.mechanisms import layer_size
from dpframework.mechanisms.randomness import SeededRandomness

FALSE_ALARM = 1e-9


def balanced_rows(outputs: int, depth: int) -> list[tuple[int, ...]]:
    """Return all rows with the sum 0 whose positive part is a depth at most."""
    every = itertools.product(range(-depth, depth + 1), repeat=outputs)
    return [row for row in every if sum(row) == 0 and sum(map(abs, row)) <= 2 * depth]


@pytest.mark.parametrize("outputs", [2, 3, 4])
def test_rows_are_counted_by_their_depth(outputs: int) -> None:
    found = Counter(sum(map(abs, row)) // 2 for row in balanced_rows(outputs, 4))
    assert [layer_size(outputs, 0, depth) for depth in range(5)] == [found[depth] for depth in range(5)]
    # the bound that proposals are accepted by
    most = math.comb(2 * outputs - 2, outputs - 1)
    for depth in (0, 1, 5, 100):
        assert layer_size(outputs, 0, depth) <= most * math.comb(depth + outputs - 2, outputs - 2)
    depth = 10**9
    near = layer_size(outputs, 0, depth) / (most * math.comb(depth + outputs - 2, outputs - 2))
    assert near == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("blocks", "outputs"), [((1,), 3), ((2,), 3), ((1, 1), 3), ((1, 2), 2), ((1,), 4)])
def test_balanced_noise_is_drawn_as_stated(blocks: tuple[int, ...], outputs: int) -> None:
    """In proportion to exp(-depth / scale), with the largest depth of a block; all of 4,000 draws add up to 0."""
    scale, draws, reach, randomness = 0.5, 4_000, 5, SeededRandomness(3)
    depths = {row: sum(map(abs, row)) // 2 for row in balanced_rows(outputs, reach)}
    edges = list(itertools.pairwise(itertools.accumulate(blocks, initial=0)))
    weights = {}
    for point in itertools.product(depths, repeat=sum(blocks)):
        depth = max(sum(depths[row] for row in point[a:b]) for a, b in edges)
        if depth <= reach:
            weights[point] = math.exp(-depth / scale)
    whole = sum(weights.values()) * (1 + 2e-3)  # beyond the reach there is less than that
    drawn = [balanced_noise(blocks, outputs, scale, randomness) for _ in range(draws)]
    assert all((one.sum(axis=1) == 0).all() for one in drawn)
    counts = Counter(tuple(map(tuple, one.tolist())) for one in drawn)
    expected = np.array([weight / whole * draws for weight in weights.values()])
    observed = np.array([counts[point] for point in weights])
    kept = expected > 5
    assert kept.sum() > 5
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    assert statistic < chi2.isf(FALSE_ALARM, kept.sum() - 1)


def test_gradients_of_rows_noise_and_minimisers_add_up_to_0() -> None:
    """And `into_space` puts there what is released beside them."""
    design, rng = Design([range(14), (0, 1)], 4, 40, 100), np.random.default_rng(0)
    tuned = NoiseAndRidge(design, Fraction(1))
    assert all(noise.balanced for noise in design.noises)
    codes = [rng.integers(0, size, 30) for size in (*design.sizes, 1)]
    cells = np.column_stack([code + first for code, first in zip(codes, design.first_cells, strict=True)])
    rows = Rows(cells.astype(np.uint16), rng.integers(0, 4, 30).astype(np.uint16), design)
    noise = draw_noise(tuned, SeededRandomness(2))
    fitted = minimise(rows, tuned, noise)
    for vector in (noise, Loss(rows, tuned, noise).residuals(fitted), fitted):
        assert vector.sum(axis=1) == pytest.approx(np.zeros(len(vector)), abs=1e-6 * np.abs(vector).max())
    assert into_space(tuned, fitted + 5) == pytest.approx(fitted, abs=1e-6)


def test_what_is_said_of_the_space_is_so() -> None:
    """Its dimension, and by how much the last output may be off."""
    noise = GroupNoise((2, 1), 3, one_sum=False, intercept=True, balanced=True)
    assert (noise.dimension_of_radius, noise.radii) == (6, 1)
    assert (noise.dimension, noise.one_sum, noise.square_of_sum) == (6, False, 0)
    assert noise.rounded == max(np.abs(own).sum() for own in ([[1, 1, -2]] * 2, [[1, 1, -2]]))
    assert noise.square_of_half == 3 * (0.25 + 0.25 + 1)
    assert noise.squares_of_means == noise.squares
    drawn = np.array([noise.draw(50.0, SeededRandomness(seed)) for seed in range(4_000)]) / 50
    for part, square in zip(np.split(drawn, [2], axis=1), noise.squares, strict=True):
        # 4,000 draws: 8 % off with a probability far below 1e-6
        assert (part**2).sum(axis=2).mean() / 2 == pytest.approx(square, rel=0.08)
