"""The conversion of events, each of which describes one mechanism's loss, to dp-accounting's loss distributions.

A privacy loss distribution is stored on a grid: its losses are multiples of an interval. dp-accounting places a
mechanism's mass on the grid by the connect-the-dots method (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022). Then
delta is exact at the grid points, and too large between them. The error falls with the square of the interval. The
method takes differences of deltas. Below a delta of `FINEST_DELTA` these differences drown in rounding errors, so
losses are rounded up to the grid instead.

Some mechanisms are known only by a bound on delta as a function of epsilon. Such a bound is enough to make a
distribution that dominates the mechanism (Zhu, Dong and Wang 2022, Proposition 8). `from_bound` makes it, for two kinds
of mechanism:

- **any mechanism with a given rho in zCDP**: delta is at most exp((a - 1) (a rho - epsilon)) (1 - 1/a)**a / (a - 1), at
  every order a > 1 (Canonne, Kamath and Steinke 2020, Proposition 12);
- **Gaussian noise on a fine lattice**: the delta of the continuous Gaussian and a little more (`_of_fine_gaussian`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.mechanisms.gaussian import DiscreteGaussianEvent, FineGaussianEvent

INTERVAL = 1e-3  # the distance between neighbouring privacy losses
FINEST_DELTA = 1e-10  # from this delta on, differences of deltas are accurate in double precision
_DEVIATIONS = 8.5  # a Gaussian loss is kept up to so many deviations on each side; a mass below 1e-17 lies beyond
_TRUNCATED = 11.6  # noise is cut off at this many deviations plus its shift (Canonne et al. 2020)
_LARGEST_LOSS = 700.0  # the largest loss whose exponential fits a double
_ORDERS = np.geomspace(1 / 8, 52, 64)  # values of (order - 1) sqrt(rho) that are tried; the best is in this range
_FINE = 50.0  # up to this pure epsilon, it matters that an event's losses are rounded up to the grid


@final
@attrs.frozen
class AnyPure:
    """The event that dominates every mechanism of a pure epsilon (Kairouz, Oh and Viswanath 2015)."""

    epsilon: float


@final
@attrs.frozen
class AnyRho:
    """The event that stands for every mechanism with a given rho in zCDP."""

    rho: float


@final
@attrs.frozen
class SampledEvent:
    """The event of all releases from one sample. It holds each kind's event, and the number of releases of that kind.

    Each unit is in the sample with probability `rate`.
    """

    rate: float
    events: tuple[tuple[Any, int], ...]


def distribution(events: Mapping[Any, int], *, fine: bool) -> Any:
    """Compose events into one of dp-accounting's distributions.

    Parameters
    ----------
    events
        The single events, each with the number of times that it occurs.
    fine
        Whether to use connect-the-dots, which is accurate for a delta of at least `FINEST_DELTA`. Otherwise losses are
        rounded up.

    Raises
    ------
    InputError
        If an event is of an unknown class.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld

    total = pld.identity(value_discretization_interval=INTERVAL)
    for event, times in events.items():
        single = _single(event, fine)
        total = total.compose(single if times == 1 else single.self_compose(times))
    return total


@functools.lru_cache(maxsize=256)
def _single(event: Any, fine: bool) -> Any:
    """Return the distribution of one event."""
    from dp_accounting.dp_event import DiscreteLaplaceDpEvent, GaussianDpEvent, LaplaceDpEvent
    from dp_accounting.pld import common, privacy_loss_distribution as pld

    how: dict[str, Any] = {"value_discretization_interval": INTERVAL, "use_connect_dots": fine}
    match event:
        case AnyPure(epsilon=epsilon) if fine and epsilon <= _FINE:
            # The worst mechanism with this epsilon has the same losses as discrete Laplace noise on a number that
            # changes by 1.
            return pld.from_discrete_laplace_mechanism(epsilon, 1, **how)
        case AnyPure(epsilon=epsilon):
            return pld.from_privacy_parameters(common.DifferentialPrivacyParameters(epsilon, 0.0), INTERVAL)
        case SampledEvent():
            return _of_sample(event, fine)
        case AnyRho(rho=rho):
            return _of_rho(rho)
        case DiscreteLaplaceDpEvent():
            return pld.from_discrete_laplace_mechanism(event.noise_parameter, event.sensitivity, **how)
        case DiscreteGaussianEvent(sigma=sigma, shift=shift):
            furthest = math.ceil(_TRUNCATED * sigma) + shift if shift > 1 else None  # less than 1e-30 lies beyond
            return pld.from_discrete_gaussian_mechanism(sigma, shift, furthest, **how)
        case FineGaussianEvent():
            return _of_fine_gaussian(event)
        case LaplaceDpEvent():
            return pld.from_laplace_mechanism(event.noise_multiplier, **how)
        case GaussianDpEvent():
            return pld.from_gaussian_mechanism(event.noise_multiplier, **how)
    raise InputError(
        f"PLD accounting knows no {type(event).__name__}; a mechanism may return a Laplace or Gaussian event"
    )


