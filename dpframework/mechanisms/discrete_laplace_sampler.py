"""Exact discrete Laplace noise, from independent digits in base 256.

Let s be the scale of the noise, and r = exp(-1 / s). Let the random whole number G >= 0 have Pr[G >= k] = r**k. Then
G = k has the probability (1 - r) r**k. Written in base 256 with n digits, k = d_0 + 256 d_1 + ... + 256**(n-1) d_(n-1),
where the last digit is unbounded. The probability is a product of functions of one digit each, so the digits of G are
independent. With q = r**(256**b), digit b has the distribution function

    F(d) = Pr[d_b <= d] = (1 - q**(d+1)) / (1 - q**256),    and F(d) = 1 - q**(d+1) for the last digit.

G gets a random sign, and if the result is -0, it is drawn anew. The result is a whole number k with probability
proportional to exp(-abs(k) / s).

**Each digit is drawn by inversion**: it is the least d with U < F(d), for a uniform number U in [0, 1). The first 31
bits w of U are compared with t = floor(2**31 F(d)). If w < t, then U < (w + 1) / 2**31 <= F(d). If w > t, then
U >= (t + 1) / 2**31 > F(d). The case w = t has a probability of 2**-31 for each different t. In this case more bits of
U are drawn and compared with closer bounds of F(d), F(d+1) and so on, until the comparison is decided. Since F(d) is
irrational, it is always decided in the end. No w is above all of the 256 tabulated t, since w is at most 2**31 - 1. The
largest t is 2**31 for all digits but the last, as F(255) is 1 there. For the last digit the largest t is 2**31 - 1,
since 1 - F(255) is at most about exp(-45). So every outcome has exactly the probability that it should have, if the
words are uniform. The only float is the scale, which is taken as exactly the binary fraction that it is.

Each digit uses half a word of 64 bits. The last bit of the first digit's half word is the sign. Where the digit is the
same for all w that begin with the same 12 bits, it is looked up by these bits.
"""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms.uniforms import WORD_BITS, DrawWords, Uniform, exp_bounds

Integers = NDArray[np.int64]
Halves = NDArray[np.uint32]
BASE = 256
BITS = 31  # how many bits of half a word decide about a digit
LARGEST_SCALE = 2.0**53  # at this scale, a number that does not fit into 64 bits has a probability of exp(-1024)
SMALLEST_SCALE = 2.0**-500
TAIL = 45  # the last digit is above 255, the largest tabulated digit, with a probability of at most exp(-TAIL)
_GUARD_BITS = 128  # how many more bits the powers have than the bound that is computed from them
_KEPT = 256  # the most scales whose tables are kept
LOOKED_UP = 12  # the number of first bits by which a digit is looked up


