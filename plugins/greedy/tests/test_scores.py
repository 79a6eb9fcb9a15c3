"""Sensitivities of the score: the closed forms against every pair of neighbouring tables, and the paper's search."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import attrs
import numpy as np
import pytest
from dpframework_greedy import scores
from dpframework_greedy.language import Language
from dpframework_greedy.queries import PairScores
from dpframework_greedy.scores import (
    PARTS,
    ROUNDING,
    Score,
    _bounds,
    _changes_at,
    _turning_support,
    rises_at,
    spread_of,
)
from dpframework_greedy.surplus_score import Surplus
from scipy.optimize import minimize_scalar

import dpframework as dpf

SCHEMA = dpf.Schema(
    [dpf.Categorical("soil", ["a", "b", "c"], view="left"), dpf.Numeric("rain", 0, 4, bins=4, view="right")]
)
UNIT = 2.0**-30  # a fine lattice

SCORES = [
    Score(),
    *(Score(s, k) for s in (1, 5, 20) for k in (0.05, 0.3, 2.0, 30.0)),
    *(Score(s, k, m, h) for s, m in ((3, 8), (20, 60), (20, 150)) for k in (0.1, 1.0) for h in (0.02, 0.3, 5.0)),
    *(Score.lowest(s, m) for s, m in ((1, None), (4, 20), (20, None), (20, 100), (20, 160), (60, 61))),
]
MOST = 200


def table_of_scores(score: Score, rows: int) -> np.ndarray:
    """Return q(I, A) for all I and A with I + A <= rows; NaN elsewhere."""
    both, apart = np.meshgrid(np.arange(rows + 1), np.arange(rows + 1), indexing="ij")
    with np.errstate(invalid="ignore"):
        jaccard = np.where(both > 0, both / (both + apart), 0.0)
    of_both, of_either = score.of_both(np.arange(rows + 1)), score.of_either(np.arange(rows + 1))
    scores = jaccard * of_both[:, None] * of_either[np.minimum(both + apart, rows)]
    scores[both + apart > rows] = np.nan
    return scores


def searched(score: Score, rows: int) -> tuple[float, float, float]:
    """Return the largest rise and fall by a row added, and change by one replaced, on up to so many rows."""
    return changes_in(table_of_scores(score, rows))


def changes_in(q: np.ndarray) -> tuple[float, float, float]:
    """Return what `searched` does of q(I, A)."""
    both, one = q[1:, :] - q[:-1, :], q[:, 1:] - q[:, :-1]
    passed = q[1:, :-1] - q[:-1, 1:]
    added = np.concatenate([both.ravel(), one.ravel()])
    return np.nanmax(added), -np.nanmin(added), max(np.nanmax(np.abs(added)), np.nanmax(np.abs(passed)))


@pytest.mark.parametrize("score", SCORES, ids=str)
def test_closed_forms_are_the_largest_changes_on_all_tables_of_200_rows(score: Score) -> None:
    changes = score.changes
    rise, fall, replaced = searched(score, MOST)
    # a change further out, beyond 200 rows, may be larger; none of those on 200 may be larger than claimed
    assert rise <= changes.rise * (1 + 1e-12)
    assert fall <= changes.fall * (1 + 1e-12)
    assert replaced <= changes.replaced * (1 + 1e-12)
    if (score.min_support or 0) <= 20:
        assert fall == pytest.approx(changes.fall, rel=1e-9)
    if (score.min_support or 0) <= 20 and score.max_support is None:
        assert [rise, replaced] == pytest.approx([changes.rise, changes.replaced], rel=1e-9)
    elif score.descent * ((score.max_support or 0) - 3 * (score.min_support or 0)) > 4:
        # the bound on the rise leaves the second factor out, which is nearly 1 there
        assert [rise, replaced] == pytest.approx([changes.rise, changes.replaced], rel=0.02)


@pytest.mark.parametrize(("least", "steepness", "rows"), [(10, 0.2, 60), (20, 0.17, 200), (5, 3.0, 40)])
def test_published_search_over_intersections_and_unions_finds_the_same(least: int, steepness: float, rows: int) -> None:
    # the paper tries every intersection and union, and adds or removes a row in every way
    def q(both: int, union: int) -> float:
        return both / union / (1 + np.exp(-steepness * (both - least))) if union else 0.0

    largest = 0.0
    for union in range(rows):
        for both in range(union + 1):
            for more in (0, 1):
                largest = max(largest, abs(q(both + more, union + 1) - q(both, union)))
    changes = Score(least, steepness).changes
    assert max(changes.rise, changes.fall) == pytest.approx(largest, rel=1e-9)


@pytest.mark.parametrize("steepness", [0.0, -1.0, math.nan, math.inf])
def test_a_steepness_that_the_derivation_does_not_hold_for_is_refused(steepness: float) -> None:
    """One that is not a number would have a sensitivity of 0, and one below 0 that of another score."""
    for given in ((5, steepness), (None, 0.0, 5, steepness), (5, 0.2, 9, steepness)):
        with pytest.raises(dpf.InputError, match="a number above 0 is needed"):
            Score(*given)


def test_score_is_not_monotonic_and_pays_for_its_rise_and_its_fall() -> None:
    score = Score.lowest(20, 100)
    changes, declared = score.changes, score.sensitivity
    assert changes.rise > 0
    assert changes.fall > 0
    assert not declared.monotonic
    assert [float(declared.rise), float(declared.fall)] == pytest.approx([changes.rise, changes.fall])
    spread = declared.spread
    assert float(spread.add_or_remove_one) == pytest.approx(changes.rise + changes.fall)
    assert spread.add_or_remove_one >= Fraction(changes.rise + changes.fall)
    assert float(spread.replace_one) == pytest.approx(2 * changes.replaced)
    # less than the published 2 Delta
    assert changes.rise + changes.fall < 2 * max(changes.rise, changes.fall)
    # replaced by its own maximum, not by doubling
    assert spread.replace_one < 2 * spread.add_or_remove_one


@pytest.mark.parametrize("least", [3, 20, 257, 561, 4600])
def test_lowest_steepness_is_lowest(least: int) -> None:
    def spread(score: Score) -> float:
        return score.changes.rise + score.changes.fall

    best = Score.lowest(least, None)
    for factor in (0.5, 0.8, 0.95, 1.05, 1.25, 2.0):
        assert spread(best) <= spread(Score(least, best.steepness * factor)) * (1 + 1e-3)


@pytest.mark.parametrize(("least", "most"), [(20, 100), (257, 1288), (561, 4488)])
def test_maximum_support_costs_hardly_anything(least: int, most: int) -> None:
    with_most, without = Score.lowest(least, most).sensitivity, Score.lowest(least, None).sensitivity
    assert with_most.spread.add_or_remove_one <= 1.005 * without.spread.add_or_remove_one
    assert with_most.replace_one <= 1.005 * without.replace_one


def test_near_tautologies_score_less_than_descriptions_of_half_of_their_index() -> None:
    score = Score.lowest(561, 2805)
    assert score.of_either(np.array([5500]))[0] < 0.001
    assert score.of_both(np.array([1500]))[0] * score.of_either(np.array([1870]))[0] > 0.9


def test_a_rise_is_bounded_over_all_numbers_of_rows_in_either_support() -> None:
    """Of the index itself the largest is not where both supports are the same rows."""
    for factors in (np.ones(41), 1 / (1 + np.exp(-0.3 * (np.arange(41) - 20)))):
        for i in range(40):
            either = np.arange(i, 400)
            before = np.where(either > 0, factors[i] * i / np.maximum(either, 1), 0)
            largest = (factors[i + 1] * (i + 1) / (either + 1) - before).max()
            assert rises_at(np.array([i]), factors[i : i + 1], factors[i + 1 : i + 2]) == pytest.approx(largest)


def test_changes_are_found_however_large_the_supports_are() -> None:
    """Beyond the first million supports: there a row moves the score by a quarter of the steepness."""
    changes = Score(3_000_000, 0.2, 5_000_000, 0.1).changes
    assert changes.rise == pytest.approx(0.05, rel=0.01)
    assert changes.fall == pytest.approx(0.025, rel=0.01)


def test_several_rows_of_a_unit_change_a_score_by_1_at_most_by_replacing_too() -> None:
    """Where a replaced row moves it further than an added one: what is declared is 1, not more."""
    score = Score(5, 0.5)
    one = score.sensitivity
    rows = next(k for k in range(1, 1000) if k * one.replace_one > 1)
    assert rows * max(one.rise, one.fall) < 1
    (declared,) = score.for_rows(rows)
    assert declared.replace_one == 1
    assert score.for_rows(rows - 1) == ()


def test_sensitivity_needs_no_row_count() -> None:
    small, large = searched(Score.lowest(10, 50), 60), searched(Score.lowest(10, 50), 200)
    assert small == pytest.approx(large)


@pytest.mark.parametrize("index", [-1.0, 0.0, 0.5, 0.61, 0.9, 1.0, 1.5])
@pytest.mark.parametrize("most", [1, 40, 200])
def test_surplus_changes_by_no_more_than_declared_whatever_index_is_given(index: float, most: int) -> None:
    both, apart = np.meshgrid(np.arange(MOST + 1), np.arange(MOST + 1), indexing="ij")
    scores = Surplus(most).surpassing(index).of_supports(both, np.minimum(both + apart, MOST))
    scores[both + apart > MOST] = np.nan
    rise, fall, replaced = changes_in(scores)
    declared = Surplus(most).sensitivity
    assert fall <= declared.fall + 1e-9
    assert rise <= declared.rise + 1e-9
    assert replaced <= declared.replace_one + 1e-9
    if index <= 0.5 and most == 40:
        assert [rise, fall, replaced] == pytest.approx([0.5, 1, 1])


def test_surplus_is_positive_just_for_a_higher_index_within_the_maximum_support() -> None:
    both, apart = (part.ravel() for part in np.meshgrid(np.arange(100), np.arange(100)))
    scores = Surplus(100).surpassing(0.7).of_supports(both, both + apart)
    within = both + apart < 100
    assert ((scores > 1e-9) == (10 * both > 7 * (both + apart)))[within].all()
    assert Surplus(100).surpassing(0.7).of_supports(np.array([150]), np.array([150])) == pytest.approx([0.3 * 100])


def test_surplus_tells_candidates_apart_in_far_less_noise_than_the_weighted_index() -> None:
    weighted = Score.lowest(561, 3927).sensitivity.spread.replace_one
    assert float(weighted) * 2500 > 8 * float(Surplus(3927).sensitivity.spread.replace_one)


@pytest.mark.parametrize(
    "score",
    [
        Score.lowest(3_000, 100_000),
        Score.lowest(70_000, 90_000),
        Score(20_000, 0.5, 60_000, 2.0),
        Score(20_000, 1e-4, 150_000, 1e-3),
        Score(max_support=50_000, descent=0.3),
    ],
)
def test_an_interval_that_is_not_split_holds_no_larger_change(score: Score) -> None:
    """Supports up to 10 times the largest bound, where nothing changes any more, are looked at one by one."""
    largest = _changes_at(score, np.arange(1_600_000)).max(axis=1)
    found = np.array(attrs.astuple(score.changes))
    assert (found <= largest).all()
    assert (largest - found <= ROUNDING / 2).all()


@pytest.mark.parametrize("least", [1, 20, 1_000, 50_000, 500_000])
def test_the_lowest_sensitivity_falls_with_the_least_support(least: int) -> None:
    """As the logarithm over the number: 3.9 / 500,000. A steepness that is a step there would cost 1/2 and more."""
    changes = Score.lowest(least, None).changes
    assert (changes.rise + changes.fall) * least <= 0.76 + 0.25 * math.log(least)


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize(
    "score",
    [Score(), Score.lowest(1, None), Score.lowest(2, 9), Score(max_support=6, descent=30), Score(3, 30)],
    ids=str,
)
def test_several_rows_of_a_unit_move_a_score_by_no_more_than_is_declared(score: Score, k: int) -> None:
    """All tables of 20 rows, and all k rows or fewer that are added to them, in both supports or in one."""
    q = table_of_scores(score, 20 + k)
    moved = np.array([q[i : 21 + i, a : 21 + a] for i in range(k + 1) for a in range(k + 1 - i)])
    added = moved - moved[0]
    found = np.nanmax(added), -np.nanmin(added), np.nanmax(moved.max(axis=0) - moved.min(axis=0))
    declared = score.for_rows(k)
    one, changes = score.sensitivity, [k * changed for changed in attrs.astuple(score.changes)]
    if declared:
        (one,) = declared
        changes = [float(change or 0) for change in (one.rise, one.fall, one.change.replace_one)]
    assert all(np.array(found) <= np.array(changes) * (1 + 1e-9))
    if score == Score() and k > 1:
        assert [one.rise, one.fall, one.change.replace_one] == [1, Fraction(k, k + 1), 1]
        assert list(found) == pytest.approx(changes), "attained"


@pytest.mark.parametrize("score", [Score.lowest(60, 100), Surplus(50, 0.6)], ids=["weighted", "surplus"])
def test_scores_are_made_at_the_supports_that_occur(score: Score | Surplus) -> None:
    """To the last bit what a table of all supports holds, and for 10^9 rows in no more memory than for few."""
    language = Language.of_schema(SCHEMA)
    for rows in (300, 10**9):
        counts = np.random.default_rng(rows).multinomial(rows, np.full(12, 1 / 12))
        pool = PairScores(language, Score()).answer(counts)
        group = pool.groups()[0]
        pool.scores(group, UNIT)  # kernels are compiled now
        tracemalloc.start()
        found = attrs.evolve(pool, score=score).scores(group, UNIT)[1]
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        tracemalloc.stop()
        if rows == 300:
            both, either = (attrs.evolve(pool, score=Supports(side)).scores(group, 1.0)[1] for side in (0, 1))
            supports = np.arange(rows + 1)
            if isinstance(score, Score):
                table = score.of_both(supports)[both] * score.of_either(supports)[either] * both / either
            else:
                table = supports[both] + (0.4 * np.minimum(supports, 50) - supports)[either]
            assert found.tolist() == np.rint(table / UNIT).tolist()


@attrs.frozen
class Supports:
    """Scores that are one of the two supports."""

    side: int

    def of_supports(self, both: np.ndarray, either: np.ndarray) -> np.ndarray:
        """Return that one."""
        return (both, either)[self.side]


def test_factors_are_a_half_at_the_supports_that_are_asked_for():
    score = Score(100, 0.1, 500, 0.2)
    assert (score.of_both(np.array([100])), score.of_either(np.array([500]))) == (0.5, 0.5)


def test_an_index_to_be_surpassed_is_from_a_half_to_one():
    assert [Surplus(500).surpassing(index).index for index in (0.3, 0.7, 1.2)] == [0.5, 0.7, 1]


@pytest.mark.parametrize(
    ("score", "turned"),
    [
        (Score(), 0),
        (Score(10, 0.5), 90),
        (Score(max_support=100, descent=0.25), 260),
        (Score(10, 0.5, 100, 0.25), 260),
        (Score(300, 0.5, 301, 2), 380),
    ],
    ids=str,
)
def test_beyond_some_support_factors_are_constant_to_all_digits(score: Score, turned: float) -> None:
    assert _turning_support(score) == turned
    beyond = np.array([turned, 2.0 * turned + 1])
    assert (1 - score.of_both(beyond) <= 1e-17).all()
    assert score.max_support is None or (score.of_either(beyond) < 1e-17).all()


@pytest.mark.parametrize(
    "score",
    [
        Score(),
        Score.lowest(3_000, 100_000),
        Score.lowest(3_000, 4_000),
        Score(4096, 0.3, 12288, 0.2),  # steepest at the edges of intervals
        Score(4095, 2.0, 12287, 0.5),
        Score(4097, 30.0, 12289, 1e-3),
        Score(10, 1e-4, 20_000, 2e-5),
        Score(max_support=8192, descent=0.3),
        Score(500, 0.02),
    ],
    ids=str,
)
def test_what_bounds_an_interval_is_above_all_its_changes_and_near_them_in_a_short_one(score: Score) -> None:
    exact = _changes_at(score, np.arange(1 << 16))
    for width in (1, PARTS, PARTS**3):
        starts = np.arange(0, 1 << 16, width)
        largest = exact.reshape(3, -1, width).max(axis=2)
        assert (_bounds(score, starts, width) >= largest - ROUNDING / 2).all()
    # of one support nothing is left but that U is a whole number
    np.testing.assert_allclose(_bounds(score, np.arange(1 << 16), 1)[:, 300:], exact[:, 300:], rtol=1e-4, atol=1e-15)


@pytest.mark.parametrize(
    ("score", "most"),
    [
        (Score.lowest(3_000, 100_000), 5_000),
        (Score.lowest(1_900_000_000, 2_000_000_000), 20_000),
        (Score(20_000, 0.5, 60_000, 2.0), 2_000),
        (Score(2, 1e-300), 2_000),
        (Score(), PARTS + 1),
    ],
    ids=str,
)
def test_few_supports_are_looked_at(score: Score, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of up to two billions, only those about which a larger change than what was found could lie."""
    looked_at = []
    monkeypatch.setattr(scores, "_changes_at", lambda *asked: looked_at.append(len(asked[1])) or _changes_at(*asked))
    assert attrs.evolve(score).changes.rise > 0
    assert sum(looked_at) <= most


