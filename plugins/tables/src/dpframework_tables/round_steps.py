"""How a round asks for its two releases: as the plan holds them, or from a block at a cost of its own."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.mechanisms import Calibration
from dpframework_tables.budgets import CHOOSE, MEASURE, TableBudget
from dpframework_tables.merging import Merging

if TYPE_CHECKING:
    from dpframework.run import PrivateTable, SpendBlock

BLOCK = "rounds"


@final
@attrs.frozen
class InPlan:
    """The releases of a round as they are planned.

    Attributes
    ----------
    table
        Makes them.
    merging
        The groups of codes that marginals are of.
    """

    table: PrivateTable
    merging: Merging

    def choose(self, **inputs: Any) -> Sequence[str]:
        """Select a marginal, and return its attributes."""
        found: Sequence[str] = self.table.release(CHOOSE, groups=self.merging.flat, **inputs)
        return found

    def measure(self, names: Sequence[str]) -> Any:
        """Release a marginal."""
        return self.table.release(MEASURE, groups=self.merging.flat, marginal=names)

    @property
    def calibration(self) -> Calibration:
        """The noise of a marginal."""
        return self.table.calibration(MEASURE)


@final
@attrs.frozen
class InBlock:
    """The releases of a round from a block, which pays for them.

    Attributes
    ----------
    block
        Makes them.
    budget
        The miner's, in whose notion of loss costs are.
    choosing, measuring
        What the two may cost, as shares of the budget.
    merging
        The groups of codes that marginals are of.
    """

    block: SpendBlock
    budget: TableBudget
    choosing: Fraction
    measuring: Fraction
    merging: Merging

    def choose(self, **inputs: Any) -> Sequence[str]:
        """Select a marginal, and return its attributes."""
        found: Sequence[str] = self.block.release(
            CHOOSE,
            epsilon=self.budget.epsilon_of_selection(self.choosing),
            groups=self.merging.flat,
            **inputs,
        )
        return found

    def measure(self, names: Sequence[str]) -> Any:
        """Release a marginal."""
        return self.block.release(MEASURE, **self._cost, groups=self.merging.flat, marginal=names)

    @property
    def calibration(self) -> Calibration:
        """The noise of a marginal."""
        return self.block.calibration(MEASURE, **self._cost)

    @property
    def _cost(self) -> dict[str, Fraction]:
        return self.budget.cost(self.measuring)
