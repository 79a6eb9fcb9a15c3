"""The model: sums along a junction tree, the fit, and rows drawn from it, beside sums over all cells."""

import functools
import itertools
import math

import numpy as np
import pytest
from dpframework_tables.candidates import candidate_sets, room_for, tree_for
from dpframework_tables.junction import JunctionTree, cells_of, cliques_of
from dpframework_tables.model import Measurement, beliefs, factors_of, fit
from dpframework_tables.pooling import Pool, residuals_of
from dpframework_tables.sampling import sampled_rows
from hypothesis import given, settings, strategies as st

SIZES = (2, 3, 2, 4, 2)
SETS = [(0,), (1,), (2,), (3,), (4,), (0, 1), (1, 2), (2, 3), (0, 3), (2, 4)]  # a loop of four, and one more


def table_of(rows, of, sizes=SIZES):
    shape = tuple(sizes[a] for a in of)
    cells = np.ravel_multi_index(tuple(rows[:, a].astype(int) for a in of), shape)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(float)


def whole(sizes, sets, potentials):
    """The shares of all cells of the whole table."""
    total = np.zeros(sizes)
    for of, own in zip(sets, potentials, strict=True):
        total = total + own.reshape([sizes[a] if a in of else 1 for a in range(len(sizes))])
    total = np.exp(total)
    return total / total.sum()


def marginal(joint, of):
    return joint.sum(axis=tuple(a for a in range(joint.ndim) if a not in of))


def some_rows(number=4000):
    draw = np.random.default_rng(1)
    rows = draw.integers(0, 12, (number, len(SIZES))) % np.array(SIZES)
    rows[:, 1] = (rows[:, 0] + rows[:, 2] + (draw.random(number) < 0.2)) % 3
    rows[:, 4] = (rows[:, 3] > 1) ^ (draw.random(number) < 0.1)
    return rows


def fitted(variance=4.0, sets=SETS):
    draw, rows = np.random.default_rng(2), some_rows()
    measured = []
    for of in sets:
        exact = table_of(rows, of)
        counts = exact + draw.normal(0, math.sqrt(variance), exact.shape)
        measured.append(Measurement.beside(of, counts, variance, np.full(exact.shape, exact.mean())))
    return rows, fit(JunctionTree.of(SIZES, sets), measured, float(len(rows)))


sets_of_six = st.lists(
    st.sets(st.integers(0, 5), min_size=1, max_size=3).map(lambda one: tuple(sorted(one))), max_size=9
)


@settings(max_examples=60, deadline=None)
@given(sets_of_six, st.permutations(range(6)))
def test_each_set_has_a_clique_and_cliques_of_an_attribute_are_connected(sets, order):
    sizes = (2, 3, 2, 4, 2, 5)
    for cliques in (cliques_of(sizes, sets), cliques_of(sizes, sets, order)):
        tree = JunctionTree.of_cliques(sizes, cliques)
        assert all(
            any(set(one) <= set(clique) for clique in tree.cliques) for one in [*sets, *((a,) for a in range(6))]
        )
        for a in range(6):
            holding = [k for k, clique in enumerate(tree.cliques) if a in clique]
            joined = [k for k in holding if k and a in tree.separator(k)]
            assert len(holding) == len(joined) + 1
        assert all(parent < max(k, 1) for k, parent in enumerate(tree.parents))


@settings(max_examples=30, deadline=None)
@given(sets_of_six, st.integers(0, 2**32 - 1))
def test_sums_along_the_tree_are_those_over_all_cells(sets, seed):
    sizes, draw = (2, 3, 2, 4, 2, 5), np.random.default_rng(seed)
    tree = JunctionTree.of(sizes, sets)
    potentials = [draw.normal(0, 3, [sizes[a] for a in one]) for one in sets]
    shares, _ = beliefs(tree, factors_of(tree, sets, potentials))
    joint = whole(sizes, sets, potentials)
    for clique, own in zip(tree.cliques, shares, strict=True):
        assert own == pytest.approx(marginal(joint, clique), abs=1e-12)


