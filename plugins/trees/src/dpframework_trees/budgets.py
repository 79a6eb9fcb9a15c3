"""The division of a tree's budget between levels, thresholds, stopping counts and leaves, and the default depth."""

from __future__ import annotations

from fractions import Fraction

import attrs

from dpframework.facts import InputError, nearest

LEAF_SHARE = Fraction(3, 10)  # the share of the budget for the class counts of leaves
COUNT_SHARE = Fraction(1, 10)  # the share of the budget for noisy counts at nodes, if there are any
BUDGETS = ("growing", "published")
DEPTH = 5  # the largest default depth, and the default depth if the number of rows is not public
#: Pairs of a bound and a depth. A tree whose rows times epsilon are below the bound has that depth.
SHALLOW = ((100, 1), (300, 2), (1_500, 4))


@attrs.frozen
class TreeBudget:
    """The epsilon of every kind of step of a tree, by level. The root has level 0.

    Attributes
    ----------
    select
        The epsilon of a node's selection of its split, with one entry for each level of inner nodes.
    threshold
        The epsilon of each numeric attribute's split point, with one entry for each level of inner nodes.
    count
        The epsilon of each node's noisy count. 0 if the tree does not stop on counts.
    leaf
        The epsilon of a leaf's class counts, with one entry for each level at which a path may end.
    """

    select: tuple[Fraction, ...]
    threshold: tuple[Fraction, ...]
    count: Fraction
    leaf: tuple[Fraction, ...]


def tree_budget(kind: str, epsilon: Fraction, depth: int, *, thresholds: int, counts: bool) -> TreeBudget:
    """Divide the epsilon of a tree between its steps.

    `published` (Friedman and Schuster 2010) gives every step of a path the same epsilon. With noisy counts, k split
    points per node and depth d that is epsilon / ((2 + k) d + 2). Without numeric attributes, it is
    epsilon / (2 (d + 1)).

    `growing` gives 30 % to the leaves and 70 % to the levels. Deeper nodes hold fewer rows, so the levels get shares in
    the proportions 5 : 7 : 10 : 14 : 20 ..., which grow by a factor of about the square root of 2 per level. Noisy
    counts, if there are any, get 10 % of the budget, and the levels 60 %. Where a path ends early, its leaf gets the
    budget that is left for the levels below. A tree of depth 0 is a single leaf, which gets all that counts leave.

    Parameters
    ----------
    kind
        "published" or "growing".
    epsilon
        The budget of the whole tree.
    depth
        The number of levels of inner nodes.
    thresholds
        How many split points each node releases before its selection.
    counts
        Whether each node releases a noisy count.

    Raises
    ------
    InputError
        If `kind` is unknown.

    Examples
    --------
    >>> tree_budget("published", Fraction(1), 4, thresholds=0, counts=True).select[0]
    Fraction(1, 10)
    """
    if kind not in BUDGETS:
        raise InputError(f"budget {kind!r} is unknown; {nearest(str(kind), BUDGETS)}")
    if kind == "published":
        each = epsilon / ((1 + thresholds) * depth + 1 + (depth + 1) * counts)
        return TreeBudget((each,) * depth, (each,) * depth, each * counts, (each,) * (depth + 1))
    leaf_share = LEAF_SHARE if depth else Fraction(1) - COUNT_SHARE * counts
    count = epsilon * COUNT_SHARE * counts / (depth + 1)
    weights = [(5, 7)[level % 2] * 2 ** (level // 2) for level in range(depth)]
    levels = epsilon * (1 - leaf_share - COUNT_SHARE * counts)
    shares = [levels * weight / sum(weights) for weight in weights]
    rest = [sum(shares[level:], Fraction(0)) + count * (depth - level) for level in range(depth + 1)]
    return TreeBudget(
        select=tuple(share / (1 + thresholds) for share in shares),
        threshold=tuple(share / (1 + thresholds) for share in shares),
        count=count,
        leaf=tuple(epsilon * leaf_share + left for left in rest),
    )


def depth_for(rows: int | None, epsilon: Fraction) -> int:
    """Return the depth that suits a public number of rows, or `DEPTH` if that number is not public (None).

    A deep tree spends most of its budget on nodes of few rows. With few rows and a small epsilon it would predict worse
    than no tree at all.

    Examples
    --------
    >>> depth_for(1_728, Fraction(1, 20)), depth_for(40_000, Fraction(1, 20)), depth_for(None, Fraction(1, 20))
    (1, 5, 5)
    """
    if rows is None:
        return DEPTH
    return next((depth for most, depth in SHALLOW if rows * epsilon < most), DEPTH)
