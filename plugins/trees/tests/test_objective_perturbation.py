"""Objective perturbation: its noise is drawn exactly, it loses what it claims, and its fit is near the minimum."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import ClassVar

import attrs
import numpy as np
import pytest
from dpframework_trees.additive import Design, DPAdditive, ObjectivePerturbation, fitting, perturbation
from dpframework_trees.additive.fit_rows import LogisticRows
from dpframework_trees.additive.fitting import UNIT, Loss, Rows, fit_in_steps, minimise
from dpframework_trees.additive.group_noise import GroupNoise
from dpframework_trees.additive.minimiser_refinement import refine
from dpframework_trees.additive.noise_and_ridge import BLUR, MULTICLASS, NoiseAndRidge
from dpframework_trees.additive.perturbation import CELL, draw_noise, noise_log_density
from dpframework_trees.tree import DecisionTree
from dpframework_trees.tree_nodes import Inner, Leaf
from scipy.stats import chi2, multivariate_normal

import dpframework as dpf
from dpframework.facts import Equals, Relation
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.verify import audit
from dpframework.verify.conformance_suites import MechanismConformance, QueryConformance
from dpframework.verify.mechanisms.probe_query_answers import Probe

FALSE_ALARM = 1e-9
TWO = Design([(0, 1), (0, 1, 2), (0, 1, 2)], 2, 40, 100)
FOUR = Design([(0, 1), (0, 1, 2)], 4, 40, 100)  # balanced noise
SIX = Design([(0, 1), (0, 1, 2)], 6, 40, 100)  # noise by output
TREE = Design([(0, 1), (0, 1, 2)], 2, 40, 100, (16, -16, 4))
SCHEMA = dpf.Schema(
    [
        dpf.Boolean("a"),
        dpf.Categorical("b", ["x", "y", "z"]),
        dpf.Categorical("c", ["u", "v", "w"]),
        dpf.Boolean("class"),
    ]
)
QUERY = LogisticRows(SCHEMA["class"], ("a", "b", "c"))


def cells_of(design, codes):
    """Return the cells of rows given by the cell of each attribute."""
    cells = [[cell + first for cell, first in zip((*row, 0), design.first_cells, strict=True)] for row in codes]
    return np.array(cells, dtype=np.uint16).reshape(len(codes), len(design.first_cells))


def rows_of(design, rows):
    """Return the rows of a fit, each as its attributes' cells and its class."""
    return Rows(cells_of(design, [row[:-1] for row in rows]), np.array([row[-1] for row in rows], np.uint16), design)


def kinds(design):
    """Return every row there can be."""
    return list(itertools.product(*map(range, design.sizes), range(design.classes)))


def calibrated(epsilon):
    return ObjectivePerturbation(epsilon).calibrate(QUERY.facts(), Relation.ADD_OR_REMOVE_ONE)


def fits(counts, chances, draws):
    """Tell whether counts are as likely as stated, except with a probability of `FALSE_ALARM`; the rest is one cell."""
    expected = np.array([chances[outcome] * draws for outcome in chances])
    observed = np.array([counts[outcome] for outcome in chances])
    expected = np.append(expected, draws - expected.sum())
    observed = np.append(observed, draws - observed.sum())
    kept = expected > 5
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    return statistic < chi2.isf(FALSE_ALARM, kept.sum())


@pytest.mark.parametrize("blocks", [(1, 1, 1), (2, 1), (3,), (2, 2)])
def test_group_noise_is_drawn_as_stated(blocks):
    """The points of a box that holds most of them."""
    scale, draws, randomness = 1.5, 1_000, SeededRandomness(5)
    edges = list(itertools.accumulate(blocks, initial=0))
    points = {}
    for point in itertools.product(range(-2, 3), repeat=sum(blocks)):
        size = max(sum(map(abs, point[a:b])) for a, b in itertools.pairwise(edges))
        points[point] = math.exp(-size / scale)
    whole = 0.0
    for radius in range(200):  # exp(-size / scale) is the share 1 - exp(-1 / scale) of its sum over radii from size on
        points_of_radius = [sum(math.comb(m, j) * math.comb(radius, j) << j for j in range(m + 1)) for m in blocks]
        whole += math.prod(points_of_radius) * math.exp(-radius / scale) * (1 - math.exp(-1 / scale))
    noise = GroupNoise(blocks, 1, one_sum=False, intercept=False)
    drawn = Counter(tuple(noise.draw(scale, randomness).ravel().tolist()) for _ in range(draws))
    assert fits(drawn, {point: weight / whole for point, weight in points.items()}, draws)


