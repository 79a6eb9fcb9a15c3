"""Objective perturbation, the minimiser of a convex loss with a random linear term, at a pure epsilon.

Source: Chaudhuri, Monteleoni and Sarwate 2011; Kifer, Smith and Thakurta 2012; for minimisers that are not exact
Iyengar and others 2019; noise shaped by what a row can change Hardt and Talwar 2010 (K-norm). The ridge that makes
the determinant free, the discrete noise and the account of what is computed are ours.

**What is released.** For rows (x, y), coefficients w, a ridge R (diagonal, all above 0) and noise b, let

    F(w) = sum over rows of -log p(y | x, w)  +  w'Rw / 2  +  b'w.

Let w* be its minimiser: there is exactly one, and the gradient is 0 there. Blocks of coordinates lie in groups g of
scales s_g; G_g is the largest l1 norm of a block of g, over all outputs, or else the sum of the outputs' own largest
(`GroupNoise`). Noise in real numbers: b = t (k + xi), t the lattice's step, k an integer vector with probability
proportional to exp(-sum of G_g(k) / s_g), xi uniform in a cube of side 1 around 0.

**The density of w*.** -b = grad(w) = sum of the rows' gradients + R w is one-to-one and smooth between b and w, so w*
has the density f(b) det H(w), H the Hessian, at every w. Let a row be added. Its gradient is v = (p - e_y) x', p its
probabilities, with an l1 norm of c r in each block: r = 1 - p_y, c = 1 for two classes (one output), else 2. In an
output the norm is the same in all blocks, so that the outputs' own largest add up to c r, too. The two tables' b differ
by v, their k by v / t and something in [-1, 1] a coordinate; so with m_g the coordinates of g's largest block, log f
differs by at most

    r e + sum of m_g / s_g,       e = sum of c / (t s_g).

The Hessian gains (diag(p) - p p') x x'. Let q be the largest x' R**-1 x of any row.

- Two classes: det H grows by a factor of 1 + x' H**-1 x r (1 - r), which lies in [1, 1 + q r (1 - r)]. The loss is at
  most h(r) = r e + log(1 + q r (1 - r)) if the larger table's density is the larger one, else r e. h is concave, with
  h'(1) = e - q: **if q <= e then h(r) <= h(1) = e, and the determinant costs nothing.**
- K > 2 classes: log det grows by at most the trace, q (1 - sum of p**2) <= q (2 r - r**2 K / (K - 1)). With r e that
  is concave in r, with the derivative e - 2 q / (K - 1) at 1: if q <= e (K - 1) / 2 then at most e + q (K - 2) / (K -
  1).

**Noise with one sum.** In an output a row's gradient is x times a number r, with a sum of r in each block of several
columns and r for the intercept. So the rows' gradients of a group lie in the space S of vectors that have one sum in
each output, and so may noise (see `group_noise`). Then R w* = -(the rows' gradients) - b is in S, too: -b = grad(w) is
one-to-one and smooth between the spaces R**-1 S and S. With R w as coordinates its derivative is the identity plus M
R**-1 on S, M the Hessian of the rows' loss. What a row adds to M maps into S, so the determinant grows by what is said
above: with one output by a factor of 1 + x' H**-1 x r (1 - r), else its logarithm by a trace at most. Coordinates of S
are the sum, and each histogram's cells but the last: of two cells for a block of one column, whose coordinate is their
difference. xi is uniform in a cube of side 1 in these, and so are the differences in [-1, 1]. The last of m cells
differs by m at most. So m_g is then 2 m - 1 for the largest histogram, in each output (`GroupNoise.rounded`).

**Balanced noise.** With K > 2 classes the entries of p - e_y add up to 0, so the rows' gradients do over outputs, in
each column. In a group whose noise does, too, so does R w*, as R is the same for all outputs. A row's Hessian maps into
that space S, and has the same trace on it. Coordinates are all outputs but the last, which differs by K - 1 at most: so
m_g is 2 (K - 1) for each column of the largest block.

**Numbers as outcomes.** With two classes let the outcome be any t in [0, 1], and a row's loss -t log p - (1 - t)
log(1 - p), which is least in expectation where p is the mean of t (Papke and Wooldridge 1996). The gradient is (p - t)
x and the curvature p (1 - p) x x', as before. Let m = max(p, 1 - p): then abs(p - t) <= m and p (1 - p) = m (1 - m).
So a row loses at most m e + log(1 + q m (1 - m)) = h(m) <= e, by the condition above; nothing else changes.

**A released tree.** Let z be an earlier release, such as a tree, x and an offset o functions of z and of the row alone,
and the score w'x + o. For a fixed z all of the above holds, since it uses no more of the offset than that p is a
probability and no more of x than these two facts: in each block x has an l1 norm of at most 1, and q is the largest
x' R**-1 x. A column in [-1, 1], such as a leaf's value, is a block of its own. Its part of the gradient is r times at
most 1, and it adds at most 1 / R_j to q, like a two-valued attribute. The offset may be of any size: it costs nothing.
Both tables have the same z, and z and the fit compose one after the other (McSherry 2009, Theorem 3).

With K > 2 classes let the column be g_1, ..., g_K in [-1, 1], one value a class, with one coefficient for all. Its part
of the gradient is the sum over c != y of p_c (g_c - g_y), at most 2 r: a block of one coordinate, c = 2. Its curvature
is the variance of g by p, the sum over pairs of p_c p_d (g_c - g_d)**2 <= 2 (1 - sum of p**2). log det grows by at most
the trace of R**-1 times the row's Hessian, so at most q (1 - sum of p**2) with q the largest x' R**-1 x of the other
columns plus 2 / R_g, and the rest is unchanged. `Design` has a tree for two classes only.

**Replacing a row.** The noise's part is at most r1 e + r2 e for what leaves and what comes, and the determinant's
ratio at most what the row that comes adds: so at most twice the above.

**What is computed.** The draw of k is exact (see `group_noise`). From b~ = t k in floats, which is near b
(`Tuned.lattice_error`), `fitting` computes w~ with a proven bound on the gradient of F at w~ with the real b: at most
`Tuned.gradient_error` in the norm of R**-1. As the Hessian is at least R, (w~ - w*)' R (w~ - w*) <= grad F(w~)'(w~ -
w*), so w~ - w* is no longer than that in the norm of R, and in the l1 norm than that times the root of the trace of
R**-1: `Tuned.distance`. w~ is rounded to a lattice of step l, and discrete Laplace noise is added, of scale a in
steps of it. Had w* been rounded and released so, it would be post-processing of w*. The two roundings differ by at
most distance / l + 1 a coordinate in the l1 norm, which by the choice of a moves a log-probability by at most epsilon
/ 1024; that holds for either table. So

    epsilon  >=  e  +  sum of m_g / s_g  +  q (K - 2) / (K - 1)  +  2 epsilon / 1024,

`Tuned.claimed`, a rational number; t is so small that the second sum is at most 2**-20 epsilon. Of real arithmetic it
is assumed that an exponential is within 4 units in the last place, and that 64 bits hold the noise: with an epsilon
for which they might not, a fit is refused, and else they do not with a probability far below exp(-2**9). No fit is
refused for its rows: where floats miss the bound, `refinement` goes on, in more digits. That takes longer, so that
somebody who times a fit closely may learn of it, as with other exact samplers.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any, ClassVar, final

import attrs
import numpy as np

from dpframework.facts import ByRelation, InputError
from dpframework.mechanisms import Calibration, Preview, PureMechanism, Randomness
from dpframework.queries import Norm, QueryFacts
from dpframework_trees.additive.design import Design, Reals
from dpframework_trees.additive.fitting import Loss, Rows, fit_in_steps
from dpframework_trees.additive.tuning import Tuned

CELL = 2.0**-30
LARGEST_NOISE = 2.0**53  # steps of its lattice, on average: 512 times as much still fits into 64 bits
FITS = ("logistic-rows", "number-rows")  # queries whose answers are fitted
ROWS_OF_ATTRIBUTE = 50  # over epsilon: with fewer rows for each attribute, a constant's log-loss may be less


@final
@attrs.frozen
class ObjectivePerturbation(PureMechanism):
    """Releases the coefficients of an additive logistic model, fitted once with a random linear term (see the module).

    Its epsilon is for a row that is added or removed; the noise's norm measures a row's gradient, which is at most 1.
    """

    name: ClassVar[str] = "objective-perturbation"
    norm: ClassVar[Norm] = Norm.LINF
    needs_length: ClassVar[bool] = False

    def misfit(self, facts: QueryFacts) -> str | None:
        """Refuse answers that are not the rows of a fit, since the claim rests on how they are fitted."""
        if facts.name not in FITS:
            return "fits a model of its own to rows, and the query does not answer with these; use LogisticRows"
        return super().misfit(facts)

    def lattice_unit(self, facts: QueryFacts) -> Fraction:
        """Return 1, since the rounding is not of an answer (see the module)."""
        return Fraction(1)

    def change(self, facts: QueryFacts) -> ByRelation:
        """Return how far a row's gradient reaches in the noise's norm."""
        declared = facts.sensitivity(Norm.LINF)
        assert declared is not None  # `misfit` has been asked
        return declared.change

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> Reals:
        """Fit with noise and round with noise, shape (columns, outputs)."""
        rows = _rows(answer, calibration)
        tuned = tune_for(rows.design, calibration)
        steps = fit_in_steps(rows, tuned, draw_noise(tuned, randomness))
        noise = randomness.discrete_laplace(steps.size, tuned.release_scale).reshape(steps.shape)
        return np.asarray((steps + noise) * tuned.release_step)

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return the log-probability of a cell of `CELL` a coordinate, by the exact minimiser's density.

        The release differs by noise on a scale of `Tuned.distance` / epsilon, over which the density hardly changes.
        """
        rows = _rows(answer, calibration)
        tuned, coefficients = tune_for(rows.design, calibration), np.asarray(output, dtype=np.float64)
        if coefficients.shape != (rows.design.columns, rows.design.outputs) or not np.isfinite(coefficients).all():
            return -math.inf
        loss = Loss(rows, tuned, np.zeros(coefficients.shape))
        coefficients = into_space(tuned, coefficients)
        cell = sum(of_group.dimension for of_group in rows.design.noises) * math.log(CELL)
        of_noise = noise_log_density(tuned, -loss.gradient(coefficients))
        sign, determinant = np.linalg.slogdet(loss.hessian(coefficients))
        return float(of_noise + determinant - _log_ridge_left_out(tuned) + cell) if sign > 0 else -math.inf

    def preview(self, calibration: Calibration) -> Preview:
        """State the noise's norm for each coordinate, and about how many rows a fit needs to be better than none.

        What noise does to a coefficient depends on the rows.
        """
        scale, attributes = float(calibration.scale), len(calibration.facts.attributes) - 1
        fewest = math.ceil(ROWS_OF_ATTRIBUTE * scale * attributes)
        instead = ", so prefer dp-classifier, which chooses a tree for them" * (calibration.facts.name == FITS[0])
        text = (
            f"a fit with noise of {scale:.3g} rows a coefficient in its gradient's norm; with fewer than about "
            f"{fewest:,} rows a constant may predict as well{instead}"
        )
        return Preview(scale, scale * math.log(20), text)