def _of_fine_gaussian(event: FineGaussianEvent) -> Any:
    """Return a distribution that dominates Gaussian noise on a fine lattice.

    Its losses are those of continuous Gaussian noise plus twice the event's slack, and infinite with a probability of
    about the slack.

    Let P and Q be the distributions of discrete noise on two neighbours, and P' and Q' those of continuous noise
    rounded to the lattice. The probabilities of P and P', and of Q and Q', differ by factors of at most exp(+-slack).
    Write y+ for the larger of y and 0. Delta at epsilon is the mean under P of f = (1 - e**epsilon Q / P)+, and f is at
    most f' = (1 - e**(epsilon - 2 slack) Q' / P')+. As f' is between 0 and 1, the mean of 1 - f' under P is at least
    exp(-slack) times its mean under P'. So delta is at most 1 - exp(-slack) + exp(-slack) delta'(epsilon - 2 slack),
    where delta' is the delta of rounded continuous noise. Rounding is post-processing, so delta' is at most the delta
    of continuous noise, which is used.
    """
    from scipy.special import log_ndtr, ndtr

    mean = 1 / event.noise_multiplier
    low, high = (mean**2 / 2 + sign * _DEVIATIONS * mean for sign in (-1, 1))
    first, last = math.floor(low / INTERVAL), math.ceil(high / INTERVAL)
    epsilons = np.arange(first, last + 1) * INTERVAL - 2 * event.slack
    deltas = ndtr(mean / 2 - epsilons / mean) - np.exp(epsilons + log_ndtr(-mean / 2 - epsilons / mean))
    infinite = -math.expm1(-event.slack)
    return from_bound(first, infinite + (1 - infinite) * deltas)


def _of_rho(rho: float) -> Any:
    """Return a distribution that dominates every mechanism of a rho, from the smallest of the bounds at many orders."""
    furthest = rho + 2 * math.sqrt(40 * rho)  # beyond it delta is below e**-40
    last = math.ceil(min(furthest, _LARGEST_LOSS) / INTERVAL)
    orders = 1 + _ORDERS / math.sqrt(rho)
    epsilons = np.arange(last + 1) * INTERVAL
    deltas = np.ones(len(epsilons))
    for order in orders:
        log = (order - 1) * (order * rho - epsilons) + order * math.log1p(-1 / order) - math.log(order - 1)
        deltas = np.minimum(deltas, np.exp(np.minimum(log, 0)))
    mirrored = -np.expm1(-epsilons[:0:-1]) + np.exp(-epsilons[:0:-1]) * deltas[:0:-1]  # P and Q exchanged
    return from_bound(-last, np.concatenate([mirrored, deltas]))


def _of_sample(event: SampledEvent, fine: bool) -> Any:
    """Return the distribution of events on a sample, under add-or-remove.

    Let the pair P, Q dominate the events: P with the unit, Q without. Let q be the rate. On a sample, the pair
    (q P + (1 - q) Q, Q) dominates if the unit is removed. If it is added, the pair (Q, q P + (1 - q) Q) dominates (Zhu,
    Dong and Wang 2022, Theorem 11). Let x = e**epsilon. The hockey-stick divergence of the first pair at x is q times
    the divergence of P, Q at y = 1 + (x - 1) / q, or 1 - x if y is not positive. Let r = 1 - (1 - q) x. The divergence
    of the reverse pair at x is r times that of Q, P at q x / r, or 0 if r is not positive.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld

    whole = distribution(dict(event.events), fine=fine)
    rate, last = event.rate, _furthest(whole)
    epsilons = np.arange(-last, last + 1) * INTERVAL
    least = np.maximum(-np.expm1(epsilons), 0)  # every pair of distributions has at least this delta
    removed, added = least.copy(), least.copy()
    inside = np.expm1(epsilons) > -rate
    removed[inside] = rate * whole.get_delta_for_epsilon(np.log1p(np.expm1(epsilons[inside]) / rate))
    rest = rate - (1 - rate) * np.expm1(epsilons)
    inside = rest > 0
    inner = math.log(rate) + epsilons[inside] - np.log(rest[inside])
    added[inside] = rest[inside] * whole.get_delta_for_epsilon(inner)
    removed, added = np.maximum(removed, least), np.maximum(added, least)
    return pld.PrivacyLossDistribution(_pmf(-last, removed), _pmf(-last, added))


def _furthest(whole: Any) -> int:
    """Return an epsilon, in intervals, beyond which nearly all of delta comes from infinite losses."""
    low = whole.get_delta_for_epsilon(_LARGEST_LOSS)
    furthest = 1.0
    while furthest < _LARGEST_LOSS and whole.get_delta_for_epsilon(furthest) > low + 1e-16:
        furthest *= 1.5
    return math.ceil(min(furthest, _LARGEST_LOSS) / INTERVAL)


def from_bound(first: int, deltas: NDArray[np.float64]) -> Any:
    """Return a distribution that dominates a mechanism in both directions, from upper bounds on its delta.

    A mechanism's delta is convex in e**epsilon, and is 1 at e**epsilon = 0. So the convex hull of the bounds is also an
    upper bound, even between the given epsilons.

    Parameters
    ----------
    first
        The smallest epsilon, as a multiple of `INTERVAL`. The next epsilons follow at distances of one interval.
    deltas
        The upper bounds on delta at these epsilons, shape (epsilons,).
    """
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.PrivacyLossDistribution(_pmf(first, deltas))


def _pmf(first: int, deltas: NDArray[np.float64]) -> Any:
    """Return probabilities of losses, by connect-the-dots on the convex hull of bounds."""
    from dp_accounting.pld import pld_pmf

    epsilons = np.arange(first, first + len(deltas))
    hull = _convex(np.exp(epsilons * INTERVAL), np.minimum.accumulate(np.minimum(deltas, 1.0)))
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
        INTERVAL, first, first + len(deltas) - 1, np.minimum.accumulate(hull)
    )


def _convex(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the largest convex function through (0, 1) that is at most y at x."""
    kept: list[tuple[float, float]] = [(0.0, 1.0)]
    for right in zip(x.tolist(), y.tolist(), strict=True):
        while len(kept) > 1:
            left, middle = kept[-2:]
            if (middle[1] - left[1]) * (right[0] - left[0]) < (right[1] - left[1]) * (middle[0] - left[0]):
                break
            kept.pop()  # the middle point is on or above the line between its neighbours
        kept.append(right)
    return np.asarray(np.interp(x, *np.array(kept).T))
