"""Rows drawn from a model, clique by clique, from public randomness.

A separator is the set of attributes that a clique shares with its parent. Within each cell of a separator, the rows are
dealt out systematically: each cell of a clique gets its share of the rows, rounded up or down. So the tables of the
cliques differ from the model by rounding, and not by chance. Rows follow from the model and a seed with any version of
numpy, since the raw numbers of its generators do not change.
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dpframework_tables.junction import Set
from dpframework_tables.model import Array, Model


@final
class Draws:
    """Numbers between 0 and 1, from a public seed."""

    def __init__(self, seed: int) -> None:
        self._source = np.random.PCG64(seed)

    def numbers(self, number: int) -> NDArray[np.float64]:
        """Return numbers with 53 random bits, at least 0 and below 1."""
        return np.asarray((self._source.random_raw(number) >> np.uint64(11)) * 2.0**-53)

    def order(self, number: int) -> NDArray[np.int64]:
        """Return the positions 0 to `number` - 1 in random order."""
        return np.argsort(self.numbers(number), kind="stable")


def sample_rows(model: Model, rows: int, seed: int) -> NDArray[np.uint16]:
    """Return the codes of drawn rows, shape (rows, attributes), in random order.

    Parameters
    ----------
    model
        The model.
    rows
        How many rows to draw.
    seed
        The public seed. No privacy rests on it.
    """
    tree, draw = model.tree, Draws(seed)
    found = np.zeros((rows, len(tree.sizes)), dtype=np.uint16)
    for k, clique in enumerate(tree.cliques):
        separator = tree.separator(k)
        rest = tuple(a for a in clique if a not in separator)
        if not rest:
            continue
        axes = [clique.index(a) for a in (*separator, *rest)]
        table = model.tables[k].transpose(axes).reshape(math.prod(tree.shape(separator)), -1)
        cells = _deal(table, _cell_of(found, separator, tree.shape(separator)), draw)
        for a, codes in zip(rest, np.unravel_index(cells, tree.shape(rest)), strict=True):
            found[:, a] = codes
    return found[draw.order(rows)]


def deal_out(groups: NDArray[Any], of: NDArray[np.int64], shares: NDArray[np.float64], seed: int) -> NDArray[np.int64]:
    """Return the code of a value for each row, given the group of values that the row is in.

    Parameters
    ----------
    groups
        The group of each row.
    of
        The group of each value.
    shares
        The share of each value. They may have any sum.
    seed
        The public seed.
    """
    table = np.where(of == np.arange(of.max() + 1)[:, np.newaxis], shares, 0.0)
    return _deal(table, groups.astype(np.int64), Draws(seed))


def _cell_of(rows: NDArray[np.uint16], of: Set, shape: tuple[int, ...]) -> NDArray[np.int64]:
    cell = np.zeros(len(rows), dtype=np.int64)
    for a, size in zip(of, shape, strict=True):
        cell = cell * size + rows[:, a]
    return cell


def _deal(table: Array, given: NDArray[np.int64], draw: Draws) -> NDArray[np.int64]:
    """Return a column of the table for each row, given the line of the table that the row belongs to.

    Within a line, columns are dealt out in proportion to the line's numbers.
    """
    shares = np.maximum(table, 0) + 1e-300
    until = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
    until[:, -1] = 1.0
    order = draw.order(len(given))
    order = order[np.argsort(given[order], kind="stable")]  # sorted by line, and in random order within a line
    lines = given[order]
    numbers = np.bincount(given, minlength=len(table))
    rank = np.arange(len(given)) - (np.cumsum(numbers) - numbers)[lines]
    point = (rank + draw.numbers(len(table))[lines]) / numbers[lines]
    place = np.searchsorted((until + np.arange(len(table))[:, np.newaxis]).ravel(), lines + point, side="right")
    cells = np.empty(len(given), dtype=np.int64)
    cells[order] = np.clip(place - lines * table.shape[1], 0, table.shape[1] - 1)
    return cells