def test_a_row_has_a_gradient_of_norm_one_at_most():
    """In each block, for every row, whatever the coefficients; and some come near it in all blocks at once."""
    rng = np.random.default_rng(0)
    for design in (TWO, FOUR, SIX):
        largest = 0.0
        for row in kinds(design):
            for _ in range(6):
                coefficients = rng.normal(0, 10, (design.columns, design.outputs))
                loss = Loss(rows_of(design, [row]), NoiseAndRidge(design, Fraction(1)), np.zeros(coefficients.shape))
                gradient = np.abs(loss.residuals(coefficients)) / design.swing
                blocks = np.add.reduceat(gradient, design.starts).sum(axis=1)
                by_output = np.add.reduceat(gradient, design.starts).max(axis=0).sum()
                assert by_output == pytest.approx(blocks.max())  # all blocks of an output have one l1 norm
                assert blocks.max() <= 1 + 1e-12
                largest = max(largest, blocks.min())
        assert largest > 0.999


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "1", "7"])
@pytest.mark.parametrize(
    "design",
    [TWO, FOUR, SIX, TREE, Design([(0, 1)] * 30, 3, 10**5, 10**6)],
    ids=["two", "four", "six", "tree", "three"],
)
def test_the_parts_of_a_claim_add_up_to_no_more_than_epsilon(design, epsilon):
    tuned = NoiseAndRidge(design, Fraction(epsilon))
    e, q, classes = tuned.spent_by_gradient, tuned.most_curvature, design.classes
    scales, step = [Fraction(scale) for scale in tuned.scales], tuned.step
    assert e == sum(design.swing / (step * scale) for scale in scales)
    # in groups with one sum the last of three cells is that less the others: off by 3, beside the others' 2, in each
    # output; there is no sum where all blocks have one column; of balanced outputs the last is as far off as all others
    widest = [3 * 2 * 3 if design is FOUR else design.outputs * (1 if set(design.widths) == {1} else 5)]
    lattice = sum(width / scale for width, scale in zip(widest, scales, strict=True))
    determinant = q * Fraction(classes - 2, classes - 1)
    assert e + lattice + determinant + 2 * tuned.epsilon * BLUR == tuned.claimed
    assert tuned.epsilon * Fraction(97, 100) < tuned.claimed <= tuned.epsilon
    rows = itertools.islice(itertools.product(*map(range, design.sizes), (0,)), 500)
    of_rows = [design.of_cells[:, cells_of(design, [row[:-1]])[0]].sum(axis=1) for row in rows]
    assert max(x @ np.diag(1 / tuned.ridge) @ x for x in of_rows) <= q
    assert max(x @ np.diag(1 / tuned.ridge) @ x for x in of_rows) <= tuned.curvature(tuned.ridge) * (1 + 1e-12)


def test_no_more_is_set_aside_for_the_determinant_than_the_ridge_asks_for():
    """Or four times as much, twice as much as that at most; with many rows, whose ridge is small, all that may be."""
    few, many = (NoiseAndRidge(Design([(0, 1), (0, 1, 2)], 3, rows, 10**6), Fraction(1, 10)) for rows in (40.0, 1e6))
    assert NoiseAndRidge(attrs.evolve(few.design, classes=2), Fraction(1)).determinant == 0
    assert few.determinant < many.determinant == MULTICLASS
    assert few.curvature(few.ridge) >= few.curvature(4 * few.suitable_ridge)
    less = NoiseAndRidge(few.design, few.epsilon, few.determinant / 2)
    assert less.curvature(4 * less.suitable_ridge) > less.most_curvature
    assert few.scales[0] < 0.94 * NoiseAndRidge(few.design, few.epsilon, MULTICLASS).scales[0]


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_determinant_costs_what_is_stated_and_more_beyond_its_bound(classes):
    """The largest loss over all probabilities with p_y = 1 - r: their other p equal, by symmetry and concavity."""
    design = Design([(0, 1, 2)], classes, 40, 100)
    tuned = NoiseAndRidge(design, Fraction(1))
    e, bound = float(tuned.spent_by_gradient), float(tuned.most_curvature)

    def worst(q):
        r = np.linspace(0, 1, 2001)
        p = np.column_stack([1 - r, *[r / (classes - 1)] * (classes - 1)])
        if classes == 2:
            return (e * r + np.log1p(q * r * (1 - r))).max()
        hessians = p[:, :, None] * np.eye(classes) - p[:, :, None] * p[:, None, :]
        return (e * r + np.linalg.slogdet(np.eye(classes) + q * hessians)[1]).max()

    assert worst(bound) <= e + bound * (classes - 2) / (classes - 1) + 1e-12
    assert worst(4 * e * (classes - 1)) > e + bound * (classes - 2) / (classes - 1) + 0.01


