"""Sets of tests as cells of attributes: each set once, and the rows that all its tests hold for."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from dpframework_trees.queries.literal_sets import sets_of
from dpframework_trees.splits import Candidates

import dpframework as dpf
from dpframework.queries import RowSets

SCHEMA = dpf.Schema(
    [dpf.Categorical("colour", ["red", "green", "blue"]), dpf.Numeric("size", 0, 8, cuts=[3, 5]), dpf.Boolean("ripe")]
)
TESTS = Candidates.of_schema(SCHEMA, SCHEMA.names, multiway=False, cuts=True)
ROWS = np.array(list(itertools.product(*(range(a.size) for a in SCHEMA)))).T


def holds(test: Any) -> Any:
    """Which of the rows a test holds for."""
    block = dpf.InMemory().load(dpf.Table.from_codes(SCHEMA, ROWS))[0]
    return np.asarray(test.holds(block), dtype=bool)


class Places:
    """Notes the tests of each set, and gives sets places in that order."""

    def __init__(self) -> None:
        self.named: list[list[tuple[int, ...]]] = []

    def __call__(self, *tests: Any) -> Any:
        self.named.append([tuple(some) for some in np.stack(tests, axis=1).tolist()])
        return np.arange(len(tests[0]))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_each_set_is_named_once_by_its_tests_in_their_order(order: int) -> None:
    places = Places()
    assert all(isinstance(one, RowSets) for one in sets_of(TESTS, order, places))
    named = sorted(itertools.chain.from_iterable(places.named))
    assert named == sorted(itertools.combinations_with_replacement(range(len(TESTS)), order))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_set_has_the_cells_in_which_all_its_tests_hold(order: int) -> None:
    places, known = Places(), [holds(test) for test in TESTS]
    for rows in sets_of(TESTS, order, places):
        of_row = np.ravel_multi_index([ROWS[SCHEMA.index(a.name)] for a in rows.of], [a.size for a in rows.of])
        for tests, own in zip(places.named[-1], rows.members(), strict=True):
            expected = np.logical_and.reduce([known[t] for t in tests])
            assert own[of_row].astype(bool).tolist() == expected.tolist()
