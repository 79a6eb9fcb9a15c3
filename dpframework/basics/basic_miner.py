"""The budget of an everyday miner in pure epsilon or rho, and the mechanisms that spend it.

An epsilon pays for Laplace noise (on integers, for counts) and permute-and-flip. A rho pays for Gaussian noise and the
exponential mechanism, whose rho is smallest for the same error. So a rho means less noise where many releases share
a delta. Miners of several counts may take noise of another shape that fits these better (see `crosstab_miners` and
`marginals_miner`).
"""

from __future__ import annotations

from fractions import Fraction

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import positive, positive_rho, root_below
from dpframework.mechanisms.base import Mechanism
from dpframework.mechanisms.gaussian import Gaussian
from dpframework.mechanisms.laplace import DiscreteLaplace, Laplace
from dpframework.mechanisms.selection import Exponential, PermuteAndFlip
from dpframework.run.miner import Miner

EXAMPLE_DELTA = Fraction(1, 10**6)  # the delta of the examples in zCDP


@attrs.frozen
class BasicMiner(Miner):
    """The base class of everyday miners. Each spends its whole budget, an epsilon or the rho of zCDP.

    Attributes
    ----------
    epsilon
        The budget as a pure epsilon. Give either this or `rho`.
    rho
        The budget in zCDP, for a study with a delta.
    """

    epsilon: Fraction | None = attrs.field(default=None, converter=attrs.converters.optional(positive), kw_only=True)
    rho: Fraction | None = attrs.field(default=None, converter=attrs.converters.optional(positive_rho), kw_only=True)

    def __attrs_post_init__(self) -> None:
        """Refuse two budgets or none."""
        if (self.epsilon is None) == (self.rho is None):
            raise InputError("give one budget: epsilon, or rho in a study with a delta")

    @property
    def counter(self) -> Mechanism:
        """The mechanism that releases counts."""
        return Gaussian(self.rho) if self.rho is not None else DiscreteLaplace(self._epsilon)

    @property
    def measurer(self) -> Mechanism:
        """The mechanism that releases real numbers."""
        return Gaussian(self.rho) if self.rho is not None else Laplace(self._epsilon)

    @property
    def selector(self) -> Mechanism:
        """The mechanism that selects. An exponential mechanism of epsilon costs a rho of epsilon**2 / 8."""
        return PermuteAndFlip(self._epsilon) if self.rho is None else Exponential(root_below(8 * self.rho))

    @property
    def _epsilon(self) -> Fraction:
        assert self.epsilon is not None  # one budget is given, and callers know that it is not rho
        return self.epsilon
