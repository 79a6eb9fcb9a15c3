"""Counts are 64 bits wide, since narrower ones wrap round and one row more then changes them by hundreds.

A count in int8 falls by 255 from one row to the next; one in float32 stops growing, or grows by two, at 2**24 rows.
What wrapped inside a block cannot be told afterwards, so narrow counts are refused, whatever their values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError

WIDE = 8  # bytes


def wide(counts: Any) -> NDArray[Any]:
    """Return counts in 64 bits.

    Integers of 32 bits are widened: a block has fewer than 2**31 rows, so that its counts fit. All narrower ones are
    refused, truth values too, which numpy adds up to "any".

    Raises
    ------
    InputError
        If integers have 16 bits or fewer, or floats 32.

    Examples
    --------
    >>> wide(np.array([7], dtype=np.int32)).dtype
    dtype('int64')
    """
    array = np.asarray(counts)
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind not in "biuf" or size >= WIDE:
        return array
    if kind in "iu" and size == WIDE // 2:
        return array.astype(np.int64)
    needed = "float64" if kind == "f" else "int64"
    raise InputError(
        f"numbers of type {array.dtype} cannot hold the counts of a large table without wrapping or rounding; "
        f"compute them as {needed}"
    )
