"""Queries that score candidates by a criterion: what they have in common."""

from __future__ import annotations

import attrs

from dpframework.facts import Attribute
from dpframework.queries import Query, Sensitivity
from dpframework_trees.criteria import Criterion, KnownRows


@attrs.frozen
class CriterionScores(Query):
    """Scores of candidates, each the sum of a criterion over disjoint sets of rows.

    Attributes
    ----------
    criterion
        What is scored.
    target
        The class attribute.
    rows
        What is public of their number.
    among
        The names of the attributes that it may read, the class among them; empty if that may be any.
    """

    integer = False
    criterion: Criterion
    target: Attribute
    rows: KnownRows
    among: tuple[str, ...] = attrs.field(default=(), kw_only=True)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those that it may read."""
        return self.among

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """See `Criterion.sensitivity`: a row is in one child of each split, and in one leaf of each tree."""
        return (self.criterion.sensitivity(self.rows.bound, exact=self.rows.exact),)

    def for_rows(self, rows: int) -> tuple[Sensitivity, ...]:
        """See `Criterion.sensitivity`, for a group: its rows may be in several children, and in several leaves."""
        return self.criterion.for_group(self.rows.bound, rows, self.target.size, exact=self.rows.exact)