@pytest.mark.parametrize("design", [TWO, FOUR, SIX, TREE], ids=["two", "four", "six", "tree"])
def test_no_output_loses_more_than_the_claim_on_any_pair_of_small_tables(design):
    """Each row added to tables of up to 6 rows; outputs near and far. The largest loss comes near epsilon."""
    rng, calibration = np.random.default_rng(1), calibrated(1)
    mechanism, every, largest = ObjectivePerturbation(1), kinds(design), 0.0
    for size in (0, 1, 3, 6):
        for _ in range(6):
            rows = [every[k] for k in rng.integers(0, len(every), size)]
            added = every[int(rng.integers(len(every)))]
            one, other = rows_of(design, rows), rows_of(design, [*rows, added])
            x = design.of_cells[:, cells_of(design, [added[:-1]])[0]].sum(axis=1)
            outcome = np.zeros(design.outputs)
            outcome[added[-1] if design.outputs > 1 else 0] = 1 if design.outputs > 1 else 2 * added[-1] - 1
            for far in (0.0, -1.0, -3.0, -10.0):
                output = far * np.outer(x, outcome) + rng.normal(
                    0, rng.choice([0.1, 3]), (design.columns, design.outputs)
                )
                loss = mechanism.log_density(one, output, calibration) - mechanism.log_density(
                    other, output, calibration
                )
                largest = max(largest, abs(loss))
                assert abs(loss) <= 1
    # with several classes a part of epsilon is for the determinant, which no output needs together with the noise
    assert largest > (0.8 if design.outputs > 1 else 0.95)


def test_the_density_is_that_of_real_noise():
    """It integrates to 1 over the coefficients of one two-valued attribute, on a grid."""
    design = Design([(0, 1)], 2, 10, 20)
    rows = rows_of(design, [(0, 1), (1, 0), (1, 1)])
    mechanism, calibration, grid = ObjectivePerturbation(2), calibrated(2), np.arange(-5, 5, 0.2)
    logs = [
        mechanism.log_density(rows, np.array([[a], [b]]), calibration) for a, b in itertools.product(grid, repeat=2)
    ]
    assert sum(math.exp(log - 2 * math.log(CELL)) for log in logs) * 0.04 == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("balanced", [True, False])
def test_the_density_of_several_outputs_integrates_to_one(monkeypatch, balanced):
    """The mean of q / f over draws by a density f is 1 for any density q: here a normal one like the first 500 draws.

    Of both kinds of noise. With one sum the ridge times the cells has the intercept's sum in each output, so that the
    intercept and the first two cells are coordinates. The mean of 1,000 draws has a standard error of .04; without one
    of the ridges it would be 1.9, or .5, and without a factor of 2 in a volume as much.
    """
    monkeypatch.setattr("dpframework_trees.additive.group_noise.is_balanced", lambda *_: balanced)
    design = Design([(0, 1, 2)], 3, 10 + balanced, 20)
    assert [noise.balanced for noise in design.noises] == [balanced]
    rows = rows_of(design, [(0, 1), (1, 0), (2, 2), (0, 0)])
    calibration = calibrated(9)
    tuned = perturbation.tune_for(design, calibration)
    drawn = np.array([minimise(rows, tuned, draw_noise(tuned, SeededRandomness(seed))) for seed in range(1_500)])
    points = drawn[:, :, :2] if balanced else drawn[:, [0, 1, 3]]
    points = points.reshape(len(points), -1)
    q = multivariate_normal(points[:500].mean(axis=0), np.cov(points[:500].T))
    cell = points.shape[1] * math.log(CELL)
    densities = [ObjectivePerturbation(9).log_density(rows, own, calibration) - cell for own in drawn[500:]]
    assert np.exp(q.logpdf(points[500:]) - densities).mean() == pytest.approx(1, abs=0.22)


