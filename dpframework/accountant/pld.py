"""Privacy loss distributions, composed by dp-accounting.

Each step is an event of dp-accounting: its mechanism's own where that is known to dominate, else any mechanism of
the same pure epsilon. Branches and parts that differ are bounded by the one that dominates all others, if one does:
dropping releases, and noise of a smaller pure epsilon, are post-processing, so an event with more of both dominates
(adaptive composition keeps that: Zhu, Dong and Wang 2022, Theorem 10). Else any mechanism of the largest pure epsilon
bounds them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, final

import attrs

from dpframework.accountant import composition
from dpframework.accountant.base import Accountant
from dpframework.facts.errors import InputError
from dpframework.facts.privacy import ByRelation, PrivacyLoss, Relation, converted_above, float_above
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
    of_units: ClassVar[bool] = True

    @classmethod
    def delta_for(cls, delta: Fraction) -> Fraction | None:
        """Return the study's delta, which must be above 0: at 0 the pure accountant is exact."""
        return delta or None

    def amount(self, calibration: Calibration | None) -> Events:
        """Return the step's events."""
        if calibration is None:
            return Events(None, None, ByRelation(None, None))
        mechanism, pure = calibration.mechanism, calibration.losses.pure
        if calibration.by.rows > 1:  # an event is of one row, and no event is known to dominate what a group changes
            return _any_of(pure)
        added, replaced = (
            mechanism.dp_event(calibration, relation) or _any_pure(pure.under(relation)) for relation in Relation
        )
        if calibration.by.resizes:  # a row may leave, and none come for it
            replaced = _dominating([added, replaced], pure.replace_one)
        return Events(added, replaced, pure)

    def sequential(self, parts: Sequence[Events]) -> Events:
        """Compose the events."""
        return Events(
            _composed([p.add_or_remove_one for p in parts]),
            _composed([p.replace_one for p in parts]),
            composition.sequential([p.pure for p in parts]),
        )

    def either(self, parts: Sequence[Events]) -> Events:
        """Keep the event that dominates all branches, else bound by the largest pure epsilon."""
        pure = composition.either([p.pure for p in parts])
        return Events(
            _dominating([p.add_or_remove_one for p in parts], pure.add_or_remove_one),
            _dominating([p.replace_one for p in parts], pure.replace_one),
            pure,
        )

    def parallel(self, parts: Sequence[Events]) -> Events:
        """Bound the row's own part and, under replace-one, a move between two parts (see `composition.parallel`)."""
        pure = composition.parallel([p.pure for p in parts])
        added = _dominating([p.add_or_remove_one for p in parts], pure.add_or_remove_one)
        moves = _composed([added] * min(len(parts), 2))  # from a lone part a row moves to the rows of no part
        replaced = _dominating([*(p.replace_one for p in parts), moves], pure.replace_one)
        return Events(added, replaced, pure)

    def spread(self, parts: Sequence[Events], rows: int) -> Events:
        """Bound by any mechanism of the pure epsilon; releases that have none, have no claim."""
        pure = composition.parallel([p.pure for p in parts])
        return _any_of(pure)

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


def _any_of(pure: ByRelation) -> Events:
    """Return any mechanism of a pure epsilon."""
    return Events(_any_pure(pure.add_or_remove_one), _any_pure(pure.replace_one), pure)


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


def _dominating(events: Sequence[Any | None], epsilon: Fraction | None) -> Any | None:
    """Return the one event that dominates all, else any mechanism of that pure epsilon, else None."""
    if events and None not in events:
        counted = [_counted([event]) for event in events]
        for event, strong in zip(events, counted, strict=True):
            if all(_dominates(strong, weak) for weak in counted):
                return event
    return _any_pure(epsilon)


def _dominates(strong: Mapping[Any, int], weak: Mapping[Any, int]) -> bool:
    """Tell whether a composition is the other one, besides more releases and larger pure epsilons."""
    if any(strong.get(event, 0) < times for event, times in weak.items() if _pure_of(event) is None):
        return False
    losses = {loss for event in weak if (loss := _pure_of(event)) is not None}
    return all(_at_least(strong, loss) >= _at_least(weak, loss) for loss in losses)


def _at_least(events: Mapping[Any, int], epsilon: float) -> int:
    return sum(times for event, times in events.items() if (_pure_of(event) or 0) >= epsilon)


def _pure_of(event: Any) -> float | None:
    """Return epsilon of an event that tells two answers, as randomized response of that epsilon does; else None.

    So does discrete Laplace noise on an integer that changes by 1: each output is epsilon likelier on one side.
    """
    from dp_accounting.dp_event import DiscreteLaplaceDpEvent

    match event:
        case AnyPure(epsilon=epsilon):
            return epsilon
        case DiscreteLaplaceDpEvent(noise_parameter=epsilon, sensitivity=1):
            return float(epsilon)
    return None
