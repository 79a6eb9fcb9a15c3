"""The K-norm mechanism for blocks of numbers, where a row changes each block by a bounded l1 norm.

Source: Hardt and Talwar 2010, section 4, on integers. Assumes that the declared sensitivity in `Norm.BLOCKS` holds.
Claim: pure epsilon; in zCDP rho = epsilon**2 / 2.

**The noise** is a vector z of whole numbers with the scale s. Its probability is proportional to `exp(-max over blocks
a of |z_a|_1 / s)`, where z_a is the part of z in block a. Answers of neighbours differ by a vector whose norm is at
most `change`. So by the triangle inequality, no probability changes by more than a factor exp(change / s).

Let there be m blocks with D numbers in all, and let epsilon and the change be 1. Independent Laplace noise on each
number would need a variance of 2 m**2. The variance of this noise is about 2 (D+1) (D+2) / ((k+1) (k+2)) for a number
in a block of k numbers. For blocks of one number each, this is about m**2 / 3.

**The noise is drawn** as in `knorm`, uniformly from a ball of random radius. Here the ball is a product of l1 balls of
this radius. All draws are of whole numbers, and exact. Their time grows with the length of the answer and with the
number of digits of the radius, neither of which depends on the rows.
"""

from __future__ import annotations

from typing import ClassVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms.base import Calibration
from dpframework.mechanisms.knorm_ball_noise_base import BallNoise, largest_sum
from dpframework.mechanisms.knorm_ball_points import CrossPolytopes, cross_polytopes
from dpframework.mechanisms.knorm_ball_radii import mean_squares
from dpframework.queries.base import Norm, QueryFacts


@final
@attrs.frozen
class BlockNorm(BallNoise):
    """Integer noise for several blocks of numbers, in the shape of the changes that one row can make.

    Examples
    --------
    >>> BlockNorm("0.5").epsilon
    Fraction(1, 2)
    """

    name: ClassVar[str] = "block-norm"
    norm: ClassVar[Norm] = Norm.BLOCKS
    blocks: ClassVar[str] = "blocks"

    def _dimension(self, facts: QueryFacts) -> int:
        return sum(facts.histograms)

    def _space(self, calibration: Calibration) -> tuple[CrossPolytopes, float]:
        return cross_polytopes(calibration.facts.histograms), calibration.lattice_scale

    def _norm(self, noise: NDArray[np.int64], calibration: Calibration) -> float:
        return largest_sum(noise, calibration)

    def _variances(self, calibration: Calibration) -> tuple[float, ...]:
        return block_variances(calibration)


def block_variances(calibration: Calibration) -> tuple[float, ...]:
    """Return for each block the variance of the noise of one of its numbers."""
    space = cross_polytopes(calibration.facts.histograms)
    known = mean_squares(space, calibration.lattice_scale)
    return tuple(known[size] * float(calibration.unit) ** 2 for size in space.sizes)
