"""Selections by the exponential mechanism and by permute-and-flip.

Both choose the candidate i with the largest noisy score q_i + z_i, where q_i is its score and the z_i are independent
noise. Their loss depends on the spread S of a query's sensitivity: the largest difference between the changes of two
candidates' scores. A row that raises some scores by at most 1 and lowers others by at most 1/2 has the spread 3/2. A
row that moves all scores in the same direction by at most 1 has the spread 1.

**The loss is S / s at noise of scale s.** Both kinds of noise have Pr[z > t + S] >= exp(-S / s) Pr[z > t] for every t.
For exponential noise this follows from its tail. For Gumbel noise, Pr[z > t] = 1 - exp(-x) with x = exp(-t / s). This
is concave in x and 0 at x = 0, so for a factor c <= 1 its value at c x is at least c times its value at x. Shifting t
by S turns x into c x with c = exp(-S / s). Now fix the noise of all other candidates. Then candidate r is chosen if z_r
exceeds the largest of q_i + z_i - q_r. On a neighbour each of these numbers is larger by at most S, and so is the
largest of them. So the probability that z_r exceeds the largest is at least exp(-S / s) times what it was. This holds
for any noise of the other candidates, and so for the probability that r is chosen. It also holds with the two tables
exchanged. (The changes themselves do not matter, only their differences.)
"""

from __future__ import annotations

import abc
import functools
import itertools
import math
from fractions import Fraction
from typing import Any, ClassVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import ByRelation
from dpframework.mechanisms.base import LATTICE_BITS, Calibration, Preview, PureMechanism
from dpframework.mechanisms.randomness import Noise, Randomness
from dpframework.mechanisms.release_losses import Losses, divide, double_at_most, times
from dpframework.queries.base import Norm, QueryFacts


@attrs.frozen
class _ByScore(PureMechanism):
    """Makes outputs with high scores likelier than others. The noise does not depend on the number of outputs."""

    norm: ClassVar[Norm] = Norm.LINF
    needs_length: ClassVar[bool] = False
    chooses: ClassVar[bool] = True

    def change(self, facts: QueryFacts) -> ByRelation:
        """Return the spread of the scores."""
        declared = facts.sensitivity(Norm.LINF)
        assert declared is not None  # `misfit` refuses other queries
        return declared.spread


@attrs.frozen
class BoundedRange(_ByScore):
    """A mechanism that draws an output with probability proportional to exp(score / scale).

    A row moves the log-probabilities of any two outputs apart by at most spread / scale. So the changes of all
    log-probabilities lie in a range of that length. The range contains 0, since all probabilities add up to 1. So the
    length is the pure epsilon, and an eighth of its square is rho (Dong, Durfee and Rogers 2020; Cesar and Rogers 2021,
    Lemma 3.4). A subclass whose scores are rounded adds the effect of rounding in `change`.
    """

    def losses(self, change: ByRelation, scale: Fraction) -> Losses:
        """Return spread / scale as epsilon, and an eighth of its square as rho."""
        return bounded_range_losses(change, scale)


@attrs.frozen
class _NoisyMax(_ByScore):
    selects: ClassVar[bool] = True
    noise: ClassVar[Noise]

    def change(self, facts: QueryFacts) -> ByRelation:
        """Return the spread of the scores, rounding included.

        Two scores are rounded on each of two tables, which moves the change of their difference by at most two lattice
        steps. Two more steps are allowed for evaluation in floating point. A step is at most 2**-20 of the sensitivity,
        which is at most the spread. An error that the query declares (`QueryFacts.rounding`) may occur in both scores
        on both tables, so it counts 4 times.
        """
        spread = super().change(facts)
        if facts.integer:
            return spread
        return times(spread, 1 + Fraction(4, 2**LATTICE_BITS)).map(lambda change: change + 4 * facts.rounding)

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> int:
        """Return the position of the chosen candidate."""
        return randomness.noisy_max(calibration.scores(answer), calibration.lattice_scale, self.noise)

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return the log-probability of choosing position `output`."""
        points = calibration.on_lattice(answer).ravel()
        scaled = np.asarray((points - points.max()) / calibration.lattice_scale, dtype=np.float64)
        if not 0 <= int(output) < len(scaled):
            return -math.inf
        return self.log_probability(scaled, int(output))

    @abc.abstractmethod
    def log_probability(self, scaled: NDArray[np.float64], chosen: int) -> float:
        """Return the log-probability of a position, for scores in units of the noise's scale."""

    def preview(self, calibration: Calibration) -> Preview:
        """Bound the gap between the best score and the score of the chosen candidate.

        A gap of t or more is likeliest if one candidate has the best score and the scores of all others are t below it.
        To see this, start from any scores. Raise the candidates that are more than t below the best score to t below
        it. Then they are chosen more often, so a gap of t or more becomes likelier. Lower the other candidates, except
        one with the best score, to t below it. If the best candidate is chosen now, then with the same noise the choice
        before was this candidate or a lowered one, whose gap was below t. So this change, too, makes a gap of t or
        more likelier. The stated gap is the t for which the probability is 5 % in the likeliest case.
        """
        scale, size = float(calibration.scale), calibration.facts.answer_length
        if size is None:
            return Preview(
                math.nan, math.nan, f"noise of scale {scale:.3g} on scores; the number of candidates is not known"
            )
        expected, within = scale * math.log(max(size, 2)), scale * self.gap(size)
        return Preview(expected, within, f"a score within {within:.3g} of the best of {size} (95 %)")

    @abc.abstractmethod
    def gap(self, size: int) -> float:
        """Return a 95 % bound on how far the chosen score is below the best of `size` scores, in scales of noise."""


