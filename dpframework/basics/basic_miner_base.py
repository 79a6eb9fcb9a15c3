"""The base class of the everyday miners, with their budget and the mechanisms that spend it.

The budget is a pure epsilon or a rho. An epsilon is spent by Laplace noise (on integers, for counts) and by
permute-and-flip. A rho is spent by Gaussian noise and by the exponential mechanism. At the same error, these two cost
less rho than Laplace noise and permute-and-flip. So if many releases share one delta, there is less noise with a
rho. Miners of several counts may use noise of another shape, which fits these counts better (see
`cell_count_miner_base` and `marginals_miner`).
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
from dpframework.run.miner_base_and_examples import Miner

EXAMPLE_DELTA = Fraction(1, 10**6)  # the delta of the examples in zCDP


@attrs.frozen
class BasicMiner(Miner):
    """The base class of the everyday miners. Each spends its whole budget, a pure epsilon or a rho of zCDP.

    Attributes
    ----------
    epsilon
        The budget as a pure epsilon. Give exactly one of `epsilon` and `rho`.
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
        """The mechanism that selects a candidate. An exponential mechanism with epsilon costs rho = epsilon**2 / 8."""
        return PermuteAndFlip(self._epsilon) if self.rho is None else Exponential(root_below(8 * self.rho))

    @property
    def _epsilon(self) -> Fraction:
        assert self.epsilon is not None  # callers have checked that rho is None
        return self.epsilon
