"""Privacy loss distributions, composed by dp-accounting.

Each step is an event of dp-accounting: its mechanism's own where that is known to dominate, else any mechanism of
the same pure epsilon. Branches and parts that differ are bounded by any mechanism of the largest pure epsilon.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, final

import attrs

from dpframework.accountant import composition
from dpframework.accountant.base import Accountant
from dpframework.accountant.zcdp import require_delta
from dpframework.facts.errors import InputError
from dpframework.facts.privacy import Amount, ByRelation, PrivacyLoss, Relation, converted_above, float_above
from dpframework.mechanisms.base import Calibration
from dpframework.mechanisms.gaussian import DiscreteGaussianEvent


@attrs.frozen
class Events:
    """One event under each relation (None: no valid claim), with the pure epsilons beside them."""

    add_or_remove_one: Any | None
    replace_one: Any | None
    pure: ByRelation


@final
class PLDAccountant(Accountant[Events]):
    """Accounts in privacy loss distributions, and reports epsilon at its delta."""

    name: ClassVar[str] = "pld"

    def __init__(self, relation: Relation | str, *, epsilon: Amount | None = None, delta: Amount = 0) -> None:
        super().__init__(relation, epsilon=epsilon, delta=delta)
        require_delta(self.delta, self.name)

    def amount(self, calibration: Calibration | None) -> Events:
        """Return the step's events."""
        if calibration is None:
            return Events(None, None, ByRelation(None, None))
        mechanism = calibration.mechanism
        added, replaced = (
            mechanism.dp_event(calibration, relation) or _any_pure(calibration.losses.pure.under(relation))
            for relation in (Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE)
        )
        return Events(added, replaced, calibration.losses.pure)

    def sequential(self, parts: Sequence[Events]) -> Events:
        """Compose the events."""
        return Events(
            _composed([p.add_or_remove_one for p in parts]),
            _composed([p.replace_one for p in parts]),
            composition.sequential([p.pure for p in parts]),
        )

    def either(self, parts: Sequence[Events]) -> Events:
        """Keep an event that all branches share, else bound by the largest pure epsilon."""
        pure = composition.either([p.pure for p in parts])
        return Events(
            _shared([p.add_or_remove_one for p in parts], pure.add_or_remove_one),
            _shared([p.replace_one for p in parts], pure.replace_one),
            pure,
        )

    def parallel(self, parts: Sequence[Events]) -> Events:
        """Bound the row's own part and, under replace-one, a move between two parts (see `composition.parallel`)."""
        pure = composition.parallel([p.pure for p in parts])
        added = _shared([p.add_or_remove_one for p in parts], pure.add_or_remove_one)
        moves = _composed([added] * min(len(parts), 2))  # from a lone part a row moves to the rows of no part
        replaced = _shared([*(p.replace_one for p in parts), moves], pure.replace_one)
        return Events(added, replaced, pure)

    def loss(self, amount: Events) -> PrivacyLoss | None:
        """Return epsilon at the accountant's delta."""
        event = amount.add_or_remove_one if self.relation is Relation.ADD_OR_REMOVE_ONE else amount.replace_one
        pure = amount.pure.under(self.relation)
        if event is None or (pure is not None and pure > LARGEST_PURE):
            return None
        epsilon = float(_distribution(event).get_epsilon_for_delta(float(self.delta)))
        if not math.isfinite(epsilon):
            return None  # delta is below the tail that dp-accounting cuts off
        converted = converted_above(epsilon)
        return PrivacyLoss(epsilon=converted if pure is None else min(converted, pure), delta=self.delta)


@attrs.frozen
class AnyPure:
    """Any mechanism of a pure epsilon: the event that dominates them all (Kairouz, Oh and Viswanath 2015)."""

    epsilon: float


LARGEST_PURE = 1000  # a distribution over more than that fills the memory and protects nobody
_INTERVAL = 1e-3  # of privacy loss; dp-accounting rounds up to it, so a coarser one is valid but looser


@functools.lru_cache(maxsize=256)
def _single(event: Any) -> Any:
    """Return dp-accounting's privacy loss distribution of one event."""
    from dp_accounting.dp_event import DiscreteLaplaceDpEvent, GaussianDpEvent, LaplaceDpEvent
    from dp_accounting.pld import common, privacy_loss_distribution as pld

    match event:
        case AnyPure(epsilon=epsilon):
            return pld.from_privacy_parameters(common.DifferentialPrivacyParameters(epsilon, 0.0), _INTERVAL)
        case DiscreteLaplaceDpEvent():
            return pld.from_discrete_laplace_mechanism(
                event.noise_parameter, event.sensitivity, value_discretization_interval=_INTERVAL
            )
        case DiscreteGaussianEvent(sigma=sigma):
            return pld.from_discrete_gaussian_mechanism(sigma, value_discretization_interval=_INTERVAL)
        case LaplaceDpEvent():
            return pld.from_laplace_mechanism(event.noise_multiplier, value_discretization_interval=_INTERVAL)
        case GaussianDpEvent():
            return pld.from_gaussian_mechanism(event.noise_multiplier, value_discretization_interval=_INTERVAL)
    raise InputError(
        f"PLD accounting knows no {type(event).__name__}; a mechanism may return a Laplace or Gaussian event"
    )


def _distribution(event: Any) -> Any:
    """Compose an event's parts."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    total = pld.identity(value_discretization_interval=_INTERVAL)
    for single, times in _counted([event]).items():
        total = total.compose(_single(single).self_compose(times))
    return total


def _any_pure(epsilon: Fraction | None) -> Any | None:
    return None if epsilon is None else AnyPure(float_above(epsilon))


def _counted(events: Sequence[Any]) -> dict[Any, int]:
    """Return the single events of compositions, each with how often it occurs."""
    import dp_accounting

    counts: dict[Any, int] = {}
    for event in events:
        match event:
            case dp_accounting.NoOpDpEvent():
                inner = {}
            case dp_accounting.ComposedDpEvent():
                inner = _counted(event.events)
            case dp_accounting.SelfComposedDpEvent():
                inner = {one: times * event.count for one, times in _counted([event.event]).items()}
            case _:
                inner = {event: 1}
        for one, times in inner.items():
            counts[one] = counts.get(one, 0) + times
    return counts


def _composed(events: Sequence[Any | None]) -> Any | None:
    """Compose events in a canonical form, so that equal multisets compare equal."""
    import dp_accounting

    known = [event for event in events if event is not None]
    if len(known) < len(events):
        return None
    counts = sorted(_counted(known).items(), key=repr)
    made = [one if times == 1 else dp_accounting.SelfComposedDpEvent(one, times) for one, times in counts]
    return made[0] if len(made) == 1 else dp_accounting.ComposedDpEvent(made) if made else dp_accounting.NoOpDpEvent()


def _shared(events: Sequence[Any | None], epsilon: Fraction | None) -> Any | None:
    """Return the one event that all are, else any mechanism of that pure epsilon, else None."""
    if events and all(event == events[0] for event in events):
        return events[0]
    return _any_pure(epsilon)
