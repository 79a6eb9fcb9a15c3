"""The posterior of leaves' class shares: against plain sums, against draws from its own model, and at its limits."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest
from dpframework_trees.leaf_shares import (
    CELLS,
    EDGES,
    LEAF_CONCENTRATIONS,
    LEAST,
    MIDDLES,
    NODE_CONCENTRATIONS,
    NoisyLeaves,
    estimate_rows,
    posterior_shares,
)
from hypothesis import given, settings, strategies as st
from scipy.integrate import quad
from scipy.special import gammainc

TREE = ((0, 1), 2)


def leaves_of(counts, variance: float, rows=None) -> NoisyLeaves:
    counts = np.array(counts, dtype=np.float64)
    variances = np.full(len(counts), float(variance))
    if rows is None:
        rows = estimate_rows(counts.sum(axis=1), variances * counts.shape[1])
    return NoisyLeaves(counts, variances, np.asarray(rows, dtype=np.float64))


def cell_of_a_count(leaves: NoisyLeaves, leaf: int, c: int, cell: int) -> tuple[float, float]:
    """Return a cell's mean likelihood and the mean share by it, by numeric integration."""
    rows, count = leaves.rows[leaf], max(leaves.counts[leaf, c], 0)
    b = math.sqrt((leaves.variances[leaf] + rows * MIDDLES[cell]) / 2)
    low, high = EDGES[cell], EDGES[cell + 1]
    kink = [count / rows] if low < count / rows < high else None

    def likely(g: float) -> float:
        return math.exp(-abs(rows * g - count) / b) / b

    whole = quad(likely, low, high, points=kink)[0]
    return whole / (high - low), quad(lambda g: g * likely(g), low, high, points=kink)[0] / whole


def steps(a: float) -> np.ndarray:
    p = np.eye(CELLS) if math.isinf(a) else np.diff(gammainc(a * MIDDLES[:, None], a * EDGES), axis=1)
    p = p + LEAST
    return p / p.sum(axis=1, keepdims=True)


def sum_of_tree(prior: np.ndarray, node: np.ndarray, leaf: np.ndarray, p: Any) -> float:
    """Return the sum over the cells of all nodes of `TREE`, with a number for each leaf's cells."""
    return float(np.einsum("r,rm,mi,i,mj,j,rk,k->", prior, node, leaf, p[0], leaf, p[1], leaf, p[2], optimize=True))


def shares_by_plain_sums(leaves: NoisyLeaves) -> np.ndarray:
    """Return the posterior of the leaves of `TREE`, by a sum over all cells for each leaf, class and concentration."""
    classes = leaves.counts.shape[1]
    prior = np.diff(-np.exp(-classes * EDGES)) + LEAST
    found = np.array(
        [[[cell_of_a_count(leaves, k, c, cell) for cell in range(CELLS)] for c in range(classes)] for k in range(3)]
    )
    total, shares = 0.0, np.zeros((3, classes))
    for of_node in NODE_CONCENTRATIONS:
        for of_leaf in LEAF_CONCENTRATIONS:
            node, leaf = steps(of_node), steps(of_leaf)
            weight, expected = of_leaf**-0.5, np.zeros((3, classes))
            for c in range(classes):
                p, means = found[:, c, :, 0], found[:, c, :, 1]
                for k in range(3):
                    expected[k, c] = sum_of_tree(
                        prior, node, leaf, [p[j] * means[j] if j == k else p[j] for j in range(3)]
                    )
                whole = sum_of_tree(prior, node, leaf, p)
                weight *= whole
                expected[:, c] /= whole
            total += weight
            shares += weight * expected
    shares /= total
    return shares / shares.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("counts", "variance"),
    [
        ([[30, -8], [12, 25], [3, 40]], 60.0),
        ([[9.0, 1, -4], [-6, 14, 2], [0, 3, 21]], 20.0),
        ([[5, 5], [60, 0], [0, 2]], 0.5),
    ],
)
def test_the_posterior_is_the_sum_over_all_shares_and_concentrations(counts, variance):
    leaves = leaves_of(counts, variance)
    assert posterior_shares(TREE, leaves) == pytest.approx(shares_by_plain_sums(leaves), abs=1e-6)


def test_without_noise_many_rows_have_their_own_shares():
    counts = [[9_000, 1_000], [100, 900], [0, 5_000]]
    own = np.array([[0.9, 0.1], [0.1, 0.9], [0.0, 1.0]])
    assert posterior_shares(TREE, leaves_of(counts, 1e-12)) == pytest.approx(own, abs=0.01)


def test_a_leaf_whose_counts_are_noise_has_the_shares_of_its_branch():
    leaves = leaves_of([[450, 50], [250, 250], [460, 40], [20, 480], [30, 470], [10, 490]], 4)
    leaves = attrs.evolve(leaves, variances=np.array([4, 1e8, 4, 4, 4, 4]), rows=np.full(6, 500.0))
    in_branch = posterior_shares(((0, 1, 2), (3, 4, 5)), leaves)[1, 0]
    below_root = posterior_shares((0, 1, 2, 3, 4, 5), leaves)[1, 0]
    assert below_root < 0.6 < 0.75 < in_branch < 0.95


def test_where_all_is_noise_every_leaf_has_even_shares():
    found = posterior_shares(TREE, leaves_of([[90, -80, 5], [1, 2, 3], [-50, 70, 0]], 1e12, rows=[50, 50, 50]))
    assert found == pytest.approx(np.full((3, 3), 1 / 3), abs=0.01)


