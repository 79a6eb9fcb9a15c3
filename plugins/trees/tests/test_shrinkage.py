"""Functions of attributes that tell little are shrunk, and those that tell much are left as they are."""

from fractions import Fraction

import numpy as np
import pytest
from dpframework_trees.additive import Design
from dpframework_trees.additive.design import probabilities
from dpframework_trees.additive.fitting import Rows, minimise
from dpframework_trees.additive.noise_and_ridge import NoiseAndRidge, expected_spread
from dpframework_trees.additive.perturbation import draw_noise
from dpframework_trees.additive.shrinkage import factor_of, shrink
from dpframework_trees.additive.stretch import centre

from dpframework.mechanisms.randomness import SeededRandomness

SIZES = (2, 3, 5)


def design_of(classes, numeric=(), rows=4_000.0):
    return Design([tuple(range(size)) for size in SIZES], classes, rows, 10**6, numeric=numeric)


@pytest.mark.parametrize("attribute", range(len(SIZES)))
@pytest.mark.parametrize("classes", [2, 4])
def test_the_factor_is_the_mean_of_what_each_spread_asks_for(classes, attribute):
    """By drawing what is true and its noise at each spread, and by the share of draws of a similar size."""
    tuned = NoiseAndRidge(design_of(classes), Fraction(1, 2))
    design, start = tuned.design, tuned.design.starts[attribute]
    h, own, noise = tuned.curvatures[start], tuned.ridge[start], tuned.deviations[start]
    dimensions = max(design.widths[attribute] - 1, 1) * max(design.outputs - 1, 1)
    rng, draws = np.random.default_rng(0), 200_000
    sizes, along = [], []
    for power in range(-4, 3):
        true = rng.normal(0, (expected_spread(3) * 4.0**power) ** 0.5, (draws, dimensions))
        released = (h * true - noise * rng.normal(size=true.shape)) / (h + own)
        sizes.append((released**2).sum(axis=1))
        along.append((released * true).sum(axis=1))
    size, product = np.concatenate(sizes), np.concatenate(along)
    for middle in np.quantile(size, [0.2, 0.5, 0.8]):
        near = np.abs(np.log(size / middle)) < 0.05
        real = product[near].sum() / size[near].sum()
        assert factor_of(tuned, attribute, float(middle)) == pytest.approx(min(real, 1), abs=0.03)


def test_larger_functions_are_shrunk_less():
    tuned = NoiseAndRidge(design_of(2), Fraction(1, 10))
    factors = [factor_of(tuned, 2, size) for size in (0.0, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e9)]
    assert factors == sorted(factors)
    assert factors[0] < 0.7
    assert factors[-1] == 1.0


@pytest.mark.parametrize("classes", [2, 4])
def test_numbers_intercept_and_means_are_left(classes):
    design = design_of(classes, numeric=(1,))
    tuned = NoiseAndRidge(design, Fraction(1, 10))
    w = centre(np.random.default_rng(0).normal(0, 0.01, (design.columns, design.outputs)))
    found = shrink(tuned, w)
    of_two, numeric, rest = slice(0, 1), slice(1, 4), slice(4, 9)
    assert np.array_equal(found[numeric], w[numeric])
    assert np.array_equal(found[-1], w[-1])
    assert (np.abs(found[of_two]) < np.abs(w[of_two])).all()
    assert found[rest].mean(axis=0) == pytest.approx(w[rest].mean(axis=0))
    ratio = (found[rest] - found[rest].mean(axis=0)) / (w[rest] - w[rest].mean(axis=0))
    assert ratio == pytest.approx(np.full(ratio.shape, ratio[0, 0]))
    assert 0 < ratio[0, 0] < 1


def test_attributes_that_tell_nothing_cost_less():
    """Thirty attributes, of which two tell the class: log-loss on other rows falls, whatever the draws."""
    rng, attributes = np.random.default_rng(0), 30
    codes = rng.integers(0, 3, (8_000, attributes))
    score = 2.0 * (codes[:, 0] - 1) + 1.5 * (codes[:, 1] == 2)
    classes = (rng.random(8_000) < 1 / (1 + np.exp(-score))).astype(np.uint16)
    design = Design([(0, 1, 2)] * attributes, 2, 4_000.0, 10**6)
    cells = np.column_stack([codes + 3 * np.arange(attributes), np.full(8_000, 3 * attributes)]).astype(np.uint16)
    tuned, gained = NoiseAndRidge(design, Fraction(1, 2)), []
    for seed in range(5):
        w = minimise(Rows(cells[:4_000], classes[:4_000], design), tuned, draw_noise(tuned, SeededRandomness(seed)))
        losses = []
        for own in (w, shrink(tuned, w)):
            p = probabilities((design.of_cells.T @ own)[cells[4_000:]].sum(axis=1))
            losses.append(-np.log(p[np.arange(4_000), classes[4_000:]]).mean())
        gained.append(losses[0] - losses[1])
    assert min(gained) > 0
    assert np.mean(gained) > 0.003
