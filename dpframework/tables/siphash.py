"""SipHash-2-4 of many numbers at once, each under its own key.

Source: Aumasson and Bernstein 2012. This is a keyed hash of 64 bits. Without the key, nobody can tell its values from
random ones. Here a message is one word of eight bytes. So each value takes two blocks of two rounds, where the second
block holds the length, and four rounds at the end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]


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
    from dpframework.tables.unit_row_choice_kernels import hash_each

    found = np.empty(len(message), dtype=np.uint64)
    hash_each(first, second, message, found)
    return found
