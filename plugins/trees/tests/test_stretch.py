"""Scores that the ridge holds back are stretched, as far as releases and public facts show it."""

from fractions import Fraction

import attrs
import numpy as np
import pytest
from dpframework_trees.additive import AdditiveModel, Design
from dpframework_trees.additive.bands import expected_deviations
from dpframework_trees.additive.design import probabilities
from dpframework_trees.additive.fitting import Loss, Rows, minimise
from dpframework_trees.additive.noise_and_ridge import NoiseAndRidge
from dpframework_trees.additive.perturbation import draw_noise
from dpframework_trees.additive.shrinkage import shrink
from dpframework_trees.additive.stretch import MOST, _scores, centre, evidence_of, stretch_of

from dpframework.facts import Boolean, Categorical
from dpframework.mechanisms.randomness import SeededRandomness

ATTRIBUTES, CELLS = 6, 3


def rows_of(spread, classes=2, rows=3_000, in_first=1 / CELLS, seed=0, numeric=()):
    """Rows whose score is a sum over attributes of -spread, 0 or spread; `in_first` of them in each first cell.

    `numeric` are the positions of attributes that are numbers.
    """
    rng = np.random.default_rng(seed)
    rest = (1 - in_first) / (CELLS - 1)
    codes = rng.choice(CELLS, (rows, ATTRIBUTES), p=[in_first, *[rest] * (CELLS - 1)])
    score = spread * (codes - 1.0).sum(axis=1)
    outcome = np.digitize(score + rng.logistic(0, 1, rows), [0.0] if classes == 2 else [-1.0, 1.0])
    design = Design([tuple(range(CELLS))] * ATTRIBUTES, classes, float(rows), 10**6, numeric=numeric)
    cells = np.column_stack([codes + CELLS * np.arange(ATTRIBUTES), np.full(rows, CELLS * ATTRIBUTES)])
    return Rows(cells.astype(np.uint16), outcome.astype(np.uint16), design)


def fitted(rows, epsilon, seed):
    tuned = NoiseAndRidge(rows.design, Fraction(epsilon))
    return tuned, minimise(rows, tuned, draw_noise(tuned, SeededRandomness(seed)))


def scores_of(rows, coefficients):
    return (rows.design.of_cells.T @ coefficients)[rows.cells].sum(axis=1)


def derivative(rows, coefficients):
    """Of the log-likelihood by a factor of each output's scores, at 1."""
    loss = Loss(rows, NoiseAndRidge(rows.design, Fraction(1)), np.zeros(coefficients.shape))
    return -(loss.residuals(coefficients) * coefficients).sum(axis=0)


ALL = tuple(range(ATTRIBUTES))


def evidence(tuned, w):
    return evidence_of(tuned, w, _scores(tuned.design, w))


@pytest.mark.parametrize("classes", [2, 3])
def test_of_numbers_the_most_is_taken_off_that_an_attribute_could_leave(classes):
    """Of any spread of its rows over cells; all in one cell attain it. Of other attributes it is less."""
    tuned, w = fitted(rows_of(0.0, classes, 400, numeric=ALL), "1/2", 0)
    w = centre(w)
    given, last = (tuned.ridge[:, None] * w**2).sum(axis=0), [tuned.design.columns - 1]
    p = probabilities(_scores(tuned.design, w))[:, -tuned.design.outputs :]
    share = 1 if classes == 2 else 1 - 1 / classes
    surer = (p * (1 - p)).mean(axis=0) * classes**2 / (classes - 1) / 0.6 / share
    # the intercept, which all rows have, is as sure as the scores are
    of_column = np.where(np.isin(np.arange(len(w)), last)[:, None], surer, 1) * tuned.curvatures[:, None]
    rng, found = np.random.default_rng(0), []
    between, ridge = tuned.deviations[:, None] ** 2, tuned.ridge[:, None]
    of_means = np.append(np.repeat(tuned.variances_of_means[:-1], CELLS), between[-1])[:, None]
    shared, one_sum = 0.0, tuned.design.noises[0].one_sum
    if one_sum:  # the means and the intercept, whose noise is one number
        (variance, gain), h = tuned.shared[0], tuned.curvatures[-1] * surer
        shared, of_means, between[-1] = share * variance * gain / (1 + h * gain), np.zeros_like(of_means), 0
    noise = between + np.where(np.arange(len(w)) < len(w) - 1, 1, 0)[:, None] * (of_means - between) / CELLS  # a column
    for shares in ([1, 0, 0], *rng.dirichlet(np.ones(CELLS), 50), [0, 0, 1]):
        in_cells = np.concatenate([np.tile(shares, ATTRIBUTES) * CELLS, [1.0]])  # times rows spread evenly
        found.append((noise / (in_cells[:, None] * of_column + ridge)).sum(axis=0) * share + shared)
    most = np.max(found, axis=0)
    assert most == pytest.approx(given - evidence(tuned, w).left)
    assert found[0] == pytest.approx(most)
    assert found[-1] == pytest.approx(most)
    assert (np.min(found, axis=0) < 0.999 * most).all()
    others = NoiseAndRidge(attrs.evolve(tuned.design, numeric=()), tuned.epsilon)
    h = surer * tuned.curvatures[:, None]
    h[:-1:CELLS] = 0  # the mean of an attribute's columns: the ridge alone tells it from the intercept
    noise = between.copy()
    noise[:-1:CELLS] = of_means[:-1:CELLS]
    assert given - evidence(others, w).left == pytest.approx((noise / (h + ridge)).sum(axis=0) * share + shared)


