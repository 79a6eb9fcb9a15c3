"""Sums, distances from bounds, and scores of quantiles: declared sensitivities on every small table, and by search."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts.privacy import Relation
from dpframework.queries import BoundDistances, BoundedSum, JointHistogram, Norm, QuantileScores
from dpframework.verify.conformance import QueryConformance

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
    changes = [after - before for before, after in pairs(query, relation, 5)]
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
    pairs = 600
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


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: BoundedSum(dpf.Boolean("ill")), "attribute 'ill' is boolean; a numeric one is needed"),
        (lambda: BoundedSum(AGE, 2, 2), r"bounds \[2, 2\] of 'age' must be increasing"),
        (lambda: BoundDistances(AGE, -1, 2), r"within those of the schema, \[0, 4\]"),
        (lambda: QuantileScores(AGE, 1, float("inf")), "a bound must be a finite number"),
        (lambda: QuantileScores(AGE, quantile=1), "between 0 and 1, not 1"),
        (lambda: QuantileScores(AGE, quantile="0.1234567"), "more than six decimals; round it"),
    ],
)
def test_what_cannot_be_asked_is_refused(make, said: str) -> None:
    with pytest.raises(dpf.InputError, match=said):
        make()
