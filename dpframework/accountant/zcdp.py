"""Zero-concentrated differential privacy (zCDP): rhos add up, and their sum gives an epsilon (Bun and Steinke 2016).

Every composition rule of pure epsilon holds for rho too. Sequential composition holds by Lemma 1.7. Parallel parts and
branches compose because only the part or branch concerned adds to the Renyi divergence, at every order.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, final

from dpframework.accountant import composition
from dpframework.accountant.pure import UNCLAIMED, AdditiveAccountant
from dpframework.facts.privacy_losses import ByRelation, PrivacyLoss, convert_above
from dpframework.mechanisms.base import Calibration

#: The orders that are tried, each as (order - 1) divided by (approximately the best order - 1).
_ORDER_RATIOS = [2 ** (k / 16) for k in range(-48, 49)]


@final
class ZCDPAccountant(AdditiveAccountant):
    """Accounts in rho, and converts the sum to an epsilon at the budget's delta."""

    name: ClassVar[str] = "zcdp"
    needs_delta: ClassVar[bool] = True  # rho has no finite epsilon at delta 0
    of_units: ClassVar[bool] = True
    samples_anew: ClassVar[bool] = True
    chosen_plans: ClassVar[bool] = True

    def spread(self, parts: Sequence[ByRelation], rows: int) -> ByRelation:
        """Compose as for one row, since a part's loss shrinks with its share of the unit's rows (see `composition`)."""
        return composition.parallel(parts)

    def sample(self, part: ByRelation, rate: Fraction) -> ByRelation:
        """Return the part's own rho, since mixtures diverge no more than the part.

        No theorem used here gives a smaller rho.
        """
        return ByRelation(part.add_or_remove_one, None)

    def sample_of_rows(self, part: ByRelation, rate: Fraction, rows: int) -> ByRelation:
        """Return the part's own rho, since some of the unit's rows lose no more than all of them."""
        return self.sample(part, rate)

    def amount(self, calibration: Calibration | None) -> ByRelation:
        """Return the step's rho under each relation."""
        return UNCLAIMED if calibration is None else calibration.losses.zcdp

    def loss(self, amount: ByRelation) -> PrivacyLoss | None:
        """Return the epsilon at the budget's delta, with the rho."""
        rho = amount.under(self.relation)
        if rho is None:
            return None
        return PrivacyLoss(epsilon=zcdp_to_epsilon(rho, self.delta), rho=rho, delta=self.delta)


@functools.lru_cache(maxsize=1024)
def zcdp_to_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an epsilon for rho at delta: the smaller of dp-accounting's conversion and Bun and Steinke's formula.

    Examples
    --------
    >>> 0 < zcdp_to_epsilon(Fraction(1, 200), Fraction(1, 10**6)) < Fraction(1, 2)
    True
    """
    if rho == 0:
        return Fraction(0)
    from dp_accounting import ZCDpEvent
    from dp_accounting.rdp import RdpAccountant

    best_order = 1 + math.sqrt(math.log(1 / delta) / rho)
    orders = [1 + (best_order - 1) * times for times in _ORDER_RATIOS]
    epsilon = RdpAccountant(orders).compose(ZCDpEvent(float(rho))).get_epsilon(float(delta))
    closed = float(rho) + 2 * math.sqrt(float(rho) * math.log(1 / delta))  # Bun and Steinke 2016, Proposition 1.3
    # dp-accounting's epsilon is not finite for a rho of millions.
    return convert_above(min(float(epsilon), closed))
