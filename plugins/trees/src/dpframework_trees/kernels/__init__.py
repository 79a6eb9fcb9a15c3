"""Numba kernels for scores of splits, samplers of trees and of pairs of trees, unions of leaves, and logistic fits.

Symbols: counts[v, c] is the number of rows with code v and class c, where the codes of all attributes follow one
another in a single range. f is the criterion of one child or leaf, and the score of a split or tree is the sum of f
over its children or leaves. Kernels that score by a criterion are compiled from its formula (`kernels_of`).

Except for those of logistic fits, kernels make no arrays. They take the arrays that they fill in, and arrays as working
memory, since numba needs longer to compile the making of an array than most of the code here.

Whole trees are complete: d levels of tests in heap order, then 2**d leaves. From node k, rows for which its test holds
go to node 2 k + 1, all others to 2 k + 2. Rows are bits in words of 64 rows: bits[t] has a 1 for each row that test t
holds for, and class_bits[c] has a 1 for each row of class c. A bit that stands for no row is 0 in every class.

Compiled code is kept on disk, and numba compiles a kernel again when its own file changes. It does not notice a change
of a kernel in another file that this kernel calls. After such a change, delete `__pycache__` here.
"""

from dpframework_trees.kernels.criterion_kernels import CriterionKernels, kernels_of
from dpframework_trees.kernels.leaf_unions import Unions, grow_unions
from dpframework_trees.kernels.logistic import add_curvature, add_residuals
from dpframework_trees.kernels.pair_weights import PairMemory, PairScale
from dpframework_trees.kernels.row_sets import common, count_common, route
from dpframework_trees.kernels.walks import PairTarget, Routed, Steps, TreeTarget, WalkedPair, WalkedTree
from dpframework_trees.kernels.weight_kernels import Weighing, add_pairs, count_tests

__all__ = [
    "CriterionKernels",
    "PairMemory",
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
