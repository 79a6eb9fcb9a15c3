"""The base of queries that score by a criterion: their claims are those of the criterion, for rows and for groups."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from dpframework_trees.criteria import CRITERIA, KnownRows
from dpframework_trees.queries.score_query_bases import CriterionScores
from hypothesis import given, strategies as st

import dpframework as dpf

GRADE = dpf.Categorical("grade", ["good", "fair", "bad"])


@attrs.frozen
class OneSet(CriterionScores):
    """The score of all rows as one set."""

    name = "one-set"
    answer_length = 1

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        counts = np.bincount(block.codes(self.target.name), minlength=self.target.size)
        return self.criterion.formula_claims.shape.of_parts(counts[None])


@pytest.mark.parametrize("name", CRITERIA)
@given(st.integers(1, 30), st.booleans())
def test_the_claims_are_those_of_the_criterion(name: str, rows: int, exact: bool) -> None:
    criterion = CRITERIA[name]
    query = OneSet(criterion, GRADE, KnownRows(rows, exact), among=("grade",))
    assert query.sensitivities == (criterion.sensitivity(rows, exact=exact),)
    for group in (2, 5):
        assert query.for_rows(group) == criterion.for_group(rows, group, 3, exact=exact)
    assert query.scored_formulas == (criterion.formula_claims,)
    assert query.attributes == ("grade",)


def test_costs_of_errors_are_in_the_text_of_the_score() -> None:
    plain = OneSet(CRITERIA["max"], GRADE, KnownRows(30, False))
    assert plain.scored_by == "max score"
    costly = attrs.evolve(plain, criterion=attrs.evolve(CRITERIA["max"], costs=(1, 5, 2)))
    assert costly.scored_by == "max score (costs: good 1, fair 5, bad 2)"
