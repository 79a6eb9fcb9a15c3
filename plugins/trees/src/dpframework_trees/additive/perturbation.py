"""Objective perturbation, which releases the minimiser of a convex loss with a random linear term, at a pure epsilon.

Sources: Chaudhuri, Monteleoni and Sarwate 2011; Kifer, Smith and Thakurta 2012; Iyengar and others 2019 for minimisers
that are not exact; Hardt and Talwar 2010 for noise shaped by the changes of a row (K-norm). The ridge that makes the
determinant free, the discrete noise and the account of the computation are ours.

**What is released.** For rows (x, y), coefficients w, a ridge R (diagonal, all above 0) and noise b, let

    F(w) = sum over rows of -log p(y | x, w)  +  w'Rw / 2  +  b'w.

Let w* be its minimiser. There is exactly one, and the gradient is 0 there. Blocks of coordinates lie in groups g of
scales s_g. G_g is the largest l1 norm of a block of g over all outputs, or else the sum over outputs of the largest l1
norm of a block in each (`GroupNoise`). In real numbers, the noise is b = t (k + xi). Here t is the step of a lattice, k
an integer vector with probability proportional to exp(-sum of G_g(k) / s_g), and xi uniform in a cube of side 1 around
0.

**The density of w*.** -b = grad(w) = sum of the rows' gradients + R w is one-to-one and smooth between b and w. So w*
has the density f(b) det H(w) at every w, with H the Hessian. Let a row be added. Its gradient is v = (p - e_y) x', with
p its probabilities, and has an l1 norm of c r in each block. Here r = 1 - p_y, and c is 1 for two classes (one output),
else 2. In an output the norm is the same in all blocks, so the largest norms in the outputs add up to c r, too. The two
tables' b differ by v, and their k by v / t plus something in [-1, 1] in each coordinate. So with m_g the number of
coordinates of g's largest block, log f differs by at most

    r e + sum of m_g / s_g,       e = sum of c / (t s_g).

The Hessian gains (diag(p) - p p') x x'. Let q be the largest x' R**-1 x of any row.

- Two classes: det H grows by a factor of 1 + x' H**-1 x r (1 - r), which lies in [1, 1 + q r (1 - r)]. The loss is at
  most h(r) = r e + log(1 + q r (1 - r)) if the larger table's density is the larger one, else r e. h is concave, with
  h'(1) = e - q: **if q <= e then h(r) <= h(1) = e, and the determinant costs nothing.**
- K > 2 classes: log det grows by at most the trace, q (1 - sum of p**2) <= q (2 r - r**2 K / (K - 1)). Together with
  r e that is concave in r, with the derivative e - 2 q / (K - 1) at 1. If q <= e (K - 1) / 2, the loss is therefore at
  most e + q (K - 2) / (K - 1).

**Noise with one sum.** In an output a row's gradient is x times a number r. It has a sum of r in each block of several
columns, and r for the intercept. So in each output of a group the rows' gradients lie in the space S of vectors whose
blocks have one sum, and noise may lie in S, too (see `group_noise`). Then R w* = -(the rows' gradients) - b is also in
S, and -b = grad(w) is one-to-one and smooth between the spaces R**-1 S and S. With R w as coordinates its derivative is
the identity plus M R**-1 on S, where M is the Hessian of the rows' loss. The part of M from a row maps into S, so the
determinant grows as above: with one output by a factor of 1 + x' H**-1 x r (1 - r), else its logarithm by at most a
trace. The coordinates of S are the sum, and all cells of each histogram but the last. A block of one column has a
histogram of two cells, whose coordinate is their difference. xi is uniform in a cube of side 1 in these coordinates,
and the differences lie in [-1, 1] in them. The last of m cells differs by at most m. So m_g is then 2 m - 1 for the
largest histogram, in each output (`GroupNoise.rounded`).

**Balanced noise.** With K > 2 classes the entries of p - e_y add up to 0. So the rows' gradients add up to 0 over
outputs, in each column. If the noise of a group does so, too, then so does R w*, as R is the same for all outputs. A
row's Hessian maps into that space S, and has the same trace on it. The coordinates are all outputs but the last, which
differs by at most K - 1. So m_g is 2 (K - 1) for each column of the largest block.

**Numbers as outcomes.** With two classes let the outcome be any t in [0, 1], and let a row's loss be
-t log p - (1 - t) log(1 - p). In expectation it is least if p is the mean of t (Papke and Wooldridge 1996). The
gradient is (p - t) x and the curvature p (1 - p) x x', as before. Let m = max(p, 1 - p). Then abs(p - t) <= m and
p (1 - p) = m (1 - m). So a row loses at most m e + log(1 + q m (1 - m)) = h(m) <= e, by the condition above. Nothing
else changes.

**A released tree.** Let z be an earlier release, such as a tree. Let x and an offset o be functions of z and of the row
alone, and let the score be w'x + o. For a fixed z all of the above holds. Of the offset it uses only that p is a
probability. Of x it uses only two facts: in each block x has an l1 norm of at most 1, and q is the largest x' R**-1 x.
A column in [-1, 1], such as a leaf's value, is a block of its own. Its part of the gradient is at most r, and it adds
at most 1 / R_j to q, like a two-valued attribute. The offset costs nothing, whatever its size. Both tables have the
same z, and z and the fit compose sequentially (McSherry 2009, Theorem 3).

With K > 2 classes let the column have a value for each class, g_1, ..., g_K in [-1, 1], and one coefficient for all.
Its part of the gradient is the sum over c != y of p_c (g_c - g_y), at most 2 r. So it is a block of one coordinate with
c = 2. Its curvature is the variance of g by p, the sum over pairs of p_c p_d (g_c - g_d)**2 <= 2 (1 - sum of p**2).
log det grows by at most the trace of R**-1 times the row's Hessian. That is at most q (1 - sum of p**2), where q is the
largest x' R**-1 x of the other columns plus 2 / R_g. The rest is unchanged. `Design` has a tree for two classes only.

**Replacing a row.** The noise's part is at most r1 e + r2 e for the two rows, and the ratio of the determinants is at
most what the new row adds. So the loss is at most twice the above.

**What is computed.** The draw of k is exact (see `group_noise`). From b~ = t k in floats, which is near b
(`Tuned.lattice_error`), `fitting` computes w~. It proves a bound on the gradient of F at w~ with the real b, which is
at most `Tuned.gradient_error` in the norm of R**-1. As the Hessian is at least R,
(w~ - w*)' R (w~ - w*) <= grad F(w~)'(w~ - w*). So in the norm of R, w~ - w* is at most as long as this bound. In the
l1 norm it is at most the bound times the square root of the trace of R**-1, which is `Tuned.distance`. w~ is rounded to
a lattice of step l, and discrete Laplace noise of scale a, in lattice steps, is added. If w* had been rounded and
released in this way, it would be post-processing of w*. In the l1 norm the two roundings differ by at most distance / l
plus 1 for each coordinate. By the choice of a this moves a log-probability by at most epsilon / 1024, for each of the
two tables. So

    epsilon  >=  e  +  sum of m_g / s_g  +  q (K - 2) / (K - 1)  +  2 epsilon / 1024.

The right side is `Tuned.claimed`, a rational number. t is so small that the second sum is at most 2**-20 epsilon. It is
assumed that an exponential in floating point is within 4 units in the last place, and that 64 bits hold the noise. If
they might not for some epsilon, a fit is refused. For any other epsilon they fail with a probability far below
exp(-2**9). No fit is refused for its rows. If floats miss the bound, `refinement` goes on with more digits. That takes
longer, so somebody who times a fit closely may learn of it, as with other exact samplers.
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
from dpframework_trees.additive.noise_and_ridge import Tuned

CELL = 2.0**-30  # the side of the cell whose log-probability is returned as log-density
LARGEST_NOISE = 2.0**53  # the largest mean noise in steps of its lattice: 512 times as much still fits into 64 bits
FITS = ("logistic-rows", "number-rows")  # the names of the queries whose answers are fitted
ROWS_OF_ATTRIBUTE = 50  # with fewer rows times epsilon for each attribute, a constant may have a lower log-loss


@final
@attrs.frozen
class ObjectivePerturbation(PureMechanism):
    """Releases the coefficients of an additive logistic model, fitted once with a random linear term (see the module).

    Its epsilon is for a row that is added or removed. In the norm of the noise, a row's gradient is at most 1.
    """

    name: ClassVar[str] = "objective-perturbation"
    norm: ClassVar[Norm] = Norm.LINF
    needs_length: ClassVar[bool] = False

    def misfit(self, facts: QueryFacts) -> str | None:
        """Return why the mechanism cannot answer a query, such as one without the rows of a fit, or None if it can."""
        if facts.name not in FITS:
            return "fits an additive model to rows, and the query does not answer with such rows; use LogisticRows"
        return super().misfit(facts)

    def lattice_unit(self, facts: QueryFacts) -> Fraction:
        """Return 1, since no answer is rounded to this lattice (see the module)."""
        return Fraction(1)

    def change(self, facts: QueryFacts) -> ByRelation:
        """Return the largest size of a row's gradient in the norm of the noise."""
        declared = facts.sensitivity(Norm.LINF)
        assert declared is not None  # `misfit` refuses all other queries
        return declared.change

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> Reals:
        """Fit with noise, round with noise, and return the coefficients, shape (columns, outputs)."""
        rows = _rows(answer, calibration)
        tuned = tune_for(rows.design, calibration)
        steps = fit_in_steps(rows, tuned, draw_noise(tuned, randomness))
        noise = randomness.discrete_laplace(steps.size, tuned.release_scale).reshape(steps.shape)
        return np.asarray((steps + noise) * tuned.release_step)

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return the log-probability of a cell with the side `CELL`, by the density of the exact minimiser.

        The release has some more noise, on a scale of `Tuned.distance` / epsilon, over which the density hardly
        changes.
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
        """State the noise in the gradient, and about how many rows a fit needs to predict better than a constant.

        How far noise moves a coefficient depends on the rows.
        """
        scale, attributes = float(calibration.scale), len(calibration.facts.attributes) - 1
        fewest = math.ceil(ROWS_OF_ATTRIBUTE * scale * attributes)
        instead = ", so prefer dp-classifier, which chooses a tree for them" * (calibration.facts.name == FITS[0])
        text = (
            f"a fit whose gradient has noise of {scale:.3g} rows per coefficient in its norm; with fewer than about "
            f"{fewest:,} rows a constant may predict as well{instead}"
        )
        return Preview(scale, scale * math.log(20), text)


