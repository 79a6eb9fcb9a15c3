"""Intervals of what is shown because of its noisy index: they hold as often as they say, and are not far too wide.

Noise is drawn for tables whose exact index is known, what is not above the floor is dropped, and the rest is counted.
Each simulation allows so many failures that it fails wrongly with probability 1e-9 at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import attrs
import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from numpy.typing import NDArray
from scipy.stats import binom, laplace, norm

from dpframework.facts.logical_descriptions_of_rows import Equals
from dpframework.redescriptions.cell_union_redescriptions import CellTable, ReportConditions
from dpframework.redescriptions.jaccard_intervals import (
    OF_ALL,
    OF_FLOOR,
    _is_left_out,
    least_jaccard_if_shown,
    so_far_above,
)
from dpframework.redescriptions.redescription import Redescription
from dpframework.redescriptions.redescriptions import Redescriptions
from dpframework.results.noisy_count_with_interval import Noisy, heavy_deviation, quantile
from dpframework.results.share_intervals import least_share, noise_at

SIDE = Equals("a", "b")
LEAST = 0.58
SHOWN = 300  # of those that are drawn: enough to tell
ERROR = 0.05


def noise(rng: np.random.Generator, scale: float, cells: int, size: int) -> NDArray[np.float64]:
    """Draw sums of discrete Laplace noise."""
    p = -math.expm1(-1 / scale)
    draws = rng.geometric(p, (2, cells, size))
    return np.asarray((draws[0] - draws[1]).sum(axis=0), dtype=np.float64)


def shown(index: float, scale: float, cells: tuple[int, int]) -> list[Redescription]:
    """Return what a table of 600 rows on either side shows of an index: it is the least one, less its deviation."""
    rng, either, size = np.random.default_rng(1), 600, 60_000 if index < LEAST else 6_000
    of_both, of_apart = (round(either * index), either - round(either * index))
    both, apart = of_both + noise(rng, scale, cells[0], size), of_apart + noise(rng, scale, cells[1], size)
    variance = Noisy.laplace(0, scale).variance
    j = np.maximum(both, 0) / np.maximum(np.maximum(both, 0) + np.maximum(apart, 0), 1)
    deviation = np.sqrt(variance * ((1 - j) ** 2 * cells[0] + j**2 * cells[1])) / np.maximum(both + apart, 1)
    kept = np.flatnonzero((j - deviation >= LEAST) & (both > 4 * math.sqrt(variance * cells[0])))[:SHOWN]
    table = CellTable(np.zeros((2, 2)), variance, 10_000)
    found = []
    for k in kept:
        counts = Noisy(both[k], variance * cells[0]), Noisy(apart[k], variance * cells[1])
        floor = table.shown_from(*counts, LEAST)
        assert floor <= j[k] + 1e-3
        found.append(Redescription(SIDE, SIDE, both=counts[0], apart=counts[1], shown_from=floor, among=1000))
    return found


@pytest.mark.parametrize("cells", [(1, 6), (4, 8)])
@pytest.mark.parametrize(("index", "scale"), [(0.5, 16), (0.58, 16), (0.66, 16), (0.8, 16), (0.6, 4)])
def test_intervals_of_what_is_shown_hold(index: float, scale: float, cells: tuple[int, int]) -> None:
    found = shown(index, scale, cells)
    assert len(found) > 100
    exact = round(600 * index) / 600
    ends = np.array([one.jaccard_interval() for one in found])
    missed = int(((exact < ends[:, 0]) | (exact > ends[:, 1])).sum())
    assert missed <= binom.isf(1e-9, len(found), ERROR)
    if index < LEAST:  # without the choice they would not hold
        naive = np.array([attrs.evolve(one, shown_from=0.0).jaccard_interval() for one in found])
        assert (exact < naive[:, 0]).sum() > binom.isf(1e-9, len(found), 2 * ERROR)


def test_the_parts_of_the_error_leave_some_for_what_is_left_out() -> None:
    assert pytest.approx(17 / 20) == OF_FLOOR + OF_ALL + 1 / 2


def test_noise_of_whole_rows_is_half_a_step_of_the_larger_count() -> None:
    both, apart, exact = Noisy(600, 9), Noisy(350, 16), Noisy(40, 0)
    for j in (0.0, 0.25, 0.5, 0.9):
        deviation, step = noise_at(both, apart, j)
        assert deviation == pytest.approx(math.hypot((1 - j) * heavy_deviation(9), j * heavy_deviation(16)))
        assert step == max(1 - j, j) / 2
        assert noise_at(both, exact, j)[1] == (1 - j) / 2
        assert noise_at(exact, apart, j)[1] == j / 2
        assert noise_at(exact, exact, j) == (0, 0)


def test_a_count_within_reach_of_noise_and_half_a_row_says_nothing() -> None:
    reach = 2 * heavy_deviation(100.0)
    assert least_share(Noisy(reach + 0.4, 100), Noisy(0, 100), 2) == 0
    assert least_share(Noisy(reach + 0.6, 100), Noisy(0, 100), 2) > 0


def test_an_index_is_left_out_if_noise_lifts_it_so_far_too_rarely_half_a_row_allowed_for_at_both_ends() -> None:
    both, apart, floor = Noisy(60, 9), Noisy(20, 9), 0.65
    lower = least_jaccard_if_shown(both, apart, ERROR, floor, 10**6)
    chances = []
    for j in (lower, lower + 1e-4):
        deviation = math.hypot((1 - j) * heavy_deviation(9), j * heavy_deviation(9))
        half = max(1 - j, j) / 2
        shown = ((1 - j) * 60 - j * 20 - half) / deviation
        chances.append(so_far_above(shown, ((floor - j) * 80 + half) / deviation))
    assert chances[0] <= OF_FLOOR * ERROR <= chances[1]


def test_a_noisy_count_below_0_counts_for_no_row_where_an_index_is_left_out() -> None:
    both, apart, floor, j = Noisy(60, 9), Noisy(-2.5, 9), 0.95, 0.9
    deviation, half = math.hypot((1 - j) * heavy_deviation(9), j * heavy_deviation(9)), max(1 - j, j) / 2
    shown = ((1 - j) * 60 + j * 2.5 - half) / deviation
    chance = so_far_above(shown, ((floor - j) * 60 + half) / deviation)
    assert 0 < chance < 1
    assert not _is_left_out(both, apart, floor, j, chance * (1 - 1e-9))
    assert _is_left_out(both, apart, floor, j, chance * (1 + 1e-9))


def test_far_above_the_floor_an_interval_is_as_wide_as_its_noise() -> None:
    counts = Noisy(4000, 200), Noisy(400, 800)
    lower = least_jaccard_if_shown(*counts, ERROR, 0.6, 1000)
    assert lower == pytest.approx(least_share(*counts, quantile(2 * OF_FLOOR * ERROR)), abs=1e-6)


def test_just_above_the_floor_it_is_that_of_all_at_once() -> None:
    counts = Noisy(600, 800), Noisy(350, 800)
    lower = least_jaccard_if_shown(*counts, ERROR, 0.631, 1000)
    assert lower == pytest.approx(least_share(*counts, quantile(ERROR * OF_ALL / 1000)), abs=1e-6)
    assert lower < least_jaccard_if_shown(*counts, ERROR, 0.55, 1000) < least_share(*counts, quantile(ERROR))


counts = st.builds(Noisy, st.floats(-50, 5000), st.sampled_from([0, 1, 60, 3000]))


@settings(max_examples=100)
@given(counts, counts, st.floats(0.001, 1), st.integers(1, 10**6))
def test_a_choice_never_narrows_an_interval(both: Noisy, apart: Noisy, floor: float, among: int) -> None:
    fixed = Redescription(SIDE, SIDE, both=both, apart=apart)
    chosen = attrs.evolve(fixed, shown_from=floor, among=among)
    (low, high), (lower, upper) = fixed.jaccard_interval(), chosen.jaccard_interval()
    assert 0 <= lower <= low + 1e-12
    assert upper == high
    assert lower <= chosen.jaccard <= upper
    more = attrs.evolve(chosen, among=2 * among).jaccard_interval()[0]
    assert more <= lower + 1e-9


def test_a_list_tells_its_items_how_many_were_looked_at() -> None:
    one = Redescription(SIDE, SIDE, both=Noisy(600, 800), apart=Noisy(350, 800), shown_from=0.62)
    fixed = attrs.evolve(one, shown_from=0.0)
    found = Redescriptions([one, fixed], candidates=1000)
    assert sorted((item.among, item.shown_from) for item in found) == [(1, 0.0), (1000, 0.62)]
    assert found[0].shown_from == 0  # the other one's interval ends lower
    assert Redescriptions.from_dict(found.to_dict()) == found


def test_a_table_names_the_index_from_which_it_shows() -> None:
    cells = CellTable(np.array([[400.0, 30], [30, 540]]), 400.0, 1000)
    mask = np.array([[True, False]])
    one = cells.redescription((SIDE, SIDE), mask[0], mask[0], 0.5)
    floor = one.shown_from
    assert 0.5 < floor < one.jaccard
    # at that index, with as many rows on either side, it is just shown
    either = one.both.value + one.apart.value
    for index, number in ((floor + 1e-6, 1), (floor - 1e-6, 0)):
        apart = either * (1 - index) / 2
        moved = CellTable(np.array([[either * index, apart], [apart, 540]]), 400.0, 1000)
        assert len(moved.reported(mask, mask, ReportConditions(0.5))) == number


@pytest.mark.parametrize("weights", [[1], [0, 1], [0.5, 0.5], [0, 0.5, 0.5], [0, 0.9, 0.1], [0.2] * 5])
def test_given_that_noise_is_above_a_floor_it_is_seldom_far_above(weights: list[float]) -> None:
    """The chance of z or more, given c or more, of mixtures of normal (first) and Laplace noise of variance 1."""
    rng = np.random.default_rng(2)
    size = 200_000
    drawn = rng.normal(0, math.sqrt(weights[0]), size)
    for weight in weights[1:]:
        drawn += rng.laplace(0, math.sqrt(weight / 2), size)
    for c in (-2.0, -0.5, 0.5, 1.0, 2.0, 3.0):
        above = drawn[drawn >= c]
        for chance in (0.1, 0.0125, 0.005):
            z = c + np.linspace(0, 9, 400)
            first = next(one for one in z if so_far_above(one, c) < chance)
            assert (above >= first).sum() <= binom.isf(1e-9, len(above), chance), (c, chance)


def beyond_noise(both: Noisy, apart: Noisy, most: float, j: float) -> float:
    """Return how far (1 - j) both - j apart is above what noise of so many deviations, and half a row, reaches."""
    first, second = (1 - j) * heavy_deviation(both.variance), j * heavy_deviation(apart.variance)
    half = max((1 - j) * (both.variance > 0), j * (apart.variance > 0)) / 2
    return (1 - j) * both.value - j * apart.value - most * math.hypot(first, second) - half


def halved(is_left_out: Callable[[float], bool], low: float, high: float) -> float:
    """Return where what is left out ends."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if is_left_out(middle) else (low, middle)
    return low