def test_the_density_is_that_of_noise_with_one_sum():
    """Of one attribute of three cells it integrates to 1 over the intercept and the first two cells, on a grid."""
    design = Design([(0, 1, 2)], 2, 10, 20)
    rows = rows_of(design, [(0, 1), (1, 0), (2, 1)])
    mechanism, calibration = ObjectivePerturbation(9), calibrated(9)
    ridge = perturbation.tune_for(design, calibration).ridge
    step = 0.16
    grid, logs = np.arange(-2.4, 2.5, step), []
    for intercept, a, b in itertools.product(grid, repeat=3):
        last = ridge[3] * intercept / ridge[0] - a - b  # so that the ridge times the cells has the intercept's sum
        logs.append(mechanism.log_density(rows, np.array([[a], [b], [last], [intercept]]), calibration))
    assert np.exp(np.array(logs) - 3 * math.log(CELL)).sum() * step**3 == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("design", [TWO, FOUR, SIX, TREE], ids=["two", "four", "six", "tree"])
def test_a_release_has_the_density_of_the_minimiser_next_to_it(design):
    """What its own noise adds outside of the minimisers' space changes nothing."""
    calibration, rng = calibrated(1), np.random.default_rng(4)
    rows, tuned = rows_of(design, kinds(design)[:7]), perturbation.tune_for(design, calibrated(1))
    inside = perturbation.into_space(tuned, rng.normal(0, 1, (design.columns, design.outputs)))
    outside = rng.normal(0, 1, inside.shape)
    outside -= perturbation.into_space(tuned, outside)
    assert np.abs(outside).max() > 0.1
    assert perturbation.into_space(tuned, inside) == pytest.approx(inside)
    assert perturbation.into_space(tuned, inside + outside) == pytest.approx(inside)
    densities = [ObjectivePerturbation(1).log_density(rows, own, calibration) for own in (inside, inside + outside)]
    assert densities[0] == pytest.approx(densities[1])


def test_in_more_digits_the_real_noise_is_left_its_part_of_the_distance(monkeypatch):
    tuned = NoiseAndRidge(TWO, Fraction(1))
    rows, noise = rows_of(TWO, [(0, 1, 2, 1)]), draw_noise(tuned, SeededRandomness(0))
    asked = []
    monkeypatch.setattr(fitting.Loss, "bound", lambda *_: math.inf)
    monkeypatch.setattr(fitting, "refine", lambda loss, start, enough, unit: asked.append(enough) or start)
    fit_in_steps(rows, tuned, noise)
    assert asked == [tuned.gradient_error - Loss(rows, tuned, noise).of_noise]
    assert 0 < asked[0] < tuned.gradient_error * (1 - 1e-3)


def test_noise_of_more_bits_than_floats_have_is_further_from_what_is_computed_with():
    """At an epsilon of 2**-20 a coordinate may have 56 bits, and be rounded by as many steps as floats leave out."""
    usual, small = (NoiseAndRidge(TWO, Fraction(1, number)) for number in (1, 2**24))
    halves = math.sqrt(sum(noise.square_of_half for noise in TWO.noises))
    assert usual.lattice_error == float(usual.step) * halves
    beyond = 512 * small.largest_noise / 2**53
    assert beyond > 1
    assert small.lattice_error == pytest.approx(float(small.step) * (halves + beyond * math.sqrt(TWO.columns)))


def test_a_claim_above_epsilon_is_refused(monkeypatch):
    monkeypatch.setattr(NoiseAndRidge, "claimed", Fraction(2))
    with pytest.raises(dpf.InputError, match="the noise of a fit cannot be computed for epsilon = "):
        perturbation._tune.__wrapped__(TWO, Fraction(1))


