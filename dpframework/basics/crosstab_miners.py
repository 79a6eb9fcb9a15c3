"""Cross tables of two or three attributes, and the base class of miners that count the rows in each cell.

Each of these miners releases one query of disjoint cells, with integer noise on every cell. Its sensitivities are those
of `queries.histogram_sensitivities`. An added row raises one cell by 1. Independent Laplace noise fits such a change:
its density depends on the l1 norm alone. A replaced row lowers one cell and raises another. So where the number of rows
is public, noise that adds up to 0 fits the change (`dpframework.mechanisms.KNorm`). Its variance is a quarter of that
of Laplace noise for two cells, and about half for four. All else is post-processing. Margins are sums of cells, so they
agree with each other and cost nothing.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.basics.basic_miner import EXAMPLE_DELTA, BasicMiner
from dpframework.basics.capped_rows_miner_base import RowsMiner
from dpframework.facts.attributes import MOST_CODES, Attribute, Boolean, Categorical, Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.parameter_checks import list_of_names, named_once
from dpframework.facts.schema import Schema
from dpframework.mechanisms.base import Calibration, Mechanism
from dpframework.mechanisms.laplace import DiscreteLaplace
from dpframework.plan.nodes import Node, step
from dpframework.plan.planned_part import PlannedPart
from dpframework.queries.base import Query
from dpframework.queries.counts import JointHistogram
from dpframework.results.error_bounds import ErrorBound
from dpframework.results.frequencies import Frequencies
from dpframework.run.miner import Example
from dpframework.run.private_table import PrivateTable

_MOST_ATTRIBUTES = 3  # the most attributes of a cross table
_MOST_BALANCED = 100  # the most cells with noise that adds up to 0: for more it saves less than 3 %, and takes longer


def counting_mechanism(counter: Mechanism, query: Query, schema: Schema) -> Mechanism:
    """Return K-norm in place of Laplace noise for few cells and a public number of rows, or else `counter` itself.

    Few cells are at most `_MOST_BALANCED`.
    """
    if schema.rows is None or (query.answer_length or 0) > _MOST_BALANCED or not isinstance(counter, DiscreteLaplace):
        return counter
    from dpframework.mechanisms.knorm import KNorm  # not needed by most counts

    balanced = KNorm(counter.epsilon)
    return balanced if balanced.misfit(query.facts()) is None else counter


@attrs.frozen
class TableMiner(RowsMiner):
    """The base class of miners that release the number of rows in each cell of a table."""

    @abc.abstractmethod
    def cells(self, schema: Schema) -> tuple[Attribute, ...]:
        """Return the attributes whose codes make the cells."""

    def plan_rows(self, schema: Schema) -> Node:
        """Plan the one table of counts."""
        attributes = self.cells(schema)
        number = math.prod(attribute.size for attribute in attributes)
        if number > MOST_CODES:
            raise InputError(f"the table has {number} cells, more than {MOST_CODES}; take fewer attributes or bins")
        return self.plan_step(JointHistogram(attributes), schema)

    def plan_step(self, query: Query, schema: Schema, uses: Iterable[str] = ()) -> Node:
        """Plan the release of the counts by a query."""
        return step("counts", query, counting_mechanism(self.counter, query, schema), uses=uses)

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return the names of the attributes that are counted in other bins than the schema's."""
        return [own.name for own in self.cells(schema) if own != schema[own.name]]

    def bound_errors(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the error of each count, as a number of rows, and what happens to values without a cell."""
        calibration = part.calibration("counts")
        if calibration is None or part.schema is None:
            return part.bounds_of_steps()
        attributes = self.cells(part.schema)
        what = f"counts of {' by '.join(repr(one.name) for one in attributes)}"
        bound = part.counts_bound(what, calibration.preview.within, math.prod(one.size for one in attributes))
        return [attrs.evolve(bound, steps=("counts",), biases=[*_biases(attributes)])]

    def mine_rows(self, table: PrivateTable) -> Frequencies:
        """Release the counts."""
        return self.table_of(table.calibration("counts"), self.cells(table.schema), table.release("counts"))

    def table_of(self, calibration: Calibration, attributes: Iterable[Attribute], counts: Any) -> Frequencies:
        """Return the released counts of some attributes' cells as a table."""
        from dpframework.mechanisms.knorm import KNorm

        names, labels = zip(*((a.name, a.labels) for a in attributes), strict=True)
        # With a public number of rows, K-norm noise adds up to 0.
        exact = calibration.same_rows and isinstance(calibration.mechanism, KNorm)
        return Frequencies(names, labels, counts, calibration.variance, exact_total=exact)


def _biases(attributes: Iterable[Attribute]) -> Iterator[str]:
    """Yield the biases of counts, for example from rows that count in other cells than their own."""
    for one in attributes:
        if isinstance(one, Numeric):
            yield f"values of '{one.name}' beyond its bounds count in the first or last bin"
        if not one.missing:
            yield f"rows without '{one.name}' count as {one.labels[0]}"
    yield "counts are not cut off at 0; whoever does that makes small ones too large on average"


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return list_of_names(names) or ()


@final
@attrs.frozen
class CrosstabMiner(TableMiner):
    """The number of rows in each cell of two or three attributes' cross table. Margins are sums of cells.

    Parameters
    ----------
    attributes
        Two or three names; numeric attributes are cut as in the schema.
    epsilon, rho
        The budget: `epsilon`, or `rho` for zCDP in a study with a delta.

    Examples
    --------
    >>> CrosstabMiner(["sex", "income"], epsilon=0.1).attributes
    ('sex', 'income')
    """

    name = "crosstab"
    result = Frequencies
    attributes: tuple[str, ...] = attrs.field(converter=_names)

    def __attrs_post_init__(self) -> None:
        """Refuse names that are given twice, and too many or too few names."""
        BasicMiner.__attrs_post_init__(self)
        named_once("attributes", self.attributes)
        if not 2 <= len(self.attributes) <= _MOST_ATTRIBUTES:
            raise InputError(f"attributes has {len(self.attributes)} names; a cross table has two or three")

    def cells(self, schema: Schema) -> tuple[Attribute, ...]:
        """Return the attributes."""
        return tuple(schema[name] for name in self.attributes)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples with two attributes, with three, with a public number of rows, and in zCDP."""
        schema = Schema(
            [Boolean("ill", missing=True), Categorical("town", ["A", "B"]), Numeric("age", 0, 90, cuts=[40])]
        )
        counted = attrs.evolve(schema, rows=6)
        return {
            "two": Example(schema, cls(["ill", "town"], epsilon=1)),
            "three": Example(schema, cls(["town", "ill", "age"], epsilon=1)),
            "rows-public": Example(counted, cls(["town", "age"], epsilon=1)),
            "zcdp": Example(schema, cls(["ill", "town"], rho=Fraction(1, 8)), EXAMPLE_DELTA),
        }