def slowly(both: Noisy, apart: Noisy, most: float) -> float:
    """Return the end of an interval that has nothing to do with a choice, by halving."""
    if beyond_noise(both, apart, most, 0) <= 0:
        return 0.0
    return (
        1.0
        if beyond_noise(both, apart, most, 1) >= 0
        else halved(lambda j: beyond_noise(both, apart, most, j) > 0, 0, 1)
    )


any_count = st.builds(
    Noisy,
    st.floats(-50, 5000, allow_subnormal=False)
    | st.integers(-5, 300).map(float)
    | st.floats(-2, 3, allow_subnormal=False),
    st.sampled_from([0, 1e-6, 0.01, 1, 60, 3000]),
)


@settings(max_examples=300)
@example(Noisy(1.36, 60), Noisy(0.34, 0.01), 0.1)  # where a step of the search that is too short is seen
@example(Noisy(0.62, 1e-6), Noisy(0.04, 0.01), 0.3)
@example(Noisy(1.14, 1e-6), Noisy(0.08, 0), 6.0)
@given(any_count, any_count, st.floats(0.1, 7))
def test_ends_are_where_the_difference_comes_within_reach_of_noise(both: Noisy, apart: Noisy, most: float) -> None:
    end, slow = least_share(both, apart, most), slowly(both, apart, most)
    assert slow - 2.0**-50 - 1e-15 <= end <= slow + 1e-15, "rounded down"
    assert (end * 2**50).is_integer()


