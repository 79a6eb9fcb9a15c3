"""By how much scores are stretched, where the ridge holds them back more than rows and noise do.

Post-processing: it reads released coefficients and public facts, and costs nothing.

The ridge R must be large enough for the noise b, so where classes can be told apart nearly without error the scores are
too small: predictions are right more often than they say. Each output has a factor of its own, since of several classes
one may be told apart so and others not. Of several outputs w and b are what is left of coefficients and noise when the
mean over outputs is taken off: that moves no probability. At the minimiser the rows' gradient is then - R w - b. So if
the scores s_c of output c are multiplied by a_c, the derivative of the rows' log-likelihood by a_c, at a = 1, is

    D_c = sum over rows of (outcome_c - p_c) s_c = w_c'R w_c + w_c'b_c.

The first part is known. Of the second the expectation is: w_c is about (H + R)**-1 times (something of the rows, less
b_c), with H the Hessian of the rows' loss, so E[w_c'b_c] is about - trace((H + R)**-1 Cov(b_c)), Cov(b_c) for K classes
1 - 1 / K of the noise's. In the columns of an attribute that is, if attributes are independent, the sum of sd**2 / (h +
R), with h in proportion to the rows of each cell. These are private, so what is taken off follows from the kind of an
attribute:

- Of a number most rows are often in few bins, and several numbers are often alike, which leaves more noise. 1 / (h + R)
  is convex in h, so the sum is largest if all rows are in one cell, and that is taken off.
- Of other attributes what rows leave that are spread evenly over cells. A row's part of h is the mean of p_c (1 - p_c)
  by the released scores, over 1 - 1 / K for K outputs, whose curvature is larger in what is left when the mean over
  outputs is taken off: the surer scores are, the more noise there is. The mean of an attribute's columns is told apart
  from the intercept, and from other attributes' means, by the ridge alone: there h is 0.
- Of what a group's blocks share (noise with one sum, see `perturbation`) what rows leave that tell nothing else. Let r
  be that sum, of variance V, and c the sum of R w in each of the blocks: their means and the intercept add g c to the
  score, g the group's `Tuned.shared` gain. With h the intercept's curvature, and G the sum of the groups' gains,
  c = - h times (what all groups add) - r. So -E[w'b] is g V (1 - h g / (1 + h G)).

What is left of D is evidence that scores are too small; where nothing is left, nothing is stretched. (Where attributes
tell the same, noise may leave more than is taken off.)

D falls as a grows, by J(a): J_c is the sum over rows of s_c times how much p_c grows from 1 to a. It is taken as
expected, of rows spread evenly over cells, by a fixed sample of these. D is an estimate: given w, w_c'b_c has a
variance of about the sum of sd**2 w**2; and the columns of a group share a radius, whose square varies by a share of 2
/ sqrt(d + 1) in d dimensions, and what is taken off with it. Balanced noise has one radius for all outputs. Of noise by
output, what output c leaves comes by 1 - 1 / K from its own radius, and by 1 / (K (K - 1)) from each other's. Let V be
the sum of both covariances. Before any evidence each a_c - 1 is expected within about `SPREAD` of 0, and those of
several outputs are alike: their covariance is U, with `SPREAD`**2 on the diagonal, and `ALIKE` times that beside it. So
what is taken is the most likely a from 1 to `MOST` given D, where this is least:

    (D - J(a))' V**-1 (D - J(a)) + (a - 1)' U**-1 (a - 1).

It is looked for by Newton's method with J taken as linear (Gauss and Newton), within these bounds.
"""

from __future__ import annotations

import functools

import attrs
import numpy as np

from dpframework_trees.additive.design import Design, Reals, probabilities
from dpframework_trees.additive.group_noise import GroupNoise
from dpframework_trees.additive.tuning import CURVATURE, Tuned

SPREAD = 1.0  # of the factor, as it is expected
ALIKE = 0.8  # the correlation of two outputs' factors, as it is expected
SAMPLED = 2_000  # rows, evenly spread over cells
MOST = 3.0  # no score is stretched by more
STEPS = 50  # of the search, at most
HALVINGS = 20
ENOUGH = 1e-6  # of a factor: a smaller step ends the search


@attrs.frozen(eq=False)
class Evidence:
    """Estimates of the log-likelihood's derivative by a factor of each output's scores (see the module).

    Attributes
    ----------
    left
        Its expectation, with the noise of each attribute taken off, shape (outputs,).
    covariance
        The covariance of the estimates, about, shape (outputs, outputs).
    """

    left: Reals
    covariance: Reals


def centre(coefficients: Reals) -> Reals:
    """Return coefficients less their mean over several outputs, which moves no probability."""
    several = coefficients.shape[1] > 1
    return coefficients - coefficients.mean(axis=1, keepdims=True) if several else coefficients


def stretch_of(tuned: Tuned, coefficients: Reals) -> Reals:
    """Return the factor of each output's scores, shape (outputs,), at least 1, for centred coefficients."""
    scores = _scores(tuned.design, coefficients)
    evidence = evidence_of(tuned, coefficients, scores)
    search = _FactorSearch(scores, tuned.design.rows, evidence.left, np.asarray(np.linalg.pinv(evidence.covariance)))
    factors = np.ones(scores.shape[1])
    left = search.off(factors)
    for _ in range(STEPS):
        step = search.step(factors)
        for halving in range(HALVINGS):
            tried = np.clip(factors + step * 2.0**-halving, 1, MOST)
            new = search.off(tried)
            if new < left:
                break
        else:
            break
        moved, factors, left = np.abs(tried - factors).max(), tried, new
        if moved < ENOUGH:
            break
    return factors


