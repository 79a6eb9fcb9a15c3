"""The minimiser in as many digits as needed, for fits that floating point does not bring near enough.

A fit that is refused tells of its rows, and no epsilon covers that. So there is none: where floats end too far from
the minimum, which few fits do, this goes on from there. How long it takes may depend on the rows; what it returns is as
near to the minimum as the claim asks, on any table.

It ends. The loss is smooth and strongly convex: a step against the gradient by one over a bound L of the Hessian's
eigenvalues shortens the gradient by a factor of 1 - ridge / L at least, and Newton's steps are taken only where they
halve it. Digits are doubled until those of the evaluation do not matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dpframework_trees.additive.fitting import Loss

DIGITS = 256  # bits, at first
SPARE = 64  # bits by which the evaluation must be finer than what is asked for
STEPS = 50  # between two looks whether more digits are needed

Numbers = NDArray[Any]  # of mpmath's


class _Exact:
    """A loss in mpmath's numbers at the current precision, with each distinct row evaluated once."""

    def __init__(self, loss: Loss) -> None:
        import mpmath

        design, rows = loss.tuned.design, loss.rows
        distinct, counts = np.unique(np.column_stack([rows.cells, rows.classes]), axis=0, return_counts=True)
        self.cells, self.classes = distinct[:, :-1].astype(np.intp), distinct[:, -1].astype(np.intp)
        self.counts = [int(n) for n in counts]
        self.column = np.abs(design.of_cells).argmax(axis=0)  # a cell has something in one column
        self.share = [mpmath.mpf(float(design.of_cells[column, cell])) for cell, column in enumerate(self.column)]
        self.whole = design.whole
        self.offsets = _of_floats(design.offsets)
        self.ridge = np.array([mpmath.mpf(float(r)) for r in loss.tuned.ridge], dtype=object)[:, None]
        self.noise = _of_floats(loss.noise)
        # A row's Hessian is at most the squared length of its columns, times 1/2.
        self.steepest = max(self.ridge.ravel()) + mpmath.mpf(len(rows.classes) * len(design.widths)) / 2

    def gradient(self, coefficients: Numbers) -> tuple[Numbers, Any]:
        """Return the gradient, and the largest number on the way to it."""
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
    """Return where the gradient's size is at most `enough`, rounded to whole multiples of `unit`, below 2**61.

    Parameters
    ----------
    loss
        What is minimised.
    start
        Coefficients to start at, shape (columns, outputs).
    enough
        The size that the gradient may have: above 0.
    unit
        What the result is counted in.
    """
    import mpmath

    bits, at, inverse = DIGITS, _of_floats(start), inverse_of(loss.hessian(start))
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
    """Step until the gradient is small enough, or return where more digits are needed."""
    import mpmath

    gradient, largest = exact.gradient(at)
    steps = 0
    while True:
        size = exact.size(gradient)
        # What rounding may have done to it: far less than the spare bits allow for.
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
    """Return the inverse in floats, or None if floats have none."""
    try:
        found = np.linalg.inv(hessian)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(found, np.float64) if bool(np.isfinite(found).all()) else None


def _of_floats(numbers: NDArray[np.float64]) -> Numbers:
    import mpmath

    return np.array([[mpmath.mpf(float(number)) for number in row] for row in numbers], dtype=object)
