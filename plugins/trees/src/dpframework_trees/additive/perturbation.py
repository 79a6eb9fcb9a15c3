"""Objective perturbation, which releases the minimiser of a convex loss with a random linear term, at a pure epsilon.

Sources: Chaudhuri, Monteleoni and Sarwate 2011; Kifer, Smith and Thakurta 2012; Iyengar and others 2019 for minimisers
that are not exact; Hardt and Talwar 2010 for noise shaped by the changes of a row (K-norm). The ridge at which the
determinant costs nothing, the discrete noise and the account of the computation are ours.

**What is released.** For rows (x, y), coefficients w, a ridge R (diagonal, all above 0) and noise b, let

    F(w) = sum over rows of -log p(y | x, w)  +  w'Rw / 2  +  b'w.

Let w* be its minimiser. There is exactly one, and the gradient is 0 there. The columns of an attribute, or the
intercept, are a block, and blocks lie in groups (see `Design`). Group g has noise of a scale s_g. G_g is one of two
norms (see `GroupNoise`): the largest l1 norm that a block of g has over all outputs together, or the sum over outputs
of the largest l1 norm that a block of g has in that output. In real numbers, the noise is b = t (k + xi). Here t is the
step of a lattice, k an integer vector with probability proportional to exp(-sum of G_g(k) / s_g), and xi uniform in a
cube of side 1 around 0.

**The density of w*.** -b = grad(w) = sum of the rows' gradients + R w is one-to-one and smooth between b and w. So w*
has the density f(b) det H(w) at every w, with H the Hessian. Let a row be added. Its gradient is v = (p - e_y) x', with
p its probabilities and e_y the unit vector of its class y. For two classes there is one output, and only the entry of
the second class counts. As x has an l1 norm of at most 1 in each block (see `Design`), v has an l1 norm of at most c r
in each block over all outputs. Here r = 1 - p_y, and c is 1 for two classes, else 2. In output k, v has an l1 norm of
at most the size of entry k of p - e_y in every block. So the largest norms in the outputs, too, add up to at most c r.
The two tables' b differ by v, and their k by v / t plus something in [-1, 1] in each coordinate. So with m_g the number
of coordinates of g's largest block over all outputs, log f differs by at most

    r e + sum of m_g / s_g,       e = sum of c / (t s_g).

The Hessian gains (diag(p) - p p') x x'. Let q be the largest x' R**-1 x of any row. The two losses below leave out the
sum of m_g / s_g, which is added at the end.

- Two classes: det H grows by a factor of 1 + x' H**-1 x r (1 - r), which lies in [1, 1 + q r (1 - r)]. The loss is at
  most h(r) = r e + log(1 + q r (1 - r)) if the larger table's density is the larger one, else r e. h is concave, with
  h'(1) = e - q: **if q <= e then h(r) <= h(1) = e, and the determinant costs nothing.**
- K > 2 classes: log det grows by at most the trace, q (1 - sum of p**2) <= q (2 r - r**2 K / (K - 1)). Together with
  r e that is concave in r, with the derivative e - 2 q / (K - 1) at 1. If q <= e (K - 1) / 2, the loss is therefore at
  most e + q (K - 2) / (K - 1).

**Noise with one sum.** In output k a row's gradient is x times a number r_k, the entry k of p - e_y. It has the sum r_k
in each block of several columns, and is r_k for the intercept. So in each output of a group the rows' gradients lie in
the space S of vectors in which all blocks of several columns, and the intercept, have the same sum. Noise may lie in S,
too (see `group_noise`). Then R w* = -(the rows' gradients) - b is also in S, and -b = grad(w) is one-to-one and smooth
between the spaces R**-1 S and S. With R w as coordinates its derivative is the identity plus M R**-1 on S, where M is
the Hessian of the rows' loss. The term of M that a row adds maps into S, so the determinant grows as above: with one
output by a factor of 1 + x' H**-1 x r (1 - r), else its logarithm by at most a trace. Each block but the intercept is a
histogram with a cell for each column, or with two cells for a block of one column, which is their difference. The
coordinates of S are the sum, and all cells of each histogram but the last. xi is uniform in a cube of side 1 in these
coordinates, and the two tables' xi differ by at most 1 in each of them. In the last of m cells, which is the sum minus
the others, they differ by at most m. So m_g is then 2 m - 1 for the largest histogram, times the number of outputs
(`GroupNoise.rounded`).

**Balanced noise.** With K > 2 classes the entries of p - e_y add up to 0. So the rows' gradients add up to 0 over
outputs, in each column. If the noise of a group does so, too, then so does R w*, as R is the same for all outputs. A
row's Hessian maps into the space of vectors that add up to 0 over outputs, and has the same trace on it. The
coordinates are all outputs but the last, in which the two tables' xi differ by at most K - 1. So m_g is 2 (K - 1) times
the number of columns of the group's largest block.

**Numbers as outcomes.** With one output let p be the probability of the second class, let the outcome be any u in
[0, 1], and let a row's loss be -u log p - (1 - u) log(1 - p). In expectation it is least if p is the mean of u (Papke
and Wooldridge 1996). The gradient is (p - u) x and the curvature p (1 - p) x x', as before. Let r now be max(p, 1 - p).
Then abs(p - u) <= r and p (1 - p) = r (1 - r). So a row loses at most r e + log(1 + q r (1 - r)) = h(r) <= e, if q <= e
as above. Nothing else changes.

**A released tree.** Let z be an earlier release, such as a tree. Let x and an offset o be functions of z and of the row
alone, and let the score be w'x + o. For a fixed z all of the above holds. Of the offset it uses only that p is a
probability. Of x it uses only two facts: in each block x has an l1 norm of at most 1, and q is the largest x' R**-1 x.
A column in [-1, 1], such as a leaf's value, is a block of its own. Its part of the gradient is at most r, and it adds
at most 1 / R_j to q, with R_j the ridge of the column, like a two-valued attribute. The offset costs nothing, whatever
its size. Both tables have the same z, and z and the fit compose sequentially (McSherry 2009, Theorem 3).

With K > 2 classes let the column have a value in [-1, 1] for each class, a_1, ..., a_K, and one coefficient for all
classes. Its part of the gradient is the sum over k != y of p_k (a_k - a_y), at most 2 r in size. So it is a block of
one coordinate with c = 2. Its curvature is the variance of the values under p, which is the sum over pairs k < l of
p_k p_l (a_k - a_l)**2 <= 2 (1 - sum of p**2). log det grows by at most the trace of R**-1 times the row's Hessian. That
is at most q (1 - sum of p**2), where q is the largest x' R**-1 x of the other columns plus 2 / R_j. The rest is
unchanged. `Design` has a tree for two classes only.

**Replacing a row.** The noise's part of the loss is at most r_1 e + r_2 e, with r_1 and r_2 the r of the two rows. The
ratio of the determinants is at most what the new row adds. So the loss is at most twice the above.

**What is computed.** The draw of k is exact (see `group_noise`). From b~ = t k in floats, which is near b
(`NoiseAndRidge.lattice_error`), `fitting` computes w~. It proves that the gradient of F at w~, taken with b itself and
not with b~, is at most `NoiseAndRidge.gradient_error` in the norm of R**-1. As the Hessian is at least R, (w~ - w*)' R
(w~ - w*) <= grad F(w~)'(w~ - w*). So in the norm of R, w~ - w* is at most as long as `NoiseAndRidge.gradient_error`. In
the l1 norm it is at most that times the square root of the trace of R**-1, and this product is
`NoiseAndRidge.distance`. w~ is rounded to a lattice of step l, and discrete Laplace noise of scale a, in lattice steps,
is added. If w* had been rounded and released in this way, it would be post-processing of w*. In the l1 norm the two
roundings differ by at most distance / l plus 1 for each coordinate. By the choice of a this moves a log-probability by
at most epsilon / 1024, for each of the two tables. So

    epsilon  >=  e  +  sum of m_g / s_g  +  q (K - 2) / (K - 1)  +  2 epsilon / 1024.

The right side is `NoiseAndRidge.claimed`, a rational number. t is so small that the sum of m_g / s_g is at most 2**-20
epsilon. It is assumed that an exponential in floating point is within 4 units in the last place, and that 64 bits hold
the noise. An epsilon for which 64 bits might not hold it is refused. For any other epsilon, 64 bits fail to hold the
noise with a probability far below exp(-2**9). No fit is refused for what its rows hold, only for having more rows than
`Design.most_rows`. If floats miss the bound on the gradient, `minimiser_refinement` goes on with more digits. That
takes longer, so somebody who times a fit closely may learn of it, as with other exact samplers.
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
from dpframework_trees.additive.noise_and_ridge import NoiseAndRidge

CELL = 2.0**-30  # the side of the cell whose log-probability is returned as log-density
LARGEST_NOISE = 2.0**53  # the largest mean noise in steps of its lattice: 512 times as much still fits into 64 bits
FITS = ("logistic-rows", "number-rows")  # the names of the queries whose answers are fitted
# If rows times epsilon is less than this number times the attributes, a constant may have a lower log-loss than a fit.
ROWS_OF_ATTRIBUTE = 50


@final
@attrs.frozen
class ObjectivePerturbation(PureMechanism):
    """Releases the coefficients of an additive logistic model, fitted once with a random linear term (see the module).

    Its epsilon is for a row that is added or removed. Its scale is for a norm in which a row's gradient is at most 1.
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
        """Fit with noise, round the coefficients, add noise, and return them, shape (columns, outputs)."""
        rows = _rows(answer, calibration)
        tuned = tune_for(rows.design, calibration)
        steps = fit_in_steps(rows, tuned, draw_noise(tuned, randomness))
        noise = randomness.discrete_laplace(steps.size, tuned.release_scale).reshape(steps.shape)
        return np.asarray((steps + noise) * tuned.release_step)

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return the log-probability of a cell with the side `CELL` around the output.

        It is computed from the density of the exact minimiser. The release has some more noise, on a scale of
        `NoiseAndRidge.distance` / epsilon, over which the density hardly changes.
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
            f"a fit with noise in its gradient, for each coefficient about as much as {scale:.3g} rows can add to it; "
            f"with fewer than about {fewest:,} rows, a constant may predict equally well{instead}"
        )
        return Preview(scale, scale * math.log(20), text)


