"""The model: sums along a junction tree, the fit, and rows drawn from it, beside sums over all cells."""

import functools
import itertools
import math

import attrs
import numpy as np
import pytest
from dpframework_tables.candidates import candidate_sets, room_for, tree_for
from dpframework_tables.junction import JunctionTree, cells_of, cliques_of
from dpframework_tables.merged_model import MergedModel
from dpframework_tables.merging import Merging
from dpframework_tables.model import Measurement, beliefs, factors_of, fit
from dpframework_tables.residual_pooling import Pool, residuals_of
from dpframework_tables.sampling import sample_rows
from dpframework_tables.shrinkage import parts_kept
from hypothesis import given, settings, strategies as st

from dpframework.basics import NoisyHistogram
from dpframework.results import nearest_on_simplex

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
        measured.append(Measurement(of, counts, variance, 1000.0, np.zeros(counts.shape)))
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
    assert max(np.abs(one.penalty * own).max() for one, own in zip(model.measured, model.potentials, strict=True)) > 20
    joint = whole(SIZES, [one.of for one in model.measured], model.potentials)
    pool = Pool.of([(one.of, one.residuals, one.variance) for one in model.measured], SIZES).shrunk({}, len(rows))
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
        known = [Measurement.alone(a, own, 1.0) for a, own in enumerate(singles)]
        before = fit(JunctionTree.of(expected.shape, [(0,), (1,)]), known, float(expected.sum()))
        new = Measurement.of_several((0, 1), expected + noise, 200.0**2, expected, before)
        moved = fit(tree, [*known, new], before.rows, before).marginal((0, 1)) - expected
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


def test_residuals_are_kept_as_far_as_all_of_them_are_more_than_noise():
    """Effects of one variance t, noise of variance s: the root of t / (t + s) keeps how much effects vary."""
    draw = np.random.default_rng(8)
    free = draw.integers(1, 8, 600).tolist()
    for spread in (0.0, 0.01, 0.1):
        effects = [draw.normal(0, math.sqrt(spread + 0.01), number) for number in free]
        kept = parts_kept([np.square(own).sum() for own in effects], free, [0.01] * 600)
        assert kept.mean() == pytest.approx(math.sqrt(spread / (spread + 0.01)), abs=0.1)
        assert 0 <= kept.min() <= kept.max() <= 1
    noise = [np.square(draw.normal(0, 0.1, number)).sum() for number in free[:30]]
    kept = parts_kept([*noise, 1.0], free[:31], [0.01] * 31)
    assert kept[-1] > 0.9  # the one that is not noise
    assert kept[:-1].mean() < 0.3


def test_without_noise_all_of_a_residual_is_kept():
    """A large budget leaves no noise."""
    assert parts_kept([0.5, 1e-4, 0.0], [2, 1, 3], [0.0, 0.0, 0.0])[:2] == pytest.approx(1, abs=1e-4)


def test_noise_of_a_part_is_left_out_and_what_stands_out_stays():
    """Of eight attributes one is not even, and of seven pairs one is more than noise; what is expected is 0."""
    sizes, draw, rows, tables = (4,) * 8, np.random.default_rng(6), 4000.0, []
    skewed, pairs = (7,), [(a, a + 1) for a in range(7)]
    for of in [*((a,) for a in range(8)), *pairs]:
        exact = np.full([4] * len(of), rows / 4 ** len(of))
        if of == skewed:
            exact = np.array([2000.0, 1000.0, 500.0, 500.0])
        if of == pairs[0]:
            exact = np.diag([1000.0] * 4)
        tables.append((of, residuals_of(of, exact + draw.normal(0, 40, exact.shape)), 1600.0))
    pool = Pool.of([one for one in tables if one[0] != (6, 7)], sizes)
    expected = {of: np.zeros([4] * len(of)) for of in [*((a,) for a in range(8)), *pairs[:5]]}
    found = pool.shrunk(expected, rows)
    part = {of: np.linalg.norm(found.residuals[of]) / np.linalg.norm(pool.residuals[of]) for of in found.residuals}
    assert np.mean([part[of] for of in part if of not in (skewed, pairs[0], pairs[5])]) < 0.4
    assert min(part[skewed], part[pairs[0]]) > 0.95
    assert part[pairs[5]] == 1  # nothing is expected of it
    for of in part:
        assert found.variances[of] == pytest.approx(part[of] ** 2 * pool.variances[of])
    near = pool.shrunk({of: pool.residuals[of] + 1.0 for of in expected}, rows).residuals
    for of in expected:  # off by a row in each cell, which noise explains
        assert near[of] == pytest.approx(pool.residuals[of] + 1.0, abs=0.6)


