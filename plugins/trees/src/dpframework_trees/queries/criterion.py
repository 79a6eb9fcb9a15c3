"""Queries that score candidates by a criterion: what they have in common."""

from __future__ import annotations

import attrs

from dpframework.facts import Attribute
from dpframework.queries import ReadsAmong, Sensitivity
from dpframework_trees.criteria import Criterion, KnownRows


@attrs.frozen
class CriterionScores(ReadsAmong):
    """Scores of candidates, each the sum of a criterion over disjoint sets of rows.

    Attributes
    ----------
    criterion
        What is scored.
    target
        The class attribute.
    rows
        What is public of their number.
    """

    integer = False
    criterion: Criterion
    target: Attribute
    rows: KnownRows

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """See `Criterion.sensitivity`: a row is in one child of each split, and in one leaf of each tree."""
        return (self.criterion.sensitivity(self.rows.bound, exact=self.rows.exact),)

    def for_rows(self, rows: int) -> tuple[Sensitivity, ...]:
        """See `Criterion.sensitivity`, for a group: its rows may be in several children, and in several leaves."""
        return self.criterion.for_group(self.rows.bound, rows, self.target.size, exact=self.rows.exact)
