"""The plan and the releases of pairs that are counted together. The number of rows decides on the number of pairs."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import final

import attrs

from dpframework.facts import Schema
from dpframework.plan import Node, either, sequential
from dpframework.redescriptions import MatchScores, Redescription, ReportConditions, cap_of, choices_carried
from dpframework.run import PrivateTable, left_by_row_count, plan_row_count, release_row_count
from dpframework_greedy.budgets import MOST_PAIRS, BudgetShares
from dpframework_greedy.literal_pairs import mine_pairs, most_cells, plan_pairs

#: The numbers of pairs that have a branch of their own in a plan that releases the number of rows first.
NUMBERS = (1, 2, 3, 4, 6, 9, 12, 15, 18, MOST_PAIRS)
MOST_ROWS = 10**12  # the bound on the number of rows that is assumed if the schema has none


@final
@attrs.frozen
class PairPlan:
    """The pairs that are counted together, on a schema.

    Attributes
    ----------
    schema
        The schema.
    scores
        The query for the scores of pairs.
    epsilon
        The budget of the whole run.
    shares
        How choices and tables share the budget.
    requested_pairs
        The number of pairs that you ask for; None for as many as the budget pays for.
    """

    schema: Schema
    scores: MatchScores
    epsilon: Fraction
    shares: BudgetShares
    requested_pairs: int | None

    @property
    def numbers(self) -> tuple[int, ...]:
        """The possible numbers of pairs: only one if you give it, or if the number of rows is public."""
        if self.requested_pairs is not None:
            return (self.requested_pairs,)
        if self.schema.rows is not None:
            return (self._number_of_choices(self.schema.rows),)
        most = self._number_of_choices(self.schema.max_rows or MOST_ROWS)
        return tuple(number for number in NUMBERS if number <= most)

    @property
    def counts_rows(self) -> bool:
        """Whether the number of rows is released first."""
        return self.schema.rows is None and len(self.numbers) > 1

    @property
    def likely(self) -> tuple[str, int]:
        """The branch for `about_rows` rows, and the largest number of cells that are added up to a support.

        The branch is "" if any may be chosen, or if there is only one.
        """
        if not self.counts_rows or self.schema.about_rows is None:
            return "", most_cells(max(self.numbers))
        number = self.number(self.schema.about_rows)
        return _branch(number), most_cells(number)

    def number(self, rows: float) -> int:
        """Return the number of pairs that a released number of rows leads to."""
        carried = self._number_of_choices(rows)
        return max(number for number in self.numbers if number <= carried)

    def _number_of_choices(self, rows: float) -> int:
        return choices_carried(float(self.shares.pairs * self.epsilon) * rows, self.scores.answer_length, MOST_PAIRS)

    def plan(self) -> Node:
        """Plan the pairs and their tables, or the number of rows and then a branch for each number of pairs."""
        epsilon = left_by_row_count(self.epsilon) if self.counts_rows else self.epsilon
        pairs, counts = self.shares.pairs * epsilon, self.shares.quality * epsilon
        if not self.counts_rows:
            return plan_pairs(self.scores, self.numbers[0], pairs, counts)
        scores = attrs.evolve(self.scores, given_cap=True)
        branches = (
            sequential(plan_pairs(scores, number, pairs, counts, uses=["rows"]), name=_branch(number))
            for number in self.numbers
        )
        return sequential(plan_row_count(self.epsilon), either(*branches))

    def mine(self, table: PrivateTable, wanted: ReportConditions) -> tuple[list[Redescription], int, float, float]:
        """Make the releases. Return the redescriptions, the number of candidates, and two facts about the counts.

        These are the variance of a count's noise, and the public or released number of rows (infinity if neither).
        """
        if not self.counts_rows:
            found, candidates = mine_pairs(table, self.numbers[0], wanted)
            return found, candidates, table.calibration("table").variance, self.schema.rows or math.inf
        rows = release_row_count(table)
        number = self.number(rows)
        part, given = table.scope(_branch(number)), {"cap": cap_of(rows)}
        found, candidates = mine_pairs(part, number, wanted, given)
        return found, candidates, part.calibration("table").variance, rows


def _branch(pairs: int) -> str:
    return f"{pairs} pair{'s' * (pairs > 1)}"