@pytest.mark.parametrize("score", [Score(), Score.lowest(561, None), Score.lowest(1_900_000_000, None)], ids=str)
def test_what_is_declared_is_above_what_rounding_takes_off(score: Score) -> None:
    """Numbers between 0 and 1 are rounded to 2^-53, which is not little beside a change of 10^-9."""
    for declared, found in zip(score.changes.above, attrs.astuple(score.changes), strict=True):
        assert (
            Fraction(found) + Fraction(1, 2**48)
            <= declared
            <= Fraction(found) * (1 + Fraction(1, 2**39)) + Fraction(1, 2**47)
        )


@pytest.mark.parametrize("least", [3, 20, 257])
def test_no_steepness_has_a_lower_sensitivity(least: int) -> None:
    """As scipy finds it, to the accuracy that a minimum can be found with."""

    def spread(logarithm: float) -> float:
        changes = Score(least, math.exp(logarithm)).changes
        return changes.rise + changes.fall

    bounds = (math.log(0.1 / least), math.log(50))
    found = minimize_scalar(spread, bounds=bounds, method="bounded", options={"xatol": 1e-8})
    best = Score.lowest(least, None)
    assert best.steepness == pytest.approx(math.exp(found.x), rel=1e-5)
    assert best.sensitivity.spread.add_or_remove_one <= found.fun * (1 + 1e-8)


