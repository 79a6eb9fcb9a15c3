"""The minimiser of a perturbed logistic loss, and a proven bound on the gradient where the search ends.

Privacy does not depend on how the minimum is found, only on the bound. The bound is for the gradient of the loss with
the real noise b, which is a lattice point plus up to half a lattice step in each coordinate. It is computed as follows,
with u = 2**-53.

- A coefficient is rounded to a lattice on which the score of any row is below 2**52 steps. So the sum over a row's
  attributes is exact.
- An exponential has a relative error of at most 8 u (4 units in the last place, as everywhere here). A sum of C terms
  adds C u, and a quotient adds u. So a probability of C classes is off by less than (20 + C) u, and its fixed point by
  8 u.
- The sum over rows is exact, in integers. So a cell of m rows is off by (28 + C) u m. The cells of an attribute share
  all n rows. In the l2 norm over an attribute's columns that is at most (28 + C) u n.
- Adding the sum, ridge and noise costs 4 u of the sum of their absolute values. (If an attribute has one column, its
  two cells are rounded before they are subtracted, by u n together. The fixed point, which is counted above with 8 u,
  costs only 1.)
- A leaf of a tree adds a multiple of 1 / `GRAIN` of its column's coefficient, which is a multiple of `GRAIN` steps of
  the lattice. It also adds an offset, a multiple of 1/8. The sum for that column, over L leaves, costs another 2 L u n.
  (The centre of numbers is an offset, too, a multiple of 2**-8.)
- An outcome t between 0 and 1 is a multiple of 2**-15. The error of the residual (1 - t) p - t (1 - p) is at most that
  of its two probabilities, plus u for both products and u for the difference.

If that bound exceeds the one that the claim needs, `minimiser_refinement` goes on. A fit is never refused.
"""

from __future__ import annotations

import math

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework_trees.additive.design import Design, Reals
from dpframework_trees.additive.minimiser_refinement import inverse_of, refine
from dpframework_trees.additive.noise_and_ridge import NoiseAndRidge

UNIT = 2.0**-53
MOST_ON_LATTICE = 2.0**61  # the largest size of a released coefficient, in steps of the release's lattice
SAMPLED = 16  # a fit of many rows starts from a fit to every row whose position is a multiple of this
MANY = 100_000  # the number of rows above which a fit starts from a sample
MOST_STEPS = 200  # the most steps of Newton's method
HALVINGS = 40  # how often a step may be halved
ENOUGH = 0.1  # if a step leaves at most this share of the gradient, the next step uses the same Hessian


@attrs.frozen(eq=False)
class Rows:
    """The rows of a fit, which are the answer of `LogisticRows` or `NumberRows`.

    Attributes
    ----------
    cells
        The cell of each row in each attribute (and tree), and the intercept's cell, shape (rows, attributes + 1).
    classes
        The class of each row, or its outcome in steps of 1 / `Design.whole`, shape (rows,).
    design
        The columns of the fit.
    """

    cells: NDArray[np.uint16]
    classes: NDArray[np.uint16]
    design: Design


@attrs.frozen(eq=False)
class Loss:
    """The perturbed loss of some rows, for coefficients of shape (columns, outputs).

    Attributes
    ----------
    rows
        The rows.
    tuned
        The columns and the ridge.
    noise
        The coefficients of the linear term, shape (columns, outputs).
    times
        How many times each row counts.
    """

    rows: Rows
    tuned: NoiseAndRidge
    noise: Reals
    times: float = 1.0

    def residuals(self, coefficients: Reals) -> Reals:
        """Return the gradient of the rows' loss, without ridge and noise."""
        from dpframework_trees.kernels import add_residuals

        design = self.tuned.design
        high, low = np.zeros((2, design.of_cells.shape[1], design.outputs), dtype=np.int64)
        add_residuals(self.rows.cells, self.rows.classes, of_cells(design, coefficients), high, low, 1 / design.whole)
        sums = high * 2.0**-26 + low * 2.0**-52
        return np.asarray(design.of_cells @ sums) * self.times

    def gradient(self, coefficients: Reals) -> Reals:
        """Return the gradient of the perturbed loss."""
        return self.residuals(coefficients) + self.tuned.ridge[:, None] * coefficients + self.noise

    def size(self, gradient: Reals) -> float:
        """Return a gradient's size, in the norm of R**-1."""
        return float(np.sqrt((gradient**2 / self.tuned.ridge[:, None]).sum()))

    def bound(self, coefficients: Reals) -> float:
        """Return a proven bound on the size of the exact gradient with real noise (see the module).

        It is infinite if the coefficients or the offsets are not on the lattice.
        """
        design, ridge = self.tuned.design, self.tuned.ridge[:, None]
        step = lattice_step(self, coefficients) / 2  # Rounding may have moved the largest score past a power of two.
        on_grain = step * design.grains[:, None]
        for numbers, steps in ((coefficients, on_grain), (design.offsets, step)):
            if not np.array_equal(numbers, np.rint(numbers / steps) * steps):
                return math.inf
        sums = self.residuals(coefficients)
        found = self.size(sums + ridge * coefficients + self.noise)
        added = self.size(4 * UNIT * (np.abs(sums) + np.abs(ridge * coefficients) + np.abs(self.noise)))
        lowest = math.sqrt(ridge.min())
        of_row = design.units_of_row * UNIT
        of_rows = of_row * len(self.rows.classes) * math.sqrt(design.outputs * len(design.widths))
        return (found + added + of_rows / lowest + self.of_noise) * (1 + 2.0**-30)

    @property
    def of_noise(self) -> float:
        """The largest distance of the real noise from the computed noise, in the norm of R**-1."""
        return self.tuned.lattice_error / math.sqrt(self.tuned.ridge.min()) * (1 + 2.0**-30)

    def hessian(self, coefficients: Reals) -> Reals:
        """Return the Hessian, shape (columns * outputs, columns * outputs), with the columns of an output together."""
        from dpframework_trees.kernels import add_curvature

        design, outputs = self.tuned.design, self.tuned.design.outputs
        cells = design.of_cells.shape[1]
        tables = np.zeros((outputs, outputs, cells, cells))
        add_curvature(self.rows.cells, of_cells(design, coefficients), tables)
        whole = np.empty((outputs, design.columns, outputs, design.columns))
        for c in range(outputs):
            for e in range(c, outputs):
                above = tables[c, e]
                both = above + above.T - np.diag(np.diag(above))
                whole[c, :, e] = whole[e, :, c] = self.times * (design.of_cells @ both @ design.of_cells.T)
            whole[c, :, c] += np.diag(self.tuned.ridge)
        return whole.reshape(design.columns * outputs, design.columns * outputs)


