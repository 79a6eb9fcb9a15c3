"""The base class of miners that count rows in boxes several times, and choose the next boxes by earlier counts.

A box is a range of bins of each of some numeric attributes. One release of counts is called a look. All looks belong to
one spend block: a node of the plan in which the miner chooses releases freely, up to a cap on their total cost. The cap
is the miner's budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import final

import attrs

from dpframework.basics.basic_miner_base import BasicMiner
from dpframework.facts.attributes import Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.schema import Schema
from dpframework.plan.nodes import Node
from dpframework.plan.spend_block_node import kind, spend
from dpframework.queries.boxes import Box, BoxCounts
from dpframework.run.private_table import PrivateTable
from dpframework.run.spend_block_filter import SpendBlock

BLOCK, KIND = "search", "counts"  # the names of the spend block and of its one kind of release


@attrs.frozen
class SearchMiner(BasicMiner):
    """The base class of miners that search by counts of boxes, and then count the boxes they found more exactly."""

    def plan_of(self, numeric: Sequence[Numeric]) -> Node:
        """Plan the spend block for counts of boxes of these attributes. Its cap is the whole budget."""
        counts = kind(KIND, BoxCounts(numeric), type(self.counter))
        return spend(BLOCK, counts, epsilon=self.epsilon, rho=self.rho)

    def looks(self, table: PrivateTable) -> Looks:
        """Open the planned spend block."""
        return Looks(table.spend(BLOCK), "epsilon" if self.rho is None else "rho")

    def numeric(self, schema: Schema, name: str) -> Numeric:
        """Return the attribute with this name. It must be numeric.

        Raises
        ------
        InputError
            If the attribute is not numeric.
        """
        attribute = schema[name]
        if not isinstance(attribute, Numeric):
            raise InputError(f"miner '{self.name}' searches numeric attributes; '{name}' is not numeric")
        return attribute


@final
@attrs.frozen
class Looks:
    """An open spend block that releases counts of boxes.

    Attributes
    ----------
    block
        The block that releases the counts.
    amount
        The unit of costs, "epsilon" or "rho".
    """

    block: SpendBlock
    amount: str

    @property
    def left(self) -> Fraction:
        """The part of the block's cap that is not spent yet."""
        left: Fraction = getattr(self.block.left, self.amount)
        return left

    def counts(self, boxes: Sequence[Box], cost: Fraction) -> list[float]:
        """Release the counts of boxes at a given cost. The boxes must not overlap."""
        released = self.block.release(KIND, **{self.amount: cost}, boxes=tuple(boxes))
        return [float(count) for count in released]

    def variance(self, cost: Fraction) -> float:
        """Return the variance of the noise of each count in a release at a given cost."""
        return self.block.calibration(KIND, **{self.amount: cost}).variance
