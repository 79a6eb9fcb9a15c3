"""The distinguishing test, which finds a lower bound on epsilon from many runs on two neighbouring tables.

The test is for outputs whose density nobody can write down. One half of the runs serves to choose an event, a set of
outputs. The other half bounds the probabilities of this event on both tables (Clopper and Pearson 1934). Sources:
Jagielski, Ullman and Oprea 2020; Ding et al. 2018.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import attrs
import numpy as np

from dpframework.facts.errors import InputError

FALSE_ALARM = 1e-6  # the largest probability with which the bound on epsilon is wrong
MOST_CUTS = 40  # how many thresholds, and how many values, are tried as events for one number or text of the output


@final
@attrs.frozen
class DistinguishingEvent:
    """The event that tells the outputs of two tables apart best.

    Attributes
    ----------
    epsilon
        A lower bound on the epsilon of the runs, for the delta given; 0 if nothing is proved.
    delta
        The delta for which the bound holds.
    event
        The event that proves the bound, in words.
    here, there
        In how many runs on the first table, and on the second table, the event happened.
    runs
        The number of runs on each table in which the event was counted: half of all runs.
    confidence
        The probability with which the bound holds.
    """

    epsilon: float
    delta: float
    event: str
    here: int
    there: int
    runs: int
    confidence: float

    def __str__(self) -> str:
        """Write one sentence."""
        if not self.epsilon:
            return f"nothing is told apart in 2 x {self.runs} runs"
        return (
            f"epsilon is at least {self.epsilon:.4g} (delta {self.delta:g}): {self.event} happened in {self.here} and "
            f"{self.there} of {self.runs} runs"
        )


def distinguish(
    one: Callable[[int], Any],
    other: Callable[[int], Any],
    *,
    runs: int = 4_000,
    delta: float = 0.0,
    seed: int = 0,
) -> DistinguishingEvent:
    """Bound epsilon from below by running on two neighbouring tables many times.

    Parameters
    ----------
    one, other
        Functions that run on the first and on the second table with a given seed, and return the output: numbers,
        arrays, texts, or mappings and sequences of these.
    runs
        How many runs on each table; half of them choose the event.
    delta
        The delta of the claim that is tested.
    seed
        The seed of the first run. The other runs get the seeds that follow it.

    Raises
    ------
    InputError
        If `runs` is below 100.
    """
    if runs < 100:
        raise InputError(f"runs is {runs}; at least 100 are needed to bound anything")
    # On the runs that choose an event, it seems to tell more than it does. So it is counted on the other half.
    half = runs // 2
    outputs = [[features(run(seed + 2 * k + side)) for k in range(2 * half)] for side, run in enumerate((one, other))]
    names = sorted({name for side in outputs for output in side for name in output})
    chosen: tuple[float, _Event, int] | None = None
    for event in _events(outputs[0][:half] + outputs[1][:half], names):
        counts = [sum(map(event.occurs_in, side[:half])) for side in outputs]
        for k in (0, 1):
            promise = _bound(counts[k], counts[1 - k], half, delta, 0.05)
            if chosen is None or promise > chosen[0]:
                chosen = promise, event, k
    if chosen is None:
        return DistinguishingEvent(0.0, delta, "", 0, 0, half, 1 - FALSE_ALARM)
    _, event, k = chosen
    counts = [sum(map(event.occurs_in, side[half:])) for side in outputs]
    epsilon = _bound(counts[k], counts[1 - k], half, delta, FALSE_ALARM)
    return DistinguishingEvent(max(epsilon, 0.0), delta, event.text, counts[0], counts[1], half, 1 - FALSE_ALARM)


def _bound(often: int, seldom: int, runs: int, delta: float, false_alarm: float) -> float:
    """Return a lower bound on epsilon, log((p - delta) / q), from how often an event happened on two tables.

    Here p is a lower bound on its probability on the table where it happened `often` times, and q an upper bound on its
    probability on the table where it happened `seldom` times. Each bound is wrong with probability at most
    `false_alarm` / 2.
    """
    from scipy.stats import beta

    p = float(beta.ppf(false_alarm / 2, often, runs - often + 1)) if often else 0.0
    q = float(beta.isf(false_alarm / 2, seldom + 1, runs - seldom)) if seldom < runs else 1.0
    return math.log((p - delta) / q) if p > delta else 0.0


@final
@attrs.frozen
class _Event:
    """The event that a feature, one named number or text of the output, has a value or is at most a number."""

    name: str
    value: Any
    below: bool

    def occurs_in(self, output: Mapping[str, Any]) -> bool:
        if self.name not in output:
            return False
        held = output[self.name]
        if not self.below:
            return bool(held == self.value)
        return isinstance(held, float) and held <= self.value

    @property
    def text(self) -> str:
        return f"{self.name or 'the output'} {'<=' if self.below else '='} {str(self.value)[:80]}"


def _events(outputs: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[_Event]:
    events = []
    for name in names:
        values = [output[name] for output in outputs if name in output]
        numbers = np.array([value for value in values if isinstance(value, float)])
        known = numbers[~np.isnan(numbers)]
        if len(known):
            cuts = np.unique(np.quantile(known, np.linspace(0, 1, MOST_CUTS), method="lower"))
            events += [_Event(name, float(cut), True) for cut in cuts]
        kinds = dict.fromkeys(values[:500])
        events += [_Event(name, value, False) for value in list(kinds)[:MOST_CUTS]]
    return events


def features(output: Any, name: str = "") -> dict[str, Any]:
    """Return an output as named numbers and texts: the whole of it, by the name "", and each of its parts.

    Examples
    --------
    >>> features({"a": [1, 2]})
    {'': "{'a': [1, 2]}", '.a.0': 1.0, '.a.1': 2.0}
    """
    found: dict[str, Any] = {name: str(output)} if not name else {}
    if isinstance(output, bool | str) or output is None:
        return {**found, name: str(output)}
    if isinstance(output, int | float | np.generic):
        return {**found, name: float(output)}
    if isinstance(output, np.ndarray):
        found[f"{name}.shape"] = str(output.shape)
        output = list(output.ravel())
    if isinstance(output, Mapping | list | tuple):
        for key, part in output.items() if isinstance(output, Mapping) else enumerate(output):
            found |= features(part, f"{name}.{key}")
        return found
    if hasattr(output, "to_dict"):
        return found | features(output.to_dict(), name or ".")
    return {**found, name or ".": str(output)}
