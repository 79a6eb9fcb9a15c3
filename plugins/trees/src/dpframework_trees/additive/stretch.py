"""By how much scores are stretched, where the ridge holds them back more than rows and noise do.

Post-processing: it reads released coefficients and public facts, and costs nothing.

The ridge R must be large enough for the noise b, so where classes can be told apart nearly without error the scores are
too small: predictions are right more often than they say. At the minimiser w the rows' gradient is - R w - b. So if all
scores s are multiplied by a, the derivative of the rows' log-likelihood by a, at a = 1, is

    D = sum over rows of (outcome - p)' s = w'Rw + w'b.

The first part is known. Of the second the expectation is: w is about (H + R)**-1 times (something of the rows, less b),
with H the Hessian of the rows' loss, so E[w'b] is about - trace((H + R)**-1 Cov(b)). In the columns of an attribute
that is, if attributes are independent, the sum of sd**2 / (h + R), with h in proportion to the rows of each cell. These
are private, so what is taken off follows from the kind of an attribute:

- Of a number most rows are often in few bins, and several numbers are often alike, which leaves more noise. 1 / (h + R)
  is convex in h, so the sum is largest if all rows are in one cell, and that is taken off.
- Of other attributes what rows leave that are spread evenly over cells. A row's part of h is the mean of p (1 - p) by
  the released scores: the surer these are, the more noise there is. The mean of an attribute's columns is told apart
  from the intercept, and from other attributes' means, by the ridge alone: there h is 0.

What is left of D is evidence that scores are too small; where nothing is left, nothing is stretched. (Where attributes
tell the same, noise may leave more than is taken off.)

The derivative falls as a grows: by I(a), the sum over rows of the variance of s by the p of a s. It is taken as
expected, of rows spread evenly over cells, by a fixed sample of these. J(a), the integral of I from 1 to a, is what a
stretch by a takes of D. D is an estimate: given w, w'b has a variance of about the sum of sd**2 w**2; and the columns
of a group share a radius, whose square varies by a share of 2 / sqrt(d + 1) in d dimensions, and what is taken off with
it. Let V be the sum of both variances. Before any evidence a - 1 is expected within about `SPREAD` of 0. So what is
taken is the most likely a given D, where the derivative of (D - J(a))**2 / V + (a - 1)**2 / SPREAD**2 is 0:

    (D - J(a)) I(a) SPREAD**2 = (a - 1) V.
"""

from __future__ import annotations

import math

import attrs
import numpy as np

from dpframework_trees.additive.design import CURVATURE, Design, Reals, Tuned, probabilities

SPREAD = 1.0  # of the factor, as it is expected
SAMPLED = 2_000  # rows, evenly spread over cells
MOST = 3.0  # no score is stretched by more
FACTORS = np.linspace(1, MOST, 65)  # at which information is computed


@attrs.frozen
class Evidence:
    """Estimates of the log-likelihood's derivative by a factor of all scores (see the module).

    Attributes
    ----------
    left
        Its expectation, with the noise of each attribute taken off.
    variance
        The variance of the estimate, about.
    """

    left: float
    variance: float


def stretch_of(tuned: Tuned, coefficients: Reals) -> float:
    """Return the factor for all scores of released coefficients, shape (columns, outputs), at least 1."""
    centred = coefficients - coefficients.mean(axis=1, keepdims=True) if coefficients.shape[1] > 1 else coefficients
    scores = _scores(tuned.design, centred)
    evidence = evidence_of(tuned, centred, scores)
    information = explained = wanted = 0.0
    for k, factor in enumerate(FACTORS):  # up to the first that is too large: each takes a pass over the scores
        known, information = information, tuned.design.rows * _variance(scores, factor)
        if k:
            explained += (information + known) / 2 * (factor - FACTORS[k - 1])
        last, wanted = wanted, (evidence.left - explained) * information * SPREAD**2 - (factor - 1) * evidence.variance
        if wanted <= 0 and not k:
            return 1.0
        if wanted <= 0:
            return float(FACTORS[k - 1] + last / (last - wanted) * (factor - FACTORS[k - 1]))
    return MOST


def evidence_of(tuned: Tuned, centred: Reals, scores: Reals) -> Evidence:
    """Return the evidence of released coefficients, and scores that they give to rows spread evenly.

    Coefficients are centred: their mean over several outputs moves no score and is left out.
    """
    design, variances, ridge = tuned.design, tuned.deviations**2, tuned.ridge
    free, classes = max(design.outputs - 1, 1), design.classes
    p = probabilities(scores)
    surer = (1 - (p**2).sum(axis=1)).mean() * classes / (classes - 1) / (4 * CURVATURE)  # than is expected: below 1
    taken = []
    for j, (start, width) in enumerate(zip(design.starts, design.widths, strict=True)):
        even, own = tuned.curvatures[start], ridge[start]
        if j in design.numeric:
            columns = (width - 1) / own + 1 / (even * width + own)
        else:
            columns = max(width - 1, 1) / (even * surer + own) + (width > 1) / own
        taken.append(free * variances[start] * columns)
    of_radius = 0.0
    for g, group in enumerate(design.groups):
        of_radius += 4 / (sum(design.blocks(g)) + 1) * math.fsum(taken[j] for j in group) ** 2
    left = float((ridge[:, None] * centred**2).sum()) - math.fsum(taken)
    return Evidence(left, float((variances[:, None] * centred**2).sum()) + of_radius)


def _scores(design: Design, coefficients: Reals) -> Reals:
    """Return the scores of rows that are spread evenly over cells, shape (rows, outputs)."""
    rng, of_cells = np.random.default_rng(0), design.of_cells.T @ coefficients
    found = np.tile(of_cells[-1], (SAMPLED, 1))
    for first, size in zip(design.first_cells, design.sizes, strict=False):
        found += of_cells[first + rng.integers(size, size=SAMPLED)]
    return found


def _variance(scores: Reals, factor: float = 1.0) -> float:
    """Return the mean over rows of the variance of a score by the probabilities that scores times a factor give."""
    all_scores = np.column_stack([np.zeros(len(scores)), scores]) if scores.shape[1] == 1 else scores
    p = probabilities(factor * scores)
    return float(((p * all_scores**2).sum(axis=1) - (p * all_scores).sum(axis=1) ** 2).mean())
