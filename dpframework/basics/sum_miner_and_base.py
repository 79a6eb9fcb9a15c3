"""The miner of the sum of a numeric attribute, and the base class of all miners of numbers of such an attribute.

Values are clamped to the schema's bounds, to tighter public ones, or to bounds that an earlier step releases. Tighter
bounds mean less noise. Where values lie beyond them, they also mean a systematic error that no interval shows. Choose
public bounds from what is publicly known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar, final

import attrs
import numpy as np

from dpframework.basics.basic_miner import EXAMPLE_DELTA
from dpframework.basics.bounds_parameter_checks import as_bounds, bounds_misfit
from dpframework.basics.grouped_miner_base import GroupedMiner, values_compared
from dpframework.facts.attributes import Boolean, Numeric
from dpframework.facts.schema import Schema
from dpframework.mechanisms.base import Mechanism
from dpframework.plan.nodes import Node, Step, beside, step
from dpframework.plan.planned_part import PlannedPart
from dpframework.queries.group_queries import GroupSums
from dpframework.queries.released_bounds_queries import AtReleasedBounds, ScaledSums
from dpframework.queries.sums import BoundedSum, WithinBounds
from dpframework.results.error_bounds import BoundKind, ErrorBound
from dpframework.results.estimates import Estimate
from dpframework.results.groups import Groups
from dpframework.run.miner import Example, Miner, Witness
from dpframework.run.miner_chain import MinerChain
from dpframework.run.private_table import PrivateTable

#: How many rows lie between the bounds in an example. A search with an epsilon of 1 then needs few releases.
ROWS_BETWEEN = 2_000
#: The note of an error bound where bounds are released.
AT_MOST = "for the public bounds; smaller in proportion if narrower ones are released"

Q = TypeVar("Q", bound=WithinBounds)


@attrs.frozen
class NumberMiner(GroupedMiner):
    """The base class of miners of one number of a numeric attribute, or of one number for each group."""

    attribute: str
    bounds: tuple[float, float] | str | None = attrs.field(default=None, converter=as_bounds, kw_only=True)

    @property
    def own_sources(self) -> Sequence[str]:
        """The name of the step that releases the bounds, if there is one."""
        return (self.bounds,) if isinstance(self.bounds, str) else ()

    def own_misfit(self, sources: Mapping[str, Miner]) -> str | None:
        """Return why the named step does not find bounds of the attribute, or None if it does."""
        return bounds_misfit(self.attribute, sources)

    def within(self, schema: Schema) -> dict[str, Any]:
        """Return the arguments of a query of the attribute within its bounds. Released bounds are not among them."""
        given = {"attribute": schema[self.attribute], "where": self.where}
        ends = self.bounds if isinstance(self.bounds, tuple) else ()
        return given | dict(zip(("lower", "upper"), ends, strict=False))

    def plan_step(self, name: str, query: WithinBounds, mechanism: Mechanism) -> Step:
        """Plan the release of a query, whose bounds are public or come from an earlier step."""
        if not self.own_sources:
            return step(name, query, mechanism)
        bounded = query if isinstance(query, ScaledSums) else AtReleasedBounds(query)
        return step(name, bounded, mechanism, uses=map(beside, self.own_sources))

    def release(self, table: PrivateTable, name: str, query: Q) -> tuple[Any, Q]:
        """Release a step that `plan_step` made. Return the answer, and the query at the bounds that were used."""
        if not self.own_sources:
            return table.release(name), query
        (found,) = (table.given[source] for source in self.own_sources)
        released = table.release(name, bounds=(found.lower, found.upper))
        return released, attrs.evolve(query, lower=found.lower, upper=found.upper)

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return the names of the attribute and of those that `where` compares with anything but a public cut."""
        return list(dict.fromkeys([self.attribute, *values_compared(schema, self.where)]))

    def biases(self, query: WithinBounds) -> Iterator[str]:
        """Yield the biases of the number besides noise."""
        ends = "the released bounds" if self.own_sources else f"[{query.lower:g}, {query.upper:g}]"
        yield f"values of '{self.attribute}' beyond {ends} count as the nearer bound"
        if query.attribute.missing:
            yield f"rows without '{self.attribute}' are left out, so fewer rows than the table has may count"
        else:
            lowest = "the lower bound" if self.own_sources else f"{query.lower:g}"
            yield f"rows without '{self.attribute}' count as {lowest}"

    def note(self, text: str) -> str:
        """Return the note of an error bound, which also says so if the amount depends on released bounds."""
        return "; ".join(filter(None, (text, AT_MOST if self.own_sources else "")))

    def named(self, what: str) -> str:
        """Return the name of a result, such as "mean of age where ill = true"."""
        return f"{what} of {self.attribute}{self.where_text}"

    def planned(self, what: str) -> str:
        """Return the name of a result in a plan, with its rows and groups."""
        return f"{what} of '{self.attribute}'{self.where_text}{self.group_text}"