def test_of_a_table_that_is_believed_its_parts_are_not_if_they_are_noise():
    """A parity, whose pairs are all even: their noise is that of two counts each."""
    draw, rows = np.random.default_rng(11), 10_000.0
    exact = np.where(np.indices((2, 2, 2)).sum(axis=0) % 2, 0.0, rows / 4)
    pairs, noise, triples = [], [], []
    for _ in range(30):
        known = [Measurement.alone(a, rows / 2 + draw.normal(0, 100, 2), 100.0**2) for a in range(3)]
        before = fit(JunctionTree.of((2, 2, 2), [(0,), (1,), (2,)]), known, rows)
        counts = exact + draw.normal(0, 400, exact.shape)
        new = Measurement.of_several((0, 1, 2), counts, 400.0**2, np.full(exact.shape, rows / 8), before)
        model = fit(JunctionTree.of((2, 2, 2), [(0, 1, 2)]), [*known, new], rows, before)
        triples.append(np.abs(model.marginal((0, 1, 2)) - exact).mean())
        for axis, of in enumerate([(1, 2), (0, 2), (0, 1)]):
            pairs.append(np.abs(model.marginal(of) - rows / 4).mean())
            noise.append(np.abs(counts.sum(axis=axis) - counts.sum() / 4).mean())
    assert np.mean(pairs) < 0.15 * np.mean(noise)
    assert np.mean(triples) < 200


@pytest.mark.parametrize(("shares", "most"), [((0.25,) * 4, 0.5), ((0.9, 0.05, 0.05, 0.0), 1.0)])
def test_counts_of_attributes_alone_are_near_whether_even_or_not(shares, most):
    """Beside the nearest table without negative counts."""
    draw, rows, off = np.random.default_rng(10), 1000.0, []
    exact = rows * np.array(shares)
    for _ in range(40):
        noisy = [exact + draw.normal(0, 200, 4) for _ in range(9)]
        model = MergedModel.of_alone(
            [NoisyHistogram(own, 200.0**2) for own in noisy], Merging.none([4] * 9), rows
        ).model
        nearest = [nearest_on_simplex(own, rows) for own in noisy]
        pairs = [(model.marginal((a,)), own) for a, own in enumerate(nearest)]
        off.append([[np.abs(one - exact).sum() for one in pair] for pair in pairs])
    ours, other = np.mean(off, axis=(0, 1))
    assert ours < most * other


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
        known = [Measurement.alone(a, own, 40.0**2) for a, own in enumerate(noisy)]
        before = fit(JunctionTree.of(sizes, [(a,) for a in of]), known, rows)
        expected = functools.reduce(np.multiply.outer, [before.marginal((a,)) / rows for a in of]) * rows
        counts = exact + draw.normal(0, 30, exact.shape)
        believed += Measurement.of_several(of, counts, 30.0**2, expected, before).is_more_than_noise
    assert believed < 15


def test_what_differs_by_more_than_noise_is_believed():
    known = [Measurement.alone(a, np.array([50.0, 50.0]), 4.0) for a in (0, 1)]
    before, even = fit(JunctionTree.of((2, 2), [(0,), (1,)]), known, 100.0), np.full((2, 2), 25.0)
    for large, small, is_more in ((40.0, 10.0, True), (26.0, 24.0, False)):
        counts = np.array([[large, small], [small, large]])
        assert Measurement.of_several((0, 1), counts, 4.0, even, before).is_more_than_noise == is_more


