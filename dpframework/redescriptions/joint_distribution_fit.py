"""One joint distribution of several matches, fitted to overlapping noisy tables of three matches each.

A match is a pair of tests, one of each view, that should hold for nearly the same rows. For each match a row is in one
of four states: neither side holds for it, only the left one, only the right one, or both. A table counts the rows in
the 64 cells that three matches make. A design says which three matches each table counts, so that any two matches meet
in a table. The joint distribution over all 4**k states of k matches is log-linear. It has a parameter for each cell of
each table. A state lies in one cell of each table, and the sum of these cells' parameters is the logarithm of its
probability, up to a constant. The parameters are fitted by least squares, beginning with the uniform distribution.
Overlapping tables average their independent noise, and together determine the combinations that no single table counts.

All of this is post-processing of released counts.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
CELLS = 64  # the cells of a table of three matches
ITERATIONS = 150  # the most steps of a fit
OF_NOISE = 0.8  # a fit stops at this share of the squared error that noise alone causes; a closer fit learns the noise
# The size of the first step, and its factors after a step that lowers the error and after any other step.
FIRST_STEP, FASTER, SLOWER = 200.0, 1.5, 0.5
FARTHEST = 2.0  # the most that a step moves a parameter; a fit cannot recover once one state has nearly all rows

#: For each number of matches, the three matches of each table. Any two meet in at least one table. The tables of 7 are
#: the lines of the Fano plane, and those of 9 are the lines of the affine plane of order 3, where any two points are on
#: exactly one line. No table holds all of 0, 1 and 2, as the kernel in `joint_distribution_sum` requires.
DESIGNS = MappingProxyType(
    {
        5: ((0, 1, 3), (0, 2, 4), (1, 2, 4), (2, 3, 4)),
        7: ((0, 1, 3), (1, 2, 4), (2, 3, 5), (3, 4, 6), (0, 4, 5), (1, 5, 6), (0, 2, 6)),
        9: (
            (0, 1, 3),
            (2, 4, 5),
            (6, 7, 8),
            (0, 2, 6),
            (1, 4, 7),
            (3, 5, 8),
            (0, 4, 8),
            (1, 5, 6),
            (2, 3, 7),
            (0, 5, 7),
            (1, 2, 8),
            (3, 4, 6),
        ),
    }
)
#: For each of a table's three matches, the state in each cell: 1 if the left side holds, plus 2 if the right side does.
_DIGITS = np.stack([np.arange(CELLS) >> (2 * k) & 3 for k in range(3)])
#: For each pair of a table's three matches, the cell of the pair in which each cell of the table lies.
_PAIRS = np.stack([_DIGITS[i] + 4 * _DIGITS[j] for i, j in ((0, 1), (0, 2), (1, 2))])


@final
@attrs.frozen
class Joint:
    """A joint distribution of k matches over their 4**k states.

    Attributes
    ----------
    matches
        The number of matches, k.
    states
        The probability of each state, shape (4**k,). Digit m of a state's number in base 4 is the state of match m: 1
        if its left side holds, plus 2 if its right side holds.
    """

    matches: int
    states: Floats = attrs.field(eq=False)

    @functools.cached_property
    def sides(self) -> Floats:
        """The probability of each set of left sides and right sides that hold together, shape (2**k, 2**k).

        Bit m of a row's number says whether the left side of match m holds. Bit m of a column's number says whether the
        right side of match m holds.
        """
        k = self.matches
        axes = [2 * m + 1 for m in range(k)] + [2 * m for m in range(k)]
        return np.ascontiguousarray(self.states.reshape((2,) * (2 * k)).transpose(axes)).reshape(2**k, 2**k)

    def likeliest(self, most: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Return the `most` likeliest states: the left sides and the right sides that hold, and the probabilities.

        Sides are given as whole numbers. Bit m of a number says whether that side of match m holds.
        """
        states = np.argsort(-self.states, kind="stable")[:most]
        digits = [states >> (2 * m) & 3 for m in range(self.matches)]
        left = sum((digit & 1) << m for m, digit in enumerate(digits))
        right = sum((digit >> 1) << m for m, digit in enumerate(digits))
        return np.asarray(left), np.asarray(right), self.states[states]

    def of_trios(self, trios: Sequence[tuple[int, ...]]) -> Floats:
        """Return the probabilities of the cells of each trio of matches, shape (trios, 8 left cells, 8 right cells)."""
        numbers = np.arange(2**self.matches)
        within = np.zeros((len(trios), 8, len(numbers)))
        for t, trio in enumerate(trios):
            cell = sum((numbers >> m & 1) << k for k, m in enumerate(trio))
            within[t, cell, numbers] = 1.0
        left = (within.reshape(-1, len(numbers)) @ self.sides).reshape(within.shape)
        return np.asarray(left @ within.transpose(0, 2, 1))


