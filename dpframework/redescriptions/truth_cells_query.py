"""The number of rows for each combination of truth values of released descriptions of two views."""

from __future__ import annotations

from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.logical_descriptions_of_rows import Cases
from dpframework.queries.counts import CellCounts
from dpframework.queries.runtime_attribute_queries import ReadsAmong
from dpframework.tables.crosstab_expressions import Crosstab, JointCounts
from dpframework.tables.encoded_row_blocks import Block
from dpframework.tables.fast_code_counts import tally


@final
@attrs.frozen
class TruthCells(ReadsAmong, CellCounts):
    """The number of rows for each combination of truth values of left and right descriptions.

    The descriptions are given at run time, at most as many of each view as planned. Whatever they are, a row is in
    exactly one cell.

    Attributes
    ----------
    most
        The most descriptions of each view.
    """

    name = "truth-cells"
    most: int

    @property
    def text(self) -> str:
        """The counts in words."""
        return f"rows by which of {self.most} released pairs of tests hold"

    @property
    def answer_length(self) -> int:
        """The largest number of cells."""
        return int(4**self.most)

    def count(self, block: Block, **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows, shape (cells of the left view, cells of the right view)."""
        left, right = inputs["left"], inputs["right"]
        number, kind = 2 ** (len(left) + len(right)), np.min_scalar_type(2 ** (len(left) + len(right)) - 1)

        def cells(tile: Block) -> NDArray[Any]:
            cell = np.zeros(tile.rows, dtype=kind)
            for side in (left, right):
                cell <<= kind.type(len(side))
                for k, description in enumerate(side):
                    cell |= description.holds(tile).astype(kind) << kind.type(k)
            return cell

        return tally(map(cells, block.tiles()), number).reshape(-1, 2 ** len(right))

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the cross table of the descriptions.

        The last description of each view comes first, since it is the highest bit of a cell's number.
        """
        left, right = inputs["left"], inputs["right"]
        table = Crosstab([Cases([one]) for side in (left, right) for one in reversed(side)])
        shape = 2 ** len(left), 2 ** len(right)
        # In the first cell of a column its description holds, and the bit is 1. So cells are in reverse order.
        return JointCounts([table], lambda counts: np.flip(counts[0]).reshape(shape))
