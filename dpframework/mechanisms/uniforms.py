"""Uniform real numbers, whose bits are drawn as comparisons need them, and uniform whole numbers.

To decide whether U < p, more and more bits of U are compared with closer and closer bounds of p. The answer is yes with
exactly the probability p, whatever real number p is. The comparison ends with probability 1, since only a few of the
2**64 values of each further word leave it open.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

DrawWords = Callable[[int], NDArray[np.uint64]]
Bounds = Callable[[int], tuple[int, int]]
WORD_BITS = 64
_WORDS = 64  # how many words are drawn at once for whole numbers
GUARD_DIGITS = 10  # how many more decimal digits are computed than the compared bits need


def exp_bounds(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Return whole numbers between which exp(exponent) * 2**bits lies, for an exponent below 0.

    Decimal's exponential is rounded correctly. The exponent is rounded, too, which moves the exponential by at most
    about `abs(exponent)` units in the last place.

    Examples
    --------
    >>> least, most = exp_bounds(Fraction(-1), 8)
    >>> least < 2**8 / 2.718281828459045 < most
    True
    """
    if exponent < -bits:
        return 0, 1  # exp(exponent) is below 2**-bits, since exp(-1) is below 1/2
    digits = bits // 3 + GUARD_DIGITS
    context = Context(prec=digits)
    rounded = context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    about = Fraction(context.exp(rounded)) * 2**bits
    error = about * (2 + abs(exponent)) / 10 ** (digits - 1)
    return (about - error).__floor__(), (about + error).__ceil__()


@final
class Uniform:
    """A uniform real number. Its first bits are known, and further bits are drawn when they matter.

    Parameters
    ----------
    first
        The first bits of the number, as a whole number.
    bits
        The number of these first bits.
    words
        The function that draws words of 64 uniform bits.
    """

    __slots__ = ("_bits", "_first", "_words")

    def __init__(self, first: int, bits: int, words: DrawWords) -> None:
        self._first, self._bits, self._words = first, bits, words

    def below(self, bounds: Bounds) -> bool:
        """Tell whether the number is below another number, whose bounds in units of 2**-bits are `bounds(bits)`."""
        while True:
            least, most = bounds(self._bits)
            if self._first < least:
                return True
            if self._first >= most:
                return False
            self._first = self._first << WORD_BITS | int(self._words(1).item())
            self._bits += WORD_BITS

    def below_exp(self, exponent: Fraction) -> bool:
        """Tell whether the number is below exp(exponent)."""
        return exponent >= 0 or self.below(lambda bits: exp_bounds(exponent, bits))


@final
class WholeNumbers:
    """Uniform whole numbers of any size, drawn exactly by rejection from words of 64 bits."""

    def __init__(self, words: DrawWords) -> None:
        self._words, self._pool, self._bits = words, 0, 0

    def bits(self, number: int) -> int:
        """Draw a whole number with `number` uniform bits."""
        while self._bits < number:
            drawn = self._words(_WORDS)
            self._pool |= int.from_bytes(np.asarray(drawn, dtype="<u8").tobytes(), "little") << self._bits
            self._bits += 64 * _WORDS
        found = self._pool & ((1 << number) - 1)
        self._pool, self._bits = self._pool >> number, self._bits - number
        return found

    def below(self, bound: int) -> int:
        """Draw uniformly from 0, ..., bound - 1."""
        number = (bound - 1).bit_length()
        while (found := self.bits(number)) >= bound:
            pass
        return found

    def subset(self, size: int, number: int) -> list[int]:
        """Draw a uniform subset of `number` among 0, ..., size - 1, sorted (Floyd's algorithm)."""
        chosen: set[int] = set()
        for last in range(size - number, size):
            found = self.below(last + 1)
            chosen.add(last if found in chosen else found)
        return sorted(chosen)

    def composition(self, total: int, parts: int, least: int) -> list[int]:
        """Draw a uniform vector of whole numbers, each at least `least` (0 or 1), with sum `total` (stars and bars)."""
        if parts == 0:
            return []
        places = total + (1 - least) * parts
        bars = [-1, *self.subset(places - 1, parts - 1), places - 1]
        return [after - before - (1 - least) for before, after in itertools.pairwise(bars)]
