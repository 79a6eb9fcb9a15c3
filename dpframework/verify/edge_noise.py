"""Noise with an exact delta, on which accountants and reports are tried."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import attrs
import numpy as np

from dpframework.facts.privacy import ByRelation, Relation, positive
from dpframework.mechanisms import Calibration, Losses, Preview, PureMechanism, Randomness
from dpframework.mechanisms.laplace import to_lattice, with_noise
from dpframework.mechanisms.losses import divided, doubled_at_most, growth_of_delta, times
from dpframework.mechanisms.selection_noise import SelectionNoise, selection_noise
from dpframework.mechanisms.shifts import unit_changes
from dpframework.queries import Norm, QueryFacts


def _delta(value: Any) -> Any:
    return positive(value, "delta")


@attrs.frozen
class EdgeNoise(PureMechanism):
    """Noise of an epsilon and a delta on each of several counts, with an end on both sides (see `SelectionNoise`).

    On counts of which c change, by 1 each, it is (c epsilon, c delta)-DP: cores multiply. So its parameters are divided
    by c. Both sums of `SelectionNoise` are delta exactly, so that its claim for one count is attained.

    Attributes
    ----------
    delta
        Of one privacy unit under the study's relation.
    """

    name: ClassVar[str] = "edge-noise"
    norm: ClassVar[Norm] = Norm.L1
    delta: Any = attrs.field(converter=_delta)

    def misfit(self, facts: QueryFacts) -> str | None:
        """Refuse queries whose answers are not known to change by 1 in each coordinate."""
        if all(unit_changes(facts, relation) is None for relation in Relation):
            return "needs integers that change by 1 at most"
        return super().misfit(facts)

    def for_rows(self, rows: int) -> EdgeNoise:
        """Return the noise of which so many rows lose as much as from this noise one row."""
        epsilon = self.epsilon / rows
        return attrs.evolve(self, epsilon=epsilon, delta=self.delta / growth_of_delta(epsilon, self.epsilon))

    def change(self, facts: QueryFacts) -> ByRelation:
        """Return the number of counts that change."""
        declared = facts.sensitivity(Norm.L1)
        assert declared is not None  # `misfit` has been asked
        return declared.change

    def losses(self, change: ByRelation, scale: Any) -> Losses:
        """Return the losses of so many counts."""
        of_one = self.delta / (scale * self.epsilon)
        pure, delta = (doubled_at_most(amount) for amount in (divided(change, scale), times(change, of_one)))
        return Losses(pure, pure.map(lambda epsilon: epsilon**2 / 2), delta)

    def noise(self, calibration: Calibration) -> SelectionNoise:
        """Return the noise of one count."""
        return selection_noise(1 / calibration.scale, self.delta / (calibration.scale * self.epsilon))

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> Any:
        """Add noise to each count."""
        noise = self.noise(calibration)
        (output,) = with_noise([answer], calibration, lambda size: noise.draw(size, randomness))
        return output

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return the log-probability of noisy counts."""
        exact, points = calibration.on_lattice(answer), to_lattice(output, calibration)
        if points is None or points.shape != exact.shape:
            return -math.inf
        return float(self.noise(calibration).log_density(np.atleast_1d(points - exact)).sum())

    def preview(self, calibration: Calibration) -> Preview:
        """Return the farthest that noise may be from 0."""
        furthest = self.noise(calibration).reach - 1
        return Preview(furthest / 2, furthest, f"each number too high, by {furthest} at most")