@pytest.mark.parametrize("classes", [2, 60])
def test_many_sure_leaves_have_their_own_shares(classes):
    """What they tell together is beyond floats, whose logarithms it is not."""
    counts = np.eye(classes)[np.arange(120) % classes] * 10_000
    for tree in (tuple(range(120)), (tuple(range(60)), tuple(range(60, 120)))):
        assert posterior_shares(tree, leaves_of(counts, 1e-6)) == pytest.approx(counts / 10_000, abs=0.03)


def test_counts_far_above_the_estimated_rows_have_shares():
    found = posterior_shares(TREE, leaves_of([[1e12, 0], [3, 1], [0, 1e9]], 1, rows=[1, 4, 3]))
    assert (found >= 0).all()
    assert found.sum(axis=1) == pytest.approx(np.ones(3))


def test_a_count_below_0_tells_what_0_does():
    leaves = leaves_of([[30, -8], [12, 25], [3, 40]], 60)
    none = attrs.evolve(leaves, counts=np.maximum(leaves.counts, 0))
    assert (posterior_shares(TREE, leaves) == posterior_shares(TREE, none)).all()


def test_a_tree_without_a_test_has_the_shares_of_all_rows():
    leaves = leaves_of([[600, 300, 100]], 1)
    assert posterior_shares(0, leaves) == pytest.approx(np.array([[0.6, 0.3, 0.1]]), abs=0.02)
    assert (posterior_shares(0, leaves) == posterior_shares((0,), leaves)).all()


def test_the_order_of_classes_and_of_leaves_does_not_matter():
    leaves = leaves_of([[30, -8, 2], [12, 25, 1], [3, 40, 9]], 60)
    found = posterior_shares(TREE, leaves)
    assert (found == posterior_shares(TREE, leaves)).all()  # nothing is drawn
    for classes in ([2, 0, 1], [1, 0, 2]):
        others = attrs.evolve(leaves, counts=leaves.counts[:, classes])
        assert posterior_shares(TREE, others) == pytest.approx(found[:, classes], abs=1e-9)
    turned = NoisyLeaves(leaves.counts[::-1], leaves.variances[::-1], leaves.rows[::-1])
    assert posterior_shares((0, (1, 2)), turned) == pytest.approx(found[::-1], abs=1e-9)


def world(rng: np.random.Generator, classes: int) -> tuple[NoisyLeaves, np.ndarray]:
    """Draw leaves of `TREE` and their true shares as the model has them, with sums of 1."""

    def around(shares, a):
        drawn = rng.dirichlet(np.maximum(a * shares, 1e-3)) if a < math.inf else shares
        return drawn / drawn.sum()

    deviations = np.array(LEAF_CONCENTRATIONS) ** -0.5
    of_leaf, of_node = rng.choice(LEAF_CONCENTRATIONS, p=deviations / deviations.sum()), rng.choice(NODE_CONCENTRATIONS)
    root = rng.dirichlet(np.ones(classes))
    node = around(root, of_node)
    shares = np.array([around(mean, of_leaf) for mean in (node, node, root)])
    rows, b = rng.uniform(50, 150, 3), 20.0
    counts = rng.poisson(rows[:, None] * shares) + rng.laplace(0, b, (3, classes))
    return NoisyLeaves(counts, np.full(3, 2 * b**2), rows), shares


@pytest.mark.parametrize("classes", [5, 12])
def test_shares_are_nearer_to_the_truth_than_a_leaf_alone_tells(classes):
    """Of 300 trees drawn from the model the mean log-loss is lower by seven standard errors or more.

    So with other draws it would be higher with a probability below 1e-11.
    """
    rng, lower = np.random.default_rng(0), []
    for _ in range(300):
        leaves, shares = world(rng, classes)
        alone = np.maximum(leaves.counts, 0) + 10  # half of the noise, for which this is about best
        alone /= alone.sum(axis=1, keepdims=True)
        lower.append((shares * np.log(posterior_shares(TREE, leaves) / alone)).sum(axis=1).mean())
    assert np.mean(lower) > 7 * np.std(lower) / math.sqrt(300)


@settings(max_examples=50, deadline=None)
@given(
    st.integers(2, 6).flatmap(
        lambda classes: st.lists(
            st.lists(st.integers(-(10**6), 10**9), min_size=classes, max_size=classes), min_size=3, max_size=3
        )
    ),
    st.floats(1e-12, 1e12),
)
def test_any_counts_have_shares(counts, variance):
    found = posterior_shares(TREE, leaves_of(counts, variance))
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert found.sum(axis=1) == pytest.approx(np.ones(3))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8), st.floats(0, 1e12))
def test_estimated_rows_are_between_the_counted_and_their_mean(totals, variance):
    counted = np.array(totals)
    found, mean = estimate_rows(counted, np.full(len(totals), variance)), max(float(np.mean(totals)), 1.0)
    counted = np.maximum(counted, 0)
    assert (found >= np.maximum(np.minimum(counted, mean), 1) * (1 - 1e-9)).all()
    assert (found <= np.maximum(np.maximum(counted, mean), 1) * (1 + 1e-9)).all()


def test_rows_are_estimated_by_how_much_noise_there_is():
    found = estimate_rows(np.array([20.0, 60]), np.array([400.0, 400]))
    assert found == pytest.approx([80 / 3, 160 / 3])  # a third of the mean and two of what was counted
    assert estimate_rows(np.array([-10.0, 60]), np.full(2, 100.0)) == pytest.approx(
        [25 * 200 / 825, (60 * 625 + 5_000) / 825]
    )
    assert estimate_rows(np.array([-3.0, -5]), np.zeros(2)).tolist() == [1, 1]
