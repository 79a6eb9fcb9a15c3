"""The kernels that score by a criterion, compiled once for each criterion from its formula.

No kernel branches on the criterion. Each is written once, as a plain function that calls `child_score`. It is compiled
for a criterion with the score that is generated from the criterion's formula in place of `child_score`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from dpframework.formulas import Parts, compiled_for, score_kernel
from dpframework_trees.kernels.pair_weights import pair_terms, weigh_pairs
from dpframework_trees.kernels.scores import pair_score, split_scores, threshold_scores
from dpframework_trees.kernels.walks import walk_pairs, walk_trees
from dpframework_trees.kernels.weight_kernels import add_log_weights, side_scores


class CriterionKernels(NamedTuple):
    """The kernels of one criterion. All but the first are documented in the modules that define them.

    Attributes
    ----------
    child_score
        Returns f of the class counts of one child or leaf, shape (classes,).
    split_scores, threshold_scores, pair_score
        See `scores`.
    walk_trees, walk_pairs
        See `walks`.
    side_scores, add_log_weights
        See `weight_kernels`.
    pair_terms, weigh_pairs
        See `pair_weights`.
    """

    child_score: Callable[..., float]
    split_scores: Callable[..., None]
    threshold_scores: Callable[..., None]
    pair_score: Callable[..., float]
    walk_trees: Callable[..., tuple[int, Any]]
    walk_pairs: Callable[..., tuple[int, Any]]
    side_scores: Callable[..., None]
    add_log_weights: Callable[..., None]
    pair_terms: Callable[..., tuple[float, float]]
    weigh_pairs: Callable[..., None]


@functools.lru_cache(maxsize=32)
def kernels_of(formula: Parts) -> CriterionKernels:
    """Return the kernels of a criterion's formula. Each is compiled when it is first called, and kept on disk."""
    child = score_kernel(formula)
    compiled = functools.partial(compiled_for, formula, child_score=child)
    pair, terms = compiled(pair_score), compiled(pair_terms)
    sides, adding = compiled(side_scores), compiled(add_log_weights)
    return CriterionKernels(
        child_score=child,
        split_scores=compiled(split_scores),
        threshold_scores=compiled(threshold_scores),
        pair_score=pair,
        walk_trees=compiled(walk_trees),
        walk_pairs=compiled(walk_pairs, pair_score=pair),
        side_scores=sides,
        add_log_weights=adding,
        pair_terms=terms,
        weigh_pairs=compiled(weigh_pairs, pair_terms=terms, side_scores=sides, add_log_weights=adding),
    )
