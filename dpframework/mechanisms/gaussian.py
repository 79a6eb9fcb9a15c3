"""The Gaussian mechanism under zero-concentrated differential privacy.

Source: Bun and Steinke 2016, Proposition 1.6; on integers Canonne, Kamath and Steinke 2020, Theorem 4 (same rho).
Assumes that the declared squared l2 sensitivity holds. Claim: rho; there is no finite pure epsilon.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, final

import attrs
import numpy as np

from dpframework.facts.privacy_losses import ByRelation, Relation, float_above, positive_rho
from dpframework.mechanisms.base import Calibration, Mechanism, Preview
from dpframework.mechanisms.integer_answer_change_bounds import unit_shifts
from dpframework.mechanisms.laplace import noise_between, with_noise
from dpframework.mechanisms.noise_laws import NormalLaw
from dpframework.mechanisms.randomness import Randomness
from dpframework.mechanisms.release_losses import Losses, divide
from dpframework.queries.base import Norm

# Accounting by privacy loss distributions (PLD) treats noise as discrete up to this standard deviation, in lattice
# steps. Its time grows with the standard deviation.
LARGEST_DEVIATION = 1e4
FURTHEST_SHIFT = 30  # integers that shift by more standard deviations (a rho above 450) have no event for PLD
MOST_SLACK = 1e-7  # the largest slack of a `FineGaussianEvent`; accounting adds the slack to delta
_FURTHEST = 14  # a distance in standard deviations, which a Gaussian exceeds with a probability below 1e-42


@final
@attrs.frozen
class DiscreteGaussianEvent:
    """Discrete Gaussian noise on an integer that changes by `shift`, for which dp-accounting has no event."""

    sigma: float
    shift: int = 1


@final
@attrs.frozen
class FineGaussianEvent:
    """Discrete Gaussian noise on a lattice whose step is far smaller than the standard deviation.

    Let D be discrete noise, and let R be continuous noise that is rounded to the lattice, both with the standard
    deviation s, in lattice steps. They have nearly the same probabilities. With u uniform on [-1/2, 1/2] and the normal
    density g, R(k) is the mean of g(k + u). That is g(k) times the mean of exp(-k u / s**2 - u**2 / (2 s**2)). This
    factor is at least exp(-1 / (24 s**2)), by Jensen's inequality. It is at most exp(k**2 / (24 s**4)), since
    sinh(x) / x <= exp(x**2 / 6). D(k) differs from g(k) by a factor of at most 1 + 3 exp(-2 pi**2 s**2), which is 1 in
    double precision for s > 2. So for t > 1, the logarithms of D(k) and R(k) differ by at most t**2 / (24 s**2) if
    abs(k) is at most t s.

    Less than 1e-42 of the mass lies more than 14 s from the answer. A point within 14 s of one table's answer is within
    t s of its neighbour's answer, where t is 14 plus the sensitivity divided by s. Coordinates are independent, and
    only those that change matter. So the slack is the number of changed coordinates times t**2 / (24 s**2).

    Attributes
    ----------
    noise_multiplier
        The standard deviation divided by the l2 sensitivity.
    slack
        A bound, over all coordinates, on the difference of an output's log-probabilities under discrete noise and under
        rounded continuous noise.
    """

    noise_multiplier: float
    slack: float


@final
@attrs.frozen
class Gaussian(Mechanism):
    """Discrete Gaussian noise of variance change**2 / (2 rho), on integers or on a fine lattice of reals.

    The calibration's `scale` is the variance, since the variance is rational and the standard deviation may not be.

    Examples
    --------
    >>> Gaussian(rho="0.005").rho
    Fraction(1, 200)
    """

    name: ClassVar[str] = "gaussian"
    norm: ClassVar[Norm] = Norm.SQUARED_L2
    rho: Fraction = attrs.field(converter=positive_rho)

    def for_rows(self, rows: int) -> Mechanism:
        """Return the mechanism with rho divided by the square of `rows` (Bun and Steinke 2016, Proposition 1.9)."""
        return attrs.evolve(self, rho=self.rho / rows**2)

    def scale(self, change: Fraction) -> Fraction:
        """Return the variance of the noise."""
        return change / (2 * self.rho)

    def losses(self, change: ByRelation, scale: Fraction) -> Losses:
        """Return no pure epsilon, and rho under each relation."""
        return Losses(ByRelation(None, None), divide(change, 2 * scale))

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> Any:
        """Add noise to each coordinate. Integers stay integers."""
        # In a subclass with its own `release`, `self.release_many` would call this method again, and never end.
        (output,) = Gaussian.release_many(self, [answer], calibration, randomness)
        return output

    def release_many(self, answers: Sequence[Any], calibration: Calibration, randomness: Randomness) -> list[Any]:
        """Draw the independent noise of all coordinates of all answers at once."""
        sigma = calibration.lattice_deviation
        return with_noise(answers, calibration, lambda size: randomness.discrete_gaussian(size, sigma))

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return the log-probability of the output's lattice points."""
        noise = noise_between(answer, output, calibration)
        if noise is None:
            return -math.inf
        sigma = calibration.lattice_deviation
        squares = np.square(noise.astype(np.float64)).sum()
        return float(-noise.size * log_normalizer(sigma) - squares / (2 * sigma**2))

    def preview(self, calibration: Calibration) -> Preview:
        """Return the mean and the 95 % quantile of the noise's absolute value, rounded up for integer answers."""
        sigma = math.sqrt(calibration.scale)
        expected, within = sigma * math.sqrt(2 / math.pi), 1.959964 * sigma
        if calibration.facts.integer:
            unit = float(calibration.unit)
            within = unit * math.ceil(within / unit)
        return Preview.of_noise(expected, within)

    def variance(self, calibration: Calibration) -> float:
        """Return the scale, since discrete Gaussian noise has at most the continuous variance (Canonne et al. 2020)."""
        return float(calibration.scale)

    def noise_law(self, calibration: Calibration) -> NormalLaw:
        """Return the normal distribution, which is nearly the distribution of the noise (see `noise_laws`)."""
        return NormalLaw(math.sqrt(calibration.scale))

    def dp_event(self, calibration: Calibration, relation: Relation) -> Any | None:
        """Return discrete Gaussian events for the integers that a row moves (see `unit_shifts`).

        The continuous Gaussian's event is no bound for integer noise: at standard deviation 0.5, ten counts would be
        reported at epsilon 48.0 instead of 49.3 (delta = 1e-6). If the lattice is fine (real answers, or large noise on
        integers), the result is the event of a continuous Gaussian with a slack.
        """
        return self.unit_event(calibration, relation)

    def unit_event(self, calibration: Calibration, relation: Relation) -> Any | None:
        """Return discrete Gaussian events for the shifts of a unit (see `unit_shifts`), or an event on a fine lattice.

        On a fine lattice, let one row move the answer by at most d in the l2 norm, and change at most m numbers. Then k
        rows move the answer by at most k d, and change at most k m numbers.
        """
        return event_of(calibration, relation, unit_shifts(calibration, relation), calibration.by.rows)