@pytest.mark.parametrize(("least", "most"), [(20, 100), (20, 21), (257, 1288), (3, 1000)])
def test_the_maximum_support_is_as_steep_as_it_can_be_for_nothing(least: int, most: int) -> None:
    """What a row takes away there, a quarter of the steepness and 1 / (m + 1), is what one takes away anyway."""
    score, without = Score.lowest(least, most), Score.lowest(least, None)
    assert (score.min_support, score.steepness, score.max_support) == (least, without.steepness, most)
    fall = without.changes.fall
    assert score.descent / 4 == max(fall - 1 / (most + 1), fall / 4)


def test_a_score_is_the_index_times_both_factors() -> None:
    both, either = np.array([0, 0, 30, 50, 100]), np.array([0, 40, 40, 90, 100])
    logistic = [
        1 / (1 + math.exp(-0.3 * (i - 20))) / (1 + math.exp(0.1 * (u - 60))) for i, u in zip(both, either, strict=True)
    ]
    assert Score(20, 0.3, 60, 0.1).of_supports(both, either) == pytest.approx(both / np.maximum(either, 1) * logistic)
    assert Score().of_supports(both, either).tolist() == [0, 0, 0.75, 5 / 9, 1]
    assert Score().of_supports(np.array([0, 1]), np.array([1, 1])).tolist() == [0, 1]
    assert Score(1000, 30, 2000, 30).of_supports(np.array([1]), np.array([10**6])) == pytest.approx(0)


