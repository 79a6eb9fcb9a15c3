"""Scores that the ridge holds back are stretched, as far as releases and public facts show it."""

from fractions import Fraction

import numpy as np
import pytest
from dpframework_trees.additive import AdditiveModel, Design
from dpframework_trees.additive.bands import expected_deviations
from dpframework_trees.additive.design import Tuned, probabilities
from dpframework_trees.additive.fitting import Loss, Rows, minimised
from dpframework_trees.additive.perturbation import drawn_noise
from dpframework_trees.additive.stretch import MOST, evidence_of, stretch_of

from dpframework.facts import Boolean, Categorical
from dpframework.mechanisms.randomness import SeededRandomness

ATTRIBUTES, CELLS = 6, 3


def rows_of(spread, classes=2, rows=3_000, in_first=1 / CELLS, seed=0):
    """Rows whose score is a sum over attributes of -spread, 0 or spread; `in_first` of them in each first cell."""
    rng = np.random.default_rng(seed)
    rest = (1 - in_first) / (CELLS - 1)
    codes = rng.choice(CELLS, (rows, ATTRIBUTES), p=[in_first, *[rest] * (CELLS - 1)])
    score = spread * (codes - 1.0).sum(axis=1)
    outcome = np.digitize(score + rng.logistic(0, 1, rows), [0.0] if classes == 2 else [-1.0, 1.0])
    design = Design([tuple(range(CELLS))] * ATTRIBUTES, classes, float(rows), 10**6)
    cells = np.column_stack([codes + CELLS * np.arange(ATTRIBUTES), np.full(rows, CELLS * ATTRIBUTES)])
    return Rows(cells.astype(np.uint16), outcome.astype(np.uint16), design)


def fitted(rows, epsilon, seed):
    tuned = Tuned(rows.design, Fraction(epsilon))
    return tuned, minimised(rows, tuned, drawn_noise(tuned, SeededRandomness(seed)))


def scores_of(rows, coefficients):
    return (rows.design.of_cells.T @ coefficients)[rows.cells].sum(axis=1)


def derivative(rows, coefficients):
    """Of the log-likelihood by a factor of all scores, at 1."""
    loss = Loss(rows, Tuned(rows.design, Fraction(1)), np.zeros(coefficients.shape))
    return -(loss.residuals(coefficients) * coefficients).sum()


@pytest.mark.parametrize("classes", [2, 3])
def test_what_is_taken_off_is_the_most_that_an_attribute_could_leave(classes):
    """Of any spread of its rows over cells; all in one cell attain it."""
    tuned, w = fitted(rows_of(0.0, classes, 400), "1/2", 0)
    w = w - w.mean(axis=1, keepdims=True) if classes > 2 else w
    taken = (tuned.ridge[:, None] * w**2).sum() - evidence_of(tuned, w).least
    rng, found = np.random.default_rng(0), []
    for shares in ([1, 0, 0], *rng.dirichlet(np.ones(CELLS), 50), [0, 0, 1]):
        in_cells = np.concatenate([np.tile(shares, ATTRIBUTES) * CELLS, [1.0]])  # times rows spread evenly
        left = tuned.deviations**2 / (in_cells * tuned.curvatures + tuned.ridge)
        found.append(left.sum() * max(tuned.design.outputs - 1, 1))
    assert max(found) == pytest.approx(taken)
    assert [found[0], found[-1]] == pytest.approx([taken, taken])
    assert min(found) < 0.999 * taken


@pytest.mark.parametrize("classes", [2, 3])
def test_evidence_is_less_than_the_derivative_for_independent_attributes(classes):
    """Mean differences over 40 fits with seeds."""
    rows, off = rows_of(0.0, classes, 1_000), []
    for seed in range(40):
        tuned, w = fitted(rows, "1", seed)
        w = w - w.mean(axis=1, keepdims=True) if classes > 2 else w
        off.append(evidence_of(tuned, w).least - derivative(rows, w))
    assert np.mean(off) < 0


def test_scores_that_are_held_back_are_stretched():
    """Log-loss and the gap between what predictions say and how often they are right both fall, on other rows."""
    train, other = rows_of(4.0), rows_of(4.0, seed=1)
    factors, losses, gaps = [], [], []
    for seed in range(6):
        tuned, w = fitted(train, "1/2", seed)
        factors.append(stretch_of(tuned, w))
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
    factor = stretch_of(tuned, w)
    given = [Categorical(f"a{j}", ["x", "y", "z"]) for j in range(ATTRIBUTES)]
    model = AdditiveModel.of_fit(tuned, w, Boolean("ill"), given)
    of_terms = [term.values[rows.cells[:, j] - CELLS * j] for j, term in enumerate(model.terms)]
    assert model.intercept + np.sum(of_terms, axis=0) == pytest.approx(factor * scores_of(rows, w))
    assert model.terms[0].deviations == pytest.approx(factor * expected_deviations(tuned)[:CELLS])


def test_scores_that_say_enough_are_left_alone():
    """Nothing to learn, at a small epsilon: all that coefficients hold is noise, and that is taken off."""
    rows = rows_of(0.0, in_first=0.8)
    factors = [stretch_of(*fitted(rows, "1/10", seed)) for seed in range(10)]
    assert np.mean(factors) < 1.1
    assert min(factors) == 1.0  # evidence for smaller scores is none
    tuned, w = fitted(rows, "1/10", 0)
    assert stretch_of(tuned, 0 * w) == 1.0
    assert all(1 <= stretch_of(tuned, times * w) <= MOST for times in (2, 5, 20, 1000))
