"""The two releases of a round: as steps of the plan, or from a spend block at a cost of their own."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.mechanisms import Calibration
from dpframework_tables.merging import Merging
from dpframework_tables.table_budget import CHOOSE, MEASURE, TableBudget

if TYPE_CHECKING:
    from dpframework.run import PrivateTable, SpendBlock

BLOCK = "rounds"


@final
@attrs.frozen
class InPlan:
    """A round whose releases are steps of the plan.

    Attributes
    ----------
    table
        The table that makes the releases.
    merging
        The groups of codes. Marginals of several attributes count groups instead of codes.
    """

    table: PrivateTable
    merging: Merging

    def choose(self, **inputs: Any) -> Sequence[str]:
        """Select a marginal, and return the names of its attributes."""
        found: Sequence[str] = self.table.release(CHOOSE, groups=self.merging.flat, **inputs)
        return found

    def measure(self, names: Sequence[str]) -> Any:
        """Release the counts of a marginal as a flat array."""
        return self.table.release(MEASURE, groups=self.merging.flat, marginal=names)

    @property
    def calibration(self) -> Calibration:
        """The calibration of the noise in a marginal's counts."""
        return self.table.calibration(MEASURE)


@final
@attrs.frozen
class InBlock:
    """A round whose releases are paid for by a spend block.

    Attributes
    ----------
    block
        The spend block that makes the releases.
    budget
        The budget of the miner. Costs are in its notion of loss.
    choosing, measuring
        The costs of the selection and of the measurement, as shares of the budget.
    merging
        The groups of codes. Marginals of several attributes count groups instead of codes.
    """

    block: SpendBlock
    budget: TableBudget
    choosing: Fraction
    measuring: Fraction
    merging: Merging

    def choose(self, **inputs: Any) -> Sequence[str]:
        """Select a marginal, and return the names of its attributes."""
        found: Sequence[str] = self.block.release(
            CHOOSE, epsilon=self.budget.epsilon_of_selection(self.choosing), groups=self.merging.flat, **inputs
        )
        return found

    def measure(self, names: Sequence[str]) -> Any:
        """Release the counts of a marginal as a flat array."""
        return self.block.release(MEASURE, **self._cost, groups=self.merging.flat, marginal=names)

    @property
    def calibration(self) -> Calibration:
        """The calibration of the noise in a marginal's counts."""
        return self.block.calibration(MEASURE, **self._cost)

    @property
    def _cost(self) -> dict[str, Fraction]:
        return self.budget.cost(self.measuring)
