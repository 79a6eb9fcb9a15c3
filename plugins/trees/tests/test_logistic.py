"""Fits of an additive model, against the same written out plainly: gradients, Hessians, bounds, more digits."""

import itertools
import math
from fractions import Fraction
from typing import Any

import attrs
import mpmath
import numpy as np
import pytest
from dpframework_trees.additive import Design, fitting, perturbation
from dpframework_trees.additive.fit_rows import LogisticRows
from dpframework_trees.additive.fitting import Loss, Rows, fit_in_steps, lattice_step, minimise, round_to_lattice
from dpframework_trees.additive.minimiser_refinement import _descend, _Exact, inverse_of, refine
from dpframework_trees.additive.noise_and_ridge import NoiseAndRidge
from dpframework_trees.kernels.logistic import add_curvature, add_residuals
from scipy.special import softmax

import dpframework as dpf
from dpframework import InMemory, Relation, Threads
from dpframework.mechanisms.randomness import SeededRandomness

TWO = Design([(0, 1), (0, 1, 2)], 2, 40, 2000)
FOUR = Design([(0, 1), (0, 1, 2)], 4, 40, 2000)
TREE = attrs.evolve(TWO, leaves=(-16, -3, 0, 5, 16))
each_design = pytest.mark.parametrize("design", [TWO, FOUR, TREE], ids=["two", "four", "tree"])


def some_rows(design: Design, number: int, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, size, number) for size in (*design.sizes, 1)]
    cells = np.column_stack([code + first for code, first in zip(codes, design.first_cells, strict=True)])
    return Rows(cells.astype(np.uint16), rng.integers(0, design.classes, number).astype(np.uint16), design)


def some_loss(design: Design, number: int, epsilon: Any = 1) -> Loss:
    tuned = NoiseAndRidge(design, Fraction(epsilon))
    rng = np.random.default_rng(1)
    return Loss(some_rows(design, number), tuned, rng.normal(0, 9, (design.columns, design.outputs)))


def columns_of(rows: Rows) -> np.ndarray:
    """Return what each row has in each column, shape (rows, columns)."""
    return rows.design.of_cells[:, rows.cells].sum(axis=2).T


def plain_probabilities(rows: Rows, coefficients: np.ndarray) -> np.ndarray:
    scores = columns_of(rows) @ coefficients + rows.design.offsets[rows.cells].sum(axis=1)
    return softmax(scores if scores.shape[1] > 1 else np.column_stack([0 * scores, scores]), axis=1)


def outcomes(rows: Rows) -> np.ndarray:
    return np.eye(rows.design.classes)[rows.classes]


def off(rows: Rows, coefficients: np.ndarray) -> np.ndarray:
    """Return each row's probabilities less its outcome, shape (rows, outputs)."""
    found = plain_probabilities(rows, coefficients) - outcomes(rows)
    return found if rows.design.outputs > 1 else found[:, 1:]


# --- sums over rows -------------------------------------------------------------------------------------------------


@each_design
@pytest.mark.parametrize("number", [0, 1, 511, 512, 513, 1100])
def test_residuals_are_added_up_exactly_in_fixed_point(design: Design, number: int) -> None:
    """Each row's is rounded to a multiple of 2**-52, and the sum is that of all: whole numbers, in two parts."""
    rows, rng = some_rows(design, number), np.random.default_rng(2)
    coefficients = rng.normal(0, 2, (design.columns, design.outputs))
    theta = fitting.of_cells(design, coefficients)
    high, low = np.full(theta.shape, 5), np.full(theta.shape, 7)
    add_residuals(rows.cells, rows.classes, theta, high, low)
    found = [
        [(int(h) - 5) * 2**26 + int(lo) - 7 for h, lo in zip(*pair, strict=True)]
        for pair in zip(high, low, strict=True)
    ]
    expected = np.zeros(theta.shape)
    np.add.at(expected, rows.cells, off(rows, coefficients)[:, np.newaxis, :])
    assert np.array(found, dtype=float) * 2.0**-52 == pytest.approx(expected, abs=1e-11)
    assert (low >= 7).all()
    assert (low - 7 < 3 * 2**26).all()  # a part of 26 bits for each 512 rows
    of_cells = np.array(found, dtype=object)
    for first, size in zip(design.first_cells, design.sizes, strict=False):  # every row is in a cell of each attribute
        assert of_cells[first : first + size].sum(axis=0).tolist() == of_cells[-1].tolist()
    single = np.zeros((2, *theta.shape), dtype=np.int64)
    for k in range(number):
        add_residuals(rows.cells[k : k + 1], rows.classes[k : k + 1], theta, *single)
    ones = [[int(h) * 2**26 + int(lo) for h, lo in zip(*pair, strict=True)] for pair in zip(*single, strict=True)]
    assert found == ones


