"""Uniform numbers that are compared with exponentials: the bounds hold and are close, and ties take further bits."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from dpframework.mechanisms.uniforms import Uniform, exp_bounds


def test_whole_numbers_lie_on_either_side_of_an_exponential_that_is_all_but_one() -> None:
    """Exponents of some 40, and 10, which rounding to as many digits as are computed moves by more than that."""
    for k in (*range(40, 140), *range(5 * 10**14, 5 * 10**14 + 100)):
        with localcontext(prec=100):
            exponent = -Fraction((Decimal(k) / 2**64).ln())
        for part in (1, 3):
            off = Fraction(part, 10**30)  # 2**64 exp(-exponent) is k (1 + off), then k (1 - off)
            low, high = exp_bounds(off - exponent, 64)
            assert low <= k < high
            low, high = exp_bounds(-exponent - off, 64)
            assert low < k <= high


@pytest.mark.parametrize("bits", [1, 64, 128, 1000])
@pytest.mark.parametrize("exponent", [Fraction(1, 10**6), Fraction(1, 3), Fraction(1), Fraction(700, 3)])
def test_an_exponential_lies_between_neighbouring_whole_numbers(exponent: Fraction, bits: int) -> None:
    with localcontext(prec=800):
        exact = Fraction((-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()) * 2**bits
    low, high = exp_bounds(-exponent, bits)
    assert (low, high) == (math.floor(exact), math.ceil(exact))


def test_a_number_below_a_power_of_two_is_compared_with_all_its_bits() -> None:
    """exp(-1) 2**64 for a bucket of 1: half of it, in units of 2**-65."""
    least, most = exp_bounds(Fraction(-1), 65)
    assert most == least + 1
    for first, behind, wanted in (
        (least, 0, True),
        (least, 2**64 - 1, False),
        (least - 1, 0, True),
        (least + 1, 0, False),
    ):
        assert (
            Uniform(first, 65, lambda _, word=behind: np.array([word], dtype=np.uint64)).below_exp(Fraction(-1))
            is wanted
        )