def test_noise_has_the_density_that_is_stated():
    """The mean of its norm, in units of its loss: the dimension of its space, of one sum and two cells each."""
    tuned = NoiseAndRidge(TWO, Fraction(1, 2))
    drawn = [draw_noise(tuned, SeededRandomness(seed)) for seed in range(400)]
    found = [noise_log_density(tuned, np.zeros(noise.shape)) - noise_log_density(tuned, noise) for noise in drawn]
    # a sum of gamma variables of shapes that add up to the coordinates: 9 standard deviations of their mean
    assert np.mean(found) == pytest.approx(6, abs=9 * math.sqrt(6 / 400))


@pytest.mark.parametrize(("design", "epsilon"), [(TWO, "0.1"), (TWO, "5"), (FOUR, "1"), (TREE, "1")])
def test_what_is_computed_is_within_its_distance_of_the_minimum(design, epsilon):
    """Against Newton's method in extended precision, with the real noise half a step of its lattice away."""
    if np.finfo(np.longdouble).eps >= np.finfo(float).eps:
        pytest.skip("this platform has no extended precision")
    rng, every = np.random.default_rng(2), kinds(design)
    tuned = NoiseAndRidge(design, Fraction(epsilon))
    rows = rows_of(design, [every[k] for k in rng.integers(0, len(every), 60)])
    lattice = draw_noise(tuned, SeededRandomness(6))
    found = minimise(rows, tuned, lattice)
    noise = lattice.astype(np.longdouble) + rng.choice([-0.5, 0.5], lattice.shape) * np.longdouble(float(tuned.step))
    X = design.of_cells[:, rows.cells].sum(axis=2).T.astype(np.longdouble)
    Y = np.eye(design.classes, dtype=np.longdouble)[rows.classes]

    offsets = design.offsets[rows.cells].sum(axis=1)

    def gradient(w):
        scores = X @ w + offsets
        scores = scores if design.outputs > 1 else np.column_stack([np.zeros(len(X), np.longdouble), scores[:, 0]])
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        off = p - Y if design.outputs > 1 else (p - Y)[:, 1:]
        return X.T @ off + tuned.ridge[:, None] * w + noise

    loss = Loss(rows, tuned, lattice)
    size = float(np.sqrt((gradient(found.astype(np.longdouble)) ** 2 / tuned.ridge[:, None]).sum()))
    assert size <= loss.bound(found) <= tuned.gradient_error
    in_more_digits = refine(loss, np.zeros(found.shape), tuned.gradient_error - loss.of_noise, tuned.release_step)
    steps = fit_in_steps(rows, tuned, lattice)
    assert np.abs(in_more_digits - steps).sum() <= 2 * tuned.distance / tuned.release_step + steps.size
    exact = found.astype(np.longdouble)
    for _ in range(4):
        step = np.linalg.solve(loss.hessian(np.asarray(exact, float)), np.asarray(gradient(exact), float).T.ravel())
        exact = exact - step.reshape(exact.T.shape).T
    assert 0 < np.abs(exact - found).sum() <= tuned.distance


def test_bounds_count_by_half_the_distance_of_doubles_at_one():
    assert np.finfo(np.float64).eps / 2 == UNIT


def test_a_bound_is_not_believed_where_scores_may_be_rounded():
    loss = Loss(rows_of(TWO, [(0, 1, 2, 1)]), NoiseAndRidge(TWO, Fraction(1)), np.zeros((TWO.columns, 1)))
    assert loss.bound(np.full((TWO.columns, 1), 0.5)) < math.inf
    assert loss.bound(np.full((TWO.columns, 1), 0.1)) == math.inf


def test_the_release_covers_the_distance_from_the_minimum():
    """Its discrete Laplace noise moves a log-probability by at most epsilon / 1024 over that, roundings included."""
    for epsilon in ("0.1", "1"):
        tuned = NoiseAndRidge(TWO, Fraction(epsilon))
        moved = tuned.distance / tuned.release_step + TWO.columns
        assert moved / tuned.release_scale <= float(tuned.epsilon * BLUR)
        assert tuned.release_scale * tuned.release_step < 1e-3 / float(tuned.epsilon)


