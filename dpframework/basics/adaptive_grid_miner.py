"""The miner of counts over two numeric attributes, in cells that are smaller where there are more rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import final

import attrs

from dpframework.basics.basic_miner_base import EXAMPLE_DELTA
from dpframework.basics.box_search_base import SearchMiner
from dpframework.facts.attributes import Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.parameter_checks import names_of, share_of_budget, whole_number
from dpframework.facts.schema import Schema
from dpframework.plan.nodes import Node
from dpframework.queries.boxes import Box
from dpframework.results.grid_and_bounds_results import AdaptiveGrid
from dpframework.run.miner_base_and_examples import Example
from dpframework.run.private_table import PrivateTable

_FIRST_LOOK = (
    "under replace-one at most {} of the cost can be lost: the cost allows a replaced row to change the counts of each "
    "look by 2. But the first look counts all rows of the grid, and a row that stays in the grid does not change this "
    "number. A row that leaves the grid changes one count of each look, by 1"
)
_GAUSSIAN = (
    "the cost is what any noise of that rho may lose. Gaussian noise loses at most 0.56, 0.76 and 0.82 of the cost at "
    "a delta of 0.1, 0.03 and 0.01. Under replace-one, it loses at most 0.35, 0.58 and 0.65 of the cost, since the "
    "first look counts all rows of the grid, and a row that stays in the grid does not change this number"
)


@final
@attrs.frozen
class AdaptiveGridMiner(SearchMiner):
    """Counts over two numeric attributes, in cells that are split where released counts are large.

    The search begins with one cell. At each level, all new cells are counted at once. A cell with a large enough noisy
    count is split: it is halved along both attributes. The search stops when no cell is split, or after `depth` levels.
    Then all cells are counted once more, with all of the budget that is left. So these counts are more exact if the
    search needed fewer levels. The number of levels, the cells and the noise of the last counts depend on released
    counts only. A fixed grid, in contrast, would need small cells everywhere, even where there are few rows.

    Parameters
    ----------
    attributes
        The names of two numeric attributes. Each cell is a range of bins of both.
    depth
        The largest number of levels, at most 12.
    looks
        The share of the budget that the counts of `depth` levels cost together, above 0 and below 1.
    rows
        A cell is split if its noisy count is at least this number and at least three standard deviations of its noise.
    epsilon, rho
        The budget: `epsilon`, or `rho` for zCDP in a study with a delta.

    Examples
    --------
    >>> AdaptiveGridMiner(["age", "income"], epsilon=1).depth
    5
    """

    name = "adaptive-grid"
    result = AdaptiveGrid
    attributes: tuple[str, ...] = attrs.field(converter=names_of)
    depth: int = attrs.field(default=5, validator=whole_number(1, 12), kw_only=True)
    looks_share: Fraction = attrs.field(default=Fraction(3, 10), converter=share_of_budget, kw_only=True, alias="looks")
    rows: int = attrs.field(default=1, validator=whole_number(), kw_only=True)

    def _bins(self, schema: Schema) -> tuple[Numeric, ...]:
        if len(set(self.attributes)) != 2:
            raise InputError("attributes has to name two numeric attributes, such as ['age', 'income']")
        return tuple(self.numeric(schema, name) for name in self.attributes)

    def plan(self, schema: Schema) -> Node:
        """Plan the spend block, the node of the plan that caps the cost of all counts together."""
        return self.plan_of(self._bins(schema))

    def mine(self, table: PrivateTable) -> AdaptiveGrid:
        """Split cells while counts are large, and then count all cells."""
        numeric, looks = self._bins(table.schema), self.looks(table)
        cost = self.looks_share * looks.left / self.depth
        enough = max(float(self.rows), 3 * math.sqrt(looks.variance(cost)))
        new: list[Box] = [tuple((0, len(one.interior_cuts) + 1) for one in numeric)]
        cells: list[Box] = []
        for _ in range(self.depth):
            smaller: list[Box] = []
            for box, count in zip(new, looks.counts(new, cost), strict=True):
                if count >= enough and any(end - first > 1 for first, end in box):
                    halves = [itertools.pairwise(sorted({first, (first + end) // 2, end})) for first, end in box]
                    smaller += itertools.product(*halves)
                else:
                    cells.append(box)
            new = smaller
            if not new:
                break
        cells += new
        last = looks.left
        released = looks.counts(cells, last)
        edges = [one.edges for one in numeric]
        return AdaptiveGrid(self.attributes, edges, cells, released, looks.variance(last))

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples with a secret and a public number of rows, and in zCDP. In all of them y may be missing."""
        schema = Schema([Numeric("x", 0, 4, bins=4), Numeric("y", 0, 2, bins=2, missing=True)])
        names = ["x", "y"]
        return {
            "plain": Example(schema, cls(names, depth=2, epsilon=1), loose=_FIRST_LOOK.format("0.85")),
            "rows-public": Example(
                attrs.evolve(schema, rows=6), cls(names, depth=3, rows=3, epsilon=2), loose=_FIRST_LOOK.format("0.9")
            ),
            "zcdp": Example(schema, cls(names, depth=1, rho=Fraction(1, 8)), EXAMPLE_DELTA, loose=_GAUSSIAN),
        }
