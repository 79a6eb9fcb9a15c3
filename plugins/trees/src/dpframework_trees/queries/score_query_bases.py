"""The base classes of queries that score candidates by a criterion, and of queries that score whole trees."""

from __future__ import annotations

import attrs

from dpframework.facts import Attribute
from dpframework.formulas import ScoreClaims
from dpframework.queries import ReadsAmong, Sensitivity
from dpframework_trees.criteria import Criterion, KnownRows


@attrs.frozen
class CriterionScores(ReadsAmong):
    """Scores of candidates, each the sum of a criterion over disjoint sets of rows.

    Attributes
    ----------
    criterion
        The criterion that scores each set of rows.
    target
        The class attribute.
    rows
        The public facts about the number of rows.
    """

    integer = False
    criterion: Criterion
    target: Attribute
    rows: KnownRows

    @property
    def scored_by(self) -> str:
        """A text with the criterion's name and, if there are any, the costs of errors."""
        costs = zip(self.criterion.costs, self.target.labels, strict=False)
        shown = ", ".join(f"{label} {cost}" for cost, label in costs)
        return f"{self.criterion.name} score (costs: {shown})" if shown else f"{self.criterion.name} score"

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """The criterion's formula, with its claims."""
        return (self.criterion.formula_claims,)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """The criterion's sensitivity, since a row is in one child of each split and one leaf of each tree."""
        return (self.criterion.sensitivity(self.rows.bound, exact=self.rows.exact),)

    def for_rows(self, rows: int) -> tuple[Sensitivity, ...]:
        """Return the sensitivity for a group of `rows` rows, which may be in several children or leaves."""
        return self.criterion.for_group(self.rows.bound, rows, self.target.size, exact=self.rows.exact)


class CountedOrPacked:
    """A query that adds up counts if `gives_counts`, and else gathers a bit for each row and test."""

    __slots__ = ()
    gives_counts: bool

    @property
    def gathers(self) -> bool:
        """Whether the query gathers rows: one bit for each row and test, unless it answers with counts."""
        return not self.gives_counts

    @property
    def has_tables(self) -> bool:
        """Whether cross tables are enough to answer."""
        return self.gives_counts
