"""Samplers of ours: their laws, by chi-square; what they are made of, beside mpmath; and decisions that are close.

Each test of draws rejects a right sampler with a probability of 1e-6, and its draws are seeded.
"""

from __future__ import annotations

import bisect
import copy
import math
from collections.abc import Callable
from fractions import Fraction
from importlib.metadata import PackageNotFoundError
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpframework.facts.errors import InputError
from dpframework.mechanisms import (
    discrete_gaussian_sampler,
    discrete_laplace_sampler,
    exact_choice_sampler,
    opendp_samplers,
    permute_and_flip_log_probability,
)
from dpframework.mechanisms.discrete_gaussian_sampler import discrete_gaussian, exact_exponent, exp_of_minus, exponents
from dpframework.mechanisms.discrete_laplace_sampler import digits_of, discrete_laplace
from dpframework.mechanisms.lattice_rounding import LARGEST_REAL, LatticePoints, round_to
from dpframework.mechanisms.randomness import Noise, Samplers, SeededRandomness, SystemRandomness
from dpframework.mechanisms.uniforms import exp_bounds

LEVEL = 1e-6
CHOICES = {"gumbel": exact_choice_sampler.exponential_choice, "exponential": exact_choice_sampler.permute_and_flip}


def words(seed: int) -> Callable[[int], Any]:
    return SeededRandomness(seed).words


def listed(*numbers: int) -> Callable[[int], Any]:
    """Return a source of these words, which fails where more are asked for."""
    left = list(numbers)
    return lambda size: np.array([left.pop(0) for _ in range(size)], dtype=np.uint64)


def follows(draws: Any, chance: Callable[[int], float]) -> bool:
    """Tell whether whole numbers have these chances, by chi-square over those expected ten times, and the rest."""
    values, counts = np.unique(draws, return_counts=True)
    found = dict(zip(values.tolist(), counts.tolist(), strict=True))
    span = range(int(values.min()), int(values.max()) + 1)
    likely = [k for k in span if len(draws) * chance(k) >= 10]
    expected = [len(draws) * chance(k) for k in likely]
    observed = [found.get(k, 0) for k in likely]
    rest = len(draws) - sum(expected)
    if rest >= 10:
        expected.append(rest)
        observed.append(len(draws) - sum(observed))
    if len(expected) == 1:
        return observed == [len(draws)]
    statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    return bool(stats.chi2.sf(statistic, len(expected) - 1) >= LEVEL)


# --- discrete Laplace ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "bits", "size"),
    [
        *((scale, 31, 200_000) for scale in (0.15, 0.5, 1.0, 5.68, 5.7, 63.1, 300.0, 1456.0)),
        *((scale, bits, 2_000) for scale in (0.5, 5.7, 63.1) for bits in (6, 9)),  # where ties are frequent
    ],
)
def test_laplace_noise_follows_its_law(scale: float, bits: int, size: int) -> None:
    draws = discrete_laplace(words(int(100 * scale) + bits), size, scale, bits=bits)
    assert draws.shape == (size,)
    assert draws.dtype == np.int64
    head = math.tanh(1 / (2 * scale))
    assert follows(draws, lambda k: head * math.exp(-abs(k) / scale))


