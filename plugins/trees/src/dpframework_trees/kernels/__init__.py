"""Numba kernels for scores of splits, samplers of whole trees, and unions of leaves.

Symbols: counts[v, c] is the number of rows with code v (codes of all attributes in one line, one attribute after the
other) and class c; f is the criterion of one child or leaf, and the score of a split or tree is the sum of f over them.
What scores by a criterion is compiled from its formula: `kernels_of`.

Kernels make no arrays: they take those that they fill in, and room for what they note down. Numba needs longer to
compile the making of an array than most of what is here.

Whole trees are complete: d levels of tests, in heap order (the children of node k are 2 k + 1, where its test holds,
and 2 k + 2), then 2**d leaves. Rows are bits: bits[t] has a 1 for each row that test t holds for, class_bits[c] for
each row of class c, in words of 64 rows; a bit that stands for no row is 0 in every class.

Compiled code is kept on disk, and numba compiles a kernel again when its own file changes. It does not notice that a
kernel of another file changed which this one calls: after such a change, delete `__pycache__` here.
"""

from dpframework_trees.kernels.bits import common, count_common
from dpframework_trees.kernels.logistic import add_curvature, add_residuals
from dpframework_trees.kernels.of_criteria import CriterionKernels, kernels_of
from dpframework_trees.kernels.pairs import PairRoom, PairScale
from dpframework_trees.kernels.routes import route
from dpframework_trees.kernels.unions import Unions, grow_unions
from dpframework_trees.kernels.walks import (
    PairTarget,
    Routed,
    Steps,
    TreeTarget,
    WalkedPair,
    WalkedTree,
)
from dpframework_trees.kernels.weights import Weighing, add_pairs, count_tests

__all__ = [
    "CriterionKernels",
    "PairRoom",
    "PairScale",
    "PairTarget",
    "Routed",
    "Steps",
    "TreeTarget",
    "Unions",
    "WalkedPair",
    "WalkedTree",
    "Weighing",
    "add_curvature",
    "add_pairs",
    "add_residuals",
    "common",
    "count_common",
    "count_tests",
    "grow_unions",
    "kernels_of",
    "route",
]
