"""One joint distribution of several matches, fitted to overlapping noisy tables of three matches each.

A row is in one of four states of a match: neither side holds for it, the left one, the right one, or both. A table of
three matches counts rows by 64 cells, and a design says which three each table is of, so that every two matches meet
in a table. The joint distribution over all 4**k states of k matches is log-linear with a parameter for each cell of
each table. It is fitted by least squares, beginning with the uniform distribution. Overlapping tables average their
independent noise, and together determine the combinations that no single table counts.

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
CELLS = 64  # of a table of three matches
ITERATIONS = 150  # at most
OF_NOISE = 0.8  # of the squared error that noise alone makes: a fit that is closer has learned the noise
FIRST_STEP, FASTER, SLOWER = 200.0, 1.5, 0.5
FARTHEST = 2.0  # of a parameter in a step: one that gives nearly all rows to one state does not come back

#: Of each number of matches, those that each table is of. Every two meet in at least one; 7 are the points of the Fano
#: plane and 9 those of the affine plane of order 3, where every two are in exactly one line. No table holds 0, 1 and 2.
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
_DIGITS = np.stack([np.arange(CELLS) >> (2 * k) & 3 for k in range(3)])  # of a cell: left side holds, 2 if right
#: Of the pairs of a table's three matches: the cell of the pair that each of its cells is in.
_PAIRS = np.stack([_DIGITS[i] + 4 * _DIGITS[j] for i, j in ((0, 1), (0, 2), (1, 2))])


@final
@attrs.frozen
class Joint:
    """A joint distribution of k matches over their 4**k states.

    Attributes
    ----------
    matches
        How many: k.
    states
        The probability of each state, shape (4**k,). Digit m of a state, to the base of 4, is that of match m: 1 where
        its left side holds, and 2 more where its right side does.
    """

    matches: int
    states: Floats = attrs.field(eq=False)

    @functools.cached_property
    def sides(self) -> Floats:
        """The probabilities by which left sides hold and which right ones, shape (2**k, 2**k).

        Bit m of a row's number says whether the left side of match m holds.
        """
        k = self.matches
        axes = [2 * m + 1 for m in range(k)] + [2 * m for m in range(k)]
        return np.ascontiguousarray(self.states.reshape((2,) * (2 * k)).transpose(axes)).reshape(2**k, 2**k)

    def likeliest(self, most: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Return the likeliest states, at most `most`: which left sides hold, which right ones, and how likely it is.

        Bit m of a number says whether that side of match m holds.
        """
        states = np.argsort(-self.states, kind="stable")[:most]
        digits = [states >> (2 * m) & 3 for m in range(self.matches)]
        left = sum((digit & 1) << m for m, digit in enumerate(digits))
        right = sum((digit >> 1) << m for m, digit in enumerate(digits))
        return np.asarray(left), np.asarray(right), self.states[states]

    def of_trios(self, trios: Sequence[tuple[int, ...]]) -> Floats:
        """Return the probabilities of the cells of three matches each, shape (trios, 8 left cells, 8 right cells)."""
        numbers = np.arange(2**self.matches)
        within = np.zeros((len(trios), 8, len(numbers)))
        for t, trio in enumerate(trios):
            cell = sum((numbers >> m & 1) << k for k, m in enumerate(trio))
            within[t, cell, numbers] = 1.0
        left = (within.reshape(-1, len(numbers)) @ self.sides).reshape(within.shape)
        return np.asarray(left @ within.transpose(0, 2, 1))


def trios(matches: int) -> list[tuple[int, ...]]:
    """Return every three of k matches."""
    return list(itertools.combinations(range(matches), 3))


def as_cells(table: Floats) -> Floats:
    """Return counts of left cells by right cells, shape (8, 8), by the states of three matches, shape (64,)."""
    left = (_DIGITS & 1).T @ (1 << np.arange(3))
    right = (_DIGITS >> 1).T @ (1 << np.arange(3))
    return np.asarray(table[left, right])


def fit(matches: int, shares: Floats, variance: float = 0.0, *, pairs_only: bool = False) -> Joint:
    """Fit a joint distribution to the noisy shares of the rows in the cells of a design's tables.

    Mirror descent begins with the uniform distribution. A step that lowers the squared error makes the next one longer,
    any other step is undone and halved. The fit ends after `ITERATIONS` steps, or once the squared error is `OF_NOISE`
    times the one that noise of this variance alone causes.

    Parameters
    ----------
    matches
        How many, of `DESIGNS`.
    shares
        Shape (tables, 64), in the design's order.
    variance
        Of the noise of one share.
    pairs_only
        To fit the cells of pairs of matches alone, 16 a pair.
    """
    from dpframework.redescriptions.kernels.joint_states import sum_states

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

    # a pair's cell adds up four cells of a table: three times 16 sums of four, instead of 64 cells
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
