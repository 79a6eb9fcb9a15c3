"""Sums over the rows of a logistic fit, for its gradient and its Hessian.

cells[i, j] is the cell of row i in attribute j, where the cells of all attributes are numbered in a single range. The
last attribute is the intercept, which has a single cell. theta[v, c] is added to the score of class c for each row in
cell v. With two classes there is one column, for the log-odds of the second class.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Reals: TypeAlias = NDArray[np.float64]
Cells: TypeAlias = NDArray[np.uint16]
Integers: TypeAlias = NDArray[np.int64]

ONE = 2.0**52  # 1 in the fixed point in which residuals are added up: each is rounded to a multiple of 2**-52
LOW = (1 << 26) - 1  # the lower 26 bits
AT_ONCE = 512  # how many rows are added up at once: residuals of at most 2**52 then sum to at most 2**61


@njit(nogil=True, cache=True)
def _probabilities(cells: Any, i: int, theta: Any, out: Any) -> None:
    """Write the probability of each class of a row to `out`. For a single column, the second class comes first."""
    columns = theta.shape[1]
    for c in range(columns):
        out[c] = 0.0
    for j in range(cells.shape[1]):
        for c in range(columns):
            out[c] += theta[cells[i, j], c]
    if columns == 1:
        z = np.exp(-abs(out[0]))
        large, small = 1.0 / (1.0 + z), z / (1.0 + z)
        out[0], out[1] = (large, small) if out[0] >= 0 else (small, large)
        return
    top = out[0]
    for c in range(1, columns):
        top = max(top, out[c])
    total = 0.0
    for c in range(columns):
        out[c] = np.exp(out[c] - top)
        total += out[c]
    for c in range(columns):
        out[c] /= total


@njit(nogil=True, cache=True)
def add_residuals(cells: Cells, classes: Any, theta: Reals, high: Integers, low: Integers, unit: float = 1.0) -> None:
    """Add to each cell its rows' residuals (probability minus outcome), as high * 2**-26 + low * 2**-52, exactly.

    With a single column, the outcome is a number from 0 to 1: `unit` times the entry of `classes`.
    """
    columns = theta.shape[1]
    p = np.empty(columns + 1)
    q = np.empty(columns, dtype=np.int64)
    near = np.zeros(theta.shape, dtype=np.int64)
    rows = len(cells)
    for i in range(rows):
        _probabilities(cells, i, theta, p)
        own = classes[i]
        if columns == 1:
            outcome = own * unit
            q[0] = np.int64(np.rint(((1.0 - outcome) * p[0] - outcome * p[1]) * ONE))
        else:
            for c in range(columns):
                q[c] = np.int64(np.rint((p[c] - (1.0 if c == own else 0.0)) * ONE))
        for j in range(cells.shape[1]):
            for c in range(columns):
                near[cells[i, j], c] += q[c]
        if i % AT_ONCE == AT_ONCE - 1 or i == rows - 1:
            for v in range(theta.shape[0]):
                for c in range(columns):
                    high[v, c] += near[v, c] >> 26
                    low[v, c] += near[v, c] & LOW
                    near[v, c] = 0


@njit(nogil=True, cache=True)
def add_curvature(cells: Cells, theta: Reals, hessian: Any) -> None:
    """Add the rows' second derivatives to `hessian`, shape (columns, columns, cells, cells).

    Only the tables [c, e] with c <= e are filled. In these, a row adds only to entries [v, w] where v is its cell in an
    attribute, and w is its cell in the same or a later attribute.
    """
    columns = theta.shape[1]
    p = np.empty(columns + 1)
    for i in range(len(cells)):
        _probabilities(cells, i, theta, p)
        for c in range(columns):
            for e in range(c, columns):
                weight = p[c] * ((1.0 - p[c] if c == e else -p[e]) if columns > 1 else p[1])
                table = hessian[c, e]
                for j in range(cells.shape[1]):
                    row = table[cells[i, j]]
                    for m in range(j, cells.shape[1]):
                        row[cells[i, m]] += weight
