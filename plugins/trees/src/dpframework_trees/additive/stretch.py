"""How far to stretch scores that the ridge makes too small.

This is post-processing: it reads released coefficients and public facts, and costs nothing.

The ridge R must be large enough for the noise b. If classes can be told apart nearly without error, the ridge makes the
scores too small, and predictions are right more often than their probabilities say. This may hold for some classes and
not for others, so each output has its own factor. Let w be the coefficients and b the noise in the gradient. With
several outputs, their means over outputs are subtracted from w and b, which changes no probability.

**Evidence.** At the minimiser the rows' gradient is - R w - b. If the scores s_c of output c are multiplied by a_c, the
derivative of the rows' log-likelihood by a_c, at a = 1, is therefore

    D_c = sum over rows of (outcome_c - p_c) s_c = w_c'R w_c + w_c'b_c,

where outcome_c is a row's outcome for output c, and p_c its predicted probability. The first part is known. The second
is replaced by its expectation. With H the Hessian of the rows' loss, w_c is about (H + R)**-1 times (a part that
follows from the rows, minus b_c). So E[w_c'b_c] is about minus the trace of (H + R)**-1 Cov(b_c). For K > 2 classes
Cov(b_c) is 1 - 1 / K of the noise's covariance. If attributes are independent, the columns of one attribute contribute
the sum of sd**2 / (h + R). Here sd is the standard deviation of a column's noise, R its ridge, and h its curvature,
which is in proportion to the rows of the column's cell. These rows are private, so the amount that is subtracted
follows from the kind of the attribute:

- **A numeric attribute** often has most rows in few bins, and several numeric attributes are often alike. In both cases
  there is more noise. Since 1 / (h + R) is convex in h, the sum is largest if all rows are in one cell. That largest
  sum is subtracted.
- **For any other attribute** the sum for evenly spread rows is subtracted. A row's part of h is taken as the mean of
  p_c (1 - p_c), with p_c computed from the released scores. For K outputs it is divided by 1 - 1 / K, since the
  curvature is larger once means over outputs are subtracted. So the surer the scores are, the more noise there is. Only
  the ridge tells the mean of an attribute's columns apart from the intercept and from other attributes' means, so in
  that direction h is 0.
- **For the sum that a group's blocks share** (noise with one sum, see `group_noise`) the expectation is subtracted, as
  if the rows' loss had a curvature only along the intercept. Let r be that sum, of variance v, and z the sum of R w in
  each of the blocks. The means of the blocks, and the intercept, add g z to the score, where g is the group's gain
  (`NoiseAndRidge.shared`). With h the intercept's curvature, and G the sum of the groups' gains, z = - h times (what
  all groups add) - r. So -E[w'b] is g v (1 - h g / (1 + h G)).

The rest of D is evidence that scores are too small. If nothing is left, nothing is stretched. (If attributes carry the
same information, there may be more noise than is subtracted.)

**How evidence becomes factors.** As a grows, D falls by J(a). Here J_c is the sum over rows of s_c times the growth of
p_c if the factors grow from 1 to a. It is replaced by its expectation over a fixed sample of rows that are spread
evenly over cells.

D is an estimate, with two sources of error. First, given w, w_c'b_c has a variance of about the sum over columns of
sd**2 w**2. Second, the columns of a group share a radius (see `group_noise`). In d dimensions the square of the radius
has a relative deviation of 2 / sqrt(d + 1), and so has the amount that should have been subtracted. Balanced noise has
one radius for all outputs. With noise by output, the share of output c that comes from its own radius is 1 - 1 / K, and
each other radius contributes 1 / (K (K - 1)). Let V be the sum of the covariances from both sources.

Before any evidence, each a_c - 1 is expected to be within about `SPREAD` of 0, and factors of several outputs are
expected to be alike: their covariance U has `SPREAD`**2 on the diagonal, and `ALIKE` times that elsewhere. The factors
are the most likely a between 1 and `MOST`, given D. They minimise

    (D - J(a))' V**-1 (D - J(a)) + (a - 1)' U**-1 (a - 1)

and are found by Newton's method within these bounds, with J taken as linear (Gauss and Newton).
"""

from __future__ import annotations

import functools

import attrs
import numpy as np

from dpframework_trees.additive.design import Design, Reals, probabilities
from dpframework_trees.additive.group_noise import GroupNoise
from dpframework_trees.additive.noise_and_ridge import CURVATURE, NoiseAndRidge

SPREAD = 1.0  # the standard deviation of a factor before any evidence
ALIKE = 0.8  # the correlation of two outputs' factors before any evidence
SAMPLED = 2_000  # the number of evenly spread rows in the sample
MOST = 3.0  # the largest factor
STEPS = 50  # the most steps of the search
HALVINGS = 20  # how often a step may be halved
ENOUGH = 1e-6  # a step that changes the factors by less ends the search


@attrs.frozen(eq=False)
class Evidence:
    """Estimates of the log-likelihood's derivative by the factor of each output's scores (see the module).

    Attributes
    ----------
    left
        The estimates: what is left of D once the expected noise is subtracted, shape (outputs,).
    covariance
        The approximate covariance of the estimates, shape (outputs, outputs).
    """

    left: Reals
    covariance: Reals


def centre(coefficients: Reals) -> Reals:
    """Return coefficients minus their mean over several outputs, which changes no probability."""
    several = coefficients.shape[1] > 1
    return coefficients - coefficients.mean(axis=1, keepdims=True) if several else coefficients


