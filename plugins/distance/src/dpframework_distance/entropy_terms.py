"""f(n) = n log2(n) as a whole number of units, for all small n and for those large n that occur.

With g(n) = f(n + 1) - f(n), rounded, each f(n) is the sum of g over all numbers below n. Partial sums at multiples of
`STEP` are kept. So the table of f does not grow with the rows, and f of a large number costs one partial sum and fewer
than `STEP` values of g.
"""

from __future__ import annotations

import functools
import math
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework_distance.subsets import Counts, Integers

UNITS = 1 << 22  # f = 1 is this many units; sums of f stay below 2**63 for as many rows as a table may have
WHOLE = 1 << 20  # f of all numbers below this is kept in one table: 8 MiB
STEP = 1 << 10  # above `WHOLE`, sums are kept at multiples of this only


def _growth(first: int, number: int) -> Integers:
    """Return g(n) = f(n + 1) - f(n), rounded, for `number` values of n from the first on."""
    before = np.arange(first, first + number, dtype=np.float64)
    before[before == 0] = np.nan  # g(0) = 0
    grown = np.log2(before + 1) + before * np.log1p(1 / before) / math.log(2)
    return np.asarray(np.nan_to_num(np.rint(grown * UNITS)).astype(np.int64))


@functools.lru_cache(maxsize=4)
def terms(rows: int) -> Integers:
    """Return f(n) = n log2(n) for every n up to `rows`, as a read-only array of whole numbers of units.

    f(n) is the sum of g over all numbers below n. After rounding, g still never falls as n grows, and the derivations
    of sensitivities use nothing else.

    Examples
    --------
    >>> terms(4) / UNITS
    array([0.        , 0.        , 2.        , 4.75488758, 8.        ])
    """
    found = np.concatenate([[0], np.cumsum(_growth(0, rows))])
    found.flags.writeable = False
    return found


@functools.lru_cache(maxsize=1 << 12)
def _sums(part: int) -> Integers:
    """Return by how much f grows from the start of a block of `WHOLE` numbers to each `STEP` in it, and to its end."""
    steps = [_growth(part * WHOLE + start, STEP).sum() for start in range(0, WHOLE, STEP)]
    return np.cumsum([0, *steps])


def _at(large: Integers) -> Integers:
    """Return f of large numbers, which are given in increasing order."""
    found, before, part = np.zeros(len(large), dtype=np.int64), 0, 0
    for k, number in enumerate(large.tolist()):
        while part < number // WHOLE:
            before += int(_sums(part)[-1])
            part += 1
        step, beyond = divmod(number % WHOLE, STEP)
        found[k] = before + _sums(part)[step] + _growth(number - beyond, beyond).sum()
    return found


@final
@attrs.frozen(eq=False)
class Terms:
    """f of some numbers of rows.

    Attributes
    ----------
    small
        f of every number below its length.
    large, of_large
        The other numbers, in increasing order, and f of each.
    """

    small: Integers
    large: Integers
    of_large: Integers

    @classmethod
    def of(cls, *numbers: NDArray[np.integer]) -> Terms:
        """Return f of the numbers in some arrays, and of all small ones up to the largest of them."""
        largest = max(int(own.max(initial=0)) for own in numbers)
        found = [np.unique(own[own >= WHOLE]).astype(np.int64) for own in numbers] if largest >= WHOLE else []
        large = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *found]))
        return cls(terms(min(largest, WHOLE - 1)), large, _at(large))

    def __call__(self, numbers: NDArray[np.integer]) -> Integers:
        """Return f of each number. All of them must be small, or among the large ones."""
        found = self.small.take(numbers, mode="clip")
        if len(self.large):
            above = numbers >= len(self.small)
            found[above] = self.of_large[np.searchsorted(self.large, numbers[above])]
        return found


def sums_over(counts: Counts, begins: Integers, sizes: Integers, subsets: Integers, places: Integers) -> Integers:
    """Return the number of rows and, if that is at least `WHOLE`, also the counts with one attribute summed out.

    `places` says which attributes of a subset are summed out. With so many rows, the sums may be `WHOLE` or more, so
    that f has to be computed for each of them.

    Parameters
    ----------
    counts, begins, sizes, subsets, places
        As for `kernels.fill_sums`.
    """
    if not len(subsets):
        return np.zeros(0, dtype=np.int64)
    rows = counts[begins[0] : begins[0] + sizes[subsets[0]].prod()].sum(keepdims=True, dtype=np.int64)
    found = [rows]
    if rows[0] >= WHOLE:
        asked, first = np.unique(places, return_index=True)
        for s, level in (divmod(at, subsets.shape[1]) for at in first[asked >= 0].tolist()):
            shape, begin = sizes[subsets[s]], begins[s]
            table = counts[begin : begin + shape.prod()].reshape(shape)
            found.append(table.sum(axis=level, dtype=np.int64).ravel())
    return np.concatenate(found)
