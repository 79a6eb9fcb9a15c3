"""From noisy counts to a tree: least squares, non-negative counts, mean shares, and errors by C4.5."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from dpframework_trees.tree_estimates import (
    ReleasedNode,
    expected_errors,
    finish,
    make_consistent,
    noise_variance,
    prune_tree,
)
from dpframework_trees.tree_nodes import Inner, Leaf
from scipy.special import betainc

import dpframework as dpf

SPLIT = dpf.Below("size", 3)


def leaf(*counts: float, variance: float = 0.01, rows: tuple[float, float] | None = None) -> ReleasedNode:
    return ReleasedNode(None, (), (np.array(counts, dtype=np.float64), variance), rows)


def node(*children: ReleasedNode, rows: tuple[float, float] | None = None) -> ReleasedNode:
    return ReleasedNode(SPLIT, children, None, rows)


def end(*counts: float) -> Leaf:
    found = np.array(counts, dtype=np.float64)
    return Leaf(found, found / found.sum() if found.sum() else np.full(len(found), 1 / len(found)))


def test_noise_has_a_variance_even_where_there_is_none() -> None:
    def of(variance: float) -> Any:
        return noise_variance(SimpleNamespace(variance=variance))  # type: ignore[arg-type]

    assert (of(2.5), of(1e-9), of(0.0)) == (2.5, 1e-9, 1e-12)


def test_counts_are_the_least_squares_of_leaves_and_of_their_node() -> None:
    """Of three leaves with noise of several sizes, two classes each, and the count of all rows."""
    leaves, variances = np.array([[30.0, 4.0], [2.0, 19.0], [11.0, 12.5]]), np.array([4.0, 1.0, 9.0])
    own, of_own = 60.0, 2.5
    weights = np.concatenate([np.repeat(1 / variances, 2), [1 / of_own]]) ** 0.5
    design = np.concatenate([np.eye(6), np.ones((1, 6))]) * weights[:, np.newaxis]
    expected = np.linalg.lstsq(design, np.array([*leaves.ravel(), own]) * weights, rcond=None)[0].reshape(3, 2)
    few = [leaf(*counts, variance=each) for counts, each in zip(leaves, variances, strict=True)]
    found = make_consistent(node(*few, rows=(own, of_own)))
    assert np.array([child.counts for child in found.children]) == pytest.approx(expected)
    assert found.counts == pytest.approx(expected.sum(axis=0))


def test_a_leafs_own_count_is_weighed_with_the_sum_of_its_classes() -> None:
    """Classes of variance 3 each have a sum of 6; with 2 of the count, 3/4 of what they differ by is taken off."""
    found = make_consistent(leaf(10, 20, variance=3.0, rows=(22.0, 2.0)))
    assert found.counts.tolist() == [7.0, 17.0]


def test_levels_add_up_from_leaves_to_the_root_and_nothing_is_below_0() -> None:
    tree = node(node(leaf(-4, 9, variance=1), leaf(30, 1, variance=3)), leaf(5, 50, variance=2), rows=(100.0, 1.0))
    top = make_consistent(tree)
    below, beside = top.children
    assert top.counts == pytest.approx(below.counts + beside.counts)
    assert below.counts == pytest.approx(below.children[0].counts + below.children[1].counts)
    # 91 in all, and 100 counted: of variances 12 and 1 a share of 12/13 of 9 rows, half of it a class, is spread in
    # proportion to 4 : 2, and of the 4 as 1 : 3
    each = 9 * 12 / 13 / 2
    assert beside.counts == pytest.approx(np.array([5, 50]) + each / 3)
    assert below.children[0].counts == pytest.approx(np.array([-4, 9]) + each / 6)
    assert below.children[1].counts == pytest.approx(np.array([30, 1]) + each / 2)
    whole = finish(top)
    assert isinstance(whole, Inner)
    assert isinstance(whole.children[0], Inner)
    assert whole.split == SPLIT
    assert whole.children[0].children[0].counts.tolist() == [max(-4 + each / 6, 0), pytest.approx(9 + each / 6)]
    assert whole.children[1].counts == pytest.approx(beside.counts)


def test_a_nodes_probabilities_are_those_of_its_rows() -> None:
    """With next to no noise those are the shares of the counts, on every level."""
    whole = finish(make_consistent(node(node(leaf(900, 100), leaf(500, 1500)), leaf(1000, 4000))))
    assert isinstance(whole, Inner)
    inner = whole.children[0]
    assert isinstance(inner, Inner)
    leaves = [*inner.children, whole.children[1]]
    for found, counts in zip(
        [whole, inner, *leaves], [(2400, 5600), (1400, 1600), (900, 100), (500, 1500), (1000, 4000)], strict=True
    ):
        assert found.counts.tolist() == list(counts)
        assert found.probabilities.sum() == pytest.approx(1)
        assert found.probabilities == pytest.approx(np.array(counts) / sum(counts), abs=2e-3)


def test_rows_of_leaves_are_drawn_towards_their_mean_by_the_noise_of_all_their_classes() -> None:
    """Two classes of variance 400 have a sum of 800. Of a mean of 60 that leaves 60**2 / (60**2 + 2 * 800) = 9/13."""
    whole = finish(make_consistent(node(leaf(80, 20, variance=400), leaf(10, 10, variance=400))))
    assert isinstance(whole, Inner)
    rows = np.array([9 * 100 + 4 * 60, 9 * 20 + 4 * 60]) / 13
    shares = np.array([child.probabilities for child in whole.children])
    assert whole.probabilities == pytest.approx(rows @ shares / 120, rel=1e-12)


def test_errors_are_those_of_the_class_that_is_predicted() -> None:
    """Without an error among N rows the limit is 1 - (1/4)**(1/N), also of half a row. Where none is right, it is 1."""
    assert expected_errors([0.5, 0], [1, 0]) == pytest.approx(0.5 * (1 - 0.25**2))
    assert expected_errors([0, 1, 0], [0, 1, 0]) == pytest.approx(0.75)
    assert expected_errors([3, 0], [0, 1]) == 3
    assert expected_errors([0, 0], [0.5, 0.5]) == 0
    # one wrong of two: Pr[at most 1 of 2 is wrong] = 1 - p**2 is 1/4 at p = sqrt(3) / 2
    assert expected_errors([1, 1], [0.6, 0.4]) == pytest.approx(2 * np.sqrt(3) / 2)
    for right, wrong in ((40.5, 3.25), (900, 2e4), (3.3e6, 2.1e4)):
        limit = expected_errors([right, wrong], [1, 0]) / (right + wrong)
        assert betainc(wrong + 1, right, limit) == pytest.approx(0.75, rel=1e-7)


def test_a_split_is_pruned_where_it_saves_nothing_even_if_it_costs_nothing() -> None:
    """A leaf without rows has no errors, so both sides of the comparison are equal."""
    alike = Inner(SPLIT, (end(50, 10), end(0, 0)), np.array([50.0, 10.0]), np.array([5 / 6, 1 / 6]))
    found = prune_tree(alike)
    assert isinstance(found, Leaf)
    assert found.counts.tolist() == [50, 10]
    assert found.probabilities.tolist() == [5 / 6, 1 / 6]


def test_a_split_stays_where_it_saves_less_than_one_error() -> None:
    """Of 58 rows five are wrong, and four where a test finds one of them: about a third of an error by the limits."""
    saved = Inner(SPLIT, (end(53, 4), end(0, 1)), np.array([53.0, 5.0]), np.array([53 / 58, 5 / 58]))
    errors = sum(expected_errors(one.counts, one.probabilities) for one in saved.children)
    assert 0.01 < expected_errors(saved.counts, saved.probabilities) - errors < 1
    assert isinstance(prune_tree(saved), Inner)


def test_pruning_goes_from_the_leaves_up() -> None:
    """A split above stays, whose own left side is joined: what is below it counts as it will be shown."""
    useless = Inner(SPLIT, (end(50, 10), end(48, 12)), np.array([98.0, 22.0]), np.array([98 / 120, 22 / 120]))
    tree = Inner(SPLIT, (useless, end(2, 60)), np.array([100.0, 82.0]), np.array([100 / 182, 82 / 182]))
    found = prune_tree(tree)
    assert isinstance(found, Inner)
    assert [type(child) for child in found.children] == [Leaf, Leaf]
    assert found.children[0].counts.tolist() == [98, 22]
    assert found.counts.tolist() == [100, 82]
