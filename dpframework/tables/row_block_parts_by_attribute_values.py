"""Split a block of rows by a cut, which divides rows into parts by the values of attributes (see `row_partitions`).

Each part is a block too. A part shares the arrays of the block that is split, and holds the positions of its own rows
in these arrays, in ascending order.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.logical_descriptions_of_rows import Cases
from dpframework.facts.row_partitions import Cut, attributes_of, number_of_parts
from dpframework.tables.encoded_row_blocks import Block, cells_of, pack_index, part_of_each_code
from dpframework.tables.growing_column_arrays import read_only

FEW_PARTS = 4  # up to this number of parts, one pass over the rows for each part is faster than sorting them
HALVES = 2  # `halve_rows`, a kernel (compiled by numba), divides rows into this number of parts
MANY = 1 << 16  # from this number of rows, it is worth loading `halve_rows`; numpy takes three times as long


def parts_of(by: Cut, block: Block, *, packs: bool) -> list[Block]:
    """Return the parts into which a cut divides a block. In each part, rows keep their order.

    With `packs`, a part keeps the positions of its rows as one bit per row of the arrays, if that takes less memory.
    """
    number, length = number_of_parts(by), block.length
    # If each row is in exactly one of two parts, a kernel writes the positions of both parts into one array. The first
    # part runs forwards from the start of the array, and the second part runs backwards from its end.
    in_one_each = isinstance(by, Attribute | Cases) and number == HALVES
    if in_one_each and block.rows >= MANY and (part_of := part_of_each_code(by, block.schema)) is not None:
        from dpframework.tables.count_and_split_kernels import halve_rows

        (name,) = attributes_of(by)
        whole, positions = block.is_whole, np.empty(block.rows, dtype=np.int32)
        old = read_only(np.zeros(0, dtype=np.int32) if whole else block.index)
        first = halve_rows(read_only(block.whole_column(name)), old, whole, part_of.astype(np.bool_), positions)
        halves = positions[:first].copy(), positions[: first - 1 if first else None : -1].copy()
        return [block.at(pack_index(index, length) if packs else index) for index in halves]
    own: list[list[NDArray[np.int32]]] = [[] for _ in range(number)]
    start = 0
    for tile in block.tiles():
        cells = cells_of(by, tile)
        if number <= FEW_PARTS:
            places = [np.flatnonzero(cells == k) for k in range(number)]
        else:
            order = np.argsort(cells, kind="stable")
            edges = np.searchsorted(cells[order], np.arange(number + 1))
            places = [order[low:high] for low, high in itertools.pairwise(edges)]
        for part, here in zip(own, places, strict=True):
            part.append((here + start).astype(np.int32) if block.is_whole else tile.index.take(here))
        start += tile.rows
    del tile, cells, places
    parts = []
    # The lists of a part are dropped before the next part is made, since they take as much memory as the part.
    while own:
        index = np.concatenate(own.pop(0))
        parts.append(block.at(pack_index(index, length) if packs else index))
    return parts
