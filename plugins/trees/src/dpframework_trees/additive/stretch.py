"""By how much scores are stretched, where the ridge holds them back more than rows and noise do.

Post-processing: it reads released coefficients and public facts, and costs nothing.

The ridge R must be large enough for the noise b, so where classes can be told apart nearly without error the scores are
too small: predictions are right more often than they say. At the minimiser w the rows' gradient is - R w - b. So if all
scores s are multiplied by a, the derivative of the rows' log-likelihood by a, at a = 1, is

    D = sum over rows of (outcome - p)' s = w'Rw + w'b.

The first part is known. Of the second the expectation is: w is about (H + R)**-1 times (something of the rows, less b),
with H the Hessian of the rows' loss, so E[w'b] is about - trace((H + R)**-1 Cov(b)). In the columns of an attribute
that is, if attributes are independent, the sum of sd**2 / (h + R), with h in proportion to the rows of each cell. These
are private; but 1 / (h + R) is convex in h, so the sum is largest if all rows are in one cell, and that is what is
taken off. What is left of D is evidence that scores are too small, however rows lie in the cells of an attribute; where
nothing is left, nothing is stretched. (Where attributes tell the same, noise may leave more than is taken off.)

One step of Newton's method gives a = 1 + D / I, with I = - the second derivative: the sum over rows of the variance of
s by p. It is taken as expected, of rows spread evenly over cells, by a fixed sample of these. With two classes D is
convex in a (its second derivative is the sum of abs(s)**3 p (1 - p) abs(1 - 2 p)), so one step stops short of the
maximum.

D is an estimate: given w, w'b has a variance of about the sum of sd**2 w**2; and the columns of a group share a radius,
whose square varies by a share of 2 / sqrt(d + 1) in d dimensions, and what is taken off with it. Let V be the sum of
both variances. Before any evidence a - 1 is expected within about `SPREAD` of 0, so what is taken is its mean given D,

    a - 1 = D I SPREAD**2 / (I**2 SPREAD**2 + V).
"""

from __future__ import annotations

import math

import attrs
import numpy as np

from dpframework_trees.additive.design import Design, Reals, Tuned, probabilities

SPREAD = 0.5  # of the factor, as it is expected
SAMPLED = 2_000  # rows, evenly spread over cells
MOST = 3.0  # no score is stretched by more


@attrs.frozen
class Evidence:
    """Estimates of the log-likelihood's derivatives by a factor of all scores (see the module).

    Attributes
    ----------
    least
        Its expectation, for the rows for which that is least.
    variance
        That of the estimate, about.
    """

    least: float
    variance: float


def stretch_of(tuned: Tuned, coefficients: Reals) -> float:
    """Return the factor for all scores of released coefficients, shape (columns, outputs), at least 1."""
    centred = coefficients - coefficients.mean(axis=1, keepdims=True) if coefficients.shape[1] > 1 else coefficients
    evidence = evidence_of(tuned, centred)
    information = tuned.design.rows * _variance(_scores(tuned.design, centred))
    if evidence.least <= 0 or information <= 0:
        return 1.0
    expected = (information * SPREAD) ** 2
    return float(min(1 + evidence.least / information * expected / (expected + evidence.variance), MOST))


def evidence_of(tuned: Tuned, centred: Reals) -> Evidence:
    """Return the evidence of released coefficients. Their mean over several outputs moves no score and is left out."""
    design, variances, ridge = tuned.design, tuned.deviations**2, tuned.ridge
    free = max(design.outputs - 1, 1)
    taken = []
    for start, width in zip(design.starts, design.widths, strict=True):
        of_all = tuned.curvatures[start] * width
        taken.append(free * variances[start] * ((width - 1) / ridge[start] + 1 / (of_all + ridge[start])))
    of_radius = 0.0
    for g, group in enumerate(design.groups):
        of_radius += 4 / (sum(design.blocks(g)) + 1) * math.fsum(taken[j] for j in group) ** 2
    least = float((ridge[:, None] * centred**2).sum()) - math.fsum(taken)
    return Evidence(least, float((variances[:, None] * centred**2).sum()) + of_radius)


def _scores(design: Design, coefficients: Reals) -> Reals:
    """Return the scores of rows that are spread evenly over cells, shape (rows, outputs)."""
    rng, of_cells = np.random.default_rng(0), design.of_cells.T @ coefficients
    found = np.tile(of_cells[-1], (SAMPLED, 1))
    for first, size in zip(design.first_cells, design.sizes, strict=False):
        found += of_cells[first + rng.integers(size, size=SAMPLED)]
    return found


def _variance(scores: Reals) -> float:
    """Return the mean over rows of the variance of a score by the probabilities that scores give."""
    all_scores = np.column_stack([np.zeros(len(scores)), scores]) if scores.shape[1] == 1 else scores
    p = probabilities(scores)
    return float(((p * all_scores**2).sum(axis=1) - (p * all_scores).sum(axis=1) ** 2).mean())
