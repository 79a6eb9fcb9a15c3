"""Releases of keys whose noisy counts reach a threshold, for units with several keys, at a rho and an exact delta.

A key is a value that nobody listed beforehand, such as a town in a column of towns. Each count gets discrete Gaussian
noise with the parameter sigma. A key is shown, with its noisy count, if the noisy count is at least a threshold t. A
key without rows is never shown. Let a unit change up to m counts, each by 1, and let p be the probability that 1 plus
noise is t or more.

**Claim.** Under add-or-remove-one, the release has a rho of m / (2 sigma**2) and a delta of d = 1 - (1 - p)**m. Under
replace-one, it has a rho of 2 m / (2 sigma**2) and the same delta. *Proof.* Let table v be table u with one more unit,
and let k of this unit's keys be new, so that no unit in u has them. On v, each new key has a count of 1, so the
probability that none of them is shown is (1 - p)**k. Let Q be the release on v on the condition that none is shown.
Since 1 - (1 - p)**k <= d, the release on v is (1 - d) Q + d E for some E. The release on u is (1 - d) P + d P, where P
is the release on u itself. Apart from the new keys, at most m - k counts differ between u and v. Each of these changes
by 1, and its own noisy count decides whether it is shown. So the divergence of P and Q of order alpha is at most
alpha (m - k) / (2 sigma**2), by the Gaussian mechanism and post-processing (Bun and Steinke 2016; on integers Canonne,
Kamath and Steinke 2020). Under replace-one, the first unit leaves and the second enters. Let P be the release on u on
the condition that no key is shown that only the first unit has. Let Q be the release on v on the condition that no key
is shown that only the second unit has. Both conditions have a probability of 1 - d or more, and at most 2 m other
counts differ. ∎

**One split serves all notions of privacy.** The claim splits a release into the outputs E of probability d and the
*core* (P and Q, see `release_losses`). In the core at most m counts with Gaussian noise differ, or 2 m under
replace-one. So dp-accounting's event for these counts dominates the core, which accounting by privacy loss
distributions (PLD) requires.

**On integers.** sigma is the double with which noise is drawn. p is a sum of about 40 sigma exponentials, rounded up by
more than its error. So d is not below the true delta.

If a unit has one key, `PartitionSelection` shows more keys than this mechanism, since it uses the optimal rule. From
about four keys per unit on, this mechanism shows more keys, since its noise for m keys grows only with the square root
of m.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_left
from fractions import Fraction
from typing import Any, ClassVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import (
    ByRelation,
    Relation,
    deviation_above,
    positive_delta,
    positive_rho,
    round_up,
)
from dpframework.facts.privacy_unit import ONE_ROW, UnitChange
from dpframework.mechanisms.base import Calibration, Mechanism
from dpframework.mechanisms.cell_selection_base import NO_COUNTS, CellSelection, CellVisibility
from dpframework.mechanisms.gaussian import event_of, log_normalizer
from dpframework.mechanisms.integer_answer_change_bounds import unit_changes
from dpframework.mechanisms.randomness import Randomness
from dpframework.mechanisms.release_losses import Losses, divide
from dpframework.queries.base import Norm, QueryFacts

SURE = Fraction(999, 1000)  # previews state the number of rows from which a key is shown with this probability
_LEAST_CHANCE = 1e-40  # a smaller probability that a key is shown is replaced by this one, since it may underflow
_MARGIN = 1e-9  # the relative margin by which probabilities are rounded up, far above the errors of their sums
_FURTHEST = 40  # a distance in standard deviations, beyond which the noise lies with a probability below 1e-300
LARGEST_DEVIATION = 1e5  # the largest standard deviation of the noise of a count, in rows
LEAST_DELTA = Fraction(1, 1 << 100)  # the smallest delta, far above `_LEAST_CHANCE`


@final
@attrs.frozen
class GaussianThreshold(CellSelection):
    """Releases the keys whose counts with Gaussian noise reach a threshold, sorted, with these noisy counts.

    For the cells of a list it releases the noisy counts that reach the threshold, and 0 for all others.

    Attributes
    ----------
    rho
        The rho that the noise costs one privacy unit, under the study's neighbouring relation.
    delta
        A bound, for every privacy unit, on the probability that a release shows any key that only this unit has.

    Examples
    --------
    >>> GaussianThreshold("0.1", "1e-6").delta
    Fraction(1, 1000000)
    """

    name: ClassVar[str] = "gaussian-threshold"
    norm: ClassVar[Norm] = Norm.SQUARED_L2
    rho: Fraction = attrs.field(converter=positive_rho)
    delta: Fraction = attrs.field(converter=positive_delta)

    def misfit(self, facts: QueryFacts) -> str | None:
        """Accept only queries whose answers are known to be counts that an added row changes by at most 1."""
        return NO_COUNTS if unit_changes(facts, Relation.ADD_OR_REMOVE_ONE) is None else super().misfit(facts)

    def calibrate(
        self, facts: QueryFacts, relation: Relation, *, in_parts: bool = False, by: UnitChange = ONE_ROW
    ) -> Calibration | None:
        """Fix the noise. For parts of a table under replace-one, each part gets half of delta.

        A replaced unit may have keys both in the part that it leaves and in the part that it enters.

        Raises
        ------
        InputError
            If delta is below 2**-100, or if the noise is too wide for a threshold.
        """
        halved = in_parts and relation is Relation.REPLACE_ONE
        fixed = attrs.evolve(self, delta=self.delta / 2) if halved else self
        return Mechanism.calibrate(fixed, facts, relation, in_parts=in_parts, by=by)

    def change(self, facts: QueryFacts) -> ByRelation:
        """Return how many counts a unit changes, each by 1, which is also the square of the change in the l2 norm.

        The number is the smaller of the declared changes in the l1 norm and in the squared l2 norm.
        """
        changed = (unit_changes(facts, relation) for relation in Relation)
        return ByRelation(*(None if number is None else Fraction(number) for number in changed))

    def scale(self, change: Fraction) -> Fraction:
        """Return the variance of the noise."""
        return change / (2 * self.rho)

    def losses(self, change: ByRelation, scale: Fraction) -> Losses:
        """Return no pure epsilon, the rho of the noise, and the delta of keys that only one unit has."""
        assert change.add_or_remove_one is not None  # `misfit` refuses other queries
        keys = math.floor(change.add_or_remove_one)
        delta = _delta_at(_threshold(scale, keys, self.delta), deviation_above(scale), keys)
        claimed = [None if change.under(relation) is None else delta for relation in Relation]
        return Losses(ByRelation(None, None), divide(change, 2 * scale), ByRelation(*claimed))

    @staticmethod
    def cell_visibility(calibration: Calibration) -> CellVisibility:
        """Return how many rows a cell needs to be shown, and how far off its count is."""
        sigma, least = calibration.lattice_deviation, threshold_of(calibration)
        rows = range(least, least + math.ceil(_FURTHEST * sigma) + 1)
        shown = [rows[bisect_left(rows, p, key=lambda n: _tail(least - n, sigma))] for p in (float(SURE), 0.975)]
        sure, hidden = shown[0], shown[1] - 1
        within = float(math.ceil(1.959964 * sigma))
        return CellVisibility(least, sure, within, hidden, sigma * math.sqrt(2 / math.pi), SURE)

    def dp_event(self, calibration: Calibration, relation: Relation) -> Any | None:
        """Return the core's event: one discrete Gaussian event for each count that changes."""
        changed = unit_changes(calibration.facts, relation)
        return event_of(calibration, relation, None if changed is None else (changed, 1), 1)

    def _noisy_counts(
        self, exact: NDArray[np.int64], calibration: Calibration, randomness: Randomness
    ) -> NDArray[np.int64]:
        noise = randomness.discrete_gaussian(exact.size, calibration.lattice_deviation).reshape(exact.shape)
        noisy = exact + noise
        return np.where((exact > 0) & (noisy >= threshold_of(calibration)), noisy, 0)

    def _log_chances(
        self, exact: NDArray[np.int64], points: NDArray[np.int64], calibration: Calibration
    ) -> NDArray[np.float64]:
        sigma, least = calibration.lattice_deviation, threshold_of(calibration)
        squares = np.square((points - exact).astype(np.float64))
        shown = np.where((exact > 0) & (points >= least), -squares / (2 * sigma**2) - log_normalizer(sigma), -np.inf)
        missed = np.array([_log_below(least - int(count), sigma) if count > 0 else 0.0 for count in exact.ravel()])
        return np.where(points == 0, missed.reshape(exact.shape), shown)


