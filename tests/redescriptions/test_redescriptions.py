"""Noisy counts and redescriptions: intervals that cover, marks that hold, tables, files and plots.

Coverage is computed exactly where it can be, from the noise's probabilities. Where it is simulated, each simulation
allows so many failures that it fails wrongly with probability 1e-9 at most.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
import subprocess
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from scipy.stats import binom, laplace as laplace_of_scipy, norm

from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import And, Below, Equals, Not, Or
from dpframework.facts.output_formats_times_and_csv import csv_text
from dpframework.redescriptions.redescription import Redescription, p_values
from dpframework.redescriptions.redescriptions import Redescriptions
from dpframework.redescriptions.shorter_description_text import sentence
from dpframework.results.noisy_count_with_interval import Noisy, heavy_deviation, quantile

patient = settings(max_examples=60)

LEVELS = [0.5, 0.8, 0.9, 0.91, 0.95, 0.99, 0.9999, 1 - 1e-7]
LEFT, RIGHT = Equals("smoker", "true"), Below("fev", 3)

values = st.floats(-50, 5000) | st.integers(-5, 300).map(float)
counts = st.builds(Noisy, values, st.sampled_from([0, 1e-6, 0.1, 1, 60, 3000]))
literals = st.one_of(
    st.builds(Equals, st.sampled_from("ab"), st.text(max_size=9)), st.builds(Below, st.just("c"), st.floats(-9, 9))
)
descriptions = st.recursive(
    literals,
    lambda inner: st.builds(Not, inner) | st.builds(And, st.lists(inner)) | st.builds(Or, st.lists(inner)),
    max_leaves=5,
)


@st.composite
def redescriptions(draw: st.DrawFn) -> Redescription:
    """Draw one of any of the kinds that miners make."""
    sides: dict[str, Any] = {"left_only": draw(counts), "right_only": draw(counts)}
    if draw(st.booleans()):
        sides = {"apart": draw(counts)}
    rows = draw(st.none() | counts | st.integers(0, 9999))
    sides["shown_from"] = draw(st.sampled_from([0.0, 0.1, 0.62]))
    return Redescription(draw(descriptions), draw(descriptions), both=draw(counts), rows=rows, **sides)


results = st.lists(redescriptions(), max_size=6).flatmap(
    lambda items: st.integers(len(items), 10**6).map(lambda looked_at: Redescriptions(items, looked_at))
)


def redescription(both: Noisy, apart: Noisy) -> Redescription:
    return Redescription(LEFT, RIGHT, both=both, apart=apart)


def laplace(scale: float) -> NDArray[np.float64]:
    """Return the probabilities of discrete Laplace noise, the middle one that of 0."""
    k = np.abs(np.arange(-max(4, math.ceil(30 * scale)), max(4, math.ceil(30 * scale)) + 1))
    return np.exp(-k / scale) * math.tanh(1 / (2 * scale))


def gaussian(deviation: float) -> NDArray[np.float64]:
    k = np.arange(-max(4, math.ceil(9 * deviation)), max(4, math.ceil(9 * deviation)) + 1)
    weights = np.exp(-(k**2) / (2 * deviation**2))
    return np.asarray(weights / weights.sum())


def cells(one: NDArray[np.float64], many: int) -> NDArray[np.float64]:
    """Return the probabilities of the sum of so many independent noises."""
    total = one
    for _ in range(many - 1):
        total = np.convolve(total, one)
    return total


def steps(noise: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.arange(len(noise), dtype=float) - len(noise) // 2


def variance(noise: NDArray[np.float64]) -> float:
    return float((steps(noise) ** 2 * noise).sum())


NOISES = [(f"laplace {b:.2f}", laplace(b)) for b in np.geomspace(0.06, 9, 24)]
NOISES += [(f"gaussian {s:.2f}", gaussian(s)) for s in np.geomspace(0.15, 9, 12)]


# Noisy counts


@pytest.mark.parametrize(("name", "noise"), NOISES, ids=[name for name, _ in NOISES])
def test_intervals_cover_sums_of_any_number_of_cells(name: str, noise: NDArray[np.float64]) -> None:
    one = variance(noise)
    for many in (1, 2, 3, 5, 8, 16):
        total = cells(noise, many)
        for level in LEVELS:
            missed = total[np.abs(steps(total)) > Noisy(0, many * one).margin(level)].sum()
            assert missed <= (1 - level) * (1 + 1e-6) + 1e-13, (name, many, level)


def test_no_mixture_of_laplace_and_normal_noise_exceeds_the_quantile() -> None:
    """Tails of sum_k of w_k Laplace and w_0 normal variance, from their characteristic function."""
    rng = np.random.default_rng(4)
    u = (np.arange(4000) + 0.5) * 0.05
    sines = {level: np.sin(u * quantile(1 - level)) / u for level in LEVELS[:-1]}
    for concentration in (0.05, 0.3, 1.0, 4.0):
        for parts in (2, 3, 5):
            for _ in range(8):
                weights = rng.dirichlet(np.full(parts, concentration))
                transform = np.exp(-weights[0] * u**2 / 2) / np.prod(1 + np.outer(weights[1:], u**2 / 2), axis=0)
                for level, sine in sines.items():
                    assert 1 - 2 / math.pi * (sine @ transform) * 0.05 <= (1 - level) + 2e-6


def test_intervals_are_not_much_wider_than_they_must_be() -> None:
    exact = 20 * math.log(20)  # of one Laplace
    assert exact < Noisy.laplace(0, 20).margin(0.95) < exact + 0.6
    assert quantile(0.1) == pytest.approx(norm.isf(0.05))  # of a normal
    assert heavy_deviation(Noisy.laplace(0, 20).variance) == pytest.approx(20 * math.sqrt(2))


@pytest.mark.parametrize("scale", [0.02, 0.1, 1, 7.5, 400])
def test_laplace_knows_the_variance_of_its_noise(scale: float) -> None:
    assert Noisy.laplace(3, scale).variance == pytest.approx(variance(laplace(scale)), rel=1e-6)
    assert Noisy.laplace(3, 0.001) == Noisy(3, 0)  # too small for a float


@given(counts, counts, st.integers(-9, 9))
@patient
def test_sums_and_differences_add_variances(a: Noisy, b: Noisy, public: int) -> None:
    assert a + b == Noisy(a.value + b.value, a.variance + b.variance) == sum([a, b])
    assert a - b == Noisy(a.value - b.value, a.variance + b.variance)
    assert (a + public).variance == (public + a).variance == (a - public).variance == a.variance
    assert a.deviation == pytest.approx(math.sqrt(a.variance))


@given(counts)
@patient
def test_intervals_hold_the_count_and_grow_with_the_level(count: Noisy) -> None:
    intervals = [count.interval(level) for level in LEVELS]
    for (low, high), (lower, higher) in itertools.pairwise(intervals):
        assert lower <= low <= count.value <= high <= higher
    assert count.variance > 0 or intervals[-1] == (count.value, count.value)


def test_counts_print_with_their_margin() -> None:
    assert [str(Noisy(512.4, 0)), str(Noisy(-3, 1))] == ["512", "-3 ± 3"]


@pytest.mark.parametrize(("value", "spread"), [(math.nan, 1), (math.inf, 1), (1, math.nan), (1, math.inf), (1, -1e-9)])
def test_counts_are_finite(value: float, spread: float) -> None:
    with pytest.raises(InputError, match="must be finite"):
        Noisy(value, spread)


@pytest.mark.parametrize("level", [0, 1, -0.1, 95, math.nan])
def test_levels_are_between_0_and_1(level: float) -> None:
    for interval in (Noisy(1, 1).interval, redescription(Noisy(1, 1), Noisy(1, 1)).jaccard_interval):
        with pytest.raises(InputError, match="between 0 and 1"):
            interval(level)


# Jaccard intervals

SIZES = [(0, 30), (1, 0), (2, 1), (10, 10), (40, 3), (200, 600), (4000, 100)]


@pytest.mark.parametrize("scale", [0.08, 0.15, 0.23, 0.3, 0.4, 0.55])
@pytest.mark.parametrize("many", [1, 3])
def test_jaccard_intervals_cover_under_little_noise(scale: float, many: int) -> None:
    """Exactly: every pair of noises is tried. Here steps of whole rows matter most."""
    one = laplace(scale)
    first, second = cells(one, 1), cells(one, many)
    pairs = [
        (k, m, p * r)
        for k, p in zip(steps(first), first, strict=True)
        for m, r in zip(steps(second), second, strict=True)
        if p * r > 1e-6
    ]
    for both, apart in SIZES:
        for level in (0.8, 0.95):
            hit = 0.0
            for k, m, p in pairs:
                found = redescription(Noisy(both + k, variance(one)), Noisy(apart + m, many * variance(one)))
                low, high = found.jaccard_interval(level)
                hit += p * (low <= both / (both + apart) <= high)
            assert hit >= level, (both, apart)


@pytest.mark.parametrize(
    ("noise", "first", "second"),
    [(laplace(2), 1, 1), (laplace(15), 1, 2), (laplace(15), 1, 16), (laplace(5), 9, 9), (gaussian(12), 1, 1)],
)
@pytest.mark.parametrize("size", SIZES)
def test_jaccard_intervals_cover(noise: NDArray[np.float64], first: int, second: int, size: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    both, apart = size
    draws = 600
    one = variance(noise)
    added = rng.choice(steps(noise), p=noise / noise.sum(), size=(draws, first + second))
    missed = 0
    for k, m in zip(added[:, :first].sum(axis=1), added[:, first:].sum(axis=1), strict=True):
        found = redescription(Noisy(both + k, first * one), Noisy(apart + m, second * one))
        low, high = found.jaccard_interval(0.9)
        missed += not low <= both / (both + apart) <= high
    assert missed <= binom.isf(1e-9, draws, 0.1)


def test_jaccard_intervals_are_as_wide_as_the_noise() -> None:
    """The delta method's interval at 90 %, and the half row on each side."""
    low, high = redescription(Noisy(3000, 8100), Noisy(2000, 8100)).jaccard_interval(0.9)
    half = (norm.isf(0.05) * 90 * math.hypot(0.4, 0.6) + 0.3) / 5000
    assert low == pytest.approx(0.6 - half, abs=6e-4)
    assert high == pytest.approx(0.6 + half, abs=6e-4)