def test_ends_are_rounded_down() -> None:
    assert least_share(Noisy(1, 0), Noisy(2, 0), 2) == 2**50 // 3 / 2**50 < Fraction(1, 3)


def test_given_the_floor_the_chance_is_that_of_the_heavier_tail() -> None:
    of_laplace, of_normal = laplace(scale=1 / math.sqrt(2)), norm()
    for floor in np.linspace(-3, 3, 25):
        for shown in np.linspace(-3, 6, 19):
            heavier = max(of.sf(shown) / of.sf(floor) for of in (of_laplace, of_normal)) if shown > floor else 1
            assert so_far_above(shown, floor) == pytest.approx(heavier, rel=1e-12)
    assert so_far_above(2001, 2000) == pytest.approx(math.exp(-math.sqrt(2))), "where tails are 0 in floating point"


def chance_above(both: Noisy, apart: Noisy, floor: float, j: float) -> float:
    """Return the chance that noise lifts an exact index j as high as shown, given that it lifts it above the floor."""
    first, second = (1 - j) * heavy_deviation(both.variance), j * heavy_deviation(apart.variance)
    half = max((1 - j) * (both.variance > 0), j * (apart.variance > 0)) / 2
    deviation, either = math.hypot(first, second), max(both.value, 0) + max(apart.value, 0)
    above = (1 - j) * both.value - j * apart.value - half
    if not deviation:
        return float(above <= 0)  # without noise it is as high as shown, or it is not
    shown = above / deviation
    least = ((floor - j) * either + half) / deviation
    return max(of.sf(shown) / of.sf(least) for of in (laplace(scale=1 / math.sqrt(2)), norm())) if shown > least else 1