def test_the_index_itself_rises_by_1_and_falls_by_a_half() -> None:
    assert attrs.astuple(Score()) == (None, 0, None, 0)
    assert attrs.astuple(Score().changes) == (1, 0.5, 1)
    assert spread_of(Score(), rows_public=True) == 2
    assert float(spread_of(Score(), rows_public=False)) == pytest.approx(1.5)
    assert spread_of(Surplus(9), rows_public=True) == 2
    assert spread_of(Surplus(9), rows_public=False) == Fraction(3, 2)


def test_what_is_declared_of_rows_is_that_of_both_ways_a_row_can_move_a_score() -> None:
    for score in (Score(), Score.lowest(20, 100), Score(3, 30.0)):
        one, changes = score.sensitivity, score.changes
        assert one.add_or_remove_one == max(one.rise, one.fall)
        assert [float(one.rise), float(one.fall), float(one.replace_one)] == pytest.approx(attrs.astuple(changes))
        assert one.rise >= Fraction(changes.rise)
        assert one.fall >= Fraction(changes.fall)
        assert one.replace_one >= Fraction(changes.replaced)
    surplus = Surplus(40).sensitivity
    assert (surplus.add_or_remove_one, surplus.replace_one, surplus.rise, surplus.fall) == (1, 1, Fraction(1, 2), 1)
    assert Surplus(40).for_rows(5) == ()


