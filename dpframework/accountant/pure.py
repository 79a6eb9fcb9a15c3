"""Pure epsilon, added up as exact rationals (Dwork et al. 2006, McSherry 2009)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, final

from dpframework.accountant import composition
from dpframework.accountant.base import Accountant
from dpframework.facts.privacy_losses import ByRelation, PrivacyLoss
from dpframework.mechanisms.base import Calibration

UNCLAIMED = ByRelation(None, None)


class AdditiveAccountant(Accountant[ByRelation]):
    """An accountant whose amounts add up, under both relations at once."""

    def sequential(self, parts: Sequence[ByRelation]) -> ByRelation:
        """Add the amounts up."""
        return composition.sequential(parts)

    def parallel(self, parts: Sequence[ByRelation]) -> ByRelation:
        """Compose by `composition.parallel`."""
        return composition.parallel(parts)

    def either(self, parts: Sequence[ByRelation]) -> ByRelation:
        """Take the largest amount."""
        return composition.either(parts)

    def repeat(self, part: ByRelation, times: int) -> ByRelation:
        """Multiply the amount by the number of times."""
        return composition.repeat(part, times)


@final
class PureAccountant(AdditiveAccountant):
    """Accounts in pure epsilon."""

    name: ClassVar[str] = "pure"
    of_units: ClassVar[bool] = True
    samples_anew: ClassVar[bool] = True
    chosen_plans: ClassVar[bool] = True
    converts: ClassVar[bool] = False  # only releases with an exact delta use delta

    def spread(self, parts: Sequence[ByRelation], rows: int) -> ByRelation:
        """Compose as for one row, since a part's loss shrinks with its share of the unit's rows (see `composition`)."""
        return composition.parallel(parts)

    def sample(self, part: ByRelation, rate: Fraction) -> ByRelation:
        """Return the epsilon that sampling lowers (see `composition.sample`)."""
        return composition.sample(part, rate)

    def sample_of_rows(self, part: ByRelation, rate: Fraction, rows: int) -> ByRelation:
        """Return the epsilon that sampling lowers for each row (see `composition.amplify_rows`)."""
        return composition.amplify_rows(part, rate, rows)

    def amount(self, calibration: Calibration | None) -> ByRelation:
        """Return the step's epsilon under each relation."""
        return UNCLAIMED if calibration is None else calibration.losses.pure

    def loss(self, amount: ByRelation) -> PrivacyLoss | None:
        """Return the epsilon as a loss. Its delta is 0, since `exact_delta_composition` accounts for exact deltas."""
        epsilon = amount.under(self.relation)
        return None if epsilon is None else PrivacyLoss(epsilon=epsilon)
