"""The miners of shares of rows and of the most frequent values. Each makes one release of counts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import final

import attrs
import numpy as np

from dpframework.basics.basic_miner_base import EXAMPLE_DELTA
from dpframework.basics.cell_count_mechanism import counting_mechanism
from dpframework.basics.count_miner import whole_estimate
from dpframework.basics.filter_and_group_miner_base import (
    GroupedMiner,
    as_description,
    require_description,
    values_compared,
)
from dpframework.basics.mean_and_variance_miners import share_interval
from dpframework.basics.share_errors import share_error
from dpframework.facts.attributes import MISSING_LABEL, MOST_CODES, Attribute, Boolean, Categorical
from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import Description
from dpframework.facts.open_attribute import Open
from dpframework.facts.parameter_checks import whole_number
from dpframework.facts.schema import Schema
from dpframework.plan.error_bounds_by_result import PlannedPart
from dpframework.plan.nodes import Node, step
from dpframework.queries.base import Query
from dpframework.queries.counts import JointHistogram
from dpframework.queries.group_queries import GroupCounts
from dpframework.results.error_bounds import ErrorBound
from dpframework.results.estimates import Estimate
from dpframework.results.groups import Groups
from dpframework.results.noisy_count_with_interval import CONFIDENCE, Noisy
from dpframework.run.miner_base_and_examples import Example
from dpframework.run.private_table import PrivateTable


def _of(given: Description | Mapping[str, object]) -> Description:
    found = as_description(given, "of")
    if found is None:
        raise InputError('of is missing; a description is needed, such as { equals = ["ill", "true"] }')
    return found


@final
@attrs.frozen
class RatioMiner(GroupedMiner):
    """The share of rows for which a description holds, in the table, among some rows, or in each group.

    Two counts are released (`queries.GroupCounts`): of the rows for which `of` holds, and of the rows for which its
    negation holds. Only rows for which `where` holds are counted. The two sets of rows are disjoint, so under
    add-or-remove-one each count has the noise of a single count. A count of all rows and a count with `of`, each
    released at half of the budget, would each have four times this variance (with a rho, twice).

    The share is the first count divided by the sum of both, with Fieller's interval as for `MeanMiner`. It is 1/2 if
    both noisy counts are at most 0. If a missing value leaves open whether `of` holds for a row, the row is in neither
    count.

    Parameters
    ----------
    of
        The description whose share is computed, in one of the forms that `where` of `CountMiner` accepts.
    where, by
        The rows among which the share is computed, and the groups, as for `CountMiner`.
    epsilon, rho
        The budget: `epsilon`, or `rho` for zCDP in a study with a delta.

    Examples
    --------
    >>> str(RatioMiner({"equals": ["ill", "true"]}, by="town", epsilon=1).of)
    'ill = true'
    """

    name = "ratio"
    result = Estimate
    of: Description = attrs.field(converter=_of)

    def plan_rows(self, schema: Schema) -> Node:
        """Plan one release with both counts of all groups."""
        require_description(schema, self.of)
        return step("counts", GroupCounts(self.groups(schema), where=self.where, of=self.of), self.counter)

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return the names of the attributes that `where` or `of` compares with a number that is not a public cut."""
        return values_compared(schema, self.where, self.of)

    @property
    def _what(self) -> str:
        return f"share with {self.of}{self.where_text}"

    def bound_errors(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the error bound for the worst table of the expected size (see `share_errors`)."""
        calibration = part.calibration("counts")
        if calibration is None:
            return part.bounds_of_steps()
        law, rows = calibration.noise_law, self.expected_rows(part)
        return [
            ErrorBound(
                f"{self._what}{self.group_text}",
                None if rows is None else share_error(rows, law),
                "",
                size=part.size,
                whole=1.0,
                whole_text="the range from 0 to 1",
                likely=0.5,
                likely_text="half of its range, so that the middle would be as good a guess",
                note=self.worst_rows_note(part)
                if rows is not None
                else self.errors_by_rows(lambda number: share_error(number, law)),
                biases=[f"rows are left out if '{self.of}' tests a value that they lack"],
                steps=("counts",),
            )
        ]

    def mine_rows(self, table: PrivateTable) -> Estimate | Groups:
        """Release the counts, and compute the shares."""
        variance = table.calibration("counts").variance
        pairs = np.reshape(table.release("counts"), (-1, 2))
        shares = [Estimate(self._what, *share_interval(one, other, variance)) for one, other in pairs.tolist()]
        return self.table_of(table.schema, self._what, shares) if self.by else shares[0]

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples with groups, and in zCDP."""
        schema = Schema([Boolean("ill", missing=True), Categorical("town", ["A", "B"])])
        ill = {"equals": ["ill", "true"]}
        return {
            "groups": Example(schema, cls(ill, by="town", epsilon=1)),
            "zcdp": Example(schema, cls(ill, rho=Fraction(1, 8)), EXAMPLE_DELTA),
        }


@final
@attrs.frozen
class TopKMiner(GroupedMiner):
    """The most frequent values of an attribute, with their counts, in the table or in each group.

    All values are counted in one release and then sorted. Each row has one value, so under add-or-remove-one each count
    has the noise of a single count, whatever `k` is. (Under replace-one a row may lower one count and raise another, so
    there is more noise.) If k values were selected one after another, each selection would get 1/k of the budget.

    The shown values are chosen by their noisy counts. So the confidence intervals must hold for all values at once:
    each may fail with a probability of 5 % divided by the number of counts. Rows without a value are not ranked. With
    `by`, one release holds the counts of all values in all groups, and the values are sorted within each group.

    For an open attribute, whose values are not listed in the schema, see `KeysMiner`.

    Parameters
    ----------
    attribute
        The attribute's name. If it is numeric, its bins are ranked.
    k
        The number of values to show. By default 10.
    by, where
        As for `CountMiner`.
    epsilon, rho
        The budget: `epsilon`, or `rho` for zCDP in a study with a delta.

    Examples
    --------
    >>> TopKMiner("town", 3, epsilon=0.1).k
    3
    >>> TopKMiner("diagnosis", 3, by="town", epsilon=0.1).by
    ('town',)
    """

    name = "top-k"
    result = Groups
    attribute: str
    k: int = attrs.field(default=10, validator=whole_number())

    def _attribute_to_count(self, schema: Schema) -> Attribute:
        attribute = schema[self.attribute]
        if isinstance(attribute, Open):
            raise InputError(f"attribute '{attribute.name}' is open; use the miner 'keys', which finds frequent values")
        if self.attribute in self.by:
            raise InputError(f"by names '{self.attribute}', whose values are counted; name other attributes")
        return attribute

    def plan_rows(self, schema: Schema) -> Node:
        """Plan one release with the counts of all values in all groups."""
        attribute, by = self._attribute_to_count(schema), self.groups(schema)
        cells = math.prod(one.size for one in (*by, attribute))
        if cells > MOST_CODES:
            raise InputError(
                f"the table of counts has {cells:,} cells, more than {MOST_CODES:,}; take fewer attributes or bins"
            )
        query: Query = JointHistogram([*by, attribute])
        if self.where is not None:
            query = GroupCounts([*by, attribute], where=self.where)
        return step("counts", query, counting_mechanism(self.counter, query, schema))

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return the names of the attributes that `where` compares with a number that is not a public cut."""
        return values_compared(schema, self.where)

    def bound_errors(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the error bound of each count, in rows."""
        calibration = part.calibration("counts")
        if calibration is None:
            return part.bounds_of_steps()
        bound = part.bound_of(f"counts of the values of '{self.attribute}'{self.group_text}", calibration)
        biases = ["values are shown because of their noisy counts, so these are too large on average"]
        return [attrs.evolve(bound, steps=("counts",), biases=biases)]

    def mine_rows(self, table: PrivateTable) -> Groups:
        """Release the counts, and sort them within each group. Values with equal counts stay in the schema's order."""
        attribute, by = self._attribute_to_count(table.schema), self.groups(table.schema)
        variance, labels = table.calibration("counts").variance, attribute.labels
        counts = np.reshape(table.release("counts"), (-1, len(labels)))
        # By the union bound, all intervals then hold at once with a probability of 95 %.
        level = 1 - (1 - CONFIDENCE) / counts.size
        values = [k for k, label in enumerate(labels) if not (attribute.missing and label == MISSING_LABEL)]
        what = "rows" if self.where is None else f"rows where {self.where}"
        shown, found, others = [], [], list[float]()
        for group, own in zip(itertools.product(*(one.labels for one in by)), counts.tolist(), strict=True):
            ranked = sorted(values, key=lambda k: -own[k])
            shown += [[*group, labels[k]] for k in ranked[: self.k]]
            found += [whole_estimate(what, own[k], variance, level) for k in ranked[: self.k]]
            others += [own[k] for k in ranked[self.k : self.k + 1]]
        note = "Brackets: 95 % intervals, which hold for all values at once, from the noise alone."
        if others:
            most = int(max(others) + Noisy.margin_of(variance, level))
            note += f" A value that is not shown has at most {max(most, 0):,} rows{' in its group' if by else ''}."
        return Groups([*self.by, self.attribute], what, shown, found, note)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples with a description of rows, and with groups."""
        schema = Schema([Categorical("town", ["A", "B", "C"], missing=True), Boolean("ill")])
        return {
            "where": Example(schema, cls("town", 2, where={"equals": ["ill", "true"]}, epsilon=1)),
            "groups": Example(schema, cls("town", 2, by="ill", epsilon=1)),
        }