@pytest.mark.parametrize("score", [0.0, 1.0, -1.0, 40.0, -40.0, 800.0, -800.0])
def test_a_residual_is_right_to_its_last_bits_however_large_the_score(score: float) -> None:
    """Probabilities of 1e-17 too, of either of two classes and of several."""
    cells = np.zeros((1, 1), dtype=np.uint16)
    for scores in ([score], [score, 0.0, 0.5]):
        p = [mpmath.exp(s) for s in ([0.0, *scores] if len(scores) == 1 else scores)]
        p = [each / mpmath.fsum(p) for each in p]
        for own in range(len(p)):
            high, low = np.zeros((2, 1, len(scores)), dtype=np.int64)
            add_residuals(cells, np.array([own], dtype=np.uint16), np.array([scores]), high, low)
            exact = [each - (c == own) for c, each in enumerate(p)][-len(scores) :]
            for c, each in enumerate(exact):
                found = int(high[0, c]) * 2**26 + int(low[0, c])
                assert abs(found - each * 2**52) <= 0.5 + 12 * abs(each)  # rounded once, and (8 + C) u before


@pytest.mark.parametrize("score", [-40.0, 40.0])
def test_residuals_of_many_rows_that_are_all_alike_do_not_overflow(score: float) -> None:
    """Each is nearly 1 or -1, which is 2**52 steps: 64 bits hold 2,047 of them."""
    alike, theta = np.zeros((5000, 1), dtype=np.uint16), np.array([[score]])
    classes = np.full(5000, int(score < 0), dtype=np.uint16)
    sums, one = np.zeros((2, 1, 1), dtype=np.int64), np.zeros((2, 1, 1), dtype=np.int64)
    add_residuals(alike, classes, theta, *sums)
    add_residuals(alike[:1], classes[:1], theta, *one)
    total, each = (int(high[0, 0]) * 2**26 + int(low[0, 0]) for high, low in (sums, one))
    assert total == 5000 * each
    assert abs(total) > 2**64


@each_design
def test_curvature_is_the_second_derivative_of_each_pair_of_cells(design: Design) -> None:
    rows, rng = some_rows(design, 60), np.random.default_rng(3)
    coefficients = rng.normal(0, 1, (design.columns, design.outputs))
    p, outputs, cells = plain_probabilities(rows, coefficients), design.outputs, design.of_cells.shape[1]
    found = np.full((outputs, outputs, cells, cells), 4.0)
    add_curvature(rows.cells, fitting.of_cells(design, coefficients), found)
    p = p if outputs > 1 else p[:, 1:]
    expected = np.full(found.shape, 4.0)
    for row, of_row in zip(rows.cells, p, strict=True):
        for c, e in itertools.combinations_with_replacement(range(outputs), 2):
            for j, m in itertools.combinations_with_replacement(row, 2):
                expected[c, e, j, m] += of_row[c] * ((c == e) - of_row[e])
    assert found == pytest.approx(expected)


# --- the loss -------------------------------------------------------------------------------------------------------


@each_design
@pytest.mark.parametrize("times", [1.0, 16.0])
def test_gradient_and_hessian_are_those_of_the_loss(design: Design, times: float) -> None:
    loss = attrs.evolve(some_loss(design, 70), times=times)
    coefficients = np.random.default_rng(4).normal(0, 1, (design.columns, design.outputs))
    X = columns_of(loss.rows)
    of_rows = times * X.T @ off(loss.rows, coefficients)
    assert loss.residuals(coefficients) == pytest.approx(of_rows)
    whole = of_rows + np.diag(loss.tuned.ridge) @ coefficients + loss.noise
    assert loss.gradient(coefficients) == pytest.approx(whole)
    R = np.kron(np.eye(design.outputs), np.diag(loss.tuned.ridge))
    flat = whole.T.ravel()
    assert loss.size(whole) == pytest.approx(math.sqrt(flat @ np.linalg.inv(R) @ flat))
    p = plain_probabilities(loss.rows, coefficients)
    p = p if design.outputs > 1 else p[:, 1:]
    expected = R.copy()
    for x, of_row in zip(X, p, strict=True):
        expected += times * np.kron(np.diag(of_row) - np.outer(of_row, of_row), np.outer(x, x))
    assert loss.hessian(coefficients) == pytest.approx(expected)


