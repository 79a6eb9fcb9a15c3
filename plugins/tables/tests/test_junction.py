"""Junction trees beside what the words say, and budgets of tables beside the mechanisms that they pay for."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from dpframework_tables.candidates import candidate_sets, room_for, tree_for
from dpframework_tables.junction import JunctionTree, cells_of, cliques_of, elimination_order
from dpframework_tables.sampling import Draws, _cell_of, _deal
from dpframework_tables.table_budget import TableBudget

from dpframework.mechanisms import DiscreteLaplace, Exponential, Gaussian, PermuteAndFlip

Sets = Sequence[tuple[int, ...]]


def graphs(number: int = 40) -> list[tuple[list[int], list[tuple[int, ...]]]]:
    """Sizes and sets of positions, drawn at random."""
    rng, found = np.random.default_rng(5), []
    for _ in range(number):
        attributes = int(rng.integers(1, 8))
        sizes = rng.integers(2, 6, attributes).tolist()
        sets = [
            tuple(sorted(rng.choice(attributes, min(attributes, int(rng.integers(1, 4))), replace=False).tolist()))
            for _ in range(int(rng.integers(0, 8)))
        ]
        found.append((sizes, sets))
    return found


def edges(sets: Sets) -> set[frozenset[int]]:
    return {frozenset(pair) for one in sets for pair in itertools.combinations(one, 2)}


def cost_of(a: int, sizes: list[int], left: set[int], joined: set[frozenset[int]]) -> tuple[int, int, int]:
    """The edges that eliminating an attribute adds, the cells of its clique, and its place."""
    near = [b for b in left if frozenset((a, b)) in joined]
    added = sum(frozenset(pair) not in joined for pair in itertools.combinations(near, 2))
    return added, math.prod(sizes[b] for b in (a, *near)), a


@pytest.mark.parametrize(("sizes", "sets"), graphs())
def test_attributes_are_eliminated_by_the_edges_that_this_adds_then_by_cells(sizes: list[int], sets: Sets) -> None:
    """By the definition, with a set of edges; cliques are those met on the way that no earlier one holds."""
    left, joined, expected, cliques = set(range(len(sizes))), edges(sets), [], []
    while left:
        a = min(left, key=functools.partial(cost_of, sizes=sizes, left=left, joined=joined))
        near = [b for b in left if frozenset((a, b)) in joined]
        clique = {a, *near}
        if not any(clique <= other for other in cliques):
            cliques.append(clique)
        joined |= edges([tuple(near)])
        left.remove(a)
        expected.append(a)
    assert elimination_order(sizes, sets) == expected
    assert [set(clique) for clique in cliques_of(sizes, sets)] == cliques


@pytest.mark.parametrize(("sizes", "sets"), graphs(25))
def test_a_tree_has_the_largest_separators_and_a_home_for_each_set(sizes: list[int], sets: Sets) -> None:
    tree = JunctionTree.of(sizes, sets)
    cliques = list(map(set, tree.cliques))
    assert tree.parents[0] == 0
    assert all(parent < k for k, parent in enumerate(tree.parents) if k)
    assert tree.separator(0) == ()
    for k in range(1, len(cliques)):
        own = tree.separator(k)
        assert set(own) == cliques[k] & cliques[tree.parents[k]]
        assert list(own) == sorted(own)
        # no other clique before it shares more, nor does a clique behind it with one before it
        assert len(own) == max(
            len(cliques[later] & cliques[before]) for later in range(k, len(cliques)) for before in range(k)
        )
    assert (
        tree.cells
        == sum(math.prod(sizes[a] for a in clique) for clique in tree.cliques)
        == cells_of(sizes, tree.cliques)
    )
    for one in sets:
        home = tree.home(one)
        holding = [k for k, clique in enumerate(cliques) if set(one) <= clique]
        assert home in holding
        assert math.prod(tree.shape(tree.cliques[home])) == min(math.prod(tree.shape(tree.cliques[k])) for k in holding)
    with pytest.raises(KeyError):
        tree.home((0, 99))


@pytest.mark.parametrize(("sizes", "sets"), graphs(12))
def test_a_set_may_be_measured_if_a_tree_with_it_is_small_enough(sizes: list[int], sets: Sets) -> None:
    alone = [(a,) for a in range(len(sizes))]
    measured = [*alone, *sets[:3]]
    now = JunctionTree.of(sizes, measured)
    wanted = candidate_sets(sizes, 3, 60)
    assert wanted == [
        one
        for one in sorted(one for k in (2, 3) for one in itertools.combinations(range(len(sizes)), k))
        if math.prod(sizes[a] for a in one) <= 60
    ]
    for most in (now.cells - 1, now.cells, now.cells + 30):
        places = room_for(sizes, wanted, measured, now, most)
        for k, one in enumerate(wanted):
            grown = tree_for(sizes, measured, now, one)
            assert any(set(one) <= set(clique) for clique in grown.cliques)
            if k in places:
                assert grown.cells <= most
            elif any(set(one) <= set(clique) for clique in now.cliques):
                assert now.cells > most
                assert grown == now


@pytest.mark.parametrize(("zcdp", "amount"), [(False, Fraction(2)), (True, Fraction(1, 2))])
def test_a_budget_pays_for_mechanisms_by_its_notion_of_loss(zcdp: bool, amount: Fraction) -> None:
    budget = TableBudget(amount, zcdp)
    assert budget.cost(Fraction(1, 4)) == {"rho" if zcdp else "epsilon": amount / 4}
    epsilon = budget.epsilon_of_selection(Fraction(1, 4))
    if zcdp:
        assert epsilon**2 / 8 <= amount / 4 < (epsilon + Fraction(1, 10**12)) ** 2 / 8
        assert budget.selector(Fraction(1, 4)) == Exponential(epsilon)
        assert budget.counter(Fraction(1, 4)) == Gaussian(amount / 4)
        assert budget.size_of_noise(9.0) == pytest.approx(
            3 * math.sqrt(2 / math.pi)
        )  # the mean size of a normal number
    else:
        assert epsilon == amount / 4
        assert budget.selector(Fraction(1, 4)) == PermuteAndFlip(epsilon)
        assert budget.counter(Fraction(1, 4)) == DiscreteLaplace(amount / 4)
        assert budget.size_of_noise(2 * 9.0) == pytest.approx(3)  # of Laplace noise of scale 3


# Rows of a model


def test_numbers_from_a_seed_are_below_1_and_orders_are_of_all_places() -> None:
    first, again = Draws(3).numbers(1_000), Draws(3).numbers(1_000)
    assert first.tolist() == again.tolist() != Draws(4).numbers(1_000).tolist()
    assert 0 <= first.min() < 0.01
    assert 0.99 < first.max() < 1
    assert np.histogram(first, 10, (0, 1))[0].min() > 60
    assert (first * 2.0**53 % 1 == 0).all()
    assert sorted(Draws(3).order(50).tolist()) == list(range(50))


def test_cells_are_numbered_row_by_row() -> None:
    rows = np.array(list(itertools.product(range(2), range(3), range(4))), dtype=np.uint16)
    assert _cell_of(rows, (0, 1, 2), (2, 3, 4)).tolist() == list(range(24))
    assert _cell_of(rows, (2,), (4,)).tolist() == rows[:, 2].tolist()
    assert _cell_of(rows, (), ()).tolist() == [0] * 24


def test_rows_are_dealt_in_proportion_to_their_line_within_one_row() -> None:
    table = np.array([[1.0, 2, 1], [0, 0, 5], [-1, 3, 1], [0, 0, 0]])
    given = np.repeat(np.arange(4), [400, 7, 80, 30])
    rng = np.random.default_rng(0)
    rng.shuffle(given)
    cells = _deal(table, given, Draws(1))
    for line, shares in enumerate(([0.25, 0.5, 0.25], [0, 0, 1], [0, 0.75, 0.25], [1 / 3] * 3)):
        dealt = np.bincount(cells[given == line], minlength=3)
        assert np.abs(dealt - np.array(shares) * (given == line).sum()).max() <= 1
    assert np.corrcoef(np.arange(400), cells[given == 0])[0, 1] == pytest.approx(0, abs=0.2)  # in random order