def _rows(answer: Any, calibration: Calibration) -> Rows:
    if not isinstance(answer, Rows):
        raise InputError(f"the query '{calibration.facts.text}' must answer with Rows for a fit")
    if len(answer.classes) > answer.design.most_rows:
        raise InputError(
            "there are more rows than the schema's max_rows allows for a fit; raise max_rows, which is public"
        )
    return answer


def tune_for(design: Design, calibration: Calibration) -> NoiseAndRidge:
    """Return the noise and ridge for a calibration, with its epsilon under add-or-remove-one."""
    return _tune(design, 1 / calibration.scale)


@functools.lru_cache(maxsize=64)
def _tune(design: Design, epsilon: Fraction) -> NoiseAndRidge:
    tuned = NoiseAndRidge(design, epsilon)
    held = tuned.claimed <= tuned.epsilon and tuned.curvature(tuned.ridge) <= tuned.most_curvature
    if not held or tuned.largest_noise > LARGEST_NOISE:
        raise InputError(
            f"the noise of a fit cannot be computed for epsilon = {float(tuned.epsilon):.3g}; use an epsilon nearer "
            "to 1"
        )
    return tuned


def draw_noise(tuned: NoiseAndRidge, randomness: Randomness) -> Reals:
    """Draw the linear term, whose entries are multiples of the lattice's step, shape (columns, outputs)."""
    design = tuned.design
    noise = np.empty((design.columns, design.outputs))
    for group, of_group, scale in zip(design.groups, design.noises, tuned.scales, strict=True):
        drawn = of_group.draw(scale, randomness)
        for j, own in zip(group, np.split(drawn, np.cumsum(of_group.blocks)[:-1]), strict=True):
            noise[design.columns_of(j)] = own * float(tuned.step)
    return noise


def noise_log_density(tuned: NoiseAndRidge, noise: Reals) -> float:
    """Return the log of the density of the linear term in its space. The density is exp(-norm) over its integral."""
    design, found = tuned.design, []
    for group, of_group, scale in zip(design.groups, design.noises, tuned.scales, strict=True):
        unit = scale * float(tuned.step)
        norm = of_group.norm(np.concatenate([noise[design.columns_of(j)] for j in group]))
        found.append(-norm / unit - of_group.dimension * math.log(unit) - of_group.log_volume)
    return math.fsum(found)


def _log_ridge_left_out(tuned: NoiseAndRidge) -> float:
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


def into_space(tuned: NoiseAndRidge, coefficients: Reals) -> Reals:
    """Return the point in the space of minimisers that is nearest to given coefficients, shape (columns, outputs).

    A release is a minimiser plus noise in all entries. In a group with one sum, the blocks of the ridge times
    the minimiser have equal sums in each output, and balanced outputs add up to 0 (see the module).
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
