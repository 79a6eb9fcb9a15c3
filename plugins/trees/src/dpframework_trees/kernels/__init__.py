"""Numba kernels of the trees plugin: scores of splits, samplers of whole trees, unions of leaves.

Symbols: counts[v, c] is the number of rows with code v (codes of all attributes in one line, one attribute after the
other) and class c; f is the criterion of one child or leaf, and the score of a split or tree is the sum of f over them.

Whole trees are complete: d levels of tests, in heap order (the children of node k are 2 k + 1, where its test holds,
and 2 k + 2), then 2**d leaves. Rows are bits: bits[t] has a 1 for each row that test t holds for, class_bits[c] for
each row of class c, in words of 64 rows; a bit that stands for no row is 0 in every class.

Compiled code is kept on disk, and numba compiles a kernel again when its own file changes. It does not notice that a
kernel of another file changed which this one calls: after such a change, delete `__pycache__` here.
"""

from dpframework_trees.kernels.bits import arrange, common, count_common, pack_classes, pack_tests
from dpframework_trees.kernels.counting import add_leaf_codes
from dpframework_trees.kernels.logistic import add_curvature, add_residuals
from dpframework_trees.kernels.routing import Routed, leaf_counts, place_rows
from dpframework_trees.kernels.scoring import child_score, pair_score, split_scores, threshold_scores
from dpframework_trees.kernels.unions import grow_unions
from dpframework_trees.kernels.walks import PairTarget, Steps, TreeTarget, walk_pairs, walk_trees
from dpframework_trees.kernels.weights import (
    Weighing,
    count_pairs,
    count_tests,
    log_weights_of_pairs,
    log_weights_of_rows,
    log_weights_of_stumps,
)

__all__ = [
    "PairTarget",
    "Routed",
    "Steps",
    "TreeTarget",
    "Weighing",
    "add_curvature",
    "add_leaf_codes",
    "add_residuals",
    "arrange",
    "child_score",
    "common",
    "count_common",
    "count_pairs",
    "count_tests",
    "grow_unions",
    "leaf_counts",
    "log_weights_of_pairs",
    "log_weights_of_rows",
    "log_weights_of_stumps",
    "pack_classes",
    "pack_tests",
    "pair_score",
    "place_rows",
    "split_scores",
    "threshold_scores",
    "walk_pairs",
    "walk_trees",
]