def test_a_unit_of_several_rows_pays_no_more_than_for_a_score_between_0_and_1() -> None:
    """Declared only where it is less than what so many rows cost one by one."""
    score = Score(5, 0.5)
    one = score.sensitivity
    for rows in range(1, 40):
        each = [rows * part for part in (one.rise, one.fall, one.replace_one)]
        declared = score.for_rows(rows)
        assert bool(declared) == (max(each) >= 1)
        for found in declared:
            assert [found.rise, found.fall, found.replace_one] == [min(part, 1) for part in each]
            assert found.add_or_remove_one == max(found.rise, found.fall)


@pytest.mark.parametrize("least", [4095, 4096, 4097])
def test_a_change_at_the_edge_of_an_interval_is_found(least: int) -> None:
    """A steep score rises by nearly 1 as its least support is reached."""
    score, around = Score(least, 30.0), np.arange(least - 3, least + 3)
    rise = rises_at(around, score.of_both(around), score.of_both(around + 1)).max()
    assert score.changes.rise == rise == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize("score", [Score(), Score(20, 0.3), Score(20, 0.3, 60, 0.2), Score.lowest(300, None)], ids=str)
def test_beyond_where_factors_change_every_change_is_less_than_the_one_before(score: Score) -> None:
    supports = np.arange(math.ceil(_turning_support(score)) + 1, 5_000)
    here, above = score.of_both(supports), score.of_both(supports + 1)
    of_either, next_either = score.of_either(supports), score.of_either(supports + 1)
    rise = rises_at(supports, here, above)
    fall = here * (of_either - next_either * supports / (supports + 1))
    passed = next_either * (above - here * supports / (supports + 1))
    for change in (rise, fall, passed):
        assert (np.diff(change) <= 1e-16).all()
    assert score.changes.rise >= rise[0]
