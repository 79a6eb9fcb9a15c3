"""How far noise moves the functions of an additive model: never further than its wide band says, and as far as that."""

from fractions import Fraction

import numpy as np
import pytest
from dpframework_trees.additive import DPAdditive
from dpframework_trees.additive.bands import most_deviations
from dpframework_trees.additive.design import Design
from dpframework_trees.additive.noise_and_ridge import NoiseAndRidge
from scipy.stats import chi2

import dpframework as dpf

GIVEN = [
    dpf.Boolean("ripe"),
    dpf.Categorical("colour", list("abc")),
    dpf.Categorical("farm", list("uvwxyz"), missing=True),
]
DESIGNS = {
    "two": Design([(0, 1), (0, 1, 2), tuple(range(7))], 2, 500, 10_000),
    "several": Design([(0, 1), (0, 1, 2), tuple(range(7))], 3, 500, 10_000),
}


def contrasts(design):
    """Return each cell's value as a linear function of one output's coefficients, shape (columns, cells)."""
    found = design.of_cells.copy()
    for j, attribute in enumerate(GIVEN):
        part = slice(design.first_cells[j], design.first_cells[j + 1])
        found[:, part] -= found[:, part][:, : design.sizes[j] - attribute.missing].mean(axis=1, keepdims=True)
    return found[:, :-1]


def covariance(tuned):
    """Return the covariance of the noise: in a group with one sum, of what blocks share and of the rest."""
    design, found = tuned.design, np.diag(tuned.deviations**2)
    for group, noise, scale in zip(design.groups, design.noises, tuned.scales, strict=True):
        if noise.one_sum:
            shared = np.zeros(design.columns)
            for j in group:
                part, width = design.columns_of(j), design.widths[j]
                if width > 1 or j == len(design.widths) - 1:
                    found[part, part] = tuned.deviations[part][0] ** 2 * (np.eye(width) - 1 / width)
                    shared[part] = 1 / width
            found += noise.square_of_sum * (scale * float(tuned.step)) ** 2 * np.outer(shared, shared)
    return found


def deviations(tuned, hessian, of):
    """Return the standard deviation of linear functions of the coefficients, for the Hessian of some rows."""
    moved = np.linalg.inv(hessian + np.diag(tuned.ridge)) @ of
    return np.sqrt((moved * (covariance(tuned) @ moved)).sum(axis=0))


@pytest.mark.parametrize("epsilon", ["0.1", "2"])
@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_no_rows_leave_more_noise_than_the_wide_band(design, epsilon):
    tuned, rng = NoiseAndRidge(design, Fraction(epsilon)), np.random.default_rng(0)
    of, most = contrasts(design), most_deviations(tuned, GIVEN)[:-1]
    for size in np.geomspace(0.01, 100, 60):
        rank = int(rng.integers(1, design.columns + 1))
        factor = rng.normal(size=(design.columns, rank)) * np.sqrt(size * tuned.ridge)[:, None]
        assert (deviations(tuned, factor @ factor.T, of) <= most * (1 + 1e-9)).all()


@pytest.mark.parametrize("epsilon", ["0.1", "2"])
@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_some_rows_leave_as_much(design, epsilon):
    """The Hessian whose N projects on the point v of the ball between 0 and u at which the variance is largest."""
    tuned = NoiseAndRidge(design, Fraction(epsilon))
    of, most, root = contrasts(design), most_deviations(tuned, GIVEN)[:-1], np.sqrt(tuned.ridge)
    values, vectors = np.linalg.eigh(covariance(tuned) / np.outer(root, root))
    largest, top = values[-1], vectors[:, -1]
    assert tuned.largest_ratio == pytest.approx(largest)
    for cell in range(of.shape[1]):
        u = of[:, cell] / root
        length, own = np.linalg.norm(u), (tuned.deviations**2 / tuned.ridge)[int(np.abs(u).argmax())]
        along = length if largest <= 2 * own else largest * length / (2 * (largest - own))
        v = u * along / length
        v += np.sqrt(along * (length - along)) * top
        n = (np.outer(v, v) / (v @ v) + 1e-7 * np.eye(len(v))) / (1 + 1e-7)
        hessian = root[:, None] * (np.linalg.inv(n) - np.eye(len(v))) * root
        assert deviations(tuned, hessian, of[:, [cell]])[0] == pytest.approx(most[cell], rel=1e-3)


def test_rare_values_and_copies_stay_within_the_wide_band_and_leave_the_narrow_one():
    """Thirty fits: a variance is above the true one by so much with probability 1e-9 a cell."""
    rng, names = np.random.default_rng(0), list("abcd")
    schema = dpf.Schema([dpf.Categorical(name, names) for name in ("colour", "copy")] + [dpf.Boolean("ill")], rows=3000)
    colour = rng.choice(4, 3000, p=[0.5, 0.49, 0.01, 0])
    codes = [colour.astype(np.uint8), colour.astype(np.uint8), rng.integers(0, 2, 3000).astype(np.uint8)]
    table, values = dpf.Table.from_codes(schema, codes), []
    for seed in range(30):
        study = dpf.Study(schema, epsilon=1, relation="replace-one")
        study.add("model", DPAdditive("ill", 1))
        model = study.run(table, seed=seed)["model"]
        values.append([term.values[:, 0] for term in model.terms])
    spread, term = np.std(values, axis=0, ddof=1), model.terms[0]
    assert (spread <= term.most_deviations * np.sqrt(chi2.isf(1e-9, 29) / 29)).all()
    assert (spread > 3 * term.deviations).all()  # were it right, one in so many runs would show this
    assert (spread[:, 3] > 0.4 * term.most_deviations[3]).all()
