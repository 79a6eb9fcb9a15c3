"""How well each attribute of a subset is determined by the others, from joint histograms of all subsets.

Let N be the number of rows, and H(Y|S) the conditional entropy of an attribute Y, given the attributes S. Then
-N H(Y|S) is the sum of f(n) = n log2(n) over the counts n in the cells of S with Y, minus the sum over the cells of S.
Each of these two sums belongs to one subset, whichever of its attributes is the target. So each sum is computed once
for all targets, and one number is kept per subset. Joint histograms are counted and forgotten a part at a time, so that
memory does not limit how many there are.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute
from dpframework.tables import Block
from dpframework_distance.entropy_terms import Terms, sums_over
from dpframework_distance.subsets import Counts, HistogramCounter, Integers, Subsets, number_of_cells, subsets

PART = 1 << 20  # about how many cells of joint histograms are counted at once: 4 MiB per block of rows
LISTED = 1 << 16  # how many subsets are listed at once


@functools.cache
def _binomials(attributes: int, order: int) -> Integers:
    return np.array([[math.comb(n, k) for k in range(order + 1)] for n in range(attributes)])


def positions(attributes: int, members: Integers) -> Integers:
    """Return the positions of some subsets of attributes among all subsets of their size, in lexicographic order.

    Examples
    --------
    >>> positions(4, np.array([[0, 1], [0, 3], [2, 3]])).tolist()
    [0, 2, 5]
    """
    order = members.shape[1]
    after = _binomials(attributes, order)[attributes - 1 - members, order - np.arange(order)].sum(axis=1)
    return np.asarray(math.comb(attributes, order) - 1 - after)


@final
@attrs.frozen(eq=False)
class Sums:
    """Sums of f over the joint histogram of each subset of one size, and of each subset with one attribute fewer.

    The sums are whole numbers of units (see `entropy_terms`).

    Attributes
    ----------
    attributes
        The number of attributes that the subsets are taken from.
    whole, less
        The sums of the subsets of that size, and of those with one attribute fewer, in lexicographic order.
    """

    attributes: int
    whole: Integers
    less: Integers

    def scores(self, contexts: Integers, target: int) -> Integers:
        """Return -N H(target|context), in units, for the given contexts, which do not hold the target."""
        held = np.sort(np.column_stack([contexts, np.full(len(contexts), target)]), axis=1)
        return self.whole[positions(self.attributes, held)] - self.less[positions(self.attributes, contexts)]


def fill(counts: Counts, begins: Integers, of: Subsets, which: Any, places: Integers, less: Integers) -> Integers:
    """Return the sum of f over each of the given joint histograms, in units.

    In `less`, fill in the sums that are not known yet, of the subsets with one attribute fewer.

    Parameters
    ----------
    counts, begins
        The joint histograms, and where each begins.
    of, which
        A layout, and the positions of its subsets whose histograms are given.
    places, less
        See `kernels.fill_sums`.
    """
    from dpframework_distance.kernels import fill_sums

    counts, members = counts.view(), of.members[which]
    counts.flags.writeable = False  # numba compiles a kernel for each kind of array, so all are read-only
    f = Terms.of(counts, sums_over(counts, begins, of.sizes, members, places))
    whole = np.zeros(len(members), dtype=np.int64)
    fill_sums(counts, begins, of.sizes, members, places, f.small, f.large, f.of_large, whole, less)
    return whole


def scores_of(counts: Counts, layout: Subsets, which: Integers, target: int) -> Integers:
    """Return -N H(target|the others), in units, for the given subsets, which all hold the target.

    `counts` holds the joint histograms of all subsets of the layout, and `which` the positions of the given ones.
    """
    held = layout.members[which] == target
    places = np.where(held, np.arange(len(which))[:, None], -1)
    less = np.full(len(which), -1, dtype=np.int64)
    return fill(counts, layout.offsets[which], layout, which, places, less) - less


def all_sums(
    engine: Any, rows: Any, of: Sequence[Attribute], order: int
) -> Generator[Callable[[Block], NDArray[Any]], NDArray[Any], Sums]:
    """Yield, part by part, the functions that count joint histograms of a block. Return the sums, which are private.

    The sums are kept as long as the rows are.
    """
    kept, key = engine.cache_of(rows), (Sums, tuple(a.name for a in of), order)
    if key in kept:
        known: Sums = kept[key]
        return known
    number, before = len(of), 0
    whole = np.zeros(math.comb(number, order), dtype=np.int64)
    less = np.full(math.comb(number, order - 1), -1, dtype=np.int64)
    for layout, function in _parts(of, order):
        counts = yield function
        members = layout.members
        without = [positions(number, np.delete(members, level, axis=1)) for level in range(order)]
        places = np.stack(without, axis=1)
        whole[before : before + len(members)] = fill(counts, layout.offsets[:-1], layout, slice(None), places, less)
        before += len(members)
    kept[key] = found = Sums(number, whole, less)
    return found


def _parts(of: Sequence[Attribute], order: int) -> Iterator[tuple[Subsets, Callable[[Block], Counts]]]:
    """Yield all subsets in parts whose joint histograms take little memory, each with the function that counts it.

    If there are few cells in all, the histograms are kept on the block, for other steps.
    """
    sizes = tuple(a.size for a in of)
    if number_of_cells(sizes, order) <= PART:
        yield subsets(sizes, order), HistogramCounter(tuple(of), subsets(sizes, order), is_cached=True)
        return
    listed = itertools.chain.from_iterable(itertools.combinations(range(len(of)), order))
    while len(members := np.fromiter(itertools.islice(listed, LISTED * order), dtype=np.int64).reshape(-1, order)):
        cells = Subsets.of(sizes, members).offsets
        for some in np.split(members, np.flatnonzero(np.diff(cells[1:] // PART)) + 1):
            layout = Subsets.of(sizes, some)
            yield layout, HistogramCounter(tuple(of), layout, is_cached=False)
