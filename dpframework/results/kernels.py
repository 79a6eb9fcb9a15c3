"""A Numba kernel that sums a joint distribution of several matches over its states. Import it inside functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LOW = 3  # positions that a kernel runs through together; no table holds all of them


@njit(nogil=True, cache=True)
def sum_states(weights: Floats, positions: NDArray[np.int64], number: int, sums: Floats, states: Floats) -> float:
    """Fill in the sums of a product of weights by the cells of each table, and return its sum over all states.

    A state has a digit from 0 to 3 at each position. Table t has a weight for each of its 64 cells, by the digits at
    positions[t], the first one lowest; these are in order.

    Parameters
    ----------
    weights, sums
        Shape (tables, 64).
    positions
        Shape (tables, 3), of `number` positions, at least four of them.
    states
        Shape (4 ** number,), filled in with the products; of length 0 to leave them out.
    """
    tables, total = len(weights), 0.0
    sums[:] = 0.0
    pairs, alone = np.empty((3, 16)), np.empty((3, 4))  # pairs (0, 1), (0, 2), (1, 2) of the low positions
    paired, row = np.empty((3, 16)), np.empty(4)
    digits = np.zeros(number, dtype=np.int64)
    for high in range(4 ** (number - LOW)):
        for k in range(LOW, number):
            digits[k] = high >> (2 * (k - LOW)) & 3
        pairs[:], alone[:], constant = 1.0, 1.0, 1.0
        for t in range(tables):
            first, second, third = positions[t]
            if second < LOW:
                one, base = pairs[first + second - 1], 16 * digits[third]
                for c in range(16):
                    one[c] *= weights[t, base + c]
            elif first < LOW:
                base = 4 * digits[second] + 16 * digits[third]
                for c in range(4):
                    alone[first, c] *= weights[t, base + c]
            else:
                constant *= weights[t, digits[first] + 4 * digits[second] + 16 * digits[third]]
        for b in range(4):
            for a in range(4):
                pairs[0, a + 4 * b] *= constant * alone[0, a] * alone[1, b]
                pairs[2, a + 4 * b] *= alone[2, b]
        paired[:] = 0.0
        for c in range(4):
            for b in range(4):
                of_pair = 0.0
                for a in range(4):
                    row[a] = pairs[0, a + 4 * b] * pairs[1, a + 4 * c] * pairs[2, b + 4 * c]
                    paired[0, a + 4 * b] += row[a]
                    paired[1, a + 4 * c] += row[a]
                    of_pair += row[a]
                paired[2, b + 4 * c] += of_pair
                if len(states):
                    start = 64 * high + 16 * c + 4 * b
                    for a in range(4):
                        states[start + a] = row[a]
        here = paired[0].sum()
        total += here
        _add_back(paired, here, positions, digits, sums)
    return total


@njit(nogil=True, cache=True)
def _add_back(
    paired: Floats, here: float, positions: NDArray[np.int64], digits: NDArray[np.int64], sums: NDArray[Any]
) -> None:
    """Add the sums over the low positions, at some digits of the others, to the cells of all tables."""
    for t in range(len(sums)):
        first, second, third = positions[t]
        if second < LOW:
            base = 16 * digits[third]
            for c in range(16):
                sums[t, base + c] += paired[first + second - 1, c]
        elif first < LOW:
            base = 4 * digits[second] + 16 * digits[third]
            for a in range(4):
                for b in range(4):
                    # of pairs (0, 1), (0, 2), (1, 2): position 0 is first in the former, position 2 second in the last
                    if first == 0:
                        sums[t, base + a] += paired[0, a + 4 * b]
                    elif first == 1:
                        sums[t, base + a] += paired[0, b + 4 * a]
                    else:
                        sums[t, base + a] += paired[2, b + 4 * a]
        else:
            sums[t, digits[first] + 4 * digits[second] + 16 * digits[third]] += here
