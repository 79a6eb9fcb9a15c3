"""Noise of vectors that is wrong in its shape, for some numbers of an answer or in some directions: planted bugs.

Each is planted beside a right version. Noise of another shape has the stated mean size. Noise that is smaller for later
numbers, for the largest number or in one direction says so in its log-density.
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from verify.bug_version import Version

import dpframework as dpf
from dpframework.facts.privacy_losses import ByRelation, positive
from dpframework.mechanisms import Losses, Mechanism, Preview, PureMechanism
from dpframework.mechanisms.release_losses import divide, half_square
from dpframework.queries import Norm
from dpframework.results.noisy_count_with_interval import discrete_laplace_variance
from dpframework.verify import check_losses, check_sampler
from dpframework.verify.mechanisms.losses_on_unusual_answers import DEPENDENT_DRAWN
from dpframework.verify.mechanisms.neighbour_answers import answers_of
from dpframework.verify.mechanisms.sampler_statistics import renyi_at_least

RIGHT, WRONG = Version(True), Version(False)
ADD, REPLACE = dpf.Relation.ADD_OR_REMOVE_ONE, dpf.Relation.REPLACE_ONE


@attrs.frozen
class Cells(PureMechanism):
    """Geometric noise on a lattice, whose size for each number a subclass may choose; its log-density says so."""

    name = "cells"
    norm = Norm.L1
    right: Any = RIGHT

    def shares(self, exact):
        return np.ones(exact.shape)

    def scales(self, exact, calibration):
        return calibration.lattice_scale * (np.ones(exact.shape) if self.right else self.shares(exact))

    def draw(self, size, scale, calibration, randomness):
        return randomness.discrete_laplace(size, scale)

    def release(self, answer, calibration, randomness):
        exact = calibration.on_lattice(answer)
        scales = self.scales(exact, calibration)
        noisy = exact.copy()
        for scale in np.unique(scales):
            noisy[scales == scale] += self.draw(int((scales == scale).sum()), float(scale), calibration, randomness)
        return noisy if calibration.unit == 1 else noisy * float(calibration.unit)

    def log_density(self, answer, output, calibration):
        exact = calibration.on_lattice(answer)
        distance = np.abs(np.rint(np.asarray(output) / float(calibration.unit)) - exact)
        scales = self.scales(exact, calibration)
        return float((np.log(np.tanh(0.5 / scales)) - distance / scales).sum())

    def preview(self, calibration):
        return Preview.of_noise(float(calibration.scale), math.ceil(float(calibration.scale) * math.log(40)))


@attrs.frozen
class NormalForReal(Cells):
    """Adds normal noise of the same mean size to real numbers."""

    def draw(self, size, scale, calibration, randomness):
        if self.right or calibration.unit == 1:
            return super().draw(size, scale, calibration, randomness)
        return randomness.discrete_gaussian(size, scale * math.sqrt(math.pi / 2))


@attrs.frozen
class NormalIfWide(Cells):
    """Adds normal noise of the same mean size where the noise is wide."""

    def draw(self, size, scale, calibration, randomness):
        if self.right or calibration.unit != 1 or scale < 20:
            return super().draw(size, scale, calibration, randomness)
        return randomness.discrete_gaussian(size, scale * math.sqrt(math.pi / 2))


@attrs.frozen
class Mixed(Cells):
    """Adds a tenth of the noise to a fifth of the real numbers, and wider noise to the others."""

    def draw(self, size, scale, calibration, randomness):
        noise = super().draw(size, scale, calibration, randomness)
        if self.right or calibration.unit == 1:
            return noise
        return np.where(randomness.integers(5, size) == 0, noise // 10, np.rint(1.225 * noise).astype(np.int64))


@attrs.frozen
class InABall(PureMechanism):
    """Noise with a density of exp(-length / scale), in floating point: a direction, and a length of the same mean."""

    name = "in-a-ball"
    norm = Norm.L1
    assumptions = ("real-arithmetic",)
    right: Any = RIGHT

    def release(self, answer, calibration, randomness):
        exact, generator = np.asarray(answer, dtype=float), randomness.generator
        towards, times = generator.standard_normal(exact.shape), 1 if self.right else 2
        length = generator.gamma(times * exact.size, float(calibration.scale) / times)
        return exact + length * towards / np.linalg.norm(towards)

    def log_density(self, answer, output, calibration):
        size, scale = np.size(answer), float(calibration.scale)
        surface = math.log(2) + size / 2 * math.log(math.pi) - math.lgamma(size / 2)
        length = float(np.linalg.norm(np.asarray(output) - answer))
        return -length / scale - math.lgamma(size) - size * math.log(scale) - surface

    def preview(self, calibration):
        return Preview.of_noise(2 * float(calibration.scale), 30 * float(calibration.scale))


@attrs.frozen
class BoastsOfErrors(Cells):
    """States a third of the expected error."""

    def preview(self, calibration):
        preview = super().preview(calibration)
        return preview if self.right else Preview.of_noise(preview.expected / 3, preview.within)


@attrs.frozen
class BoastsOfVariance(Cells):
    """States half of the variance."""

    def variance(self, calibration):
        variance = discrete_laplace_variance(calibration.lattice_scale) * float(calibration.unit) ** 2
        return variance if self.right else variance / 2


DRAWN: dict[str, tuple[Callable[[Any], Mechanism], str]] = {
    "normal noise for real numbers": (
        lambda right: NormalForReal(1, right),
        "two real numbers: the noise of an answer of length 1 is not distributed as its log-density states",
    ),
    "normal noise where noise is wide": (
        lambda right: NormalIfWide(1, right),
        "with epsilon = 0.00391, the noise of an answer of length 2048 is not distributed as its log-density states",
    ),
    "a mixture of little noise and wider noise": (
        lambda right: Mixed(1, right),
        "two real numbers: the noise of an answer of length 1 is not distributed as its log-density states",
    ),
    "a length with another distribution": (
        lambda right: InABall(1, right),
        "the noise of an answer of length 2 is not distributed as its log-density states: draws change",
    ),
    "a preview of a third of the error": (
        lambda right: BoastsOfErrors(1, right),
        "more than the 0.333 that its preview expects",
    ),
    "half of the variance": (
        lambda right: BoastsOfVariance(1, right),
        "more than its variance of ",
    ),
}


@pytest.mark.parametrize("bug", DRAWN)
def test_noise_of_another_shape_is_named(bug, record_property):
    make, named = DRAWN[bug]
    found = check_sampler(make(WRONG), draws=400).wrong
    record_property("planted bug", (bug, bool(found)))
    assert any(named in what for what in found), found


@pytest.mark.parametrize("bug", DRAWN)
def test_noise_of_the_stated_shape_passes(bug, record_property):
    found = check_sampler(DRAWN[bug][0](RIGHT), draws=400)
    record_property("correct version", (bug, found.passed))
    assert found.passed, str(found)


@attrs.frozen
class LessForLater(Cells):
    """Adds less noise from the third number on."""

    def shares(self, exact):
        return np.where(np.arange(exact.size) < 2, 1.0, 0.7).reshape(exact.shape)


@attrs.frozen
class LessForTheLargest(Cells):
    """Adds less noise to a number that is far above the median."""

    def shares(self, exact):
        return np.where(exact > 10 * abs(np.median(exact)) + 50, 0.7, 1.0) if exact.size > 2 else np.ones(exact.shape)


@attrs.frozen
class Correlated(Mechanism):
    """Normal noise with a covariance that a subclass gives, in floating point; it may be too small in a direction."""

    name = "correlated"
    norm = Norm.SQUARED_L2
    assumptions = ("real-arithmetic",)
    rho: Fraction = attrs.field(converter=positive)
    right: Any = RIGHT

    @abc.abstractmethod
    def covariance(self, size):
        """Return the covariance of the noise of `size` numbers, but for a factor."""

    def matrix(self, size):
        if size < 3:
            return np.eye(size)
        found = self.covariance(size)
        return found / np.linalg.eigvalsh(found)[0] if self.right else found

    def for_rows(self, rows):
        return attrs.evolve(self, rho=self.rho / rows**2)

    def scale(self, change):
        return change / (2 * self.rho)

    def losses(self, change, scale):
        return Losses(ByRelation(None, None), divide(change, 2 * scale))

    def release(self, answer, calibration, randomness):
        exact = np.asarray(answer, dtype=float)
        drawn = randomness.generator.standard_normal(exact.size) * math.sqrt(calibration.scale)
        return exact + (drawn if exact.size > 100 else root_of(self, exact.size)[0] @ drawn).reshape(exact.shape)

    def log_density(self, answer, output, calibration):
        noise, variance = np.ravel(np.asarray(output, dtype=float) - answer), float(calibration.scale)
        if noise.size > 100:
            return -float((noise**2).sum() / variance + noise.size * math.log(2 * math.pi * variance)) / 2
        _, inverse, size = root_of(self, noise.size)
        return -float(noise @ inverse @ noise / variance + size + noise.size * math.log(2 * math.pi * variance)) / 2

    def preview(self, calibration):
        return Preview.of_noise(2 * math.sqrt(calibration.scale), 9 * math.sqrt(calibration.scale))


@functools.cache
def root_of(mechanism, size):
    """Return a root of the matrix of a mechanism, its inverse, and the logarithm of its determinant."""
    matrix = mechanism.matrix(size)
    return np.linalg.cholesky(matrix), np.linalg.inv(matrix), np.linalg.slogdet(matrix)[1]


@attrs.frozen
class Smooth(Correlated):
    """Noise that changes slowly from number to number."""

    def covariance(self, size):
        return 0.5 ** np.abs(np.subtract.outer(np.arange(size), np.arange(size)))


@attrs.frozen
class QuietTotal(Correlated):
    """Noise of whose sum half is taken away."""

    def covariance(self, size):
        return np.eye(size) - np.full((size, size), 0.5 / size)


@attrs.frozen
class CutOff(PureMechanism):
    """Noise for one count that is cut off, with a delta for its last steps, which a larger epsilon may forget."""

    name = "cut-off"
    norm = Norm.L1
    delta: Fraction = attrs.field(converter=positive)
    right: Any = RIGHT

    def misfit(self, facts):
        one = facts.integer and facts.answer_length == 1
        return super().misfit(facts) if one else "adds noise to one count"

    def losses(self, change, scale):
        pure = ByRelation(super().losses(change, scale).pure.add_or_remove_one, None)
        return Losses(pure, half_square(pure), ByRelation(self.delta, None))

    def logs(self, calibration):
        """Return the log-probabilities of noise from 0 on, up to its end."""
        decay, steps = 1 / calibration.lattice_scale, math.ceil(calibration.scale * self.epsilon)
        end, forgets = steps, not self.right and self.epsilon > 2
        while True:
            weights = np.exp(-decay * np.arange(end + 1))
            total = 2 * weights.sum() - 1
            last = weights[-1] / 16 if forgets else weights[-steps:].sum()
            if last / total <= self.delta:
                return np.log(weights / total)
            end += 1

    def release(self, answer, calibration, randomness):
        exact, end = calibration.on_lattice(answer), len(self.logs(calibration)) - 1
        noise = randomness.discrete_laplace(1, calibration.lattice_scale)
        while abs(int(noise[0])) > end:
            noise = randomness.discrete_laplace(1, calibration.lattice_scale)
        return exact + noise.reshape(exact.shape)

    def log_density(self, answer, output, calibration):
        logs, distance = self.logs(calibration), int(np.abs(np.asarray(output) - answer).sum())
        return float(logs[distance]) if distance < len(logs) else -math.inf

    def preview(self, calibration):
        return Preview.of_noise(float(calibration.scale), math.ceil(float(calibration.scale) * math.log(40)))


LOST: dict[str, tuple[Callable[[Any], Mechanism], str]] = {
    "less noise for later numbers": (
        lambda right: LessForLater(1, right),
        f"counts of disjoint cells, an answer of length 3, {ADD}: epsilon: 1 is claimed, 1.42857 found",
    ),
    "less noise for the largest number": (
        lambda right: LessForTheLargest(1, right),
        f"counts of disjoint cells, an answer of length 3, {ADD}: epsilon: 1 is claimed, ",
    ),
    "correlated noise of the stated variance": (
        lambda right: Smooth("0.5", right),
        f"length 3, if only its squared-l2 sensitivity is declared, {ADD}: rho times the order 1.25 of a Renyi",
    ),
    "less noise in the direction of the total": (
        lambda right: QuietTotal("0.5", right),
        f"length 3, if only its squared-l2 sensitivity is declared, {ADD}: rho times the order 1.25 of a Renyi",
    ),
    "noise that ends too early at a large epsilon": (
        lambda right: CutOff(1, Fraction(1, 100), right),
        f"a count, an answer of length 1, with epsilon = 2.25, {ADD}: exact delta beyond epsilon 2.25: 0.01 is claimed",
    ),
}


@pytest.mark.parametrize("bug", LOST)
def test_a_loss_at_other_numbers_or_in_another_direction_is_named(bug, record_property):
    make, named = LOST[bug]
    found = str(check_losses(make(WRONG), relations=[ADD]))
    record_property("planted bug", (bug, "DOES NOT HOLD" in found))
    assert named in found, found


@pytest.mark.parametrize("bug", LOST)
def test_the_right_version_loses_no_more_than_it_claims(bug, record_property):
    found = check_losses(LOST[bug][0](RIGHT), relations=[ADD])
    record_property("correct version", (bug, found.passed))
    assert found.passed, found


@attrs.frozen
class OneRowOfMany(Cells):
    """Takes a replaced row in an answer of 20 numbers or more for one that is added or removed."""

    def change(self, facts):
        change = super().change(facts)
        many = (facts.answer_length or 1) >= 20
        return ByRelation(*(change.add_or_remove_one,) * 2) if many and not self.right else change


def test_a_replaced_row_is_tried_in_a_long_answer(record_property):
    found = str(check_losses(OneRowOfMany(1, WRONG), relations=[REPLACE]))
    named = f"counts of disjoint cells, an answer of length 1000, {REPLACE}: epsilon: 1 is claimed, 2 found"
    record_property("planted bug", ("a replaced row that counts once", named in found))
    assert named in found, found
    right = check_losses(OneRowOfMany(1, RIGHT), relations=[REPLACE])
    record_property("correct version", ("a replaced row that counts twice", right.passed))
    assert right.passed, right


@attrs.frozen
class BestTwo(PureMechanism):
    """The two candidates with the best noisy scores, in floating point; the wrong one pays for one candidate."""

    name = "best-two"
    norm = Norm.LINF
    needs_length = False
    assumptions = ("real-arithmetic",)
    right: Any = RIGHT

    def change(self, facts):
        return facts.sensitivity(Norm.LINF).spread.map(lambda spread: spread * (2 if self.right else 1))

    def release(self, answer, calibration, randomness):
        scores = np.ravel(answer) / float(calibration.scale) + randomness.generator.gumbel(size=np.size(answer))
        return tuple(np.argsort(-scores)[:2].tolist())

    def log_density(self, answer, output, calibration):
        first, second = output
        weights = np.ravel(answer) / float(calibration.scale)
        weights = weights - weights.max()
        without = np.logaddexp.reduce(np.delete(weights, first))
        return float(weights[first] - np.logaddexp.reduce(weights) + weights[second] - without)

    def preview(self, calibration):
        return Preview(math.nan, math.nan, "two good candidates")


def test_a_mechanism_that_chooses_two_candidates_is_given_their_scores(record_property):
    some = answers_of(BestTwo(1))[:1]
    found = str(check_losses(BestTwo(1, WRONG), given=some, relations=[ADD]))
    record_property("planted bug", ("two choices for the price of one", "DOES NOT HOLD" in found))
    assert f"integer scores, monotonic, {ADD}: epsilon: 1 is claimed, 1.9" in found, found
    right = check_losses(BestTwo(1, RIGHT), given=some, relations=[ADD])
    record_property("correct version", ("two choices", right.passed))
    assert right.passed, right


def test_correlated_noise_draws_what_it_states():
    found = check_sampler(Smooth("0.5", RIGHT), draws=400)
    assert found.passed, str(found)


@pytest.mark.parametrize("order", [1.25, 2.0])
def test_losses_of_draws_bound_a_divergence_from_below(order):
    """The losses of normal noise are normal: of a rho r, their mean is r and their variance 2 r."""
    source = np.random.default_rng(3)
    for rho in (0.1, 0.5, 2.0):
        drawn = [source.normal(rho, math.sqrt(2 * rho), DEPENDENT_DRAWN) for _ in range(50)]
        bound = renyi_at_least(drawn, order, 50)
        assert bound <= order * rho
    assert renyi_at_least(drawn, 1.25, 50) > 0.8 * 2.0
    assert renyi_at_least([], order, 1) == 0
