"""How far one row moves the residuals of a set of marginals, exactly, with the worst neighbour found by enumeration.

A row adds to the block of a set A the tensor product, over the attributes in A, of one vector each: +1 or -1 for an
attribute of two values; for another with n values either n e - 1 (centred) or e (as it is), with e the unit vector of
its value; times the weight k of the block. So with t = n (n - 1) for a centred attribute and 1 for all others:

- **added or removed**: the squared length is the sum of k**2 times the product of t; the l1 norm, of blocks that are
  not centred, is the sum of k; that of one block is its k;
- **replaced**, where the two rows differ in the attributes D: the inner product of both tensors has, instead of t, the
  factor -n for a centred attribute in D and -1 for one of two values. So the squared change is twice the sum of k**2
  times (the product of t, minus the product of these). In the l1 norm a block changes by 2 k, unless D meets it in an
  even number of attributes of two values and in no other: then it does not change.

It depends on D alone. Which D is worst follows from the sizes and weights, but by no formula known to us: for eight
attributes of two values, all pairs and equal weights, four that differ change 2.5 times as much as all eight. So all D
are tried, unless no attribute is in two sets: then each block has its largest change with some D that leaves the other
blocks theirs, and these add up.
Where the workload is the same for any two attributes of equal size, the numbers of them in D suffice. Where there are
more than 65,536 choices even so, the largest change of each block is added up: never too small, but a bound.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpframework.queries.base import Norm

MOST_TRIED = 1 << 16  # choices of the attributes that differ
LARGEST_WEIGHT = 1 << 20  # of a block, times the sizes of its centred attributes: sums of squares stay in 64 bits

Sets = tuple[tuple[int, ...], ...]


@functools.lru_cache(maxsize=64)
def change_by_addition(sizes: tuple[int, ...], sets: Sets, weights: tuple[int, ...], norm: Norm) -> int:
    """Return the change by a row that is added or removed, in l1, squared l2, or the largest l1 norm of a block."""
    if norm is Norm.SQUARED_L2:
        return sum(k * k * math.prod(_own(sizes[a]) for a in of) for of, k in zip(sets, weights, strict=True))
    return max(weights) if norm is Norm.BLOCKS else sum(weights)


@functools.lru_cache(maxsize=64)
def change_by_replacement(sizes: tuple[int, ...], sets: Sets, weights: tuple[int, ...], norm: Norm) -> int:
    """Return the largest change by a row that is replaced, in the same norms, over all attributes that may differ."""
    if norm is Norm.BLOCKS:
        return max((2 * k for of, k in zip(sets, weights, strict=True) if of), default=0)
    differing = None if _are_disjoint(sets) else _choices(sizes, sets, weights)
    if differing is None:
        return sum(_largest(tuple(sizes[a] for a in of), k, norm) for of, k in zip(sets, weights, strict=True))
    squared = norm is Norm.SQUARED_L2
    # Each attribute's factor in the inner product of two rows: _own(n) if they agree there, else -n, or -1 of two
    # values.
    other = [np.where(d, -1 if n == 2 else -n, _own(n)) for d, n in zip(differing, sizes, strict=True)]
    total = np.zeros(differing.shape[1], dtype=np.int64)
    for of, k in zip(sets, weights, strict=True):
        if not of:
            continue
        if squared:
            inner = functools.reduce(np.multiply, [other[a] for a in of])
            total += 2 * k * k * (math.prod(_own(sizes[a]) for a in of) - inner)
        else:
            # A block stays the same only if no attribute of three or more values differs, and an even number of binary
            # ones.
            several = functools.reduce(np.logical_or, [differing[a] & (sizes[a] > 2) for a in of])
            odd = functools.reduce(np.logical_xor, [differing[a] for a in of if sizes[a] == 2], False)
            total += 2 * k * (several | odd)
    return int(total.max())


def is_bound(sizes: tuple[int, ...], sets: Sets, weights: tuple[int, ...]) -> bool:
    """Return whether `change_by_replacement` is a bound, because there are too many neighbours to try."""
    return not _are_disjoint(sets) and _choices(sizes, sets, weights) is None


def _are_disjoint(sets: Sets) -> bool:
    """Return whether no attribute is in two sets: their largest changes happen together, and need no search."""
    used = [a for of in sets for a in of]
    return len(used) == len(set(used))


def _own(size: int) -> int:
    """Return the squared length of the vector of an attribute, centred if it has more than two values."""
    return 1 if size == 2 else size * (size - 1)


def _largest(sizes: tuple[int, ...], k: int, norm: Norm) -> int:
    """Return the largest change of one block: the attribute of fewest values differs, and no other."""
    if not sizes:
        return 0
    if norm is not Norm.SQUARED_L2:
        return 2 * k
    least, whole = min(sizes), math.prod(map(_own, sizes))
    return 2 * k * k * (whole + (whole if least == 2 else whole // (least - 1)))


def _choices(sizes: tuple[int, ...], sets: Sets, weights: tuple[int, ...]) -> NDArray[np.bool_] | None:
    """Return which attributes differ, shape (attributes, choices), or None if there are too many choices."""
    # In classes of which any two attributes may be exchanged, only the number that differs matters.
    by_size = defaultdict(list)
    for attribute, size in enumerate(sizes):
        by_size[size].append(attribute)
    classes = list(by_size.values()) if _symmetric(sizes, sets, weights) else [[a] for a in range(len(sizes))]
    if math.prod(len(members) + 1 for members in classes) > MOST_TRIED:
        return None
    chosen = list(itertools.product(*(range(len(members) + 1) for members in classes)))
    differing = np.zeros((len(sizes), len(chosen)), dtype=np.bool_)
    for members, numbers in zip(classes, zip(*chosen, strict=True), strict=True):
        for place, attribute in enumerate(members):
            differing[attribute] = place < np.array(numbers)
    return differing


def _symmetric(sizes: tuple[int, ...], sets: Sets, weights: tuple[int, ...]) -> bool:
    """Return whether all sets with the same sizes are there, with one weight: then attributes of a size are alike."""
    found: dict[tuple[int, ...], set[int]] = defaultdict(set)
    numbers: Counter[tuple[int, ...]] = Counter()
    for of, weight in zip(sets, weights, strict=True):
        kind = tuple(sorted(sizes[a] for a in of))
        found[kind].add(weight)
        numbers[kind] += 1
    there = Counter(sizes)
    return all(
        len(found[kind]) == 1 and number == math.prod(math.comb(there[size], k) for size, k in Counter(kind).items())
        for kind, number in numbers.items()
    )


def subsets(of: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield all subsets of a set, the empty one and itself among them.

    Examples
    --------
    >>> list(subsets((0, 2)))
    [(), (0,), (2,), (0, 2)]
    """
    for number in range(len(of) + 1):
        yield from itertools.combinations(of, number)
