"""Formulas that change more on larger tables than on the smallest ones: no bound is guessed for them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpframework as dpf
from dpframework.formulas import (
    Cells,
    Parts,
    absolute,
    at_least,
    cells,
    derive,
    largest_over_classes,
    least,
    most,
    n,
    root,
    rows_of_part,
    sum_over_classes,
    x_log2_x,
)
from dpframework.formulas.largest_change_search import MOST_JOINING, find_refutation, tables_of, ways_to_join
from dpframework.formulas.sensitivity_claims_and_neighbours import Change, Claim
from dpframework.formulas.trial_tables_at_thresholds import tables_at_thresholds, tables_of_parts, thresholds
from dpframework.queries import FormulaScores

a, b = cells("a", "b")
DISTINCT = sum_over_classes(at_least(n, 1))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (rows_of_part + 5 * at_least(rows_of_part, 20), ": 6;"),
        (rows_of_part / 2 + largest_over_classes(most(n - 15, 0)), ": 3/2;"),
        (sum_over_classes(n * at_least(n, 5000)) / rows_of_part + rows_of_part, ": "),
        (most(rows_of_part - 12, 0) + least(rows_of_part, 12) / 4, ": 1;"),
        (most(sum_over_classes(n**2) / rows_of_part, 12), ": 1;"),
        (rows_of_part + at_least(rows_of_part, 10**6), ": 2;"),
        (DISTINCT * DISTINCT, ": 23;"),
        (sum_over_classes(1 + n) * largest_over_classes(n) / rows_of_part, ": 13;"),
    ],
)
def test_no_bound_is_guessed_for_parts_that_change_more_in_large_ones(body: Any, why: str) -> None:
    with pytest.raises(dpf.InputError, match=r"and more on a larger table: .*declare the claims") as refused:
        derive(Parts(body))
    assert why in str(refused.value)


@pytest.mark.parametrize(
    "body",
    [
        1 / (1 + a * a) + 10 / (1 + (a - 5000) ** 2),
        least(a, 1) + 100 / (1 + (a - 10**6) ** 2),
        least(a + b, 1) + 100 / (1 + (a - 2 * b - 10**5) ** 2),
        least(a, 1) + 3 * root(absolute(10**6 - a)),
    ],
    ids=str,
)
def test_no_bound_is_guessed_for_cells_with_a_peak_at_many_rows(body: Any) -> None:
    """No comparison changes there, but a difference is 0."""
    with pytest.raises(dpf.InputError, match="jumps at a table of many rows"):
        derive(Cells((a, b), body))


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize(
    ("body", "change"),
    [
        (a + 7 * at_least(a + b, 3000), 8),
        (a + 7 * at_least(a + b, 30_000), 8),
        (a + 7 * at_least(a, 777) * at_least(b, 3333), 8),
        (a + at_least(a * b, 10**6), 2),
    ],
)
def test_no_bound_is_guessed_for_cells_that_jump_at_many_rows(body: Any, change: int, group: int) -> None:
    with pytest.raises(dpf.InputError, match="jumps at a table of many rows") as refused:
        derive(Cells((a, b), body), group)
    assert f": {change + group - 1};" in str(refused.value)


def test_a_largest_change_that_is_no_fraction_is_rounded_up() -> None:
    for body, changes in (
        (a / root((a + b) * (a + 1)), (0.5**0.5, 0.207107)),
        (least(x_log2_x(a), 1000), (8.566812, 0)),  # from 139 to 140 rows
        (root(a) - root(b), (1, 1)),
    ):
        for found, change in zip(derive(Cells((a, b), body)), changes, strict=False):
            bound = found.claim.bound.constant
            assert bound is not None
            assert found.nearest.change <= bound <= float(found.nearest.change) + 2e-6
            assert float(bound) == pytest.approx(change, abs=3e-6)


def test_a_jump_at_fewer_rows_is_the_bound() -> None:
    spike = at_least(a, 137) * at_least(137, a) * at_least(b, 58) * at_least(58, b)
    rise, fall, replaced = derive(Cells((a, b), least(a, 1) + 3 * spike))
    assert [found.claim.bound.constant for found in (rise, fall, replaced)] == [3, 3, 3]
    # A quotient jumps where its denominator is 0.
    quotient = derive(Cells((a,), 1 / (a - 40)))
    assert [found.claim.bound.constant for found in quotient] == [1, Fraction(1, 2), 1]


def test_bounds_that_hold_are_found_as_before() -> None:
    for body, bounds in (
        (sum_over_classes(n**2) / rows_of_part, ["1", "1 - 2 / R", "2 - 2 / R"]),
        (least(rows_of_part, 12), ["1", "0", "1"]),
        (DISTINCT / rows_of_part, ["1", "1/2", "3/2"]),
    ):
        assert [str(found.claim.bound) for found in derive(Parts(body))] == bounds
    ratio = derive(Cells((a, b), a / most(a + b, 7)))
    assert [found.claim.bound.constant for found in ratio] == [Fraction(1, 7), Fraction(1, 8), Fraction(1, 7)]


def test_a_claim_is_refuted_by_a_part_of_many_rows_or_classes() -> None:
    stepped = Parts(rows_of_part + 5 * at_least(rows_of_part, 20))
    found = find_refutation(stepped, Claim(Change.RISE, 1))
    assert found is not None
    assert found.change == 6
    assert find_refutation(stepped, Claim(Change.RISE, 6)) is None
    squared = find_refutation(Parts(DISTINCT * DISTINCT), Claim(Change.REPLACED, 5))
    assert squared is not None
    assert squared.change > 5


def test_thresholds_are_found_wherever_they_are() -> None:
    assert thresholds(lambda counts: counts > 3) == [4]
    assert thresholds(lambda counts: (counts >= 777) & (counts < 70_000)) == [777, 70_000]
    assert thresholds(lambda counts: np.ones(len(counts), dtype=bool)) == []
    table = tables_at_thresholds(Cells((a, b), at_least(a, 9) * at_least(50, b)))
    assert {(8, 50), (8, 51), (9, 50)} <= {tuple(row) for row in table.tolist()}
    few, many = tables_of_parts(Parts(at_least(rows_of_part, 9)))
    assert 8 in few[:, 0]
    assert (many > 0).sum(axis=1).max() == 12


class _Capped(FormulaScores):
    """A score of one count that is at most 5, or of three such counts."""

    name = "capped"

    def __init__(self, number: int) -> None:
        names = cells(*(f"c{k}" for k in range(number)))
        self.formula = Cells(names, least(sum(names[1:], names[0]), 5))


def test_units_of_very_many_rows_are_charged_for_each_row_where_not_all_ways_can_be_tried() -> None:
    for group, size in ((1, 1), (1, 3), (3, 2)):
        assert ways_to_join(group, size) == len(tables_of(group, size))
    assert ways_to_join(1000, 1) <= MOST_JOINING < ways_to_join(1000, 3)
    for number, rows in ((1, 20), (1, 1000), (3, 20)):
        assert [one.add_or_remove_one for one in _Capped(number).for_rows(rows)] == [5]
    assert not _Capped(3).for_rows(1000)
