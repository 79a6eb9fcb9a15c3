"""The miners of quantiles, such as the median, of a numeric attribute, over all rows that have a value or by group."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.basics.basic_miner_base import EXAMPLE_DELTA
from dpframework.basics.row_cap_selection_miner import released_rows_example
from dpframework.basics.sum_miner_and_one_number_base import NumberMiner, released_examples
from dpframework.facts.attributes import Boolean, Numeric
from dpframework.facts.schema import Schema
from dpframework.plan.error_bounds_by_result import PlannedPart
from dpframework.plan.nodes import Node, parallel
from dpframework.queries.ranks import QuantileScores, as_quantile, quantile_text
from dpframework.results.error_bounds import WORST_ROWS, BoundKind, ErrorBound
from dpframework.results.estimates import QuantileEstimate
from dpframework.results.groups import Groups
from dpframework.run.miner_base_and_examples import Example, Witness
from dpframework.run.private_table import PrivateTable

GROUPS = "groups"  # the name of the partition by the attributes in `by`
MOST_SCORES = 1 << 20  # the most scores of groups that are released together; a score and its point take about 50 bytes


@attrs.frozen
class _RankMiner(NumberMiner):
    """The base class of the miners of quantiles."""

    result = QuantileEstimate

    @property
    @abc.abstractmethod
    def rank(self) -> Fraction:
        """The quantile, between 0 and 1."""

    def _scores(self, schema: Schema) -> QuantileScores:
        return QuantileScores(**self.within(schema), quantile=self.rank, apart=bool(self.by))

    def plan_rows(self, schema: Schema) -> Node:
        """Plan one selection, or one selection for each group."""
        node: Node = self.plan_step("quantile", self._scores(schema), self.selector)
        for attribute in reversed(self.groups(schema)):
            node = parallel(node, by=attribute, name=GROUPS)
        return node

    def bound_errors(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the error bound in rows: at most the number of rows on the larger side of the quantile."""
        path = "/".join([*[GROUPS] * len(self.by), "quantile"])
        calibration = part.calibration(path)
        if calibration is None or part.schema is None:
            return part.bounds_of_steps()
        scores = self._scores(part.schema)
        within, far = calibration.preview.within, float(max(self.rank, 1 - self.rank))
        bound = part.rows_bound(self.planned(quantile_text(self.rank)), within, BoundKind.NUMBER)
        groups = self.group_count(part)
        if part.size.largest is not None:
            where = " in an average group" if self.by else ""
            likely_text = f"the largest number of rows by which a point can miss the quantile{where}"
            bound = attrs.evolve(bound, likely=far * part.size.largest / groups, likely_text=likely_text)
        if part.rows is not None:
            bound = attrs.evolve(bound, whole=part.rows / groups, whole_text=self.rows_compared(part))
            bound = attrs.evolve(bound, amount=min(within, far * part.rows))
        bound = attrs.evolve(bound, note=WORST_ROWS)
        grid = f"{scores.answer_length} points, {scores.step:.4g} apart"
        if self.own_sources:
            grid = "the points of a grid between the bounds"
        rounded = f"values of '{self.attribute}' count as the nearest of {grid}"
        return [attrs.evolve(bound, steps=(path,), biases=[*self.biases(scores), rounded])]

    def mine_rows(self, table: PrivateTable) -> QuantileEstimate | Groups:
        """Release the quantile, or the quantile of each group."""
        parts = [table]
        for attribute in self.groups(table.schema):
            parts = [part for whole in parts for part in whole.partition(attribute, name=GROUPS)]
        found = []
        asked = self._scores(parts[0].schema)
        together = max(1, MOST_SCORES // asked.answer_length)
        for first in range(0, len(parts), together):
            some = parts[first : first + together]
            released, scores = self.release_parts(some, "quantile", asked)
            for part, point in zip(some, released, strict=True):
                rows = part.calibration("quantile").preview.within
                found.append(QuantileEstimate(self.attribute, scores.quantile, point, rows, scores.step))
        what = f"{quantile_text(self.rank)} of {self.attribute}{self.where_text}"
        return self.table_of(table.schema, what, found) if self.by else found[0]


@final
@attrs.frozen
class QuantileMiner(_RankMiner):
    """A point of a public grid that is at most a few rows away from a quantile of a numeric attribute.

    The point is selected by permute-and-flip or, with a rho, by the exponential mechanism. The score of a point is 0
    minus the number of rows by which the point misses the quantile (`queries.QuantileScores`). Let the grid have m
    points, and let the selection have the scale s. Values are rounded to the grid, so some point is an exact quantile,
    and the best score is 0. So with a probability of at least 95 % the point misses the quantile by at most s ln(20 m)
    rows. For the quantile q, the scale is 2 max(q, 1 - q) / epsilon under add-or-remove-one, and 2 / epsilon under
    replace-one. So the bound follows from the plan alone.

    Parameters
    ----------
    attribute
        The attribute's name.
    quantile
        The quantile, between 0 and 1. By default 0.5, the median.
    bounds
        Two public numbers, or the name of an earlier step of miner `private-bounds`, whose released bounds are used.
        Values are clamped to the bounds. By default the schema's bounds are used. If the bounds are whole numbers and
        at most 4096 apart, the grid has all whole numbers between them. Otherwise the grid has 4096 equal steps. Each
        value is rounded to the nearest point of the grid.
    by, where
        As for `SumMiner`.
    epsilon, rho
        The budget: `epsilon`, or `rho` for zCDP in a study with a delta.

    Examples
    --------
    >>> QuantileMiner("age", 0.9, epsilon=0.1).quantile
    Fraction(9, 10)
    """

    name = "quantile"
    quantile: Fraction = attrs.field(default=Fraction(1, 2), converter=as_quantile)

    @property
    def rank(self) -> Fraction:
        """The parameter `quantile`."""
        return self.quantile

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples with several quantiles, missing values, a public number of rows, and groups."""
        age = Schema([Numeric("age", 0, 60, bins=3)])
        missing = Schema([Numeric("age", 0, 60, bins=2, missing=True)])
        return {
            "median": Example(age, cls("age", epsilon=1), witnesses=[_halves({}), _halves({}, left_out=True)]),
            "missing": Example(missing, cls("age", 0.75, epsilon=1), witnesses=_three_of_four(0, 60)),
            "bounds": Example(age, cls("age", 0.25, bounds=[10, 50], epsilon=1), witnesses=_three_of_four(50, 10)),
            "rows-public": Example(attrs.evolve(age, rows=14), cls("age", epsilon=1), witnesses=[_halves({})]),
            "zcdp": Example(age, cls("age", rho=Fraction(1, 8)), EXAMPLE_DELTA),
            "groups": Example(
                Schema([Numeric("age", 0, 60, bins=3), Boolean("ill")]),
                cls("age", 0.75, by="ill", epsilon=1),
                witnesses=_move_out_of_a_group(),
            ),
        }


@final
@attrs.frozen
class MedianMiner(_RankMiner):
    """A point of a public grid that is at most a few rows away from the median of a numeric attribute.

    It is the point that `QuantileMiner` releases for the quantile 1/2.

    Parameters
    ----------
    attribute, bounds, by, where
        As for `QuantileMiner`.
    epsilon, rho
        The budget: `epsilon`, or `rho` for zCDP in a study with a delta.

    Examples
    --------
    >>> MedianMiner("age", by="town", epsilon=0.1).rank
    Fraction(1, 2)
    """

    name = "median"

    @property
    def rank(self) -> Fraction:
        """One half."""
        return Fraction(1, 2)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples with groups, with released bounds, and with a released number of rows per unit."""
        people = Schema([Numeric("age", 0, 60, bins=3), Boolean("ill"), Boolean("here")])
        witnesses = [_halves({"ill": True, "here": True}), _halves({"ill": True, "here": True}, left_out=True)]
        miner = cls("age", by="ill", where={"equals": ["here", "true"]}, epsilon=1)
        released = cls("age", rows_per_unit="most", epsilon=1)
        halves = [_halves({}), _halves({}, left_out=True)]
        return {
            "groups": Example(people, miner, witnesses=witnesses),
            **released_examples(cls),
            "released-rows": released_rows_example(Schema([people["age"]]), released, witnesses=halves),
        }


def _halves(more: Mapping[str, Any], *, left_out: bool = False) -> Witness:
    """Return a witness (two tables that show the loss): half of the rows are old, and one becomes young or is left out.

    At first all ages from 2 to 60 are medians. With one old row less, only the scores of ages below 2 get better.
    """
    young, old, other = ({"age": age, **more} for age in (2, 60, 0))
    return Witness(((young, 7), (old, 6)), old, None if left_out else other)


def _three_of_four(three: float, fourth: float) -> tuple[Witness, Witness]:
    """Return one witness for each relation, for the quantile 3/4 of four rows, or 1/4 if the fourth is the youngest.

    At first all ages from the three equal rows to the fourth row have that rank. In the first witness a fifth row
    is added beyond the fourth. Then only ages beyond the fourth row come nearer to the rank. In the second witness the
    fourth row moves to the other side of the three rows. Then only ages on that side come nearer.
    """
    within = 2 if fourth < three else -2
    end, other_end = {"age": fourth}, {"age": three}
    return (
        Witness(((other_end, 3), ({"age": fourth + within}, 1)), None, end),
        Witness((({"age": three - within}, 3),), end, other_end),
    )


def _move_out_of_a_group() -> tuple[Witness, Witness]:
    """Return one witness for each relation: the oldest ill row is removed, or is replaced by a row that is well.

    Among four rows, all ages from the third row to the fourth have the rank 3/4. In the group of the ill, these are the
    ages 2 to 60. When the fourth row leaves, only ages below 2 come nearer to the rank. In the other group, these are
    the ages 0 to 58. When a fifth row above them is added, only ages above 58 come nearer to the rank. Each of the two
    groups loses half of the declared loss.
    """
    rows = (({"age": 2, "ill": True}, 3), ({"age": 0, "ill": False}, 3), ({"age": 58, "ill": False}, 1))
    ill, well = ({"age": 60, "ill": is_ill} for is_ill in (True, False))
    return Witness(rows, ill, None), Witness(rows, ill, well)
