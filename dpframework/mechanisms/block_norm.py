"""The K-norm mechanism for blocks of numbers, where a row changes each block by a bounded l1 norm.

Source: Hardt and Talwar 2010, section 4, on integers. Assumes that the declared sensitivity in `Norm.BLOCKS` holds.
Claim: pure epsilon; in zCDP rho = epsilon**2 / 2.

**The noise** has P(z) proportional to `exp(-max over blocks a of |z_a|_1 / s)` on vectors of whole numbers. Answers of
neighbours differ by a vector of norm `change` at most, so that by the triangle inequality no probability changes by
more than a factor exp(change / s). For epsilon = 1 and a change of 1, Laplace noise on m blocks has a variance of
2 m**2. Here the variance is about 2 (D+1) (D+2) / ((k+1) (k+2)) for a number in a block of k numbers, if there are D
numbers in all. For m blocks of one number each that is about m**2 / 3.

**The noise is drawn** as in `knorm`: uniformly from a ball of random radius, which here is a product of l1 balls of
that radius. All draws are of whole numbers, and exact. Their time grows with the number of numbers in an answer and
with the digits of the radius, neither of which depends on the rows.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import attrs
import numpy as np

from dpframework.mechanisms.base import Calibration, Preview, PureMechanism
from dpframework.mechanisms.cross_polytopes import CrossPolytopes, cross_polytopes
from dpframework.mechanisms.laplace import from_lattice, to_lattice
from dpframework.mechanisms.radii import draw_from_balls, log_normalizer, square_of_radius
from dpframework.mechanisms.randomness import Randomness
from dpframework.queries.base import Norm, QueryFacts

LARGEST_DIMENSION = 1_000
_SPREADS = 2.3  # noise of several blocks lies within this many standard deviations with at least 95 %


@final
@attrs.frozen
class BlockNorm(PureMechanism):
    """Integer noise for several blocks of numbers, in the shape of the changes that one row can make.

    Examples
    --------
    >>> BlockNorm("0.5").epsilon
    Fraction(1, 2)
    """

    name: ClassVar[str] = "block-norm"
    norm: ClassVar[Norm] = Norm.BLOCKS

    def misfit(self, facts: QueryFacts) -> str | None:
        """Refuse answers that are not several blocks, and too many numbers."""
        if not facts.histograms or all(declared.norm is not Norm.BLOCKS for declared in facts.sensitivities):
            return "needs the sizes of the blocks that an answer is made of, and a sensitivity in their norm"
        if not facts.integer:
            return "adds integer noise, and the query's answer is not integer; use laplace"
        if sum(facts.histograms) > LARGEST_DIMENSION:
            return f"draws from {LARGEST_DIMENSION} dimensions at most; release the blocks in groups"
        return None

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> Any:
        """Add a uniform point of a ball of random radius."""
        exact = calibration.on_lattice(answer)
        space, scale = _space(calibration), calibration.lattice_scale
        noise = draw_from_balls(space, scale, randomness)
        return from_lattice(exact + noise.reshape(exact.shape), calibration)

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return the log-probability of an output."""
        exact = calibration.on_lattice(answer)
        points = to_lattice(output, calibration)
        if points is None or points.shape != exact.shape:
            return -math.inf
        starts = np.cumsum([0, *calibration.facts.histograms[:-1]])
        norm = int(np.add.reduceat(np.abs((points - exact).ravel()), starts).max())
        space, scale = _space(calibration), calibration.lattice_scale
        return -norm / scale - log_normalizer(space.h, space.dimension, scale)

    def preview(self, calibration: Calibration) -> Preview:
        """Bound the noise of the noisiest number by its standard deviation."""
        deviation = math.sqrt(max(block_variances(calibration)))
        within, expected = math.ceil(_SPREADS * deviation), deviation * math.sqrt(2 / math.pi)
        return Preview(expected, float(within), f"each number within ±{within:.3g} (95 %), ±{expected:.3g} on average")

    def variance(self, calibration: Calibration) -> float:
        """Return the mean variance over all numbers (`block_variances` has each block's)."""
        return float(np.average(block_variances(calibration), weights=calibration.facts.histograms))


def block_variances(calibration: Calibration) -> tuple[float, ...]:
    """Return for each block the variance of the noise of one of its numbers.

    It is the mean of R (R + 1) over the random radius, times the second moment of a number of a uniform point of the
    unit l1 ball of k numbers, 2 / ((k+1) (k+2)). It is exact for k = 1, and nearly exact where noise is large against
    1.
    """
    space = _space(calibration)
    square = square_of_radius(space.h, space.dimension, calibration.lattice_scale) * float(calibration.unit) ** 2
    return tuple(2 * square / ((k + 1) * (k + 2)) for k in space.sizes)


def _space(calibration: Calibration) -> CrossPolytopes:
    return cross_polytopes(calibration.facts.histograms)
