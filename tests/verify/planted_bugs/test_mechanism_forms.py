"""Mechanisms of other forms: wrong at other parameters, in ties, or in what they state of their noise.

Each wrong mechanism is planted beside a right one. Further right mechanisms show that their form is no mistake.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from verify.bug_version import Version
from verify.planted_bugs.test_unusual_answers import ByCell, RealLaplace, Softmax

import dpframework as dpf
from dpframework.facts.privacy_losses import ByRelation
from dpframework.mechanisms import Gaussian, Laplace, Losses, Mechanism, Preview, PureMechanism
from dpframework.mechanisms.gaussian import DiscreteGaussianEvent
from dpframework.mechanisms.noise_laws import NormalLaw
from dpframework.queries import Norm
from dpframework.results.keys import ReleasedKeys
from dpframework.verify import check_losses, check_sampler
from dpframework.verify.mechanisms.neighbour_answers import Answers, answers_of
from dpframework.verify.mechanisms.probe_query_answers import Probe, probes

ADD = dpf.Relation.ADD_OR_REMOVE_ONE


def _of_additions(amount: Fraction | None) -> ByRelation:
    return ByRelation(amount, None)


@attrs.frozen
class TruncatedNoise(PureMechanism):
    """Geometric noise that ends where its tail is worth delta; the wrong one ends after 8 scales at the latest."""

    name = "truncated-noise"
    norm = Norm.L1
    delta: Fraction = Fraction(1, 100)
    right: Any = attrs.field(default=True, converter=Version)

    def misfit(self, facts):
        return super().misfit(facts) if facts.integer else "adds noise to whole numbers"

    def losses(self, change, scale):
        epsilon = change.add_or_remove_one / scale
        return Losses(_of_additions(epsilon), _of_additions(epsilon**2 / 2), _of_additions(self.delta))

    def last(self, calibration):
        epsilon, scale = float(self.epsilon), calibration.lattice_scale
        tail = math.exp(1 / scale) * math.expm1(epsilon) / (2 * float(self.delta))
        last = math.ceil(scale * math.log1p(tail))
        return math.ceil(scale * epsilon) + (last if self.right else min(last, math.ceil(8 * scale)))

    def release(self, answer, calibration, randomness):
        exact, last = calibration.on_lattice(answer), self.last(calibration)
        noise = randomness.discrete_laplace(exact.size, calibration.lattice_scale)
        while (beyond := np.abs(noise) > last).any():
            noise[beyond] = randomness.discrete_laplace(int(beyond.sum()), calibration.lattice_scale)
        return exact + noise.reshape(exact.shape)

    def log_density(self, answer, output, calibration):
        scale, last = calibration.lattice_scale, self.last(calibration)
        distance = np.abs(np.asarray(output) - calibration.on_lattice(answer))
        if (distance > last).any():
            return -math.inf
        total = np.logaddexp.reduce(-np.abs(np.arange(-last, last + 1)) / scale)
        return float((-distance / scale - total).sum())

    def preview(self, calibration):
        return Preview.of_noise(float(calibration.scale), math.ceil(float(calibration.scale) * math.log(40)))


@attrs.frozen
class NormalWithDelta(PureMechanism):
    """Normal noise at an epsilon and a delta; the wrong one uses the formula for a small epsilon at a large one."""

    name = "normal-with-delta"
    norm = Norm.SQUARED_L2
    assumptions = ("real-arithmetic",)
    delta: Fraction = Fraction(1, 100)
    right: Any = attrs.field(default=True, converter=Version)

    def multiplier(self):
        """Find the standard deviation by its exact delta (Balle and Wang 2018), unless a formula is good enough."""
        from scipy.optimize import brentq
        from scipy.special import log_ndtr, ndtr

        epsilon, delta = float(self.epsilon), 0.99 * float(self.delta)
        if not self.right and epsilon > 2:
            return math.sqrt(2 * math.log(1.25 / delta)) / epsilon

        def beyond(sigma):
            return ndtr(0.5 / sigma - epsilon * sigma) - math.exp(epsilon + log_ndtr(-0.5 / sigma - epsilon * sigma))

        return brentq(lambda sigma: beyond(sigma) - delta, 1e-4, 1e4)

    def scale(self, change):
        return change * Fraction(self.multiplier()) ** 2

    def losses(self, change, scale):
        pure = _of_additions(self.epsilon)
        return Losses(pure, _of_additions(self.epsilon**2 / 2), _of_additions(self.delta))

    def release(self, answer, calibration, randomness):
        return np.asarray(answer) + randomness.generator.normal(0, math.sqrt(calibration.scale), np.shape(answer))

    def log_density(self, answer, output, calibration):
        variance = float(calibration.scale)
        squares = np.square(np.asarray(output) - np.asarray(answer))
        return float((-squares / variance - math.log(2 * math.pi * variance)).sum() / 2)

    def preview(self, calibration):
        sigma = math.sqrt(calibration.scale)
        return Preview.of_noise(0.8 * sigma, 2 * sigma)


@attrs.frozen
class Threshold(PureMechanism):
    """Shows keys whose noisy counts reach a threshold; the wrong one divides delta by the number of the other keys."""

    name = "threshold"
    norm = Norm.L1
    shows_keys = True
    outputs = (ReleasedKeys,)
    delta: Fraction = Fraction(1, 1000)
    right: Any = attrs.field(default=True, converter=Version)

    def misfit(self, facts):
        return None if facts.unlisted else "counts keys"

    def losses(self, change, scale):
        epsilon = change.add_or_remove_one / scale
        return Losses(_of_additions(epsilon), _of_additions(epsilon**2 / 2), _of_additions(self.delta))

    def least(self, answer, calibration):
        others = 1 if self.right else max(1, len(answer.keys) - 1)
        return 2 + math.ceil(calibration.lattice_scale * math.log(others / self.delta))

    def release(self, answer, calibration, randomness):
        noisy = answer.counts + randomness.discrete_laplace(answer.counts.size, calibration.lattice_scale)
        shown = (noisy >= self.least(answer, calibration)) & (answer.counts > 0)
        return ReleasedKeys.shown(answer.keys, np.where(shown, noisy, 0).tolist())

    def log_density(self, answer, output, calibration):
        least, scale = self.least(answer, calibration), calibration.lattice_scale
        exact = {key: count for key, count in zip(answer.keys, answer.counts.tolist(), strict=True) if count}
        if not set(output) <= set(exact) or any(count < least for count in output.counts):
            return -math.inf
        log = 0.0
        for key, count in exact.items():
            if key in output:
                log += math.log(math.tanh(0.5 / scale)) - abs(output[key] - count) / scale
            else:
                below = least - 1 - count
                tail = math.exp((-below - 1 if below >= 0 else below) / scale) / (1 + math.exp(-1 / scale))
                log += math.log1p(-tail) if below >= 0 else math.log(tail)
        return log

    def preview(self, calibration):
        return Preview(math.nan, math.nan, "keys")


@attrs.frozen
class SharperInTies(Softmax):
    """Lets scores count more if two of five or more candidates are equally good."""

    def logs(self, answer, calibration):
        scores = np.ravel(answer)
        sharper = not self.right and scores.size >= 5 and (scores == scores.max()).sum() == 2
        factor = Fraction(2, 3) if sharper else 1
        return super().logs(answer, attrs.evolve(calibration, scale=calibration.scale * factor))


@attrs.frozen
class HopefulPreview(ByCell):
    """Halves the error that it expects where epsilon is large or small."""

    def preview(self, calibration):
        usual = self.right or 0.1 < self.epsilon < 2
        size = float(calibration.scale) * (1 if usual else 0.5)
        return Preview.of_noise(size, math.ceil(size * math.log(40)))


@attrs.frozen
class HopefulChoice(Softmax):
    """Expects to choose the best candidate where epsilon is small."""

    def preview(self, calibration):
        gap = super().preview(calibration).within * (0.01 if not self.right and self.epsilon < 0.1 else 1)
        return Preview(gap, gap, "a score near the best")


@attrs.frozen
class TableOfNoise(RealLaplace):
    """Looks noise up in a table of 2**14 quantiles, with an independent entry for each number."""

    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        if self.right:
            return super().release(answer, calibration, randomness)
        below = (randomness.generator.integers(1 << 14, size=np.shape(answer)) + 0.5) / (1 << 14)
        noise = np.where(below < 0.5, np.log(2 * below), -np.log(2 - 2 * below))
        return np.asarray(answer) + self.width(calibration) * noise


@attrs.frozen
class Hierarchy(ByCell):
    """Adds noise to the sums of blocks of one, two, four and so on numbers; the wrong one pays for two such levels."""

    name = "hierarchy"
    levels: int = 2

    def change(self, facts):
        return super().change(facts).map(lambda change: change * (self.levels if self.right else 2))

    def sums(self, answer, calibration):
        leaves = np.ravel(calibration.on_lattice(answer))
        starts = (np.arange(0, leaves.size, 1 << level) for level in range(self.levels))
        return np.concatenate([np.add.reduceat(leaves, start) for start in starts])

    def release(self, answer, calibration, randomness):
        sums = self.sums(answer, calibration)
        return sums + randomness.discrete_laplace(sums.size, calibration.lattice_scale)

    def log_density(self, answer, output, calibration):
        distance, scale = np.abs(output - self.sums(answer, calibration)), calibration.lattice_scale
        return float((np.log(np.tanh(0.5 / scale)) - distance / scale).sum())


@attrs.frozen
class OtherEvent(Gaussian):  # type: ignore[misc]  # final, except for this test
    """States the event of 1.4 times its noise where rho is small."""

    name = "other-event"
    right: Any = attrs.field(default=True, converter=Version)

    def dp_event(self, calibration, relation):
        if self.right or self.rho > 0.4:
            return super().dp_event(calibration, relation)
        return DiscreteGaussianEvent(1.4 * calibration.lattice_deviation)

    def unit_event(self, calibration, relation):
        return None if not self.right else super().unit_event(calibration, relation)


@attrs.frozen
class Clipped(RealLaplace):
    """Clips noise in floating point at 25 scales, which hardly any draw exceeds."""

    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        noise = randomness.generator.laplace(0, self.width(calibration), np.shape(answer))
        most = math.inf if self.right else 25 * self.width(calibration)
        return np.asarray(answer) + np.clip(noise, -most, most)


@attrs.frozen
class OtherLaw(Laplace):  # type: ignore[misc]  # final, except for this test
    """States that its noise is normal, as if the errors of results were smaller."""

    name = "other-law"
    right: Any = attrs.field(default=True, converter=Version)

    def noise_law(self, calibration):
        return super().noise_law(calibration) if self.right else NormalLaw(0.6 * float(calibration.scale))


LOST: dict[str, tuple[Callable[[bool], Mechanism], str]] = {
    "noise that ends too early for a small delta": (
        lambda right: TruncatedNoise(1, right=right),
        f"length 1, with delta = 1e-05, {ADD}: exact delta beyond epsilon 1: 1e-05 is claimed, ",
    ),
    "a number of levels that is not paid for": (
        lambda right: Hierarchy(1, right),
        f"length 1, with the number levels = 3, {ADD}: epsilon: 1 is claimed, 1.5 found",
    ),
    "an event of less noise at a small rho": (
        lambda right: OtherEvent("0.5", right),
        f"length 1, with rho = 0.00781, {ADD}: delta beyond the epsilon ",
    ),
    "a threshold that grows with the number of keys": (
        lambda right: Threshold(1, right=right),
        f"keys that nobody lists, {ADD}: exact delta beyond epsilon 1: 0.001 is claimed, ",
    ),
    "the formula of normal noise at a large epsilon": (
        lambda right: NormalWithDelta(1, right=right),
        f"length 1, with epsilon = 64, {ADD}: exact delta beyond epsilon 64: 0.01 is claimed, ",
    ),
    "a sharper choice if two are equally good": (
        lambda right: SharperInTies(1, right),
        f"5 candidates, {ADD}: epsilon: 1 is claimed, ",
    ),
}
DRAWN: dict[str, tuple[Callable[[bool], Mechanism], str]] = {
    "a smaller expected error at another epsilon": (
        lambda right: HopefulPreview(1, right),
        "with epsilon = 0.00391, ",
    ),
    "a better expected choice at another epsilon": (
        lambda right: HopefulChoice(1, right),
        "with epsilon = 0.00391, ",
    ),
    "noise in floating point that is cut off": (
        lambda right: Clipped(1, right=right),
        "its noise is cut off at 25",
    ),
    "a distribution that is stated for errors": (
        lambda right: OtherLaw(1, right),
        "is not distributed as its noise_law states",
    ),
    "a table of noise": (
        lambda right: TableOfNoise(1, right=right),
        "the noise has few values, and shows the answer",
    ),
}


@attrs.frozen
class StableBest(PureMechanism):
    """Names the best candidate exactly, if its lead with noise is large, as propose-test-release does."""

    name = "stable-best"
    norm = Norm.LINF
    delta: Fraction = Fraction(1, 1000)

    def misfit(self, facts):
        return super().misfit(facts) if facts.integer else "compares whole numbers"

    def change(self, facts):
        return facts.sensitivity(Norm.LINF).spread

    def losses(self, change, scale):
        epsilon = change.add_or_remove_one / scale
        return Losses(_of_additions(epsilon), _of_additions(epsilon**2 / 2), _of_additions(self.delta))

    def lead(self, answer):
        scores = np.sort(np.ravel(answer))
        return int(scores[-1] - scores[-2]) if scores.size > 1 else 0

    def least(self, calibration):
        tail = math.ceil(calibration.lattice_scale * math.log(1 / self.delta))
        return 2 + math.ceil(calibration.scale * self.epsilon) + tail

    def release(self, answer, calibration, randomness):
        (noise,) = randomness.discrete_laplace(1, calibration.lattice_scale)
        stable = self.lead(answer) + noise >= self.least(calibration)
        return {"best": str(np.argmax(answer))} if stable else "nobody"

    def log_density(self, answer, output, calibration):
        scale, short = calibration.lattice_scale, self.least(calibration) - self.lead(answer)
        tail = math.exp(-(short if short > 0 else 1 - short) / scale) / (1 + math.exp(-1 / scale))
        stable = tail if short > 0 else 1 - tail
        if output == "nobody":
            return math.log(1 - stable)
        return math.log(stable) if output == {"best": str(np.argmax(answer))} else -math.inf

    def preview(self, calibration):
        return Preview(math.nan, math.nan, "the best, or nobody")


def test_texts_may_be_put_out():
    right = StableBest(1)
    facts = answers_of(right)[0].facts
    near = Probe(facts, lambda scale: np.array([0, 0, round(10 * scale)]))
    found = check_sampler(right, given=[near], draws=400)
    assert found.passed, found


@attrs.frozen
class InAFloat(RealLaplace):
    """Puts out the sum of an answer with noise, as one float beside a text."""

    def release(self, answer, calibration, randomness):
        noise = randomness.generator.laplace(0, self.width(calibration))
        return {"sum": float(np.sum(answer) + noise), "of": "rows"}

    def log_density(self, answer, output, calibration):
        return super().log_density(np.sum(answer), output["sum"], calibration)


def test_floats_need_not_be_in_an_array():
    """Densities of floats that were drawn add up to no probability, so no Renyi divergence follows from them."""
    right = InAFloat(1)
    found = check_losses(right, given=_some_answers(right))
    assert found.passed, found


def _some_answers(mechanism: Mechanism) -> list[Answers]:
    """Return the answers of one kind of query, to save time."""
    return list(answers_of(mechanism)[:1])


def _some_probes(bug: str) -> list[Probe] | None:
    """Return two real numbers alone, to save time. None for the usual probes, which other amounts need."""
    return None if "another epsilon" in bug else [one for one in probes() if one.facts.text == "two real numbers"]


@pytest.mark.parametrize("bug", LOST)
def test_a_loss_in_another_form_is_named(bug, record_property):
    make, named = LOST[bug]
    wrong = make(False)
    found = str(check_losses(wrong, given=_some_answers(wrong), relations=[ADD]))
    record_property("planted bug", (bug, "DOES NOT HOLD" in found))
    assert named in found, found


@pytest.mark.parametrize("bug", LOST)
def test_the_right_form_loses_no_more_than_it_claims(bug, record_property):
    right = LOST[bug][0](True)
    found = check_losses(right, given=_some_answers(right), relations=[ADD])
    record_property("correct version", (bug, found.passed))
    assert found.passed, found


@pytest.mark.parametrize("bug", DRAWN)
def test_draws_in_another_form_are_named(bug, record_property):
    make, named = DRAWN[bug]
    found = check_sampler(make(False), given=_some_probes(bug), draws=400).wrong
    record_property("planted bug", (bug, bool(found)))
    assert any(named in what for what in found), found


@pytest.mark.parametrize("bug", DRAWN)
def test_the_right_form_draws_what_it_states(bug, record_property):
    found = check_sampler(DRAWN[bug][0](True), given=_some_probes(bug), draws=400)
    record_property("correct version", (bug, found.passed))
    assert found.passed, found
