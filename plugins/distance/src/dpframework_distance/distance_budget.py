"""The budget of DP-DILCA in pure epsilon or rho, and the mechanisms that spend a share of it."""

from __future__ import annotations

from fractions import Fraction
from typing import final

import attrs

from dpframework.mechanisms import Exponential, Gaussian, Laplace, Mechanism, MechanismBudget, PermuteAndFlip


@final
@attrs.frozen
class DistanceBudget(MechanismBudget):
    """The budget of DP-DILCA.

    Attributes
    ----------
    exponential
        Whether selections are made by the exponential mechanism, the only one with a rho of its own.
    """

    exponential: bool

    @property
    def selects(self) -> type[Exponential | PermuteAndFlip]:
        """The class of mechanisms that select."""
        return Exponential if self.zcdp or self.exponential else PermuteAndFlip

    def measurer(self, share: Fraction) -> Mechanism:
        """Return the mechanism that releases real numbers with a share of the budget."""
        return Gaussian(self.amount * share) if self.zcdp else Laplace(self.amount * share)
