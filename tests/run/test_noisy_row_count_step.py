"""The number of rows that is released first: its share of the budget, and the numbers that a schema allows."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from dpframework.run.noisy_row_count_step import COUNT_SHARE, left_by_row_count, plan_row_count, release_row_count


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
def test_the_count_and_the_rest_are_the_budget(epsilon: Fraction) -> None:
    own = plan_row_count(epsilon).mechanism.epsilon
    assert own == COUNT_SHARE * epsilon
    assert own + left_by_row_count(epsilon) == epsilon


@pytest.mark.parametrize(
    ("released", "most", "rows"),
    [(-3, None, 1), (0, 9, 1), (1, None, 1), (2, None, 2), (9, 9, 9), (10, 9, 9), (10**9, None, 10**9)],
)
def test_the_nearest_number_that_the_schema_allows_is_returned(released: int, most: int | None, rows: int) -> None:
    asked: list[str] = []
    table: Any = SimpleNamespace(
        release=lambda name: asked.append(name) or released, schema=SimpleNamespace(max_rows=most)
    )
    found = release_row_count(table)
    assert (found, asked) == (rows, ["rows"])
    assert math.isfinite(found)
