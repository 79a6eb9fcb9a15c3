"""The upper limit of an error rate, beside scipy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from dpframework_trees.leaf_error_rate import LEVEL, regularized_beta, upper_error_rate
from scipy.special import betainc, betaincinv

NUMBERS = (0.003, 0.4, 1.0, 6.0, 37.5, 900.0, 2.1e4, 3.3e6)


@pytest.mark.parametrize(("wrong", "right"), itertools.product((0.0, *NUMBERS), NUMBERS))
def test_the_limit_is_the_quantile_of_a_beta_distribution(wrong: float, right: float) -> None:
    # logarithms of factorials of millions are off by some 1e-9, and so is the probability
    assert upper_error_rate(wrong, right) == pytest.approx(float(betaincinv(wrong + 1, right, 0.75)), rel=1e-7)


def test_the_limit_of_no_errors_is_that_of_a_power() -> None:
    for right in (1.0, 6.0, 250.0):
        assert upper_error_rate(0.0, right) == pytest.approx(1 - (1 - LEVEL) ** (1 / right), rel=1e-12)


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.2), (2.5, 3.5), (40.0, 700.0), (1e5, 3.0), (2e4, 5e4)])
def test_the_incomplete_beta_function_is_that_of_scipy(a: float, b: float) -> None:
    spread = np.sqrt(a * b / (a + b + 1)) / (a + b)
    for x in np.clip(a / (a + b) + spread * np.array([-4, -1, -0.1, 0, 0.1, 1, 4]), 1e-9, 1 - 1e-9):
        assert regularized_beta(a, b, float(x)) == pytest.approx(float(betainc(a, b, x)), rel=1e-9, abs=1e-12)