def test_a_fit_that_begins_on_a_sample_ends_as_near_to_the_minimum(monkeypatch):
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, size, 3_000) for size in (*TWO.sizes, 2)])
    rows, tuned = rows_of(TWO, [tuple(row) for row in codes.tolist()]), NoiseAndRidge(TWO, Fraction(1))
    noise = draw_noise(tuned, SeededRandomness(0))
    whole = minimise(rows, tuned, noise)
    monkeypatch.setattr(fitting, "MANY", 100)
    sampled = minimise(rows, tuned, noise)
    assert Loss(rows, tuned, noise).bound(sampled) <= tuned.gradient_error
    assert np.abs(sampled - whole).sum() <= 2 * tuned.distance


def test_a_release_is_the_fit_rounded_with_little_noise():
    rows = rows_of(TWO, [(0, 1, 2, 1)] * 30 + [(1, 0, 0, 0)] * 30)
    output = ObjectivePerturbation(2).release(rows, calibrated(2), SeededRandomness(0))
    tuned = NoiseAndRidge(TWO, Fraction(2))
    steps = output / tuned.release_step
    assert np.array_equal(np.rint(steps), steps)
    fitted = minimise(rows, tuned, draw_noise(tuned, SeededRandomness(0)))
    off = np.abs(steps - fitted / tuned.release_step)
    assert 0 < off.max() < 40 * tuned.release_scale  # of 8 Laplace variables: but for exp(-37)


def rows_alike(attributes: int, classes: int, number: int, most: int) -> Rows:
    """Return rows that differ in their class only, of as many boolean attributes."""
    design = Design([(0, 1)] * attributes, classes, float(most), most)
    return rows_of(design, [(*(k % 2 for k in range(attributes)), c % classes) for c in range(number)])


@pytest.mark.parametrize(
    ("attributes", "classes", "epsilon"), [(1, 2, 1), (300, 2, 1), (600, 2, 10), (2, 300, 10), (1, 900, 1), (14, 5, 1)]
)
def test_floats_alone_leave_room_for_what_a_fit_adds_up_to(attributes, classes, epsilon):
    """Whatever the rows: what their number and the noise's lattice may do is at most .75 of what is asked."""
    design = Design([(0, 1)] * attributes, classes, 1e6, 1 << 31)
    tuned = NoiseAndRidge(design, Fraction(epsilon))
    empty = Rows(np.zeros((0, 1), np.uint16), np.zeros(0, np.uint16), design)
    nothing = Loss(empty, tuned, np.zeros((design.columns, design.outputs)))
    of_rows = (28 + classes) * 2.0**-53 * 1e6 * math.sqrt(design.outputs * len(design.widths))
    assert of_rows / math.sqrt(tuned.ridge.min()) + nothing.of_noise <= 0.75 * tuned.gradient_error


@pytest.mark.parametrize(("attributes", "classes", "number"), [(300, 2, 1500), (1, 40, 120)])
def test_a_fit_of_rows_that_are_all_alike_is_made(attributes, classes, number):
    rows = rows_alike(attributes, classes, number, number)
    tuned = NoiseAndRidge(rows.design, Fraction(1))
    noise = draw_noise(tuned, SeededRandomness(1))
    steps = fit_in_steps(rows, tuned, noise)
    assert np.abs(steps).max() < 2**61


def test_a_fit_that_floats_do_not_reach_is_made_in_more_digits(monkeypatch):
    """It ends at the same place, to the accuracy that is asked for, whether floats begin well, badly or not at all."""
    rows = rows_of(TWO, [(0, 1, 2, 1)] * 30 + [(1, 0, 0, 0)] * 20)
    tuned = NoiseAndRidge(TWO, Fraction(1, 2))
    noise = draw_noise(tuned, SeededRandomness(3))
    usual = fit_in_steps(rows, tuned, noise)
    near = 2 * tuned.distance / tuned.release_step + usual.size
    for start in (np.zeros(noise.shape), np.full(noise.shape, 30.0)):
        monkeypatch.setattr(fitting, "minimise", lambda *_, start=start: start)
        assert 0 <= np.abs(fit_in_steps(rows, tuned, noise) - usual).sum() <= near
    monkeypatch.setattr(np.linalg, "inv", lambda _: (_ for _ in ()).throw(np.linalg.LinAlgError))
    assert np.abs(fit_in_steps(rows, tuned, noise) - usual).sum() <= near


