"""Methods of synthetic tables: a plan spends the whole budget, whatever the method and the rounds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import attrs
import pytest
from dpframework_tables.methods import TableMethod
from dpframework_tables.table_budget import TableBudget
from hypothesis import given, settings, strategies as st

import dpframework as dpf
from dpframework.plan import sequential

SIZES = st.lists(st.integers(2, 6), min_size=1, max_size=5)
ROUNDS = st.integers(1, 12)


def method(
    name: str, sizes: list[int], *, zcdp: bool = False, rounds: int = 3, back: int = 0, **more: Any
) -> TableMethod:
    among = tuple(dpf.Categorical(f"a{k}", [str(v) for v in range(size)]) for k, size in enumerate(sizes))
    budget = TableBudget(Fraction(1, 2), zcdp=False)
    usual = {"order": 2, "max_cells": 10_000, "most_cells": None, "rows": None, "most_rows": 100, "about_rows": None}
    return TableMethod(name, among, budget, Fraction(1, 3), rounds, given_back=back, **{**usual, **more})


def spent(own: TableMethod) -> Fraction | None:
    study = dpf.Study(dpf.Schema(own.among, max_rows=100), epsilon=9)
    study.add_plan("table", sequential(*own.plan().values()))
    return study.plan().smallest_epsilon()


@settings(max_examples=25)
@given(st.sampled_from(["independent", "tree", "rounds", "adaptive"]), SIZES, ROUNDS, st.integers(0, 2))
def test_a_plan_in_pure_epsilon_spends_all_of_it_and_no_more(
    name: str, sizes: list[int], rounds: int, back: int
) -> None:
    own = method(name, sizes, rounds=rounds, back=min(back, rounds - 1) if name == "rounds" else 0)
    assert spent(own) == Fraction(1, 2)


@settings(max_examples=50)
@given(st.sampled_from(["tree", "rounds"]), SIZES, ROUNDS)
def test_stages_grow_and_make_up_all_rounds(name: str, sizes: list[int], rounds: int) -> None:
    own = method(name, sizes, rounds=rounds)
    assert sum(own.stages) == own.times <= rounds
    assert own.stages[:-1] == [own.stages[0] << k for k in range(len(own.stages) - 1)]  # each twice the one before
    if name == "tree":
        assert own.stages[:1] == [1] * (own.times > 0)
        assert own.times <= len(sizes) - 1


@settings(max_examples=50)
@given(st.sampled_from(["tree", "rounds"]), SIZES, st.integers(1, 3), st.integers(20, 200))
def test_a_marginal_that_may_be_selected_has_room(name: str, sizes: list[int], order: int, cells: int) -> None:
    own = method(name, sizes, order=order, max_cells=cells)
    most = 2 if name == "tree" else order
    for one in own.sets:
        assert 2 <= len(one) <= most
        product = 1
        for a in one:
            product *= sizes[a]
        assert product <= cells


def test_one_attribute_and_independence_select_nothing() -> None:
    assert method("rounds", [4]).times == method("independent", [3, 3]).times == 0
    assert method("rounds", [3, 3]).times == 3
    assert method("rounds", [3, 3], back=1).times == 2


@pytest.mark.parametrize("most", [None, 5, 9, 100])
def test_no_marginal_is_larger_than_noise_allows_but_the_smallest_pair(most: int | None) -> None:
    sets = method("rounds", [3, 3, 6], most_cells=most).sets
    sizes = sorted(attrs.evolve(method("rounds", [3, 3, 6])).sizes[a] for one in sets for a in one)
    assert sizes == ([3, 3] if most in (5, 9) else [3, 3, 3, 3, 6, 6])
