"""Findings on derived columns: the first of each kind and column, and the largest change under each relation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.tables.column_encoding import EncodedColumn
from dpframework.verify.tables.derivation_check_base import DerivationFindings

ILL = dpf.Boolean("ill")
CODES = st.lists(st.integers(0, 1), max_size=5)


def columns(codes: list[int]) -> dict[str, EncodedColumn]:
    return {"ill": EncodedColumn(np.array(codes, dtype=np.uint8), None)}


@given(st.sampled_from(list(dpf.Relation)), CODES, CODES)
def test_a_histogram_that_changes_by_more_than_is_declared_is_found(
    relation: dpf.Relation, one: list[int], other: list[int]
) -> None:
    found = DerivationFindings()
    found.check_change(relation, ILL, columns(one), columns(other))
    change = sum(abs(one.count(code) - other.count(code)) for code in (0, 1))
    assert found.changes[relation.value] == change
    declared = 1 if relation is dpf.Relation.ADD_OR_REMOVE_ONE else 2
    assert [*found.violations] == [(relation.value, "ill")] * (change > declared)


@pytest.mark.parametrize("kind", ["domain", "replace-one"])
def test_the_first_violation_of_a_kind_is_kept(kind: str) -> None:
    found = DerivationFindings()
    found.add(kind, "ill", "first")
    found.add(kind, "ill", "second")
    found.add(kind, "old", "another")
    assert found.violations == {(kind, "ill"): "first", (kind, "old"): "another"}
