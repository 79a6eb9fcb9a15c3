"""Noise for several blocks of whole numbers: a uniform point of a ball of random radius (as in `block_knorm`)."""

from __future__ import annotations

import abc
import math
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms.base import Calibration, Preview, PureMechanism
from dpframework.mechanisms.knorm_ball_radii import BallsOfPoints, draw_from_balls, log_normalizer
from dpframework.mechanisms.laplace import from_lattice, noise_between
from dpframework.mechanisms.randomness import Randomness
from dpframework.queries.base import QueryFacts

LARGEST_DIMENSION = 1_000  # the largest dimension of one release's noise; the time of a draw grows with it
_SPREADS = 2.3  # the noise of a number lies within this many standard deviations with a probability of at least 95 %


@attrs.frozen
class BallNoise(PureMechanism):
    """Integer noise of probability proportional to exp(-norm / scale). The norm is the largest l1 norm of a block."""

    blocks: ClassVar[str]  # the word for the blocks in error messages

    def misfit(self, facts: QueryFacts) -> str | None:
        """Refuse answers that do not consist of blocks of whole numbers, and answers of too many dimensions."""
        if not facts.histograms or all(declared.norm is not self.norm for declared in facts.sensitivities):
            return f"needs the sizes of the {self.blocks} that an answer is made of, and a sensitivity in their norm"
        if not facts.integer:
            return "adds integer noise, and the query's answer is not integer; use laplace"
        if self._dimension(facts) > LARGEST_DIMENSION:
            return f"draws from {LARGEST_DIMENSION} dimensions at most; release the {self.blocks} in groups"
        return None

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> Any:
        """Add a uniform point of a ball of random radius."""
        exact = calibration.on_lattice(answer)
        noise = draw_from_balls(*self._space(calibration), randomness)
        return from_lattice(exact + noise.reshape(exact.shape), calibration)

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return the log-probability of an output."""
        noise = noise_between(answer, output, calibration)
        if noise is None:
            return -math.inf
        space, scale = self._space(calibration)
        norm = self._norm(noise.ravel(), calibration)
        return -norm / scale - log_normalizer(space, scale)

    def preview(self, calibration: Calibration) -> Preview:
        """Bound the noise of the noisiest number by a multiple of its standard deviation."""
        deviation = math.sqrt(max(self._variances(calibration)))
        return Preview.of_noise(deviation * math.sqrt(2 / math.pi), float(math.ceil(_SPREADS * deviation)))

    def variance(self, calibration: Calibration) -> float:
        """Return the variance of the noise of a number, as a mean over all numbers."""
        return float(np.average(self._variances(calibration), weights=calibration.facts.histograms))

    @abc.abstractmethod
    def _dimension(self, facts: QueryFacts) -> int:
        """Return the dimension of the space of the noise, or an upper bound if that depends on the calibration."""

    @abc.abstractmethod
    def _space(self, calibration: Calibration) -> tuple[BallsOfPoints, float]:
        """Return the balls from which noise is drawn, and the scale of their random radius."""

    @abc.abstractmethod
    def _norm(self, noise: NDArray[np.int64], calibration: Calibration) -> float:
        """Return the radius of the smallest ball that contains this noise, or infinity if no ball contains it."""

    @abc.abstractmethod
    def _variances(self, calibration: Calibration) -> tuple[float, ...]:
        """Return, for each block, the variance of the noise of one of its numbers."""


def largest_sum(noise: NDArray[np.int64], calibration: Calibration) -> int:
    """Return the largest l1 norm of a block of the noise."""
    return int(sums_within_blocks(np.abs(noise), calibration).max())


def sums_within_blocks(noise: NDArray[np.int64], calibration: Calibration) -> NDArray[np.int64]:
    """Return the sum of the noise of each block, shape (blocks,)."""
    starts = np.cumsum([0, *calibration.facts.histograms[:-1]])
    return np.add.reduceat(noise, starts)
