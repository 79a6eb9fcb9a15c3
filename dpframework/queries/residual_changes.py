"""How far one row moves the residuals of marginals: exactly, or as an upper bound if there are too many cases to try.

The residuals of a set A of attributes are released as a block of numbers (see `marginal_residuals`). A row adds to this
block the block's weight k times a tensor product of one vector per attribute in A. This vector is +1 or -1 for an
attribute with two values. For an attribute with n > 2 values it is n e - 1 (centred) or e (not centred), where e is the
unit vector of the row's value. Let t be the squared length of the vector: n (n - 1) for a centred attribute, and 1 for
all others.

- An **added or removed** row moves all blocks together by a vector whose squared length is the sum of k**2 times the
  product of t over the attributes of the block. In the l1 norm, where blocks are not centred, it moves a block by its
  k, and all blocks together by the sum of k.
- A **replaced** row moves the blocks by the difference of two such vectors. Let D be the attributes in which the old
  and the new row differ. The inner product of both tensors of a block is a product over the attributes of the block.
  The factor of an attribute is t if it is not in D. Otherwise the factor is -n for a centred attribute, and -1 for an
  attribute with two values. So the squared change is twice the sum of k**2 times (the product of t minus this inner
  product). In the l1 norm a block changes by 2 k, with one exception: it does not change if its attributes in D all
  have two values, and their number is even.

The change depends on D alone. Which D is worst depends on the sizes and weights, and we know no formula for it. For
example, take eight attributes of two values, with a block for each attribute and each pair, all of equal weight. Then a
D of four attributes gives 2.5 times the squared change that a D of all eight gives. So all D are tried. There is one
exception: if no attribute is in two sets, one D gives every block its largest change, and these changes add up. If the
workload treats all attributes of equal size alike, only the number of attributes of each size in D matters. If there
are still more than 65,536 choices, the largest changes of all blocks are added up. The result is then an upper bound,
and may be too large.
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

MOST_TRIED = 1 << 16  # the most choices of differing attributes that are tried
# The largest weight of a block times the sizes of its centred attributes, so that sums of squares stay in 64 bits.
LARGEST_WEIGHT = 1 << 20

Sets = tuple[tuple[int, ...], ...]


@functools.lru_cache(maxsize=64)
def change_by_addition(sizes: tuple[int, ...], sets: Sets, weights: tuple[int, ...], norm: Norm) -> int:
    """Return the change by an added or removed row in the l1 or squared l2 norm, or the largest l1 norm of a block."""
    if norm is Norm.SQUARED_L2:
        return sum(
            k * k * math.prod(_squared_length(sizes[a]) for a in of) for of, k in zip(sets, weights, strict=True)
        )
    return max(weights) if norm is Norm.BLOCKS else sum(weights)


@functools.lru_cache(maxsize=64)
def change_by_replacement(sizes: tuple[int, ...], sets: Sets, weights: tuple[int, ...], norm: Norm) -> int:
    """Return the largest change by a replaced row, in the norms of `change_by_addition`.

    It is the largest over all sets of attributes in which the old and the new row may differ.
    """
    if norm is Norm.BLOCKS:
        return max((2 * k for of, k in zip(sets, weights, strict=True) if of), default=0)
    differing = None if _are_disjoint(sets) else _choices(sizes, sets, weights)
    if differing is None:
        return sum(_largest_change(tuple(sizes[a] for a in of), k, norm) for of, k in zip(sets, weights, strict=True))
    squared = norm is Norm.SQUARED_L2
    # Each attribute's factor in the inner product of two rows. It is the squared length of the attribute's vector if
    # the rows agree in the attribute. Otherwise it is -n for n > 2 values, and -1 for two values.
    other = [np.where(d, -1 if n == 2 else -n, _squared_length(n)) for d, n in zip(differing, sizes, strict=True)]
    total = np.zeros(differing.shape[1], dtype=np.int64)
    for of, k in zip(sets, weights, strict=True):
        if not of:
            continue
        if squared:
            inner = functools.reduce(np.multiply, [other[a] for a in of])
            total += 2 * k * k * (math.prod(_squared_length(sizes[a]) for a in of) - inner)
        else:
            # A block stays the same if no attribute with three or more values differs, and an even number of attributes
            # with two values differ.
            several = functools.reduce(np.logical_or, [differing[a] & (sizes[a] > 2) for a in of])
            odd = functools.reduce(np.logical_xor, [differing[a] for a in of if sizes[a] == 2], False)
            total += 2 * k * (several | odd)
    return int(total.max())


def is_bound(sizes: tuple[int, ...], sets: Sets, weights: tuple[int, ...]) -> bool:
    """Tell whether `change_by_replacement` is only a bound, because there are too many neighbours to try."""
    return not _are_disjoint(sets) and _choices(sizes, sets, weights) is None


def _are_disjoint(sets: Sets) -> bool:
    """Tell whether no attribute is in two sets, so that one neighbour attains the largest changes of all sets."""
    used = [a for of in sets for a in of]
    return len(used) == len(set(used))


def _squared_length(size: int) -> int:
    """Return the squared length of the vector of an attribute, centred if it has more than two values."""
    return 1 if size == 2 else size * (size - 1)


def _largest_change(sizes: tuple[int, ...], k: int, norm: Norm) -> int:
    """Return the largest change of one block, which is attained if only the attribute with fewest values differs."""
    if not sizes:
        return 0
    if norm is not Norm.SQUARED_L2:
        return 2 * k
    least, whole = min(sizes), math.prod(map(_squared_length, sizes))
    return 2 * k * k * (whole + (whole if least == 2 else whole // (least - 1)))


def _choices(sizes: tuple[int, ...], sets: Sets, weights: tuple[int, ...]) -> NDArray[np.bool_] | None:
    """Return all choices of attributes that differ, as booleans, shape (attributes, choices), or None if too many."""
    # Attributes that may be exchanged form a class. Only the number of differing attributes in each class matters.
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
    """Tell whether attributes of equal size may be exchanged.

    They may be exchanged if, for each set, all other sets of attributes of the same sizes have a block, too, with the
    same weight.
    """
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
    """Yield all subsets of a set, including the empty set and the set itself.

    Examples
    --------
    >>> list(subsets((0, 2)))
    [(), (0,), (2,), (0, 2)]
    """
    for number in range(len(of) + 1):
        yield from itertools.combinations(of, number)