def test_counts_of_an_attribute_do_not_follow_what_a_table_of_two_expects_of_it():
    even, skewed = np.full(4, 250.0), np.array([400.0, 300.0, 200.0, 100.0])
    noisy, found = even + np.array([30.0, -20.0, 10.0, -20.0]), []
    pair = Measurement((0, 1), np.full((4, 4), 62.5), 900.0, 1e-3, np.zeros((4, 4)))
    known = [Measurement.alone(0, noisy, 2500.0), Measurement.alone(1, even, 2500.0)]
    for expected in ({}, residuals_of((0, 1), np.outer(skewed, even) / 1000)):
        pairs = attrs.evolve(pair, expected=expected)
        found.append(fit(JunctionTree.of((4, 4), [(0, 1)]), [*known, pairs], 1000.0).marginal((0,)))
    assert found[0] == pytest.approx(found[1], abs=1e-9)
    weight = (1 / 2500) / (1 / 2500 + 1 / (4 * 900))  # of the two tables that say how many rows each value has
    assert found[0] == pytest.approx(even + weight * (noisy - even), abs=0.5)


@pytest.mark.parametrize(("columns", "least"), [(2, 3.04), (4, 2.6)])
def test_a_table_tells_something_where_its_likelihood_gains_three(columns, least):
    """Where what each attribute says of itself is known, each of n cells is off by d, and has a noise of f v = 4 f.

    Its f n free numbers have f n (x - 1 - log x) / 2 more in log-likelihood as signal, x = d**2 / (4 f). Of two by two
    cells f is 1/4, and 3 are gained from an x of 9.2 on; of two by four f is 3/8, and x is 4.5.
    """
    known = [
        Measurement.alone(0, np.full(2, 5000.0), 1e-6),
        Measurement.alone(1, np.full(columns, 1e4 / columns), 1e-6),
    ]
    before = fit(JunctionTree.of((2, columns), [(0,), (1,)]), known, 1e4)
    even, signs = np.full((2, columns), 5000.0 / columns), np.where(np.indices((2, columns)).sum(axis=0) % 2, 1, -1)
    for factor, is_more in ((0.95, False), (1.07, True)):
        one = Measurement.of_several((0, 1), even + factor * least * signs, 4.0, even, before)
        assert one.is_more_than_noise == is_more


def test_rows_are_dealt_out_so_that_tables_err_by_rounding():
    rows, model = fitted()
    drawn = sample_rows(model, len(rows), seed=5)
    assert np.array_equal(drawn, sample_rows(model, len(rows), seed=5))
    assert not np.array_equal(drawn, sample_rows(model, len(rows), seed=6))
    root = model.tree.cliques[0]
    assert np.abs(table_of(drawn, root) - model.marginal(root)).max() < 1
    for of in SETS:  # chance alone would make tens of rows of it
        assert np.abs(table_of(drawn, of) - model.marginal(of)).max() < 8


def test_rows_follow_from_the_seed_with_any_version_of_numpy():
    _, model = fitted(sets=SETS[:1])
    even = fit(model.tree, [Measurement.alone(0, np.array([5.0, 5.0]), 1.0)], 10.0)
    assert sample_rows(even, 10, seed=1)[:, 0].tolist() == [1, 1, 0, 0, 0, 1, 0, 1, 0, 1]


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


def test_what_was_expected_is_adjusted_to_what_is_known_of_each_attribute():
    """By proportional fitting, which keeps odds ratios; a cell that was expected below 0 stays at nothing."""
    even = np.array([[25.0, 25.0], [25.0, 25.0]])
    alone = [Measurement.alone(a, np.array([50.0, 50.0]), 1e-6) for a in (0, 1)]
    before = fit(JunctionTree.of((2, 2), [(0,), (1,)]), alone, 100.0)
    for expected in ([[40.0, 10.0], [10.0, 40.0]], [[80.0, 20.0], [5.0, 20.0]], [[50.0, -3.0], [0.0, 50.0]]):
        given = np.maximum(np.array(expected), 0)
        new = Measurement.of_several((0, 1), even, 1e-6, np.array(expected), before)
        half = math.sqrt(given[0, 0] * given[1, 1]) + math.sqrt(given[0, 1] * given[1, 0])
        share = math.sqrt(given[0, 0] * given[1, 1]) / half / 2
        likely = 100 * np.array([[share, 0.5 - share], [0.5 - share, share]])
        found = new.expected[0, 1]
        assert found == pytest.approx(residuals_of((0, 1), likely)[0, 1], rel=0.02)
