"""The exact delta of releases, which composes beside every notion of loss.

A release may have a delta of its own: with that probability it gives an output outside its core (see
`mechanisms.losses`). An accountant composes the cores. Here the deltas are composed, by the same rules.

**Theorem.** A composition has the composed losses of the cores, and the following delta:

- sequential, repeat: the sum. Cores multiply, and the product of all 1 - d_i is at least 1 minus the sum. The mass of
  the core may be made as small as 1 minus the sum, since moving a share of a core to the rest leaves its distributions
  as they are.
- either: the largest, for the same reason.
- parallel: the largest under add-or-remove, since rows that do not change have equal outputs. Under replace-one, the
  larger of the largest replace-one delta and the sum of the two largest add-or-remove deltas.
- a sample of rate q: q d, under add-or-remove. Let P and Q be the cores with the unit and without it, and N be
  (1 - d) Q + d E'. With the unit the outputs are q (1 - d) P + q d E + (1 - q) N, and without it
  q (1 - d) Q + q d E' + (1 - q) N. Put q d E and q d E' aside. What is left is a mixture: (1 - d) / (1 - q d) of the
  pair (q P + (1 - q) Q, Q), which accountants bound, and the rest of the pair (E', E'). No divergence grows when two
  pairs are mixed.
- a sample of rows, for units of several rows: q d. The release is a mixture of releases from s of the k rows, each with
  a delta of at most s d / k, and the mean of s is q k. Their cores lose no more than the core for all k rows. An
  epsilon that is amplified for each row would belong to another split, so none is amplified.

Where a unit's rows spread over parts, each part has at most its share of the delta (see `mechanisms.losses`), so that
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
    """Composes exact deltas, as an accountant composes losses."""

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
        """Multiply the delta by the number of times."""
        return composition.repeat(part, times)

    def over_parts(self, parts: Sequence[ByRelation], plan: Plan) -> ByRelation:
        """See `composition.parallel`, which serves units of several rows too."""
        return composition.parallel(parts)

    def over_sample(self, part: ByRelation, rate: Fraction, plan: Plan) -> ByRelation:
        """Return the rate times the delta."""
        return ByRelation(part.map(lambda delta: rate * delta).add_or_remove_one, None)


def exact_delta_of(node: Node, plan: Plan) -> ByRelation:
    """Return the exact delta of all releases below a node, None under a relation without a valid claim.

    The delta is 0 in a plan whose releases have no exact delta.
    """
    if not plan.has_exact_delta:
        return NOTHING
    parts = [exact_delta_of(child, plan) for child in plan.index.parts_of(node)]
    delta: ByRelation = kind_of(node).compose(node, parts, DeltaComposition(), plan)
    return delta
