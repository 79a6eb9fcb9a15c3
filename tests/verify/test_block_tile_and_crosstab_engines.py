"""Engines to compare with: however they count, the counts are those of one block in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dpframework as dpf
from dpframework.queries import Counting
from dpframework.tables.in_process_engines import InMemory
from dpframework.verify.tables.block_tile_and_crosstab_engines import ByTables, Together, by_tables

A, B = dpf.Categorical("a", ["x", "y", "z"]), dpf.Boolean("b")
SCHEMA = dpf.Schema([A, B])
QUERIES = [dpf.queries.Histogram(A), dpf.queries.JointHistogram([A, B]), dpf.queries.Count()]
ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), max_size=30)


def table_of(rows: list[tuple[int, int]]) -> dpf.Table:
    return dpf.Table.from_codes(SCHEMA, np.array(rows, dtype=int).reshape(-1, 2).T)


@pytest.mark.parametrize("kind", [ByTables, Together])
@settings(max_examples=30, deadline=None)
@given(ROWS)
def test_each_engine_counts_as_one_block_in_memory(kind: Any, rows: list[tuple[int, int]]) -> None:
    functions = [Counting(query) for query in QUERIES]
    found, expected = (engine.counts(engine.load(table_of(rows)), functions) for engine in (kind(), InMemory()))
    assert [one.tolist() for one in found] == [one.tolist() for one in expected]


def test_a_function_that_names_its_tables_is_counted_by_these_alone() -> None:
    def plain(block: Any) -> int:
        return int(block.rows)

    named = Counting(QUERIES[0])
    tables, other = by_tables([named, plain])
    assert other is plain
    assert tables is not named
    block = InMemory().load(table_of([(0, 1), (2, 0), (2, 1)]))[0]
    assert tables(block).tolist() == named(block).tolist() == [1, 0, 2]
