"""How far one privacy unit moves the integers of an answer, and which shifts of noise lose at least as much."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpframework.facts.privacy_losses import Relation
from dpframework.queries.base import Norm, QueryFacts

if TYPE_CHECKING:
    from dpframework.mechanisms.base import Calibration


def unit_changes(facts: QueryFacts, relation: Relation) -> int | None:
    """Return how many coordinates of an integer answer a row changes at most, each by 1, or None if this is unknown."""
    changes = {
        norm: declared.change.under(relation)
        for norm in Norm
        if facts.integer and (declared := facts.sensitivity(norm)) is not None
    }
    largest = changes.get(Norm.LINF)
    counts = [bound for norm in (Norm.L1, Norm.SQUARED_L2) if (bound := changes.get(norm)) is not None]
    # An integer that moves by less than 2 moves by 1. So the l1 and the squared l2 norm count the integers that move.
    if largest is None or largest >= 2 or not counts:
        return None
    return math.floor(min(counts)) or None


def unit_shifts(calibration: Calibration, relation: Relation) -> tuple[int, int] | None:
    """Return (n, s): noise on an integer answer loses at most as much as noise on n integers that move by s each.

    Let the noise p on each integer be independent, symmetric and log-concave, as discrete Laplace and discrete Gaussian
    noise are, and let a unit of k rows move the integers by w_1, w_2, ...

    **One shift dominates all that add up to it.** Let T_s be the trade-off function of p and p moved by s. The best
    tests of these two are thresholds, for every s, since log-concave noise has monotone likelihood ratios; so
    T_(s+t) = T_t o (1 - T_s). Let T(P, Q) >= f and T(Q, R) >= g; then T(P, R) >= g o (1 - f) (Dong, Roth and Su 2022,
    the lemma of group privacy). Move one integer after another, each of which changes one coordinate of a product: the
    trade-off function of both tables' outputs is at least that of p and p moved by the sum of all abs(w_i).

    **Add-or-remove-one.** A row changes the answer by at most l in the l1 norm. So that sum is at most l k, and the
    result is (1, l k). Where l is above 1, this is returned only if a single number may move by l, as far as the linf
    and the l2 norm tell. Otherwise several smaller shifts cost less, such as a shift by 1 in each of several
    histograms.

    **Replace-one.** Let an added row only raise integers, or only lower them. Rows that leave move the integers one
    way, by at most l k in all, and rows that come move them the other way, by at most l k in all. An integer that ends
    up higher has moved by at most its share of the one sum, and an integer that ends up lower by at most its share of
    the other. Noise is independent, so these two groups are two events, and the result is (2, l k). Where a replaced
    row changes the answer by at most l, such as the number of rows for which a description holds, k replacements change
    it by at most l k, and the result is (1, l k).

    The result is None where none of this applies. For a unit of one row that changes each integer by at most 1, n is
    `unit_changes`, and s is 1.
    """
    facts, rows = calibration.facts, calibration.by.rows
    changed = unit_changes(facts, relation)
    if rows == 1 and changed is not None:
        return changed, 1
    moved = _sum_of_changes(facts, Relation.ADD_OR_REMOVE_ONE)
    if not moved or not _in_one_number(facts, moved):
        return None
    if relation is Relation.ADD_OR_REMOVE_ONE:
        return 1, moved * rows
    replaced = _sum_of_changes(facts, relation)
    if replaced is None or not any(declared.monotonic for declared in facts.sensitivities):
        return None
    return 1 if replaced <= moved else 2, moved * rows


def _sum_of_changes(facts: QueryFacts, relation: Relation) -> int | None:
    declared = facts.sensitivity(Norm.L1) if facts.integer else None
    bound = None if declared is None else declared.change.under(relation)
    return None if bound is None else math.floor(bound)


def _in_one_number(facts: QueryFacts, moved: int) -> bool:
    """Tell whether one number of the answer may move as far as all its numbers together."""
    for norm, power in ((Norm.LINF, 1), (Norm.SQUARED_L2, 2)):
        declared = facts.sensitivity(norm)
        bound = None if declared is None else declared.change.add_or_remove_one
        if bound is not None and bound < moved**power:
            return False
    return True
