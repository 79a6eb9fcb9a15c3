"""Statistics of draws: an honest sampler passes, and one of another scale, shape or dependence is told from it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Exponential, Gaussian, KNorm, Laplace, Mechanism, PermuteAndFlip
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.queries import Norm, QueryFacts, Sensitivity
from dpframework.verify import check_sampler
from dpframework.verify.mechanisms.probe_query_answers import Probe
from dpframework.verify.mechanisms.sampler_check import _sharpen
from dpframework.verify.mechanisms.sampler_statistics import DrawnOutputs, mean_exceeds, noise_size, with_scale

ADD = dpf.Relation.ADD_OR_REMOVE_ONE
FACTS = dpf.queries.Histogram(dpf.Categorical("c", ["x", "y", "z"])).facts()
PROBE = Probe(FACTS, lambda scale: np.array([5, 0, 2]))
FACTOR = st.sampled_from([Fraction(1, 3), Fraction(10, 13), Fraction(13, 10), Fraction(4)])


@attrs.frozen
class HalfDrawn(DiscreteLaplace):
    """Draws half of the noise that it states."""

    def release(self, answer: Any, calibration: Any, randomness: Any) -> Any:
        return super().release(answer, with_scale(calibration, Fraction(1, 2)), randomness)


@attrs.frozen
class OneForAll(DiscreteLaplace):
    """Adds the same noise to each count."""

    def release(self, answer: Any, calibration: Any, randomness: Any) -> Any:
        noise = super().release(answer, calibration, randomness) - answer
        return answer + noise[0]


@attrs.frozen
class Boasts(PermuteAndFlip):
    """States more than all of the probability."""

    def log_density(self, answer: Any, output: Any, calibration: Any) -> float:
        return super().log_density(answer, output, calibration) + 0.1


@attrs.frozen
class Impossible(DiscreteLaplace):
    """Says of odd counts that it never puts them out, and does."""

    def log_density(self, answer: Any, output: Any, calibration: Any) -> float:
        return -math.inf if output[0] % 2 else super().log_density(answer, output, calibration)


@attrs.frozen
class InAList(DiscreteLaplace):
    """Puts out a list, in turn: a number may begin where the number before it ended."""

    name = "in-a-list"
    in_turn: bool = True
    as_stated: bool = True

    def release(self, answer: Any, calibration: Any, randomness: Any) -> list[int]:
        noise = np.asarray(super().release(np.zeros_like(answer), calibration, randomness))
        if not self.as_stated:
            noise = np.full_like(noise, noise[0])
        return [int(number) for number in (np.cumsum(answer + noise) if self.in_turn else answer + noise)]

    def release_many(self, answers: Any, calibration: Any, randomness: Any) -> list[Any]:
        return [self.release(answer, calibration, randomness) for answer in answers]

    def log_density(self, answer: Any, output: Any, calibration: Any) -> float:
        return super().log_density(answer, np.diff(output, prepend=0) if self.in_turn else output, calibration)


def problems(mechanism: Mechanism, draws: int = 2000) -> list[str]:
    drawn = DrawnOutputs(mechanism, PROBE, SeededRandomness(3))
    drawn.draw(draws)
    assert len(drawn.outputs) == draws
    return list(drawn.problems(to_tell=True))


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(1), Laplace(1), Gaussian("0.5"), PermuteAndFlip(1)], ids=str)
def test_an_honest_sampler_has_no_problem(mechanism: Mechanism) -> None:
    assert problems(mechanism) == []


@pytest.mark.parametrize(
    ("mechanism", "text"),
    [
        (HalfDrawn(1), "narrower than claimed"),
        (OneForAll(1), "correlated between coordinates"),
        (InAList(1, in_turn=False, as_stated=False), "correlated between coordinates"),
        (Boasts(1), "probabilities of its 3 candidates add up to 1.1"),
        (Impossible(1), "draws are impossible by its own log-density"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_sampler_that_is_off_is_told_how(mechanism: Mechanism, text: str) -> None:
    assert any(text in problem for problem in problems(mechanism))


def test_numbers_of_a_list_may_depend_on_each_other_if_the_log_density_says_so() -> None:
    assert not any("correlated" in problem for problem in problems(InAList(1)))
    assert problems(InAList(1, in_turn=False)) == []


@given(FACTOR)
def test_a_scale_is_multiplied_in_units_of_the_answer(factor: Fraction) -> None:
    for mechanism in (DiscreteLaplace(1), Laplace(1), Gaussian("0.5")):
        calibration = mechanism.calibrate(FACTS, ADD)
        assert calibration is not None
        scaled = noise_size(mechanism, with_scale(calibration, factor))
        assert math.isclose(scaled, float(factor) * noise_size(mechanism, calibration))
        assert with_scale(with_scale(calibration, factor), 1 / factor) == calibration


def test_the_further_a_scale_is_off_the_sooner_draws_tell_it() -> None:
    drawn = DrawnOutputs(DiscreteLaplace(1), PROBE, SeededRandomness(3))
    drawn.draw(2000)
    near, far, very_far = (drawn.evidence(Fraction(factor)) for factor in ("1.1", "1.3", "2"))
    assert 0 < near < far < very_far


def test_a_mean_is_refused_only_if_numbers_are_too_large_for_it() -> None:
    source = np.random.default_rng(5)
    for numbers in (source.exponential(size=2000), source.exponential(size=2000) ** 2 / 2, source.random(2000) * 2):
        assert not mean_exceeds(numbers, 1.0)
        assert mean_exceeds(numbers, 0.5)
    rare = np.array([500.0] + [0.0] * 999)  # a heavy tail: the mean is as stated
    assert not mean_exceeds(rare, 0.5)
    assert not mean_exceeds(np.ones(2000), math.nan)
    assert mean_exceeds(np.ones(2000), 0.0)
    assert not mean_exceeds(np.zeros(2000), 0.0)


def test_scores_that_drown_in_the_noise_are_drawn_from_with_a_smaller_sensitivity_alone() -> None:
    """As they are, draws would hardly tell the noise from noise of another scale."""
    declared = [Sensitivity(Norm.LINF, 1, 1, source="a probe")]
    probe = Probe(QueryFacts("few", "few", (), False, 4, declared), lambda scale: np.array([0.2, 0.1, 0, 0]))
    (smaller,) = _sharpen(Exponential("0.2"), probe).facts.sensitivities
    assert (smaller.add_or_remove_one or 1) < 1
    assert _sharpen(Exponential(20), probe) is probe


@attrs.frozen
class SharedSigns(KNorm):
    """Orders the first two cells of both histograms alike. Each histogram by itself has the noise that is stated."""

    name = "shared-signs"

    def release(self, answer: Any, calibration: Any, randomness: Any) -> Any:
        noise = np.array(super().release(answer, calibration, randomness) - answer)
        first, second = noise[:2], noise[2:4]
        if (first[0] - first[1]) * (second[0] - second[1]) < 0:
            second[:] = second[::-1].copy()
        return answer + noise

    def release_many(self, answers: Any, calibration: Any, randomness: Any) -> list[Any]:
        return [self.release(answer, calibration, randomness) for answer in answers]


@pytest.mark.parametrize("mechanism", [KNorm(1), DiscreteLaplace(1), SharedSigns(1)], ids=lambda one: one.name)
def test_histograms_whose_sums_agree_are_correlated_and_their_orders_are_not(mechanism: Mechanism) -> None:
    """The ranks of two cells of K-norm noise have a correlation of -0.065, so that one verification of five failed."""
    towns = [dpf.Categorical("a", ["x", "y"]), dpf.Categorical("b", ["x", "y", "z"])]
    probe = Probe(dpf.queries.Marginals(towns).facts(), lambda scale: np.array([5, 0, 2, 2, 1]))
    drawn = DrawnOutputs(mechanism, probe, SeededRandomness(3))
    drawn.draw(12_000)
    found = [problem for problem in drawn.problems(to_tell=False) if "correlated" in problem]
    assert found == (["the draws are correlated between histograms"] if isinstance(mechanism, SharedSigns) else [])


@attrs.frozen
class ByLoss(Mechanism):
    """Discrete Laplace noise whose only parameter is neither an epsilon nor a rho."""

    name = "by-loss"
    norm = Norm.L1
    loss: Fraction = Fraction(1)

    def scale(self, change):
        return DiscreteLaplace(self.loss).scale(change)

    def losses(self, change, scale):
        return DiscreteLaplace(self.loss).losses(change, scale)

    def release(self, answer, calibration, randomness):
        return DiscreteLaplace(self.loss).release(answer, calibration, randomness)

    def log_density(self, answer, output, calibration):
        return DiscreteLaplace(self.loss).log_density(answer, output, calibration)

    def preview(self, calibration):
        return DiscreteLaplace(self.loss).preview(calibration)


def test_a_mechanism_may_call_its_budget_otherwise() -> None:
    assert check_sampler(ByLoss()).passed
