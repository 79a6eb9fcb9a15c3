"""Sources of randomness: what is drawn, and what says that it is private."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpframework as dpf
from dpframework.mechanisms.randomness import Noise, SeededRandomness, SystemRandomness

SOURCES = {"seeded": lambda: SeededRandomness(11), "system": SystemRandomness}


def accepted(draws: Any, probabilities: dict[int, float]) -> bool:
    """Binomial tests a value, corrected for their number: wrongly false with probability at most 1e-6."""
    level = 1e-6 / len(probabilities)
    return all(
        stats.binomtest(int((draws == value).sum()), len(draws), p).pvalue >= level
        for value, p in probabilities.items()
    )


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5])
def test_discrete_laplace(source: str, scale: float) -> None:
    draws = SOURCES[source]().discrete_laplace(8000, scale)
    assert draws.dtype == np.int64
    head = math.tanh(1 / (2 * scale))
    assert accepted(draws, {k: head * math.exp(-abs(k) / scale) for k in range(-3, 4)})


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("scale", [0.4, 1.0, 6.3])
def test_discrete_gaussian(source: str, scale: float) -> None:
    draws = SOURCES[source]().discrete_gaussian(8000, scale)
    weights = {k: math.exp(-(k**2) / (2 * scale**2)) for k in range(-100, 101)}
    total = sum(weights.values())
    assert accepted(draws, {k: weights[k] / total for k in range(-4, 5)})


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("noise", Noise)
def test_noisy_max(source: str, noise: Noise) -> None:
    randomness = SOURCES[source]()
    scores, scale = np.array([6, 2, 8]), 3.0
    draws = np.array([randomness.noisy_max(scores, scale, noise) for _ in range(5000)])
    scaled = (scores - 8) / scale
    if noise is Noise.GUMBEL:
        exact = np.exp(scaled) / np.exp(scaled).sum()
    else:
        exact = [math.exp(dpf.mechanisms.permute_and_flip_log_probability(scaled, k)) for k in range(3)]
    assert accepted(draws, dict(enumerate(map(float, exact))))


@pytest.mark.parametrize("source", SOURCES)
def test_no_draws_and_one_candidate(source: str) -> None:
    randomness = SOURCES[source]()
    assert randomness.discrete_laplace(0, 1.0).shape == (0,)
    assert randomness.discrete_gaussian(0, 1.0).shape == (0,)
    assert randomness.noisy_max(np.array([-5]), 1.0, Noise.GUMBEL) == 0


def test_a_seed_repeats_its_draws_and_is_not_private() -> None:
    one, two = SeededRandomness(7), SeededRandomness(np.int64(7))  # type: ignore[arg-type]
    assert one.discrete_laplace(50, 3.0).tolist() == two.discrete_laplace(50, 3.0).tolist()
    assert one.generator.random() == two.generator.random()
    assert not one.private


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None, True])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(dpf.InputError, match="seed"):
        SeededRandomness(seed)


def test_system_draws_are_private_and_never_repeat() -> None:
    one, two = SystemRandomness(), SystemRandomness()
    assert one.private
    assert type(one.generator.bit_generator).__name__ == "ChaCha"
    assert one.generator is one.generator
    assert one.generator.random(4).tolist() != two.generator.random(4).tolist()
    assert one.discrete_laplace(64, 1e6).tolist() != one.discrete_laplace(64, 1e6).tolist()


def test_system_draws_have_their_own_noise_in_each_coordinate() -> None:
    draws = SystemRandomness().discrete_laplace(64, 1e6)
    assert len(set(draws.tolist())) > 32
