"""Renyi divergence at one order, at which pure epsilons and rhos add up together (Mironov 2017).

At an order alpha > 1 the Renyi divergence of a release with pure epsilon e and zCDP rho r is at most

    min(e, alpha r)

The reason: the largest log-ratio e bounds every divergence (Mironov 2017, Section III), and zCDP bounds the divergence
by alpha r. At each order these amounts compose like epsilons and rhos, by the rules of `composition`. Sequential and
adaptive composition hold by Mironov's Proposition 1. Parallel parts and branches compose because only the part or
branch concerned contributes. A divergence of k at order alpha gives an epsilon of

    k + log(1 - 1 / alpha) - log(alpha delta) / (alpha - 1)

at delta (Canonne, Kamath and Steinke 2020, Proposition 12). This epsilon is valid at every order, so the best order may
be taken for a plan that was fixed beforehand. At high orders, every release is charged its pure epsilon. At orders
where every release is charged alpha r, the total is the zCDP total. At orders in between, some releases are charged
their epsilon, and the others share one conversion. So for every subset of the releases, the total is at most the
subset's pure epsilons plus the zCDP total of the remaining releases.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import ClassVar, Literal, TypeAlias, final

import attrs

from dpframework.accountant import composition
from dpframework.accountant.base import Accountant
from dpframework.accountant.zcdp import zcdp_to_epsilon
from dpframework.facts.privacy_losses import ByRelation, PrivacyLoss, Relation, convert_above
from dpframework.mechanisms.base import Calibration

FINEST = 1 << 20  # orders are multiples of 1 / FINEST


@attrs.frozen
class OneRelease:
    """The loss of one release at every order, computed from its pure epsilon and its rho."""

    pure: ByRelation
    zcdp: ByRelation

    def at(self, order: Fraction) -> ByRelation:
        """Return the smaller of the epsilon and the order times rho, under each relation."""
        found = []
        for relation in Relation:
            epsilon, rho = self.pure.under(relation), self.zcdp.under(relation)
            known = [one for one in (epsilon, None if rho is None else order * rho) if one is not None]
            found.append(min(known, default=None))
        return ByRelation(*found)


@attrs.frozen
class ComposedCurve:
    """The loss at every order of parts that are composed by one rule of `composition`."""

    rule: Callable[[Sequence[ByRelation]], ByRelation]
    parts: tuple[Curve, ...]

    def at(self, order: Fraction) -> ByRelation:
        """Compose the parts' losses at the order."""
        return self.rule([part.at(order) for part in self.parts])


@attrs.frozen
class SpreadRows:
    """The loss at every order of parts over which several rows of one unit may spread.

    Let a part lose epsilon e and rho r for all rows of a unit. Under add-or-remove, a part with a share x of the rows
    loses at most min(x e, alpha x^2 r) <= x min(e, alpha r), so parts compose as for one row. Under replace-one some
    rows of a part may be replaced and others added. For replaced rows the epsilon may be the smaller bound, and for
    added rows the rho, so the minimum cannot be taken part by part. It is taken once for all parts together: their
    composed epsilon, or the order times their composed rho (see `composition`).
    """

    parts: tuple[Curve, ...]
    pure: ByRelation
    zcdp: ByRelation

    def at(self, order: Fraction) -> ByRelation:
        """Compose the parts' losses at the order."""
        added = composition.parallel([part.at(order) for part in self.parts]).add_or_remove_one
        return ByRelation(added, OneRelease(self.pure, self.zcdp).at(order).replace_one)


@attrs.frozen
class RepeatedCurve:
    """The loss of a part that is released several times."""

    part: Curve
    times: int

    def at(self, order: Fraction) -> ByRelation:
        """Multiply the part's loss at the order."""
        return composition.repeat(self.part.at(order), self.times)