def number_examples(cls: type[Any]) -> Mapping[str, Example]:
    """Return the examples that the miners of sums and of means share, such as missing values, and groups."""
    change = Schema([Numeric("change", -3, 5, bins=2)])
    age = Schema([Numeric("age", 0, 90, bins=2, missing=True)])
    sick = Schema([Numeric("change", -3, 5, bins=2), Boolean("ill"), Boolean("here")])
    # The first of these rows is added, or is replaced by the second, which is in the other group.
    most = [{"change": 5, "ill": ill, "here": True} for ill in (True, False)]
    return {
        "both-signs": Example(change, cls("change", epsilon=1)),
        "missing": Example(age, cls("age", epsilon=1)),
        "bounds": Example(age, cls("age", bounds=[10, 60], epsilon=1)),
        "rows-public": Example(attrs.evolve(change, rows=6), cls("change", epsilon=1)),
        "rows-public-missing": Example(attrs.evolve(age, rows=6), cls("age", epsilon=1)),
        "groups": Example(
            sick,
            cls("change", by="ill", where={"equals": ["here", "true"]}, epsilon=1),
            witnesses=[Witness((), None, most[0]), Witness((), *most)],
        ),
        "zcdp": Example(change, cls("change", rho=Fraction(1, 8)), EXAMPLE_DELTA),
        **released_examples(cls, between=ROWS_BETWEEN),
    }


def released_examples(cls: type[Any], *, between: int = 0) -> Mapping[str, Example]:
    """Return examples with released bounds (for groups, and for a public number of rows) or released rows per unit.

    In the witnesses for released bounds, a row at the upper end of the public bounds is removed, or replaced by one at
    the lower end. Of the 13 other rows, seven are near the lower end and six at the upper end. So any number between
    the ends is a median, until a row at the upper end leaves. If `between` is not 0, the witness for a replaced row has
    other rows: about `between` rows near the middle. Both bounds then become narrower, and the last counts of the
    search, as well as a sum, change by as much as they may.
    """
    from dpframework.basics.bounds_miner import PrivateBoundsMiner
    from dpframework.basics.row_cap_miner import released_rows_example

    change = Schema([Numeric("change", -4, 4, bins=4), Boolean("ill")])
    search = PrivateBoundsMiner("change", outside=Fraction(1, 5), epsilon=1)

    low, high, other, *inner = ({"change": change, "ill": True} for change in (-3, 4, -4, -1, 1))
    ends = ((low, 7), (high, 6))
    middle = tuple((row, between // 2) for row in inner) if between else ends
    witnesses = [Witness(ends, high, None), Witness(middle, high, other)]

    def found(by: Sequence[str]) -> MinerChain:
        return MinerChain({"found": search, "then": cls("change", bounds="found", by=by, epsilon=1)})

    return {
        "released": Example(change, found(["ill"]), witnesses=witnesses),
        "released-rows": released_rows_example(change, cls("change", rows_per_unit="most", epsilon=1)),
        "released-rows-public": Example(attrs.evolve(change, rows=6), found([]), witnesses=witnesses),
    }


@final
@attrs.frozen
class SumMiner(NumberMiner):
    """The sum of a numeric attribute, where each value is clamped to bounds.

    It is one number on a lattice, with Laplace (or Gaussian) noise. Its sensitivity is that of `queries.BoundedSum`.
    Whole numbers are added up exactly before noise is added. With `by`, one release holds the sums of all groups, and a
    row adds to one of these sums (`queries.GroupSums`).

    Parameters
    ----------
    attribute
        The attribute's name.
    bounds
        Two public numbers that values are clamped to, or the name of an earlier step of miner `private-bounds`, whose
        released bounds are used. By default the schema's bounds.
    by
        The name of an attribute, or several names, whose labels make the groups.
    where
        A description of the rows that are added up, as for `CountMiner`.
    epsilon, rho
        The budget: `epsilon`, or `rho` for zCDP in a study with a delta.

    Examples
    --------
    >>> SumMiner("hours", bounds=[0, 60], epsilon=0.1).bounds
    (0.0, 60.0)
    """

    name = "sum"
    result = Estimate

    def _query(self, schema: Schema) -> BoundedSum | GroupSums | ScaledSums:
        groups = self.groups(schema)
        if self.own_sources:
            return ScaledSums(**self.within(schema), by=groups)
        return GroupSums(**self.within(schema), by=groups) if groups else BoundedSum(**self.within(schema))

    def plan_rows(self, schema: Schema) -> Node:
        """Plan the one sum, or the sums of all groups as one release."""
        return self.plan_step("sum", self._query(schema), self.measurer)

    def bound_errors(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the sum's error and, to compare it with, the largest sum that the table can have."""
        calibration = part.calibration("sum")
        if calibration is None or part.schema is None:
            return part.bounds_of_steps()
        query = self._query(part.schema)
        bound = attrs.evolve(part.bound_of(self.planned("sum"), calibration), kind=BoundKind.NUMBER)
        if isinstance(query, ScaledSums):
            bound = attrs.evolve(bound, amount=calibration.preview.within * query.unit()[0], note=AT_MOST)
        rows, largest = part.size.largest, max(abs(query.lower), abs(query.upper))
        if rows is not None:
            bound = attrs.evolve(bound, likely=rows * largest, likely_text="the largest sum that the table can have")
        if part.rows is not None:
            bound = attrs.evolve(bound, whole=part.rows * largest, whole_text=f"the largest sum of {part.size.text}")
        return [attrs.evolve(bound, steps=("sum",), biases=[*self.biases(query)])]

    def mine_rows(self, table: PrivateTable) -> Estimate | Groups:
        """Release the sum, or the sums of all groups."""
        released, query = self.release(table, "sum", self._query(table.schema))
        unit = query.unit()[0] if isinstance(query, ScaledSums) else 1.0
        within, what = unit * table.calibration("sum").preview.within, self.named("sum")
        sums = [Estimate(what, one, one - within, one + within) for one in (unit * np.ravel(released)).tolist()]
        return self.table_of(table.schema, what, sums) if self.by else sums[0]

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return the examples that the miners of sums and of means share."""
        return number_examples(cls)
