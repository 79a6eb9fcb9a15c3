"""Split a block of rows by a cut. Each part is a block with the ascending positions of its rows."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.cuts import Cut, attributes_of, number_of_parts
from dpframework.facts.descriptions import Cases
from dpframework.tables.blocks import Block, cells_of, pack_index, part_of_each_code
from dpframework.tables.storage import read_only

FEW_PARTS = 4  # up to this number of parts, one pass over the rows for each part is faster than sorting them
HALVES = 2
MANY = 1 << 16  # rows from which a kernel for two parts is worth loading; it then takes a third of the time


def parts_of(by: Cut, block: Block, *, packs: bool) -> list[Block]:
    """Return the parts of a block by a cut, each in the order of its rows. `packs` keeps their positions as bits."""
    number, length = number_of_parts(by), block.length
    # Where each row is in exactly one of two parts, a kernel writes the positions of both parts into one array. The
    # first part begins at its start, the second at its end.
    in_one_each = isinstance(by, Attribute | Cases) and number == HALVES
    if in_one_each and block.rows >= MANY and (part_of := part_of_each_code(by, block.schema)) is not None:
        (name,) = attributes_of(by)
        return [block.at(pack_index(index, length) if packs else index) for index in _halves(block, name, part_of)]
    own: list[list[NDArray[np.int32]]] = [[] for _ in range(number)]
    start = 0
    for tile in block.tiles():
        cells = cells_of(by, tile)
        for part, places in zip(own, _places(cells, number), strict=True):
            part.append((places + start).astype(np.int32) if block.is_whole else tile.index.take(places))
        start += tile.rows
    del tile, cells
    parts = []
    # The lists of a part are dropped before the next part is made, since they take as much memory as the part.
    while own:
        index = np.concatenate(own.pop(0))
        parts.append(block.at(pack_index(index, length) if packs else index))
    return parts


def _places(cells: NDArray[np.integer], number: int) -> list[NDArray[np.int64]]:
    """Return the positions of each of the cells 0 to `number` - 1, found by one stable sort if there are many cells."""
    if number <= FEW_PARTS:
        return [np.flatnonzero(cells == k) for k in range(number)]
    order = np.argsort(cells, kind="stable")
    edges = np.searchsorted(cells[order], np.arange(number + 1))
    return [order[low:high] for low, high in itertools.pairwise(edges)]


def _halves(block: Block, name: str, part_of: NDArray[np.integer]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the positions of the rows of part 0 and of part 1, given the part of each code of an attribute."""
    from dpframework.tables.kernels import halve_rows

    whole = block.is_whole
    index = read_only(np.zeros(0, dtype=np.int32) if whole else block.index)
    positions = np.empty(block.rows, dtype=np.int32)
    first = halve_rows(read_only(block.whole_column(name)), index, whole, part_of.astype(np.bool_), positions)
    return positions[:first].copy(), positions[: first - 1 if first else None : -1].copy()
