"""The exponential mechanism over a public interval, with a score that is constant on each of several pieces.

Source: Friedman and Schuster 2010 (the numeric split point). The density is proportional to exp(score / scale). So a
piece of the interval is drawn with a probability proportional to exp(score / scale) times its length. The ends of the
pieces may depend on the data. So points are drawn from a lattice that depends on the public interval alone.
Claim: pure epsilon; in zCDP rho = epsilon**2 / 8, since the mechanism has a bounded range.

**Rounding.** The weight of a piece is its score plus the scale times the logarithm of its length. Both terms are
rounded to a lattice whose step is at most 2**-20 of the sensitivity. Their sum is exact, since both are whole numbers
of steps. A piece is drawn by a noisy maximum of the weights with Gumbel noise, and a point of the piece uniformly. Both
draws are exact, over integers. So the draw is exactly the exponential mechanism on points with rounded scores. Here the
rounded score of a point is the rounded weight of its piece, minus the scale times the exact logarithm of the piece's
length.

The rounded score has four errors: half a step for the score, half a step for the length, the error that the query
declares (`Query.rounding`), and the error of the computed logarithm. The last one is below 2**-45 scales. To see this,
let u = 2**-53. The relative error is 8 u for the logarithm (4 units in the last place) plus u for its product with the
scale. The logarithm is at most ln(2**32) < 23. So the error is at most 9 * 23 u = 207 u, in scales. The change of a
score between neighbours is off by up to twice the sum of the four errors. The difference of two such changes is off by
up to four times the sum, which is added to the spread.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import ByRelation
from dpframework.mechanisms.base import Calibration, Preview
from dpframework.mechanisms.lattice_rounding import LARGEST_REAL
from dpframework.mechanisms.randomness import Noise, Randomness
from dpframework.mechanisms.selection import BoundedRange, with_relative_error
from dpframework.queries.base import QueryFacts
from dpframework.queries.scores import PiecewiseScores

POINTS = 1 << 32  # the number of lattice points of an interval
ROUNDING = 2.0**-6  # the share of a lattice step by which floating point may miss a lattice point


LOGARITHM = Fraction(1, 2**45)  # the error of scale times a computed logarithm, as a share of the scale


@final
@attrs.frozen
class ExponentialInterval(BoundedRange):
    """Draws a point of a public interval, with a density that grows with a piecewise constant score."""

    name: ClassVar[str] = "exponential-interval"
    chooses: ClassVar[bool] = False

    def lattice_unit(self, facts: QueryFacts) -> Fraction:
        """Return a lattice step far below the sensitivity, for integers too, since logarithms of lengths are real."""
        return super().lattice_unit(attrs.evolve(facts, integer=False))

    def change(self, facts: QueryFacts) -> ByRelation:
        """Return the spread of the scores, rounding included (see the module)."""
        off = facts.rounding + self.lattice_unit(facts)
        padded = super().change(facts).map(lambda spread: spread + 4 * off)
        return with_relative_error(padded, 4 * LOGARITHM, self.epsilon)

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> float:
        """Draw a piece by its weight, then one of its lattice points."""
        scores = _piecewise(answer, calibration)
        edges = _edges(scores)
        pieces, weights = _weights(scores, edges, calibration)
        piece = pieces[randomness.noisy_max(weights, calibration.lattice_scale, Noise.GUMBEL)]
        first, end = int(edges[piece]), int(edges[piece + 1])
        position = first + int(randomness.integers(end - first, 1)[0])
        # The point is computed from the public bounds and its position alone, so its last digits reveal nothing else.
        low, high = float(scores.breaks[0]), float(scores.breaks[-1])
        return low + (high - low) * (position / POINTS)

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return the log-density at a point, which is the log-density at the lattice point at or below it."""
        scores = _piecewise(answer, calibration)
        low, high = float(scores.breaks[0]), float(scores.breaks[-1])
        if not low <= float(output) <= high:
            return -math.inf
        steps = (float(output) - low) / (high - low) * POINTS
        # Rounding may have put the output just below the lattice point that was drawn.
        position = min(math.floor(steps + ROUNDING), POINTS - 1)
        edges = _edges(scores)
        pieces, weights = _weights(scores, edges, calibration)
        piece = int(np.searchsorted(edges, position, side="right")) - 1
        logs = (weights - weights.max()) / calibration.lattice_scale
        log_share = float(logs[np.searchsorted(pieces, piece)]) - math.log(np.exp(logs).sum())
        # The probability of a piece is spread evenly over its length.
        return log_share - math.log((edges[piece + 1] - edges[piece]) * ((high - low) / POINTS))

    def preview(self, calibration: Calibration) -> Preview:
        """State the bound on the gap to the best score as a formula in the width of the best piece."""
        scale = float(calibration.scale)
        within = f"{scale * math.log(20):.3g} + {scale:.3g} ln(range / width of the best piece)"
        text = f"a score within {within} of the best (95 %)"
        return Preview(scale, scale * math.log(20), text)


def _piecewise(answer: Any, calibration: Calibration) -> PiecewiseScores:
    if not isinstance(answer, PiecewiseScores):
        raise InputError(
            f"the query '{calibration.facts.text}' must answer with PiecewiseScores for an interval mechanism"
        )
    return answer


def _edges(scores: PiecewiseScores) -> NDArray[np.int64]:
    """Return the first lattice point at or above each break, shape (pieces + 1,), from 0 to POINTS."""
    low, high = scores.breaks[0], scores.breaks[-1]
    steps = (scores.breaks - low) / (high - low) * POINTS
    return np.asarray(np.ceil(steps).astype(np.int64))


def _weights(
    scores: PiecewiseScores, edges: NDArray[np.int64], calibration: Calibration
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions of the pieces that contain lattice points, and their weights in steps (see the module).

    A weight is the score plus the scale times the logarithm of the number of points, both rounded to steps. Scores too
    large for 64-bit integers are clamped, which moves no two answers further apart.
    """
    points = np.diff(edges)
    pieces = np.flatnonzero(points)
    steps = scores.scores[pieces].astype(np.float64) / float(calibration.unit)
    of_scores = np.rint(steps.clip(-LARGEST_REAL, LARGEST_REAL)).astype(np.int64)
    of_lengths = np.rint(calibration.lattice_scale * np.log(points[pieces])).astype(np.int64)
    return pieces, of_scores + of_lengths
