"""Bounded noise on a count, for an epsilon and an exact delta, derived from the optimal rule for showing keys.

A key is a value that nobody listed beforehand. It is shown with a probability that depends on its number of rows.

**The rule.** Let x = e**epsilon, pi(0) = 0, and let pi(n) be the smallest of x pi(n-1) + delta, of
1 - (1 - pi(n-1) - delta) / x, and of 1. A key of n rows is shown with probability pi(n). Among all (epsilon, delta)-DP
rules that never show a key without rows, this rule shows every key most often (Desfontaines, Voss, Gipson and Mandayam
2022). Let `reach` be the first n with pi(n) = 1, and let the noise be reach - n with probability
g(n) = pi(n) - pi(n-1), for n = 1 to reach. Then a count of c plus noise is reach or more with probability pi(c). So
showing the keys whose noisy counts are reach or more is the optimal rule. Their noisy counts are released with them.

**Theorem.** A count plus this noise is (epsilon, delta)-DP for rows that change the count by 1. *Proof.* Let g be 0
outside of 1, ..., reach. The delta is the larger of two sums over n: the sum of the positive parts of g(n) - x g(n-1),
and the sum of the positive parts of g(n) - x g(n+1). By the rule, g(1) = delta. From one n to the next, g grows by a
factor of x while the first of the rule's bounds is the smallest. While the second bound is the smallest, g shrinks by a
factor of x. Between these two stretches, one ratio g(n) / g(n-1) lies between 1 / x and x, since pi(n) is at most both
bounds. So in the first sum only n = 1 contributes, and the sum is delta. In the second sum only the last two n
contribute: g(reach), and g(reach-1) - x g(reach). Since g(reach) + g(reach-1) = 1 - pi(reach-2), this sum is
1 - pi(reach-2) - x g(reach). The second bound at n = reach - 1 says
g(reach) = 1 - pi(reach-1) = (1 - pi(reach-2) - delta) / x. So the second sum is delta, too. If the rule ends before the
second bound is the smallest, the second sum is at most delta.

**On integers.** Probabilities are whole multiples of 2**-256. The rule is evaluated on them with x and delta rounded
down. Then both sums of the proof are computed in whole numbers, again with x rounded down, and compared with delta. So
the claim does not rest on floating point. The noise is drawn from uniform bits. Usually the first word of 64 bits
decides. If one of the sums pi(n) begins with the same word, four words decide.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.mechanisms.randomness import Randomness
from dpframework.mechanisms.uniforms import WORD_BITS

BITS = 256  # the bits of a probability
WHOLE = 1 << BITS  # a probability of 1
_WORDS = BITS // WORD_BITS
_DIGITS = 60  # the decimal digits to which e**epsilon is computed, which are more than `_X_BITS` bits
_X_BITS = 160  # the bits after the point to which e**epsilon is then rounded down
LARGEST_REACH = 1 << 20
LEAST_DELTA = Fraction(1, 1 << 100)
MOST_EPSILON = Fraction(1000)  # e**epsilon is then above WHOLE, and a larger epsilon gives the same rule


@final
@attrs.frozen(eq=False)
class SelectionNoise:
    """The noise on a count that one row changes by 1, for an epsilon and a delta.

    Attributes
    ----------
    sums
        2**256 pi(n), for n from 1 to `reach`.
    """

    sums: Sequence[int]

    @property
    def reach(self) -> int:
        """The largest noise plus 1. It is also the fewest rows with which a key is always shown."""
        return len(self.sums)

    @functools.cached_property
    def chances(self) -> NDArray[np.float64]:
        """The probabilities of the noise reach - 1, reach - 2, ..., 0."""
        return np.array([weight / WHOLE for weight in _increments(self.sums)])

    @functools.cached_property
    def log_chances(self) -> NDArray[np.float64]:
        """The logarithms of `chances`."""
        return np.array([math.log(weight) - BITS * math.log(2) for weight in _increments(self.sums)])

    @functools.cached_property
    def mean(self) -> float:
        """The mean of the noise, which is public."""
        return float(self.chances @ np.arange(self.reach - 1, -1, -1))

    @property
    def centre(self) -> int:
        """The rounded mean of the noise. A noisy count minus this is nearly right on average."""
        return round(self.mean)

    @functools.cached_property
    def _log_hidden(self) -> NDArray[np.float64]:
        """The logarithms of the probabilities that 0, 1, ..., `reach` rows plus noise are below `reach`."""
        hidden = [math.log(WHOLE - one) - BITS * math.log(2) for one in self.sums[:-1]]
        return np.array([0.0, *hidden, -np.inf])

    def log_hidden(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the logarithms of the probabilities that these numbers of rows plus noise are below `reach`."""
        return self._log_hidden[_within(rows, self.reach)]

    def shown(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the probabilities that these numbers of rows plus noise are `reach` or more."""
        known = np.array([0.0, *(one / WHOLE for one in self.sums)])
        return known[_within(rows, self.reach)]

    def log_density(self, noise: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the logarithm of the probability of each given value of the noise, -inf for an impossible one."""
        position = self.reach - 1 - noise
        possible = (position >= 0) & (position < self.reach)
        return np.where(possible, self.log_chances[_within(position, self.reach - 1)], -np.inf)

    def draw(self, size: int, randomness: Randomness) -> NDArray[np.int64]:
        """Draw independent noise, exactly."""
        words = randomness.words(size)
        first = np.searchsorted(self._tops, words, side="right")
        # A word that equals the first word of a sum does not decide. Three more words do.
        for k in np.flatnonzero(np.searchsorted(self._tops, words, side="left") != first):
            number = functools.reduce(
                lambda bits, word: bits << WORD_BITS | word, randomness.words(_WORDS - 1).tolist(), int(words[k])
            )
            first[k] = bisect.bisect_right(self.sums, number)
        return (self.reach - 1 - first).astype(np.int64)

    @functools.cached_property
    def _tops(self) -> NDArray[np.uint64]:
        """The first 64 bits of each of `sums` except the last, which stands for a probability of 1."""
        return np.array([one >> (BITS - WORD_BITS) for one in self.sums[:-1]], dtype=np.uint64)


def _within(numbers: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return the numbers clamped to 0 and `most`. For few numbers, `np.clip` takes five times as long."""
    return np.minimum(np.maximum(numbers, 0), most)


@functools.lru_cache(maxsize=64)
def selection_noise(epsilon: Fraction, delta: Fraction) -> SelectionNoise:
    """Return the noise for an epsilon and a delta.

    Raises
    ------
    InputError
        If delta is below 2**-100, or if the noise could exceed a million.

    Examples
    --------
    >>> noise = selection_noise(Fraction(1), Fraction(1, 10**6))
    >>> noise.reach, round(float(noise.shown(np.array([14]))[0]), 3)
    (28, 0.7)
    """
    if delta < LEAST_DELTA:
        raise InputError(f"delta is {float(delta):g}; keys need a delta of 1e-30 or more")
    x = _exponential_below(min(epsilon, MOST_EPSILON))
    sums = _rule(x, math.floor(delta * WHOLE) - 4 * LARGEST_REACH)
    if max(_positive_parts(sums, x)) > delta * WHOLE:
        raise AssertionError("the noise of a selection loses more than its delta")
    return SelectionNoise(sums)


def _rule(x: Fraction, delta: int) -> list[int]:
    """Return pi(1), pi(2), ... up to the first that is 1, in units of 2**-256."""
    sums, last = [], 0
    while last < WHOLE:
        grown = x.numerator * last // x.denominator + delta
        left = max(WHOLE - last - delta, 0)
        fallen = WHOLE - -(-left * x.denominator // x.numerator)
        last = min(grown, fallen, WHOLE)
        sums.append(last)
        if len(sums) > LARGEST_REACH:
            raise InputError("the noise of keys could exceed a million rows; raise epsilon or delta")
    return sums


def _increments(sums: Sequence[int]) -> list[int]:
    return [high - low for low, high in itertools.pairwise((0, *sums))]


def _positive_parts(sums: Sequence[int], x: Fraction) -> tuple[Fraction, Fraction]:
    """Return the two sums of the theorem, in units of 2**-256."""
    up = _increments(sums)
    both = []
    for weights in (up, up[::-1]):
        rest = (x.denominator * high - x.numerator * low for low, high in itertools.pairwise((0, *weights)))
        both.append(Fraction(sum(max(one, 0) for one in rest), x.denominator))
    return both[0], both[1]


def _exponential_below(epsilon: Fraction) -> Fraction:
    """Return a rational just below e**epsilon.

    Decimal's exponential is rounded correctly. The exponent is rounded, too, which moves the exponential by at most
    about `epsilon` units in the last place.
    """
    context = Context(prec=_DIGITS)
    rounded = context.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    near = Fraction(context.exp(rounded)) * (1 - (2 + epsilon) / Fraction(10) ** (_DIGITS - 1))
    return Fraction(math.floor(near * (1 << _X_BITS)), 1 << _X_BITS)
