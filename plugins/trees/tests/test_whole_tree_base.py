"""Queries for whole trees: rows are gathered only where counts are not enough."""

from __future__ import annotations

import pytest
from dpframework_trees.queries.whole_tree_base import CountedOrPacked


class Asked(CountedOrPacked):
    """A query that counts, or not."""

    def __init__(self, counted: bool) -> None:
        self.counted = counted


@pytest.mark.parametrize("counted", [False, True])
def test_a_query_counts_tables_or_gathers_rows(counted: bool) -> None:
    assert (Asked(counted).tabled, Asked(counted).gathers) == (counted, not counted)