@given(counts, counts)
@patient
def test_jaccard_intervals_hold_the_estimate_and_grow_with_the_level(both: Noisy, apart: Noisy) -> None:
    found = redescription(both, apart)
    assert 0 <= found.jaccard <= 1
    intervals = [found.jaccard_interval(level) for level in LEVELS]
    for (low, high), (lower, higher) in itertools.pairwise(intervals):
        assert 0 <= lower <= low <= found.jaccard <= high <= higher <= 1
    low, high = found.support_interval()
    assert 0 <= low <= max(both.value, 0) <= high


@given(st.integers(0, 500), st.integers(0, 500))
@patient
def test_exact_counts_have_exact_jaccard_indices(both: int, apart: int) -> None:
    found = redescription(Noisy(both, 0), Noisy(apart, 0))
    if both + apart:
        assert found.jaccard == both / (both + apart)
        assert found.jaccard_interval() == pytest.approx((found.jaccard, found.jaccard))
    else:
        assert found.jaccard_interval() == (0, 1)  # of no rows any index may be told
    assert found.trusted(10**9) is (both > 0)


@given(counts, counts, st.floats(0.1, 100))
@patient
def test_more_noise_widens_intervals(both: Noisy, apart: Noisy, more: float) -> None:
    low, high = redescription(both, apart).jaccard_interval()
    noisier = [attrs.evolve(count, variance=count.variance + more) for count in (both, apart)]
    lower, higher = redescription(*noisier).jaccard_interval()
    assert lower <= low <= high <= higher


