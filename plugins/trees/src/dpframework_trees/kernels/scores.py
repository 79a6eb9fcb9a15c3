"""Scores of splits, thresholds and pairs of trees, as sums of f over children or leaves (see `criterion_kernels`)."""

from __future__ import annotations

from typing import Any

from dpframework_trees.kernels.array_types import Floats, Integers, Kinds
from dpframework_trees.splits import BELOW, MULTIWAY


def child_score(counts: Integers) -> float:
    """Stand for f of one child's class counts, shape (classes,). `kernels_of` puts a criterion's f in its place."""
    raise TypeError("this kernel was compiled for no criterion, so it cannot score; take one from `kernels_of`")


def split_scores(
    counts: Integers, slots: Integers, widths: Integers, kinds: Kinds, codes: Integers, sides: Integers, scores: Floats
) -> None:
    """Write the score of every candidate to `scores`.

    Candidate i splits on the attribute with the counts counts[slots[i] : slots[i] + widths[i]]. For an off-grid
    candidate, counts[slots[i]] is its true side and counts[slots[i] + 1] its false side. `sides` is working memory for
    the counts of both sides and of all rows, shape (3, classes). If candidates on an attribute follow each other, with
    cuts in increasing order, each code is added up only once for them.
    """
    n_classes = counts.shape[1]
    held, rest, whole = sides[0], sides[1], sides[2]
    summed, below = -1, -1  # the slot that `whole` sums up, and how many codes `held` sums up for a cut
    for i in range(len(slots)):
        first, width = slots[i], widths[i]
        if kinds[i] == MULTIWAY:
            total = 0.0
            for v in range(first, first + width):
                total += child_score(counts[v])
            scores[i] = total
            continue
        if first != summed:
            summed, below = first, -1
            whole[:] = 0
            for v in range(first, first + width):
                for c in range(n_classes):
                    whole[c] += counts[v, c]
        if kinds[i] == BELOW:
            if below < 0 or below > codes[i] + 1:
                held[:] = 0
                below = 0
            for v in range(below, codes[i] + 1):
                for c in range(n_classes):
                    held[c] += counts[first + v, c]
            below = codes[i] + 1
        else:
            for c in range(n_classes):  # An assignment to the whole array takes a second longer to compile.
                held[c] = counts[first + codes[i], c]
            below = -1
        for c in range(n_classes):
            rest[c] = whole[c] - held[c]
        scores[i] = child_score(held) + child_score(rest)


def threshold_scores(classes: Integers, each: Integers, below: Integers, above: Integers, scores: Floats) -> None:
    """Write the score of a threshold between each two neighbours of sorted values, and at both ends, to `scores`.

    scores[i] belongs to a threshold with the first i values below it. `classes` has the class of each sorted value.
    `below` and `above` count the rows by class on both sides. At first, all rows are above. A row of class c counts
    each[c] times.
    """
    scores[0] = child_score(below) + child_score(above)
    for i in range(len(classes)):
        below[classes[i]] += each[classes[i]]
        above[classes[i]] -= each[classes[i]]
        scores[i + 1] = child_score(below) + child_score(above)


def pair_score(target_counts: Integers, joint: Integers, sizes: Integers, product: bool) -> Any:
    """Return the score of a pair of trees, from counts by class in leaves of the first tree, and in pairs of leaves.

    The first tree is scored by the target's classes. The second tree is scored by the leaves of the first, which are
    the columns of `joint`. The score is half of the sum of the first tree's score and of the second tree's gain over a
    tree with one leaf. If `product`, it is half of the first tree's score, times 1 plus the second tree's score per
    row. `sizes` is working memory for one number per leaf of the first tree.
    """
    first = second = 0.0
    rows = 0
    for leaf in range(len(target_counts)):
        first += child_score(target_counts[leaf])
        sizes[leaf] = 0
        for beside in range(len(joint)):
            sizes[leaf] += joint[beside, leaf]
        rows += sizes[leaf]
    for beside in range(len(joint)):
        second += child_score(joint[beside])
    if product:
        return first * (1 + second / rows) / 2 if rows else 0.0
    return (first + second - child_score(sizes)) / 2