def threshold_of(calibration: Calibration) -> int:
    """Return the least noisy count that is shown."""
    mechanism, changed = calibration.mechanism, unit_changes(calibration.facts, Relation.ADD_OR_REMOVE_ONE)
    assert isinstance(mechanism, GaussianThreshold)
    assert changed is not None  # `misfit` refuses other queries
    return _threshold(calibration.scale, changed, mechanism.delta)


@functools.lru_cache(maxsize=256)
def _threshold(scale: Fraction, keys: int, delta: Fraction) -> int:
    """Return the least threshold at which the probability that any new key of a unit is shown is at most delta."""
    sigma = deviation_above(scale)
    if delta < LEAST_DELTA:
        raise InputError(f"delta is {float(delta):g}; keys need a delta of 1e-30 or more")
    if sigma > LARGEST_DEVIATION:
        raise InputError("the noise of keys would be wider than 100,000 rows; raise rho")
    # The probability is above delta at `low`, and at most delta at `high`.
    low, high = 0, 2 + math.ceil(_FURTHEST * sigma)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _delta_at(middle, sigma, keys) <= delta else (middle, high)
    return high


def _delta_at(least: int, sigma: float, keys: int) -> Fraction:
    """Return the probability, rounded up, that any of `keys` keys is shown, if only one unit has them."""
    chance = max(_tail(least - 1, sigma) * (1 + _MARGIN), _LEAST_CHANCE)  # the tail underflows for tiny noise
    if chance >= 1:
        return Fraction(1)
    return round_up(-math.expm1(keys * math.log1p(-chance)) * (1 + _MARGIN))


@functools.lru_cache(maxsize=4096)
def _tail(least: int, sigma: float) -> float:
    """Return the probability that discrete Gaussian noise is at least `least`."""
    if least <= 0:
        return 1 - _tail(1 - least, sigma)
    numbers: NDArray[np.float64] = np.arange(least, least + math.ceil(_FURTHEST * sigma) + 1, dtype=np.float64)
    logs = -np.square(numbers) / (2 * sigma**2)
    largest = float(logs[0])
    return math.exp(largest + math.log(float(np.exp(logs - largest)[::-1].sum())) - log_normalizer(sigma))


def _log_below(least: int, sigma: float) -> float:
    """Return the logarithm of the probability that the noise is below `least`."""
    below = 1 - _tail(least, sigma) if least > 0 else _tail(1 - least, sigma)
    return math.log(below) if below > 0 else -math.inf
