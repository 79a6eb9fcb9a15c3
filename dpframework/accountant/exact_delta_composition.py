"""How the exact deltas of releases compose, next to their losses in any notion of loss.

The output of a release may be a mixture (see `mechanisms.release_losses`). With probability 1 - d it comes from the
*core*, a distribution whose loss is bounded. With probability d it comes from a *rest*, about which nothing is claimed.
This d is the release's *exact delta*. Accountants compose the losses of the cores. This module composes the deltas.

**Theorem.** A composition has the composed losses of the cores, and the following delta:

- sequential, repeat: the sum. The core of the composition is the product of the cores, with a mass of at least 1 minus
  the sum of all d_i. We may take the mass to be exactly that, since moving a share of the core to the rest does not
  change the core's distribution.
- either: the largest, for the same reason.
- parallel: the largest under add-or-remove, since parts whose rows do not change have equal outputs. Under replace-one,
  the larger of the largest replace-one delta and the sum of the two largest add-or-remove deltas.
- a sample of rate q: q d, under add-or-remove. On a sample with the unit let the output be (1 - d) P + d E, with core P
  and rest E. On the same sample without the unit let it be N = (1 - d) Q + d E'. Then on the table with the unit the
  output is q (1 - d) P + q d E + (1 - q) N, and on the table without it N = q (1 - d) Q + q d E' + (1 - q) N. The parts
  q d E and q d E' are the new rests. The new cores are a mixture of two pairs. The first, with weight
  (1 - d) / (1 - q d), is (q P + (1 - q) Q, Q), which accountants bound. The second is (E', E'), which loses nothing. No
  divergence grows when two pairs are mixed.
- a sample of rows, for units of k rows: q d. The release is a mixture of releases from s of the k rows, each with a
  delta of at most s d / k, and the mean of s is q k. The cores of these releases lose no more than the core for all k
  rows. The epsilon is not amplified: amplifying it for each row would need another split into core and rest than the
  one with delta q d.

If a unit's rows spread over parts, each part has at most its share of the delta (see `mechanisms.release_losses`). So
parts compose as for one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import final

from dpframework.accountant import composition
from dpframework.facts.privacy_losses import NOTHING, ByRelation
from dpframework.mechanisms.base import Calibration
from dpframework.plan.node_kind_table import kind_of
from dpframework.plan.nodes import Node
from dpframework.plan.plan import Plan


@final
class DeltaComposition:
    """Composes exact deltas, with the methods by which an accountant composes losses."""

    def release(self, calibration: Calibration | None) -> ByRelation:
        """Return the delta of one release."""
        return ByRelation(None, None) if calibration is None else calibration.losses.delta

    def sequential(self, parts: Sequence[ByRelation]) -> ByRelation:
        """Add the deltas up."""
        return composition.sequential(parts)

    def either(self, parts: Sequence[ByRelation]) -> ByRelation:
        """Take the largest delta."""
        return composition.either(parts)

    def repeat(self, part: ByRelation, times: int) -> ByRelation:
        """Multiply the delta by `times`."""
        return composition.repeat(part, times)

    def over_parts(self, parts: Sequence[ByRelation], plan: Plan) -> ByRelation:
        """Compose by `composition.parallel`, which holds for units of several rows too."""
        return composition.parallel(parts)

    def over_sample(self, part: ByRelation, rate: Fraction, plan: Plan) -> ByRelation:
        """Return the rate times the delta."""
        return ByRelation(part.map(lambda delta: rate * delta).add_or_remove_one, None)


def exact_delta_of(node: Node, plan: Plan) -> ByRelation:
    """Return the exact delta of all releases below a node, for each relation: None where there is no valid claim.

    The delta is 0 in a plan whose releases have no exact delta.
    """
    if not plan.has_exact_delta:
        return NOTHING
    parts = [exact_delta_of(child, plan) for child in plan.index.parts_of(node)]
    delta: ByRelation = kind_of(node).compose(node, parts, DeltaComposition(), plan)
    return delta
