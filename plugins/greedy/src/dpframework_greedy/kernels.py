"""Numba kernels that count the rows of pairs and extensions from joint histograms.

The support of a description is the set of rows for which it holds. Symbols: `both` and `either` are the numbers of rows
in both supports of a pair and in at least one. A literal is (position of its attribute, first, last, negated): a range
of known codes, or all known codes outside the range. The kernels read numbers of rows off the histograms, and numpy
computes scores from these numbers (see `scores`).
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Integers: TypeAlias = "NDArray[np.int64]"


class Literals(NamedTuple):
    """The literals of a language, and the joint histograms of its pairs of attributes (see `language.Language`).

    Attributes
    ----------
    tops
        The largest code of each attribute, for either side.
    known
        How many codes of each attribute are known, that is, not missing. They are its first codes.
    tests
        The literals of either side. Those of one attribute are next to each other.
    starts
        Where the literals of each attribute start among those of its side, and where the last ones end.
    pairs
        The pairs of attributes, as positions in their sides, shape (pairs, 2).
    offsets
        Where each pair's joint histogram starts when all are joined in one line, and where the last one ends. Within a
        histogram, the code of the left attribute comes first.
    """

    tops: tuple[Integers, Integers]
    known: tuple[Integers, Integers]
    tests: tuple[Integers, Integers]
    starts: tuple[Integers, Integers]
    pairs: Integers
    offsets: Integers


@njit(nogil=True, cache=True)
def pair_supports(
    counts: Integers, of: Literals, p: int, sums: Integers, of_both: Integers, of_either: Integers
) -> None:
    """Fill in the supports of every pair of literals, for pair p of attributes, the right literal varying fastest.

    `counts` holds the joint histograms of all pairs of attributes. `sums` is a work array for the numbers of rows whose
    codes are below two given codes. Its first row and column are 0.
    """
    i, j = of.pairs[p, 0], of.pairs[p, 1]
    left_tests = of.tests[0][of.starts[0][i] : of.starts[0][i + 1]]
    right_tests = of.tests[1][of.starts[1][j] : of.starts[1][j + 1]]
    height, width, begin = of.tops[0][i] + 1, of.tops[1][j] + 1, of.offsets[p]
    for v in range(height):
        along = 0
        for w in range(width):
            along += counts[begin + v * width + w]
            sums[v + 1, w + 1] = sums[v, w + 1] + along
    across, down = of.known[0][i], of.known[1][j]  # known codes of either attribute
    k = 0
    for a in range(len(left_tests)):
        low, high = left_tests[a, 1], left_tests[a, 2] + 1
        held = sums[high, width] - sums[low, width]
        known = sums[high, down] - sums[low, down]  # rows of the left literal whose right value is known
        if left_tests[a, 3]:
            held, known = sums[across, width] - held, sums[across, down] - known
        for b in range(len(right_tests)):
            start, end = right_tests[b, 1], right_tests[b, 2] + 1
            left, right = held, sums[height, end] - sums[height, start]
            both = sums[high, end] - sums[low, end] - sums[high, start] + sums[low, start]
            if left_tests[a, 3]:
                both = sums[across, end] - sums[across, start] - both
            if right_tests[b, 3]:
                right, both = sums[height, down] - right, known - both
            of_both[k], of_either[k] = both, left + right - both
            k += 1


@njit(nogil=True, cache=True)
def log_weight(scores: Integers, scale: float) -> np.int64:
    """Return scale ln(sum of exp(score / scale)), rounded to a whole number of lattice steps."""
    top = scores.max()
    total = lost = 0.0
    for k in range(len(scores)):  # a compensated sum: its error does not grow with the number of scores
        term = math.exp((scores[k] - top) / scale) - lost
        more = total + term
        lost = (more - total) - term
        total = more
    return np.int64(top + np.int64(np.rint(scale * math.log(total))))


@njit(nogil=True, cache=True)
def extension_supports(
    sums: Integers, begins: Integers, totals: Integers, of: Literals, side: int, supports: Integers
) -> None:
    """Fill in the supports of one side's extensions, first those by `and`, then those by `or`.

    sums[begins[k] + v] holds the numbers of rows with codes below v of attribute k of that side, by class, and `totals`
    the numbers of all rows by class. A class is 2 if the left side holds, plus 1 if the right one does.
    """
    tests = of.tests[side]
    number = len(tests)
    # classes as this side sees them: both sides hold, this one only, the other only, neither
    mine, others = (2, 1) if side == 0 else (1, 2)
    for x in range(number):
        k = tests[x, 0]
        low, high, known = begins[k] + tests[x, 1], begins[k] + tests[x, 2] + 1, begins[k] + of.known[side][k]
        neither, mine_held = sums[high, 0] - sums[low, 0], sums[high, mine] - sums[low, mine]
        others_held, both_held = sums[high, others] - sums[low, others], sums[high, 3] - sums[low, 3]
        if tests[x, 3]:
            neither, mine_held = sums[known, 0] - neither, sums[known, mine] - mine_held
            others_held, both_held = sums[known, others] - others_held, sums[known, 3] - both_held
        supports[0, x], supports[1, x] = both_held, mine_held + totals[3] + totals[others]
        supports[0, number + x] = totals[3] + others_held
        supports[1, number + x] = totals[3] + totals[mine] + neither + totals[others]
