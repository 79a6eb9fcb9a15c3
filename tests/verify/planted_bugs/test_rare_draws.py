"""Mechanisms that draw wrongly where no usual draw shows it: planted, each beside its honest twin.

Noise is cut off far out, by a table, by floats of 53 bits or by drawing again. Numbers of a long answer depend on each
other. Unlikely candidates are left out. Other code draws for answers below 0 or beyond 32 bits, and where epsilon is
very small or very large. Each has a log-density that is right. Draws are compared with a probability of at most 1e-6
that a right mechanism fails.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from verify.bug_version import Version
from verify.planted_bugs.test_draws_in_other_settings import OneByOne

from dpframework.facts.privacy_losses import ByRelation
from dpframework.mechanisms import Exponential, Gaussian, Laplace, Losses, Mechanism, Preview, PureMechanism
from dpframework.mechanisms.randomness import Noise
from dpframework.queries import Norm
from dpframework.verify import check_losses, check_sampler
from dpframework.verify.mechanisms import cut_off_noise_check, long_answer_and_many_candidate_checks
from dpframework.verify.mechanisms.cut_off_noise_check import (
    MOST_REQUESTS,
    EnoughError,
    ExtremeRandomness,
    find_cut_off,
)
from dpframework.verify.mechanisms.probe_query_answers import probes, probes_of_one

DRAWS = 400


class NoiseOfOwn(OneByOne):
    """Adds noise that it draws from uniform integers."""

    def release(self, answer, calibration, randomness):
        return answer + self.noise(answer, calibration.lattice_scale, randomness)


@attrs.frozen
class FromFloats(NoiseOfOwn):
    """Noise from one uniform float of 64 bits, or from coins whose number has no end."""

    name = "from-floats"
    right: Any = attrs.field(default=True, converter=Version)

    def noise(self, answer, scale, randomness):
        size = np.size(answer)
        if self.right:
            one, other = (
                [self.coins(Fraction(-1) / Fraction(scale), randomness) for _ in range(size)] for _ in range(2)
            )
        else:
            uniform = ((randomness.words(size) + 0.5) / 2.0**64 for _ in range(2))
            one, other = (np.floor(-scale * np.log(numbers)).astype(np.int64) for numbers in uniform)
        return np.subtract(one, other).reshape(np.shape(answer))

    def coins(self, exponent, randomness):
        number = 0
        while randomness.below_exp(exponent, int(randomness.words(1)[0])):
            number += 1
        return number


@functools.cache
def table_of(scale: float) -> np.ndarray:
    """The cumulated probabilities of noise up to 16 scales, in 62 bits."""
    reach = math.ceil(16 * scale)
    chances = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    return np.floor(np.cumsum(chances / chances.sum()) * 2.0**62)


@attrs.frozen
class FromATable(NoiseOfOwn):
    """Noise from a table, to which the right one adds as many tables' lengths as come out geometrically."""

    name = "from-a-table"
    right: Any = attrs.field(default=True, converter=Version)

    def noise(self, answer, scale, randomness):
        if self.right:
            return super().noise(answer, scale, randomness)
        found = np.searchsorted(table_of(scale), randomness.integers(2**62, np.size(answer)), side="right")
        return (found - math.ceil(16 * scale)).clip(None, math.ceil(16 * scale)).reshape(np.shape(answer))


@attrs.frozen
class DrawsAgain(NoiseOfOwn):
    """Draws outliers again: those beyond 12 scales, or none."""

    name = "draws-again"
    right: Any = attrs.field(default=True, converter=Version)

    def noise(self, answer, scale, randomness):
        noise = super().noise(answer, scale, randomness)
        while not self.right and (far := np.abs(noise) > 12 * scale).any():
            noise[far] = randomness.discrete_laplace(int(far.sum()), scale)
        return noise


@attrs.frozen
class GaussianByRejection(Gaussian):  # type: ignore[misc]  # final, except for this test
    """Honest: rejects Laplace noise that is far out, as the Gaussian density says (Canonne et al. 2020)."""

    name = "gaussian-by-rejection"
    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        variance = calibration.scale / calibration.unit**2
        wide = math.isqrt(math.floor(variance)) + 1
        noise = [self.one(variance, wide, randomness) for _ in range(np.size(answer))]
        points = calibration.on_lattice(answer) + np.array(noise, dtype=np.int64).reshape(np.shape(answer))
        return points if calibration.unit == 1 else points * float(calibration.unit)

    def one(self, variance, wide, randomness):
        while True:
            drawn = int(randomness.discrete_laplace(1, float(wide))[0])
            excess = (abs(drawn) - variance / wide) ** 2 / (2 * variance)
            if randomness.below_exp(-excess, int(randomness.words(1)[0])):
                return drawn


