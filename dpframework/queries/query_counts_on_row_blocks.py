"""The counts of a query, as a function of blocks that also names the cross tables from which the counts follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, final

import attrs
from numpy.typing import NDArray

from dpframework.tables.encoded_row_blocks import Block

if TYPE_CHECKING:
    from dpframework.queries.base import Query
    from dpframework.tables.crosstab_expressions import JointCounts


@final
@attrs.frozen(eq=False)
class Counting:
    """A query's counts for given inputs, as a function of blocks that also names the cross tables.

    Attributes
    ----------
    query
        The query.
    inputs
        The query's public inputs at run time.
    """

    query: Query
    inputs: Mapping[str, Any] = attrs.field(factory=dict)

    def __call__(self, block: Block) -> NDArray[Any]:
        """Return the counts over one block."""
        return self.query.count(block, **self.inputs)

    def joint_counts(self) -> JointCounts | None:
        """Return the cross tables from which the counts follow, None if the query names none."""
        return self.query.tables(**self.inputs)