@each_design
@pytest.mark.parametrize("number", [0, 70])
def test_the_bound_adds_up_what_the_module_derives(design: Design, number: int) -> None:
    loss, u = some_loss(design, number), 2.0**-53
    ridge = loss.tuned.ridge[:, None]
    lowest = math.sqrt(ridge.min())
    # half a step of the noise's lattice in each coordinate; with one sum the last of three cells has three halves,
    # and of four outputs the last has
    squares = (9 + (1 + 1 + 9) + 1 + 9 * bool(design.leaves)) / 4 if design.outputs == 1 else design.columns * 3 * 4 / 4
    half = math.sqrt(squares) * float(loss.tuned.step) / lowest
    assert loss.of_noise == pytest.approx(half * (1 + 2.0**-30), rel=1e-12, abs=0)
    coefficients = minimise(loss.rows, loss.tuned, loss.noise)  # where no part hides the others
    sums = loss.residuals(coefficients)
    exact = loss.size(sums + ridge * coefficients + loss.noise)
    rounded = 4 * u * loss.size(np.abs(sums) + np.abs(ridge * coefficients) + np.abs(loss.noise))
    attributes = len(design.sizes) + 1
    of_row = (28 + design.classes + 2 * len(design.leaves)) * u
    of_rows = math.sqrt(design.outputs * attributes * (of_row * number) ** 2) / lowest
    parts = [exact, rounded, of_rows, half * (1 + 2.0**-30)]
    assert loss.bound(coefficients) == pytest.approx(math.fsum(parts) * (1 + 2.0**-30), rel=1e-12, abs=0)
    assert min(parts[1:] if number else parts[1:2]) > 1e-7 * math.fsum(parts)


@each_design
def test_no_score_has_more_than_2_to_the_50_steps_of_the_lattice(design: Design) -> None:
    loss, rng = some_loss(design, 3), np.random.default_rng(6)
    for size in (1e-9, 2.0**-10, 0.4, 7.0, 1e9):
        coefficients = rng.normal(0, size, (design.columns, design.outputs))
        cells = [range(a, a + n) for a, n in zip(design.first_cells, (*design.sizes, 1), strict=True)]
        added = np.abs(design.of_cells.T @ coefficients) + np.abs(design.offsets)
        largest = sum(added[list(of_one)].max() for of_one in cells)
        step = lattice_step(loss, coefficients)
        assert math.log2(step) == round(math.log2(step))
        assert step * 2.0**49 < max(largest, 2.0**-10) * (1 + 2.0**-39)
        assert max(largest, 2.0**-10) <= step * 2.0**50
        rounded = round_to_lattice(loss, coefficients)
        grains = np.where(
            [bool(design.leaves) and column == design.starts[-2] for column in range(design.columns)], 16, 1
        )
        steps = step * grains[:, None]
        assert (rounded == np.rint(coefficients / steps) * steps).all()
        assert (np.abs(rounded - coefficients) <= steps / 2).all()
        # so each cell's part of a score is a whole number of steps, exactly
        in_steps = fitting.of_cells(design, rounded) / step
        assert (in_steps == np.rint(in_steps)).all()
    zero = np.zeros((design.columns, design.outputs))
    assert lattice_step(loss, zero) == (2.0**-48 if design.leaves else 2.0**-60)  # offsets of up to 2


def test_a_largest_score_at_a_power_of_two_is_taken_for_one_above_it() -> None:
    """Its sum was rounded: a share of 2**-40 more covers that."""
    ones = np.array([[0.5], [0.25], [0.25], [0.25], [0.25]])  # 1/2 + 1/4 + 1/4 at most
    assert lattice_step(some_loss(TWO, 1), ones) == 2.0 ** (1 - 50)
    assert lattice_step(some_loss(TWO, 1), ones * (1 - 2.0**-30)) == 2.0**-50


