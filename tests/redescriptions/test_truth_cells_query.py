"""Counts of rows by which descriptions hold, row by row and from cross tables."""

from __future__ import annotations

import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts import Below, Description, Equals
from dpframework.redescriptions.truth_cells_query import TruthCells

SCHEMA = dpf.Schema(
    [
        dpf.Boolean("wolf", view="left"),
        dpf.Categorical("zone", ["north", "middle", "south"], view="left", missing=True),
        dpf.Boolean("snow", view="right"),
        dpf.Numeric("rain", 0, 8, cuts=[3, 5], view="right"),
    ]
)
WOLF, NORTH, SOUTH = Equals("wolf", "true"), Equals("zone", "north"), Equals("zone", "south")
SNOW, DRY, WET = Equals("snow", "true"), Below("rain", 3), Below("rain", 5)


@pytest.mark.parametrize(
    ("left", "right"),
    [([WOLF], [SNOW]), ([WOLF, NORTH, SOUTH], [SNOW]), ([NORTH], [DRY, WET, SNOW]), ([WOLF, SOUTH], [WET, SNOW])],
)
def test_a_row_is_in_the_cell_whose_bits_are_what_holds(left: list[Description], right: list[Description]) -> None:
    """The first description of either view has the lowest bit; cells of the left view are lines."""
    query, rng = TruthCells(3), np.random.default_rng(0)
    codes = np.stack([rng.integers(0, a.size, 90) for a in SCHEMA])
    expected = np.zeros((2 ** len(left), 2 ** len(right)), dtype=np.int64)
    (block,) = dpf.InMemory().load(dpf.Table.from_codes(SCHEMA, codes))
    places = [sum(one.holds(block).astype(int) << k for k, one in enumerate(side)) for side in (left, right)]
    np.add.at(expected, tuple(places), 1)
    for counts in (query.count(block, left=left, right=right), query.tables(left=left, right=right).count(block)):
        assert counts.tolist() == expected.tolist()
    assert expected.sum() == 90


def test_a_query_of_pairs_of_tests_says_how_many_and_how_many_cells() -> None:
    assert TruthCells(3).text == "rows by which of 3 released pairs of tests hold"
    assert (TruthCells(1).answer_length, TruthCells(3).answer_length) == (4, 64)
    assert [(one.add_or_remove_one, one.replace_one) for one in TruthCells(2).sensitivities] == [(1, 2), (1, 2), (1, 1)]