def _rows(answer: Any, calibration: Calibration) -> Rows:
    if not isinstance(answer, Rows):
        raise InputError(f"the query '{calibration.facts.text}' must answer with Rows for a fit")
    if len(answer.classes) > answer.design.most_rows:
        raise InputError("there are more rows than a fit allows; set max_rows in the schema, which is public")
    return answer


def tune_for(design: Design, calibration: Calibration) -> Tuned:
    """Return the noise and ridge for a calibration's loss under add-or-remove-one."""
    return _tune(design, 1 / calibration.scale)


@functools.lru_cache(maxsize=64)
def _tune(design: Design, epsilon: Fraction) -> Tuned:
    tuned = Tuned(design, epsilon)
    held = tuned.claimed <= tuned.epsilon and tuned.curvature(tuned.ridge) <= tuned.most_curvature
    if not held or tuned.largest_noise > LARGEST_NOISE:
        raise InputError(f"epsilon is {float(tuned.epsilon):.3g}; the fit has no noise for it, use a usual one")
    return tuned


def draw_noise(tuned: Tuned, randomness: Randomness) -> Reals:
    """Draw the linear term, a multiple of its lattice's step, shape (columns, outputs)."""
    design = tuned.design
    noise = np.empty((design.columns, design.outputs))
    for group, of_group, scale in zip(design.groups, design.noises, tuned.scales, strict=True):
        drawn = of_group.draw(scale, randomness)
        for j, own in zip(group, np.split(drawn, np.cumsum(of_group.blocks)[:-1]), strict=True):
            noise[design.columns_of(j)] = own * float(tuned.step)
    return noise