@each_design
def test_a_bound_is_believed_on_the_lattice_and_on_one_twice_as_fine(design: Design) -> None:
    """A lattice that was chosen before rounding may be the finer one; scores on it have less than 52 bits."""
    loss = some_loss(design, 5)
    coefficients = round_to_lattice(loss, np.full((design.columns, design.outputs), 0.3))
    step = lattice_step(loss, coefficients)
    for away, believed in ((0.0, True), (0.5, True), (1.5, True), (0.25, False), (1 / 3, False)):
        moved = coefficients.copy()
        moved[0, 0] += away * step
        assert lattice_step(loss, moved) == step
        assert (loss.bound(moved) < math.inf) is believed


@each_design
@pytest.mark.parametrize("number", [0, 30])
def test_a_fit_ends_where_the_gradient_is_as_small_as_is_asked(design: Design, number: int) -> None:
    loss = some_loss(design, number)
    found = minimise(loss.rows, loss.tuned, loss.noise)
    assert loss.bound(found) <= loss.tuned.gradient_error
    steps = fit_in_steps(loss.rows, loss.tuned, loss.noise)
    assert steps.tolist() == np.rint(found / loss.tuned.release_step).tolist()
    if number == 0:  # the minimum of w'Rw / 2 + b'w
        assert found == pytest.approx(-loss.noise / loss.tuned.ridge[:, None])


def test_where_the_bound_is_too_large_the_fit_is_refined_by_what_the_real_noise_leaves(monkeypatch: Any) -> None:
    """The bound is of the real noise; more digits see its lattice, so that is taken off what is asked."""
    loss, asked = some_loss(TWO, 30), []
    enough = loss.tuned.gradient_error
    monkeypatch.setattr(fitting, "refine", lambda *given: asked.append(given) or "refined")
    for bound, refined_too in ((enough, False), (enough * (1 + 1e-9), True)):
        monkeypatch.setattr(Loss, "bound", lambda *_, bound=bound: bound)
        assert isinstance(fit_in_steps(loss.rows, loss.tuned, loss.noise), str) is refined_too
    ((_, _, left, unit),) = asked
    assert (left, unit) == (enough - loss.of_noise, loss.tuned.release_step)
    assert 0 < left < enough


def test_what_is_far_away_is_put_at_2_to_the_61_steps(monkeypatch: Any) -> None:
    loss = some_loss(TWO, 2)
    most = 2.0**61 * loss.tuned.release_step
    far = np.array([[most * 4], [-most * 4], [0.0], [most / 2], [-most / 2]])
    monkeypatch.setattr(fitting, "minimise", lambda *_: far)
    monkeypatch.setattr(Loss, "bound", lambda *_: 0.0)
    assert fit_in_steps(loss.rows, loss.tuned, loss.noise).ravel().tolist() == [2**61, -(2**61), 0, 2**60, -(2**60)]


# --- more digits ----------------------------------------------------------------------------------------------------


@each_design
def test_gradients_in_more_digits_are_those_of_floats(design: Design) -> None:
    """Rows that are alike are looked at once, as often as they occur."""
    loss = some_loss(design, 120)
    coefficients = np.random.default_rng(8).normal(0, 1, (design.columns, design.outputs))
    with mpmath.workprec(200):
        exact = _Exact(loss)
        assert sum(exact.counts) == 120
        assert len(exact.counts) == len(
            {(*cells, c) for cells, c in zip(loss.rows.cells.tolist(), loss.rows.classes, strict=True)}
        )
        at = np.array([[mpmath.mpf(float(w)) for w in row] for row in coefficients], dtype=object)
        gradient, largest = exact.gradient(at)
        assert np.array(gradient, dtype=float) == pytest.approx(loss.gradient(coefficients))
        ridged = np.abs(loss.tuned.ridge[:, None] * coefficients).max()
        assert float(largest) == pytest.approx(max(ridged, np.abs(loss.noise).max()) + 120)
        assert float(exact.size(gradient)) == pytest.approx(loss.size(loss.gradient(coefficients)))
        # no eigenvalue of the Hessian is above it, wherever that is taken
        steepest = loss.tuned.ridge.max() + 120 * len(design.widths) / 2
        assert float(exact.steepest) == pytest.approx(steepest)
    for size in (0.0, 1.0, 5.0):
        assert np.linalg.eigvalsh(loss.hessian(size * coefficients)).max() <= steepest


