"""Queries that are read back from plan files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import attrs
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.formulas.sensitivity_claims_and_neighbours import ScoreClaims
from dpframework.queries.base import Query, QueryFacts, Sensitivity
from dpframework.tables.encoded_row_blocks import Block


@final
@attrs.frozen
class PlanFileQuery(Query):
    """A query read back from a plan file, with its facts but without its function.

    Attributes
    ----------
    declared
        The facts about the query.
    of_unit
        The sensitivities for a privacy unit of several rows (see `Query.for_rows`).
    """

    name = "declared"
    declared: QueryFacts
    of_unit: tuple[Sensitivity, ...] = ()

    @property
    def gathers(self) -> bool:
        """Whether the query gathers something from each row, as the plan file says."""
        return self.declared.gathers

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """The formulas in the plan file."""
        return self.declared.formulas

    def for_rows(self, rows: int) -> Sequence[Sensitivity]:
        """Return the sensitivities that the plan file states for units of several rows."""
        return self.of_unit

    def facts(self) -> QueryFacts:
        """Return the facts in the plan file."""
        return self.declared

    def count(self, block: Block, **inputs: Any) -> NDArray[Any]:
        """Refuse to count, since a plan file holds no functions.

        Raises
        ------
        InputError
            Always.
        """
        raise InputError(
            f"the query '{self.declared.text}' was read from a plan file and cannot be evaluated; run the study"
        )
