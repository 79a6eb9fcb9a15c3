"""Kernels that are compiled for a criterion: once for each formula, and each scores by that formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dpframework_trees.criteria import CRITERIA
from dpframework_trees.kernels.criterion_kernels import CriterionKernels, kernels_of
from dpframework_trees.kernels.scores import child_score
from hypothesis import given, settings, strategies as st

COUNTS = st.lists(st.integers(0, 50), min_size=2, max_size=4).map(lambda counts: np.array(counts, dtype=np.int64))


@pytest.mark.parametrize("name", CRITERIA)
@settings(max_examples=30, deadline=None)
@given(COUNTS)
def test_a_child_is_scored_by_the_formula(name: str, counts: Any) -> None:
    formula = CRITERIA[name].formula_claims.shape
    kernels = kernels_of(formula)
    assert isinstance(kernels, CriterionKernels)
    assert kernels.child_score(counts) == pytest.approx(float(formula.of_parts(counts[None])[0]), rel=1e-12, abs=1e-9)


def test_kernels_are_made_once_for_each_formula() -> None:
    shapes = [one.formula_claims.shape for one in CRITERIA.values()]
    assert all(kernels_of(one) is kernels_of(one) for one in shapes)
    assert len({id(kernels_of(one)) for one in shapes}) == len({one.digest for one in shapes})


def test_the_score_that_stands_for_all_scores_nothing() -> None:
    with pytest.raises(TypeError, match="take one from `kernels_of`"):
        child_score(np.array([1, 2]))
