"""How a tree's budget is divided, in exact fractions, and which depth suits a number of rows."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from dpframework_trees.budgets import depth_for, tree_budget

import dpframework as dpf

CASES = list(itertools.product(("growing", "published"), (0, 1, 2, 5, 6), (0, 2), (False, True)))


@pytest.mark.parametrize(("kind", "depth", "thresholds", "counts"), CASES)
def test_every_path_spends_all_wherever_it_ends(kind: str, depth: int, thresholds: int, counts: bool) -> None:
    """A path that ends at a level has the counts of that and of all above, and the splits of those above."""
    epsilon = Fraction(7, 3)
    budget = tree_budget(kind, epsilon, depth, thresholds=thresholds, counts=counts)
    assert (len(budget.select), len(budget.threshold), len(budget.leaf)) == (depth, depth, depth + 1)
    assert (budget.count > 0) == counts
    splits = [one + thresholds * each for one, each in zip(budget.select, budget.threshold, strict=True)]
    paid = [sum(splits[:level], Fraction(0)) + (level + 1) * budget.count for level in range(depth + 1)]
    if kind == "growing":
        assert {before + leaf for before, leaf in zip(paid, budget.leaf, strict=True)} == {epsilon}
    else:  # every step has the same, so only the longest path spends all
        assert paid[depth] + budget.leaf[depth] == epsilon
        assert len({*budget.select, *budget.threshold, *budget.leaf, *([budget.count] if counts else [])}) == 1


@pytest.mark.parametrize(("counts", "levels"), [(False, Fraction(7, 10)), (True, Fraction(6, 10))])
def test_leaves_have_three_tenths_and_levels_grow_by_the_root_of_two(counts: bool, levels: Fraction) -> None:
    budget = tree_budget("growing", Fraction(1), 6, thresholds=1, counts=counts)
    assert budget.leaf[6] == Fraction(3, 10)
    assert budget.count * 7 == (Fraction(1, 10) if counts else 0)
    weights = (5, 7, 10, 14, 20, 28)  # of which the selection has a half, and the threshold the other
    assert budget.select == budget.threshold == tuple(levels * w / 84 / 2 for w in weights)


def test_a_tree_without_levels_is_a_leaf_with_all_but_the_count() -> None:
    for counts, leaf in ((False, Fraction(1)), (True, Fraction(9, 10))):
        budget = tree_budget("growing", Fraction(1), 0, thresholds=0, counts=counts)
        assert (budget.leaf, budget.count) == ((leaf,), 1 - leaf)


def test_a_budget_of_no_known_kind_is_refused() -> None:
    with pytest.raises(dpf.InputError, match="budget 'grown' is unknown; did you mean 'growing'"):
        tree_budget("grown", Fraction(1), 2, thresholds=0, counts=False)


def test_depths_begin_at_public_numbers_of_rows_times_epsilon() -> None:
    """100, 300 and 1,500: with epsilon 1/2 twice as many rows."""
    depths = {1: 1, 199: 1, 200: 2, 599: 2, 600: 4, 2_999: 4, 3_000: 5, 10**6: 5}
    assert {rows: depth_for(rows, Fraction(1, 2)) for rows in depths} == depths
    assert depth_for(None, Fraction(1, 1000)) == 5
    assert depth_for(0, Fraction(1)) == 1
