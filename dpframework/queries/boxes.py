"""Counts of rows in boxes that are chosen at run time. A box is a range of values for each of several attributes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, as_attributes
from dpframework.facts.errors import InputError
from dpframework.queries.counts import CellCounts
from dpframework.tables.crosstab_expressions import Crosstab, JointCounts, codes_in_bins
from dpframework.tables.encoded_row_blocks import TILE, Block
from dpframework.tables.fast_code_counts import joint_codes, tally

#: A box: for each attribute the first code inside the box, and the first code after it.
Box: TypeAlias = "tuple[tuple[int, int], ...]"


@final
@attrs.frozen
class BoxCounts(CellCounts):
    """The number of rows in each of several boxes, which a miner chooses from its earlier releases.

    The boxes are an input, `boxes`, and must not overlap, so that a row lies in at most one. So for any boxes, adding a
    row raises at most one count, by 1, and replacing a row lowers at most one count and raises at most one (see
    `histogram_sensitivities`).

    Attributes
    ----------
    of
        The attributes whose ranges define the boxes.

    Examples
    --------
    >>> from dpframework.facts.attributes import Numeric
    >>> BoxCounts([Numeric("age", 0, 90, bins=9)]).text
    'counts of rows in boxes of age'
    """

    name = "box-counts"
    of: tuple[Attribute, ...] = attrs.field(converter=as_attributes, validator=attrs.validators.min_len(1))

    @property
    def text(self) -> str:
        """Name the attributes."""
        return f"counts of rows in boxes of {', '.join(a.name for a in self.of)}"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes whose values decide which box a row lies in."""
        return tuple(a.name for a in self.of)

    def count(self, block: Block, *, boxes: Sequence[Box] = (), **inputs: Any) -> NDArray[np.int64]:
        """Count this block's rows, shape (boxes,).

        Raises
        ------
        InputError
            If boxes overlap, are empty or reach beyond an attribute's values.
        """
        numbers = self._numbers(boxes).ravel()
        shape = [a.size for a in self.of]
        tiles = block.tiles(max(TILE, 4 * len(numbers)))
        cells = (joint_codes((codes_in_bins(tile, a) for a in self.of), shape) for tile in tiles)
        return tally((numbers[own] for own in cells), len(boxes) + 1)[:-1]

    def tables(self, *, boxes: Sequence[Box] = (), **inputs: Any) -> JointCounts:
        """Return the attributes' cross table. The count of a box is a sum over its cells."""
        numbers = self._numbers(boxes).ravel()

        def assemble(counts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
            found = np.zeros(len(boxes) + 1, dtype=np.int64)
            np.add.at(found, numbers, counts[0].ravel())
            return found[:-1]

        return JointCounts([Crosstab(self.of)], assemble)

    def _numbers(self, boxes: Sequence[Box]) -> NDArray[np.int64]:
        """Return, for each cell of the cross table, the position of its box, or `len(boxes)` if it is in no box."""
        shape = tuple(a.size for a in self.of)
        numbers = np.full(shape, len(boxes), dtype=np.int64)
        inside = 0
        for number, box in enumerate(boxes):
            if len(box) != len(shape) or not all(0 <= a < b <= size for (a, b), size in zip(box, shape, strict=True)):
                raise InputError(
                    f"the box {box} is not a range of values for each of {', '.join(self.attributes)}; give the first "
                    "code in the range and the first code after it for each"
                )
            numbers[tuple(slice(a, b) for a, b in box)] = number
            inside += math.prod(b - a for a, b in box)
        if inside != int(np.count_nonzero(numbers < len(boxes))):
            raise InputError("boxes overlap; choose boxes so that each row lies in at most one")
        return numbers
