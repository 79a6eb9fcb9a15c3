"""Blocks of encoded rows, which counting kernels run on: on the private side only."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.errors import InputError
from dpframework.facts.schema import Schema

Codes = NDArray[np.unsignedinteger]


@attrs.frozen(eq=False, repr=False)
class Block:
    """Some rows of a private table, as integer codes on the schema's grid.

    A part of a block is a block too: it shares the arrays, and `index` says which of their rows belong to it.

    Attributes
    ----------
    schema
        The schema of the codes, with derived attributes appended.
    matrix
        Codes of the schema's own attributes, shape (attributes, rows of the arrays), C-contiguous.
    raw
        Raw float64 values of numeric attributes, one array of that length each.
    index
        int32 positions, in the arrays, of the rows that belong to this block.
    derived
        Codes of derived attributes, one array of that length each.
    unit_codes
        The number of each row's unit, an array of that length; None unless a plan samples units of several rows.
    """

    schema: Schema
    matrix: Codes
    raw: Mapping[str, NDArray[np.float64]]
    index: NDArray[np.int32]
    derived: Mapping[str, Codes] = attrs.field(factory=dict)
    unit_codes: NDArray[np.uint32] | None = None

    @property
    def rows(self) -> int:
        """The number of this block's rows (private)."""
        return len(self.index)

    def codes(self, name: str) -> Codes:
        """Return the codes of an attribute for this block's rows, shape (rows,)."""
        column = self.derived[name] if name in self.derived else self.matrix[self.schema.index(name)]
        return column[self.index]

    def values(self, name: str) -> NDArray[np.float64]:
        """Return the raw values of a numeric attribute for this block's rows, shape (rows,)."""
        if name not in self.raw:
            raise InputError(
                f"attribute '{name}' has no raw values: only numeric attributes do, and of these those that the miner "
                "names in values_read, and that the table was read with"
            )
        return self.raw[name][self.index]

    def at(self, index: NDArray[np.int32]) -> Block:
        """Return the part of this block whose rows are at some positions of the arrays."""
        return attrs.evolve(self, index=index)

    def with_derived(self, attribute: Attribute, codes: NDArray[np.integer]) -> Block:
        """Return this block with one more attribute, whose `codes` are given for this block's rows."""
        column = np.zeros(self.matrix.shape[1], dtype=np.uint32)
        column[self.index] = codes
        schema = attrs.evolve(self.schema, attributes=(*self.schema.attributes, attribute))
        return attrs.evolve(self, schema=schema, derived={**self.derived, attribute.name: column})

    def __repr__(self) -> str:
        """Show no row and no count."""
        return f"Block({len(self.schema)} attributes; rows are private)"