@attrs.frozen(eq=False)
class _FactorSearch:
    """What is known about factors: a sample's scores, the rows that it stands for, and evidence with its precision."""

    scores: Reals
    rows: float
    left: Reals
    precision: Reals

    @functools.cached_property
    def expected(self) -> Reals:
        """Return the inverse of U."""
        outputs = len(self.left)
        of_factors = np.full((outputs, outputs), ALIKE * SPREAD**2)
        np.fill_diagonal(of_factors, SPREAD**2)
        return np.asarray(np.linalg.inv(of_factors))

    @functools.cached_property
    def unstretched(self) -> Reals:
        """Return the probabilities by factors of 1."""
        return _of_outputs(self.scores)

    def explain(self, factors: Reals) -> Reals:
        """Return J, shape (outputs,)."""
        grown = _of_outputs(self.scores * factors) - self.unstretched
        return np.asarray(self.rows * (self.scores * grown).mean(axis=0))

    def information(self, factors: Reals) -> Reals:
        """Return J's derivative, shape (outputs, outputs)."""
        p = _of_outputs(self.scores * factors)
        of_scores = p * self.scores
        both = -(of_scores.T @ of_scores)
        both[np.diag_indices(len(both))] += (of_scores * self.scores).sum(axis=0)
        return np.asarray(self.rows * both / len(p))

    def off(self, factors: Reals) -> float:
        """Return what is to be least."""
        error = self.left - self.explain(factors)
        return float(error @ self.precision @ error + (factors - 1) @ self.expected @ (factors - 1))

    def step(self, factors: Reals) -> Reals:
        """Return a step towards the least, 0 for what a bound holds."""
        by = self.information(factors)
        slope = -by.T @ self.precision @ (self.left - self.explain(factors)) + self.expected @ (factors - 1)
        curvature = by.T @ self.precision @ by + self.expected
        free = ~((factors <= 1) & (slope > 0) | (factors >= MOST) & (slope < 0))
        step = np.zeros(len(factors))
        step[free] = np.linalg.solve(curvature[np.ix_(free, free)], -slope[free])
        return step


def evidence_of(tuned: Tuned, coefficients: Reals, scores: Reals) -> Evidence:
    """Return the evidence of centred coefficients, and of the scores that they give to rows spread evenly."""
    design, variances, ridge = tuned.design, tuned.deviations**2, tuned.ridge
    classes, p = design.classes, _of_outputs(scores)
    of_centred = 1.0 if design.outputs == 1 else 1 - 1 / design.outputs
    # how much surer scores are than is expected, below 1; in centred scores of even classes the curvature is p
    surer = (p * (1 - p)).mean(axis=0) * classes**2 / (classes - 1) / (4 * CURVATURE) / of_centred
    shared = {j for group, noise in zip(design.groups, design.noises, strict=True) if noise.one_sum for j in group}
    taken = np.empty((len(design.widths), design.outputs))
    for j, (start, width) in enumerate(zip(design.starts, design.widths, strict=True)):
        even, own = tuned.curvatures[start], ridge[start]
        between, of_mean = variances[start], 0.0 if j in shared else tuned.variances_of_means[j]
        if j in design.numeric:
            of_column = between if width == 1 else ((width - 1) * between + of_mean) / width
            taken[j] = of_column * ((width - 1) / own + 1 / (even * width + own))
        else:
            taken[j] = between * max(width - 1, 1) / (even * surer + own) + (width > 1) * of_mean / own
        taken[j] *= of_centred * (j < len(design.widths) - 1 or j not in shared)  # the intercept is what blocks share
    covariance = np.diag((of_centred * variances[:, None] * coefficients**2).sum(axis=0))
    all_gains, h = sum(gain for _, gain in tuned.shared), tuned.curvatures[-1] * surer
    for group, noise, (variance, gain) in zip(design.groups, design.noises, tuned.shared, strict=True):
        taken[group[0]] += of_centred * variance * gain * (1 - h * gain / (1 + h * all_gains))
        of_group = taken[list(group)].sum(axis=0)
        of_radii = of_group[:, None] * _from_radii(noise)
        covariance += 4 / (noise.dimension_of_radius + 1) * of_radii @ of_radii.T
    return Evidence((ridge[:, None] * coefficients**2).sum(axis=0) - taken.sum(axis=0), covariance)


def _from_radii(noise: GroupNoise) -> Reals:
    """Return the share of each output's noise that is in proportion to each radius, shape (outputs, radii)."""
    k = noise.outputs
    if noise.radii == 1:
        return np.ones((k, 1))
    shares = np.full((k, k), 1 / (k * (k - 1)))
    np.fill_diagonal(shares, 1 - 1 / k)
    return shares


def _scores(design: Design, coefficients: Reals) -> Reals:
    """Return the scores of rows that are spread evenly over cells, shape (rows, outputs)."""
    rng, of_cells = np.random.default_rng(0), design.of_cells.T @ coefficients
    found = np.tile(of_cells[-1], (SAMPLED, 1))
    for first, size in zip(design.first_cells, design.sizes, strict=False):
        found += of_cells[first + rng.integers(size, size=SAMPLED)]
    return found


def _of_outputs(scores: Reals) -> Reals:
    """Return the probability of the class that each output scores, shape (rows, outputs)."""
    return probabilities(scores)[:, -scores.shape[1] :]