def test_the_fit_arrives_where_its_gradient_is_0():
    rows, model = fitted(variance=10_000.0, sets=SETS[5:])
    assert max(np.abs(one.penalty * own).max() for one, own in zip(model.measured, model.potentials, strict=True)) > 50
    joint = whole(SIZES, [one.of for one in model.measured], model.potentials)
    pool = Pool.of([(one.of, one.residuals, one.variance) for one in model.measured], SIZES)
    for one, potential in zip(model.measured, model.potentials, strict=True):
        own = pool.table(one.of, len(rows)) - one.penalty * potential  # of 4,000 rows, but for a factor that all have
        assert own.sum() * marginal(joint, one.of) == pytest.approx(own, abs=5)


def test_a_model_is_as_near_to_the_exact_tables_as_noise_is():
    rows, model = fitted()
    off = [np.abs(model.marginal(of) - table_of(rows, of)).max() for of in SETS]
    assert max(off) < 12  # of cells of up to a thousand rows; a noise of 2 rows, and the loop is fitted too


def test_a_table_that_is_all_noise_changes_next_to_nothing():
    """In 200 tables of noise, its mean part that is believed is .04; 30 seeds of tables are fixed here."""
    expected, believed = np.outer(np.linspace(2, 18, 12), np.linspace(1, 3, 10)), []
    for seed in range(30):
        noise = np.random.default_rng(seed).normal(0, 200, expected.shape)
        tree = JunctionTree.of(expected.shape, [(0, 1)])
        singles = [expected.sum(axis=1 - a) for a in (0, 1)]
        known = [Measurement.beside((a,), own, 1.0, np.full(own.shape, own.mean())) for a, own in enumerate(singles)]
        measured = [*known, Measurement.beside((0, 1), expected + noise, 200.0**2, expected)]
        moved = fit(tree, measured, float(expected.sum())).marginal((0, 1)) - expected
        believed.append(np.abs(moved).mean() / 200)
    assert np.mean(believed) < 0.06


def test_pooled_tables_are_the_best_that_agree():
    """The table of all attributes that is nearest to what was measured, each count weighted by its variance."""
    sizes, draw, rows = (2, 3, 4), np.random.default_rng(3), 500.0
    sets, variances = [(0,), (1,), (0, 1), (0, 1, 2), (1, 2), (0, 1)], [9.0, 4.0, 25.0, 16.0, 1.0, 3.0]
    tables = [draw.normal(0, 40, [sizes[a] for a in of]) for of in sets]
    cells = np.eye(math.prod(sizes)).reshape(-1, *sizes)
    lines, wanted = [np.full((1, len(cells)), 1e6)], [np.array([1e6 * rows])]  # the number of rows is known
    for of, own, variance in zip(sets, tables, variances, strict=True):
        sums = cells.sum(axis=tuple(1 + a for a in range(3) if a not in of)).reshape(len(cells), -1).T
        lines.append(sums / math.sqrt(variance))
        wanted.append(own.ravel() / math.sqrt(variance))
    best = np.linalg.lstsq(np.concatenate(lines), np.concatenate(wanted), rcond=None)[0].reshape(sizes)
    given = zip(sets, tables, variances, strict=True)
    pool = Pool.of([(of, residuals_of(of, own), variance) for of, own, variance in given], sizes)
    for of in sets:
        assert pool.table(of, rows) == pytest.approx(marginal(best, of), abs=1e-3)


def test_a_pair_makes_the_counts_of_each_attribute_more_exact():
    """Variances add up by their inverses: 100 alone, and 25 in each of two cells of a value by a pair."""
    draw, off = np.random.default_rng(4), []
    for _ in range(300):
        counts = [draw.normal(50, 10, 2), draw.normal(25, 5, (2, 2))]
        tables = [((0,), residuals_of((0,), counts[0]), 100.0), ((0, 1), residuals_of((0, 1), counts[1]), 25.0)]
        off.append(Pool.of(tables, (2, 2)).table((0,), 100)[0] - 50)
    assert np.var(off) == pytest.approx(1 / (1 / 50 + 1 / 25), rel=0.3)  # of half a difference; 3.7 standard errors


