"""Noisy counts of the cells that have enough rows, and nothing about all others, at an epsilon and an exact delta.

Each count gets the noise of `SelectionNoise`, which is between 0 and `reach` - 1. A cell is shown if its noisy count is
`reach` or more. The noise is derived from the optimal rule for showing cells (Desfontaines, Voss, Gipson and Mandayam
2022). So a cell of n rows is shown with the same probability as under that rule, and its noisy count is released at no
further cost. A cell without rows is never shown, and its 0 has no noise. So a delta pays off where there are many cells
and most of them are empty.

**Claim.** Let a unit change at most c counts, each by at most 1. Noise is drawn for each count alone, at epsilon / c
and delta / c. The core of a release is what remains of its distribution if outputs with a total probability of delta
are left out (see `release_losses`). The core of all counts is the product of the cores of the single counts. So
epsilons add up, and the delta of all counts is at most the sum of their deltas. The cells that are shown follow from
the noisy counts, so showing them loses no more. For one count the delta is attained: a cell of one row is shown with
probability delta, and never without that row. Under replace-one a row leaves one cell and enters another, so c is 2.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import ClassVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.privacy_losses import ByRelation, Relation, positive_delta
from dpframework.facts.privacy_unit import ONE_ROW, UnitChange
from dpframework.mechanisms.base import Calibration, PureMechanism
from dpframework.mechanisms.cell_selection_base import CellSelection, CellVisibility
from dpframework.mechanisms.optimal_partition_selection_noise import SelectionNoise, selection_noise
from dpframework.mechanisms.randomness import Randomness
from dpframework.mechanisms.release_losses import Losses, divide, double_at_most, growth_of_delta, half_square, times
from dpframework.queries.base import Norm, QueryFacts

# A bound on the probability that a cell of more than `CellVisibility.hidden` rows is not shown, and on the probability
# that the noise of a count is larger than `CellVisibility.within`. Together these are 5 %.
_BEYOND = 0.025


@final
@attrs.frozen
class PartitionSelection(CellSelection, PureMechanism):
    """The noisy counts of cells that have enough rows; 0 for all others, and so for every cell without rows.

    For keys, which nobody listed beforehand (`queries.Keys`), it releases the keys that have enough rows, sorted, with
    their noisy counts.

    Attributes
    ----------
    delta
        The delta that one privacy unit loses under the study's relation. It bounds the probability of outputs that only
        one of two neighbouring tables can give.

    Examples
    --------
    >>> PartitionSelection(1, "1e-6").delta
    Fraction(1, 1000000)
    """

    name: ClassVar[str] = "partition-selection"
    norm: ClassVar[Norm] = Norm.L1
    delta: Fraction = attrs.field(converter=positive_delta)

    def for_rows(self, rows: int) -> PartitionSelection:
        """Return the mechanism for one row, such that `rows` rows together lose this mechanism's epsilon and delta."""
        epsilon = self.epsilon / rows
        return attrs.evolve(self, epsilon=epsilon, delta=self.delta / growth_of_delta(epsilon, self.epsilon))

    def calibrate(
        self, facts: QueryFacts, relation: Relation, *, in_parts: bool = False, by: UnitChange = ONE_ROW
    ) -> Calibration | None:
        """Fix the noise, if need be for a smaller delta.

        A unit of several replaced rows could lose more than the field `delta`. Then the delta of the noise is reduced
        until the unit loses at most that.

        Raises
        ------
        InputError
            If delta is below 2**-100, or if the noise could exceed a million rows.
        """
        found = PureMechanism.calibrate(self, facts, relation, in_parts=in_parts, by=by)
        claimed = None if found is None else found.losses.delta.under(relation)
        if claimed is not None and claimed > self.delta:  # the claimed delta is proportional to the mechanism's delta
            smaller = attrs.evolve(self, delta=self.delta * self.delta / claimed)
            found = PureMechanism.calibrate(smaller, facts, relation, in_parts=in_parts, by=by)
        if found is not None:
            _noise_of(found)
        return found

    def losses(self, change: ByRelation, scale: Fraction) -> Losses:
        """Return the losses of all counts that a unit changes.

        Each count loses an epsilon of 1 / scale, and a delta of `self.delta` divided by (scale times `self.epsilon`).
        """
        of_one = self.delta / (scale * self.epsilon)
        pure, delta = (double_at_most(amount) for amount in (divide(change, scale), times(change, of_one)))
        return Losses(pure, half_square(pure), delta)

    @staticmethod
    def cell_visibility(calibration: Calibration) -> CellVisibility:
        """Return how many rows a cell needs to be shown, and how far off its count is."""
        noise = _noise_of(calibration)
        errors = np.abs(np.arange(noise.reach - 1, -1, -1) - noise.centre)
        chances = noise.shown(np.arange(noise.reach + 1))
        half, hidden = int(np.argmax(chances >= 0.5)), int(np.argmax(chances >= 1 - _BEYOND)) - 1
        order = np.argsort(errors, kind="stable")
        within = errors[order][np.searchsorted(np.cumsum(noise.chances[order]), 1 - _BEYOND)]
        return CellVisibility(half, noise.reach, float(within), hidden, float(noise.chances @ errors))

    def _noisy_counts(
        self, exact: NDArray[np.int64], calibration: Calibration, randomness: Randomness
    ) -> NDArray[np.int64]:
        noise = _noise_of(calibration)
        noisy = exact + noise.draw(exact.size, randomness).reshape(exact.shape)
        return np.where(noisy >= noise.reach, noisy - noise.centre, 0)

    def _log_chances(
        self, exact: NDArray[np.int64], points: NDArray[np.int64], calibration: Calibration
    ) -> NDArray[np.float64]:
        noise = _noise_of(calibration)
        noisy = points + noise.centre
        shown = np.where(noisy >= noise.reach, noise.log_density(noisy - exact), -np.inf)
        return np.where(points == 0, noise.log_hidden(exact), shown)


def _noise_of(calibration: Calibration) -> SelectionNoise:
    """Return the noise of one count."""
    mechanism = calibration.mechanism
    assert isinstance(mechanism, PartitionSelection)
    return _noise_at(calibration.scale, mechanism.epsilon, mechanism.delta)


@functools.lru_cache(maxsize=64)
def _noise_at(scale: Fraction, epsilon: Fraction, delta: Fraction) -> SelectionNoise:
    # The divisions of fractions take longer than a density, and verification computes very many densities.
    return selection_noise(1 / scale, delta / (scale * epsilon))
