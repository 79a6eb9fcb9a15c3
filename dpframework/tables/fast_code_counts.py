"""Count codes fast. Counts without classes use numpy alone, so that a study of counts need not load numba.

A pair of one-byte codes is counted as one number below 65,536. This takes half as many additions as counting each code.
Also, an addition must wait for the addition before if both go to the same cell, and this is rarer with pairs. The
counts of pairs, summed once by the first code and once by the second, add up to the exact counts of codes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframework.tables.encoded_row_blocks import Block
from dpframework.tables.growing_column_arrays import read_only

BYTE, WORD = 1 << 8, 1 << 16  # how many values one byte and two bytes have
MANY = 1 << 15  # the number of codes from which counting pairs pays off
FEW = 1 << 17  # the number of codes up to which numpy counts them in less time than numba takes to load


def tally(parts: Iterable[NDArray[Any]], number: int) -> NDArray[np.int64]:
    """Return how many codes have each value from 0 to `number - 1`. The caller ensures that all codes have such values.

    Parameters
    ----------
    parts
        The codes, one array for each tile of the rows (see `Block.tiles`). Their counts are added up. A tile is small,
        so that its codes stay in the processor's cache.
    number
        How many values there are.
    """
    counts = np.zeros(number, dtype=np.int64)
    pairs: NDArray[np.int64] | None = None
    for codes in parts:
        if codes.dtype != np.uint8 or len(codes) < MANY or not codes.flags.c_contiguous:
            counts += np.bincount(codes, minlength=number)
            continue
        if pairs is None:
            pairs = np.zeros(WORD, dtype=np.int64)
        # Two codes of 8 bits are counted as one number of 16 bits, which is faster.
        even = len(codes) - len(codes) % 2
        found = np.bincount(codes[:even].view(np.uint16))
        pairs[: len(found)] += found
        counts += np.bincount(codes[even:], minlength=number)
    if pairs is not None:
        table = pairs.reshape(BYTE, BYTE)
        counts += (table.sum(axis=0) + table.sum(axis=1))[:number]
    return counts


def joint_codes(columns: Iterable[NDArray[Any]], sizes: Sequence[int]) -> NDArray[Any]:
    """Return the number of each row's cell in the cross table of some columns of codes, shape (rows,).

    The columns are taken one at a time. The result has the smallest type that holds the number of cells. For a single
    column, the result is the column itself.
    """
    given = iter(columns)
    cell = next(given)
    if len(sizes) == 1:
        return cell
    kind = np.min_scalar_type(math.prod(sizes))
    cell = cell.astype(kind)
    for codes, size in zip(given, sizes[1:], strict=True):
        cell *= kind.type(size)
        np.add(cell, codes, out=cell, casting="unsafe")
    return cell


def counts_by_class(
    block: Block, attributes: NDArray[np.integer], sizes: NDArray[np.integer], classes: NDArray[Any], number: int
) -> NDArray[np.int64]:
    """Count a block's rows by code and class, for several attributes of its schema one after another.

    Parameters
    ----------
    block
        The rows.
    attributes, sizes
        The positions of attributes among a block's columns, and how many codes each may hold.
    classes
        The class of each row, unsigned, below `number`.
    number
        The number of classes.

    Returns
    -------
    NDArray[np.int64]
        The counts of the attributes' codes one below another, shape (sum of sizes, classes).
    """
    counts = np.zeros((int(sizes.sum()), number), dtype=np.int64)
    # Loading numba takes longer than counting a few codes without it.
    if len(classes) * len(attributes) <= FEW and "numba" not in sys.modules:
        ends = np.cumsum(sizes)
        for attribute, end, size in zip(attributes, ends, sizes, strict=True):
            codes = block.columns[attribute] if block.is_whole else block.columns[attribute][block.index]
            counted = np.bincount(codes.astype(np.int64) * number + classes, minlength=int(size) * number)
            counts[end - size : end] = counted.reshape(-1, number)
        return counts
    from dpframework.tables.count_and_split_kernels import add_class_counts

    whole, of_rows = block.is_whole, read_only(classes)
    index = read_only(np.zeros(0, dtype=np.int32) if whole else block.index)
    start = 0
    for attribute, size in zip(attributes, sizes, strict=True):
        end = start + int(size)
        cells = int(size) * number
        tables = np.zeros((4, cells if _are_small(cells, len(classes)) else 0), dtype=np.int32)
        add_class_counts(read_only(block.columns[attribute]), index, whole, of_rows, tables, counts[start:end])
        start = end
    return counts


def _are_small(cells: int, rows: int) -> bool:
    """Tell whether four tables of `cells` cells each have, together, at most as many cells as there are rows."""
    return 4 * cells <= rows
