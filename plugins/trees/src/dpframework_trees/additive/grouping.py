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

**Several classes.** Each output has such noise, or all have balanced noise (see `group_noise`), of which a block's
directions have the mean square (d + 1) (d + 2) / 4 times `balanced_square`, with d dimensions. Each group has the kind
that is less by the sum above.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpframework_trees.additive.balanced_noise import balanced_square

Group = tuple[int, ...]

TELLING = 6  # cells of a histogram
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


def is_balanced(sizes: Sequence[int], outputs: int) -> bool:
    """Tell whether the noise of a group of histograms is less if it is balanced over outputs."""
    return outputs > 1 and _of_balanced(sizes, outputs) < _by_output(sizes)


def groups_by_noise(widths: Sequence[int], outputs: int) -> tuple[Group, ...]:
    """Return the blocks of each group; the last block is the intercept's.

    Parameters
    ----------
    widths
        The number of columns of each block.
    outputs
        The number of coordinates of a column.

    Examples
    --------
    >>> groups_by_noise([40, 1, 3, 1], 1)
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
    """Return whole numbers above 0, in proportion to the groups' shares of the norm."""
    sizes = [[cells_of_block(widths[j]) for j in group if j < len(widths) - 1] for group in groups]
    return [max(round(2**16 * _root(own, outputs)), 1) for own in sizes]


def _root(sizes: Sequence[int], outputs: int) -> float:
    """Return the cube root of a group's noise (see the module), of the intercept's own where it is alone."""
    noise = _by_output(sizes)
    if outputs > 1:
        noise = min(noise, _of_balanced(sizes, outputs))
    return float((noise or 2.0) ** (1 / 3))


def _by_output(sizes: Sequence[int]) -> float:
    """Return the noise of one output's functions, and of each of several with noise by itself."""
    number = dimensions(sizes)
    parts = [min(s, TELLING) ** 2 * (s - 1) * (2 * s - 1) / (s**2 * (s + 1) ** 2) for s in sizes]
    return (number + 1) * (number + 2) * sum(parts)


def _of_balanced(sizes: Sequence[int], outputs: int) -> float:
    """Return that of balanced noise. The one column of a histogram of two cells is their difference."""
    widths = [1 if s == 2 else s for s in sizes]
    number = sum(widths) * (outputs - 1)
    parts = [
        min(s, TELLING) ** 2 * (s - 1) / s * balanced_square(width, outputs) / (2 if s == 2 else 1)
        for s, width in zip(sizes, widths, strict=True)
    ]
    return (number + 1) * (number + 2) / 4 * sum(parts)