def _rows(answer: Any, calibration: Calibration) -> Rows:
    if not isinstance(answer, Rows):
        raise InputError(f"the query '{calibration.facts.text}' must answer with Rows for a fit")
    if len(answer.classes) > answer.design.most_rows:
        raise InputError("there are more rows than a fit allows; raise max_rows in the schema, which is public")
    return answer


def tune_for(design: Design, calibration: Calibration) -> Tuned:
    """Return the noise and ridge for a calibration, with its epsilon under add-or-remove-one."""
    return _tune(design, 1 / calibration.scale)


@functools.lru_cache(maxsize=64)
def _tune(design: Design, epsilon: Fraction) -> Tuned:
    tuned = Tuned(design, epsilon)
    held = tuned.claimed <= tuned.epsilon and tuned.curvature(tuned.ridge) <= tuned.most_curvature
    if not held or tuned.largest_noise > LARGEST_NOISE:
        raise InputError(
            f"epsilon is {float(tuned.epsilon):.3g}; the noise of a fit cannot be computed for it, so use an epsilon "
            "nearer to 1"
        )
    return tuned


def draw_noise(tuned: Tuned, randomness: Randomness) -> Reals:
    """Draw the linear term, whose entries are multiples of the lattice's step, shape (columns, outputs)."""
    design = tuned.design
    noise = np.empty((design.columns, design.outputs))
    for group, of_group, scale in zip(design.groups, design.noises, tuned.scales, strict=True):
        drawn = of_group.draw(scale, randomness)
        for j, own in zip(group, np.split(drawn, np.cumsum(of_group.blocks)[:-1]), strict=True):
            noise[design.columns_of(j)] = own * float(tuned.step)
    return noise


def noise_log_density(tuned: Tuned, noise: Reals) -> float:
    """Return the log-density of the linear term in its space, which is exp(-norm) divided by its integral."""
    design, found = tuned.design, []
    for group, of_group, scale in zip(design.groups, design.noises, tuned.scales, strict=True):
        unit = scale * float(tuned.step)
        norm = of_group.norm(np.concatenate([noise[design.columns_of(j)] for j in group]))
        found.append(-norm / unit - of_group.dimension * math.log(unit) - of_group.log_volume)
    return math.fsum(found)


def _log_ridge_left_out(tuned: Tuned) -> float:
    """Return the logarithm of the product of R over the entries of w that are not coordinates of minimisers.

    With R w as coordinates, the density of R w has det H / det R in place of det H. In a group with one sum, the
    coordinates in each output are the intercept and all entries of a block but the last. If the group has no intercept,
    they include all entries of the first block. With balanced outputs, the coordinates are all outputs but the last.
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
    """Return the point in the space of minimisers that is nearest to given coefficients, shape (columns, outputs).

    A release is a minimiser plus noise in all entries. In a group with one sum, the ridge times the minimiser has one
    sum in each output, too, and balanced outputs add up to 0 (see the module).
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
