"""The miner of sums, and the base class of all miners that release one number about a numeric attribute.

Values are clamped to the schema's bounds, to tighter public bounds, or to bounds that an earlier step releases. Tighter
bounds mean less noise. But values beyond the bounds cause a systematic error, which no confidence interval shows.
Choose public bounds from public knowledge, and not from the data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar, final

import attrs
import numpy as np

from dpframework.basics.basic_miner_base import EXAMPLE_DELTA
from dpframework.basics.bounds_argument_check import as_bounds, bounds_misfit
from dpframework.basics.filter_and_group_miner_base import GroupedMiner, values_compared
from dpframework.facts.attributes import Boolean, Numeric
from dpframework.facts.schema import Schema
from dpframework.mechanisms.base import Mechanism
from dpframework.plan.error_bounds_by_result import PlannedPart
from dpframework.plan.nodes import Node, Step, beside, step
from dpframework.queries.group_queries import GroupSums
from dpframework.queries.released_bounds_queries import AtReleasedBounds, ScaledSums
from dpframework.queries.sums import BoundedSum, WithinBounds
from dpframework.results.error_bounds import BoundKind, ErrorBound
from dpframework.results.estimates import Estimate
from dpframework.results.groups import Groups
from dpframework.run.miner_base_and_examples import Example, Miner, Witness
from dpframework.run.miner_chain import MinerChain
from dpframework.run.private_table import PrivateTable

#: The number of rows between the bounds in an example. With so many rows, a search for bounds at an epsilon of 1 needs
#: few releases.
ROWS_BETWEEN = 2_000
#: The note of an error bound if the bounds come from an earlier release.
AT_MOST = "for the public bounds; smaller in proportion if narrower bounds are released"

Q = TypeVar("Q", bound=WithinBounds)


@attrs.frozen
class NumberMiner(GroupedMiner):
    """The base class of miners that release one number about a numeric attribute, for all rows or for each group."""

    attribute: str
    bounds: tuple[float, float] | str | None = attrs.field(default=None, converter=as_bounds, kw_only=True)

    @property
    def own_sources(self) -> Sequence[str]:
        """The name of the step that releases the bounds. Empty if the bounds are public."""
        return (self.bounds,) if isinstance(self.bounds, str) else ()

    def own_misfit(self, sources: Mapping[str, Miner]) -> str | None:
        """Return the reason why the named step does not find bounds of the attribute; None if it does."""
        return bounds_misfit(self.attribute, sources)

    def within(self, schema: Schema) -> dict[str, Any]:
        """Return the arguments of a query about the attribute: attribute, `where`, and public bounds if given."""
        given = {"attribute": schema[self.attribute], "where": self.where}
        ends = self.bounds if isinstance(self.bounds, tuple) else ()
        return given | dict(zip(("lower", "upper"), ends, strict=False))

    def plan_step(self, name: str, query: WithinBounds, mechanism: Mechanism) -> Step:
        """Plan the release of a query whose bounds are public or come from an earlier step."""
        if not self.own_sources:
            return step(name, query, mechanism)
        bounded = query if isinstance(query, ScaledSums) else AtReleasedBounds(query)
        return step(name, bounded, mechanism, uses=map(beside, self.own_sources))

    def release(self, table: PrivateTable, name: str, query: Q) -> tuple[Any, Q]:
        """Make a release that `plan_step` planned. Return the release, and the query with the bounds that were used."""
        (released,), bounded = self.release_parts([table], name, query)
        return released, bounded

    def release_parts(self, parts: Sequence[PrivateTable], name: str, query: Q) -> tuple[list[Any], Q]:
        """Make the same release for each of several parts of a table in one call (see `release`)."""
        inputs: dict[str, Any] = {}
        for source in self.own_sources:
            found = parts[0].given[source]
            inputs["bounds"] = found.lower, found.upper
            query = attrs.evolve(query, lower=found.lower, upper=found.upper)
        # Call the method of the given table, since a table of the first rows of each unit is not a `PrivateTable`.
        return parts[0].release_many([(part, name, inputs) for part in parts]), query

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return the names of the attribute and of all that `where` compares with a number that is not a public cut."""
        return list(dict.fromkeys([self.attribute, *values_compared(schema, self.where)]))

    def biases(self, query: WithinBounds) -> Iterator[str]:
        """Yield sentences about systematic errors of the number, apart from noise."""
        ends = "the released bounds" if self.own_sources else f"[{query.lower:g}, {query.upper:g}]"
        yield f"values of '{self.attribute}' beyond {ends} count as the nearer bound"
        if query.attribute.missing:
            yield f"rows without '{self.attribute}' are left out, so fewer rows may be used than the table has"
        else:
            lowest = "the lower bound" if self.own_sources else f"{query.lower:g}"
            yield f"rows without '{self.attribute}' count as {lowest}"

    def note(self, text: str) -> str:
        """Return the note of an error bound. If bounds are released, add that the error depends on these bounds."""
        return "; ".join(filter(None, (text, AT_MOST if self.own_sources else "")))

    def named(self, what: str) -> str:
        """Return the name of a result, such as "mean of age where ill = true"."""
        return f"{what} of {self.attribute}{self.where_text}"

    def planned(self, what: str) -> str:
        """Return the name of a result in a plan, with the description of its rows and its groups."""
        return f"{what} of '{self.attribute}'{self.where_text}{self.group_text}"


