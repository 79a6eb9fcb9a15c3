"""Numba kernels that number and choose the rows of units, and that compute the keyed hash by which rows are chosen.

Import them inside functions, since numba takes 0.6 s to load.

The hash is SipHash-2-4 (Aumasson and Bernstein 2012), a keyed hash of 64 bits. Its values look random to everybody who
does not know the key. Here a message is one word of eight bytes. So each value takes two blocks, the message and its
length, with two rounds for each block, and four rounds at the end. As in the paper, v0 to v3 are the four words of
state.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Words = NDArray[np.uint64]


def places_in_units(codes: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the place of each row among its unit's own rows, from 0, and the number of rows of each unit.

    Parameters
    ----------
    codes
        The number of each row's unit, from 0 and without gaps, shape (rows,).

    Examples
    --------
    >>> places_in_units(np.array([1, 0, 1], dtype=np.uint32))
    (array([0, 0, 1]), array([1, 2]))
    """
    sizes = np.zeros(int(codes.max()) + 1 if len(codes) else 0, dtype=np.int64)
    places = np.empty(len(codes), dtype=np.int64)
    _count_each(codes, sizes, places)
    return places, sizes


def smallest_of_each(keys: NDArray[np.uint64], units: NDArray[np.int64], most: int) -> NDArray[np.bool_]:
    """Return which rows have the `most` smallest keys of their unit. Of rows with equal keys, earlier rows come first.

    Parameters
    ----------
    keys
        The key of each row, shape (rows,).
    units
        The number of each row's unit, from 0, shape (rows,).
    most
        The most rows of each unit that are chosen.

    Examples
    --------
    >>> smallest_of_each(np.array([7, 9, 7], dtype=np.uint64), np.array([0, 0, 0]), 2)
    array([ True, False,  True])
    """
    number = int(units.max()) + 1 if len(units) else 0
    sizes, found = np.zeros(number, dtype=np.int64), np.zeros(len(units), dtype=np.bool_)
    # `least` and `rows` must not take more memory than the rows themselves.
    if number * most <= len(units):
        least, rows = np.empty((number, most), dtype=np.uint64), np.empty((number, most), dtype=np.int64)
        _mark_smallest(keys, units, least, rows, sizes, found)
    else:
        _mark_first(np.argsort(keys, kind="stable"), units, most, sizes, found)
    return found


def siphash(first: Words, second: Words, message: Words) -> Words:
    """Return the hash of each message under its key.

    Parameters
    ----------
    first, second
        The first and the second half of each key, with the lowest byte first, shape (number,).
    message
        The messages, shape (number,).

    Examples
    --------
    >>> key = np.array([0x0706050403020100], dtype=np.uint64), np.array([0x0F0E0D0C0B0A0908], dtype=np.uint64)
    >>> hex(siphash(*key, np.array([0x0706050403020100], dtype=np.uint64))[0])  # the authors' test vector of 8 bytes
    '0x93f5f5799a932462'
    """
    found = np.empty(len(message), dtype=np.uint64)
    _hash_each(first, second, message, found)
    return found


@njit(nogil=True, cache=True)
def _count_each(codes: NDArray[Any], sizes: NDArray[np.int64], places: NDArray[np.int64]) -> None:
    for row in range(len(codes)):
        code = codes[row]
        places[row] = sizes[code]
        sizes[code] += 1


@njit(nogil=True, cache=True)
def _mark_first(
    order: NDArray[np.int64], units: NDArray[np.int64], most: int, sizes: NDArray[np.int64], found: NDArray[np.bool_]
) -> None:
    for row in order:
        unit = units[row]
        found[row] = sizes[unit] < most
        sizes[unit] += 1


@njit(nogil=True, cache=True)
def _mark_smallest(
    keys: NDArray[np.uint64],
    units: NDArray[np.int64],
    least: NDArray[np.uint64],
    rows: NDArray[np.int64],
    sizes: NDArray[np.int64],
    found: NDArray[np.bool_],
) -> None:
    most = least.shape[1]
    for row in range(len(keys)):
        unit, key = units[row], keys[row]
        place = sizes[unit]
        if place < most:
            sizes[unit] += 1
        elif key < least[unit, most - 1]:
            place = most - 1
        else:
            continue
        while place > 0 and least[unit, place - 1] > key:
            least[unit, place], rows[unit, place] = least[unit, place - 1], rows[unit, place - 1]
            place -= 1
        least[unit, place], rows[unit, place] = key, row
    for unit in range(len(sizes)):
        for place in range(sizes[unit]):
            found[rows[unit, place]] = True


@njit(nogil=True, cache=True)
def _hash_each(first: Words, second: Words, message: Words, found: Words) -> None:
    for k in range(len(found)):
        v0 = first[k] ^ np.uint64(0x736F6D6570736575)  # "somepseudorandomly..."
        v1 = second[k] ^ np.uint64(0x646F72616E646F6D)
        v2 = first[k] ^ np.uint64(0x6C7967656E657261)
        v3 = second[k] ^ np.uint64(0x7465646279746573)
        for block in (message[k], np.uint64(8 << 56)):  # the second block holds the length, eight bytes
            v3 ^= block
            for _ in range(2):
                v0, v1, v2, v3 = _round(v0, v1, v2, v3)
            v0 ^= block
        v2 ^= np.uint64(0xFF)
        for _ in range(4):
            v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        found[k] = v0 ^ v1 ^ v2 ^ v3


@njit(nogil=True, cache=True)
def _round(v0: Any, v1: Any, v2: Any, v3: Any) -> Any:
    v0, v2 = v0 + v1, v2 + v3
    v1, v3 = _rotate(v1, 13) ^ v0, _rotate(v3, 16) ^ v2
    v0 = _rotate(v0, 32)
    v2, v0 = v2 + v1, v0 + v3
    v1, v3 = _rotate(v1, 17) ^ v2, _rotate(v3, 21) ^ v0
    v2 = _rotate(v2, 32)
    return v0, v1, v2, v3


@njit(nogil=True, cache=True)
def _rotate(word: Any, by: int) -> Any:
    return word << np.uint64(by) | word >> np.uint64(64 - by)