@attrs.frozen
class InThirtyTwoBits(NoiseOfOwn):
    """Holds noise in 32 or in 64 bits."""

    name = "in-32-bits"
    right: Any = attrs.field(default=True, converter=Version)

    def noise(self, answer, scale, randomness):
        return super().noise(answer, scale, randomness).astype(np.int64 if self.right else np.int32)


@attrs.frozen
class InSinglePrecision(NoiseOfOwn):
    """Holds counts in floats of 32 or of 64 bits."""

    name = "in-single-precision"
    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        counts = np.asarray(answer).astype(np.float64 if self.right else np.float32).astype(np.int64)
        return counts + self.noise(answer, calibration.lattice_scale, randomness)


@attrs.frozen
class LessBelowZero(NoiseOfOwn):
    """Draws less noise where counts are far below 0, "as none is"."""

    name = "less-below-zero"
    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        factor = 1 if self.right or np.min(answer) > -1000 else 3
        return answer + self.noise(answer, calibration.lattice_scale / factor, randomness)


@attrs.frozen
class ByEpsilon(NoiseOfOwn):
    """Puts out exact counts from an epsilon on, or takes no epsilon below another."""

    name = "by-epsilon"
    right: Any = attrs.field(default=True, converter=Version)
    most: Fraction = Fraction(10**9)
    least: Fraction = Fraction(0)

    def release(self, answer, calibration, randomness):
        epsilon, scale = calibration.mechanism.epsilon, calibration.lattice_scale
        if epsilon > self.most and not self.right:
            return np.asarray(answer)
        factor = 1.0 if self.right else float(max(self.least / epsilon, 1))
        return answer + self.noise(answer, scale / factor, randomness)


@attrs.frozen
class Mirrored(Gaussian):  # type: ignore[misc]  # final, except for this test
    """In long answers, two numbers share a part of their noise, with another sign."""

    name = "mirrored"
    right: Any = attrs.field(default=True, converter=Version)
    share: float = 0.8
    longer: int = 8

    def release(self, answer, calibration, randomness):
        exact = np.asarray(answer)
        noise = np.asarray(super().release(np.zeros_like(exact), calibration, randomness))
        if exact.size > self.longer and not self.right:
            half, unit = exact.size // 2, float(calibration.unit)
            mixed = math.sqrt(1 - self.share**2) * noise[:half] - self.share * noise[::-1][:half]
            noise[:half] = np.rint(mixed / unit) * unit
        return exact + noise


@attrs.frozen
class Chooses(Exponential):  # type: ignore[misc]  # final, except for this test
    """Chooses by noisy scores of some candidates."""

    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        scores = calibration.on_lattice(answer).ravel()
        kept = np.arange(scores.size) if self.right else self.kept(scores, calibration, randomness)
        return int(kept[randomness.noisy_max(self.seen(scores)[kept], calibration.lattice_scale, Noise.GUMBEL)])

    def release_many(self, answers, calibration, randomness):
        return [self.release(answer, calibration, randomness) for answer in answers]

    def seen(self, scores):
        return scores

    def kept(self, scores, calibration, randomness):
        return np.arange(scores.size)


@attrs.frozen
class Shortlist(Chooses):
    """Chooses among the best 64, or among all."""

    name = "shortlist"

    def kept(self, scores, calibration, randomness):
        return np.lexsort((randomness.words(scores.size), scores))[-64:]


@attrs.frozen
class LeavesOutLight(Chooses):
    """Leaves out candidates of a weight below 1/1000, or none."""

    name = "leaves-out-light"

    def kept(self, scores, calibration, randomness):
        return np.flatnonzero(scores > scores.max() - calibration.lattice_scale * math.log(1000))


@attrs.frozen
class NoScoreBelowZero(Chooses):
    """Takes scores below 0 for 0, or as they are."""

    name = "no-score-below-zero"

    def seen(self, scores):
        return scores if self.right else scores.clip(0)


