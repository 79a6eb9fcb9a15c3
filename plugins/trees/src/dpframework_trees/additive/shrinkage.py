"""Factors by which the functions of an additive model are shrunk if they may be mostly noise.

This is post-processing: it reads released coefficients and public facts, and costs nothing.

The ridge R is right for an attribute whose values have the expected spread (`expected_spread`). Many attributes say
less about the target, or nothing. Then the noise of their functions only hides what other attributes say. The released
function of an attribute shows how much it says.

Let w be the coefficients of an attribute, minus their mean over columns in each output, in d dimensions. If rows are
spread evenly, w is about (h w0 - b) / (h + R). Here h is the curvature of the rows' loss, v the variance of the noise
b, and w0 are the true coefficients. If w0 has the variance t in each coordinate, then w has the variance

    m(t) = (h**2 t + v) / (h + R)**2,     and given w, w0 is expected at g(t) w,     g(t) = t h (h + R) / (h**2 t + v).

If R = v / (h t), then g(t) is 1. t is not known. Before the release, t is taken to be the expected spread times a power
of 4, with all exponents from `LEAST` to `LARGEST` equally likely. After the release, if noise is about normal, each of
these t has a probability in proportion to m(t)**(-d / 2) exp(-w'w / (2 m(t))). The function is multiplied by the mean
of g(t), weighted by these probabilities, or by 1 if the mean is larger. If the ridge is too large, `stretch` corrects
that, since it takes account of how sure the scores are.

Numeric attributes are left as they are. Several of them are often alike. Then each has only a small part of what they
say together, and shrinking each would remove that part.
"""

from __future__ import annotations

import numpy as np

from dpframework_trees.additive.design import Reals
from dpframework_trees.additive.noise_and_ridge import NoiseAndRidge, expected_spread

LEAST, LARGEST = -4, 2  # the exponents of the smallest and the largest power of 4 that is tried


def shrink(tuned: NoiseAndRidge, coefficients: Reals) -> Reals:
    """Return released coefficients, shape (columns, outputs), shrunk by the factor of each attribute but numeric ones.

    The mean over an attribute's columns is a part of the intercept and is not shrunk. With several outputs, the
    coefficients of a column must have the mean 0 over outputs.
    """
    design, found = tuned.design, coefficients.copy()
    for j in range(len(design.bins)):
        if j not in design.numeric:
            start, width = design.starts[j], design.widths[j]
            own = coefficients[start : start + width]
            mean = own.mean(axis=0) if width > 1 else 0.0
            found[start : start + width] = mean + factor_of(tuned, j, float(((own - mean) ** 2).sum())) * (own - mean)
    return found


def factor_of(tuned: NoiseAndRidge, attribute: int, size: float) -> float:
    """Return the factor of an attribute's function, at most 1.

    Parameters
    ----------
    tuned
        The columns, the noise and the ridge.
    attribute
        The position of the attribute.
    size
        The sum of squared deviations of the attribute's coefficients from their means over columns and over outputs.
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
