"""Unions of leaves that grow: their index never falls, and they hold what the tables of their leaves say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from dpframework_trees.kernels.leaf_unions import Unions, grow_unions
from hypothesis import given, settings, strategies as st


def grown(table: Any, variance: float = 0.0, most: int = 3) -> tuple[Any, int]:
    """The unions from all starts, shape (4, left, right, leaves): as a leaf or all but it, on either side."""
    left, right = table.shape
    both = np.zeros((left + right, left + right))
    both[:left, left:], both[left:, :left] = table, table.T
    pair = Unions(
        both,
        np.array(table.shape, dtype=np.int64),
        np.concatenate([table.sum(axis=1), table.sum(axis=0)]),
        float(table.sum()),
        np.zeros(left + right),
        np.zeros(2, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
        np.zeros(3),
    )
    unions = np.zeros((4 * left * right, left + right), dtype=bool)
    looked_at = grow_unions(pair, variance, most, unions)
    return unions.reshape(4, left, right, left + right), looked_at


def index(table: Any, union: Any, variance: float = 0.0) -> float:
    """The Jaccard index of two unions less two deviations of its noise, from the table alone."""
    left, right = union[: len(table)], union[len(table) :]
    both = max(table[left][:, right].sum(), 0.0)
    apart = max(table[left][:, ~right].sum() + table[~left][:, right].sum(), 0.0)
    if both + apart <= 0:
        return -1.0
    jaccard = both / (both + apart)
    cells = left.sum() * right.sum(), left.sum() * (~right).sum() + (~left).sum() * right.sum()
    noise = (1 - jaccard) ** 2 * cells[0] + jaccard**2 * cells[1]
    return float(jaccard - 2 * math.sqrt(noise * variance) / (both + apart))


def starts(table: Any) -> Any:
    """The unions that are grown from, in the order of `grown`."""
    left, right = table.shape
    found = np.zeros((4, left, right, left + right), dtype=bool)
    for turned, a, b in np.ndindex(4, left, right):
        one, other = np.arange(left) == a, np.arange(right) == b
        found[turned, a, b] = np.concatenate([~one if turned >> 1 & 1 else one, ~other if turned & 1 else other])
    return found


TABLES = st.tuples(st.integers(2, 4), st.integers(2, 4), st.integers(0, 2**32 - 1)).map(
    lambda of: np.random.default_rng(of[2]).integers(1, 50, of[:2]).astype(float)
)


@settings(max_examples=40, deadline=None)
@given(TABLES, st.sampled_from([0.0, 4.0]))
def test_a_union_is_at_least_as_good_as_its_start_and_cannot_be_improved(table: Any, variance: float) -> None:
    unions, _ = grown(table, variance, most=9)
    for union, start in zip(
        unions.reshape(-1, unions.shape[-1]), starts(table).reshape(-1, unions.shape[-1]), strict=True
    ):
        reached = index(table, union, variance)
        assert reached >= index(table, start, variance) - 1e-9
        for leaf in np.flatnonzero(~union):
            more = union.copy()
            more[leaf] = True
            assert index(table, more, variance) <= reached + 1e-9


@settings(max_examples=20, deadline=None)
@given(TABLES)
def test_without_growth_unions_are_their_starts(table: Any) -> None:
    unions, looked_at = grown(table, most=0)
    assert np.array_equal(unions, starts(table))
    assert looked_at == 4 * table.size  # of the second leaf of each start


def test_blocks_of_a_table_are_found_from_each_of_their_leaves() -> None:
    table = np.kron(np.eye(2), np.full((2, 2), 50.0)) + 1
    unions, _ = grown(table)
    for a, b in [(0, 0), (0, 1), (1, 0), (1, 1)]:
        assert unions[0, a, b].tolist() == [True, True, False, False] * 2


@pytest.mark.parametrize("most", [1, 2])
def test_a_side_grows_no_more_often_than_it_may(most: int) -> None:
    unions, _ = grown(np.kron(np.eye(2), np.full((4, 4), 50.0)) + 1, most=most)
    alone = unions[0, :4, :4]  # from a leaf on either side, of one block
    assert alone[..., :8].sum(axis=-1).max() <= 1 + most
    assert alone[..., 8:].sum(axis=-1).max() <= 1 + most