@attrs.frozen
class SampledCurve:
    """The loss at every order of a part on a sample: at most its loss on all rows, and at most its amplified epsilon.

    The first bound holds since two mixtures with the same weights diverge no more than the most distant pair of their
    components (van Erven and Harremoes 2014, Theorem 13). A mechanism of an epsilon has a rho of epsilon**2 / 2.
    """

    part: Curve
    pure: ByRelation
    zcdp: ByRelation

    def at(self, order: Fraction) -> ByRelation:
        """Return the smallest of the bounds at the order."""
        bounds = self.part.at(order).add_or_remove_one, OneRelease(self.pure, self.zcdp).at(order).add_or_remove_one
        return ByRelation(min((bound for bound in bounds if bound is not None), default=None), None)


#: A bound on the Renyi divergence, under both relations, as a function of the order.
Curve: TypeAlias = OneRelease | ComposedCurve | SpreadRows | SampledCurve | RepeatedCurve


NOTIONS: tuple[Literal["pure", "zcdp"], ...] = ("pure", "zcdp")


def _total_in(curve: Curve, notion: Literal["pure", "zcdp"]) -> ByRelation:
    """Return the pure epsilon or the rho of a curve's releases."""
    match curve:
        case OneRelease() | SpreadRows() | SampledCurve():
            one: ByRelation = getattr(curve, notion)
            return one
        case ComposedCurve():
            return curve.rule([_total_in(part, notion) for part in curve.parts])
    return composition.repeat(_total_in(curve.part, notion), curve.times)


@final
class RDPAccountant(Accountant[Curve]):
    """Accounts in Renyi divergence at one order, and converts it to an epsilon at the budget's delta.

    The order is the best one for the first plan that is charged, since it must not depend on releases.
    """

    name: ClassVar[str] = "rdp"
    needs_delta: ClassVar[bool] = True  # at delta 0 the pure accountant is exact
    of_units: ClassVar[bool] = True
    samples_anew: ClassVar[bool] = True
    chosen_plans: ClassVar[bool] = True

    def amount(self, calibration: Calibration | None) -> Curve:
        """Return the step's loss at every order."""
        if calibration is None:
            return OneRelease(ByRelation(None, None), ByRelation(None, None))
        return OneRelease(calibration.losses.pure, calibration.losses.zcdp)

    def sequential(self, parts: Sequence[Curve]) -> Curve:
        """Add up the losses at every order. Equal parts are stored once, with their number."""
        counted = [part if times == 1 else RepeatedCurve(part, times) for part, times in Counter(parts).items()]
        return counted[0] if len(counted) == 1 else ComposedCurve(composition.sequential, tuple(counted))

    def parallel(self, parts: Sequence[Curve]) -> Curve:
        """Compose at every order by `composition.parallel`."""
        return ComposedCurve(composition.parallel, tuple(parts))

    def sample(self, part: Curve, rate: Fraction) -> Curve:
        """Bound the loss by the part's own loss, and by its amplified epsilon."""
        return self._sample(part, composition.sample(_total_in(part, "pure"), rate))

    def sample_of_rows(self, part: Curve, rate: Fraction, rows: int) -> Curve:
        """Bound the loss by the part's own loss, and by the amplified epsilon of its rows."""
        return self._sample(part, composition.amplify_rows(_total_in(part, "pure"), rate, rows))

    def _sample(self, part: Curve, pure: ByRelation) -> Curve:
        if pure.add_or_remove_one is None:
            rho = _total_in(part, "zcdp").add_or_remove_one
            return SampledCurve(part, pure, ByRelation(rho, None))
        return SampledCurve(part, pure, pure.map(lambda epsilon: epsilon**2 / 2))

    def spread(self, parts: Sequence[Curve], rows: int) -> Curve:
        """Compose the curves of all parts by `SpreadRows`."""
        pure, zcdp = (composition.parallel([_total_in(part, n) for part in parts]) for n in NOTIONS)
        return SpreadRows(tuple(parts), pure, zcdp)

    def either(self, parts: Sequence[Curve]) -> Curve:
        """Take the largest loss, at every order."""
        return ComposedCurve(composition.either, tuple(parts))

    def repeat(self, part: Curve, times: int) -> Curve:
        """Multiply the loss by `times`, at every order."""
        return RepeatedCurve(part, times)

    def loss(self, amount: Curve) -> PrivacyLoss | None:
        """Return the epsilon of an amount at the budget's delta.

        Before any plan is charged, the divergence may be just a rho times the order. Then the zCDP accountant's rule
        converts this rho, so that both accountants give the same epsilon.
        """
        order = order_for(self._charged[0] if self._charged else amount, self.relation, self.delta)
        if order is None:
            return None
        divergence, rho = (amount.at(o).under(self.relation) for o in (order, LOWEST))
        if divergence is None:
            return None
        assert rho is not None  # an amount has a divergence at every order or at none
        if not self._charged and divergence * LOWEST == rho * order:
            return PrivacyLoss(zcdp_to_epsilon(rho / LOWEST, self.delta), delta=self.delta)
        return PrivacyLoss(epsilon_at(order, divergence, self.delta), delta=self.delta)


