"""A Numba kernel that sums a joint distribution of several matches over its states."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LOW = 3  # how many positions the kernel runs through together; no table holds all of them


def sum_states(weights: Floats, positions: NDArray[np.int64], number: int, sums: Floats, states: Floats) -> float:
    """Sum products of weights over states, for each cell of each table, and return their sum over all states.

    A state has a digit from 0 to 3 at each position. Table t has a weight for each of its 64 cells. A state lies in one
    cell of each table. In base 4, the cell's number has the state's digits at positions[t], the first one lowest. The
    positions of a table increase. The product of a state is the product of the weights of its cells.

    Parameters
    ----------
    weights, sums
        The weight of each cell, and the array to fill with the sum of each cell, shape (tables, 64).
    positions
        The positions of each table, shape (tables, 3).
    number
        The number of positions, at least four.
    states
        The array for the product of each state, shape (4 ** number,). Its length is 0 if products are not wanted.
    """
    sums[:] = 0.0
    digits, low = np.zeros(number, dtype=np.int64), np.empty((3, 3, 16))
    return float(_sum_states(weights, positions, digits, low[0], low[1], low[2], sums, states))


@njit(nogil=True, cache=True)
def _sum_states(
    weights: Floats,
    positions: NDArray[np.int64],
    digits: NDArray[np.int64],
    pairs: Floats,
    paired: Floats,
    alone: Floats,
    sums: Floats,
    states: Floats,
) -> float:
    """Do the work of `sum_states`, which allocates the scratch arrays `digits`, `pairs`, `paired` and `alone`.

    For the pairs (0, 1), (0, 2) and (1, 2) of low positions, `pairs` holds factors and `paired` holds sums, shape (3,
    16) each. `alone` holds the factors of each low position, in the first four entries of a row.
    """
    tables, number, total = len(weights), len(digits), 0.0
    for high in range(4 ** (number - LOW)):
        for k in range(LOW, number):
            digits[k] = high >> (2 * (k - LOW)) & 3
        constant = 1.0
        for k in range(LOW):
            for c in range(16):
                pairs[k, c], alone[k, c], paired[k, c] = 1.0, 1.0, 0.0
        for t in range(tables):
            first, second, third = positions[t, 0], positions[t, 1], positions[t, 2]
            if second < LOW:
                base = 16 * digits[third]
                for c in range(16):
                    pairs[first + second - 1, c] *= weights[t, base + c]
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
        for c in range(4):
            for b in range(4):
                of_pair = 0.0
                for a in range(4):
                    product = pairs[0, a + 4 * b] * pairs[1, a + 4 * c] * pairs[2, b + 4 * c]
                    paired[0, a + 4 * b] += product
                    paired[1, a + 4 * c] += product
                    of_pair += product
                    if len(states):
                        states[64 * high + 16 * c + 4 * b + a] = product
                paired[2, b + 4 * c] += of_pair
        here = 0.0
        for c in range(16):
            here += paired[0, c]
        total += here
        _add_back(paired, here, positions, digits, sums)
    return total


@njit(nogil=True, cache=True)
def _add_back(
    paired: Floats, here: float, positions: NDArray[np.int64], digits: NDArray[np.int64], sums: NDArray[Any]
) -> None:
    """Add sums over all digits of the low positions to the cells of all tables. `digits` has the other digits."""
    for t in range(len(sums)):
        first, second, third = positions[t, 0], positions[t, 1], positions[t, 2]
        if second < LOW:
            base = 16 * digits[third]
            for c in range(16):
                sums[t, base + c] += paired[first + second - 1, c]
        elif first < LOW:
            base = 4 * digits[second] + 16 * digits[third]
            for a in range(4):
                for b in range(4):
                    # Take a pair that has the position, (0, 1) or (1, 2), and sum over its other position.
                    if first == 0:
                        sums[t, base + a] += paired[0, a + 4 * b]
                    elif first == 1:
                        sums[t, base + a] += paired[0, b + 4 * a]
                    else:
                        sums[t, base + a] += paired[2, b + 4 * a]
        else:
            sums[t, digits[first] + 4 * digits[second] + 16 * digits[third]] += here
