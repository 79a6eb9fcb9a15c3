"""The time and memory of a synthetic table: known from public numbers, and never less for more to do."""

from __future__ import annotations

from dpframework_tables.costs import cost_of
from dpframework_tables.methods import TableMethod
from dpframework_tables.miner import SyntheticTable
from hypothesis import given, settings, strategies as st

import dpframework as dpf

METHODS = st.sampled_from(["independent", "tree", "rounds", "adaptive"])
ROWS = st.integers(1, 10**6)


def method(name: str, number: int) -> TableMethod:
    schema = dpf.Schema([dpf.Categorical(f"a{k}", ["x", "y", "z"]) for k in range(number)], max_rows=10**6)
    return SyntheticTable(method=name, epsilon=1).method_on(schema)


@settings(max_examples=30)
@given(METHODS, st.integers(2, 6), ROWS, ROWS)
def test_more_rows_and_more_attributes_cost_more(name: str, number: int, rows: int, drawn: int) -> None:
    one = cost_of(method(name, number), rows, drawn)
    for more in (
        cost_of(method(name, number), rows + 1000, drawn),
        cost_of(method(name, number), rows, drawn + 1000),
        cost_of(method(name, number + 1), rows, drawn),
    ):
        assert one.seconds is not None
        assert more.seconds is not None
        assert more.seconds > one.seconds
        assert (more.memory or 0) >= (one.memory or 0)


@settings(max_examples=30)
@given(METHODS, ROWS)
def test_as_many_rows_are_drawn_as_there_are_where_nobody_says(name: str, rows: int) -> None:
    assert cost_of(method(name, 3), rows, None) == cost_of(method(name, 3), rows, rows)


def test_without_a_number_of_rows_the_time_is_not_known() -> None:
    one = cost_of(method("rounds", 3), None, None)
    assert one.seconds is None
    assert "each row adds to this" in one.what
