"""Sums, distances from bounds, and scores of quantiles: declared sensitivities on every small table, and by search."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts.privacy_losses import Relation
from dpframework.queries import BoundDistances, BoundedSum, JointHistogram, Norm, QuantileScores
from dpframework.verify.conformance_suites import QueryConformance

AGE = dpf.Numeric("age", 0, 4, bins=4)
GAPS = dpf.Numeric("age", 0, 4, bins=4, missing=True)
DEBT = dpf.Numeric("debt", -3, 1.5, cuts=[-1, 0.3])
GAIN = dpf.Numeric("gain", 2, 5, bins=2, missing=True)
LOSS = dpf.Numeric("loss", -5, -2, bins=2)

QUERIES: dict[str, dpf.Query] = {
    "sum": BoundedSum(AGE),
    "sum with missing": BoundedSum(GAPS),
    "sum of both signs": BoundedSum(DEBT),
    "sum far from 0": BoundedSum(GAIN),
    "sum below 0": BoundedSum(LOSS),
    "sum within tighter bounds": BoundedSum(AGE, 1, 2.5),
    "centred sum": BoundedSum(AGE, centre=2),
    "centred sum with missing": BoundedSum(GAIN, centre=3.5),
    "distances": BoundDistances(AGE),
    "distances with missing": BoundDistances(GAPS),
    "distances within tighter bounds": BoundDistances(DEBT, -1, 1),
    "median": QuantileScores(AGE),
    "median with missing": QuantileScores(GAPS),
    "quantile 0.75": QuantileScores(AGE, quantile="0.75"),
    "quantile 0.25": QuantileScores(GAPS, quantile="0.25"),
}
NOWHERE = float("nan")


def schema_of(query: dpf.Query) -> dpf.Schema:
    return dpf.Schema([query.attribute])


def values_of(attribute: dpf.Numeric) -> list[float]:
    """Both bounds, one value between, and a missing one where there may be."""
    middle = (attribute.lower + attribute.upper) / 2
    return [attribute.lower, middle, attribute.upper, *([NOWHERE] if attribute.missing else [])]


def answered(query: dpf.Query, values: tuple[float, ...]) -> np.ndarray:
    attribute = query.attribute
    codes = [
        attribute.missing_code if np.isnan(x) else np.searchsorted(attribute.interior_cuts, x, "right") for x in values
    ]
    table = dpf.Table.from_codes(schema_of(query), np.array([codes], dtype=int), {attribute.name: np.array(values)})
    engine = dpf.InMemory()
    return np.atleast_1d(query.evaluate(engine, engine.load(table)))


def pairs(query: dpf.Query, relation: Relation, rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    kinds = values_of(query.attribute)
    known: dict[tuple[int, ...], np.ndarray] = {}

    def answer(shared: tuple[int, ...], kind: int) -> np.ndarray:
        rows = tuple(sorted((*shared, kind)))
        if rows not in known:
            known[rows] = answered(query, tuple(kinds[k] for k in rows))
        return known[rows]

    for size in range(rows + 1):
        for shared in itertools.combinations_with_replacement(range(len(kinds)), size):
            of_one_more = [answer(shared, kind) for kind in range(len(kinds))]
            if relation is Relation.ADD_OR_REMOVE_ONE:
                before = answered(query, tuple(kinds[k] for k in shared))
                yield from ((before, after) for after in of_one_more)
            else:
                yield from itertools.permutations(of_one_more, 2)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("name", QUERIES)
def test_declared_sensitivities_are_the_largest_changes(name: str, relation: Relation) -> None:
    """Change, rise, fall and, of scores, spread: no pair of small tables exceeds them, and some pair attains each."""
    query = QUERIES[name]
    changes = [after - before for before, after in pairs(query, relation, 4)]
    for declared in query.sensitivities:
        claimed = {"change": declared.change.under(relation)}
        if relation is Relation.ADD_OR_REMOVE_ONE:
            claimed |= {"rise": declared.rise, "fall": declared.fall}
        if isinstance(query, QuantileScores):
            claimed["spread"] = declared.spread.under(relation)
        parts = {
            "change": changes,
            "rise": [change.clip(0) for change in changes],
            "fall": [change.clip(None, 0) for change in changes],
        }
        for what, bound in claimed.items():
            if what == "spread":
                seen = max(np.ptp(change) for change in changes)
            else:
                seen = max(size(part, declared.norm) for part in parts[what])
            assert bound is not None
            assert seen == pytest.approx(float(bound), abs=1e-9), f"{what} in {declared.norm}"


def size(change: np.ndarray, norm: Norm) -> float:
    lengths = np.abs(change)
    return float({Norm.L1: lengths.sum(), Norm.SQUARED_L2: (lengths**2).sum(), Norm.LINF: lengths.max()}[norm])


class TestQueries(QueryConformance):
    queries: ClassVar = {name: (query, schema_of(query), {}) for name, query in QUERIES.items()}
    pairs = 300
    min_tightness = 0.7  # which tables Hypothesis comes upon depends on its version: some find 0.71 of a sum's change


def test_a_sum_of_whole_numbers_is_exact() -> None:
    ages = tuple(float(age) for age in range(5)) * 200
    assert answered(BoundedSum(AGE), ages) == [2000.0]
    assert answered(BoundedSum(GAPS), (*ages, NOWHERE)) == [2000.0]
    assert answered(BoundedSum(AGE, 1, 3), ages) == [(1 + 1 + 2 + 3 + 3) * 200]


def test_distances_from_bounds_hold_count_and_mean() -> None:
    low, high = answered(BoundDistances(GAPS), (1.0, 4.0, NOWHERE, 3.5))
    assert low + high == 3
    assert low / (low + high) * 4 == pytest.approx((1 + 4 + 3.5) / 3, abs=1e-8)


def test_a_score_is_the_distance_in_rows_from_being_a_quantile() -> None:
    rows = (0.0, 1.0, 1.0, 1.0, 4.0)
    assert QuantileScores(AGE).candidates() == (0, 1, 2, 3, 4)
    assert answered(QuantileScores(AGE), rows).tolist() == [-1.5, 0, -1.5, -1.5, -1.5]
    # the largest four in five: four rows are at or below 1 and all below 4, so that all from 1 on are quantiles
    assert answered(QuantileScores(AGE, quantile="0.8"), rows).tolist() == [-3, 0, 0, 0, 0]
    assert answered(QuantileScores(AGE), ()).tolist() == [0] * 5


@pytest.mark.parametrize(
    ("query", "points"),
    [
        (QuantileScores(dpf.Numeric("x", 0, 4096, bins=2)), 4097),
        (QuantileScores(dpf.Numeric("x", 0, 5000, bins=2)), 4097),
        (QuantileScores(dpf.Numeric("x", 0, 0.5, bins=2)), 4097),
        (QuantileScores(dpf.Numeric("x", 0, 5000, bins=2), 100, 103), 4),
    ],
)
def test_a_grid_has_the_whole_numbers_or_many_steps(query: QuantileScores, points: int) -> None:
    grid = query.candidates()
    assert len(grid) == query.answer_length == points
    assert (grid[0], grid[-1]) == (query.lower, query.upper)


def test_the_best_score_is_always_0() -> None:
    """So that how far a released point may be from a quantile does not depend on the rows."""
    rng = np.random.default_rng(5)
    for quantile in ("0.05", "0.5", "0.731"):
        query = QuantileScores(dpf.Numeric("age", 0, 40, bins=4), quantile=quantile)
        for rows in range(12):
            assert answered(query, tuple(rng.integers(0, 41, rows).astype(float))).max() == 0


def test_bins_of_its_own_are_counted_from_raw_values() -> None:
    schema = dpf.Schema([GAPS, dpf.Boolean("ill")])
    values = np.array([0, 0.5, 1.9, 2.0, 4, np.nan])
    table = dpf.Table.from_codes(schema, [[0, 0, 1, 2, 3, 4], [0, 1, 0, 1, 0, 1]], {"age": values})
    engine = dpf.InMemory()
    coarse = dpf.Numeric("age", 0, 4, cuts=[0.5, 2], missing=True)
    found = JointHistogram([coarse, schema["ill"]]).evaluate(engine, engine.load(table))
    assert found.tolist() == [[1, 0], [1, 1], [1, 1], [0, 1]]
    assert JointHistogram([GAPS]).evaluate(engine, engine.load(table)).tolist() == [2, 1, 1, 1, 1]


X = dpf.Numeric("x", -2, 8, bins=2)


@pytest.mark.parametrize(
    ("lower", "upper", "points"),
    [(-2, 8, 11), (-1.5, 7.5, 4097), (-2, 7.5, 4097), (-1.5, 8, 4097), (0, 1, 2)],
)
def test_points_of_a_grid_are_equally_far_apart(lower: float, upper: float, points: int) -> None:
    query = QuantileScores(X, lower, upper)
    grid = query.candidates()
    assert len(grid) == points
    assert query.step == (upper - lower) / (points - 1)
    assert np.diff(grid) == pytest.approx(query.step, rel=1e-9)


def test_each_value_counts_as_the_nearest_point() -> None:
    rows = (-2.0, -1.51, -1.5, -1.49, -0.5, 0.49, 7.49, 7.5, 8.0)
    nearest = [-2, -2, -1, -1, 0, 0, 7, 8, 8]
    of_grid = QuantileScores(X)
    table = dpf.Table.from_codes(dpf.Schema([X]), [[0] * 6 + [1] * 3], {"x": np.array(rows)})
    engine = dpf.InMemory()
    counts = engine.sum(engine.load(table), of_grid.count)
    assert counts.tolist() == [nearest.count(point) for point in of_grid.candidates()]
    within = QuantileScores(X, -1, 2)  # what lies beyond its bounds counts as they do
    assert engine.sum(engine.load(table), within.count).tolist() == [4, 2, 0, 3]


def test_scores_end_at_the_most_rows_that_a_table_has_and_their_rounding_is_one_step_there() -> None:
    query = QuantileScores(AGE, quantile="0.3")
    counts = np.array([2**34, 0, 0, 0, 2**31])
    assert query.answer(counts).min() == -(2.0**31)
    assert query.rounding == Fraction(math.ulp(2.0**31))
    many = np.array([1_234_567_891, 3, 0, 7, 5])
    aim = Fraction(3, 10) * int(many.sum())
    upto = np.cumsum(many).tolist()
    for score, count, end in zip(query.answer(many).tolist(), many.tolist(), upto, strict=True):
        exact = -max(Fraction(0), end - count - aim, aim - end)
        assert abs(Fraction(score) - exact) <= query.rounding


def test_quantiles_have_six_decimals() -> None:
    for value in ("0.000001", "0.999999", Fraction(1, 10**6), Fraction(1, 3), 0.25):
        assert QuantileScores(AGE, quantile=value).quantile == Fraction(value)
    assert QuantileScores(AGE).quantile == Fraction(1, 2)
    for value in (Fraction(1, 10**6 + 1), "0.0000001"):
        with pytest.raises(dpf.InputError, match=f"^the quantile {value} has more than six decimals; round it$"):
            QuantileScores(AGE, quantile=value)
    for value in (0, 1, "1.5"):
        with pytest.raises(
            dpf.InputError, match=f"^a quantile is a number between 0 and 1, not {value}; the median is 0.5$"
        ):
            QuantileScores(AGE, quantile=value)


@pytest.mark.parametrize(
    ("lower", "upper", "centre", "step"),
    [
        (0, 4, 0, 2**-28),
        (-3, 1.5, 0, 2**-28),
        (-1, 1.5, 0, 2**-29),
        (0, 2**30, 0, 1),
        (0, 2**30 + 1, 0, 2),
        (2, 5, 3.5, 2**-29),
    ],
)
def test_a_step_is_the_power_of_two_above_a_2_30th_of_the_largest_difference(
    lower: float, upper: float, centre: float, step: float
) -> None:
    query = BoundedSum(dpf.Numeric("x", lower, upper, bins=2), centre=centre)
    assert query.step == step
    largest = Fraction(max(abs(lower - centre), abs(upper - centre)))
    assert largest / 2**30 <= step < largest / 2**29


def test_sums_are_of_rounded_values_and_off_by_half_a_step_each() -> None:
    values = np.random.default_rng(1).uniform(-3, 1.5, 500)
    query = BoundedSum(DEBT, centre=0.25)
    (found,) = answered(query, tuple(values))
    exact = sum((Fraction(value) - Fraction(1, 4) for value in values.tolist()), Fraction(0))
    assert (Fraction(float(found)) / Fraction(query.step)).denominator == 1
    assert abs(Fraction(float(found)) - exact) <= 250 * Fraction(query.step)
    low, high = answered(BoundDistances(DEBT), tuple(values))
    widths = sum(((Fraction(value) + 3) / Fraction(9, 2) for value in values.tolist()), Fraction(0))
    assert abs(Fraction(float(low)) - widths) <= Fraction(251, 2**30)
    assert low + high == 500


def test_what_is_asked_is_told_in_words() -> None:
    assert BoundedSum(AGE).text == "sum of 'age' within [0, 4]"
    assert BoundedSum(AGE, 1, 2.5, centre=2).text == "sum of 'age' within [1, 2.5], less 2"
    assert BoundDistances(AGE).text == "sum of 'age', up from 0 and down from 4"
    assert QuantileScores(AGE, quantile="0.3").text == "distances in rows from the quantile 0.3 of 'age' within [0, 4]"
    assert [declared.source for declared in BoundedSum(GAIN, centre=3.5).sensitivities] == [
        "a row adds between -1.5 and 1.5"
    ] * 3
    for query, length, whole in ((BoundedSum(AGE), 1, False), (BoundDistances(AGE), 2, False)):
        assert (query.answer_length, query.integer, query.attributes) == (length, whole, ("age",))
        assert (query.rounding, query.gathers, query.histograms, query.for_rows(3)) == (0, False, (), ())
    assert BoundedSum(AGE) == BoundedSum(AGE, 0, 4, centre=0.0)


def test_bounds_may_be_those_of_the_schema_and_not_beyond() -> None:
    assert (BoundedSum(AGE, 0, 4).lower, BoundedSum(AGE, 0, 4).upper) == (0.0, 4.0)
    for lower, upper in ((0, 0), (3, 2), (-0.5, 3), (1, 4.5), (4, 4)):
        with pytest.raises(
            dpf.InputError, match=r"of 'age' must be increasing, and within the schema's bounds, \[0, 4\]"
        ):
            BoundedSum(AGE, lower, upper)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: BoundedSum(dpf.Boolean("ill")), "attribute 'ill' is boolean; a numeric one is needed"),
        (lambda: BoundedSum(AGE, 2, 2), r"bounds \[2, 2\] of 'age' must be increasing"),
        (lambda: BoundDistances(AGE, -1, 2), r"within the schema's bounds, \[0, 4\]"),
        (lambda: QuantileScores(AGE, 1, float("inf")), "a bound must be a finite number"),
        (lambda: QuantileScores(AGE, quantile=1), "between 0 and 1, not 1"),
        (lambda: QuantileScores(AGE, quantile="0.1234567"), "more than six decimals; round it"),
    ],
)
def test_what_cannot_be_asked_is_refused(make, said: str) -> None:
    with pytest.raises(dpf.InputError, match=said):
        make()
