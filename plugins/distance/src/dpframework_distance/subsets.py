"""Subsets of attributes, all of one size, and their joint histograms, which are counted once per block of rows.

Several steps of a plan read the same histograms: those of each pair, and those of each context with each of its
targets. They are counted at the first of these steps and kept, on the private side, as long as the block of rows
itself.
"""

from __future__ import annotations

import functools
import itertools
import math
import threading
import weakref
from collections.abc import Sequence
from typing import Any, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, InputError
from dpframework.tables import Block, Crosstab, JointCounts

TILE = 1 << 17  # how many rows are counted at a time, so that what is computed from them stays in the processor's cache
MOST_IN_TABLES = 1 << 12  # the most cells of a joint histogram that is counted in four tables (see `kernels`)
MOST_CELLS = 1 << 24  # the most cells of all joint histograms together: 64 MiB per block of rows

Integers: TypeAlias = NDArray[np.int64]
Counts: TypeAlias = NDArray[np.integer]  # int32 over a block, which has fewer than 2**31 rows; their sum is int64


# Not slotted: the cached property needs an instance dictionary.
@attrs.frozen(eq=False, slots=False)
class Subsets:
    """Some subsets of attributes, and where the joint histogram of each lies among the counts of all.

    The histograms stand one after another, in the order of the subsets.

    Attributes
    ----------
    sizes
        The number of codes of each attribute, shape (attributes,).
    members
        The attributes of each subset by position, increasing, in lexicographic order, shape (subsets, order).
    offsets
        Where each histogram begins, and where the last one ends, shape (subsets + 1,).
    """

    sizes: NDArray[np.int64]
    members: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, sizes: Sequence[int], members: Integers) -> Subsets:
        """Return some subsets of attributes, given the number of codes of each attribute."""
        widths = np.asarray(sizes, dtype=np.int64)
        return cls(widths, members, np.concatenate([[0], np.cumsum(widths[members].prod(axis=1))]))

    @functools.cached_property
    def position(self) -> dict[tuple[int, ...], int]:
        """The position of each subset."""
        return {tuple(subset): k for k, subset in enumerate(self.members.tolist())}

    def histogram(self, counts: NDArray[Any], *of: int) -> NDArray[Any]:
        """Return the joint histogram of some attributes, with its axes in the order in which they are given."""
        ordered = sorted(of)
        k = self.position[tuple(ordered)]
        shape = tuple(int(self.sizes[a]) for a in ordered)
        table = counts[self.offsets[k] : self.offsets[k + 1]].reshape(shape)
        return table.transpose([ordered.index(a) for a in of])

    def tables(self, of: Sequence[Attribute]) -> JointCounts:
        """Return the cross table of each subset of some attributes. Their counts are joined one after another."""
        tables = [Crosstab([of[k] for k in subset]) for subset in self.members.tolist()]
        none = np.zeros(0, dtype=np.int64)
        return JointCounts(tables, lambda counts: np.concatenate([none, *(own.ravel() for own in counts)]))


@functools.lru_cache(maxsize=64)
def subsets(sizes: tuple[int, ...], order: int, containing: int | None = None) -> Subsets:
    """Return all subsets of `order` attributes, or only those that hold the attribute `containing`."""
    others = [k for k in range(len(sizes)) if k != containing]
    free = order if containing is None else order - 1
    number = math.comb(len(others), free)
    listed = itertools.chain.from_iterable(itertools.combinations(others, free))
    members = np.fromiter(listed, dtype=np.int64, count=number * free).reshape(number, free)
    if containing is not None:
        members = np.sort(np.concatenate([members, np.full((number, 1), containing)], axis=1), axis=1)
        members = members[np.lexsort(members.T[::-1])]
    return Subsets.of(sizes, members)


def number_of_cells(sizes: Sequence[int], order: int, containing: int | None = None) -> int:
    """Return the number of cells of the joint histograms of `subsets`, without listing the subsets.

    The sum over subsets of the product of their sizes is the coefficient of z**order in the product of (1 + size z).

    Examples
    --------
    >>> number_of_cells([2, 3, 5], 2), number_of_cells([2, 3, 5], 2, containing=0)
    (31, 16)
    """
    taken = [size for k, size in enumerate(sizes) if k != containing]
    order, factor = (order, 1) if containing is None else (order - 1, sizes[containing])
    sums = [1] + [0] * order
    for size in taken:
        for k in range(order, 0, -1):
            sums[k] += sums[k - 1] * size
    return sums[order] * factor