# Supports and p-values


def test_supports_follow_from_disjoint_counts() -> None:
    found = Redescription(LEFT, RIGHT, both=Noisy(400, 2), left_only=Noisy(60, 3), right_only=Noisy(40, 4), rows=1000)
    assert (found.left_support, found.right_support) == (Noisy(460, 5), Noisy(440, 6))
    assert (found.apart, found.support, found.rows) == (Noisy(100, 7), Noisy(400, 2), Noisy(1000, 0))
    assert found.jaccard == 0.8
    assert found.p_value == binom.sf(399, 1000, 0.46 * 0.44)


def test_a_sum_alone_leaves_the_sides_unknown() -> None:
    found = Redescription(LEFT, RIGHT, both=Noisy(4, 2), apart=Noisy(6, 2), rows=9)
    assert (found.left_support, found.right_support, found.p_value) == (None, None, None)
    assert attrs.evolve(found, left_only=Noisy(1, 1), right_only=Noisy(5, 1), rows=None).p_value is None
    for side in ("left_only", "right_only"):
        with pytest.raises(InputError, match="needs 'apart', or both of 'left_only' and 'right_only'"):
            Redescription(LEFT, RIGHT, both=Noisy(4, 2), **{side: Noisy(6, 2)})


@given(counts, counts, counts, counts)
@patient
def test_p_values_are_probabilities_whatever_the_noise(both: Noisy, left: Noisy, right: Noisy, rows: Noisy) -> None:
    p = Redescription(LEFT, RIGHT, both=both, left_only=left, right_only=right, rows=rows).p_value
    assert p is not None
    assert 0 <= p <= 1


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.just(n), *[st.integers(0, n // 3)] * 3)))
@patient
def test_p_values_are_scipys(sizes: tuple[int, int, int, int]) -> None:
    rows, both, left, right = sizes
    exact = {"both": Noisy(both, 0), "left_only": Noisy(left, 0), "right_only": Noisy(right, 0)}
    found = Redescription(LEFT, RIGHT, **exact, rows=rows)
    chance = (both + left) / rows * ((both + right) / rows)
    tail = sum(math.comb(rows, k) * chance**k * (1 - chance) ** (rows - k) for k in range(both, rows + 1))
    assert found.p_value == pytest.approx(tail, rel=1e-6, abs=1e-12)


@given(st.lists(st.tuples(*[st.integers(-9, 300)] * 3), min_size=1, max_size=5), st.integers(-9, 900))
@patient
def test_p_values_of_many_are_those_of_each(sizes: list[tuple[int, int, int]], rows: int) -> None:
    both, left, right = np.array(sizes, dtype=np.float64).T
    of_each = [
        Redescription(LEFT, RIGHT, both=b, left_only=x - b, right_only=y - b, rows=rows).p_value for b, x, y in sizes
    ]
    assert p_values(both, left, right, rows).tolist() == of_each


# Trust


@given(redescriptions(), st.integers(1, 10**6))
@patient
def test_trust_is_the_lower_end_of_the_interval(found: Redescription, candidates: int) -> None:
    found = attrs.evolve(found, shown_from=0.0)  # the interval of each that was looked at
    low, _ = found.jaccard_interval(1 - 0.05 / candidates)
    if found.apart.value >= 0 and found.both.variance > 0 and abs(low - found.jaccard / 2) > 1e-6:
        assert found.trusted(candidates) is (low > found.jaccard / 2)
    if found.trusted(candidates):
        assert low >= found.jaccard / 2 - 1e-6
        assert found.trusted(max(candidates // 2, 1))


@pytest.mark.parametrize("scale", [0.4, 5, 40])
def test_no_mark_is_wrong(scale: float) -> None:
    """Results of 100 candidates without substance: with probability 0.95 none of the marks is wrong."""
    rng = np.random.default_rng(7)
    noise = laplace(scale)
    runs, wrong = 150, 0
    width = variance(noise)
    for _ in range(runs):
        both, apart = rng.integers(0, math.ceil(9 * scale), 100), rng.integers(0, math.ceil(30 * scale), 100)
        added = rng.choice(steps(noise), p=noise / noise.sum(), size=(2, 100))
        for b, a, k, m in zip(both, apart, *added, strict=True):
            found = redescription(Noisy(b + k, width), Noisy(a + m, width))
            if found.trusted(100) and b / max(b + a, 1) < found.jaccard / 2:
                wrong += 1
                break
    assert wrong <= binom.isf(1e-9, runs, 0.05)


def counted(both: float, left_only: float, right_only: float, spread: float = 50, rows: int = 1000) -> Redescription:
    sides = {"left_only": Noisy(left_only, spread), "right_only": Noisy(right_only, spread)}
    return Redescription(LEFT, RIGHT, both=Noisy(both, spread), rows=rows, **sides)


@pytest.mark.parametrize(("both", "apart", "least"), [(1, 0, 0.5), (3, 1, 0.5), (5, 3, 0.5), (1, 1, 0.4), (1, 3, 0.2)])
def test_with_a_bootstrap_three_deviations_below_the_index_there_is_still_half_of_it(
    both: int, apart: int, least: float
) -> None:
    """From an index of 0.625 on that is 0.5, or four fifths of a lower one."""
    found = redescription(Noisy(both, 1), Noisy(apart, 1))
    furthest = (found.jaccard - least) / 3
    assert attrs.evolve(found, deviation=furthest * (1 - 1e-9)).trusted(10**9)
    assert not attrs.evolve(found, deviation=furthest * (1 + 1e-9)).trusted()
    if found.jaccard - 3 * furthest == least:  # to the last bit
        assert attrs.evolve(found, deviation=furthest).trusted()


def test_with_a_bootstrap_a_star_needs_its_supports_within_three_deviations() -> None:
    """Three deviations are those of a normal: 99.73 % of its noise is nearer."""
    found = attrs.evolve(counted(400, 60, 40), deviation=0.01)
    least, most = found.both.interval(1 - 2 * norm.sf(3))
    left_only = found.left_only.interval(1 - 2 * norm.sf(3))[1]  # type: ignore[union-attr]
    assert found.starred(min_support=least - 1e-6)
    assert not found.starred(min_support=least + 1e-6)
    assert found.starred(max_share=(most + left_only) / 1000 + 1e-9)
    assert not found.starred(max_share=(most + left_only) / 1000 - 1e-9)
    alone = attrs.evolve(counted(400, -90, -90), deviation=0.01)  # noise hides that no side holds alone
    assert alone.starred(max_share=most / 1000 + 1e-9)
    assert not alone.starred(max_share=most / 1000 - 1e-9)


def test_a_star_needs_more_than_little_noise() -> None:
    real, tautology, chance = counted(400, 60, 40), counted(900, 30, 30), counted(250, 250, 250)
    assert all(one.trusted(100) for one in (real, tautology, chance))
    assert [one.starred(100) for one in (real, tautology, chance)] == [True, False, False]
    assert not real.starred(100, min_support=500)
    assert not real.starred(100, max_share=0.45)
    assert not counted(400, 60, 40, spread=30_000).starred(100)
    assert not Redescription(LEFT, RIGHT, both=Noisy(400, 0), apart=Noisy(1, 0), rows=1000).starred()
    assert real.lift == pytest.approx(400 * 1000 / (460 * 440))
    assert [counted(1, 0, 0, rows=rows).lift for rows in (0, 1, 2)] == [1, 1, 2]  # of a table with one row at least
    ranked = Redescriptions([tautology, real], 100)
    assert list(ranked) == [real, tautology]  # evidence before the index
    heading, first, second = str(ranked).splitlines()[:3]
    assert (first[heading.index("sides") :].split()[0], second[heading.index("sides") :]) == ("460", "440")


def test_a_table_is_a_hundred_columns_wide_at_most() -> None:
    """Beside numbers of seven digits, too."""
    long = And([Equals(f"a rather long name of attribute {k}", "a long value") for k in range(4)])
    one = Redescription(
        long, Not(long), both=Noisy(1_234_567, 9), left_only=Noisy(765_432, 9), right_only=Noisy(5, 9), rows=9_999_999
    )
    lines = str(Redescriptions([one], 1_000_000)).splitlines()
    assert max(map(len, lines)) <= 100
    assert sum("attribute" in line for line in lines) >= 4


def test_shown_counts_agree_with_each_other() -> None:
    heading, first, second = str(Redescriptions([counted(-7, -20, 3)])).splitlines()[:3]
    support, sides, lift = (heading.index(name) for name in ("support", "sides", "lift"))
    assert (first[support:sides].strip(), first[sides:lift].strip(), second[sides:].strip()) == ("0", "0", "0")
    assert second[support:].startswith("[0, ")


def test_no_star_is_wrong() -> None:
    """Sides that share about as many rows as independent ones: with probability 0.95 a run has no wrong star."""
    rng = np.random.default_rng(9)
    noise = laplace(12)
    runs, wrong = 40, 0
    for _ in range(runs):
        left, right = rng.integers(300, 900, (2, 25))
        both = np.minimum(rng.binomial(1000, left * right / 10**6), np.minimum(left, right))
        exact = np.stack([both, left - both, right - both])
        added = rng.choice(steps(noise), p=noise / noise.sum(), size=exact.shape)
        p = p_values(both, left, right, 1000)
        stars = np.array([counted(*one, spread=variance(noise)).starred(25) for one in (exact + added).T])
        wrong += bool((stars & ((p > 0.01) | (np.maximum(left, right) > 800))).any())
    assert wrong <= binom.isf(1e-9, runs, 0.05)


def test_pruning_removes_artefacts_and_keeps_what_is_real() -> None:
    """A dense block of candidates without substance and some large real ones: the paper's scatter."""
    rng = np.random.default_rng(8)
    noise = laplace(20)
    width = variance(noise)
    items, real = [], set()
    for k in range(2030):
        b, a = (0, 2) if k < 2000 else (int(rng.integers(600, 3000)), int(rng.integers(50, 900)))
        first, second = rng.choice(steps(noise), p=noise / noise.sum(), size=2)
        found = Redescription(Equals("k", str(k)), RIGHT, both=Noisy(b + first, width), apart=Noisy(a + second, width))
        items.append(found)
        if k >= 2000:
            real.add(found)
    result = Redescriptions(items)
    block = [item for item in result if item.jaccard > 0.9 and item not in real]
    assert len(block) > 300  # they look perfect
    kept = result.pruned()
    assert set(kept) == real
    assert kept.candidates == 2030
    assert max(item.both.value for item in block) < result.min_support_from_scatter() <= 600 + 200
    assert all(item.trusted(kept.candidates) for item in kept)
    assert result.pruned(0.0).items == tuple(item for item in result if item.both.value >= 0)


@given(results)
@patient
def test_pruning_keeps_the_largest_that_pass_together(result: Redescriptions) -> None:
    least = result.min_support_from_scatter()
    kept = result.pruned()
    assert kept.items == tuple(item for item in result if item.both.value >= least)
    assert kept == result.pruned(least)
    by_support = sorted(result, key=lambda item: -item.both.value)
    passing = [
        k
        for k in range(1, len(result) + 1)
        if all(item.clearance() >= quantile(0.05 * k / result.candidates) for item in by_support[:k])
        and (k == len(result) or by_support[k].both.value < by_support[k - 1].both.value)
    ]
    assert len(kept) == max(passing, default=0)
    if result and not passing:
        assert least == math.floor(by_support[0].both.value) + 1  # just above all of them


# Results


@given(results)
@patient
def test_results_are_sorted_sequences(result: Redescriptions) -> None:
    assert list(result) == [result[k] for k in range(len(result))] == list(result.items)
    keys = [(not star, -item.jaccard_interval()[0]) for item, star in zip(result, result.starred, strict=True)]
    assert keys == sorted(keys)
    again = Redescriptions(reversed(result.items), result.candidates)
    assert [str(item) for item in again] == [str(item) for item in result]
    assert result[1:].items == result.items[1:]
    assert result[:0].candidates == result.candidates
    assert repr(result) == f"<{len(result)} redescriptions of {result.candidates} candidates>"


def test_ties_of_count_and_text_do_not_follow_the_order_of_arrival() -> None:
    sure, unsure = redescription(Noisy(0, 0), Noisy(0, 0)), redescription(Noisy(0, 1), Noisy(0, 0))
    assert Redescriptions([sure, unsure], 2).items == Redescriptions([unsure, sure], 2).items


def test_candidates_count_the_results_themselves() -> None:
    found = redescription(Noisy(4, 2), Noisy(6, 2))
    assert Redescriptions([found, found]).candidates == 2
    with pytest.raises(InputError, match="2 redescriptions cannot come from 1 candidates"):
        Redescriptions([found, found], 1)


@given(results)
@patient
def test_results_survive_json(result: Redescriptions) -> None:
    form = json.loads(result.to_json(), parse_constant=pytest.fail)  # NaN and Infinity are no JSON
    assert Redescriptions.from_dict(form) == result
    assert [item["trusted"] for item in form["redescriptions"]] == list(result.starred)
    assert [item["jaccard"] for item in form["redescriptions"]] == [item.jaccard for item in result]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda form: form.pop("redescriptions"),
        lambda form: form.pop("candidates"),
        lambda form: form.update(candidates="many"),
        lambda form: form.update(redescriptions=[3]),
        lambda form: form["redescriptions"][0].pop("both"),
        lambda form: form["redescriptions"][0].update(both=3),
        lambda form: form["redescriptions"][0].update(both=None),
        lambda form: form["redescriptions"][0]["both"].update(value="x"),
        lambda form: form["redescriptions"][0]["both"].update(variance=-1),
        lambda form: form["redescriptions"][0].update(left={"nand": []}),
        lambda form: form["redescriptions"][0].update(left="x"),
    ],
)
def test_spoilt_forms_are_refused(spoil: Any) -> None:
    form = Redescriptions([redescription(Noisy(4, 2), Noisy(6, 2))]).to_dict()
    spoil(form)
    with pytest.raises(InputError):
        Redescriptions.from_dict(form)


@given(results)
@patient
def test_csv_has_a_line_for_each(result: Redescriptions) -> None:
    buffer = io.StringIO(newline="")
    result.to_csv(buffer)
    lines = list(csv.DictReader(io.StringIO(buffer.getvalue(), newline="")))
    assert len(lines) == len(result)
    for line, item, trusted in zip(lines, result, result.starred, strict=True):
        written = csv_text([sentence(item.left), sentence(item.right)], [])  # no formula for a spreadsheet
        assert [line["left"], line["right"]] == next(csv.reader(io.StringIO(written, newline="")))
        assert (float(line["jaccard_low"]), float(line["jaccard_high"])) == item.jaccard_interval()
        assert (float(line["support"]), float(line["jaccard"])) == (item.support.value, item.jaccard)
        assert line["p_value"] == ("" if item.p_value is None else repr(item.p_value))
        assert line["left_support"] == ("" if item.left_support is None else repr(item.left_support.value))
        assert line["trusted"] == ("true" if trusted else "false")


def test_an_interval_from_below_0_is_no_formula_of_a_spreadsheet() -> None:
    cold = And([Not(Below("t_jan", -3)), Below("t_jan", 0)])
    found = attrs.evolve(redescription(Noisy(4, 2), Noisy(6, 2)), left=cold)
    buffer = io.StringIO()
    Redescriptions([found]).to_csv(buffer)
    (line,) = csv.DictReader(io.StringIO(buffer.getvalue()))
    assert sentence(cold) == "-3 <= t_jan < 0"
    assert line["left"] == "'-3 <= t_jan < 0"
    assert line["right"] == sentence(found.right)


def test_csv_goes_to_files_whole_or_not_at_all(tmp_path: Path) -> None:
    result = Redescriptions([redescription(Noisy(4, 2), Noisy(6, 2))])
    result.to_csv(tmp_path / "found.csv")
    buffer = io.StringIO()
    result.to_csv(buffer)
    assert (tmp_path / "found.csv").read_text() == buffer.getvalue()
    with pytest.raises(InputError, match="cannot be written"):
        result.to_csv(str(tmp_path / "no" / "found.csv"))


def test_the_table_is_aligned_and_wraps_long_descriptions() -> None:
    long = And([Or([Equals("species", f"Microtus arvalis {k}") for k in range(3)]), Not(Below("t_jan", -3.25))])
    sides = {"left_only": Noisy(60, 50), "right_only": Noisy(40, 50)}
    result = Redescriptions(
        [
            Redescription(long, RIGHT, both=Noisy(4000, 50), rows=9000, **sides),
            redescription(Noisy(3, 50), Noisy(-2, 50)),
        ]
    )
    lines = str(result).splitlines()
    column = lines[0].index("right")
    assert [line[:column].rstrip() for line in lines[:7]] == [
        "left",
        "(species = Microtus",
        "arvalis 0 or species =",
        "Microtus arvalis 1 or",
        "species = Microtus",
        "arvalis 2) and t_jan",
        ">= -3.25",
    ]
    assert re.split(" {2,}", lines[1][column:]) == ["fev < 3", "0.98", "4000", "4060", "2.2", "<1e-99", "*"]
    assert re.split(" {2,}", lines[2][column:].strip()) == ["[0.97, 0.98]", "[3984, 4016]", "4040"]
    assert re.split(" {2,}", lines[7][column:])[:2] == ["fev < 3", "1.00"]
    assert "2 candidates were looked at" in " ".join(lines)
    assert max(map(len, lines)) <= 100


def about(names: Iterable[str], count: float) -> Redescription:
    """Return a redescription of the first of some names on the left, and of the others on the right."""
    first, *others = (Equals(name, "true") for name in names)
    return Redescription(first, And(others) if len(others) > 1 else others[0], both=Noisy(count, 1), apart=Noisy(9, 1))


def test_long_results_print_their_head() -> None:
    result = Redescriptions([about(["ill", f"t{k}"], 900 - k) for k in range(70)])
    assert "and 20 more, in to_csv and to_json" in str(result)
    assert "<p>and 20 more, in to_frame, to_csv and to_json</p>" in result._repr_html_()
    for text in (str(result), result._repr_html_()):
        assert "t49" in text
        assert "t50" not in text
        assert "about the same" not in text


def test_of_many_those_about_the_same_attributes_share_a_line() -> None:
    """Of 51, the best of each finding; of 50, all have a line of their own."""
    items = [about(["ill", "old"], 900 - k) for k in range(30)] + [about(["ill", "weak"], 500 - k) for k in range(20)]
    for result in (Redescriptions(items), Redescriptions([*items, about(["old", "weak"], 100)])):
        shared = len(result) > 50
        lines = [line for line in str(result).splitlines() if "ill" in line or "old" in line]
        assert len(lines) == (3 if shared else 50)
        rows = result._repr_html_().count("<tr>") - 1
        assert rows == len(lines)
        for text in (str(result), result._repr_html_()):
            assert ("n others are about the same attributes" in text) is shared
            assert "more, in" not in text
        if shared:
            assert [line.split()[-1] for line in lines[:2]] == ["+29", "+19"]
            assert ["900" in lines[0], "500" in lines[1], "+" in lines[2]] == [True, True, False]


def test_an_empty_result_is_a_sentence() -> None:
    empty = Redescriptions([], 40)
    assert str(empty) == "No redescriptions; 40 were looked at."
    assert str(Redescriptions([])) == "No redescriptions."
    assert empty.pruned() == empty
    assert empty.min_support_from_scatter() == 0
    buffer = io.StringIO()
    empty.to_csv(buffer)
    assert len(buffer.getvalue().splitlines()) == 1


@given(st.lists(redescriptions(), max_size=4).map(Redescriptions))
@settings(patient, max_examples=8)
def test_plots_draw_without_warnings(result: Redescriptions) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure()
    canvas = FigureCanvasAgg(figure)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Glyph")  # labels may hold what a font lacks
        axes, bars = figure.subplots(1, 2)
        assert result.plot_supports(axes) is axes
        assert result.plot(bars) is bars
        canvas.draw()
    assert len(bars.get_yticks()) == 2 * min(len(result), 12)
    labels = set(axes.get_legend_handles_labels()[1])
    assert ("trusted" in labels, "not trusted" in labels) == (any(result.starred), not all(result.starred))


def test_plots_make_their_own_axes() -> None:
    import matplotlib as mpl
    from matplotlib import pyplot

    mpl.use("Agg")
    axes = Redescriptions([redescription(Noisy(4, 2), Noisy(6, 2))]).plot_supports()
    assert axes.get_xlabel() == "noisy support (rows)"
    (points,) = axes.containers
    assert points[0].get_xydata().tolist() == [[4, 0.4]]
    pyplot.close(axes.figure)


def test_those_of_the_same_attributes_on_either_side_are_one_finding_with_its_variants() -> None:
    """A match, its complement and another cut are one; attributes on other sides, or one more of them, are another."""
    ill, old, warm = Equals("ill", "true"), Below("age", 50), Below("rain", 3)
    sides = [(ill, warm), (Not(ill), Not(warm)), (ill, Below("rain", 5)), (And([ill, old]), warm), (old, warm)]
    sides.append((old, And([warm, Below("snow", 1)])))
    counts = [{"both": Noisy(400 - 9 * k, 1), "apart": Noisy(50 + 5 * k, 2)} for k in range(len(sides))]
    found = Redescriptions(
        [Redescription(*two, **of) for two, of in zip(sides, counts, strict=True)], candidates=70, min_support=5
    )
    assert [(one.left, one.right) for one in found] == sides
    assert [[found.items.index(one) for one in group] for group in found.findings] == [[0, 1, 2], [3], [4], [5]]
    assert found.folded().items == tuple(found.items[k] for k in (0, 3, 4, 5))
    assert (found.folded().candidates, found.folded().min_support) == (70, 5)
    assert Redescriptions([]).findings == () == Redescriptions([]).folded().items


def test_bars_are_the_rows_of_either_side_and_of_both() -> None:
    import matplotlib as mpl
    from matplotlib import pyplot

    mpl.use("Agg")
    counts = {"left_only": Noisy(60, 50), "right_only": Noisy(40, 50), "rows": 1000}
    item = Redescription(Equals("a$b$", "true"), Below("fev", 3), both=Noisy(400, 50), **counts)
    axes = Redescriptions([item] * 14).plot()
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == [460, 400, 440, 400] * 12
    assert [label.get_text() for label in axes.get_yticklabels()[:2]] == [r"a\$b\$", "fev < 3"]
    assert {text.get_text() for text in axes.texts} == {"0.80 *"}
    assert "the first 12 of 14" in axes.get_xlabel()
    assert axes.get_title(loc="right") == "noisy Jaccard index beside the bars; *: trusted"
    assert [name for name, spine in axes.spines.items() if spine.get_visible()] == ["left", "bottom"]
    with_no_sides = Redescriptions([redescription(Noisy(4, 2), Noisy(6, 2))]).plot()
    assert [bar.get_width() for bar in with_no_sides.patches] == [4, 4]
    pyplot.close("all")


def test_without_matplotlib_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'dpframework\[plot\]'"):
        Redescriptions([]).plot()


def test_importing_results_imports_nothing_slow() -> None:
    modules = "dpframework.facts.logical_descriptions_of_rows, dpframework.redescriptions.redescriptions"
    code = f"import sys, {modules}; print([m for m in ('scipy', 'matplotlib', 'numba') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


# Counts: what they are asked for, and what they are made of


@pytest.mark.parametrize("error", [0.9, 0.5, 0.1, 0.09, 0.05, 1e-4, 1e-12])
def test_a_quantile_is_the_larger_of_the_normal_s_and_laplace_s(error: float) -> None:
    assert quantile(error) == pytest.approx(max(norm.isf(error / 2), laplace_of_scipy.isf(error / 2) / math.sqrt(2)))


def test_a_margin_is_that_of_95_percent_and_half_a_row_unless_asked_for() -> None:
    for count in (Noisy(3, 50), Noisy(3, 1e-3)):
        assert count.margin() == count.margin(0.95) == quantile(1 - 0.95) * heavy_deviation(count.variance) + 0.5
        assert count.interval() == (3 - count.margin(), 3 + count.margin())
    assert Noisy(3, 0).margin() == 0


def test_counts_survive_json() -> None:
    assert Noisy(3, 2).to_dict() == {"value": 3.0, "variance": 2.0}
    assert Noisy.from_dict({"value": 3, "variance": 2}) == Noisy(3, 2)
    for wrong in ({}, {"value": 1}, {"value": "x", "variance": 1}, {"value": None, "variance": 1}, 7):
        with pytest.raises(InputError, match="a noisy count is written as its 'value' and its 'variance'"):
            Noisy.from_dict(wrong)  # type: ignore[arg-type]
