"""The budget of DP-DILCA in pure epsilon or rho, and the mechanisms that spend a share of it."""

from __future__ import annotations

from fractions import Fraction
from typing import final

import attrs

from dpframework.facts import root_below
from dpframework.mechanisms import DiscreteLaplace, Exponential, Gaussian, Laplace, Mechanism, PermuteAndFlip


@final
@attrs.frozen
class DistanceBudget:
    """The budget of a run.

    Attributes
    ----------
    amount
        Epsilon, or rho.
    zcdp
        Whether it is rho.
    exponential
        Whether selections are made by the exponential mechanism, the only one with a rho of its own.
    """

    amount: Fraction
    zcdp: bool
    exponential: bool

    def selector(self, share: Fraction) -> Mechanism:
        """Return the mechanism that selects a context or a pair with a share of the budget."""
        if self.zcdp:  # a selection of epsilon costs epsilon**2 / 8
            return Exponential(root_below(8 * self.amount * share))
        return Exponential(self.amount * share) if self.exponential else PermuteAndFlip(self.amount * share)

    def counter(self, share: Fraction) -> Mechanism:
        """Return the mechanism that releases a histogram with a share of the budget."""
        return Gaussian(self.amount * share) if self.zcdp else DiscreteLaplace(self.amount * share)

    def measurer(self, share: Fraction) -> Mechanism:
        """Return the mechanism that releases real numbers with a share of the budget."""
        return Gaussian(self.amount * share) if self.zcdp else Laplace(self.amount * share)