@each_design
@pytest.mark.parametrize("inverse", [True, False])
def test_where_floats_end_more_digits_go_on_to_any_gradient(design: Design, inverse: bool, monkeypatch: Any) -> None:
    """Of 1e-70 too, which takes digits that are doubled: compared with Newton's method in 400 digits."""
    loss = some_loss(design, 12, 20)
    start = minimise(loss.rows, loss.tuned, loss.noise) + 0.01
    if not inverse:
        monkeypatch.setattr("dpframework_trees.additive.minimiser_refinement.inverse_of", lambda _: None)
    enough, unit = (1e-70, 2.0**-50) if inverse else (1e-3, 2.0**-10)
    found = refine(loss, start, enough, unit)
    with mpmath.workprec(1300):
        exact, at = _Exact(loss), np.array([[mpmath.mpf(float(w)) for w in row] for row in start], dtype=object)
        newton = np.linalg.inv(loss.hessian(minimise(loss.rows, loss.tuned, loss.noise)))
        for _ in range(60):
            gradient, _ = exact.gradient(at)
            steps = newton.astype(object) @ gradient.T.ravel()
            at = at - steps.reshape(gradient.T.shape).T
        off_by = [
            abs(mpmath.mpf(int(k)) * unit - w)
            for row, of_row in zip(found, at, strict=True)
            for k, w in zip(row, of_row, strict=True)
        ]
        away = enough / math.sqrt(loss.tuned.ridge.min())  # w - w* in the norm of R is no longer than the gradient
        assert float(max(off_by)) <= unit / 2 + away * math.sqrt(1 / loss.tuned.ridge.min())


class Parabolas:
    """Two coefficients, each with a parabola of curvature 2 around 3; of ridges 4 and 1, and a largest number."""

    ridge, steepest = np.array([[mpmath.mpf(4)], [mpmath.mpf(1)]], dtype=object), 4

    def __init__(self, largest: float) -> None:
        self.largest, self.looked = mpmath.mpf(largest), 0

    def gradient(self, at: Any) -> tuple[Any, Any]:
        self.looked += 1
        return 2 * (at - 3), self.largest

    def size(self, gradient: Any) -> Any:
        return mpmath.sqrt(mpmath.fsum((gradient**2 / self.ridge).ravel()))


def descended(largest: float, enough: float, inverse: Any, bits: int) -> tuple[bool, float, int]:
    """Step from 3 and 4, where the gradient is 0 and 2, of size 2; return also how often it was looked at."""
    exact = Parabolas(largest)
    with mpmath.workprec(300):
        at = np.array([[mpmath.mpf(3)], [mpmath.mpf(4)]], dtype=object)
        done, at = _descend(exact, at, enough, inverse, bits)  # type: ignore[arg-type]
    assert at[0, 0] == 3
    return done, float(at[1, 0] - 3), exact.looked


def test_steps_end_where_the_gradient_and_what_is_not_known_of_it_are_small_enough() -> None:
    """What rounding may have done is the largest number, times 2**(64 - bits), times the number of coefficients."""
    half = np.eye(2) / 2
    assert descended(0.5, 3.0, half, 64) == (True, 1, 1)  # a size of 2, and a doubt of 1
    assert descended(0.5, 3.0 - 1e-9, half, 64) == (False, 1, 1)  # a doubt of more than a quarter
    assert descended(0.5, 2.5, half, 64) == (False, 1, 1)
    assert descended(0.25, 2.0, half, 64) == (True, 0, 2)  # of a quarter: Newton's step is taken
    assert descended(0.0, 1e-3, half, 64) == (True, 0, 2)
    for inverse, looks in ((None, 1), (5 * np.eye(2), 2)):  # a step of no use costs a look; then one that halves
        done, off_by, looked = descended(0.0, 0.0079, inverse, 64)
        assert (done, off_by, looked) == (True, 2.0**-8, 1 + 8 * looks)
    # steps that leave a quarter each
    assert descended(0.0, 2.0**-5, np.eye(2) * 3 / 8, 64) == (True, 2.0**-6, 4)