@pytest.mark.parametrize("scale", [3.3 * 2**20, 2.0**40, 2.0**53])
def test_wide_laplace_noise_follows_its_law_to_the_last_digit(scale: float) -> None:
    """By Kolmogorov and Smirnov's test of the whole, and of the lowest digits, which are nearly uniform."""
    draws = discrete_laplace(words(7), 20_000, scale)
    assert stats.kstest(draws / scale, stats.laplace.cdf).pvalue >= LEVEL
    assert follows(draws % 256, lambda k: 1 / 256)
    assert follows(draws // 256 % 256, lambda k: 1 / 256)


@pytest.mark.parametrize(
    "scale", [2.0**-500, 2.0**-20, 0.001, 0.3, 5.6, 5.7, 40.0, 1457.0, 3.3 * 2**20, 2.0**50, 2.0**53]
)
def test_thresholds_are_floors_of_the_distribution(scale: float) -> None:
    digits = digits_of(scale, 31)
    assert [digit.place for digit in digits] == [*range(len(digits))]
    assert [digit.last for digit in digits] == [False] * (len(digits) - 1) + [True]
    assert 256.0 ** len(digits) >= 45 * scale
    with mpmath.workdps(120):
        for digit in digits:
            q = mpmath.exp(-(mpmath.mpf(256) ** digit.place) / mpmath.mpf(scale))
            whole = 1 if digit.last else 1 - q**256
            wanted = [int(mpmath.floor(2**31 * (1 - q ** (d + 1)) / whole)) for d in range(256)]
            largest = [2**31 - 1] * 255 + [2**31 - 1 if digit.last else 2**31]  # below 1, which rounding may reach
            assert digit.thresholds.tolist() == [min(pair) for pair in zip(wanted, largest, strict=True)]
            first = np.arange(0, 2**31, 2**19 // 4, dtype=np.uint32)
            looked_up = digit.known[first >> 19]
            searched = np.searchsorted(digit.thresholds, first)
            assert ((looked_up == searched) | (looked_up == -1)).all()
            assert (looked_up >= 0).mean() > 0.8


@pytest.mark.parametrize("scale", [0.3, 5.6, 40.0, 3.3 * 2**20])
def test_a_digit_at_its_threshold_is_decided_by_further_bits(scale: float) -> None:
    zeros, ones = 0, 2**64 - 1
    for digit in digits_of(scale, 31):
        thresholds = digit.thresholds.tolist()
        distinct = [d for d in range(255) if thresholds[d] < thresholds[d + 1] and thresholds[d] not in thresholds[:d]]
        for d in distinct:
            first = np.array([thresholds[d]], dtype=np.uint32)
            assert digit.draw(first, listed(zeros)).tolist() == [d]
            assert digit.draw(first, listed(ones)).tolist()[0] > d
            assert digit.draw(first + np.uint32(1), listed(ones, ones)).tolist()[0] > d
        assert distinct
    (last,) = (digit for digit in digits_of(scale, 31) if digit.last)
    for behind in (0, 5, 2**60, 2**64 - 1):  # the first 31 bits are ones, and behind the table
        q = mpmath.exp(-(mpmath.mpf(256) ** last.place) / mpmath.mpf(scale))
        with mpmath.workdps(60):
            above = (mpmath.mpf(2) ** 64 - behind - mpmath.mpf("0.5")) / mpmath.mpf(2) ** 95  # 1 - U
            wanted = int(mpmath.ceil(mpmath.log(above) / mpmath.log(q))) - 1
        assert last.draw(np.array([2**31 - 1], dtype=np.uint32), listed(behind, 2**63)).tolist() == [wanted]


@pytest.mark.parametrize("scale", [0.4, 40.0, 3.3 * 2**20])
def test_numbers_are_made_of_digits_and_a_sign_that_no_digit_is_drawn_from(scale: float) -> None:
    """Slowly, from the same words: 31 bits of each half a digit, the last bit of the first digit's half a sign."""
    drawn: list[Any] = []
    random = words(5)

    def of(size: int) -> Any:
        drawn.append(random(size))
        return drawn[-1]

    found = discrete_laplace(of, 500, scale)
    digits = digits_of(scale, 31)
    halves = drawn[0].view(np.uint32).reshape(len(digits), -1).tolist()
    wanted = []
    for column in zip(*halves, strict=True):
        places = [bisect.bisect_left(d.thresholds.tolist(), half >> 1) for d, half in zip(digits, column, strict=True)]
        number = sum(digit * 256**place for place, digit in enumerate(places))
        if number or not column[0] & 1:
            wanted.append(-number if column[0] & 1 else number)
    assert found.tolist() == wanted[:500]
    assert discrete_laplace(of, 0, 1.0).shape == (0,)


def test_bounds_of_a_quotient_hold_for_all_numbers_between_those_given() -> None:
    for power, whole in (((3, 5), (1, 2)), ((0, 1), (0, 0)), ((7, 9), (6, 7)), ((4, 4), (0, 3))):
        least, most = discrete_laplace_sampler.quotient_bounds(power, whole, 4, 10)
        corners = [Fraction(16 - x, 16 - y) * 2**10 for x in power for y in whole]
        assert least == math.floor(min(corners))
        assert most == math.ceil(max(corners))


# --- discrete Gaussian -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "margin", "size"),
    [
        *((scale, discrete_gaussian_sampler.MARGIN, 200_000) for scale in (0.3, 0.99, 1.0, 6.3, 40.0, 300.0)),
        *((scale, 0.05, 5_000) for scale in (0.5, 1.0, 40.0)),  # where many decisions are close
    ],
)
def test_gaussian_noise_follows_its_law(scale: float, margin: float, size: int) -> None:
    draws = discrete_gaussian(words(int(100 * scale)), size, scale, margin=margin)
    assert draws.shape == (size,)
    reach = int(40 * scale) + 40
    total = sum(math.exp(-(k**2) / (2 * scale**2)) for k in range(-reach, reach + 1))
    assert follows(draws, lambda k: math.exp(-(k**2) / (2 * scale**2)) / total)


@pytest.mark.parametrize("scale", [3.3 * 2**20, 2.0**53 - 2])
def test_wide_gaussian_noise_follows_its_law(scale: float) -> None:
    draws = discrete_gaussian(words(9), 20_000, scale)
    assert stats.kstest(draws / scale, stats.norm.cdf).pvalue >= LEVEL
    assert follows(draws % 256, lambda k: 1 / 256)


def test_exponentials_and_exponents_are_within_their_share_of_the_margin() -> None:
    random = np.random.default_rng(3)
    near_zero, steps = 10.0 ** -np.arange(20), np.arange(0, 63, 1 / 16)
    tried = np.concatenate([random.uniform(0, 63, 2_000), steps, [62.999999], near_zero])
    found = exp_of_minus(tried)
    with mpmath.workdps(40):
        exact = [mpmath.exp(-mpmath.mpf(g)) for g in tried.tolist()]
        errors = [abs(mpmath.mpf(one) - other) for one, other in zip(found.tolist(), exact, strict=True)]
        assert max(errors) < mpmath.mpf(2) ** -48
        assert exp_of_minus(np.array([63.0, 64.0, 1e300, math.inf])).tolist() == [0.0] * 4
        worst = mpmath.mpf(0)
        for scale in (2.0**-500, 2.0**-20, 0.3, 1.0, 6.7, 1e3, 3.3 * 2**20, 2.0**45, 2.0**53 - 2):
            reach = 11 * scale + 2
            proposed = np.unique(random.uniform(-reach, reach, 300).astype(np.int64))
            for near, k in zip(exponents(proposed, scale).tolist(), proposed.tolist(), strict=True):
                g = exact_exponent(k, scale)
                if g < 63:
                    worst = max(worst, abs(mpmath.mpf(near) - mpmath.mpf(g.numerator) / g.denominator))
        assert worst < mpmath.mpf(2) ** -43


def test_the_exponent_is_that_of_the_algorithm() -> None:
    """And so, times that of the proposal, leaves the square."""
    for scale in (0.5, 1.0, 2.75, 9.0):
        t = math.floor(scale) + 1
        for k in range(-6, 7):
            shift = Fraction(scale) ** 2 / (2 * Fraction(t) ** 2)
            assert exact_exponent(k, scale) + Fraction(abs(k), t) == Fraction(k**2) / (2 * Fraction(scale) ** 2) + shift


# --- choices ---------------------------------------------------------------------------------------------------------

SCORES = [
    ([0], 1.0),
    ([6, 2, 8], 3.0),
    ([0, 0, 0, 0], 0.5),
    ([3, 3, 0, 1, 2, 3, -7], 1.25),
    ([5 * 2**20, 2**20, 0, 4 * 2**20 + 1], 2.0**21),
    ([-(2**63), 2**63 - 1, 2**63 - 2], 1.0),
    ([0, -1, -60, -1000], 700.0),
    ([-100, -200, -44, -45, -46, -44], 1.0),
    ([0, -69, -69, -69, -69], 100.0),  # in one bucket, each accepted by half: none is visited twice
]


@pytest.mark.parametrize(("scores", "scale"), SCORES)
@pytest.mark.parametrize("noise", CHOICES)
def test_a_choice_follows_its_law(noise: str, scores: list[int], scale: float) -> None:
    random, given = words(len(scores)), np.array(scores)
    draws = np.array([CHOICES[noise](random, given, scale) for _ in range(4_000)])
    scaled = np.array([float(score - max(scores)) for score in scores]) / scale
    if noise == "gumbel":
        chances = np.exp(scaled) / np.exp(scaled).sum()
    else:
        chances = np.array([math.exp(permute_and_flip_log_probability(scaled, k)) for k in range(len(scores))])
    assert follows(draws, lambda k: float(chances[k]))


def test_a_candidate_is_never_likelier_than_its_bucket_says() -> None:
    """Where the quotient is near a whole number, too: else it would be chosen too seldom."""
    for scale in (1.0, 3.0, 2.0**20 / 0.7, 1e-3, 1e9):
        near = {round(k * scale * math.log(2)) + off for k in range(70) for off in (-1, 0, 1)}
        gaps = np.array(sorted(gap for gap in near if 0 <= gap < 2**62))
        buckets, members = exact_choice_sampler.buckets_of(-gaps, scale)
        assert members == np.bincount(buckets, minlength=64).tolist()
        for gap, bucket in zip(gaps.tolist(), buckets.tolist(), strict=True):
            assert gap == 0 or exp_bounds(-gap / Fraction(scale), 200)[1] <= 2 ** (200 - bucket)
            assert bucket == 63 or gap * (1 + 1e-9) / scale / math.log(2) < bucket + 1 + 1e-6


@pytest.mark.parametrize("noise", CHOICES)
def test_a_choice_is_the_same_however_many_scores_are_looked_at_at_once(
    noise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From real scores, too, which are rounded when they are looked at."""
    real = np.random.default_rng(4).normal(0, 30, 500)
    scores = round_to(real, 0.25)
    at_once = [CHOICES[noise](words(seed), scores, 200.0) for seed in range(60)]
    for number in (1, 7, 499, 500):
        monkeypatch.setattr(exact_choice_sampler, "AT_ONCE", number)
        for given in (scores, LatticePoints(real, 0.25)):
            assert [CHOICES[noise](words(seed), given, 200.0) for seed in range(60)] == at_once
    assert len(set(at_once)) > 20


@pytest.mark.filterwarnings("error")
def test_a_number_too_large_for_the_lattice_is_clamped_and_not_told() -> None:
    """A warning would tell of the rows."""
    assert round_to([1e300, -1e300, 0.5], 2.0**-100).tolist() == [LARGEST_REAL, -LARGEST_REAL, LARGEST_REAL]
    assert round_to([1e300, -1e300, 0.5], 2.0**-50).tolist() == [LARGEST_REAL, -LARGEST_REAL, 2**49]


@pytest.mark.parametrize(("number", "rounds"), [(100, 3), (64, 1), (65, 2), (7, 0), (1, 4)])
def test_as_many_survive_as_coins_say(number: int, rounds: int) -> None:
    random = words(number)
    draws = np.array([exact_choice_sampler.survivors(random, number, rounds) for _ in range(10_000)])
    assert follows(draws, lambda k: float(stats.binom.pmf(k, number, 0.5**rounds)))


# --- who draws -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("samplers", Samplers)
def test_everything_is_drawn_by_the_samplers_that_are_chosen(
    samplers: Samplers, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, asked = copy.copy(SystemRandomness(samplers)), list[str]()

    def noted(name: str, result: Any) -> Callable[..., Any]:
        return lambda *given, **named: asked.append(name) or result

    monkeypatch.setattr(opendp_samplers, "noise", noted("opendp", np.zeros(1)))
    monkeypatch.setattr(opendp_samplers, "noisy_max", noted("opendp", 0))
    monkeypatch.setattr(discrete_laplace_sampler, "discrete_laplace", noted("ours", np.zeros(1)))
    monkeypatch.setattr(discrete_gaussian_sampler, "discrete_gaussian", noted("ours", np.zeros(1)))
    for name in ("exponential_choice", "permute_and_flip"):
        monkeypatch.setattr(exact_choice_sampler, name, noted("ours", 0))
    for size, scale in ((1, 1.0), (1000, 2.0**52), (1000, 2.0**-30)):
        source.discrete_laplace(size, scale)
        source.discrete_gaussian(size, scale)
        for noise in Noise:
            source.noisy_max(np.zeros(size + 1, dtype=np.int64), scale, noise)
    assert asked == ["ours" if samplers is Samplers.ARRAYS else "opendp"] * 12


def test_samplers_of_opendp_are_refused_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(opendp_samplers, "version", missing)
    with pytest.raises(InputError, match=r"pip install 'dpframework\[opendp\]'"):
        SystemRandomness(Samplers.OPENDP)
    assert SystemRandomness(Samplers.ARRAYS).discrete_laplace(3, 2.0).shape == (3,)


@pytest.mark.parametrize("scale", [2.0**-501, 2.0**54])
def test_a_scale_that_no_table_holds_is_refused(scale: float) -> None:
    source = SystemRandomness(Samplers.ARRAYS)
    for draw in (source.discrete_laplace, source.discrete_gaussian):
        with pytest.raises(InputError, match=r"steps, is not between 2\*\*-500 and 2\*\*53; change epsilon"):
            draw(1, scale)


def test_what_a_mechanism_hands_over_is_taken_as_64_bits() -> None:
    """A scale of 32 bits would put candidates into buckets that are too high; scores may be floats of whole numbers."""
    source, scores = SystemRandomness(Samplers.ARRAYS), np.full(4096, -3673680.0)
    scores[7] = 0.0
    scale = np.float32(1e-3)
    assert {source.noisy_max(scores, scale, noise) for noise in Noise} == {7}
    assert source.discrete_laplace(512, scale).tolist() == [0] * 512
    assert set(source.discrete_gaussian(512, np.float32(0.01)).tolist()) == {0}
    assert SystemRandomness("arrays").samplers is Samplers.ARRAYS  # type: ignore[arg-type]


@pytest.mark.parametrize("noise", Noise)
def test_the_source_gives_each_kind_of_noise_its_choice(noise: Noise) -> None:
    """Two best of 4,096 candidates, beside all others a little below: permute-and-flip takes them more often."""
    scores = np.zeros(4096, dtype=np.int64)
    scores[:2] = 8
    source = SystemRandomness(Samplers.ARRAYS)
    best = sum(source.noisy_max(scores, 1.0, noise) < 2 for _ in range(4_000))
    scaled = (scores - 8).astype(np.float64)
    gumbel = 2 / np.exp(scaled).sum()
    flipped = 2 * math.exp(permute_and_flip_log_probability(scaled, 0))
    chance = gumbel if noise is Noise.GUMBEL else flipped
    assert stats.binomtest(best, 4_000, float(chance)).pvalue >= LEVEL
    assert abs(gumbel - flipped) > 0.07  # nine standard deviations
