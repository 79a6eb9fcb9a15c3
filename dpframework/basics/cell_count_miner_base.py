"""The base class of miners that count rows in disjoint cells.

Each of these miners releases one query: counts in disjoint cells, with integer noise on every cell (see
`dpframework.basics.cell_count_mechanism`).
"""

from __future__ import annotations

import abc
import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import attrs

from dpframework.basics.cell_count_mechanism import counting_mechanism
from dpframework.basics.released_row_cap_miner_base import RowsMiner
from dpframework.facts.attributes import MOST_CODES, Attribute, Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.schema import Schema
from dpframework.mechanisms.base import Calibration
from dpframework.plan.error_bounds_by_result import PlannedPart
from dpframework.plan.nodes import Node, step
from dpframework.queries.base import Query
from dpframework.queries.counts import JointHistogram
from dpframework.results.error_bounds import UNCLIPPED, ErrorBound
from dpframework.results.frequencies import Frequencies
from dpframework.run.private_table import PrivateTable


@attrs.frozen
class TableMiner(RowsMiner):
    """The base class of miners that release the number of rows in each cell of a contingency table."""

    @abc.abstractmethod
    def cells(self, schema: Schema) -> tuple[Attribute, ...]:
        """Return the attributes whose codes make the cells."""

    def plan_rows(self, schema: Schema) -> Node:
        """Plan one release of all counts."""
        attributes = self.cells(schema)
        number = math.prod(attribute.size for attribute in attributes)
        if number > MOST_CODES:
            raise InputError(f"the table has {number} cells, more than {MOST_CODES}; take fewer attributes or bins")
        return self.plan_step(JointHistogram(attributes), schema)

    def plan_step(self, query: Query, schema: Schema, uses: Iterable[str] = ()) -> Node:
        """Plan the release of the counts by a query."""
        return step("counts", query, counting_mechanism(self.counter, query, schema), uses=uses)

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return the names of the attributes whose raw values are read, since their bins are not the schema's bins."""
        return [own.name for own in self.cells(schema) if own != schema[own.name]]

    def bound_errors(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the error bound of each count, in rows, with the biases of the counts."""
        calibration = part.calibration("counts")
        if calibration is None or part.schema is None:
            return part.bounds_of_steps()
        attributes = self.cells(part.schema)
        what = f"counts of {' by '.join(repr(one.name) for one in attributes)}"
        bound = part.counts_bound(what, calibration.preview.within, math.prod(one.size for one in attributes))
        biases = []
        for one in attributes:
            if isinstance(one, Numeric):
                biases.append(f"values of '{one.name}' beyond its bounds count in the first or last bin")
            if not one.missing:
                biases.append(f"rows without '{one.name}' count as {one.labels[0]}")
        return [attrs.evolve(bound, steps=("counts",), biases=[*biases, UNCLIPPED])]

    def mine_rows(self, table: PrivateTable) -> Frequencies:
        """Release the counts."""
        return self.table_of(table.calibration("counts"), self.cells(table.schema), table.release("counts"))

    def table_of(self, calibration: Calibration, attributes: Iterable[Attribute], counts: Any) -> Frequencies:
        """Return the released counts of some attributes' cells as a table."""
        from dpframework.mechanisms.knorm import KNorm

        names, labels = zip(*((a.name, a.labels) for a in attributes), strict=True)
        # If the number of rows is public, K-norm noise adds up to 0, so the total is exact.
        exact = calibration.same_rows and isinstance(calibration.mechanism, KNorm)
        return Frequencies(names, labels, counts, calibration.variance, exact_total=exact)
