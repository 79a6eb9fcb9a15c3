"""By how much the functions of an additive model are shrunk, where noise may be most of them.

Post-processing: it reads released coefficients and public facts, and costs nothing.

The ridge R is right for an attribute whose values have the expected spread (`expected_spread`). Many attributes tell
less, or nothing, and then the noise of their functions only hides what others tell. How much an attribute tells shows
in its released function.

Let w be the columns of an attribute, each output's without its mean over the columns, in d dimensions. If rows are
spread evenly, w is about (h w0 - b) / (h + R), with h the curvature of the rows' loss, v the variance of the noise b,
and w0 what is true. Let w0 have the variance t in each coordinate. Then w has

    (h**2 t + v) / (h + R)**2 = m(t)     and given w, w0 is expected at g(t) w,     g(t) = t h (h + R) / (h**2 t + v).

R = v / (h t) makes g(t) 1. t is not known: any power of 4 from `LEAST` to `LARGEST` times the expected spread is as
likely as any other, and of these each has after the release a probability in proportion to m(t)**(-d / 2) exp(-w'w /
(2 m(t))), if noise is about normal. The function is multiplied by the mean of g(t) by these probabilities, at most by
1: what the ridge takes too much of is for `stretch`, which knows how sure the scores are.

Numeric attributes are left as they are. Several are often alike; then each has a small part of what they tell together,
and shrinking each would take that off.
"""

from __future__ import annotations

import numpy as np

from dpframework_trees.additive.design import Reals
from dpframework_trees.additive.tuning import Tuned, expected_spread

LEAST, LARGEST = -4, 2  # powers of 4


def shrunk(tuned: Tuned, coefficients: Reals) -> Reals:
    """Return released coefficients, shape (columns, outputs), with each attribute's own shrunk by its factor.

    The mean over an attribute's columns, which is a part of the intercept, is left. Over several outputs coefficients
    must have the mean 0.
    """
    design, found = tuned.design, coefficients.copy()
    for j in range(len(design.bins)):
        if j not in design.numeric:
            start, width = design.starts[j], design.widths[j]
            own = coefficients[start : start + width]
            mean = own.mean(axis=0) if width > 1 else 0.0
            found[start : start + width] = mean + factor_of(tuned, j, float(((own - mean) ** 2).sum())) * (own - mean)
    return found


def factor_of(tuned: Tuned, attribute: int, size: float) -> float:
    """Return the factor of an attribute's function, at most 1, for the squared length of its columns.

    Parameters
    ----------
    tuned
        Columns, noise and ridge.
    attribute
        Its position.
    size
        The sum of squares of its coefficients, over outputs each column's mean and each output's mean taken off.
    """
    design = tuned.design
    start, width = design.starts[attribute], design.widths[attribute]
    h, own, variance = tuned.curvatures[start], tuned.ridge[start], tuned.deviations[start] ** 2
    dimensions = max(width - 1, 1) * max(design.outputs - 1, 1)
    t = expected_spread(len(design.widths) - 1, len(design.numeric)) * 4.0 ** np.arange(LEAST, LARGEST + 1)
    spread = (h**2 * t + variance) / (h + own) ** 2
    likely = -(dimensions * np.log(spread) + size / spread) / 2
    weights = np.exp(likely - likely.max())
    factors = t * h * (h + own) / (h**2 * t + variance)
    return min(float((weights * factors).sum() / weights.sum()), 1.0)
