"""Sums of noise, against convolutions of their distributions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpframework.mechanisms.noise_laws import MOST_TERMS, LaplaceLaw, LaplaceSumLaw, NormalLaw


@pytest.mark.parametrize("number", [2, 3, 9, 49])
def test_a_sum_of_laplace_draws_has_the_distribution_of_their_convolution(number: int) -> None:
    """Discrete Laplace noise of scale 200 is a lattice for continuous noise of scale 1, to four digits."""
    size, scale = 1 << 17, 200
    lattice = stats.dlaplace(1 / scale).pmf(np.arange(size) - size // 2)
    density = np.fft.irfft(np.fft.rfft(np.fft.ifftshift(lattice)) ** number, size)
    upto = np.cumsum(np.fft.fftshift(density))
    law = LaplaceLaw(1).sum_of(number)
    points = np.array([-5.0, -1.0, 0.0, 0.5, 3.0, 10.0])
    steps = (points * scale).astype(int) + size // 2
    assert law.at_most(points + 0.5 / scale) == pytest.approx(upto[steps], abs=1e-4)
    chances = np.array([0.025, 0.3, 0.5, 0.975, 0.999])
    assert law.at_most(law.quantile(chances)) == pytest.approx(chances, abs=1e-9)


@pytest.mark.parametrize(
    ("law", "known"),
    [(LaplaceLaw(2), stats.laplace(scale=2)), (NormalLaw(3), stats.norm(scale=3))],
    ids=["laplace", "normal"],
)
def test_a_law_and_its_quantiles_are_those_of_scipy(law, known) -> None:
    points = np.array([-7.0, -1.0, -0.25, 0.0, 0.25, 0.5, 0.99, 1.0, 1.5, 9.0])
    assert law.at_most(points) == pytest.approx(known.cdf(points), abs=1e-12)
    chances = np.array([0.001, 0.3, 0.5, 0.75, 0.999])
    assert law.quantile(chances) == pytest.approx(known.ppf(chances), abs=1e-9)


def test_sums_of_one_of_sums_and_of_very_many() -> None:
    chance = np.array(0.975)
    assert LaplaceLaw(3).sum_of(1) == LaplaceLaw(3)
    assert LaplaceLaw(3).sum_of(4).sum_of(2) == LaplaceSumLaw(3, 8)
    assert NormalLaw(3).sum_of(4) == NormalLaw(6)
    last, first = (float(LaplaceLaw(1).sum_of(MOST_TERMS + k).quantile(chance)) for k in (0, 1))
    assert first == pytest.approx(last, rel=1e-3)
    assert float(LaplaceSumLaw(2, 1).quantile(chance)) == pytest.approx(float(LaplaceLaw(2).quantile(chance)))
