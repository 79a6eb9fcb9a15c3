"""The budget of a synthetic table in pure epsilon or rho, and the mechanisms that spend a share of it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, final

import attrs

from dpframework.mechanisms import MechanismBudget
from dpframework.plan import Node, kind, spend
from dpframework.queries import Query

if TYPE_CHECKING:
    from dpframework.run import SpendBlock

CHOOSE, MEASURE = "choose", "measure"  # the names of a round's two steps, and of the two kinds of release in a block


@final
@attrs.frozen
class TableBudget(MechanismBudget):
    """The budget of a synthetic table.

    Part of it may be the cap of a spend block, in which the run decides what each selection and measurement costs.
    """

    def block(self, name: str, chosen: Query, measured: Query, share: Fraction) -> Node:
        """Plan a spend block of selections and measurements, which together may cost a share of the budget."""
        kinds = kind(CHOOSE, chosen, self.selects), kind(MEASURE, measured, self.counts)
        return spend(name, *kinds, **self.cost(share))

    def cost(self, share: Fraction) -> dict[str, Fraction]:
        """Return a share of the budget as the one keyword argument `rho` or `epsilon`."""
        return {"rho" if self.zcdp else "epsilon": self.amount * share}

    def size_of_noise(self, variance: float) -> float:
        """Return the approximate mean absolute noise of a count, in rows, given the variance of the noise."""
        return math.sqrt(2 * variance / math.pi) if self.zcdp else math.sqrt(variance / 2)

    def left(self, block: SpendBlock) -> Fraction:
        """Return what is left of the cap of a spend block, as a share of the whole budget."""
        left = block.left.rho if self.zcdp else block.left.epsilon
        return (left or Fraction(0)) / self.amount