def require_few_cells(attributes: Sequence[Attribute], order: int, containing: int | None) -> None:
    """Refuse more joint histograms than memory allows.

    Raises
    ------
    InputError
        If there are too many cells. The message names the numbers of subsets and cells, and what would help.
    """
    sizes = [attribute.size for attribute in attributes]
    cells = number_of_cells(sizes, order, containing)
    if cells <= MOST_CELLS:
        return
    free = len(sizes) if containing is None else len(sizes) - 1
    number = math.comb(free, order if containing is None else order - 1)
    fitting = next((k for k in range(order - 2, 0, -1) if number_of_cells(sizes, k + 1, containing) <= MOST_CELLS), 0)
    remedy = (
        f"set context_size = {fitting} or less" if fitting else "use fewer attributes, or attributes with fewer values"
    )
    raise InputError(
        f"context_size = {order - 1} needs {number:,} joint histograms with {cells:,} cells, more than the "
        f"{MOST_CELLS:,} that memory allows; {remedy}, or take context = 'max-relevance'"
    )


_COUNTED: weakref.WeakKeyDictionary[Block, dict[tuple[object, ...], Counts]] = weakref.WeakKeyDictionary()
_LOCK = threading.Lock()


def require_few_cells_of(attributes: Sequence[Attribute], order: int, targets: Sequence[int]) -> None:
    """Refuse more joint histograms than memory allows for the target that needs most (see `require_few_cells`)."""
    require_few_cells(attributes, order, max(targets, key=lambda target: attributes[target].size))


def count_once(block: Block, attributes: Sequence[Attribute], order: int, containing: int | None) -> Counts:
    """Return a block's joint histograms in the order of `subsets`, counted once and read-only.

    Histograms of fewer attributes are summed from larger ones that are kept, without reading a row. Histograms with one
    given attribute are kept only for the attribute that was last asked for: for many targets in turn, all together may
    be more than memory allows.
    """
    key = (tuple(a.name for a in attributes), order, containing)
    with _LOCK:
        kept = _COUNTED.setdefault(block, {})
        if key in kept:
            return kept[key]
    layout = subsets(tuple(a.size for a in attributes), order, containing)
    larger = kept.get((key[0], order + 1, containing))
    if larger is not None:
        above = subsets(tuple(a.size for a in attributes), order + 1, containing)
        counts = np.zeros(layout.offsets[-1], dtype=np.int32)
        for k, members in enumerate(layout.members.tolist()):
            other = next(a for a in range(len(layout.sizes)) if a not in members)
            table = above.histogram(larger, *members, other).sum(axis=-1, dtype=np.int32)
            counts[layout.offsets[k] : layout.offsets[k + 1]] = table.ravel()
    else:
        counts = count_subsets(block, [attribute.name for attribute in attributes], layout)
    counts.flags.writeable = False
    with _LOCK:
        for old in [old for old in kept if containing is not None and old[2] not in (None, containing)]:
            del kept[old]
        kept[key] = counts
    return counts


@final
@attrs.frozen(eq=False)
class HistogramCounter:
    """A function that counts joint histograms of blocks, and that says which ones.

    Attributes
    ----------
    of
        The attributes.
    layout
        The subsets whose histograms are counted.
    is_cached
        Whether these are all subsets of one size. Their histograms are then kept with the block.
    """

    of: tuple[Attribute, ...]
    layout: Subsets
    is_cached: bool

    def __call__(self, block: Block) -> Counts:
        """Return the joint histograms of a block's rows, one after another."""
        if self.is_cached:
            return count_once(block, self.of, self.layout.members.shape[1], None)
        return count_subsets(block, [a.name for a in self.of], self.layout)

    def joint_counts(self) -> JointCounts:
        """Return a cross table for each subset."""
        return self.layout.tables(self.of)


def count_subsets(block: Block, names: Sequence[str], layout: Subsets) -> Counts:
    """Return a block's joint histograms of some subsets of the named attributes, tile by tile."""
    from dpframework_distance.kernels import Room, add_joint_counts

    order = layout.members.shape[1]
    counts = np.zeros(layout.offsets[-1], dtype=np.int32)
    largest = int(np.diff(layout.offsets).max(initial=0))
    tables = np.zeros((4, min(largest, MOST_IN_TABLES)), dtype=np.int32)
    prefix = np.zeros((max(order - 1, 1), min(block.rows, TILE)), dtype=np.uint32)
    for tile in block.tiles(TILE):
        codes = np.stack([tile.codes(name) for name in names])
        room = Room(prefix, np.full(order, -1), tables)
        add_joint_counts(codes, layout.sizes, layout.members, layout.offsets, room, counts)
    return counts


@functools.lru_cache(maxsize=256)
def subsets_with(layout: Subsets, target: int) -> NDArray[np.int64]:
    """Return the positions of the subsets that hold an attribute."""
    return np.flatnonzero((layout.members == target).any(axis=1))