@pytest.mark.parametrize("in_more_digits", [True, False])
def test_a_fit_that_is_refused_for_its_rows_does_not_pass(monkeypatch, in_more_digits):
    """Planted: floats (of 41 bits here, so that few rows are enough) miss the bound on some tables, and end the run."""

    def fitted(rows: Rows, tuned: NoiseAndRidge, noise: np.ndarray) -> np.ndarray:
        found = minimise(rows, tuned, noise)
        if Loss(rows, tuned, noise).bound(found) > tuned.gradient_error:
            raise dpf.InputError("the fit did not reach the accuracy that its claim needs")
        return np.rint(found / tuned.release_step).astype(np.int64)

    monkeypatch.setattr(fitting, "UNIT", 2.0**-41)
    if not in_more_digits:
        monkeypatch.setattr(perturbation, "fit_in_steps", fitted)
    example = DPAdditive.examples()["two"]
    report = audit(example.miner, example.schema, Relation.ADD_OR_REMOVE_ONE, replays=100)
    assert report.passed == in_more_digits
    assert in_more_digits or any("fails with InputError: the fit" in v.what for v in report.violations)


def test_noise_of_any_size_is_fitted():
    """An overflow on the way, as of noise that is hardly ever drawn, stops no fit."""
    rows = rows_of(TWO, [(0, 1, 2, 1), (1, 0, 0, 0)])
    tuned = NoiseAndRidge(TWO, Fraction(1))
    for size in (1e6, 1e30):
        noise = np.full((TWO.columns, 1), size)
        with np.errstate(over="ignore"):
            steps = fit_in_steps(rows, tuned, noise)
        assert (steps < 0).all()


def test_more_rows_than_the_design_allows_are_refused():
    design = attrs.evolve(TWO, most_rows=3)
    with pytest.raises(dpf.InputError, match="more rows than the schema's max_rows allows for a fit"):
        ObjectivePerturbation(1).release(rows_of(design, [(0, 0, 0, 0)] * 4), calibrated(1), SeededRandomness(0))


def test_a_fit_wants_the_rows_of_a_fit():
    assert "LogisticRows" in str(ObjectivePerturbation(1).misfit(dpf.queries.Count().facts()))
    with pytest.raises(dpf.InputError, match="must answer with Rows"):
        ObjectivePerturbation(1).release(np.zeros(3), calibrated(1), SeededRandomness(0))
    with pytest.raises(dpf.InputError, match="more than 2000"):
        Design([tuple(range(1000)), tuple(range(1001))], 2, 1, 1)


def test_replacing_a_row_costs_twice_what_adding_one_does():
    losses = ObjectivePerturbation(1).calibrate(QUERY.facts(), Relation.REPLACE_ONE).losses
    assert losses.pure.replace_one == 1
    assert losses.pure.add_or_remove_one == Fraction(1, 2)


_LEAVES = [Leaf(np.array(counts), np.array(counts) / 4) for counts in ([0.0, 4.0], [4.0, 0.0])]
STUMP = DecisionTree.over(
    Inner(Equals("b", "y"), tuple(_LEAVES), np.array([4.0, 4.0]), np.array([0.5, 0.5])), SCHEMA["class"], SCHEMA
)


class TestQuery(QueryConformance):
    pairs = 60
    queries: ClassVar = {
        "rows": (QUERY, SCHEMA, {"design": TWO}),
        "tree": (QUERY, SCHEMA, {"design": attrs.evolve(TWO, leaves=(16, -16)), "tree": STUMP}),
    }


FEW = [(0, 1, 2, 1), (1, 0, 0, 0), (1, 2, 1, 1), (0, 0, 1, 0)]


class TestObjectivePerturbation(MechanismConformance):
    mechanisms = (ObjectivePerturbation(1),)
    probes = (Probe(QUERY.facts(), lambda scale: rows_of(TWO, FEW)),)
    draws = 150
