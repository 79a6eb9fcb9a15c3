"""The exponential mechanism over a public interval, with a score that is constant between breaks.

Source: Friedman and Schuster 2010 (the numeric split point); the density is exp(score / scale) over the interval,
so a piece has weight exp(score / scale) times its length. Points are drawn from a lattice of the public interval, so
that which points are possible does not depend on the breaks; the pieces are drawn in floating point, which is assumed
to be real arithmetic. Claim: pure epsilon, bounded range, so rho = epsilon**2 / 8 in zCDP.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.privacy import float_above
from dpframework.mechanisms.base import Calibration, Preview
from dpframework.mechanisms.randomness import Randomness
from dpframework.mechanisms.selection import BoundedRange
from dpframework.queries.scores import PiecewiseScores

POINTS = 1 << 32  # of the lattice
ROUNDING = 2.0**-6  # of a lattice step, by which floating point may miss a lattice point


@final
@attrs.frozen
class ExponentialInterval(BoundedRange):
    """Draws a point of a public interval, with density growing in a piecewise constant score; nothing is rounded."""

    name: ClassVar[str] = "exponential-interval"
    assumptions: ClassVar[tuple[str, ...]] = ("real-arithmetic",)

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> float:
        """Draw a piece by its weight, then one of its lattice points."""
        scores = _piecewise(answer, calibration)
        edges = _edges(scores)
        log_weights = _log_weights(scores, edges, calibration)
        piece = int(np.argmax(log_weights + randomness.generator.gumbel(size=len(log_weights))))
        return _point(scores, int(randomness.generator.integers(edges[piece], edges[piece + 1])))

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return the log-density at a point of the interval: that of the lattice point at or below it."""
        scores = _piecewise(answer, calibration)
        low, high = float(scores.breaks[0]), float(scores.breaks[-1])
        if not low <= float(output) <= high:
            return -math.inf
        steps = (float(output) - low) / (high - low) * POINTS
        position = min(math.floor(steps + ROUNDING), POINTS - 1)
        edges = _edges(scores)
        log_weights = _log_weights(scores, edges, calibration)
        piece = int(np.searchsorted(edges, position, side="right")) - 1
        top = log_weights.max()
        log_total = top + math.log(np.exp(log_weights - top).sum())
        return float(scores.scores[piece] / float_above(calibration.scale) - log_total)

    def preview(self, calibration: Calibration) -> Preview:
        """State the scale: the gap to the best score depends on how wide the best piece is."""
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
    """Return the first lattice point at or above each break, shape (pieces + 1,): 0, ..., POINTS."""
    low, high = scores.breaks[0], scores.breaks[-1]
    steps = (scores.breaks - low) / (high - low) * POINTS
    return np.asarray(np.ceil(steps).astype(np.int64))


def _point(scores: PiecewiseScores, position: int) -> float:
    """Return a lattice point: a function of the public bounds and of the position alone."""
    low, high = float(scores.breaks[0]), float(scores.breaks[-1])
    return low + (high - low) * (position / POINTS)


def _log_weights(scores: PiecewiseScores, edges: NDArray[np.int64], calibration: Calibration) -> NDArray[np.float64]:
    """Return score / scale plus the log of the length, as the lattice measures it; -inf for a piece without points."""
    lengths = np.diff(edges) * float((scores.breaks[-1] - scores.breaks[0]) / POINTS)
    logs = np.full(len(lengths), -np.inf)
    np.log(lengths, out=logs, where=lengths > 0)
    return np.asarray(scores.scores / float_above(calibration.scale) + logs)
