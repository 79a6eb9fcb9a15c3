"""Searches on small tables, beside plain loops over all of them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scored_formulas import FLOORED, GAIN, GINI, JACCARD, LIFT, MATCH, MAX, SURPLUS, THRESHOLD, TWOING, VALUE

from dpframework.formulas import Cells, Claim, Parts, cells, least, most, n, public, rows, sum_over_classes
from dpframework.formulas.largest_change_search import (
    CELL_ROWS,
    CLASSES,
    PART_ROWS,
    cell_change,
    cell_gaps,
    climb,
    describe_search,
    find_refutation,
    in_range,
    nearest_neighbours,
    part_changes,
    search_change,
    settings,
    tables_of,
)
from dpframework.formulas.sensitivity_claims_and_neighbours import Change

a, b, c = cells("a", "b", "c")
CHANGES = (Change.RISE, Change.FALL, Change.REPLACED)


def all_tables(most_rows: int, number: int) -> list[tuple[int, ...]]:
    return [one for one in itertools.product(range(most_rows + 1), repeat=number) if sum(one) <= most_rows]


@pytest.mark.parametrize(("most_rows", "number"), [(0, 1), (3, 1), (1, 2), (4, 3), (2, 5)])
def test_all_tables_are_listed_once_in_order(most_rows: int, number: int) -> None:
    assert [*map(tuple, tables_of(most_rows, number).tolist())] == all_tables(most_rows, number)


def with_row(table: tuple[int, ...], place: int) -> tuple[int, ...]:
    return tuple(count + (k == place) for k, count in enumerate(table))


def largest_of_parts(shape: Parts, change: Change, most_rows: int) -> float:
    """The largest change by one row among tables of at most so many rows, the larger of both."""
    values = {table: float(shape.of_parts(np.array(table))) for table in all_tables(PART_ROWS, CLASSES)}
    rise = {t: max(values[with_row(t, k)] for k in range(CLASSES)) - values[t] for t in values if sum(t) < PART_ROWS}
    fall = {t: values[t] - min(values[with_row(t, k)] for k in range(CLASSES)) for t in rise}
    few = [table for table in rise if sum(table) < most_rows]
    if change is Change.RISE:
        return max(rise[table] for table in few)
    if change is Change.FALL:
        return max(fall[table] for table in few)
    together = max(rise[table] + fall[table] for table in few)  # of one part, from one class to another
    by_size = [[max(gap[t] for t in few if sum(t) == size) for size in range(most_rows)] for gap in (rise, fall)]
    apart = (by_size[0][k] + by_size[1][j] for k in range(most_rows) for j in range(most_rows - k))
    return max(together, *apart)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("shape", [GINI, MAX, GAIN, Parts(sum_over_classes(n**2))], ids=str)
def test_the_largest_change_of_parts_is_that_of_all_tables(shape: Parts, change: Change) -> None:
    found = part_changes(shape, change)
    assert len(found) == PART_ROWS
    for size, pair in enumerate(found, start=1):
        assert pair is not None
        low, high = np.array(pair.low), np.array(pair.high)
        assert float(pair.change) == pytest.approx(float(shape.scores(high) - shape.scores(low)), abs=1e-12)
        assert float(pair.change) == pytest.approx(largest_of_parts(shape, change, size), abs=1e-9)
        assert max(low.sum(), high.sum()) <= size
        more, moved = high.sum() - low.sum(), np.abs(high - low).sum()
        assert (more, moved) == {Change.RISE: (1, 1), Change.FALL: (-1, 1), Change.REPLACED: (0, moved)}[change]
        assert moved <= 2
        assert isinstance(pair.change, float if shape is GAIN else Fraction)


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("shape", [JACCARD, SURPLUS, MATCH, THRESHOLD, FLOORED], ids=str)
def test_the_largest_change_of_cells_is_that_of_all_tables(shape: Cells, change: Change, group: int) -> None:
    number = len(shape.cells)
    score = {table: float(shape.scores(np.array(table))) for table in all_tables(3 + group, number)}
    best: dict[tuple[int, ...], float] = {}
    for table in all_tables(3, number):
        after = [score[tuple(np.add(table, more))] for more in all_tables(group, number)]
        rise, fall = max(after) - score[table], score[table] - min(after)
        best[table] = {Change.RISE: rise, Change.FALL: fall, Change.REPLACED: max(after) - min(after)}[change]
    shared = tables_of(3, number)
    gaps, low, high = cell_gaps(shape, change, shared, group)
    assert gaps.tolist() == pytest.approx([best[tuple(table)] for table in shared.tolist()])
    assert (shape.scores(high) - shape.scores(low)).tolist() == pytest.approx(gaps.tolist())
    found = cell_change(shape, change, shared, group)
    assert float(found.change) == pytest.approx(max(best.values()))
    least_rows = min(sum(table) for table, gap in best.items() if gap >= max(best.values()) - 1e-9)
    rows_shared = np.minimum(found.low, found.high).sum()
    assert least_rows <= rows_shared + group * (change is Change.REPLACED)
    assert rows_shared <= least_rows + group * (change is Change.REPLACED)


def test_a_climb_ends_where_no_step_leads_further() -> None:
    """The product of two hills, of 30 rows in one cell and 70 in the other; a limit on the rows holds."""
    hill = Cells((a, b), most(0, 40 - most(a - 30, 30 - a)) * most(0, 80 - most(b - 70, 70 - b)))
    for start in ((0, 0), (60, 3), (29, 120)):
        end = climb(hill, Change.FALL, np.array(start))
        assert cell_gaps(hill, Change.FALL, end[None])[0].tolist() == [
            80
        ]  # a row more in the first, at the second's top
        assert end[1] == 70
        gaps = cell_gaps(hill, Change.FALL, end[None])[0][0]
        steps = [np.add(end, step) for step in itertools.product((-1, 0, 1), repeat=2)]
        assert all(cell_gaps(hill, Change.FALL, step[None])[0][0] <= gaps for step in steps)
    growing = Cells((a, b), a * b)
    end = climb(growing, Change.RISE, np.array([1, 1]), most=500)
    assert end.sum() <= 500
    assert end.max() == 500
    assert climb(growing, Change.RISE, np.array([3, 0]), most=-1).tolist() == [3, 0]


@pytest.mark.parametrize(
    ("shape", "change", "group", "largest"),
    [
        (JACCARD, Change.RISE, 1, 1),
        (JACCARD, Change.FALL, 1, Fraction(1, 2)),
        (JACCARD, Change.FALL, 2, Fraction(2, 3)),
        (FLOORED, Change.RISE, 1, Fraction(2, 50)),
        (SURPLUS, Change.REPLACED, 1, 2),
        (SURPLUS, Change.RISE, 3, 3),
        (Cells((a, b), least(a, 700) - least(b, 900)), Change.RISE, 1, 1),
        (Cells((a,), most(a - 700, 0)), Change.RISE, 1, 1),  # no small table shows it
    ],
    ids=str,
)
def test_a_search_finds_the_largest_change(shape: Cells, change: Change, group: int, largest: Any) -> None:
    found = search_change(shape, change, group)
    assert found.change == largest
    claim = Claim(change, largest, group)
    assert find_refutation(shape, claim) is None
    wrong = find_refutation(shape, Claim(change, Fraction(largest) * Fraction(999, 1000), group))
    assert wrong is not None
    assert wrong.change == largest
    assert nearest_neighbours(shape, claim) == found


def test_a_wrong_claim_about_parts_is_refuted_with_few_rows() -> None:
    found = find_refutation(GINI, Claim(Change.FALL, 1 - 3 / rows))
    assert found is not None
    assert np.array(found.low).sum() == 3
    assert find_refutation(GINI, Claim(Change.FALL, 1 - 2 / rows)) is None
    assert find_refutation(GINI, Claim(Change.RISE, Fraction(99, 100))).high == ((1, 0, 0),)  # type: ignore[union-attr]
    assert find_refutation(GINI, Claim(Change.RISE, Fraction(1, 100), group=2)) is None
    assert nearest_neighbours(GINI, Claim(Change.RISE, 1)) == part_changes(GINI, Change.RISE)[-1]
    assert nearest_neighbours(GINI, Claim(Change.RISE, 1, group=2)) is None
    assert nearest_neighbours(TWOING, Claim(Change.RISE, 1)) is None


def test_a_score_that_grows_is_refuted_by_the_fewest_rows_that_a_climb_finds() -> None:
    found = find_refutation(LIFT, Claim(Change.RISE, 40))
    assert found is not None
    assert float(found.change) > 40
    assert sum(found.low) < 2_000
    assert find_refutation(LIFT, Claim(Change.RISE, rows)) is None  # a bound that grows is not compared


def test_settings_are_the_ends_and_the_middle_of_each_range_that_fit() -> None:
    low, high = public("low", 0, 4), public("high", 2, 6)
    shape = Cells((a,), low * a + high, within=((low, high),))
    found = [numbers for _, numbers in settings(shape)]
    assert found == [{"low": Fraction(x), "high": Fraction(y)} for x in (0, 2, 4) for y in (2, 4, 6) if x <= y]
    assert [float(one.scores([3])) for one, _ in settings(shape)] == [3 * q["low"] + q["high"] for q in found]
    assert [numbers for _, numbers in settings(JACCARD)] == [{}]
    fixed = public("fixed", 3, 3)
    assert [numbers for _, numbers in settings(Cells((a,), fixed * a))] == [{"fixed": 3}]


@pytest.mark.parametrize(
    ("shape", "bound", "holds"),
    [
        (JACCARD, 1, True),
        (JACCARD, Fraction(99, 100), False),
        (SURPLUS, 5, False),  # it may be negative
        (THRESHOLD, 2, True),
        (THRESHOLD, Fraction(3, 2), False),
        (Cells((a,), a), CELL_ROWS, True),
        (Cells((a,), a), CELL_ROWS - 1, False),
        (JACCARD, rows, False),
        (Cells((a,), public("p", 0, 1) * a / a), 1, False),
    ],
    ids=str,
)
def test_scores_are_in_a_range_if_those_of_all_small_tables_are(shape: Cells, bound: Any, holds: bool) -> None:
    assert in_range(shape, Claim(Change.RISE, bound)) is holds


def test_what_was_searched_is_said() -> None:
    assert describe_search(GINI) == "searched up to 9 rows"
    assert describe_search(JACCARD) == "searched up to 6 rows, and larger tables by climbing"
    assert describe_search(VALUE) == "not tried"
    assert math.comb(PART_ROWS + CLASSES, CLASSES) == len(tables_of(PART_ROWS, CLASSES))
