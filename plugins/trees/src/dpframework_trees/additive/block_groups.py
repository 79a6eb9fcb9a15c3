"""Groups of blocks of columns whose noise has one radius, with each group's share of the noise's norm.

A *block* is the columns of an attribute, of a tree, or of the intercept. Everything here follows from the sizes of
blocks.

**Two classes, or a number.** The blocks of a group are histograms that count each row once. This includes a block of
one column: a row in the second of two cells adds 1 to it, and a row in the first takes 1 off, so the column is the
difference of two cells. So a row changes all histograms of a group by the same sum, and the group's noise lies in the
space of such changes (see `group_noise`). With s the number of cells of a histogram, the space has
D = 1 + sum of (s - 1) dimensions, and the noise has a radius of about D + 1. The intercept is that sum, and belongs to
the first group.

If the sum is 0, the noise in a histogram's other s - 1 directions has about the mean square
(D + 1) (D + 2) (2s - 1) / (s (s + 1)**2). If rows are spread evenly, a function's noise is s times the gradient's
noise, up to a factor, since its curvature is in proportion to the rows of a cell. With more than `TELLING` cells the
ridge removes the rest. So the mean square over cells of all functions of a group is in proportion to

    (D + 1) (D + 2) times the sum of  min(s, TELLING)**2  (s - 1) (2s - 1) / (s**2 (s + 1)**2),

divided by the square of the group's share of the norm. The sum over groups is least if the shares are in proportion to
the cube roots of these numbers, and the best groups have the least sum of cube roots. They are found by dynamic
programming over all divisions of the histograms in order of size. A draw takes time in proportion to about D**3, so a
group of several histograms has at most `MOST_DIMENSIONS` dimensions. Two halves of a larger group have about the same
noise.

**Several classes.** Each output has such noise, or all outputs together have balanced noise (see `group_noise`). In
balanced noise of d dimensions, a block's directions have the mean square (d + 1) (d + 2) / 4 times `balanced_square`.
Each group has the kind of noise for which the sum above is less.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpframework_trees.additive.zero_sum_noise import balanced_square

Group = tuple[int, ...]

TELLING = 6  # the number of cells beyond which the ridge keeps the noise of a function from growing
MOST_DIMENSIONS = 64  # the most dimensions of a group of several histograms


def cells_of_block(width: int) -> int:
    """Return the number of cells of a block's histogram, given its number of columns: two for one column."""
    return max(width, 2)


def dimensions(sizes: Sequence[int]) -> int:
    """Return the dimension of the space of changes that a row makes to histograms with these numbers of cells.

    The row changes all histograms by the same sum.

    Examples
    --------
    >>> dimensions([2, 2, 4])
    6
    """
    return 1 + sum(size - 1 for size in sizes)


def is_balanced(sizes: Sequence[int], outputs: int) -> bool:
    """Tell whether a group of histograms with these numbers of cells has less noise if it is balanced over outputs."""
    return outputs > 1 and _of_balanced(sizes, outputs) < _by_output(sizes)


def groups_by_noise(widths: Sequence[int], outputs: int) -> tuple[Group, ...]:
    """Return the positions of the blocks of each group. The last block is the intercept's.

    Parameters
    ----------
    widths
        The number of columns of each block.
    outputs
        The number of outputs, each of which has a coefficient for every column.

    Examples
    --------
    >>> groups_by_noise([40, 1, 3, 1], 1)
    ((1, 2, 3), (0,))
    """
    intercept = len(widths) - 1
    order = sorted(range(intercept), key=lambda j: (widths[j], j))
    sizes = [cells_of_block(widths[j]) for j in order]
    best: list[tuple[float, int]] = [(0.0, 0)]  # for each end, the least sum of roots, and the last group's start
    for end in range(1, len(order) + 1):
        options = []
        for start in range(end - 1, -1, -1):
            own = sizes[start:end]
            if len(own) > 1 and dimensions(own) > MOST_DIMENSIONS:
                break
            options.append((best[start][0] + _root(own, outputs), start))
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


def parts_of_norm(widths: Sequence[int], groups: Sequence[Group], outputs: int) -> list[int]:
    """Return a whole number above 0 for each group, in proportion to its share of the norm."""
    sizes = [[cells_of_block(widths[j]) for j in group if j < len(widths) - 1] for group in groups]
    return [max(round(2**16 * _root(own, outputs)), 1) for own in sizes]


def _root(sizes: Sequence[int], outputs: int) -> float:
    """Return the cube root of a group's noise (see the module), or of the intercept's if it is alone in the group."""
    noise = _by_output(sizes)
    if outputs > 1:
        noise = min(noise, _of_balanced(sizes, outputs))
    return float((noise or 2.0) ** (1 / 3))


def _by_output(sizes: Sequence[int]) -> float:
    """Return a number in proportion to the noise of one output's functions, if outputs have noise of their own."""
    number = dimensions(sizes)
    parts = [min(s, TELLING) ** 2 * (s - 1) * (2 * s - 1) / (s**2 * (s + 1) ** 2) for s in sizes]
    return (number + 1) * (number + 2) * sum(parts)


def _of_balanced(sizes: Sequence[int], outputs: int) -> float:
    """Return the number that `_by_output` returns, but for balanced noise.

    The single column of a histogram of two cells is their difference.
    """
    widths = [1 if s == 2 else s for s in sizes]
    number = sum(widths) * (outputs - 1)
    parts = [
        min(s, TELLING) ** 2 * (s - 1) / s * balanced_square(width, outputs) / (2 if s == 2 else 1)
        for s, width in zip(sizes, widths, strict=True)
    ]
    return (number + 1) * (number + 2) / 4 * sum(parts)
