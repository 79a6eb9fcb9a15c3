"""Noise in blocks: its points are counted and drawn exactly, and its variance is the one stated."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import attrs
import numpy as np
import pytest
from scipy.stats import chisquare

from dpframework.facts.privacy_losses import Relation
from dpframework.mechanisms import BlockNorm, Calibration, block_variances
from dpframework.mechanisms.knorm_ball_points import CrossPolytopes, draw_from_ball, points_of_ball
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.mechanisms.uniforms import WholeNumbers
from dpframework.queries import Norm, QueryFacts, Sensitivity

ONCE = 1e-6  # the probability of a false failure of each sampled test


def facts(*sizes: int, change: int = 1, norm: Norm = Norm.BLOCKS) -> QueryFacts:
    declared = Sensitivity(norm, change, 2 * change, source="test")
    return QueryFacts("blocks", "blocks", (), True, sum(sizes), [declared], histograms=sizes)


def calibrated(epsilon: object, *sizes: int, relation: Relation = Relation.ADD_OR_REMOVE_ONE) -> Calibration:
    found = BlockNorm(epsilon).calibrate(facts(*sizes), relation)
    assert found is not None
    return found


def points(size: int, radius: int) -> list[tuple[int, ...]]:
    every = itertools.product(range(-radius, radius + 1), repeat=size)
    return [one for one in every if sum(map(abs, one)) <= radius]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_points_of_balls_are_counted_and_drawn_uniformly(size: int) -> None:
    for radius in range(5):
        assert points_of_ball(size, radius) == len(points(size, radius))
    numbers, every = WholeNumbers(SeededRandomness(size).words), points(size, 3)
    seen = Counter(tuple(draw_from_ball(size, 3, numbers)) for _ in range(40 * len(every)))
    assert set(seen) <= set(every)
    assert chisquare([seen[one] for one in every]).pvalue > ONCE


@pytest.mark.parametrize("sizes", [(1, 1), (1, 2, 3), (4,), (2, 2, 5)])
def test_numbers_of_points_are_made_of_h(sizes: tuple[int, ...]) -> None:
    space = CrossPolytopes(sizes)
    assert space.polynomials.points == space.polynomials.points[::-1]
    assert min(space.polynomials.points) >= 0
    assert len(space.polynomials.points) == space.dimension + 1
    for radius in range(9):
        terms = [
            h * math.comb(radius - k + space.dimension, space.dimension)
            for k, h in enumerate(space.polynomials.points)
            if k <= radius
        ]
        assert sum(terms) == space.number(radius)


def test_the_norm_has_its_law_and_densities_add_up_to_one() -> None:
    """Radii by chi-squared, and the sum of all probabilities up to a norm that is hardly ever exceeded."""
    calibration = calibrated(2, 1, 2)
    mechanism, zero = calibration.mechanism, np.zeros(3, dtype=np.int64)
    space, reach = CrossPolytopes((1, 2)), 40
    spheres = [space.number(r) - (space.number(r - 1) if r else 0) for r in range(reach)]
    chances = np.array(
        [n * math.exp(mechanism.log_density(zero, np.array([r, 0, 0]), calibration)) for r, n in enumerate(spheres)]
    )
    assert math.isclose(chances.sum(), 1, abs_tol=1e-9)
    randomness = SeededRandomness(5)
    drawn = [mechanism.release(zero, calibration, randomness) for _ in range(4_000)]
    norms = np.bincount([max(abs(z[0]), abs(z[1]) + abs(z[2])) for z in drawn], minlength=reach)
    wanted = np.append(chances[:5], 1 - chances[:5].sum()) * len(drawn)
    assert chisquare(np.append(norms[:5], norms[5:].sum()), wanted).pvalue > ONCE


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(8)])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 3, 3, 6)])
def test_stated_variances_are_those_of_the_noise(sizes: tuple[int, ...], epsilon: Fraction) -> None:
    """By the exact law of the radius, and the exact second moment of a ball's points."""
    calibration = calibrated(epsilon, *sizes)
    space, scale = CrossPolytopes(sizes), calibration.lattice_scale
    radii = range(int(60 * scale) + 20)
    weights = np.array([math.exp(math.log(space.number(r)) - r / scale - 30) for r in radii])
    weights /= weights.sum()
    for size, stated in zip(sizes, block_variances(calibration), strict=True):
        inner = [1, *(points_of_ball(size - 1, r) for r in radii[1:])] if size > 1 else [1] * len(radii)
        moments = np.zeros(len(radii))
        for r in radii:
            among = [2 * t * t * inner[r - t] for t in range(1, r + 1)]
            moments[r] = sum(among) / points_of_ball(size, r)
        assert math.isclose(float(weights @ moments), stated, rel_tol=1e-9)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(2)])
def test_the_noisiest_block_is_previewed(epsilon: Fraction) -> None:
    calibration = calibrated(epsilon, 1, 3, 6)
    variances = block_variances(calibration)
    deviation, preview = math.sqrt(max(variances)), BlockNorm(epsilon).preview(calibration)
    assert preview.within == math.ceil(2.3 * deviation)
    assert preview.expected == pytest.approx(math.sqrt(2 / math.pi) * deviation)
    mean = sum(size * one for size, one in zip((1, 3, 6), variances, strict=True)) / 10
    assert BlockNorm(epsilon).variance(calibration) == pytest.approx(mean)


def test_only_blocks_of_whole_numbers_fit() -> None:
    mechanism = BlockNorm(1)
    assert mechanism.misfit(facts(1, 2)) is None
    assert "sizes" in str(mechanism.misfit(facts(1, 2, norm=Norm.HISTOGRAMS)))
    assert "dimensions" in str(mechanism.misfit(facts(1001)))
    assert mechanism.misfit(facts(1000)) is None
    assert "sizes" in str(mechanism.misfit(attrs.evolve(facts(1, 2), histograms=())))
    assert "integer" in str(mechanism.misfit(attrs.evolve(facts(1, 2), integer=False)))
    both = [*facts(1, 2, norm=Norm.L1).sensitivities, *facts(1, 2).sensitivities]
    assert mechanism.misfit(attrs.evolve(facts(1, 2), sensitivities=both)) is None


def test_a_replaced_row_has_twice_the_noise() -> None:
    scales = [calibrated(1, 1, 2, relation=relation).scale for relation in Relation]
    assert scales == [1, 2]
    losses = calibrated(1, 1, 2).losses
    assert losses.pure.add_or_remove_one == 1
    assert losses.zcdp.add_or_remove_one == Fraction(1, 2)
