"""Privacy loss distributions, composed by dp-accounting.

Each step becomes an event, dp-accounting's description of a mechanism's loss. If the mechanism's own event is known to
dominate the step's loss, it is used. Otherwise the event of the worst mechanism with the same pure epsilon is used or,
without a pure epsilon, the event of the worst mechanism with the same rho.

Branches and parts that differ are bounded by one of their events, if it dominates all others. An event is known to
dominate another event if it contains all releases of that event, each with the same or a larger pure epsilon. The
reason: dropping some releases and adding noise to others is post-processing. Adaptive composition preserves this order
(Zhu, Dong and Wang 2022, Theorem 10). If no event dominates, branches and parts are bounded by the worst mechanism of
their composed pure epsilon, or else of their composed rho (see `composition`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, final

import attrs

from dpframework.accountant import composition
from dpframework.accountant.base import Accountant
from dpframework.accountant.event_distributions import FINEST_DELTA, AnyPure, AnyRho, SampledEvent, distribution
from dpframework.accountant.pure import UNCLAIMED
from dpframework.facts.privacy_losses import ByRelation, PrivacyLoss, Relation, convert_above, float_above
from dpframework.mechanisms.base import Calibration
from dpframework.mechanisms.gaussian import DiscreteGaussianEvent, FineGaussianEvent


@attrs.frozen
class Events:
    """The event, pure epsilon and rho of some releases under each relation. None without a valid claim."""

    add_or_remove_one: Any | None
    replace_one: Any | None
    pure: ByRelation
    zcdp: ByRelation

    def under(self, relation: Relation) -> Any | None:
        """Return the event under a relation."""
        return self.add_or_remove_one if relation is Relation.ADD_OR_REMOVE_ONE else self.replace_one


@final
class PLDAccountant(Accountant[Events]):
    """Accounts in privacy loss distributions, and reports epsilon at its delta."""

    name: ClassVar[str] = "pld"
    needs_delta: ClassVar[bool] = True  # at delta 0 the pure accountant is exact
    of_units: ClassVar[bool] = True

    def amount(self, calibration: Calibration | None) -> Events:
        """Return the step's events."""
        if calibration is None:
            return Events(None, None, UNCLAIMED, UNCLAIMED)
        mechanism, losses = calibration.mechanism, calibration.losses
        bounded = _worst_events(losses.pure, losses.zcdp)
        event = mechanism.dp_event if calibration.by.rows == 1 else mechanism.unit_event
        added, replaced = (event(calibration, relation) or bounded.under(relation) for relation in Relation)
        if calibration.by.resizes:  # a row may leave without another one in its place
            replaced = _dominating([added, replaced], losses.pure.replace_one, losses.zcdp.replace_one)
        return Events(added, replaced, losses.pure, losses.zcdp)

    def sequential(self, parts: Sequence[Events]) -> Events:
        """Compose the events."""
        return Events(
            _compose([p.add_or_remove_one for p in parts]),
            _compose([p.replace_one for p in parts]),
            composition.sequential([p.pure for p in parts]),
            composition.sequential([p.zcdp for p in parts]),
        )

    def repeat(self, part: Events, times: int) -> Events:
        """Multiply the number of times that each event occurs."""
        from dp_accounting import SelfComposedDpEvent

        events = (part.under(relation) for relation in Relation)
        added, replaced = (None if one is None else _compose([SelfComposedDpEvent(one, times)]) for one in events)
        return Events(added, replaced, composition.repeat(part.pure, times), composition.repeat(part.zcdp, times))

    def either(self, parts: Sequence[Events]) -> Events:
        """Return the event of a branch that dominates all others, or else the event of the largest epsilon or rho."""
        pure, zcdp = composition.either([p.pure for p in parts]), composition.either([p.zcdp for p in parts])
        return Events(
            _dominating([p.add_or_remove_one for p in parts], pure.add_or_remove_one, zcdp.add_or_remove_one),
            _dominating([p.replace_one for p in parts], pure.replace_one, zcdp.replace_one),
            pure,
            zcdp,
        )

    def parallel(self, parts: Sequence[Events]) -> Events:
        """Bound a change within one part and, under replace-one, a row's move between two parts."""
        pure, zcdp = composition.parallel([p.pure for p in parts]), composition.parallel([p.zcdp for p in parts])
        added = _dominating([p.add_or_remove_one for p in parts], pure.add_or_remove_one, zcdp.add_or_remove_one)
        # If only one part is given, a row may still leave it, since some rows may be in no part.
        moves = _compose([added] * min(len(parts), 2))
        replaced = _dominating([*(p.replace_one for p in parts), moves], pure.replace_one, zcdp.replace_one)
        return Events(added, replaced, pure, zcdp)

    def spread(self, parts: Sequence[Events], rows: int) -> Events:
        """Return the event of the part that dominates all others, if the proof below covers this event.

        Otherwise the bound is the event of the composed pure epsilon or rho.

        *Proof.* Let part j have r_j of the unit's k rows. The events of the strongest part, with r_j in place of k,
        dominate its releases. Each event is one of three: noise on an integer that moves by r_j, any mechanism of
        r_j / k times the epsilon, or any mechanism of (r_j / k)**2 times the rho. Releases of different parts are
        independent, given earlier releases. So for each event the parts compose to noise on an integer that moves by
        the sum of all r_j (see `unit_shifts`), to any mechanism of the summed epsilons, or to any mechanism of the
        summed rhos. The r_j sum to at most k, so in each case the event for k rows dominates. Nothing is proved if
        parts draw samples, or for noise on fine lattices, whose slack grows with the number of parts.

        Under replace-one rows may leave any part and enter any other. Over all parts, the integers that fall do so by
        at most k in all, and so do the integers that rise. If all events are noise on integers, the event composed with
        itself bounds both.
        """
        pure, zcdp = composition.parallel([p.pure for p in parts]), composition.parallel([p.zcdp for p in parts])
        added, replaced = (
            _worst_event(pure.add_or_remove_one, zcdp.add_or_remove_one),
            _worst_event(pure.replace_one, zcdp.replace_one),
        )
        strongest = _dominating([p.add_or_remove_one for p in parts], None, None)
        if strongest is not None:
            added = strongest if _are_shifts(strongest, AnyPure, AnyRho) else added
            if all(_are_shifts(one) for one in (strongest, *(p.replace_one for p in parts))):
                replaced = _compose([strongest, strongest])
        return Events(added, replaced, pure, zcdp)

    def sample(self, part: Events, rate: Fraction) -> Events:
        """Return the part's events on a sample, the amplified epsilon, and the part's own rho."""
        pure, zcdp = composition.sample(part.pure, rate), ByRelation(part.zcdp.add_or_remove_one, None)
        if part.add_or_remove_one is None:
            return Events(None, None, pure, zcdp)
        counts = sorted(_count_events([part.add_or_remove_one]).items(), key=repr)
        return Events(SampledEvent(float(rate), tuple(counts)), None, pure, zcdp)

    def sample_of_rows(self, part: Events, rate: Fraction, rows: int) -> Events:
        """Return the event of any mechanism of the amplified epsilon, or else of the part's own rho."""
        rho = ByRelation(part.zcdp.add_or_remove_one, None)
        return _worst_events(composition.amplify_rows(part.pure, rate, rows), rho)

    def loss(self, amount: Events) -> PrivacyLoss | None:
        """Return epsilon at the accountant's delta."""
        event = amount.under(self.relation)
        pure = amount.pure.under(self.relation)
        if event is None:
            return None
        # Two epsilons are valid, and the smaller one is returned. The first composes all events. The second adds the
        # pure epsilons to the total of the other events. A pure release adds at most its epsilon to every loss, so
        # apart from rounding the second is never smaller. But if pure epsilons are too large for a distribution, only
        # the second is finite.
        counts = _count_events([event])
        added = {one: Fraction(e) * times for one, times in counts.items() if (e := _pure_of(one)) is not None}
        rest = {one: times for one, times in counts.items() if one not in added}
        epsilon = _epsilon(tuple(counts.items()), self.delta)
        if added and rest:
            beside = float_above(sum(added.values(), Fraction(0)))
            epsilon = min(epsilon, beside + _epsilon(tuple(rest.items()), self.delta))
        if not math.isfinite(epsilon):
            # The delta is below the tail that dp-accounting cuts off.
            return None
        converted = convert_above(epsilon)
        return PrivacyLoss(epsilon=converted if pure is None else min(converted, pure), delta=self.delta)


