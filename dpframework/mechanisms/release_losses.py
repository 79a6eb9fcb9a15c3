"""The losses of one release: its pure epsilon, its rho in zCDP, and an exact delta that belongs to both.

**One split.** A release has the losses (epsilon, rho; delta d) under a relation if for all neighbours u and v there are
distributions P, Q, E and E' with

    M(u) = (1 - d) P + d E,   M(v) = (1 - d) Q + d E',

where P and Q meet every amount that is claimed, in both directions. That is: no output is more than e**epsilon times
likelier under P than under Q, no Renyi divergence of order alpha is above alpha rho, and dp-accounting's event for the
mechanism dominates the pair. P and Q are the *core*, whose losses hold without a delta. A split for epsilon alone means
(epsilon, d)-DP (Kairouz, Oh and Viswanath 2015; their split also has a rho of epsilon**2 / 2). A split for rho alone
means d-approximate zCDP (Bun and Steinke 2016, Section 8). Since one split serves all notions, a total may use any of
them: it composes the cores, and adds up the deltas.

**Units of several rows.** Let a replaced row lose epsilon R and delta dR, and an added or removed row epsilon A and
delta dA. Let c be the larger of dR / (e**R - 1) and dA / (e**A - 1). Go from u to v row by row, and let P, Q and N be
the distributions of outputs on three successive tables. If P(S) <= e**x Q(S) + c (e**x - 1) and
Q(S) <= e**y N(S) + c (e**y - 1) for all sets S, then P(S) <= e**(x + y) N(S) + c (e**(x + y) - 1), since
e**x c (e**y - 1) + c (e**x - 1) = c (e**(x + y) - 1). So r replaced rows and s added or removed rows lose epsilon
r R + s A, and delta c (e**(r R + s A) - 1).

Let d be this delta for k replaced rows, and d' for k added or removed rows. The delta is convex in r and s, and 0 for
no rows. So r replaced rows and s added or removed rows, at most k in all, lose a delta of at most (r d + s d') / k.
`accountant.composition` needs this for units in parts. For rho there is no such rule, since the splits of different
pairs of neighbours differ. So k rows get the split that follows from their epsilon, and half the square of that epsilon
as rho.
"""

from __future__ import annotations

import math
from fractions import Fraction

import attrs

from dpframework.facts.privacy_losses import NOTHING, ByRelation, Relation, round_up

_LARGEST = 500  # the largest epsilon whose exponential is taken, so that it fits a double


@attrs.frozen
class Losses:
    """The cost of one release, each amount under both relations.

    Attributes
    ----------
    pure
        The pure epsilon of its core. None under a relation for which no epsilon is claimed.
    zcdp
        The core's rho in zCDP, or None.
    delta
        The probability d of outputs that do not come from the core (see the module). 0 for most mechanisms.
    """

    pure: ByRelation
    zcdp: ByRelation
    delta: ByRelation = NOTHING

    def of_rows(self, rows: int) -> Losses:
        """Return the losses of a group of rows, from these losses of one row.

        Without a delta, epsilon is multiplied by the number of rows, and rho by the square of that number. With a
        delta, see the module.
        """
        if rows == 1:
            return self
        pure = times(self.pure, Fraction(rows))
        if self.delta == NOTHING:
            return Losses(pure, times(self.zcdp, Fraction(rows**2)))
        delta = self._delta_of_rows(rows)
        claimed = [None if delta.under(one) is None else pure.under(one) for one in Relation]
        of_rows = ByRelation(*claimed)
        return Losses(of_rows, half_square(of_rows), delta)

    def _delta_of_rows(self, rows: int) -> ByRelation:
        """Return the delta of a group of rows.

        It is None if a row has no pure epsilon above 0, or if the group's epsilon or delta is too large.
        """
        of_a_row = [(self.pure.under(relation), self.delta.under(relation)) for relation in Relation]
        known = [(epsilon, delta) for epsilon, delta in of_a_row if epsilon is not None and delta is not None]
        if not all(epsilon for epsilon, _ in known):
            return ByRelation(None, None)

        def of_group(epsilon: Fraction) -> Fraction | None:
            if epsilon * rows > _LARGEST:
                return None
            delta = max(own * growth_of_delta(of_one, epsilon * rows) for of_one, own in known)
            return delta if delta < 1 else None

        return ByRelation(*(None if e is None or d is None else of_group(e) for e, d in of_a_row))


def growth_of_delta(row: Fraction, group: Fraction) -> Fraction:
    """Return (e**group - 1) / (e**row - 1), rounded up.

    Examples
    --------
    >>> growth_of_delta(Fraction(1), Fraction(1)), float(growth_of_delta(Fraction(1), Fraction(2)))
    (Fraction(1, 1), 3.71828183)
    """
    return Fraction(1) if row == group else round_up(math.expm1(float(group)) / math.expm1(float(row)))


def either_way(pair: ByRelation) -> ByRelation:
    """Return the amounts, with the replace-one amount raised so that it bounds additions and removals too.

    If one of the two amounts is not known (since it needs a public row count), the replace-one amount becomes None.
    """
    added, replaced = pair.add_or_remove_one, pair.replace_one
    return ByRelation(added, None if added is None or replaced is None else max(added, replaced))


def double_at_most(pair: ByRelation) -> ByRelation:
    """Bound a replace-one amount by twice the add-or-remove amount: a replacement is a removal and an addition."""
    added, replaced = pair.add_or_remove_one, pair.replace_one
    if added is None:
        return pair
    return ByRelation(added, 2 * added if replaced is None else min(replaced, 2 * added))


def divide(pair: ByRelation, by: Fraction) -> ByRelation:
    """Divide the amounts under both relations."""
    return pair.map(lambda amount: amount / by)


def times(pair: ByRelation, factor: Fraction) -> ByRelation:
    """Multiply the amounts under both relations."""
    return pair.map(lambda amount: amount * factor)


def half_square(pair: ByRelation) -> ByRelation:
    """Return epsilon**2 / 2, a rho of any mechanism of that pure epsilon (Bun and Steinke 2016, Proposition 1.4)."""
    return pair.map(lambda epsilon: epsilon**2 / 2)