def stretch_of(tuned: NoiseAndRidge, coefficients: Reals) -> Reals:
    """Return the factor of each output's scores, from 1 to `MOST`, for centred coefficients, shape (outputs,)."""
    scores = _scores(tuned.design, coefficients)
    evidence = evidence_of(tuned, coefficients, scores)
    search = _FactorSearch(scores, tuned.design.rows, evidence.left, np.asarray(np.linalg.pinv(evidence.covariance)))
    factors = np.ones(scores.shape[1])
    left = search.objective(factors)
    for _ in range(STEPS):
        step = search.step(factors)
        for halving in range(HALVINGS):
            tried = np.clip(factors + step * 2.0**-halving, 1, MOST)
            new = search.objective(tried)
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
    """The search for the factors that are most likely, given the evidence (see the module).

    Attributes
    ----------
    scores
        The scores of the sample's rows, shape (sampled rows, outputs).
    rows
        The number of rows that the sample stands for.
    left, precision
        The estimates `Evidence.left`, shape (outputs,), and the inverse of their covariance, shape (outputs, outputs).
    """

    scores: Reals
    rows: float
    left: Reals
    precision: Reals

    @functools.cached_property
    def prior_precision(self) -> Reals:
        """The inverse of U, the covariance of factors before any evidence, shape (outputs, outputs)."""
        outputs = len(self.left)
        of_factors = np.full((outputs, outputs), ALIKE * SPREAD**2)
        np.fill_diagonal(of_factors, SPREAD**2)
        return np.asarray(np.linalg.inv(of_factors))

    @functools.cached_property
    def unstretched(self) -> Reals:
        """The probabilities of the classes with factors of 1."""
        return _of_outputs(self.scores)

    def explain(self, factors: Reals) -> Reals:
        """Return J(a), by which factors a lower the derivative D of each output, shape (outputs,)."""
        grown = _of_outputs(self.scores * factors) - self.unstretched
        return np.asarray(self.rows * (self.scores * grown).mean(axis=0))

    def information(self, factors: Reals) -> Reals:
        """Return the derivative of J at given factors, shape (outputs, outputs)."""
        p = _of_outputs(self.scores * factors)
        of_scores = p * self.scores
        both = -(of_scores.T @ of_scores)
        both[np.diag_indices(len(both))] += (of_scores * self.scores).sum(axis=0)
        return np.asarray(self.rows * both / len(p))

    def objective(self, factors: Reals) -> float:
        """Return the value of the function that the factors minimise (see the module)."""
        error = self.left - self.explain(factors)
        return float(error @ self.precision @ error + (factors - 1) @ self.prior_precision @ (factors - 1))

    def step(self, factors: Reals) -> Reals:
        """Return a step towards the minimum. It is 0 for factors that stay at a bound."""
        by = self.information(factors)
        slope = -by.T @ self.precision @ (self.left - self.explain(factors)) + self.prior_precision @ (factors - 1)
        curvature = by.T @ self.precision @ by + self.prior_precision
        free = ~((factors <= 1) & (slope > 0) | (factors >= MOST) & (slope < 0))
        step = np.zeros(len(factors))
        step[free] = np.linalg.solve(curvature[np.ix_(free, free)], -slope[free])
        return step


def evidence_of(tuned: NoiseAndRidge, coefficients: Reals, scores: Reals) -> Evidence:
    """Return the evidence from centred coefficients, and from the scores that they give to evenly spread rows."""
    design, variances, ridge = tuned.design, tuned.deviations**2, tuned.ridge
    classes, p = design.classes, _of_outputs(scores)
    of_centred = 1.0 if design.outputs == 1 else 1 - 1 / design.outputs
    # The mean curvature of the scores relative to the expected one. If it is below 1, scores are surer than expected.
    # In centred scores of equally likely classes the curvature is p.
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
        # If the intercept is the sum that blocks share, its noise is subtracted below, with its group.
        taken[j] *= of_centred * (j < len(design.widths) - 1 or j not in shared)
    covariance = np.diag((of_centred * variances[:, None] * coefficients**2).sum(axis=0))
    all_gains, h = sum(gain for _, gain in tuned.shared), tuned.curvatures[-1] * surer
    for group, noise, (variance, gain) in zip(design.groups, design.noises, tuned.shared, strict=True):
        taken[group[0]] += of_centred * variance * gain * (1 - h * gain / (1 + h * all_gains))
        of_group = taken[list(group)].sum(axis=0)
        of_radii = of_group[:, None] * _from_radii(noise)
        covariance += 4 / (noise.dimension_of_radius + 1) * of_radii @ of_radii.T
    return Evidence((ridge[:, None] * coefficients**2).sum(axis=0) - taken.sum(axis=0), covariance)


def _from_radii(noise: GroupNoise) -> Reals:
    """Return the share of each output's noise that grows with each radius, shape (outputs, radii)."""
    k = noise.outputs
    if noise.radii == 1:
        return np.ones((k, 1))
    shares = np.full((k, k), 1 / (k * (k - 1)))
    np.fill_diagonal(shares, 1 - 1 / k)
    return shares


def _scores(design: Design, coefficients: Reals) -> Reals:
    """Return the scores of a fixed sample of rows that are spread evenly over cells, shape (rows, outputs)."""
    rng, of_cells = np.random.default_rng(0), design.of_cells.T @ coefficients
    found = np.tile(of_cells[-1], (SAMPLED, 1))
    for first, size in zip(design.first_cells, design.sizes, strict=False):
        found += of_cells[first + rng.integers(size, size=SAMPLED)]
    return found


def _of_outputs(scores: Reals) -> Reals:
    """Return, for each row and output, the probability of the class that the output scores, shape (rows, outputs)."""
    return probabilities(scores)[:, -scores.shape[1] :]
