"""The ground test by itself: the numbers that it draws, and where a difference begins to be one."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scored_formulas import (
    COUNTS,
    GAIN,
    GINI,
    HALF,
    JACCARD,
    MAX,
    NORM,
    PAIR_PRODUCT,
    SURPLUS,
    THRESHOLD,
    TWOING,
    VALUE,
    a,
    b,
)

from dpframework.formulas import (
    Adds,
    Cells,
    Change,
    Claim,
    Parts,
    Shape,
    cells,
    largest_over_classes,
    n,
    public,
    rows,
    rows_of_part,
    sum_over_classes,
    x_log2_x,
)
from dpframework.formulas.sensitivity_claims_and_neighbours import ScoreClaims, score_claims
from dpframework.formulas.smt_goal_evaluator import _DENIALS, NAMED, GroundGoal
from dpframework.formulas.smt_goal_ground_test import (
    GroundPair,
    _problem,
    aggregate_of,
    bound_of,
    ground_problem,
    neighbours,
    query_problem,
    range_problem,
)
from dpframework.formulas.smt_goals_for_cell_scores import cell_goals, range_goals

F = Fraction
LOW, HIGH = public("low", 0, 1), public("high", -3, "1/2")
PUBLIC = Cells((a, b), LOW * a - HIGH * b)
SHARES = Adds((LOW, LOW / 3, public("other", 0, 1)), shares=True)
RISE, FALL, REPLACED = (Claim(change, 1) for change in ("rise", "fall", "replaced"))


def drawn(shape: Shape, claim: Claim, pairs: int = 12) -> list[GroundPair]:
    return list(neighbours(shape, claim, pairs))


@pytest.mark.parametrize("claim", [RISE, FALL], ids=str)
@pytest.mark.parametrize("shape", [GINI, MAX, GAIN, NORM], ids=str)
def test_parts_differ_by_a_row_of_the_first_class_of_the_first_part(shape: Parts, claim: Claim) -> None:
    sizes, beyond = set(), set()
    for pair in drawn(shape, claim, 60):
        less, more = (pair.high_counts, pair.low_counts) if claim is FALL else (pair.low_counts, pair.high_counts)
        change = more - less
        assert change.sum() == change[0, 0] == 1
        assert less.shape[0] == 3
        assert 2 <= less.shape[1] <= 5
        assert list(pair.numbers)[:3] == ["c", "rest", "rows"]
        assert pair.numbers["c"] == less[0, 0]
        assert pair.numbers["rest"] == less[0, 1:].sum()
        beyond.add(pair.numbers["rows"] - more.sum())
        for k, found in enumerate(shape.body.leaves("sum", "largest")):  # type: ignore[arg-type]
            assert pair.numbers[f"s{k}"] == aggregate_of(found, less[0, 1:])
        assert (pair.low, pair.high) == (shape.scores(pair.low_counts), shape.scores(pair.high_counts))
        sizes.add(less.shape[1])
    assert beyond == {0, 1, 2}
    assert sizes == {2, 3, 4, 5}
    largest = max(pair.low_counts.max() for pair in drawn(shape, claim, 60))
    assert bool(largest > 1000) is (shape in (GINI, MAX))  # exact numbers only are that large


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("change", ["rise", "fall", "replaced"])
def test_cells_differ_by_the_rows_of_a_claim(change: str, group: int) -> None:
    seen = set()
    for pair in drawn(THRESHOLD, Claim(change, 1, group=group), 60):
        low, high = np.array(pair.low_counts), np.array(pair.high_counts)
        shared = np.array([pair.numbers["a"], pair.numbers["b"]])
        into, out = (high, low) if change != "fall" else (low, high)
        assert (into >= shared).all()
        assert 0 <= (into - shared).sum() <= group
        if change == "replaced":
            assert 0 <= (out - shared).sum() <= group
        else:
            assert (out == shared).all()
        if group > 1:
            assert [pair.numbers[f"in_{name}"] for name in "ab"] == (into - shared).tolist()
            assert [pair.numbers[f"out_{name}"] for name in "ab"] == (out - shared).tolist()
        else:
            assert list(pair.numbers) == ["a", "b"]
            assert change != "replaced" or (into - shared).tolist() != (out - shared).tolist()
        assert (pair.low, pair.high) == (THRESHOLD.scores(low), THRESHOLD.scores(high))
        seen.add(tuple((into - shared).tolist()))
    one = {(1, 0), (0, 1), (0, 0)}
    expected = one if group == 1 else one | {(2, 0), (0, 2), (1, 1)}
    assert seen <= expected
    assert len(seen) >= len(one) - 1


def test_public_numbers_are_the_ends_and_the_middle() -> None:
    pairs = drawn(PUBLIC, RISE, 90)
    assert {pair.numbers["low"] for pair in pairs} == {0, HALF, 1}
    assert {pair.numbers["high"] for pair in pairs} == {-3, F(-5, 4), HALF}
    for pair in pairs:
        low, high = (
            pair.numbers["low"] * int(counts[0]) - pair.numbers["high"] * int(counts[1])
            for counts in (pair.low_counts, pair.high_counts)
        )
        assert (float(pair.low), float(pair.high)) == pytest.approx((float(low), float(high)))


def test_totals_are_at_all_ends_with_all_moves() -> None:
    product = {}
    for change, moves in (("rise", 4), ("fall", 4), ("replaced", 16)):
        pairs = drawn(PAIR_PRODUCT, Claim(change, 1))
        product[change] = pairs
        assert len(pairs) == 5 * 4 * moves
        assert {type(score) for pair in pairs for score in (pair.low, pair.high)} == {F}
        assert [pair.numbers["N"] for pair in pairs[:: 4 * moves]] == [0, 1, 2, 9, 40]
    first, *_, last = product["rise"]
    assert (first.low, first.high) == (0, F(-1, 2) * (1 - 1))
    assert last.low == F(40) * 2 / 2
    assert last.high == F(41) * (1 + F(41, 41)) / 2
    assert (product["fall"][-1].low, product["fall"][-1].high) == (last.high, last.low)
    changes = {pair.high - pair.low for pair in drawn(TWOING, RISE)}
    assert changes == {F(-1), F(0), F(1)}
    assert {pair.high - pair.low for pair in drawn(TWOING, REPLACED)} == {F(k) for k in range(-2, 3)}


def test_rows_of_vectors_are_the_norm_of_what_they_add() -> None:
    for pair in drawn(VALUE, Claim("l1", 1), 30):
        assert list(pair.numbers) == ["value"]
        assert (pair.low, pair.high) == (0, abs(pair.numbers["value"]))
        assert type(pair.high) is F
    ends = [pair.numbers["value"] for pair in drawn(VALUE, Claim("l1", 1), 200)]
    assert set(ends) == {F(-3) + share * F(13, 4) for share in range(5)}
    assert sum(one in (-3, 10) for one in ends) > 150
    for pair in drawn(VALUE, Claim("squared-l2", 1, replaced=True), 30):
        assert pair.high == (pair.numbers["value"] - pair.numbers["value_before"]) ** 2
    two = Adds((LOW, HIGH))
    for change, norm in (("l1", sum), ("linf", max)):
        for pair in drawn(two, Claim(change, 1), 30):
            assert pair.high == norm((abs(pair.numbers["low"]), abs(pair.numbers["high"])))
    shared = drawn(SHARES, Claim("l1", 1), 60)
    sums = [pair.numbers["low"] * F(4, 3) + pair.numbers["other"] for pair in shared]
    assert [pair.high for pair in shared] == sums
    assert max(sums) == 1
    assert {pair.high for pair in drawn(COUNTS, Claim("linf", 1), 60)} >= {0, 1, HALF}


def test_the_numbers_are_the_same_on_every_machine() -> None:
    """All that is drawn for each kind of score, by the digest of its text."""
    found = {}
    for name, shape, claim in (
        ("parts", GINI, RISE),
        ("logarithms", GAIN, FALL),
        ("cells", JACCARD, REPLACED),
        ("two rows", SURPLUS, Claim("replaced", 1, group=2)),
        ("public", PUBLIC, RISE),
        ("vector", SHARES, Claim("l1", 1, replaced=True)),
    ):
        told = "; ".join(
            ", ".join(f"{key} {float(value):.9g}" for key, value in pair.numbers.items())
            for pair in neighbours(shape, claim, 40)
        )
        found[name] = hashlib.sha256(told.encode()).hexdigest()[:12]
    assert found == DRAWN


DRAWN = {
    "parts": "3377469663ef",
    "logarithms": "2f98511725d9",
    "cells": "de24da7d0202",
    "two rows": "f4d0f3bfc03c",
    "public": "afc91bf0a0fe",
    "vector": "321d09d5569c",
}


def test_aggregates_are_exact_where_they_are_fractions() -> None:
    counts = np.array([3, 0, 2])
    assert aggregate_of(sum_over_classes(n**2 / 2), counts) == F(13, 2)
    assert aggregate_of(largest_over_classes(n * 3), counts) == 9
    assert aggregate_of(sum_over_classes(n * rows_of_part), counts) == 25
    assert aggregate_of(sum_over_classes(x_log2_x(n)), counts) == pytest.approx(3 * np.log2(3) + 2)
    assert aggregate_of(sum_over_classes(n), np.zeros(0, dtype=np.int64)) == 0


def test_bounds_are_of_the_rows_and_the_public_numbers() -> None:
    assert bound_of(Claim("rise", 2 - 1 / rows), {"rows": 4}) == 1.75
    assert bound_of(Claim("rise", 2 + rows), {}) == 2
    assert bound_of(Claim("rise", 3 * LOW + 1), {"low": HALF}) == 2.5


def pair_of(low: Any, high: Any, **numbers: Any) -> GroundPair:
    return GroundPair(numbers or {"c": 1, "rest": 2}, low, high)


def test_a_difference_is_one_beyond_rounding() -> None:
    claim = Claim("rise", 2)
    assert _problem([], claim, pair_of(0, 1)) == "no goal describes the neighbours with c 1, rest 2"
    assert _problem([(1, 2)], claim, pair_of(0, 1)) is None
    assert _problem([(7, 2), (1, 2)], claim, pair_of(3, 4)) is None
    assert _problem([(2, 2)], claim, pair_of(0, 1)) == (
        "a goal says that the scores differ by 2, but they differ by 1: c 1, rest 2"
    )
    assert _problem([(1, 3)], claim, pair_of(0, 1)) == "a goal has the bound 3, where the claim has 2"
    assert _problem([(1, 3), (1, 2)], claim, pair_of(0, 1)) is None
    assert _problem([(7, 2), (1, 3)], claim, pair_of(0, 1)) is not None
    exactly = Claim("rise", 0)
    assert _problem([(1e-9, 1e-9)], exactly, pair_of(0, 0)) is None
    # of scores up to 1, a part in 10**9; of larger ones, and of larger bounds, as a share of them
    for low, high in ((0, 1), (0, HALF), (100, 101), (-1001, -1000), (1000, 0), (0, -1000)):
        size = max(1.0, abs(float(low)), abs(float(high)))
        change = float(high) - float(low)
        assert _problem([(change + 0.9e-9 * size, 2)], claim, pair_of(low, high)) is None
        assert _problem([(change - 0.9e-9 * size, 2)], claim, pair_of(low, high)) is None
        assert _problem([(change + 1.2e-9 * size, 2)], claim, pair_of(low, high)) is not None
        assert _problem([(change - 1.2e-9 * size, 2)], claim, pair_of(low, high)) is not None
    for bound in (F(1, 2), F(1), F(3000)):
        size = max(1.0, float(bound))
        for beyond, right in ((0.9, True), (-0.9, True), (1.2, False), (-1.2, False)):
            told = _problem([(1, float(bound) + beyond * 1e-9 * size)], Claim("rise", bound), pair_of(0, 1))
            assert (told is None) is right


def test_goals_that_are_no_goals_are_told() -> None:
    for wrong in (ground_problem, range_problem):
        assert str(wrong(JACCARD, RISE, ["(check-sat)"])).startswith("a goal has other commands than a goal may have")
    goals = cell_goals(JACCARD, RISE, False)
    assert ground_problem(JACCARD, RISE, goals) is None
    assert ground_problem(JACCARD, Claim("rise", 2), goals) == "a goal has the bound 1, where the claim has 2"
    assert str(ground_problem(JACCARD, RISE, goals[-1:])).startswith("no goal describes the neighbours with a ")
    assert ground_problem(JACCARD, RISE, [], pairs=0) is None


def test_scores_in_a_range_are_said_by_a_goal_for_each_end() -> None:
    claim = Claim("replaced", 1)
    goals = range_goals(JACCARD, claim, False)
    assert range_problem(JACCARD, claim, goals) is None
    above, below = goals[0:4:2], goals[1:4:2]
    assert "is at least 0" in str(range_problem(JACCARD, claim, above))
    assert "is at most 1" in str(range_problem(JACCARD, claim, below))
    assert "is at most 2" in str(range_problem(JACCARD, Claim("replaced", 2), goals))
    assert range_problem(JACCARD, claim, [], pairs=0) is None


def scored(factor: float, constant: float = 0.0, shape: Any = JACCARD) -> ScoreClaims:
    def scorer(counts: Any, numbers: Any) -> float:
        return factor * float(shape.scores(counts)) + constant

    return score_claims("some", shape, 1, 1, 1, scorer)


def test_a_query_scores_by_its_formula_up_to_a_constant() -> None:
    assert query_problem(scored(1)) is None
    assert query_problem(scored(1, 7.0)) is None
    assert query_problem(scored(1 + 9e-7)) is None
    assert str(query_problem(scored(1 + 1.5e-6))).endswith("the formula's by another amount")
    assert str(query_problem(scored(2, shape=GINI))).startswith("the query's scores of [[")
    assert query_problem(score_claims("none", JACCARD, 1, 1, 1)) is None
    assert query_problem(ScoreClaims("vector", VALUE, (RISE,), lambda counts, numbers: 5)) is None
    large = Cells(cells("x"), cells("x")[0] * 1000)
    assert query_problem(scored(1 + 9e-7, shape=large)) is None
    fall = ScoreClaims("fall", JACCARD, (Claim(Change.FALL, 1),), scored(2).scorer)
    assert query_problem(fall) is not None
    assert query_problem(ScoreClaims("none", JACCARD, (), scored(2).scorer)) is None


@pytest.mark.parametrize("shape", [JACCARD, GINI], ids=["cells", "parts"])
def test_a_query_that_treats_equal_counts_of_30_or_more_apart_is_found(shape: Any) -> None:
    def problem(bonus: float) -> str | None:
        def scorer(counts: Any, numbers: Any) -> float:
            are_equal = counts.min() == counts.max() and counts.min() >= 30
            return float(shape.scores(counts)) + bonus * are_equal

        return query_problem(score_claims("ties", shape, 1, 1, 1, scorer))

    assert problem(0) is None
    assert problem(0.5) is not None


@pytest.mark.parametrize("bound", [1, 3])
def test_a_query_is_no_other_than_its_formula_however_large_a_public_number_is(bound: int) -> None:
    """What rounding takes off a score of a billion is still little beside the bound on its change."""
    (cell,), far = cells("x"), public("far", 2**30, 2**31)

    def problem(factor: float) -> str | None:
        def scorer(counts: Any, numbers: Any) -> float:
            return bound * factor * float(counts[0]) + float(numbers["far"])

        return query_problem(score_claims("some", Cells((cell,), bound * cell + far), bound, bound, bound, scorer))

    assert problem(1) is None
    assert problem(1.009) is None
    assert problem(1.011) is not None
    assert problem(-1) is not None


@pytest.mark.parametrize("under", [("high.den",), ("low.den",), ("bound.den",), ("high.den", "low.den")])
@pytest.mark.parametrize("size", [0.0, -1.0])
def test_scores_under_no_number_are_not_compared(under: tuple[str, ...], size: float) -> None:
    """Each denominator by itself, and two of one denominator where the goal denies scores over the same one."""
    goal = object.__new__(GroundGoal)
    goal.constants, goal.assumptions, goal.denied = [], [], _DENIALS[1]
    numbers = {"high.num": 6.0, "high.den": 2.0, "low.num": 3.0, "low.den": 4.0, "bound.num": 5.0, "bound.den": 2.0}
    goal.definitions = {name: str(numbers[name]) for name in NAMED}
    assert goal.compare({}) == (6 / 2 - 3 / 4, 5 / 2)
    goal.denied = _DENIALS[0]
    assert goal.compare({}) is None  # they are not over the same one
    goal.definitions["low.den"] = "2.0"
    assert goal.compare({}) == (6 / 2 - 3 / 2, 5 / 2)
    goal.denied = _DENIALS[1]
    goal.definitions |= {name: ["-", "0.0", str(-size)] for name in under}
    assert goal.compare({}) is None
