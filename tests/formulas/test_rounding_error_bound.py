"""The error of a computed score: each rule worked out by hand, in unit roundoffs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from dpframework.facts.errors import InputError
from dpframework.formulas import (
    Cells,
    Parts,
    at_least,
    cells,
    largest_over_classes,
    least,
    most,
    n,
    root,
    rounding_of,
    rows_of_part,
    sum_over_classes,
    x_log2_x,
)

a, b = cells("a", "b")
UNIT = Fraction(1, 2**53) * Fraction(1001, 1000)
THIRD = Fraction(1, 3)

# For tables of 9 rows, so that a count is at most 10, and a score that a row moves by `change`: the error in units.
# Where it is a share of the score, the score is at most `10 * change` above that of no rows, or what its terms allow.
OF_CELLS = [
    (a + b, 1, 0),  # whole numbers
    (a - b, 1, 30),  # of both signs: -b is off by 10 as any product, and the sum of at most 20 is rounded
    (-a - b, 1, 2 * 10),  # of one sign, though products: a share of 1, and of 1 for the sum
    (-a - b, 5, 2 * 20),
    (a + Fraction(1, 2), 1, Fraction(21, 2)),  # no whole number: the sum is rounded
    (a * b, 1, 10),
    (a * b, 20, 100),
    (a / b, 1, 10),
    (a / b, Fraction(1, 2), 5),
    (a / (a + b), 1, 1),  # at most 1, since it is one of the terms of its denominator
    ((a + b) / (a + b), 1, 1),
    (a * b / (a + b), 1, 2 * 10),
    (a * b / (a + b), 20, 2 * 10),
    (a * a / (a + a + b), 20, 2 * Fraction(10)),
    ((a + a) / b, 20, 20),
    (a / 2, 20, 5),
    (a / THIRD, 20, 2 * 30),  # the third is off, too
    (a * THIRD, 20, 2 * Fraction(10, 3)),
    (a * Fraction(1, 2), 20, 5),
    (3 + a / 2, Fraction(1, 4), 2 * Fraction(11, 2)),  # above the score of no rows, 3
    (least(a, b / 2), 20, 10),
    (most(a / 3, b / 3) / 2, 20, 2 * Fraction(5, 3)),
    (least(a, -b), 1, 10),
    (most(a, -b), 1, 10),
    ((a - b) / (a + b), 1, 2 * 30 + 20),
    ((a - b) / THIRD, 1, 2 * (30 + Fraction(60, 3)) * 3 + 60),
    (a / (a - b), 1, 2 * 10 * 30 + 10),  # a is a term of the denominator, which may be less
    ((a - b) * a, 1, 30 * 10 + 200),
    ((a - b) * (a - b), 1, 2 * 30 * 20 + Fraction(30 * 30, 2**53) + 400),
    ((a - b) + (a - b), 1, 2 * 30 + 40),
    (at_least(a, b), 1, 0),
    (at_least(2 * a, b), 1, 0),  # a product of whole numbers is one
    (at_least(a * b - 7, a), 1, 0),
    (at_least(2**49 * a, b), 1, 0),
    (at_least(2**50 * a, b), 1, 2**53),  # above 2**53
    (at_least(a, THIRD) + b, 1, 2**53 + 11),
    (least(a, Fraction(1, 2)) + b, 1, 10),  # halves and whole numbers together are rounded
    (most(a, Fraction(1, 2)) + b, 1, Fraction(21, 2)),
    (at_least(a, 3) * a, 1, 10),
    (at_least(a / b, 3), 1, 2**53),
    (root(a), 1, 12 * 5),  # 10 of the library, and log(10) / 2
    (root(a * a * a, 3), 20, (Fraction(2, 3) + 10 + 3) * 11),
    (root(a / b), Fraction(1, 5), (Fraction(1, 2) + 12) * 2),
    (x_log2_x(a), 20, 10 * 40),
    (x_log2_x(a), 1, 10 * 10),
]


@pytest.mark.parametrize(("body", "change", "units"), OF_CELLS, ids=lambda given: str(given))
def test_the_rounding_of_each_operation(body: Any, change: Any, units: Any) -> None:
    assert rounding_of(Cells((a, b), body), Fraction(change), 9) == units * UNIT


# For 2 parts of 3 classes: the sum of the parts is rounded once, by a share of the score.
OF_PARTS = [
    (rows_of_part, 1, 10),
    (sum_over_classes(n), 1, (2 + 1) * 10),
    (sum_over_classes(n * n), 100, (1 + 2 + 1) * 600),
    (sum_over_classes(n * n) / rows_of_part, 1, (1 + 2 + 1 + 1) * 10),
    (largest_over_classes(n), 1, 10),
    (largest_over_classes(n / 2), 1, 2 * 10),
    (largest_over_classes(n - rows_of_part), 1, 2 * 30 + 10),
    (largest_over_classes(-n), 1, 2 * 10 + 10),
    (sum_over_classes(n - rows_of_part), 1, 2 * (3 * 30 + 9 * 20) + 10),
    (sum_over_classes(-n), 1, (1 + 2 + 1) * 10),
]


@pytest.mark.parametrize(("body", "change", "units"), OF_PARTS, ids=lambda given: str(given))
def test_the_rounding_of_sums_over_parts_and_classes(body: Any, change: Any, units: Any) -> None:
    assert rounding_of(Parts(body), Fraction(change), 9, classes=3, parts=2) == units * UNIT


def test_the_rounding_of_one_part_of_two_classes_is_the_default() -> None:
    gini = Parts(sum_over_classes(n * n) / rows_of_part)
    assert rounding_of(gini, Fraction(1), 9) == rounding_of(gini, Fraction(1), 9, 2, 1) == (1 + 1 + 1) * 10 * UNIT


def test_logarithms_and_numbers_of_rows_that_are_powers_of_two() -> None:
    of_part = Parts(x_log2_x(rows_of_part))
    for row_bound, largest in ((14, 15 * 4), (15, 16 * 5), (16, 17 * 5)):
        assert rounding_of(of_part, Fraction(100), row_bound) == 10 * largest * UNIT
    assert rounding_of(Cells((a, b), a / b), Fraction(1), None) == (2**31 + 1) * UNIT


def test_whole_numbers_are_exact_up_to_two_to_the_53() -> None:
    total = Cells((a, b), a + b)
    for rows, units in ((2**52 - 1, 0), (2**52, 2**52), (2**52 + 1, 2**52 + 1)):
        assert rounding_of(total, Fraction(1), rows - 1) == units * UNIT


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (a / (b / 2), "the denominator of 'a / .* may be arbitrarily small"),
        (a / (a + b / 3), "the denominator of"),
        (x_log2_x(a / b), "the rounding of .* is not known"),
        (root(a - b), "the rounding of .* is not known"),
    ],
    ids=str,
)
def test_what_has_no_rule_is_to_be_declared(body: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        rounding_of(Cells((a, b), body), Fraction(1), 9)


@pytest.mark.parametrize("degree", [2, 3, 4, 5])
def test_roots_are_those_of_powers(degree: int) -> None:
    rooted = Cells((a, b), root(a, degree)).scores([[0, 0], [1, 0], [3**degree, 1], [10**degree, 2]])
    assert rooted.tolist() == pytest.approx([0, 1, 3, 10])
