"""Probabilities of different outputs add up to 1: a density that ignores a part of an output is found."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Exponential, Laplace, Mechanism, PermuteAndFlip
from dpframework.verify.mechanisms.output_probability_sum_check import DRAWN, STEPS, total_problems

ADD = dpf.Relation.ADD_OR_REMOVE_ONE
HISTOGRAM = dpf.queries.Histogram(dpf.Categorical("c", ["x", "y", "z"]))
SCORES = np.array([3, 1, 2])


@attrs.frozen
class BesideTheCount(DiscreteLaplace):
    """Puts out the exact count beside the noisy one, and weighs the noisy one alone."""

    def release(self, answer: Any, calibration: Any, randomness: Any) -> Any:
        return np.concatenate([super().release(answer, calibration, randomness), answer])

    def log_density(self, answer: Any, output: Any, calibration: Any) -> float:
        return super().log_density(answer, output[: len(answer)], calibration)


@attrs.frozen
class TypeOfTheCount(DiscreteLaplace):
    """Puts out the type that even counts have, whose density is that of any other."""

    def release(self, answer: Any, calibration: Any, randomness: Any) -> Any:
        drawn = super().release(answer, calibration, randomness)
        return drawn.astype(np.int32) if answer[0] % 2 else drawn


@attrs.frozen
class Twice(PermuteAndFlip):
    """Gives each candidate twice its probability."""

    def log_density(self, answer: Any, output: Any, calibration: Any) -> float:
        return super().log_density(answer, output, calibration) + np.log(2)


def problems(mechanism: Mechanism) -> list[str]:
    calibration = mechanism.calibrate(HISTOGRAM.facts(), ADD)
    assert calibration is not None
    return list(total_problems(mechanism, SCORES, calibration))


@pytest.mark.parametrize(
    "mechanism", [DiscreteLaplace("0.1"), DiscreteLaplace(3), Exponential(1), PermuteAndFlip(1), Laplace(1)], ids=str
)
def test_an_honest_mechanism_has_no_problem(mechanism: Mechanism) -> None:
    assert problems(mechanism) == []


@pytest.mark.parametrize("mechanism", [BesideTheCount(1), TypeOfTheCount(1)], ids=lambda one: type(one).__name__)
def test_a_part_of_an_output_that_no_density_weighs_is_found_with_two_examples(mechanism: Mechanism) -> None:
    (problem,) = problems(mechanism)
    assert "different outputs add up to" in problem
    assert "let it depend on the whole output" in problem
    assert problem.count("(int") == 2  # two outputs of one probability, each with its type
    number = int(problem.split("probabilities of ")[1].split()[0])
    assert 1 < number <= DRAWN * len(STEPS)