#: A bound on the error of delta that each composition of distributions adds. dp-accounting composes them by Fourier
#: transforms in double precision. Their errors are absolute, so they matter where delta is small. 2**-52 for each
#: composition is 20 times the largest error that was seen.
COMPOSITION_ERROR = 2.0**-52
LARGEST_LOSS = 700  # the largest loss whose exponential fits a double; a larger one protects nobody


def _fits_distribution(events: Iterable[tuple[Any, int]]) -> bool:
    """Tell whether the losses of events, sampled ones too, are small enough for a distribution."""
    losses = 0.0
    for event, times in events:
        if isinstance(event, SampledEvent) and not _fits_distribution(event.events):
            return False
        losses += _loss_of(event) * times
    return losses <= LARGEST_LOSS


def _loss_of(event: Any) -> float:
    """Return an event's pure epsilon, or else its rho (for Gaussian noise the mean of its losses), or 0 if unknown."""
    from dp_accounting.dp_event import DiscreteLaplaceDpEvent, GaussianDpEvent

    match event:
        case DiscreteLaplaceDpEvent():
            return float(event.noise_parameter * event.sensitivity)
        case DiscreteGaussianEvent(sigma=sigma, shift=shift):
            return float((shift / sigma) ** 2 / 2)
        case GaussianDpEvent() | FineGaussianEvent():
            return float(event.noise_multiplier**-2 / 2) if event.noise_multiplier else math.inf
        case AnyRho(rho=rho):
            return rho
    epsilon = _pure_of(event)
    return 0.0 if epsilon is None else epsilon


