"""Counts must be 64 bits wide. Narrower counts wrap around or are rounded, so one more row may change them by hundreds.

A count in int8 falls by 255 when it passes 127. A count in float32 stops growing, or grows by two, at 2**24 rows.
Whether a count wrapped inside a block cannot be seen afterwards, so narrow counts are refused whatever their values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError

WIDE = 8  # the number of bytes of a count


def in_64_bits(counts: Any) -> NDArray[Any]:
    """Return counts in 64 bits.

    Integers of 32 bits are widened, since a block has fewer than 2**31 rows and its counts fit. All narrower types are
    refused. So are booleans, whose sum in numpy is "any".

    Raises
    ------
    InputError
        If the type is boolean, an integer of at most 16 bits, or a float of at most 32 bits.

    Examples
    --------
    >>> in_64_bits(np.array([7], dtype=np.int32)).dtype
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