def of_cells(design: Design, coefficients: Reals) -> Reals:
    """Return each cell's part of the scores, with offsets, shape (cells, outputs)."""
    return np.ascontiguousarray(design.of_cells.T @ coefficients + design.offsets)


def lattice_step(loss: Loss, coefficients: Reals) -> float:
    """Return the step of the lattice for coefficients, a power of two, on which any score is at most 2**50 steps."""
    design = loss.tuned.design
    of_each = (np.abs(design.of_cells.T @ coefficients) + np.abs(design.offsets)).max(axis=1)
    # A bound on the absolute score of any row, and on all partial sums of it.
    largest = float(np.maximum.reduceat(of_each, design.first_cells).sum()) * (1 + 2.0**-40)
    return 2.0 ** (math.ceil(math.log2(max(largest, 2.0**-10))) - 50)


def round_to_lattice(loss: Loss, coefficients: Reals) -> Reals:
    """Round coefficients to their lattice."""
    steps = lattice_step(loss, coefficients) * loss.tuned.design.grains[:, None]
    return np.asarray(np.rint(coefficients / steps) * steps)


def fit_in_steps(rows: Rows, tuned: NoiseAndRidge, noise: Reals) -> NDArray[np.int64]:
    """Return coefficients at which the gradient is proven to be within `NoiseAndRidge.gradient_error`.

    They are in steps of the release's lattice, rounded, and clamped to 2**61 steps. This works for any rows. If
    floating point does not reach the bound, `minimiser_refinement` does.
    """
    found = minimise(rows, tuned, noise)
    loss, unit = Loss(rows, tuned, noise), tuned.release_step
    if loss.bound(found) <= tuned.gradient_error:
        return np.rint(found / unit).clip(-MOST_ON_LATTICE, MOST_ON_LATTICE).astype(np.int64)
    return refine(loss, found, tuned.gradient_error - loss.of_noise, unit)


def minimise(rows: Rows, tuned: NoiseAndRidge, noise: Reals) -> Reals:
    """Return coefficients on a lattice near the minimum, as near as floating point allows or `gradient_error` needs.

    Newton's method is used, with steps halved until the gradient's size falls. For a strongly convex loss it falls to
    0.
    """
    coefficients, inverse = np.zeros(noise.shape), None
    if len(rows.classes) > MANY:
        some = Rows(np.ascontiguousarray(rows.cells[::SAMPLED]), rows.classes[::SAMPLED], rows.design)
        few = Loss(some, tuned, noise, len(rows.classes) / len(some.classes))
        coefficients = _newton(few, coefficients, few.size(noise) * 1e-3)
        inverse = inverse_of(few.hessian(coefficients))  # The sample's Hessian is near enough for the first steps.
    return _newton(Loss(rows, tuned, noise), coefficients, tuned.gradient_error, inverse)


def _newton(loss: Loss, coefficients: Reals, enough: float, inverse: Reals | None = None) -> Reals:
    """Minimise until the bound is at most `enough` or no step helps. `inverse` is the inverse of a first Hessian."""
    gradient = loss.gradient(coefficients)
    size = loss.size(gradient)
    for _ in range(MOST_STEPS):
        if size <= enough and loss.bound(coefficients) <= enough:
            break
        fresh = inverse is None
        used = inverse_of(loss.hessian(coefficients)) if inverse is None else inverse
        if used is None:
            break
        towards = (used @ gradient.T.ravel()).reshape(gradient.T.shape).T
        for halving in range(HALVINGS):
            tried = round_to_lattice(loss, coefficients - towards * 2.0**-halving)
            new = loss.gradient(tried)
            if loss.size(new) < size * (1 - 0.1 * 2.0**-halving):
                break
        else:
            if fresh:
                break
            inverse = None  # A step by an older Hessian does not help, so compute a new one.
            continue
        kept = loss.size(new) <= ENOUGH * size
        coefficients, gradient, size = tried, new, loss.size(new)
        inverse = used if kept else None
    return coefficients