def trios(matches: int) -> list[tuple[int, ...]]:
    """Return all sets of three among `matches` matches, which are numbered from 0."""
    return list(itertools.combinations(range(matches), 3))


def as_cells(table: Floats) -> Floats:
    """Turn counts by left and right cell, shape (8, 8), into counts by the states of three matches, shape (64,)."""
    left = (_DIGITS & 1).T @ (1 << np.arange(3))
    right = (_DIGITS >> 1).T @ (1 << np.arange(3))
    return np.asarray(table[left, right])


def fit(matches: int, shares: Floats, variance: float = 0.0, *, pairs_only: bool = False) -> Joint:
    """Fit a joint distribution to the tables of a design, given as the noisy share of the rows in each cell.

    Mirror descent begins with the uniform distribution. A step that lowers the squared error makes the next one longer.
    Any other step is undone, and the next one is half as long. The fit ends after `ITERATIONS` steps, or once the
    squared error is at most `OF_NOISE` times the error that noise of this variance alone causes.

    Parameters
    ----------
    matches
        The number of matches, which has a design in `DESIGNS`.
    shares
        The noisy shares, shape (tables, 64), in the design's order.
    variance
        The variance of the noise of one share.
    pairs_only
        Whether to fit the cells of pairs of matches alone, 16 for each pair.
    """
    from dpframework.redescriptions.kernels.joint_distribution_sum import sum_states

    positions = np.array(DESIGNS[matches], dtype=np.int64)
    sums, none = np.empty_like(shares), np.empty(0)

    def at(theta: Floats) -> Floats:
        total = sum_states(np.exp(theta - theta.max(axis=1, keepdims=True)), positions, matches, sums, none)
        return np.asarray(sums / total) if total > 0 else np.full_like(sums, math.nan)

    def error(fitted: Floats) -> tuple[float, Floats]:
        off = fitted - shares
        if not pairs_only:
            return float((off**2).sum()), off
        squares, spread = 0.0, np.zeros_like(off)
        for cells in _PAIRS:
            of_pair = np.stack([np.bincount(cells, one, minlength=16) for one in off])
            squares += float((of_pair**2).sum())
            spread += of_pair[:, cells]
        return squares, spread

    # A pair's cell adds up four cells of a table. Three pairs with 16 such sums have three times the noise of 64 cells.
    of_noise = 3 * shares.size if pairs_only else shares.size
    theta, step = np.zeros_like(shares), FIRST_STEP
    least, slope = error(at(theta))
    enough = OF_NOISE * variance * of_noise
    for _ in range(ITERATIONS):
        if least <= enough:
            break
        tried = theta - min(step, FARTHEST / float(np.abs(slope).max())) * slope
        squares, next_slope = error(at(tried))
        if math.isfinite(squares) and squares < least:
            theta, least, slope, step = tried, squares, next_slope, step * FASTER
        else:
            step *= SLOWER
    states = np.empty(4**matches)
    total = sum_states(np.exp(theta - theta.max(axis=1, keepdims=True)), positions, matches, sums, states)
    return Joint(matches, states / total)
