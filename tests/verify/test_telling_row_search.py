"""Rows on which a query changes most: found one attribute at a time, and at numbers that its code names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
from hypothesis import example, given, settings, strategies as st

import dpframework as dpf
from dpframework.verify.queries.telling_row_search import answer_among, climb_rows, find_telling_rows
from dpframework.verify.tables.neighbours import MOST_KINDS, Universe

NAMES = [f"n{k}" for k in range(6)]
SCHEMA = dpf.Schema([dpf.Numeric(name, 0, 4, bins=4) for name in NAMES])
SMALL = dpf.Schema([dpf.Boolean("a"), dpf.Boolean("b")])
WEIGHTS = st.lists(st.sampled_from([-3, -1, 1, 2]), min_size=6, max_size=6)


@attrs.frozen
class Weighed(dpf.Query):
    """The sum of weighted values, of each row whose first value is not the one left out."""

    name = "weighed"
    integer = False
    answer_length = 1
    sensitivities = (dpf.Sensitivity("l1", 1000, source="a test"),)
    weights: tuple[int, ...] = ()

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.array([sum(w * block.values(name).sum() for w, name in zip(self.weights, NAMES, strict=True))])


@attrs.frozen
class Marked(dpf.Query):
    """Counts a row a hundredfold if a value is the mark of a missing one, as its author thought."""

    name = "marked"
    integer = False
    answer_length = 1
    sensitivities = (dpf.Sensitivity("l1", 1, source="a test"),)

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.array([1.0 + 99.0 * float((block.values("n0") == 2.71875).sum()) * (block.rows > 0)])


def answers(query: dpf.Query) -> Callable[[Universe, bytes], Any]:
    return functools.partial(answer_among, query, (), {})


@settings(max_examples=10)
@given(WEIGHTS)
@example([-3, 1, 2, -1, -1, 1])  # the climb towards any change ends at a rise of 16, and a fall of 20 is larger
def test_the_climb_ends_at_the_corner_where_a_weighted_sum_is_largest(weights: list[int]) -> None:
    universe = Universe(SCHEMA)
    assert universe.sampled
    climbed = climb_rows(universe, answers(Weighed(tuple(weights))), 0)
    assert climbed is not None
    found = universe.among(climbed)
    changes = [
        sum(w * float(found.block(bytes((kind,))).values(name)[0]) for w, name in zip(weights, NAMES, strict=True))
        for kind in range(3)
    ]
    rises, falls = 4 * sum(w for w in weights if w > 0), 4 * sum(w for w in weights if w < 0)
    assert abs(changes[0]) == max(rises, -falls)
    assert changes[1:] == [rises, falls]


def test_an_attribute_with_one_value_is_left_as_it_is() -> None:
    """It has no other value to try, and does not end the climb."""
    universe = Universe(dpf.Schema([dpf.Categorical("land", ["A"]), *SCHEMA.attributes]))
    climbed = climb_rows(universe, answers(Weighed((1, 2, 3, 1, 2, 3))), 0)
    assert climbed is not None
    (best,) = {float(universe.among(climbed).block(bytes((kind,))).values("n0")[0]) for kind in (0, 1)}
    assert best == 4


def test_all_kinds_of_rows_are_searched_where_they_are_few() -> None:
    query = dpf.queries.Histogram(SMALL["a"])
    assert find_telling_rows(query, Universe(SMALL), answers(query), 0) is None


def test_a_number_that_the_code_names_is_put_into_a_cell() -> None:
    query = Marked()
    found = find_telling_rows(query, Universe(SCHEMA), answers(query), 0)
    assert found is not None
    assert found.kinds <= MOST_KINDS
    values = [float(found.block(bytes((kind,))).values("n0")[0]) for kind in range(found.kinds)]
    assert 2.71875 in values


def test_a_query_that_fails_on_a_row_is_left_to_the_search() -> None:
    def fails(universe: Universe, rows: bytes) -> Any:
        raise ValueError

    assert climb_rows(Universe(SCHEMA), fails, 0) is None
