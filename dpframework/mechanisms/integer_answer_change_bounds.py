"""Bounds on how one privacy unit changes an integer answer, in the form of shifts of the noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpframework.facts.privacy_losses import Relation
from dpframework.queries.base import Norm, QueryFacts

if TYPE_CHECKING:
    from dpframework.mechanisms.base import Calibration


def unit_changes(facts: QueryFacts, relation: Relation) -> int | None:
    """Return the largest number of coordinates that a row changes in an integer answer, if it changes each by 1.

    The result is None if a row may change a coordinate by more than 1, or if the declared sensitivities do not bound
    the number of changed coordinates.
    """
    changes = {
        norm: declared.change.under(relation)
        for norm in Norm
        if facts.integer and (declared := facts.sensitivity(norm)) is not None
    }
    largest = changes.get(Norm.LINF)
    counts = [bound for norm in (Norm.L1, Norm.SQUARED_L2) if (bound := changes.get(norm)) is not None]
    # An integer that changes by less than 2 changes by at most 1. So the l1 norm and the squared l2 norm count the
    # changes.
    if largest is None or largest >= 2 or not counts:
        return None
    return math.floor(min(counts)) or None


def moves_by_more(facts: QueryFacts) -> bool:
    """Tell whether a number of an integer answer may move by more than 1, under a relation with a declared bound.

    Under replace-one a number may move by 2 if adding a row can raise it and can lower it, too.
    """
    declared = facts.sensitivity(Norm.L1) or facts.sensitivity(Norm.SQUARED_L2)
    bounded = [] if declared is None else [one for one in Relation if declared.change.under(one) is not None]
    return not bounded or any(unit_changes(facts, relation) is None for relation in bounded)


def unit_shifts(calibration: Calibration, relation: Relation) -> tuple[int, int] | None:
    """Return (n, s): the loss on an integer answer is at most the loss on n integers that each move by s.

    Let the noise on each integer be independent of the others, with a distribution p that is symmetric and log-concave,
    such as discrete Laplace or discrete Gaussian noise. Let a unit of k rows move the integers by w_1, w_2, ...

    **Several shifts lose no more than one shift by their sum.** Let T(P, Q) be the trade-off function of two
    distributions: the least type II error of a test between them, for each type I error. Let T_s be the trade-off
    function of p and of p moved by s. Log-concave noise has monotone likelihood ratios, so the best tests
    between these two are thresholds. Therefore T_(s+t) = T_t o (1 - T_s), where o composes functions. If T(P, Q) >= f
    and T(Q, R) >= g, then T(P, R) >= g o (1 - f) (Dong, Roth and Su 2022, the lemma of group privacy). Now move one
    integer after another. Each move changes one coordinate of a product distribution. So the trade-off function of the
    outputs on both tables is at least T_s, with s the sum of all abs(w_i).

    **Add-or-remove-one.** A row changes the answer by at most l in the l1 norm. So the sum of all abs(w_i) is at most
    l k, and the result is (1, l k). If l is above 1, a row may have to spread its change over several numbers, such as
    a shift by 1 in each of several histograms. Several small shifts cost less than one large shift, so the bound would
    be loose. Therefore the result is None if the declared linf or squared l2 norm rules out that a single number moves
    by l.

    **Replace-one.** Let an added row only raise integers; if it only lowers them, the same holds with the signs
    exchanged. The rows that enter raise the integers by at most l k in all, and the rows that leave lower them by at
    most l k in all. So all integers that end up higher have risen by at most l k in all, and all that end up lower have
    fallen by at most l k in all. The noise of these two groups is independent, so each group counts as one integer, and
    the result is (2, l k). If a replaced row, too, changes the answer by at most l, the result is (1, l k), since k
    replacements change the answer by at most l k. An example is the number of rows for which a description holds.

    The result is None if none of this applies. For a unit of one row that changes each integer by at most 1, n is
    `unit_changes`, and s is 1.
    """
    facts, rows = calibration.facts, calibration.by.rows
    changed = unit_changes(facts, relation)
    if rows == 1 and changed is not None:
        return changed, 1
    moved = _sum_of_changes(facts, Relation.ADD_OR_REMOVE_ONE)
    if not moved:
        return None
    for norm, power in ((Norm.LINF, 1), (Norm.SQUARED_L2, 2)):
        declared = facts.sensitivity(norm)
        bound = None if declared is None else declared.change.add_or_remove_one
        if bound is not None and bound < moved**power:  # a row cannot move a single number by `moved`
            return None
    if relation is Relation.ADD_OR_REMOVE_ONE:
        return 1, moved * rows
    replaced = _sum_of_changes(facts, relation)
    if replaced is None or not any(one.monotonic for one in facts.sensitivities):
        return None
    return 1 if replaced <= moved else 2, moved * rows


def _sum_of_changes(facts: QueryFacts, relation: Relation) -> int | None:
    declared = facts.sensitivity(Norm.L1) if facts.integer else None
    bound = None if declared is None else declared.change.under(relation)
    return None if bound is None else math.floor(bound)