def number_examples(cls: type[Any]) -> Mapping[str, Example]:
    """Return the examples for the miners of sums and means."""
    change = Schema([Numeric("change", -3, 5, bins=2)])
    age = Schema([Numeric("age", 0, 90, bins=2, missing=True)])
    sick = Schema([Numeric("change", -3, 5, bins=2), Boolean("ill"), Boolean("here")])
    # In the witnesses (pairs of neighbouring tables that show the loss), the first of these rows is added, or is
    # replaced by the second row, which is in another group.
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
    """Return examples with released bounds and with a released number of rows per unit.

    A witness is a pair of neighbouring tables on which the loss is nearly as large as claimed. In the witnesses here, a
    row at the upper public bound is removed, or is replaced by a row at the lower public bound. Of the 13 other rows,
    seven are near the lower bound and six at the upper bound. So with all 14 rows, every number between the two ends is
    a median. If `between` is not 0, the witness for a replaced row has about `between` rows near the middle in place of
    the 13. Then both released bounds are narrower, and the replaced row changes two things by as much as possible: the
    last counts in the search for bounds, and the sum.
    """
    from dpframework.basics.bounds_miner import PrivateBoundsMiner
    from dpframework.basics.row_cap_selection_miner import released_rows_example

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
    """The sum of a numeric attribute. Each value is clamped to bounds.

    One number is released, with Laplace (or Gaussian) noise on a lattice (`queries.BoundedSum`). Whole numbers are
    added up exactly before the noise is added. With `by`, one release holds the sums of all groups
    (`queries.GroupSums`). A row adds to one of these sums.

    Parameters
    ----------
    attribute
        The attribute's name.
    bounds
        Two public numbers, or the name of an earlier step of miner `private-bounds`, whose released bounds are used.
        Values are clamped to the bounds. By default the schema's bounds are used.
    by
        The name of an attribute, or a list of names. There is one group for each combination of their labels.
    where
        A description of the rows that are used, as for `CountMiner`.
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
        """Plan one release: the sum, or the sums of all groups."""
        return self.plan_step("sum", self._query(schema), self.measurer)

    def bound_errors(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the error bound of the sum, with the largest sum that the table can have, for comparison."""
        calibration = part.calibration("sum")
        if calibration is None or part.schema is None:
            return part.bounds_of_steps()
        query = self._query(part.schema)
        bound = attrs.evolve(part.bound_of(self.planned("sum"), calibration), kind=BoundKind.NUMBER)
        if isinstance(query, ScaledSums):
            bound = attrs.evolve(bound, amount=calibration.preview.within * query.unit()[0], note=AT_MOST)
        rows, largest = part.size.largest, max(abs(query.lower), abs(query.upper))
        groups, whose = self.group_count(part), "an average group" if self.by else "the table"
        if rows is not None:
            likely_text = f"the largest sum that {whose} can have"
            bound = attrs.evolve(bound, likely=rows * largest / groups, likely_text=likely_text)
        if part.rows is not None:
            whole_text = f"the largest sum of {self.rows_compared(part)}"
            bound = attrs.evolve(bound, whole=part.rows * largest / groups, whole_text=whole_text)
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
        """Return the examples for the miners of sums and means."""
        return number_examples(cls)