@functools.lru_cache(maxsize=1024)
def _epsilon(events: tuple[tuple[Any, int], ...], delta: Fraction) -> float:
    """Return the epsilon at delta of composed events, each given with how often it occurs.

    The epsilon is infinite if the losses are too large for a distribution, or if delta is not above the error of the
    compositions. It is cached, since every reader of a plan asks for the same number.
    """
    if not events:
        return 0.0
    left = float(delta) - COMPOSITION_ERROR * _count_compositions(events)
    if left <= 0 or not _fits_distribution(events):
        return math.inf
    return float(distribution(dict(events), fine=float(delta) >= FINEST_DELTA).get_epsilon_for_delta(left))


def _count_compositions(events: Iterable[tuple[Any, int]]) -> int:
    """Return how many distributions are composed, also on samples. A single one needs no transform."""
    counted = list(events)
    inner = sum(_count_compositions(event.events) for event, _ in counted if isinstance(event, SampledEvent))
    composed = sum(times for _, times in counted)
    return inner + (composed if composed > 1 else 0)


def _worst_event(epsilon: Fraction | None, rho: Fraction | None) -> Any | None:
    """Return the event of any mechanism of a pure epsilon, or else of a rho; None if both are None."""
    if epsilon is not None:
        return AnyPure(float_above(epsilon))
    return None if rho is None else AnyRho(float_above(rho))


def _worst_events(pure: ByRelation, zcdp: ByRelation) -> Events:
    """Return the events of any mechanism of a pure epsilon, or else of a rho."""
    added, replaced = (_worst_event(pure.under(relation), zcdp.under(relation)) for relation in Relation)
    return Events(added, replaced, pure, zcdp)