@pytest.mark.parametrize("sizes", [(2, 2), (4, 6), (3, 2, 5)])
def test_noise_alone_is_seldom_believed(sizes):
    """In one table of a hundred or fewer: 15 of 300 or more have a probability below 1e-6 (binomial)."""
    draw, rows = np.random.default_rng(5), 3000.0
    shares = [np.arange(1, size + 1) / (size * (size + 1) / 2) for size in sizes]
    alone, of = [rows * own for own in shares], tuple(range(len(sizes)))
    exact = rows * functools.reduce(np.multiply.outer, shares)
    believed = 0
    for _ in range(300):
        noisy = [own + draw.normal(0, 40, own.shape) for own in alone]
        known = [Measurement.beside((a,), own, 40.0**2, np.full(own.shape, own.mean())) for a, own in enumerate(noisy)]
        before = fit(JunctionTree.of(sizes, [(a,) for a in of]), known, rows)
        expected = functools.reduce(np.multiply.outer, [before.marginal((a,)) / rows for a in of]) * rows
        counts = exact + draw.normal(0, 30, exact.shape)
        believed += Measurement.of_several(of, counts, 30.0**2, expected, before).told
    assert believed < 15


def test_what_differs_by_more_than_noise_is_believed():
    known = [Measurement.beside((a,), np.array([50.0, 50.0]), 4.0, np.array([50.0, 50.0])) for a in (0, 1)]
    before, even = fit(JunctionTree.of((2, 2), [(0,), (1,)]), known, 100.0), np.full((2, 2), 25.0)
    assert Measurement.of_several((0, 1), np.array([[40.0, 10.0], [10.0, 40.0]]), 4.0, even, before).told
    assert not Measurement.of_several((0, 1), np.array([[26.0, 24.0], [24.0, 26.0]]), 4.0, even, before).told


def test_rows_are_dealt_out_so_that_tables_err_by_rounding():
    rows, model = fitted()
    drawn = sampled_rows(model, len(rows), seed=5)
    assert np.array_equal(drawn, sampled_rows(model, len(rows), seed=5))
    assert not np.array_equal(drawn, sampled_rows(model, len(rows), seed=6))
    root = model.tree.cliques[0]
    assert np.abs(table_of(drawn, root) - model.marginal(root)).max() < 1
    for of in SETS:  # chance alone would make tens of rows of it
        assert np.abs(table_of(drawn, of) - model.marginal(of)).max() < 8


def test_rows_follow_from_the_seed_with_any_version_of_numpy():
    _, model = fitted(sets=SETS[:1])
    even = fit(model.tree, [Measurement.beside((0,), np.array([5.0, 5.0]), 1.0, np.array([5.0, 5.0]))], 10.0)
    assert sampled_rows(even, 10, seed=1)[:, 0].tolist() == [1, 1, 0, 0, 0, 1, 0, 1, 0, 1]


def test_what_may_be_measured_keeps_the_tree_within_its_cells():
    sizes = (2, 3, 2, 4, 2, 5)
    sets, draw = candidate_sets(sizes, 3, 60), np.random.default_rng(0)
    assert (1, 3, 5) in sets
    assert (1, 3, 5) not in candidate_sets(sizes, 3, 59)
    for most in (30, 60, 120):
        measured = [(a,) for a in range(6)]
        tree = JunctionTree.of(sizes, measured)
        for _ in range(8):
            allowed = room_for(sizes, sets, measured, tree, most)
            for k in set(range(len(sets))) - set(allowed):  # what is refused would not fit in the order of the tree
                assert tree_for(sizes, measured, tree, sets[k]).cells > most or not any(
                    set(sets[k]) <= set(clique) for clique in tree.cliques
                )
            if not allowed:
                break
            one = sets[draw.choice(allowed)]
            tree, measured = tree_for(sizes, measured, tree, one), [*measured, one]
            assert tree.cells <= most
            assert all(any(set(of) <= set(clique) for clique in tree.cliques) for of in measured)


def test_cells_are_those_of_the_cliques():
    assert cells_of((2, 3, 4), [(0, 1), (1, 2)]) == 18
    loop = [*itertools.pairwise(range(4)), (0, 3)]
    assert JunctionTree.of((2, 3, 4, 5), loop).cells == min(2 * 3 * 4 + 2 * 4 * 5, 2 * 3 * 5 + 3 * 4 * 5)
