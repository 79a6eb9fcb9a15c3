"""Exact discrete Gaussian noise, by rejection from discrete Laplace noise.

Source: Canonne, Kamath and Steinke 2020, Algorithm 3. Let sigma be the scale, and t = floor(sigma) + 1. A whole number
y with probability proportional to exp(-abs(y) / t) is kept with the probability exp(-g), where

    g = (abs(y) - sigma**2 / t)**2 / (2 sigma**2) = y**2 / (2 sigma**2) - abs(y) / t + sigma**2 / (2 t**2),

so that a number that is kept has a probability proportional to exp(-y**2 / (2 sigma**2)). Sigma is a binary fraction.

**Floating point only saves time.** To decide whether a uniform number U is below p = exp(-g), the first 53 bits of U
are compared with a float near p. If that leaves the decision open, U is compared with p exactly. This is how far the
float may be from p. Let x = sqrt(2 g) and u = 2**-53, so that one rounding changes a number by at most u times itself.

- The float of sigma**2 / t is off by less than 2.1 u of itself, so by less than 2.1 u sigma, since t is larger than
  sigma. The float of abs(y) is off by u of itself, so by less than (1 + x) u sigma, since abs(y) is at most
  sigma**2 / t + x sigma. Their difference and its quotient by sigma are rounded too, which adds u x each. So x is off
  by less than (3.2 + 3.2 x) u. With two more roundings, g is off by less than (3.3 x + 5.3 x**2) u. For g < 63 this is
  less than 2**-43. So p is off by less than 2**-43 too, since the slope of exp(-g) is at most 1 in absolute value.
- exp(-g) is T[k] times Taylor's polynomial of degree 9 of exp(-r), for k = floor(16 g) and r = g - k / 16, which floats
  hold exactly. T[k] is exp(-k / 16), rounded once. The rest of the series is below (1/16)**10 / 10! < 2**-61, and the
  ten steps of Horner's scheme and the product are off by less than 2**-48.

Both errors together are below the margin of 2**-42, which leaves about one decision in 2**40 open. From g = 63 on, the
float is 0, and p is below 2**-90.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms import discrete_laplace_sampler
from dpframework.mechanisms.uniforms import WORD_BITS, DrawWords, Uniform, exp_bounds

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
LARGEST_SCALE = 2.0**53 - 2  # the largest sigma for which t is a float
SMALLEST_SCALE = 2.0**-500
MARGIN = 2.0**-42  # more than the error of the float near p (see the module)
_STEPS, _END = 16, 63  # exp(-k / 16) is tabulated for k / 16 < 63
_DEGREE = 9  # the degree of Taylor's polynomial
_FLOAT_BITS = 53
_TABLE_BITS = 256  # the bits of the bounds of tabulated numbers, of which up to 90 are leading zeros


def discrete_gaussian(words: DrawWords, size: int, scale: float, *, margin: float = MARGIN) -> Integers:
    """Draw independent whole numbers k with probability proportional to exp(-k**2 / (2 scale**2)), exactly.

    Parameters
    ----------
    words, size
        As for `discrete_laplace_sampler.discrete_laplace`.
    scale
        sigma, from `SMALLEST_SCALE` to `LARGEST_SCALE`.
    margin
        A uniform number that is this near to p is compared with p exactly. The margin is at least `MARGIN`. Tests pass
        a larger margin, to make exact comparisons frequent.

    Returns
    -------
    numpy.ndarray
        Shape (size,), int64.
    """
    drawn = np.zeros(0, dtype=np.int64)
    while len(drawn) < size:
        missing = size - len(drawn)
        proposed = discrete_laplace_sampler.discrete_laplace(words, missing + missing // 2 + 8, math.floor(scale) + 1.0)
        first = words(len(proposed))
        near = exp_of_minus(exponents(proposed, scale))
        uniform = (first >> np.uint64(WORD_BITS - _FLOAT_BITS)).astype(np.float64) * 2.0**-_FLOAT_BITS
        kept = uniform + 2.0**-_FLOAT_BITS <= near - margin
        unsure = np.flatnonzero(~kept & (uniform < near + margin))
        for i in unsure.tolist():
            kept[i] = Uniform(int(first[i]), WORD_BITS, words).below_exp(-exact_exponent(int(proposed[i]), scale))
        drawn = np.concatenate([drawn, proposed[kept]])
    return drawn[:size]


def exponents(proposed: Integers, scale: float) -> Floats:
    """Return an approximation of g for each proposal."""
    x = np.abs(proposed).astype(np.float64)
    x -= scale * scale / (math.floor(scale) + 1.0)
    x /= scale
    x *= x
    x *= 0.5
    return x


def exact_exponent(proposed: int, scale: float) -> Fraction:
    """Return the exact g of a proposal.

    Examples
    --------
    >>> exact_exponent(3, 1.0)  # (3 - 1/2)**2 / 2
    Fraction(25, 8)
    """
    square = Fraction(scale) ** 2
    return (abs(proposed) - square / (math.floor(scale) + 1)) ** 2 / (2 * square)


def exp_of_minus(exponents: Floats) -> Floats:
    """Return about exp(-g), by additions and products alone, since IEEE 754 prescribes how these are rounded.

    Parameters
    ----------
    exponents
        The numbers g, each 0 or more, shape (number,).

    Returns
    -------
    numpy.ndarray
        Shape (number,). 0 from g = 63 on.
    """
    within = np.minimum(exponents, _END - 1 / _STEPS)
    step = (within * _STEPS).astype(np.int64)
    rest = within - step * (1.0 / _STEPS)
    series = np.full(len(rest), 1.0)
    for k in range(_DEGREE, 0, -1):  # 1 - r (1 - r/2 (1 - r/3 (...)))
        series *= rest
        series *= -1.0 / k
        series += 1.0
    series *= _table()[step]
    series[exponents >= _END] = 0.0
    return series


@functools.cache
def _table() -> Floats:
    """Return exp(-k / 16) for k = 0, ..., 16 * 63 - 1, each rounded once."""
    bounds = [exp_bounds(Fraction(-k, _STEPS), _TABLE_BITS) for k in range(1, _STEPS * _END)]
    return np.array([1.0, *(float(Fraction(most, 1 << _TABLE_BITS)) for _, most in bounds)])