@pytest.mark.parametrize("numeric", [(), ALL])
@pytest.mark.parametrize("classes", [2, 3])
def test_evidence_is_at_most_the_derivative_for_independent_attributes(classes, numeric):
    """Mean differences over 40 fits with seeds, to rows that are spread evenly: of numbers less, else about none."""
    rows, off = rows_of(0.0, classes, 1_000, numeric=numeric), []
    for seed in range(40):
        tuned, w = fitted(rows, "1", seed)
        w = centre(w)
        off.append((evidence(tuned, w).left - derivative(rows, w)).sum())
    error = np.std(off) / 40**0.5
    assert np.mean(off) < (-3 * error if numeric else 3 * error)
    assert numeric or np.mean(off) > -3 * error


def test_the_covariance_of_the_evidence_is_about_that_of_its_errors():
    """Of three outputs, over 200 fits with seeds, to rows that are spread evenly."""
    rows, off, said = rows_of(1.0, 3, 1_000), [], []
    for seed in range(200):
        tuned, w = fitted(rows, "1/2", seed)
        found = evidence(tuned, centre(w))
        off.append(found.left - derivative(rows, centre(w)))
        said.append(found.covariance)
    real, mean = np.cov(np.array(off).T), np.mean(said, axis=0)
    assert (real / mean < 4).all()
    assert (real / mean > 0.5).all()  # outputs share the noise's radius, and their errors


def test_of_several_classes_those_are_stretched_that_the_ridge_holds_back():
    """One of three classes follows from an attribute without error, the others from nothing."""
    rng = np.random.default_rng(0)
    rows = rows_of(0.0, 3, 6_000)
    outcome = np.where(rows.cells[:, 0] == 0, 0, rng.integers(1, 3, 6_000)).astype(np.uint16)
    told = attrs.evolve(rows, classes=outcome)
    factors = []
    for seed in range(6):
        tuned, w = fitted(told, "1/2", seed)
        factors.append(stretch_of(tuned, centre(w)))
    more = np.array([own[0] - own[1:].max() for own in factors])
    assert more.mean() > 3 * more.std() / len(more) ** 0.5


def test_scores_that_are_held_back_are_stretched():
    """Log-loss and the gap between what predictions say and how often they are right both fall, on other rows."""
    train, other = rows_of(4.0), rows_of(4.0, seed=1)
    factors, losses, gaps = [], [], []
    for seed in range(6):
        tuned, w = fitted(train, "1/2", seed)
        factors.append(float(stretch_of(tuned, w)[0]))
        for factor in (1.0, factors[-1]):
            p = probabilities(factor * scores_of(other, w))
            losses.append(-np.log(p[np.arange(len(p)), other.classes]).mean())
            gaps.append(abs(p.max(axis=1).mean() - (p.argmax(axis=1) == other.classes).mean()))
    assert min(factors) > 1.1
    assert np.mean(losses[1::2]) < np.mean(losses[::2]) - 0.01
    assert np.mean(gaps[1::2]) < np.mean(gaps[::2]) / 1.3


def test_a_model_has_the_scores_that_were_stretched():
    rows = rows_of(4.0)
    tuned, w = fitted(rows, "1/2", 0)
    factor = float(stretch_of(tuned, w)[0])
    given = [Categorical(f"a{j}", ["x", "y", "z"]) for j in range(ATTRIBUTES)]
    model = AdditiveModel.of_fit(tuned, w, Boolean("ill"), given)
    of_terms = [term.values[rows.cells[:, j] - CELLS * j] for j, term in enumerate(model.terms)]
    assert model.intercept + np.sum(of_terms, axis=0) == pytest.approx(factor * scores_of(rows, shrink(tuned, w)))
    assert model.terms[0].deviations == pytest.approx(factor * expected_deviations(tuned)[:CELLS])


def test_scores_that_say_enough_are_left_alone():
    """Nothing to learn, at a small epsilon: all that coefficients hold is noise, and that is taken off."""
    rows = rows_of(0.0, in_first=0.8, numeric=ALL)
    factors = [float(stretch_of(*fitted(rows, "1/10", seed))[0]) for seed in range(10)]
    assert np.mean(factors) < 1.2
    assert min(factors) == 1.0  # evidence for smaller scores is none
    tuned, w = fitted(rows, "1/10", 0)
    assert stretch_of(tuned, 0 * w).tolist() == [1.0]
    assert all(1 <= stretch_of(tuned, times * w)[0] <= MOST for times in (2, 5, 20, 1000))