def conversion(order: Fraction, delta: Fraction) -> float:
    """Return what the conversion to an epsilon at delta adds to the Renyi divergence at an order, at least 0.

    Examples
    --------
    >>> round(conversion(Fraction(10), Fraction(1, 10**6)), 4)
    1.1739
    """
    alpha = float(order)
    return max(math.log1p(-1 / alpha) - (math.log(delta) + math.log(alpha)) / (alpha - 1), 0.0)


def epsilon_at(order: Fraction, divergence: Fraction, delta: Fraction) -> Fraction:
    """Return the epsilon at delta of a Renyi divergence at an order. A divergence of 0 gives 0."""
    return convert_above(float(divergence) + conversion(order, delta)) if divergence else Fraction(0)


@functools.lru_cache(maxsize=1024)
def order_for(amount: Curve, relation: Relation, delta: Fraction) -> Fraction | None:
    """Return an order at which an amount has nearly its smallest epsilon at delta; None if it has no epsilon."""
    if amount.at(Fraction(2)).under(relation) is None:
        return None

    def epsilon(order: Fraction) -> float:
        divergence = amount.at(order).under(relation)
        assert divergence is not None  # an amount has a divergence at every order or at none
        return float(divergence) + conversion(order, delta)

    return best_order(epsilon)


@functools.lru_cache(maxsize=1024)
def order_of_largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return approximately the order at which a budget of epsilon and delta admits the largest rho."""
    return best_order(lambda order: (conversion(order, delta) - float(epsilon)) / float(order))


def best_order(cost: Callable[[Fraction], float]) -> Fraction:
    """Return an order with a low cost, found by a search over its distance from 1.

    Every order is valid, so an inexact search only costs a little more. The search finds the best power of two for the
    distance, and then the best exponent in steps of 1/8. If only some releases have a finite pure epsilon, these
    releases are charged their pure epsilon from some order on. The cost may then have a local minimum on each side of
    this order. The steps of 1/8 find the lower minimum.
    """

    def cost_at(exponent: float) -> float:
        return cost(_order(exponent))

    octave = min(range(-10, 21), key=cost_at)
    near = min((octave - 1 + k / 8 for k in range(1, 16)), key=cost_at)
    # A golden-section search finds this minimum more exactly.
    low, high = near - 1 / 8, near + 1 / 8
    ratio = (math.sqrt(5) - 1) / 2
    tried = {x: cost_at(x) for x in (high - ratio * (high - low), low + ratio * (high - low))}
    for _ in range(12):
        left, right = sorted(tried)
        if tried[left] <= tried[right]:
            high, new = right, low + right - left
        else:
            low, new = left, left + high - right
        tried = {x: tried[x] for x in (left, right) if low < x < high} | {new: cost_at(new)}
    return _order(min(tried, key=tried.__getitem__))


def _order(exponent: float) -> Fraction:
    return 1 + Fraction(round(2**exponent * FINEST), FINEST)


#: The lowest multiple of 1 / FINEST above 1.
LOWEST = _order(-20)