def noise_log_density(tuned: Tuned, noise: Reals) -> float:
    """Return the log-density of the linear term in its space, exp(-norm) over its integral."""
    design, found = tuned.design, []
    for group, of_group, scale in zip(design.groups, design.noises, tuned.scales, strict=True):
        unit = scale * float(tuned.step)
        norm = of_group.norm(np.concatenate([noise[design.columns_of(j)] for j in group]))
        found.append(-norm / unit - of_group.dimension * math.log(unit) - of_group.log_volume)
    return math.fsum(found)


def _log_ridge_left_out(tuned: Tuned) -> float:
    """Return the logarithm of the product of R over the numbers that are no coordinates of minimisers.

    With R w as coordinates, the density of R w has det H / det R in place of det H. In a group with one sum, each
    output of w has the intercept and all of a block's entries but the last as coordinates, or all of the first block's
    without it. Of balanced outputs w has all but the last.
    """
    design, found = tuned.design, []
    for group, of_group in zip(design.groups, design.noises, strict=True):
        if of_group.balanced:
            found += [math.log(one) for j in group for one in tuned.ridge[design.columns_of(j)]]
        elif of_group.one_sum:
            wide = [j for j in group if design.widths[j] > 1]
            logs = [math.log(tuned.ridge[design.starts[j]]) for j in wide[not of_group.intercept :]]
            found += design.outputs * logs
    return math.fsum(found)


def into_space(tuned: Tuned, coefficients: Reals) -> Reals:
    """Return the coefficients in the space of minimisers that are next to some, shape (columns, outputs).

    A release has noise of its own beside the minimiser, in all numbers. In a group with one sum the ridge times the
    minimiser has one sum in each output, too, and balanced outputs add up to 0 (see the module).
    """
    design, found = tuned.design, coefficients.copy()
    for group, of_group in zip(design.groups, design.noises, strict=True):
        if of_group.balanced:
            for j in group:
                part = design.columns_of(j)
                found[part] -= found[part].mean(axis=1, keepdims=True)
        elif of_group.one_sum:
            summed = design.summed(group)
            sums = [(tuned.ridge[:, None] * coefficients)[design.columns_of(j)].sum(axis=0) for j in summed]
            for j, own in zip(summed, sums, strict=True):
                part = design.columns_of(j)
                found[part] += (np.mean(sums, axis=0) - own) / design.widths[j] / tuned.ridge[part, None]
    return found
