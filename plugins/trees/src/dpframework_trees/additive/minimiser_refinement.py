"""The minimiser in as many digits as needed, for fits that floating point does not bring near enough.

If a fit were refused, that would reveal something about its rows, and no epsilon covers it. So no fit is refused. If
floats end too far from the minimum, which is rare, this module goes on from there. The time may depend on the rows. The
result is as near to the minimum as the claim needs, on any table.

The search ends, since the loss is smooth and strongly convex. Let L be a bound on the Hessian's eigenvalues. A step of
minus the gradient / L multiplies the gradient's length by at most 1 - ridge / L. Newton's steps are taken only if
they halve the gradient. The number of digits is doubled until rounding does not matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dpframework_trees.additive.fitting import Loss

FIRST_BITS = 256  # the number of bits of each number in the first attempt. Each further attempt doubles it
SPARE = 64  # how many of the bits are an allowance for rounding errors
STEPS = 50  # the number of steps between two checks of whether more digits are needed

Numbers = NDArray[Any]  # an array of mpmath's numbers


class _Exact:
    """A loss in mpmath's numbers at the current precision. Each distinct row is evaluated once."""

    def __init__(self, loss: Loss) -> None:
        import mpmath

        design, rows = loss.tuned.design, loss.rows
        distinct, counts = np.unique(np.column_stack([rows.cells, rows.classes]), axis=0, return_counts=True)
        self.cells, self.classes = distinct[:, :-1].astype(np.intp), distinct[:, -1].astype(np.intp)
        self.counts = [int(n) for n in counts]
        self.column = np.abs(design.of_cells).argmax(axis=0)  # A cell has an entry in only one column.
        self.share = [mpmath.mpf(float(design.of_cells[column, cell])) for cell, column in enumerate(self.column)]
        self.whole = design.whole
        self.offsets = _of_floats(design.offsets)
        self.ridge = np.array([mpmath.mpf(float(r)) for r in loss.tuned.ridge], dtype=object)[:, None]
        self.noise = _of_floats(loss.noise)
        # The eigenvalues of a row's Hessian are at most half of the squared length of its columns.
        self.steepest = max(self.ridge.ravel()) + mpmath.mpf(len(rows.classes) * len(design.widths)) / 2

    def gradient(self, coefficients: Numbers) -> tuple[Numbers, Any]:
        """Return the gradient, and a bound on the absolute value of every number in its computation."""
        import mpmath

        theta = np.array([own * coefficients[c] for own, c in zip(self.share, self.column, strict=True)], dtype=object)
        theta = theta + self.offsets
        sums = np.full(theta.shape, mpmath.mpf(0), dtype=object)
        one = theta.shape[1] == 1
        for cells, own, times in zip(self.cells, self.classes, self.counts, strict=True):
            scores = theta[cells].sum(axis=0)
            all_scores = [mpmath.mpf(0), scores[0]] if one else list(scores)
            highest = max(all_scores)
            terms = [mpmath.exp(score - highest) for score in all_scores]
            whole = mpmath.fsum(terms)
            p = [term / whole for term in terms]
            residual = [p[1] - mpmath.mpf(int(own)) / self.whole] if one else [p[c] - (c == own) for c in range(len(p))]
            sums[cells] += np.array([times * r for r in residual], dtype=object)
        of_rows = np.full(coefficients.shape, mpmath.mpf(0), dtype=object)
        for cell, (own, column) in enumerate(zip(self.share, self.column, strict=True)):
            of_rows[column] = of_rows[column] + own * sums[cell]
        ridged = self.ridge * coefficients
        largest = max(abs(number) for number in (*ridged.ravel(), *self.noise.ravel()))
        return of_rows + ridged + self.noise, largest + sum(self.counts)

    def size(self, gradient: Numbers) -> Any:
        """Return a gradient's size, in the norm of R**-1."""
        import mpmath

        return mpmath.sqrt(mpmath.fsum((gradient**2 / self.ridge).ravel()))


def refine(loss: Loss, start: NDArray[np.float64], enough: float, unit: float) -> NDArray[np.int64]:
    """Find coefficients at which the gradient's size is at most `enough`, and return them as multiples of `unit`.

    The multiples are rounded to whole numbers, and clamped to 2**61.

    Parameters
    ----------
    loss
        The loss that is minimised.
    start
        The coefficients to start at, shape (columns, outputs).
    enough
        The largest size that the gradient may have, above 0.
    unit
        The unit of the result.
    """
    import mpmath

    bits, at, inverse = FIRST_BITS, _of_floats(start), inverse_of(loss.hessian(start))
    while True:
        with mpmath.workprec(bits):
            exact = _Exact(loss)
            done, at = _descend(exact, at, enough, inverse, bits)
            if done:
                most = 1 << 61
                return np.array(
                    [[max(-most, min(most, int(mpmath.nint(w / unit)))) for w in row] for row in at], dtype=np.int64
                )
        bits *= 2


def _descend(
    exact: _Exact, at: Numbers, enough: float, inverse: NDArray[np.float64] | None, bits: int
) -> tuple[bool, Numbers]:
    """Step until the gradient is small or needs more digits. Return whether it is small, and the coefficients."""
    import mpmath

    gradient, largest = exact.gradient(at)
    steps = 0
    while True:
        size = exact.size(gradient)
        # A bound on the effect of rounding, which is far smaller than the spare bits allow for.
        doubt = largest * mpmath.mpf(2) ** (SPARE - bits) * gradient.size / mpmath.sqrt(min(exact.ridge.ravel()))
        if size + doubt <= enough:
            return True, at
        if doubt > mpmath.mpf(enough) / 4 or (steps and steps % STEPS == 0 and doubt > size / 1024):
            return False, at
        steps += 1
        if inverse is not None:
            unit = max(abs(g) for g in gradient.ravel())
            floats = np.array([[float(g / unit) for g in row] for row in gradient])
            towards = (inverse @ floats.T.ravel()).reshape(floats.T.shape).T
            tried = at - _of_floats(towards) * unit
            new, newest = exact.gradient(tried)
            if exact.size(new) <= size / 2:
                at, gradient, largest = tried, new, newest
                continue
        at = at - gradient / exact.steepest
        gradient, largest = exact.gradient(at)


def inverse_of(hessian: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the inverse of a Hessian in floats, or None if it cannot be computed in floats."""
    try:
        found = np.linalg.inv(hessian)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(found, np.float64) if bool(np.isfinite(found).all()) else None


def _of_floats(numbers: NDArray[np.float64]) -> Numbers:
    import mpmath

    return np.array([[mpmath.mpf(float(number)) for number in row] for row in numbers], dtype=object)
