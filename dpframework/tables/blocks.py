"""A block: a block of encoded rows that counting kernels run on, on the private side only."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.schema import Attribute, Schema

Codes = NDArray[np.unsignedinteger]


@attrs.frozen(eq=False, repr=False)
class Block:
    """Some rows of a private table, as integer codes on the schema's grid.

    Attributes
    ----------
    schema
        The schema of the codes, with derived attributes appended.
    matrix
        Codes of the schema's own attributes, shape (attributes, rows of the block), C-contiguous.
    raw
        Raw float64 values of numeric attributes, one array of the block's length each.
    index
        int32 positions, within the block, of the rows that belong to this part.
    derived
        Codes of derived attributes, one array of the block's length each.
    """

    schema: Schema
    matrix: Codes
    raw: Mapping[str, NDArray[np.float64]]
    index: NDArray[np.int32]
    derived: Mapping[str, Codes] = attrs.field(factory=dict)

    @property
    def rows(self) -> int:
        """The number of this part's rows (private)."""
        return len(self.index)

    def codes(self, name: str) -> Codes:
        """Return the codes of an attribute for this part's rows, shape (rows,)."""
        column = self.derived[name] if name in self.derived else self.matrix[self.schema.index(name)]
        return column[self.index]

    def values(self, name: str) -> NDArray[np.float64]:
        """Return the raw values of a numeric attribute for this part's rows, shape (rows,)."""
        if name not in self.raw:
            raise InputError(f"attribute '{name}' has no raw values: only numeric attributes do")
        return self.raw[name][self.index]

    def at(self, index: NDArray[np.int32]) -> Block:
        """Return the part of this block at some positions of its block."""
        return attrs.evolve(self, index=index)

    def with_derived(self, attribute: Attribute, codes: NDArray[np.integer]) -> Block:
        """Return this block with one more attribute, whose `codes` are given for this part's rows."""
        column = np.zeros(self.matrix.shape[1], dtype=np.uint32)
        column[self.index] = codes
        schema = attrs.evolve(self.schema, attributes=(*self.schema.attributes, attribute))
        return attrs.evolve(self, schema=schema, derived={**self.derived, attribute.name: column})

    def __repr__(self) -> str:
        """Show no row and no count."""
        return f"Block({len(self.schema)} attributes; rows are private)"