def discrete_laplace(words: DrawWords, size: int, scale: float, *, bits: int = BITS) -> Integers:
    """Draw independent whole numbers k with probability proportional to exp(-abs(k) / scale), exactly.

    Parameters
    ----------
    words
        The function that draws words of 64 uniform bits.
    size
        How many numbers are drawn.
    scale
        The scale of the noise, from `SMALLEST_SCALE` to `LARGEST_SCALE`.
    bits
        The number of bits of half a word from which a digit is drawn at first, 1 to 31. With few bits the case w = t is
        frequent, which its tests need.

    Returns
    -------
    numpy.ndarray
        Shape (size,), int64.
    """
    minus_zero = -math.expm1(-1 / scale) / 2  # the probability of -0, which is drawn anew
    digits = digits_of(scale, bits)
    drawn = np.zeros(0, dtype=np.int64)
    while len(drawn) < size:
        missing = size - len(drawn)
        # Some draws will be -0. Draw more than are missing, to make up for their mean number plus four standard
        # deviations. A surplus is dropped.
        batch = math.ceil((missing + 4 * math.sqrt(missing * minus_zero)) / (1 - minus_zero))
        batch += batch % 2
        halves = words(batch * len(digits) // 2).view(np.uint32).reshape(len(digits), batch)
        halves_of_digits = zip(digits, halves >> np.uint32(32 - bits), strict=True)
        found, *higher = (digit.draw(half, words) for digit, half in halves_of_digits)
        for place, part in enumerate(higher, start=1):
            found += part << 8 * place
        negative = (halves[0] & np.uint32(1)).astype(np.bool_)
        np.negative(found, out=found, where=negative)
        kept = found[(found != 0) | ~negative]
        drawn = np.concatenate([drawn, kept]) if len(drawn) else kept
    return drawn[:size]


@functools.lru_cache(maxsize=_KEPT)
def digits_of(scale: float, bits: int) -> tuple[Digit, ...]:
    """Return the distributions of the digits of noise with a scale, the lowest digit first."""
    number = next(n for n in itertools.count(1) if BASE**n >= TAIL * scale)
    places = range(number)
    return tuple(Digit(place, BASE**place / Fraction(scale), place == number - 1, bits) for place in places)


@final
@attrs.frozen(eq=False)
class Digit:
    """The distribution of one digit.

    Attributes
    ----------
    place
        The position b of the digit, from 0: it counts multiples of 256**b.
    exponent
        256**b / s, so that q = exp(-`exponent`) (see the module).
    last
        Whether it is the last digit, which is unbounded.
    bits
        How many bits of a uniform number are compared with the thresholds.
    """

    place: int
    exponent: Fraction
    last: bool
    bits: int

    @functools.cached_property
    def thresholds(self) -> Halves:
        """The whole numbers floor(2**bits F(d)) for d = 0, ..., 255, with F the digit's distribution function."""
        fine = self.bits + WORD_BITS
        precision = fine + _GUARD_BITS
        first = power = exp_bounds(-self.exponent, precision)
        whole = self._whole(precision)
        one, largest, found = 1 << precision, (1 << self.bits) - 1, []
        for d in range(BASE):
            least = ((one - power[1]) << self.bits) // (one - whole[0])  # bounds as in `quotient_bounds`
            most = min(((one - power[0]) << self.bits) // (one - whole[1]), largest)  # F(d) is below 1
            found.append(least if least == most else self._threshold(d, fine))
            power = power[0] * first[0] >> precision, -(-power[1] * first[1] >> precision)
        if not self.last:
            found[-1] = 1 << self.bits
        return np.array(found, dtype=np.uint32)

    @functools.cached_property
    def known(self) -> Integers:
        """The digit that belongs to each value of the first 12 bits, or -1 where further bits matter."""
        blocks = np.arange((1 << LOOKED_UP) + 1, dtype=np.int64) << self.bits - min(self.bits, LOOKED_UP)  # up to 2**31
        at = np.searchsorted(self.thresholds.astype(np.int64), blocks)
        return np.where(at[:-1] == at[1:], at[:-1], -1)

    def draw(self, first: Halves, words: DrawWords) -> Integers:
        """Return one digit for each uniform number. `first` has the first bits of these numbers."""
        found: Integers = self.known[first >> np.uint32(self.bits - min(self.bits, LOOKED_UP))]
        (at,) = (found < 0).nonzero()
        if len(at):
            searched = first[at]
            digits = self.thresholds.searchsorted(searched)  # the first threshold at or above the bits
            (unsure,) = (self.thresholds[digits] == searched).nonzero()
            for i in unsure.tolist():
                # More bits of U tell which is the least d with U < F(d).
                uniform, d = Uniform(int(searched[i]), self.bits, words), int(digits[i])
                while (self.last or d < BASE - 1) and not uniform.below(functools.partial(self.bounds, d)):
                    d += 1
                digits[i] = d
            found[at] = digits
        return found

    def bounds(self, d: int, bits: int) -> tuple[int, int]:
        """Return whole numbers between which F(d) * 2**bits lies."""
        precision = bits + _GUARD_BITS
        power = exp_bounds(-(d + 1) * self.exponent, precision)
        return quotient_bounds(power, self._whole(precision), precision, bits)

    def _whole(self, precision: int) -> tuple[int, int]:
        """Return bounds of q**256 * 2**precision, or zeros for the last digit, which is unbounded."""
        return (0, 0) if self.last else exp_bounds(-BASE * self.exponent, precision)

    def _threshold(self, d: int, fine: int) -> int:
        """Return floor(2**bits F(d)). F(d) is bounded more and more closely until both bounds agree."""
        largest = (1 << self.bits) - 1
        while True:
            least, most = (bound >> fine - self.bits for bound in self.bounds(d, fine))
            if least == min(most, largest):
                return least
            fine += WORD_BITS


def quotient_bounds(power: tuple[int, int], whole: tuple[int, int], precision: int, bits: int) -> tuple[int, int]:
    """Return bounds of (1 - x) / (1 - y) * 2**bits from bounds of x and y, in units of 2**-precision."""
    one = 1 << precision
    return ((one - power[1]) << bits) // (one - whole[0]), -(-((one - power[0]) << bits) // (one - whole[1]))
