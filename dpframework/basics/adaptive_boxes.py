"""The common part of miners that count boxes in a block, repeatedly and with parameters of their choice."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import final

import attrs

from dpframework.basics.budgets import BasicMiner
from dpframework.facts.attributes import Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.schema import Schema
from dpframework.plan.nodes import Node
from dpframework.plan.spending import kind, spend
from dpframework.queries.boxes import Box, BoxCounts
from dpframework.run.private_table import PrivateTable
from dpframework.run.spend_block import SpendBlock

BLOCK, KIND = "search", "counts"


@attrs.frozen
class SearchMiner(BasicMiner):
    """A miner that counts boxes until the counts say enough, and spends the rest of its budget on what it found."""

    def plan_of(self, numeric: Sequence[Numeric]) -> Node:
        """Plan the block of the counts."""
        counts = kind(KIND, BoxCounts(numeric), type(self.counter))
        return spend(BLOCK, counts, epsilon=self.epsilon, rho=self.rho)

    def looks(self, table: PrivateTable) -> Looks:
        """Open the block."""
        return Looks(table.spend(BLOCK), "epsilon" if self.rho is None else "rho")

    def numeric(self, schema: Schema, name: str) -> Numeric:
        """Return a numeric attribute of a schema.

        Raises
        ------
        InputError
            If the attribute is of another kind.
        """
        attribute = schema[name]
        if not isinstance(attribute, Numeric):
            raise InputError(f"miner '{self.name}' searches numeric attributes; '{name}' is none")
        return attribute


@final
@attrs.frozen
class Looks:
    """A block of counts of boxes, with costs in one notion of loss.

    Attributes
    ----------
    block
        The block that releases the counts.
    amount
        The notion of loss that costs are in, "epsilon" or "rho".
    """

    block: SpendBlock
    amount: str

    @property
    def left(self) -> Fraction:
        """What is left of the block's cap."""
        left: Fraction = getattr(self.block.left, self.amount)
        return left

    def counts(self, boxes: Sequence[Box], cost: Fraction) -> list[float]:
        """Release the counts of boxes that do not overlap, at a given cost."""
        released = self.block.release(KIND, **{self.amount: cost}, boxes=tuple(boxes))
        return [float(count) for count in released]

    def variance(self, cost: Fraction) -> float:
        """Return the variance of each count that is released at a cost."""
        return self.block.calibration(KIND, **{self.amount: cost}).variance
