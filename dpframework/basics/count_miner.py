"""The miner of counts, with integer noise: of all rows, of the rows for which a description holds, or of each group."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import final

import attrs

from dpframework.basics.basic_miner_base import EXAMPLE_DELTA
from dpframework.basics.cell_count_mechanism import counting_mechanism
from dpframework.basics.filter_and_group_miner_base import GroupedMiner, as_description, values_compared
from dpframework.facts.attributes import Boolean, Numeric
from dpframework.facts.logical_descriptions_of_rows import Description
from dpframework.facts.schema import Schema
from dpframework.plan.error_bounds_by_result import PlannedPart
from dpframework.plan.nodes import Node, step
from dpframework.queries.base import Query
from dpframework.queries.counts import Count, JointHistogram
from dpframework.queries.group_queries import GroupCounts
from dpframework.results.error_bounds import BoundKind, ErrorBound
from dpframework.results.estimates import Estimate
from dpframework.results.groups import Groups
from dpframework.results.noisy_count_with_interval import CONFIDENCE, Noisy
from dpframework.run.miner_base_and_examples import Example
from dpframework.run.private_table import PrivateTable


@final
@attrs.frozen
class CountMiner(GroupedMiner):
    """The number of rows, or of rows for which a public description holds, in the table or in each group.

    Groups are disjoint, so under add-or-remove-one each count has the noise of a single count. Under replace-one a row
    may leave one group and enter another, so the noise of groups is larger. The number of all rows is public under
    replace-one, so give a description or groups there.

    Parameters
    ----------
    epsilon, rho
        The budget: `epsilon`, or `rho` for zCDP in a study with a delta.
    where
        A description, or the output of `Description.to_dict`. In a study file, write `where = { equals = ["sex",
        "Male"] }` or `where = { below = ["age", 30] }`. Join several tests by `and`, `or` and `not`. None counts all
        rows.
    by
        The name of an attribute, or a list of names. There is one group for each combination of their labels.

    Examples
    --------
    >>> CountMiner(where={"equals": ["sex", "Male"]}, epsilon=1).where
    Equals(attribute='sex', value='Male')
    """

    name = "count"
    result = Estimate
    where: Description | None = attrs.field(default=None, converter=as_description)

    def plan_rows(self, schema: Schema) -> Node:
        """Plan the one count, or the counts of all groups as one release."""
        groups = self.groups(schema)
        query: Query = Count(self.where)
        if groups and self.where is None:
            query = JointHistogram(groups)
        elif groups:
            query = GroupCounts(groups, where=self.where)
        return step("count", query, counting_mechanism(self.counter, query, schema) if groups else self.counter)

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return the names of the attributes that `where` compares with a number that is not a public cut."""
        return values_compared(schema, self.where)

    def bound_errors(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the error bound, in rows, of the count or of the counts of all groups."""
        calibration = part.calibration("count")
        if calibration is None:
            return part.bounds_of_steps()
        what = ("number of rows" if self.where is None else f"number of rows with {self.where}") + self.group_text
        if self.by:
            return [attrs.evolve(part.bound_of(what, calibration), steps=("count",))]
        number = part.rows_bound(what, calibration.preview.within, BoundKind.NUMBER)
        bound = attrs.evolve(number, steps=("count",))
        rows = part.size.largest
        return [bound if rows is None else attrs.evolve(bound, likely=rows, likely_text="the whole table")]

    def mine_rows(self, table: PrivateTable) -> Estimate | Groups:
        """Release the count, or the counts of all groups."""
        released, variance = table.release("count"), table.calibration("count").variance
        what = "rows" if self.where is None else f"rows with {self.where}"
        if not self.by:
            return count_estimate(what, released, variance)
        return self.table_of(table.schema, what, [whole_estimate(what, one, variance) for one in released.ravel()])

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples with and without a description, with a public number of rows, with groups, and in zCDP."""
        from dpframework.basics.row_cap_selection_miner import released_rows_example

        schema = Schema([Boolean("ill"), Numeric("age", 0, 90, cuts=[40])])
        young = {"and": [{"equals": ["ill", "true"]}, {"below": ["age", 40]}]}
        return {
            "rows": Example(schema, cls(epsilon=1), loose="replacing a row does not change the number of rows"),
            "described": Example(schema, cls(young, epsilon=1)),
            "rows-public": Example(attrs.evolve(schema, rows=6), cls(young, epsilon=1)),
            "groups": Example(schema, cls({"below": ["age", 40]}, by="ill", epsilon=1)),
            "released-rows": released_rows_example(schema, cls(young, rows_per_unit="most", epsilon=1)),
            "zcdp": Example(schema, cls(young, rho=Fraction(1, 8)), EXAMPLE_DELTA),
        }


def count_estimate(what: str, released: float, variance: float, level: float = CONFIDENCE) -> Estimate:
    """Return a released count with its confidence interval."""
    count = Noisy(released, variance)
    return Estimate(what, count.value, *count.interval(level))


def whole_estimate(what: str, released: float, variance: float, level: float = CONFIDENCE) -> Estimate:
    """Return a released count with an interval whose ends are whole numbers, as the exact count is a whole number."""
    found = count_estimate(what, released, variance, level)
    return attrs.evolve(found, low=math.ceil(found.low), high=math.floor(found.high))
