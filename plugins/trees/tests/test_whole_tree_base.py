"""Queries for whole trees: rows are gathered only where counts are not enough."""

from __future__ import annotations

import pytest
from dpframework_trees.queries.score_query_bases import CountedOrPacked


class Asked(CountedOrPacked):
    """A query that counts, or not."""

    def __init__(self, gives_counts: bool) -> None:
        self.gives_counts = gives_counts


@pytest.mark.parametrize("gives_counts", [False, True])
def test_a_query_counts_tables_or_gathers_rows(gives_counts: bool) -> None:
    assert (Asked(gives_counts).has_tables, Asked(gives_counts).gathers) == (gives_counts, not gives_counts)
