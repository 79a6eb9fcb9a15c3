"""The Gaussian mechanism under zero-concentrated differential privacy.

Source: Bun and Steinke 2016, Proposition 1.6; on integers Canonne, Kamath and Steinke 2020, Theorem 4 (same rho).
Assumes that the declared squared l2 sensitivity holds. Claim: rho; there is no finite pure epsilon.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar, final

import attrs
import numpy as np

from dpframework.mechanisms.base import LATTICE_BITS, Calibration, Losses, Mechanism, Preview, divided
from dpframework.mechanisms.laplace import from_lattice, to_lattice
from dpframework.privacy import Pair, Relation, positive
from dpframework.queries.base import Norm, QueryFacts
from dpframework.randomness import Randomness


def _positive_rho(value: Any) -> Fraction:
    return positive(value, "rho")


@final
@attrs.frozen
class Gaussian(Mechanism):
    """Discrete Gaussian noise of variance change**2 / (2 rho), on integers or on a fine lattice of reals.

    The calibration's `scale` is the variance, which is rational where the standard deviation need not be.

    Examples
    --------
    >>> Gaussian(rho="0.005").rho
    Fraction(1, 200)
    """

    name: ClassVar[str] = "gaussian"
    norm: ClassVar[Norm] = Norm.L2
    rho: Fraction = attrs.field(converter=_positive_rho)

    def change(self, facts: QueryFacts) -> Pair:
        """Return the squared l2 change; rounding adds at most one lattice step a coordinate to its root."""
        declared = facts.sensitivity(Norm.L2)
        assert declared is not None  # `problem` has been asked
        if facts.integer:
            return declared.change
        padding = (1 + Fraction(facts.size or 1, 2**LATTICE_BITS)) ** 2
        return divided(declared.change, 1 / padding)

    def scale(self, change: Fraction) -> Fraction:
        """Return the variance."""
        return change / (2 * self.rho)

    def losses(self, change: Pair, scale: Fraction) -> Losses:
        """Return no pure epsilon, and rho under each relation."""
        return Losses(Pair(None, None), divided(change, 2 * scale))

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> Any:
        """Add noise to each coordinate; integers stay integers."""
        exact = calibration.on_lattice(answer)
        sigma = _lattice_deviation(calibration)
        return from_lattice(exact + randomness.discrete_gaussian(exact.size, sigma).reshape(exact.shape), calibration)

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return the log-probability of the output's lattice points."""
        exact = calibration.on_lattice(answer)
        points = to_lattice(output, calibration)
        if points is None or points.shape != exact.shape:
            return -math.inf
        sigma = _lattice_deviation(calibration)
        squares = np.square((points - exact).astype(np.float64)).sum()
        return float(-exact.size * _log_normalizer(sigma) - squares / (2 * sigma**2))

    def preview(self, calibration: Calibration) -> Preview:
        """Mean absolute value and 95 % quantile of the noise."""
        sigma = math.sqrt(calibration.scale)
        expected, within = sigma * math.sqrt(2 / math.pi), 1.959964 * sigma
        return Preview(expected, within, f"each number within ±{within:.3g} (95 %), ±{expected:.3g} on average")

    def dp_event(self, calibration: Calibration, relation: Relation) -> Any | None:
        """Return a Gaussian event with the same rho."""
        rho = calibration.losses.concentrated.under(relation)
        if rho is None:
            return None
        import dp_accounting

        return dp_accounting.GaussianDpEvent(1 / math.sqrt(2 * rho))


def _lattice_deviation(calibration: Calibration) -> float:
    return math.nextafter(math.sqrt(calibration.scale) / float(calibration.unit), math.inf)


def _log_normalizer(sigma: float) -> float:
    """Return the log of the sum of exp(-k**2 / (2 sigma**2)) over all integers k (Poisson summation if sigma is large)."""
    if sigma > 2:
        return math.log(math.sqrt(2 * math.pi) * sigma * (1 + 2 * math.exp(-2 * (math.pi * sigma) ** 2)))
    return math.log(1 + 2 * sum(math.exp(-(k**2) / (2 * sigma**2)) for k in range(1, 90)))