def event_of(calibration: Calibration, relation: Relation, shifts: tuple[int, int] | None, rows: int) -> Any | None:
    """Return the events of discrete noise on integers that move, or the event of noise on a fine lattice.

    The result is None if neither applies, or if the integers move too many standard deviations. `shifts` says how many
    integers move, and how far each of them moves (see `unit_shifts`). `shifts` is None if this is not known.
    """
    sigma = calibration.lattice_deviation
    if shifts is None or sigma > LARGEST_DEVIATION:
        return _fine_event(calibration, relation, sigma, rows)
    import dp_accounting

    number, shift = shifts
    if shift > max(1, FURTHEST_SHIFT * sigma):
        return None
    event = DiscreteGaussianEvent(sigma, shift)
    return event if number == 1 else dp_accounting.SelfComposedDpEvent(event, number)


def _fine_event(calibration: Calibration, relation: Relation, sigma: float, rows: int) -> FineGaussianEvent | None:
    """Return the event of noise on a fine lattice, or None.

    The result is None if the slack would be above `MOST_SLACK`, which needs a standard deviation of thousands of
    lattice steps. It is also None if the change of the answer is unknown or too large.
    """
    facts = calibration.facts
    change = calibration.mechanism.change(facts).under(relation)
    if change is None:
        return None
    moved = math.nextafter(
        rows * math.sqrt(float_above(change)) / float(calibration.unit), math.inf
    )  # in lattice steps
    most = math.floor(change) * rows if facts.integer else None  # a changed integer adds 1 or more to the squared norm
    numbers = min((n for n in (facts.answer_length, most) if n is not None), default=0)
    if not numbers:
        return None
    slack = numbers * (_FURTHEST + moved / sigma) ** 2 / (24 * sigma**2)
    return FineGaussianEvent(sigma / moved, slack) if slack <= MOST_SLACK and moved <= _FURTHEST * sigma else None


# Densities of one noise are asked for thousands of times.
@functools.lru_cache(maxsize=256)
def log_normalizer(sigma: float) -> float:
    """Return the log of the sum of exp(-k**2 / (2 sigma**2)) over all integers k.

    For large sigma the sum is sqrt(2 pi) sigma, since the next term of Poisson's summation formula is smaller by a
    factor of 2 exp(-2 (pi sigma)**2).
    """
    if sigma > 2:
        return math.log(math.sqrt(2 * math.pi) * sigma)
    return math.log(1 + 2 * sum(math.exp(-(k**2) / (2 * sigma**2)) for k in range(1, 90)))
