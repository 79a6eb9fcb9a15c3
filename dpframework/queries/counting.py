"""The counts of a query as a function of blocks that says which cross tables it counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, final

import attrs
from numpy.typing import NDArray

from dpframework.tables.blocks import Block

if TYPE_CHECKING:
    from dpframework.queries.base import Query
    from dpframework.tables.joint_counts import JointCounts


@final
@attrs.frozen(eq=False)
class Counting:
    """A query's counts with given inputs, as a function of blocks that says which cross tables it counts.

    Attributes
    ----------
    query
        The query.
    inputs
        What it is given at run time.
    """

    query: Query
    inputs: Mapping[str, Any] = attrs.field(factory=dict)

    def __call__(self, block: Block) -> NDArray[Any]:
        """Return the counts over one block."""
        return self.query.count(block, **self.inputs)

    def joint_counts(self) -> JointCounts | None:
        """Return the cross tables that the counts follow from, if the query names them."""
        return self.query.tables(**self.inputs)