@final
@attrs.frozen
class Exponential(_NoisyMax, BoundedRange):
    """The exponential mechanism, as the largest score with Gumbel noise.

    Source: McSherry and Talwar 2007; bounded range gives rho = epsilon**2 / 8 (see `BoundedRange`).
    """

    name: ClassVar[str] = "exponential"
    noise: ClassVar[Noise] = Noise.GUMBEL

    def log_probability(self, scaled: NDArray[np.float64], chosen: int) -> float:
        """Return the logarithm of the candidate's share in the sum of the exponentials of all scores."""
        return float(scaled[chosen] - np.log(np.exp(scaled).sum()))

    def gap(self, size: int) -> float:
        """Solve (m - 1) w / (1 + (m - 1) w) = 1/20 for w = exp(-gap), with m candidates.

        The fraction is the probability that the best candidate is not chosen, if all others have the weight w.
        """
        return math.log(19 * (size - 1)) if size > 1 else 0.0


@final
@attrs.frozen
class PermuteAndFlip(_NoisyMax):
    """Permute-and-flip, as the largest score with exponential noise.

    The expected score of its choice is never below that of the exponential mechanism. Source: McKenna and Sheldon 2020;
    as a noisy maximum Ding et al. 2021. In zCDP rho is epsilon**2 / 2, as for any mechanism of pure epsilon.
    """

    name: ClassVar[str] = "permute-and-flip"
    noise: ClassVar[Noise] = Noise.EXPONENTIAL

    def log_probability(self, scaled: NDArray[np.float64], chosen: int) -> float:
        """See `permute_and_flip_log_probability`."""
        return permute_and_flip_log_probability(scaled, chosen)

    def gap(self, size: int) -> float:
        """Solve 1 - (1 - (1 - w)**m) / (m w) = 1/20 for w = exp(-gap), with m candidates.

        The fraction is the probability that the best of m candidates is chosen, if all others have the weight w. It is
        the integral in `permute_and_flip_log_probability`. It falls as w grows. The search starts at
        w = 1 / (10 (m - 1)), where the other candidates together are chosen with a probability below 1/20.
        """
        if size < 2:
            return 0.0
        low, high = 1 / (10 * (size - 1)), 1.0
        for _ in range(60):
            middle = math.sqrt(low * high)
            best = -math.expm1(size * math.log1p(-middle)) / (size * middle) if middle < 1 else 1 / size
            low, high = (middle, high) if best >= 1 - 1 / 20 else (low, middle)
        return -math.log(low)


def with_relative_error(change: ByRelation, error: Fraction, epsilon: Fraction) -> ByRelation:
    """Return a change plus an allowance for an error of the scores that grows with the noise's scale.

    Logarithms of weights are off by at most `error` at every scale, so scores are off by at most error times scale. The
    scale is a change divided by epsilon. That change is at most twice the largest change that is returned here, since a
    row that moves between parts pays twice. If error is at most epsilon / 4, the returned changes are at most twice the
    given changes. So the scale is at most 4 / epsilon times the largest given change. It is enough to add error times
    this bound on the scale.

    Raises
    ------
    InputError
        If epsilon is less than 4 times the error.
    """
    if 4 * error > epsilon:
        raise InputError(f"epsilon is {float(epsilon):.3g}; rounding needs at least {float(4 * error):.3g} here")
    known = [bound for bound in (change.add_or_remove_one, change.replace_one) if bound is not None]
    added = 4 * error / epsilon * max(known, default=Fraction(0))
    return change.map(lambda bound: bound + added)


def bounded_range_losses(spread: ByRelation, scale: Fraction) -> Losses:
    """Return the losses of a mechanism of bounded range: spread / scale as epsilon, and epsilon**2 / 8 as rho."""
    pure = double_at_most(divide(spread, scale))
    return Losses(pure, pure.map(lambda epsilon: epsilon**2 / 8))


NEGLIGIBLE = 1e-18  # the largest weight that is left out, since 1 minus it is 1 in double precision


@functools.cache  # computed only where it is needed
def _unit_rule() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the nodes and the weights of the Gauss-Legendre rule of 20 nodes on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    return (nodes + 1) / 2, weights / 2


def permute_and_flip_log_probability(scaled: NDArray[np.float64], chosen: int) -> float:
    """Return the log-probability that permute-and-flip chooses position `chosen`.

    Let each candidate come at a uniform time u in [0, 1] and be accepted with probability w = exp(scaled). Then

        Pr[r] = w_r * integral over u in [0, 1] of the product over i != r of (1 - u w_i).

    The integrand is a polynomial of degree m - 1. Up to 40 candidates, one Gauss-Legendre rule of 20 nodes is exact.
    For more candidates, the rule is applied on intervals that halve towards 0, where the mass lies.

    Parameters
    ----------
    scaled
        The scores divided by the noise's scale, shifted so that the largest is 0, shape (m,).
    chosen
        A position in [0, m).
    """
    others = np.exp(scaled)
    others[chosen] = 0.0
    others = others[others > NEGLIGIBLE]
    halvings = 0 if len(others) < 40 else math.ceil(math.log2(others.sum() + 1)) + 6
    edges = [0.0, *(2.0**-k for k in range(halvings, -1, -1))]
    nodes, weights = _unit_rule()
    integral = 0.0
    # One interval at a time, so that memory grows with the candidates only.
    for low, high in itertools.pairwise(edges):
        times_ = low + (high - low) * nodes
        integral += (high - low) * float(np.dot(weights, np.prod(1 - times_ * others[:, np.newaxis], axis=0)))
    return float(scaled[chosen] + math.log(integral))