@attrs.frozen
class WholeChange(Laplace):  # type: ignore[misc]  # final, except for this test
    """Makes a whole number of a sensitivity above 1, by leaving its fraction away, and claims its epsilon."""

    name = "whole-change"
    right: Any = attrs.field(default=True, converter=Version)

    def scale(self, change):
        whole = Fraction(math.floor(change)) if change >= 1 and not self.right else change
        return whole / self.epsilon

    def losses(self, change, scale):
        honest = super().losses(change, scale)
        if self.right:
            return honest
        pure = ByRelation(self.epsilon, self.epsilon * round(change.replace_one / change.add_or_remove_one))
        return Losses(pure, pure.map(lambda epsilon: epsilon**2 / 2))


CUT, FEW = "its noise is cut off", "are unlikely candidates left out?"
NARROWER = "30 % narrower than claimed"
PLANTED: dict[str, tuple[Callable[[bool], Mechanism], str]] = {
    "noise from floats of 64 bits": (lambda right: FromFloats(1, right), f"{CUT} at 45: "),
    "noise from a table": (lambda right: FromATable(1, right), f"{CUT} at 16: "),
    "outliers drawn again": (lambda right: DrawsAgain(1, right), f"{CUT}: a number of noise 60 from 0 is drawn again"),
    "noise in 32 bits": (lambda right: InThirtyTwoBits(1, right), f"{CUT}: a number of noise 8.58993e+09 from 0"),
    "counts in single precision": (
        lambda right: InSinglePrecision(1, right),
        "two counts, 4,294,967,496 more rows, private randomness: the draws fit noise 30 % wider than claimed",
    ),
    "less noise for counts below 0": (
        lambda right: LessBelowZero(1, right),
        f"two counts, all far below 0, private randomness: the draws fit noise {NARROWER}",
    ),
    "no noise for a large epsilon": (
        lambda right: ByEpsilon(1, right, most=Fraction(10)),
        f"with epsilon = 256, the noise of an answer of length 2048 is {NARROWER}",
    ),
    "no epsilon below a hundredth": (
        lambda right: ByEpsilon(1, right, least=Fraction(1, 100)),
        f"with epsilon = 0.00391, the noise of an answer of length 2048 is {NARROWER}",
    ),
    "numbers that share noise in a long answer": (
        lambda right: Mirrored("0.125", right),
        "the noise of an answer of 64 numbers is not independent: its correlations are",
    ),
    "numbers that share noise in a very long answer": (
        lambda right: Mirrored("0.125", right, longer=1000),
        "the noise of an answer of 4096 numbers is not independent: its correlations are",
    ),
    "the best candidates only": (lambda right: Shortlist(1, right), FEW),
    "no candidate of a small weight": (lambda right: LeavesOutLight(1, right), FEW),
    "scores below 0 taken for 0": (
        lambda right: NoScoreBelowZero(1, right),
        "integer scores, all far below 0, private randomness: the draws fit noise 30 % wider than claimed",
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_draws_that_are_wrong_where_none_shows_it_are_named(bug, record_property):
    make, named = PLANTED[bug]
    found = check_sampler(make(False), draws=DRAWS).wrong
    record_property("planted bug", (bug, bool(found)))
    assert any(named in what for what in found), found


@pytest.mark.parametrize("bug", PLANTED)
def test_the_honest_twin_draws_what_it_states(bug, record_property):
    settings = bug != "noise from floats of 64 bits"  # coin by coin, wide noise takes long
    given = None if settings else [probe for probe in probes() if probe.facts.text == "two counts"]
    mechanism = PLANTED[bug][0](True)
    found = [] if given else list(check_sampler(mechanism, draws=DRAWS).wrong)
    for probe in given or ():
        found += find_cut_off(mechanism, probe.answer(1.0), probe.calibrate(mechanism))
    record_property("correct version", (bug, not found))
    assert not found


@pytest.mark.parametrize("right", [False, True])
def test_a_sensitivity_that_is_no_whole_number_is_tried(right):
    found = check_losses(WholeChange(1, right))
    assert found.passed is right
    if not right:
        assert "a real number, add-or-remove-one: epsilon: 1 is claimed, 1.25 found" in str(found)


def test_noise_that_a_density_rejects_is_not_cut_off(monkeypatch: pytest.MonkeyPatch):
    # Of noise that is a thousand times wider, it rejects all but one in a thousand, so each draw takes long.
    monkeypatch.setattr(cut_off_noise_check, "DRAWN", 24)
    probe = next(probe for probe in probes() if probe.facts.text == "two counts")
    mechanism = GaussianByRejection("0.125")
    assert list(find_cut_off(mechanism, probe.answer(1.0), probe.calibrate(mechanism))) == []


class OutOfOrder(NoiseOfOwn):
    """Honest but for what a table of a million leaves out: the first and the last number of the table are near 0."""

    name = "out-of-order"

    def noise(self, answer, scale, randomness):
        table = 1 << 20
        uniform = ((randomness.integers(table, np.size(answer)) * 5 + 2 * table // 3) % table + 0.5) / table - 0.5
        return np.rint(-scale * np.sign(uniform) * np.log1p(-2 * np.abs(uniform))).astype(np.int64)


def test_noise_is_not_cut_off_where_extreme_integers_give_little_of_it():
    probe = next(probe for probe in probes() if probe.facts.text == "two counts")
    mechanism = OutOfOrder("0.01")
    assert list(find_cut_off(mechanism, probe.answer(1.0), probe.calibrate(mechanism))) == []


@attrs.frozen
class OneOfTen(PureMechanism):
    """Honest: randomized response over ten values (Kairouz, Bonawitz and Ramage 2016), of one count."""

    name = "one-of-ten"
    norm = Norm.L1
    most: int = 10

    def misfit(self, facts):
        one = facts.integer and facts.answer_length == 1
        return super().misfit(facts) if one else "is for one whole number"

    def scale(self, change):
        return 1 / self.epsilon

    def losses(self, change, scale):
        pure = ByRelation(1 / scale, 1 / scale)
        return Losses(pure, pure.map(lambda epsilon: epsilon**2 / 2))

    def release(self, answer, calibration, randomness):
        exact = np.clip(answer, 0, self.most)
        while True:
            (value,) = randomness.integers(self.most + 1, 1)
            if value == exact[0] or randomness.below_exp(-1 / calibration.scale, int(randomness.words(1)[0])):
                return np.full(exact.shape, value)

    def log_density(self, answer, output, calibration):
        (exact,), (value,) = np.clip(answer, 0, self.most), output
        if not 0 <= value <= self.most:
            return -math.inf
        epsilon = float(1 / calibration.scale)
        return float(epsilon * (exact == value) - math.log(math.exp(epsilon) + self.most))

    def preview(self, calibration):
        return Preview(self.most / 2, math.nan, "one of ten")


def test_a_mechanism_for_one_number_is_tried_with_one_number():
    for mechanism in (OneOfTen(1), attrs.evolve(OneOfTen(2), most=9)):
        found = check_sampler(mechanism, draws=DRAWS)
        assert found.passed, found
        assert found.tested[0].startswith("a count, ")
        assert check_losses(mechanism).passed
    assert [probe.answer(1.0).size for probe in probes_of_one()] == [1, 1]


def test_extreme_bits_are_all_alike_and_end():
    source = ExtremeRandomness(1)
    assert set(source.words(50).tolist()) == {0, 2**64 - 1}
    assert set(source.integers(7, 50).tolist()) == {0, 6}
    assert set(source.integers(np.array([3, 5]), 2).tolist()) <= {0, 2, 4}
    for _ in range(MOST_REQUESTS - 3):
        source.words(1)
    with pytest.raises(EnoughError):
        source.words(1)
    assert not issubclass(EnoughError, Exception)  # a sampler that catches errors must not go on


def test_independent_numbers_have_no_correlation_and_single_pairs_are_named():
    rng = np.random.default_rng(0)
    for numbers, draws in long_answer_and_many_candidate_checks.COMPARED:
        for _ in range(20):
            noise = rng.laplace(size=(numbers, draws)).round()
            assert long_answer_and_many_candidate_checks._correlation(noise) is None
    numbers, draws = long_answer_and_many_candidate_checks.COMPARED[0]
    noise = rng.laplace(size=(numbers, draws))
    noise[40] = 0.9 * noise[7] + 0.3 * noise[40]
    assert "numbers 8 and 41 have a rank correlation of" in str(
        long_answer_and_many_candidate_checks._correlation(noise)
    )
