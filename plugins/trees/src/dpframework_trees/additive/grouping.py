"""Groups of blocks of columns whose noise has one radius, with each group's share of the noise's norm.

A *block* is the columns of an attribute, of a tree, or of the intercept. Everything here follows from sizes.

**Two classes, or a number.** A group's blocks are histograms that count each row once, those of one column too: a row
in the second of two cells adds 1 to it, one in the first takes 1 off, and that is the difference of two cells. So a
row changes all histograms of a group by the same sum, and the group's noise lies in the space of such changes (see
`group_noise`). It has D = 1 + sum of (s - 1) dimensions, with s cells a histogram, and a radius of about D + 1. The
intercept is that sum, and belongs to the first group.

In a histogram's s - 1 directions without the sum, noise has about the mean square (D + 1) (D + 2) (2s - 1) / (s (s +
1)**2), if the sum is taken as 0. A function's noise is s times the gradient's, up to a factor, where rows are spread
evenly, since its curvature is in proportion to the rows of a cell; with more than `TELLING` cells the ridge takes off
the rest. So the mean square over cells of all functions of a group is in proportion to

    (D + 1) (D + 2) times the sum of  min(s, TELLING)**2  (s - 1) (2s - 1) / (s**2 (s + 1)**2),

divided by the square of the group's share of the norm. The shares that make the sum over groups least are in proportion
to the cube roots of these, and the best groups have the least sum of cube roots, by dynamic programming over all
divisions of the histograms in order of size. A draw takes time in proportion to about D**3, so that a group of several
histograms has `MOST_DIMENSIONS` at most; two halves of a larger one have about as much noise.

**Several classes.** A block's noise has a coordinate for each output and column, whose sum over outputs is 0. Blocks of
one column share a radius, first the intercept's; then others of similar size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Group = tuple[int, ...]

WIDER = 1.6  # than the smallest block of its group is no block
TELLING = 6  # cells of a histogram
MOST_OF_BLOCK = 12  # coordinates of a block that its group's share is by, of several classes
MOST_DIMENSIONS = 64


def cells_of_block(width: int) -> int:
    """Return the number of cells of the histogram that a block of so many columns is of: two for one column."""
    return max(width, 2)


def dimensions(sizes: Sequence[int]) -> int:
    """Return the number of dimensions of the changes of histograms of some sizes, which have one sum.

    Examples
    --------
    >>> dimensions([2, 2, 4])
    6
    """
    return 1 + sum(size - 1 for size in sizes)


def groups_by_noise(widths: Sequence[int]) -> tuple[Group, ...]:
    """Return the blocks of each group, for one output; the last block is the intercept's.

    Parameters
    ----------
    widths
        The number of columns of each block.

    Examples
    --------
    >>> groups_by_noise([40, 1, 3, 1])
    ((1, 2, 3), (0,))
    """
    intercept = len(widths) - 1
    order = sorted(range(intercept), key=lambda j: (widths[j], j))
    sizes = [cells_of_block(widths[j]) for j in order]
    best: list[tuple[float, int]] = [(0.0, 0)]  # the least sum of roots up to here, and where its last group begins
    for end in range(1, len(order) + 1):
        options = []
        for start in range(end - 1, -1, -1):
            own = sizes[start:end]
            if len(own) > 1 and dimensions(own) > MOST_DIMENSIONS:
                break
            options.append((best[start][0] + _root(own), start))
        best.append(min(options))
    groups, end = [], len(order)
    while end:
        start = best[end][1]
        groups.append(tuple(sorted(order[start:end])))
        end = start
    if not groups:
        return ((intercept,),)
    groups.reverse()
    return ((*groups[0], intercept), *groups[1:])


def groups_by_width(widths: Sequence[int]) -> tuple[Group, ...]:
    """Return the blocks of each group, for several outputs."""
    narrow = [j for j, width in enumerate(widths) if width == 1]
    wide = sorted((j for j, width in enumerate(widths) if width != 1), key=lambda j: widths[j])
    groups: list[list[int]] = [narrow]
    for j in wide:
        of_last = groups[-1]
        if len(groups) == 1 or widths[j] > WIDER * widths[of_last[0]]:
            groups.append([j])
        else:
            of_last.append(j)
    return tuple(map(tuple, groups))


def parts_of_norm(widths: Sequence[int], groups: Sequence[Group], outputs: int) -> list[int]:
    """Return whole numbers above 0, in proportion to the groups' shares of the norm."""
    return [max(round(2**16 * _part(widths, group, outputs)), 1) for group in groups]


def _part(widths: Sequence[int], group: Group, outputs: int) -> float:
    if outputs == 1:
        return _root([cells_of_block(widths[j]) for j in group if j < len(widths) - 1])
    return float(sum(math.sqrt(2) * min(widths[j] * outputs, MOST_OF_BLOCK) for j in group) ** (2 / 3))


def _root(sizes: Sequence[int]) -> float:
    """Return the cube root of a group's noise (see the module), of the intercept's own where it is alone."""
    number = dimensions(sizes)
    noise = sum(min(s, TELLING) ** 2 * (s - 1) * (2 * s - 1) / (s**2 * (s + 1) ** 2) for s in sizes)
    return float(((number + 1) * (number + 2) * (noise or 1 / 3)) ** (1 / 3))