def test_what_is_not_known_of_a_gradient_is_measured_by_the_smallest_ridge() -> None:
    exact = Parabolas(1.0)
    exact.ridge = np.array([[mpmath.mpf(16)], [mpmath.mpf(4)]], dtype=object)
    at = np.array([[mpmath.mpf(3)], [mpmath.mpf(4)]], dtype=object)
    done, _ = _descend(exact, at, 2.0, None, 64)  # type: ignore[arg-type]
    assert done  # a size of 2 / 2, and a doubt of 1 for either of two coefficients, over 2


@pytest.mark.parametrize(("share", "ends"), [(1.0005, False), (0.9995, True)])
def test_every_fifty_steps_it_is_asked_whether_more_digits_are_needed(share: float, ends: bool) -> None:
    """They are where the doubt is above a 1024th of the size: 2**-49 after fifty halvings."""
    done, off_by, looked = descended(share * 2.0**-60, 2.0**-56, None, 64)
    assert (done, looked) == ((True, 59) if ends else (False, 51))
    assert off_by == 2.0 ** -(looked - 1)


def test_what_is_far_away_is_put_at_2_to_the_61_steps_in_more_digits_too() -> None:
    loss = attrs.evolve(some_loss(TWO, 4), noise=np.array([[1e30], [-1e30], [0.0], [3.0], [-3.0]]))
    found = refine(loss, np.zeros((5, 1)), 1.0, 2.0**-40).ravel().tolist()
    assert found[:2] == [-(2**61), 2**61]
    assert max(map(abs, found[2:])) < 2**50


def test_an_inverse_is_none_where_floats_have_none() -> None:
    assert inverse_of(np.zeros((2, 2))) is None
    assert inverse_of(np.diag([1e-320, 1.0])) is None  # its inverse is infinite
    found = inverse_of(np.array([[2.0, 0.0], [0.0, 4.0]]))
    assert found is not None
    assert found.tolist() == [[0.5, 0.0], [0.0, 0.25]]


# --- rows -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", [InMemory(), Threads(3)], ids=["one block", "three"])
def test_the_rows_of_a_fit_are_the_cells_of_their_codes(engine: dpf.Engine) -> None:
    schema = dpf.Schema(
        [
            dpf.Numeric("n", 0, 9, bins=4, missing=True),
            dpf.Boolean("unused"),
            dpf.Boolean("b"),
            dpf.Categorical("class", ["x", "y", "z"]),
        ]
    )
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, a.size, 50) for a in schema])
    design = Design([(0, 0, 1, 1, 2), (0, 1)], 3, 50, 50)
    query = LogisticRows(schema["class"], ("n", "b"))
    found = query.evaluate(engine, engine.load(dpf.Table.from_codes(schema, codes)), design=design)
    merged = np.array([0, 0, 1, 1, 2])[codes[0]]
    assert found.cells.tolist() == np.column_stack([merged, 3 + codes[2], np.full(50, 5)]).tolist()
    assert found.classes.tolist() == codes[3].tolist()
    assert found.design is design
    compared = query.coordinates(found)
    assert len(set(np.round(compared, 9).tolist())) > len(compared) / 2


def test_as_many_rows_as_the_design_allows_are_fitted() -> None:
    design = attrs.evolve(TWO, most_rows=4)
    given = perturbation.ObjectivePerturbation(1).calibrate(
        LogisticRows(dpf.Boolean("class"), ("a", "b")).facts(), Relation.ADD_OR_REMOVE_ONE
    )
    assert given is not None
    found = given.mechanism.release(some_rows(design, 4), given, SeededRandomness(0))
    assert found.shape == (design.columns, 1)
    with pytest.raises(dpf.InputError, match="more rows than the schema's max_rows allows for a fit; raise max_rows"):
        given.mechanism.release(some_rows(design, 5), given, SeededRandomness(0))
    assert given.mechanism.log_density(some_rows(design, 4), np.zeros((2, 1)), given) == -math.inf
    assert given.mechanism.log_density(some_rows(design, 4), np.full((5, 1), np.nan), given) == -math.inf
