"""A budget in pure epsilon or in rho, and the mechanisms that spend a share of it."""

from __future__ import annotations

from fractions import Fraction

import attrs

from dpframework.facts.privacy_losses import root_below
from dpframework.mechanisms.base import Mechanism
from dpframework.mechanisms.gaussian import Gaussian
from dpframework.mechanisms.laplace import DiscreteLaplace
from dpframework.mechanisms.selection import Exponential, PermuteAndFlip


@attrs.frozen
class MechanismBudget:
    """An amount of pure epsilon or of rho, of which several releases spend shares.

    Attributes
    ----------
    amount
        The pure epsilon, or the rho.
    zcdp
        Whether the amount is a rho.
    """

    amount: Fraction
    zcdp: bool

    @property
    def selects(self) -> type[Exponential | PermuteAndFlip]:
        """The class of the mechanisms that select a candidate."""
        return Exponential if self.zcdp else PermuteAndFlip

    @property
    def counts(self) -> type[Gaussian | DiscreteLaplace]:
        """The class of the mechanisms that release a histogram."""
        return Gaussian if self.zcdp else DiscreteLaplace

    def epsilon_of_selection(self, share: Fraction) -> Fraction:
        """Return the epsilon of a selection that costs a share of the budget; in zCDP its rho is epsilon**2 / 8."""
        return root_below(8 * self.amount * share) if self.zcdp else self.amount * share

    def selector(self, share: Fraction) -> Mechanism:
        """Return the mechanism that selects with a share of the budget."""
        return self.selects(self.epsilon_of_selection(share))

    def counter(self, share: Fraction) -> Mechanism:
        """Return the mechanism that releases a histogram with a share of the budget."""
        return self.counts(self.amount * share)
