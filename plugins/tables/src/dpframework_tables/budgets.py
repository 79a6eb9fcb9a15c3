"""The budget of a synthetic table in pure epsilon or rho, and the mechanisms that spend a share of it."""

from __future__ import annotations

from fractions import Fraction
from typing import final

import attrs

from dpframework.facts import root_below
from dpframework.mechanisms import DiscreteLaplace, Exponential, Gaussian, Mechanism, PermuteAndFlip


@final
@attrs.frozen
class TableBudget:
    """The budget of a run.

    Attributes
    ----------
    amount
        Epsilon, or rho.
    zcdp
        Whether it is rho.
    """

    amount: Fraction
    zcdp: bool

    def selector(self, share: Fraction) -> Mechanism:
        """Return the mechanism that selects at that share of the budget."""
        if self.zcdp:  # a selection of epsilon costs epsilon**2 / 8
            return Exponential(root_below(8 * self.amount * share))
        return PermuteAndFlip(self.amount * share)

    def counter(self, share: Fraction) -> Mechanism:
        """Return the mechanism that releases a marginal."""
        return Gaussian(self.amount * share) if self.zcdp else DiscreteLaplace(self.amount * share)

    def variance(self, share: Fraction) -> float:
        """Return about the variance of a count of a marginal with that share, if one row is added or removed."""
        amount = float(self.amount * share)
        return 1 / (2 * amount) if self.zcdp else 2 / amount**2