@settings(max_examples=40)
@example(Noisy(20, 60), Noisy(-18, 0), 0.0, 1, 0.2)  # no noise is left at an index of 1
@given(
    st.builds(Noisy, st.integers(20, 900), st.sampled_from([1, 60, 300])),
    st.builds(Noisy, st.integers(-30, 20) | st.integers(20, 900), st.sampled_from([0, 1, 60, 300])),
    st.floats(-0.2, 0.5),
    st.sampled_from([1, 3, 1000]),
    st.sampled_from([0.05, 0.2]),
)
def test_ends_of_what_is_shown_are_where_its_noise_is_no_longer_too_rare(
    both: Noisy, apart: Noisy, above: float, among: int, error: float
) -> None:
    """Between the end that holds for all that were looked at, and the one that a quarter of the error gives."""
    index = both.value / (both.value + max(apart.value, 0))
    floor = min(max(index - above, 0.01), 1)
    of_all, of_one = (slowly(both, apart, quantile(part)) for part in (error / 10 / among, error / 2))
    end = of_all
    if of_all < of_one:
        end = halved(lambda j: chance_above(both, apart, floor, j) < error / 4, of_all, of_one)
    found = least_jaccard_if_shown(both, apart, error, floor, among)
    assert found == pytest.approx(min(end, of_one), abs=1e-8)


def test_noise_is_shown_so_far_above_a_floor_with_the_larger_chance_of_two_laws() -> None:
    def normal(number: float) -> float:
        return math.erfc(number / math.sqrt(2)) / 2

    def laplace(number: float) -> float:
        half = math.exp(-math.sqrt(2) * abs(number)) / 2
        return half if number > 0 else 1 - half

    for floor in (-3.0, -1.0, -0.2, 0.0, 0.5, 1.2):
        for above in (0.0, 0.1, 1.0, 3.0):
            shown = floor + above
            wanted = max(law(shown) / law(floor) for law in (normal, laplace))
            assert so_far_above(shown, floor) == pytest.approx(wanted, rel=1e-12)
            assert so_far_above(floor - above, floor) == 1
