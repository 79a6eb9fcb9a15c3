"""The noise of selections: its chances are the optimal rule's increments, its delta is exact, and draws follow it."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import dpframework as dpf
from dpframework.mechanisms import optimal_partition_selection_noise as module
from dpframework.mechanisms.optimal_partition_selection_noise import WHOLE, selection_noise
from dpframework.mechanisms.randomness import SeededRandomness

PAIRS = [
    (Fraction(epsilon), Fraction(delta))
    for epsilon in ("0.05", "0.3", "0.7", "1", "2", "5", "12")
    for delta in ("1e-20", "1e-9", "1e-6", "0.001", "0.03", "0.2", "0.45", "0.9")
]


def optimal(epsilon: Fraction, delta: Fraction) -> list[float]:
    """The optimal rule, in decimals, from its definition."""
    with localcontext(prec=60):
        x, found = (Decimal(epsilon.numerator) / epsilon.denominator).exp(), [Decimal(0)]
        while found[-1] < 1:
            rest = 1 - found[-1] - Decimal(delta.numerator) / delta.denominator
            found.append(min(x * found[-1] + 1 - found[-1] - rest, 1 - rest / x, Decimal(1)))
    return [float(one) for one in found[1:]]


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_a_key_is_shown_as_often_as_any_rule_may(epsilon: Fraction, delta: Fraction) -> None:
    noise, rule = selection_noise(epsilon, delta), optimal(epsilon, delta)
    rows = np.arange(1, len(rule) + 1)
    assert noise.shown(rows) == pytest.approx(rule, rel=1e-9, abs=1e-12)
    assert noise.shown(np.array([-3, 0, 10**9])).tolist() == [0.0, 0.0, 1.0]
    assert float(noise.shown(np.array([1]))[0]) == pytest.approx(float(delta), rel=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_a_noisy_count_loses_epsilon_and_delta_and_no_less(epsilon: Fraction, delta: Fraction) -> None:
    """Both hockey sticks, by the noise's own density on counts that differ by 1."""
    noise = selection_noise(epsilon, delta)
    outputs = np.arange(-1, noise.reach + 1)
    one, other = (np.exp(noise.log_density(outputs - count)) for count in (0, 1))
    assert one.sum() == pytest.approx(1, rel=1e-12)
    x = math.exp(epsilon)
    sticks = [float(np.maximum(p - x * q, 0).sum()) for p, q in ((one, other), (other, one))]
    assert max(sticks) == pytest.approx(float(delta), rel=1e-9, abs=1e-13)  # of floating point
    assert min(sticks) <= float(delta) * (1 + 1e-9) + 1e-13


def test_the_claim_is_on_whole_numbers() -> None:
    """With e**epsilon rounded down, and never above delta; a delta that is larger by a share of 2**-180 would be."""
    for epsilon, delta in PAIRS:
        x = module._exponential_below(epsilon)
        assert x < Fraction(math.exp(epsilon)) * (1 + Fraction(1, 2**50))
        assert x > Fraction(math.exp(epsilon)) * (1 - Fraction(1, 2**50))
        sums = selection_noise(epsilon, delta).sums
        assert sums[-1] == WHOLE
        assert all(low < high for low, high in itertools.pairwise((0, *sums)))
        up, down = module._positive_parts(sums, x)
        assert max(up, down) <= delta * WHOLE
        assert max(up, down) > delta * WHOLE * (1 - Fraction(1, 2**100))


@pytest.mark.parametrize("change", ["above", "lower"])
def test_noise_above_its_delta_is_not_handed_out(monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    rule = module._rule

    def wrong(x: Fraction, delta: int) -> list[int]:
        return rule(x, delta * 2) if change == "above" else rule(x * Fraction(11, 10), delta)

    monkeypatch.setattr(module, "_rule", wrong)
    with pytest.raises(AssertionError):
        selection_noise.__wrapped__(Fraction(1), Fraction(1, 1000))


def test_draws_follow_the_chances() -> None:
    """Chi-squared, which fails falsely with a probability of 1e-6."""
    noise = selection_noise(Fraction(1), Fraction(1, 50))
    drawn = noise.draw(200_000, SeededRandomness(3))
    assert drawn.min() >= 0
    assert drawn.max() < noise.reach
    found = np.bincount(noise.reach - 1 - drawn, minlength=noise.reach)
    assert chisquare(found, noise.chances * len(drawn)).pvalue > 1e-6
    assert drawn.mean() == pytest.approx(noise.mean, abs=5 * drawn.std() / math.sqrt(len(drawn)))


class Words(SeededRandomness):
    """Words that are given, the first ones first."""

    def __init__(self, words: list[int]) -> None:
        super().__init__(0)
        self.given = words

    def words(self, size: int) -> Any:
        taken, self.given = self.given[:size], self.given[size:]
        return np.array(taken, dtype=np.uint64)


def test_a_word_that_does_not_tell_is_continued() -> None:
    """Where the first 64 bits are a bound's, three more words decide on which side of it a number lies."""
    noise = selection_noise(Fraction(1), Fraction(1, 50))
    for k, bound in enumerate(noise.sums[:-1]):
        for number, position in ((bound - 1, k), (bound, k + 1)):
            words = [number >> shift & (1 << 64) - 1 for shift in (192, 128, 64, 0)]
            randomness = Words(words)
            assert noise.draw(1, randomness).tolist() == [noise.reach - 1 - position]
            assert randomness.given == []


def test_what_no_noise_is_made_for() -> None:
    with pytest.raises(dpf.InputError, match="1e-30 or more"):
        selection_noise(Fraction(1), Fraction(1, 10**31))
    with pytest.raises(dpf.InputError, match="could exceed a million rows"):
        selection_noise(Fraction(1, 10**6), Fraction(1, 10**9))


def test_the_rule_of_a_very_large_epsilon_is_that_of_a_large_one() -> None:
    """Beyond some millions a decimal number holds no exponential."""
    delta = Fraction(1, 10**6)
    sums = selection_noise(Fraction(200), delta).sums
    for epsilon in (Fraction(1000), Fraction(1001), Fraction(10**7), Fraction(10**100)):
        assert selection_noise(epsilon, delta).sums == sums
