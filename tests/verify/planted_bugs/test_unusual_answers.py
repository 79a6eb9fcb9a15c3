"""Mechanisms that are wrong for answers, lengths and amounts that no usual test has: planted, each beside a right one.

The log-density of the first ones says what they draw, so that draws fit it, and only losses show the mistake. Those
that follow have a right log-density, and draw otherwise for answers of one or several numbers, or in large batches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
from verify.bug_version import Version
from verify.planted_bugs.test_draws_in_other_settings import OneByOne

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Gaussian, Laplace, Losses, Mechanism, Preview, PureMechanism
from dpframework.queries import Norm
from dpframework.verify import MechanismConformance, check_losses, check_sampler
from dpframework.verify.mechanisms.losses_on_unusual_answers import LENGTHS, weigh_other_answers
from dpframework.verify.mechanisms.neighbour_answers import has_real_density

ADD = dpf.Relation.ADD_OR_REMOVE_ONE


@attrs.frozen
class ByCell(PureMechanism):
    """Geometric noise whose scale a subclass may choose for each number of an answer; its density says so."""

    name = "by-cell"
    norm = Norm.L1
    right: Any = attrs.field(default=True, converter=Version)

    def misfit(self, facts):
        return super().misfit(facts) if facts.integer else "adds noise to whole numbers"

    def shares(self, exact):
        return np.ones(exact.shape)

    def scales(self, exact, calibration):
        return calibration.lattice_scale * (1.0 if self.right else self.shares(exact)) + 0.0 * exact

    def release(self, answer, calibration, randomness):
        exact = calibration.on_lattice(answer)
        scales = np.broadcast_to(self.scales(exact, calibration), exact.shape)
        noise = np.zeros(exact.shape, dtype=np.int64)
        for scale in np.unique(scales[scales > 0]):
            cells = scales == scale
            noise[cells] = randomness.discrete_laplace(int(cells.sum()), float(scale))
        return exact + noise

    def log_density(self, answer, output, calibration):
        exact = calibration.on_lattice(answer)
        distance = np.abs(np.asarray(output) - exact)
        scales = np.broadcast_to(self.scales(exact, calibration), exact.shape)
        if (distance[scales == 0] > 0).any():
            return -math.inf
        noisy = scales > 0
        return float((np.log(np.tanh(0.5 / scales[noisy])) - distance[noisy] / scales[noisy]).sum())

    def preview(self, calibration):
        within = math.ceil(float(calibration.scale) * math.log(40))
        return Preview.of_noise(float(calibration.scale), within)


@attrs.frozen
class EmptyStaysEmpty(ByCell):
    """Adds noise to occupied cells only, so that a sparse table stays sparse."""

    def shares(self, exact):
        return np.where(exact == 0, 0.0, 1.0)


@attrs.frozen
class FinerForLarge(ByCell):
    """Adds less noise to cells of more than ten thousand rows."""

    def shares(self, exact):
        return np.where(exact > 10_000, 0.7, 1.0)


@attrs.frozen
class FinerInBetween(ByCell):
    """Adds less noise to cells of 200 to 5000 rows."""

    def shares(self, exact):
        return np.where((exact >= 200) & (exact < 5_000), 0.7, 1.0)


@attrs.frozen
class FinerBelowZero(ByCell):
    """Adds less noise to numbers below -50."""

    def shares(self, exact):
        return np.where(exact < -50, 0.7, 1.0)


@attrs.frozen
class RoundedDown(ByCell):
    """Rounds counts of a thousand or more down to tens before it adds noise."""

    def rounded(self, exact):
        return exact if self.right else np.where(exact >= 1000, exact // 10 * 10, exact)

    def release(self, answer, calibration, randomness):
        return super().release(self.rounded(answer), calibration, randomness)

    def log_density(self, answer, output, calibration):
        return super().log_density(self.rounded(answer), output, calibration)


@attrs.frozen
class FinerForPowers(ByCell):
    """Adds less noise to answers of four, eight and so on numbers, as the code for whole blocks does."""

    def shares(self, exact):
        return 0.7 if exact.size >= 4 and not exact.size & (exact.size - 1) else 1.0


@attrs.frozen
class Residue(ByCell):
    """Puts out noisy counts modulo 4096, or modulo a power of two that is larger than the count."""

    def moduli(self, exact):
        return np.array([4096 if self.right else 1 << max(10, abs(int(count)).bit_length()) for count in exact.ravel()])

    def release(self, answer, calibration, randomness):
        exact = calibration.on_lattice(answer)
        return (exact + randomness.discrete_laplace(exact.size, calibration.lattice_scale).reshape(exact.shape)) % (
            self.moduli(exact).reshape(exact.shape)
        )

    def log_density(self, answer, output, calibration):
        exact, released, b = np.ravel(calibration.on_lattice(answer)), np.ravel(output), calibration.lattice_scale
        moduli = self.moduli(exact)
        if (released < 0).any() or (released >= moduli).any():
            return -math.inf
        ahead = (released - exact) % moduli
        around = np.logaddexp(-ahead / b, -(moduli - ahead) / b) - np.log(-np.expm1(-moduli / b))
        return float((math.log(math.tanh(0.5 / b)) + around).sum())

    def preview(self, calibration):
        return Preview(math.nan, math.nan, "a residue")


@attrs.frozen
class FirstAbove(PureMechanism):
    """The first score that is above 50 with noise, or the last one; the wrong one pays for one noisy score of them."""

    name = "first-above"
    norm = Norm.LINF
    selects = True
    assumptions = ("real-arithmetic",)
    right: Any = attrs.field(default=True, converter=Version)

    def change(self, facts):
        scores = facts.answer_length or 1 if self.right else 1
        return facts.sensitivity(Norm.LINF).change.map(lambda change: change * scores)

    def release(self, answer, calibration, randomness):
        scores = np.ravel(answer).astype(float)
        noisy = scores + randomness.generator.laplace(0, float(calibration.scale), scores.size)
        above = np.flatnonzero(noisy >= 50)
        return int(above[0]) if above.size else scores.size - 1

    def log_density(self, answer, output, calibration):
        distances, chosen = (50 - np.ravel(answer)) / float(calibration.scale), int(output)
        tails = -np.abs(distances) + math.log(0.5)
        below, above = (np.where(sign * distances > 0, np.log1p(-np.exp(tails)), tails) for sign in (1, -1))
        return float(below[:chosen].sum() + (above[chosen] if chosen + 1 < distances.size else 0.0))

    def preview(self, calibration):
        return Preview(math.nan, math.nan, "a position")


@attrs.frozen
class FinerForLong(ByCell):
    """Adds less noise to answers of eight or more numbers."""

    def shares(self, exact):
        return np.full(exact.shape, 0.7 if exact.size >= 8 else 1.0)


@attrs.frozen
class CheapIfLarge(ByCell):
    """Claims four fifths of an epsilon above 4."""

    def scale(self, change):
        return change / (self.epsilon if self.right or self.epsilon <= 4 else self.epsilon * Fraction(5, 4))

    def losses(self, change, scale):
        honest = super().losses(change, scale)
        if self.right or self.epsilon <= 4:
            return honest
        return Losses(honest.pure.map(lambda e: e * Fraction(4, 5)), honest.zcdp)


@attrs.frozen
class OfOneRow(ByCell):
    """Calibrates by code of its own, which forgets that a unit may have several rows."""

    def calibrate(self, facts, relation, *, in_parts=False, by=dpf.mechanisms.base.ONE_ROW):
        return super().calibrate(
            facts, relation, in_parts=in_parts, by=by if self.right else dpf.mechanisms.base.ONE_ROW
        )


@attrs.frozen
class SteepFarOut(ByCell):
    """Draws numbers beyond 30 scales again, most of the time."""

    def weights(self, distance, scale):
        far = 0 if self.right else np.maximum(distance - 30 * scale, 0)
        return -(distance + far) / scale

    def release(self, answer, calibration, randomness):
        exact, scale = calibration.on_lattice(answer), calibration.lattice_scale
        noise = randomness.discrete_laplace(exact.size, scale)
        for k in np.flatnonzero(np.abs(noise) > 30 * scale) if not self.right else ():
            while not self.keeps(noise[k], scale, randomness):
                noise[k] = randomness.discrete_laplace(1, scale)[0]
        return exact + noise.reshape(exact.shape)

    def keeps(self, drawn, scale, randomness):
        excess = max(abs(int(drawn)) - 30 * scale, 0.0)
        return randomness.below_exp(Fraction(-excess / scale), int(randomness.words(1)[0]))

    def log_density(self, answer, output, calibration):
        scale = calibration.lattice_scale
        distance = np.abs(np.asarray(output) - calibration.on_lattice(answer))
        return float((np.log(np.tanh(0.5 / scale)) + self.weights(distance, scale)).sum())


@attrs.frozen
class Tree(ByCell):
    """Noisy sums of all nodes of a binary tree, with a level too few if the length is no power of two."""

    name = "tree"

    def levels(self, length):
        return (math.ceil(math.log2(length)) if self.right else int(math.log2(length))) + 1

    def change(self, facts):
        return super().change(facts).map(lambda change: change * self.levels(facts.answer_length))

    def sums(self, answer, calibration):
        leaves = np.ravel(calibration.on_lattice(answer))
        rows = [np.pad(leaves, (0, (1 << math.ceil(math.log2(leaves.size))) - leaves.size))]
        while rows[-1].size > 1:
            rows.append(rows[-1].reshape(-1, 2).sum(axis=1))
        return np.concatenate(rows)

    def release(self, answer, calibration, randomness):
        sums = self.sums(answer, calibration)
        return sums + randomness.discrete_laplace(sums.size, calibration.lattice_scale)

    def log_density(self, answer, output, calibration):
        distance, scale = np.abs(output - self.sums(answer, calibration)), calibration.lattice_scale
        return float((np.log(np.tanh(0.5 / scale)) - distance / scale).sum())


@attrs.frozen
class InCents(Laplace):  # type: ignore[misc]  # final, except for this test
    """Rounds real numbers to two decimals first, whatever the sensitivity is; or does not."""

    name = "in-cents"
    right: Any = attrs.field(default=True, converter=Version)

    def rounded(self, answer):
        real = not self.right and np.asarray(answer).dtype.kind == "f"
        return np.round(answer, 2) if real else answer

    def release(self, answer, calibration, randomness):
        return super().release(self.rounded(answer), calibration, randomness)

    def log_density(self, answer, output, calibration):
        return super().log_density(self.rounded(answer), output, calibration)


@attrs.frozen
class Softmax(PureMechanism):
    """The exponential mechanism by a table of probabilities, in floating point."""

    name = "softmax"
    norm = Norm.LINF
    selects = True
    needs_length = False
    assumptions = ("real-arithmetic",)
    right: Any = attrs.field(default=True, converter=Version)

    def change(self, facts):
        return facts.sensitivity(Norm.LINF).spread

    def logs(self, answer, calibration):
        scaled = np.ravel(calibration.on_lattice(answer)) / calibration.lattice_scale
        scaled = scaled - scaled.max()
        return scaled - np.log(np.exp(scaled).sum())

    def release(self, answer, calibration, randomness):
        chances = np.exp(self.logs(answer, calibration))
        return int(randomness.generator.choice(chances.size, p=chances / chances.sum()))

    def log_density(self, answer, output, calibration):
        return float(self.logs(answer, calibration)[int(output)])

    def preview(self, calibration):
        gap = float(calibration.scale) * math.log(19 * (calibration.facts.answer_length or 2))
        return Preview(gap, gap, "a score near the best")


@attrs.frozen
class NoTinyChance(Softmax):
    """Sets probabilities below 1e-12 to 0."""

    def logs(self, answer, calibration):
        logs = super().logs(answer, calibration)
        return logs if self.right else np.where(logs < math.log(1e-12), -math.inf, logs)


@attrs.frozen
class SharperIfMany(Softmax):
    """Lets scores count more among more than 16 candidates."""

    def logs(self, answer, calibration):
        sharper = not self.right and np.size(answer) > 16
        factor = Fraction(5, 7) if sharper else 1
        return super().logs(answer, attrs.evolve(calibration, scale=calibration.scale * factor))


@attrs.frozen
class SharperForPowers(Softmax):
    """Lets scores count more among four, eight and so on candidates."""

    def logs(self, answer, calibration):
        size = np.size(answer)
        sharper = not self.right and size >= 4 and not size & (size - 1)
        factor = Fraction(5, 7) if sharper else 1
        return super().logs(answer, attrs.evolve(calibration, scale=calibration.scale * factor))


INFINITE = "inf found: DOES NOT HOLD"
LOST: dict[str, tuple[Callable[[bool], Mechanism], str]] = {
    "empty cells stay empty": (
        lambda right: EmptyStaysEmpty(1, right),
        f"length 1, {ADD}: epsilon: 1 is claimed, {INFINITE}",
    ),
    "less noise for large counts": (lambda right: FinerForLarge(1, right), f"length 1, {ADD}: epsilon: 1 is claimed, "),
    "less noise for longer answers": (
        lambda right: FinerForLong(1, right),
        f"length 17, {ADD}: epsilon: 1 is claimed, 1.42857 found",
    ),
    "a large epsilon that is claimed to be smaller": (
        lambda right: CheapIfLarge(1, right),
        f"length 1, with epsilon = 64, {ADD}: epsilon: 64 is claimed, 80 found",
    ),
    "a unit of several rows taken for one row": (
        lambda right: OfOneRow(1, right),
        f"a count, of a unit of 3 rows, {ADD}: epsilon: 1 is claimed, 3 found",
    ),
    "a tail that is steeper far out": (
        lambda right: SteepFarOut(1, right),
        f"length 1, {ADD}: epsilon: 1 is claimed, 2 found",
    ),
    "a tree with a level too few": (
        lambda right: Tree(1, right),
        f"an answer of length 3, {ADD}: epsilon: 1 is claimed, 1.5 found",
    ),
    "real numbers rounded to cents": (
        lambda right: InCents(1, right),
        f"length 1, 1/1000 of the sensitivity, {ADD}: epsilon: 1 is claimed, 3.9",
    ),
    "no chance below 1e-12": (
        lambda right: NoTinyChance(1, right),
        f"integer scores, monotonic, 2 candidates, {ADD}: epsilon: 1 is claimed, {INFINITE}",
    ),
    "less noise for counts of hundreds": (
        lambda right: FinerInBetween(1, right),
        f"length 1, {ADD}: epsilon: 1 is claimed, 1.42857 found",
    ),
    "less noise for negative numbers": (
        lambda right: FinerBelowZero(1, right),
        f"length 1, {ADD}: epsilon: 1 is claimed, 1.42857 found",
    ),
    "large counts rounded down to tens": (
        lambda right: RoundedDown(1, right),
        f"length 1, {ADD}: epsilon: 1 is claimed, 10 found",
    ),
    "less noise for a power of two of numbers": (
        lambda right: FinerForPowers(1, right),
        f"length 256, {ADD}: epsilon: 1 is claimed, 1.42857 found",
    ),
    "a sharper choice among a power of two": (
        lambda right: SharperForPowers(1, right),
        f"integer scores, monotonic, 256 candidates, {ADD}: epsilon: 1 is claimed, 1.4 found",
    ),
    "a modulus that grows with the count": (
        lambda right: Residue(1, right),
        f"length 1, {ADD}: epsilon: 1 is claimed, {INFINITE}",
    ),
    "a threshold whose tests are paid for once": (
        lambda right: FirstAbove(1, right),
        f"integer scores, monotonic, 3 candidates, {ADD}: epsilon: 1 is claimed, 2 found",
    ),
    "a sharper choice among many": (
        lambda right: SharperIfMany(1, right),
        f"integer scores, monotonic, 17 candidates, {ADD}: epsilon: 1 is claimed, 1.4 found",
    ),
}


@pytest.mark.parametrize("bug", LOST)
def test_losses_on_answers_that_no_usual_test_has_are_named(bug, record_property):
    make, named = LOST[bug]
    found = str(check_losses(make(False), relations=[ADD]))
    record_property("planted bug", (bug, "DOES NOT HOLD" in found))
    assert named in found, found


@pytest.mark.parametrize("bug", LOST)
def test_the_honest_twin_loses_no_more_than_it_claims(bug, record_property):
    found = check_losses(LOST[bug][0](True))
    record_property("correct version", (bug, found.passed))
    assert found.passed, found


@attrs.frozen
class OneNumber(OneByOne):
    """Draws with another scale for a single number."""

    name = "one-number"
    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        factor = 1 if self.right or np.size(answer) > 1 else 1.5
        return answer + self.noise(answer, calibration.lattice_scale / factor, randomness)


@attrs.frozen
class InPairs(OneByOne):
    """Negates the noise of the first half for the second, in answers of 5 to 40 numbers."""

    name = "in-pairs"
    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        noise = self.noise(answer, calibration.lattice_scale, randomness).ravel()
        half = noise.size // 2
        if not self.right and 5 <= noise.size <= 40:
            noise[half : 2 * half] = -noise[:half]
        return answer + noise.reshape(np.shape(answer))


@attrs.frozen
class InBatches(DiscreteLaplace):  # type: ignore[misc]  # final, except for this test
    """Draws answers in batches of 1024, each from a generator of the same key, or of another one."""

    name = "in-batches"
    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        return self.release_many([answer], calibration, randomness)[0]

    def release_many(self, answers, calibration, randomness):
        key, outputs = randomness.words(4).tolist(), []
        for start in range(0, len(answers), 1024):
            generator = np.random.default_rng([*key, start] if self.right else key)
            for answer in answers[start : start + 1024]:
                drawn = generator.geometric(-math.expm1(-1 / calibration.lattice_scale), size=(2, np.size(answer)))
                outputs.append(answer + (drawn[0] - drawn[1]).reshape(np.shape(answer)))
        return outputs


@attrs.frozen
class LowerScale(OneByOne):
    """Draws with the next lower whole scale, which is the same at an epsilon of 1."""

    name = "lower-scale"
    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        scale = calibration.lattice_scale
        return answer + self.noise(answer, scale if self.right else max(1.0, float(int(scale + 1e-9))), randomness)


@attrs.frozen
class OddOneOut(OneByOne):
    """Draws noise in pairs, and less for the last number if their number is odd."""

    name = "odd-one-out"
    right: Any = attrs.field(default=True, converter=Version)

    def release(self, answer, calibration, randomness):
        noise = self.noise(answer, calibration.lattice_scale, randomness)
        if not self.right and noise.size % 2 and noise.size > 1:
            noise[-1:] = self.noise(noise[-1:], 0.3 * calibration.lattice_scale, randomness)
        return answer + noise


@attrs.frozen
class SharpTable(Softmax):
    """Looks up the chances of two to sixteen candidates in a table that was made with twice the epsilon, or of one."""

    def release(self, answer, calibration, randomness):
        sharper = not self.right and np.size(answer) <= 16
        factor = Fraction(1, 2) if sharper else 1
        return super().release(answer, attrs.evolve(calibration, scale=calibration.scale * factor), randomness)


DRAWN: dict[str, tuple[Callable[[bool], Mechanism], str]] = {
    "other noise for a single number": (
        lambda right: OneNumber(1, right),
        "the noise of an answer of length 1 is 30 % narrower than claimed",
    ),
    "pairs of noise in answers of several numbers": (
        lambda right: InPairs(1, right),
        "the noise of an answer of 8 numbers is not independent",
    ),
    "less noise for the last of an odd number": (
        lambda right: OddOneOut(1, right),
        "the noise of the last of 7 numbers has another distribution than that of the others",
    ),
    "a sharper choice among few": (
        lambda right: SharpTable(1, right),
        "of 2 candidates the best one is chosen in ",
    ),
    "batches that share a key": (
        lambda right: InBatches(1, right),
        "two answers that are drawn together have the same noise, or the same with another sign",
    ),
    "the next lower whole scale": (
        lambda right: LowerScale(1, right),
        "with epsilon = 0.556, the noise of an answer of length 2048 is 30 % narrower than claimed",
    ),
}


@pytest.mark.parametrize("bug", DRAWN)
def test_draws_for_answers_that_no_usual_test_has_are_named(bug, record_property):
    make, named = DRAWN[bug]
    found = check_sampler(make(False), draws=400).wrong
    record_property("planted bug", (bug, bool(found)))
    assert any(named in what for what in found), found


@pytest.mark.parametrize("bug", DRAWN)
def test_the_honest_twin_draws_what_it_states(bug, record_property):
    found = check_sampler(DRAWN[bug][0](True), draws=400)
    record_property("correct version", (bug, found.passed))
    assert found.passed, found


# --- right mechanisms of other forms ---------------------------------------------------------------------------------


@attrs.frozen
class RealLaplace(PureMechanism):
    """Laplace noise in floating point, with a density of real numbers, as in a textbook."""

    name = "real-laplace"
    norm = Norm.L1
    assumptions = ("real-arithmetic",)
    share: ClassVar[float] = 1.0

    def width(self, calibration):
        return float(calibration.scale) * self.share

    def release(self, answer, calibration, randomness):
        return np.asarray(answer) + randomness.generator.laplace(0, self.width(calibration), np.shape(answer))

    def log_density(self, answer, output, calibration):
        width = self.width(calibration)
        return float((-np.abs(np.asarray(output) - answer) / width - math.log(2 * width)).sum())

    def preview(self, calibration):
        return Preview.of_noise(float(calibration.scale), float(calibration.scale) * math.log(20))


@attrs.frozen
class TooLittle(RealLaplace):
    """Two thirds of that noise."""

    share: ClassVar[float] = 2 / 3


@attrs.frozen
class Labelled(ByCell):
    """Puts out noisy counts in a dictionary."""

    name = "labelled"

    def release(self, answer, calibration, randomness):
        return {"counts": super().release(answer, calibration, randomness), "noise": "geometric"}

    def log_density(self, answer, output, calibration):
        return super().log_density(answer, output["counts"], calibration)


@attrs.frozen
class Largest(ByCell):
    """Puts out the largest noisy count and where it is: two numbers, as many as the usual answers have."""

    name = "largest"

    def release(self, answer, calibration, randomness):
        noisy = np.ravel(super().release(answer, calibration, randomness))
        return {"where": int(noisy.argmax()), "count": int(noisy.max())}

    def log_density(self, answer, output, calibration):
        counts, scale = np.ravel(calibration.on_lattice(answer)), calibration.lattice_scale
        where, count, ratio = output["where"], output["count"], math.exp(-1 / scale)
        log = math.log(math.tanh(0.5 / scale)) - abs(count - int(counts[where])) / scale
        for k, exact in enumerate(counts.tolist()):
            below = count - exact - (k < where)
            tail = ratio ** (abs(below) + (below >= 0)) / (1 + ratio)
            log += math.log(1 - tail if below >= 0 else tail) if k != where else 0.0
        return log

    def preview(self, calibration):
        return Preview(math.nan, math.nan, "the largest")


@pytest.mark.parametrize("right", [RealLaplace(1), Labelled(1), Largest(1)], ids=lambda one: one.name)
def test_mechanisms_of_other_forms_pass(right: Mechanism) -> None:
    suite = MechanismConformance()
    suite.test_it_draws_what_it_states(right)
    suite.test_it_loses_no_more_than_it_claims(right)


def test_a_density_of_real_numbers_is_compared_with_what_is_claimed():
    found = str(check_losses(TooLittle(1)))
    assert f"a count, {ADD}: epsilon: 1 is claimed, 1.5 found: DOES NOT HOLD" in found
    assert f"a real number, {ADD}: epsilon: 1 is claimed, 1.5 found: DOES NOT HOLD" in found


def test_only_floats_off_the_lattice_have_a_density_of_real_numbers():
    facts, answer = dpf.queries.Count().facts(), np.array([3])
    for mechanism, real in ((RealLaplace(1), True), (DiscreteLaplace(1), False), (Gaussian("0.5"), False)):
        assert has_real_density(mechanism, answer, mechanism.calibrate(facts, ADD)) is real


@attrs.frozen
class OwnScale(ByCell):
    """Divides by a number that is 0 unless the noise has the calibrated scale."""

    name = "own-scale"

    def log_density(self, answer, output, calibration):
        return super().log_density(answer, output, calibration) / (calibration.scale == 1)


def test_a_log_density_that_fails_at_another_scale_is_explained():
    (found,) = check_sampler(OwnScale(1)).wrong
    assert found.startswith("its log_density fails with ZeroDivisionError: ")
    assert found.endswith(
        "at 1.3 times the scale that it draws with; the tests compare its draws with other scales, so "
        "log_density must work with any value of calibration.scale"
    )


@attrs.frozen
class OfTwo(ByCell):
    """Takes answers of two numbers only."""

    name = "of-two"

    def release(self, answer, calibration, randomness):
        if np.size(answer) != 2:
            raise ValueError("two numbers are needed")
        return super().release(answer, calibration, randomness)


def lengths_of(mechanism: Mechanism, go_on: Callable[[], bool] = lambda: True) -> list[str]:
    facts = dpf.queries.Histogram(dpf.Boolean("ill")).facts()
    return [weighed.what for weighed in weigh_other_answers(mechanism, facts, ADD, go_on)]


def test_lengths_that_a_mechanism_does_not_serve_are_left_out():
    assert lengths_of(OfTwo(1))[0] == "an answer of length 2"
    assert [what for what in lengths_of(ByCell(1)) if "with" not in what] == [
        f"an answer of length {length}" for length in LENGTHS
    ]
    assert lengths_of(ByCell(1), lambda: False) == []
    assert lengths_of(dpf.mechanisms.KNorm(1)) == []


@attrs.frozen
class Fields(ByCell):
    """Has a field that is computed, a private one, and one whose converter reads what is written, or does not."""

    name = "fields"
    right: bool = True
    ratio: float = attrs.field(init=False, default=0.5)
    _factor: Fraction = attrs.field(default=Fraction(2), converter=Fraction)
    weights: Any = attrs.field(default=(Fraction(1, 3),), converter=lambda given: tuple(map(Fraction, given)))
    plain: Any = None


@pytest.mark.parametrize("right", [True, False])
def test_a_mechanism_that_a_plan_file_does_not_hold_is_named(right):
    suite, mechanism = MechanismConformance(), Fields(1, plain=None if right else (1, 2))
    if right:
        suite.test_a_plan_file_holds_its_parameters(mechanism)
        return
    with pytest.raises(AssertionError, match=r"plain=\[1, 2\].* back; does each field have a converter"):
        suite.test_a_plan_file_holds_its_parameters(mechanism)
