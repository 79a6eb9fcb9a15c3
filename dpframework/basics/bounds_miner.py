"""The miner that finds, from noisy counts, bounds of a numeric attribute beyond which few rows lie."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import final

import attrs

from dpframework.basics.box_search_base import Looks, SearchMiner
from dpframework.facts.attributes import Numeric
from dpframework.facts.parameter_checks import share_of_budget
from dpframework.facts.schema import Schema
from dpframework.plan.nodes import Node
from dpframework.queries.boxes import Box
from dpframework.results.grid_and_bounds_results import FoundBounds
from dpframework.run.miner_base_and_examples import Example
from dpframework.run.private_table import PrivateTable

_FIRST_LOOK = Fraction(1, 100)  # the share of the budget that the first release of the search costs
_CLEAR = 2  # a difference is clear if it is at least this many standard deviations of its noise


@final
@attrs.frozen
class PrivateBoundsMiner(SearchMiner):
    """Bounds of a numeric attribute, with at most a given share of the rows beyond each bound.

    A schema needs public bounds, and safe bounds are often far too wide. This miner searches for both bounds at once,
    by bisection. For each bound, the miner keeps a range in which the bound may lie.

    Each step of the search, called a look, releases noisy counts of the rows beyond the middle of each range. A range
    is halved if its count clearly shows which half holds the bound. Let g be the number of rows that may lie beyond a
    bound, which is the share `outside` of all rows. A range is also halved if two standard deviations of the noise are
    at most g / 2. Then either half is good enough. The first look is cheap. After a look that halves no range, the next
    look costs twice as much.

    The search stops when both bounds are found, or before it would spend more than half of the budget. The result is
    the narrowest bounds that are known to be wide enough or, if no bin would be left between these, the schema's
    bounds. The rest of the budget counts the rows between the bounds and beyond them. The number of looks and their
    costs depend on released counts only.

    Parameters
    ----------
    attribute
        The name of a numeric attribute. The bounds will be edges of its bins, so give it many bins in the schema.
    outside
        The share of the rows that may lie below the lower bound, and the share that may lie above the upper bound.
    epsilon, rho
        The budget: `epsilon`, or `rho` for zCDP in a study with a delta.

    Examples
    --------
    >>> PrivateBoundsMiner("income", epsilon=0.5).outside
    Fraction(1, 100)
    """

    name = "private-bounds"
    result = FoundBounds
    attribute: str
    outside: Fraction = attrs.field(default=Fraction(1, 100), converter=share_of_budget, kw_only=True)

    def plan(self, schema: Schema) -> Node:
        """Plan the spend block, the node of the plan that caps the cost of all counts together."""
        return self.plan_of([self.numeric(schema, self.attribute)])

    def mine(self, table: PrivateTable) -> FoundBounds:
        """Search for the bounds, and count the rows between the bounds and beyond them."""
        numeric, looks = self.numeric(table.schema, self.attribute), self.looks(table)
        search = _Search(numeric, looks, float(self.outside))
        lower, upper, number = search.run()
        last, boxes = looks.left, _pieces(lower, upper, search.bins)
        counts = dict(zip(boxes, looks.counts(boxes, last), strict=True))
        edges = numeric.edges
        below, above = _beyond(counts, lower, upper)
        within = sum(counts.values()) - below - above
        return FoundBounds(
            self.attribute, edges[lower], edges[upper], below, within, above, looks.variance(last), number
        )

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples with missing values, and with a public number of rows."""
        age = Schema([Numeric("age", 0, 8, bins=4, missing=True)])
        return {
            "missing": Example(age, cls("age", outside=0.1, epsilon=1)),
            "rows-public": Example(attrs.evolve(age, rows=6), cls("age", outside=0.2, epsilon=2)),
        }


class _Search:
    """One bisection for both bounds, with shared counts. A bound is given as the position of a bin's edge."""

    def __init__(self, numeric: Numeric, looks: Looks, outside: float) -> None:
        self.bins = len(numeric.interior_cuts) + 1
        self._looks, self._outside = looks, outside
        self._lower, self._upper = (0, self.bins - 1), (1, self.bins)  # the lowest and highest edge of each range

    def run(self) -> tuple[int, int, int]:
        """Return the lower and the upper bound, as positions of edges, and the number of looks."""
        cost, most, number = _FIRST_LOOK * self._looks.left, self._looks.left / 2, 0
        while (self._lower[0] < self._lower[1] or self._upper[0] < self._upper[1]) and self._looks.left - cost >= most:
            number += 1
            if not self._look(cost):
                cost = 2 * cost
        lower, upper = self._lower[0], self._upper[1]
        return (lower, upper, number) if lower < upper else (0, self.bins, number)

    def _look(self, cost: Fraction) -> bool:
        """Count the rows beyond the middle of each range, and halve each range if its count clearly shows which half.

        The result is whether at least one range was halved.
        """
        lower, upper = math.ceil(sum(self._lower) / 2), sum(self._upper) // 2
        boxes = _pieces(lower, upper, self.bins)
        counts = dict(zip(boxes, self._looks.counts(boxes, cost), strict=True))
        goal = self._outside * max(sum(counts.values()), 0.0)
        noise = _CLEAR * math.sqrt(self._looks.variance(cost))
        # With so little noise either half is good enough: the number of rows beyond the bound then misses the goal by
        # at most half of the goal.
        clear = 0.0 if noise <= goal / 2 else noise
        below, above = (count - goal for count in _beyond(counts, lower, upper))
        moved = False
        if self._lower[0] < self._lower[1] and abs(below) >= clear:
            self._lower = (self._lower[0], lower - 1) if below > 0 else (lower, self._lower[1])
            moved = True
        if self._upper[0] < self._upper[1] and abs(above) >= clear:
            self._upper = (upper + 1, self._upper[1]) if above > 0 else (self._upper[0], upper)
            moved = True
        return moved


def _pieces(lower: int, upper: int, bins: int) -> list[Box]:
    """Return the boxes, or ranges of bins, into which two edges cut all bins."""
    ends = sorted({0, lower, upper, bins})
    return [((first, end),) for first, end in itertools.pairwise(ends)]


def _beyond(counts: Mapping[Box, float], lower: int, upper: int) -> tuple[float, float]:
    """Return the released numbers of rows below the lower edge and above the upper edge."""
    below = sum(count for ((_, end),), count in counts.items() if end <= lower)
    return below, sum(count for ((first, _),), count in counts.items() if first >= upper)