def _count_events(events: Sequence[Any]) -> dict[Any, int]:
    """Return the single events in some compositions, each with the number of times that it occurs."""
    import dp_accounting

    counts: dict[Any, int] = {}
    for event in events:
        match event:
            case dp_accounting.NoOpDpEvent():
                inner = {}
            case dp_accounting.ComposedDpEvent():
                inner = _count_events(event.events)
            case dp_accounting.SelfComposedDpEvent():
                inner = {one: times * event.count for one, times in _count_events([event.event]).items()}
            case _:
                inner = {event: 1}
        for one, times in inner.items():
            counts[one] = counts.get(one, 0) + times
    return counts


def _are_shifts(event: Any | None, *kinds: type[Any]) -> bool:
    """Tell whether an event is known and consists only of noise on integers that move, and of events of these kinds."""
    from dp_accounting.dp_event import DiscreteLaplaceDpEvent

    known = (DiscreteGaussianEvent, DiscreteLaplaceDpEvent, *kinds)
    return event is not None and all(isinstance(one, known) for one in _count_events([event]))


def _compose(events: Sequence[Any | None]) -> Any | None:
    """Compose events in a canonical form, so that equal multisets compare equal."""
    import dp_accounting

    known = [event for event in events if event is not None]
    if len(known) < len(events):
        return None
    counts = sorted(_join(_count_events(known)).items(), key=repr)
    made = [one if times == 1 else dp_accounting.SelfComposedDpEvent(one, times) for one, times in counts]
    return made[0] if len(made) == 1 else dp_accounting.ComposedDpEvent(made) if made else dp_accounting.NoOpDpEvent()


def _join(counts: Mapping[Any, int]) -> dict[Any, int]:
    """Return the events, with all events that are known only by a rho joined into one, since rhos add up exactly."""
    rhos = [event.rho * times for event, times in counts.items() if isinstance(event, AnyRho)]
    others = {event: times for event, times in counts.items() if not isinstance(event, AnyRho)}
    return {**others, AnyRho(math.fsum(rhos) * (1 + 2**-50)): 1} if rhos else others


def _dominating(events: Sequence[Any | None], epsilon: Fraction | None, rho: Fraction | None) -> Any | None:
    """Return the event that dominates all others, or else the event of the pure epsilon or rho."""
    if events and None not in events:
        counted = [_count_events([event]) for event in events]
        for event, strong in zip(events, counted, strict=True):
            if all(_dominates(strong, weak) for weak in counted):
                return event
    return _worst_event(epsilon, rho)


def _dominates(strong: Mapping[Any, int], weak: Mapping[Any, int]) -> bool:
    """Tell whether `strong` contains all releases of `weak`, each with the same or a larger pure epsilon."""
    if any(strong.get(event, 0) < times for event, times in weak.items() if _pure_of(event) is None):
        return False
    losses = {loss for event in weak if (loss := _pure_of(event)) is not None}
    return all(_count_at_least(strong, loss) >= _count_at_least(weak, loss) for loss in losses)


def _count_at_least(events: Mapping[Any, int], epsilon: float) -> int:
    return sum(times for event, times in events.items() if (own := _pure_of(event)) is not None and own >= epsilon)


def _pure_of(event: Any) -> float | None:
    """Return the epsilon of an event that is equivalent to randomized response, else None.

    Discrete Laplace noise on an integer that changes by 1 is such an event: each output is more likely on one of two
    neighbours, by a factor of exactly e**epsilon.
    """
    from dp_accounting.dp_event import DiscreteLaplaceDpEvent

    match event:
        case AnyPure(epsilon=epsilon):
            return epsilon
        case DiscreteLaplaceDpEvent(noise_parameter=epsilon, sensitivity=1):
            return float(epsilon)
    return None
