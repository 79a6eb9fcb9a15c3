"""Pure epsilon: exact rationals, added up (Dwork et al. 2006; McSherry 2009)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, final

from dpframework.accountant import composition
from dpframework.accountant.base import Accountant
from dpframework.facts.errors import InputError
from dpframework.facts.privacy import Amount, Pair, PrivacyLoss, Relation
from dpframework.mechanisms.base import Calibration

UNCLAIMED = Pair(None, None)


class PairAccountant(Accountant[Pair]):
    """An accountant whose amounts add up, under both relations at once."""

    def sequential(self, parts: Sequence[Pair]) -> Pair:
        """Add up."""
        return composition.sequential(parts)

    def parallel(self, parts: Sequence[Pair]) -> Pair:
        """See `composition.parallel`."""
        return composition.parallel(parts)

    def either(self, parts: Sequence[Pair]) -> Pair:
        """Take the largest."""
        return composition.either(parts)

    def repeat(self, part: Pair, times: int) -> Pair:
        """Multiply."""
        return composition.repeat(part, times)


@final
class PureAccountant(PairAccountant):
    """Accounts in pure epsilon."""

    name: ClassVar[str] = "pure"

    def __init__(self, relation: Relation | str, *, epsilon: Amount | None = None, delta: Amount = 0) -> None:
        super().__init__(relation, epsilon=epsilon, delta=delta)
        if self.delta:
            raise InputError("pure accounting has no delta; use concentrated or pld accounting")

    def amount(self, calibration: Calibration | None) -> Pair:
        """Return the step's epsilon under each relation."""
        return UNCLAIMED if calibration is None else calibration.losses.pure

    def loss(self, amount: Pair) -> PrivacyLoss | None:
        """Return epsilon."""
        epsilon = amount.under(self.relation)
        return None if epsilon is None else PrivacyLoss(epsilon=epsilon)
