"""Errors in words: how they are rounded, what they are compared with, and from where on a result says little."""

from __future__ import annotations

import math
from typing import Any

import attrs
import pytest

import dpframework as dpf
from dpframework.results.error_bounds import (
    BoundKind,
    ErrorBound,
    TableSize,
    bound_of_supports,
    percent_text,
    rows_text,
)

ABOUT = TableSize(1_000)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (0.2, "1"),
        (3.0000000001, "3"),  # a rounding error is no row
        (3.0001, "4"),
        (999, "999"),
        (999.5, "1,000"),
        (1_000, "1,000"),
        (1_001, "1,010"),
        (12_301, "12,400"),
        (999_000_000_001, "1e+12"),
        (998_500_000_000, "999,000,000,000"),
    ],
)
def test_a_number_of_rows_is_rounded_up_to_three_digits(number: float, text: str) -> None:
    assert rows_text(number) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.00009999, "under 0.01 %"),
        (0.0001, "0.01 %"),
        (0.0999, "10 %"),
        (0.0949, "9.5 %"),
        (0.1, "10 %"),
        (0.1249, "12 %"),
        (12.345, "1,234 %"),
    ],
)
def test_a_share_has_two_digits(share: float, text: str) -> None:
    assert percent_text(share) == text


def test_the_size_of_a_table_in_words_and_what_errors_are_compared_with() -> None:
    sizes = [
        TableSize(),
        TableSize(7_000),
        TableSize(7_000, True),
        TableSize(0),
        TableSize(most=50),
        TableSize(9, most=5),
    ]
    assert [(size.text, size.largest) for size in sizes] == [
        ("", None),
        ("about 7,000 rows", 7_000),
        ("the 7,000 rows", 7_000),
        ("about 0 rows", 0),
        ("", 50),
        ("about 9 rows", 9),
    ]


@pytest.mark.parametrize(
    ("amount", "options", "text"),
    [
        (2.0, {"unit": "years"}, "within ±2 years"),
        (2.34567, {"unit": ""}, "within ±2.346"),
        (2.1, {}, "within ±3 rows, 1 % of a table of 210"),
        (0.0, {}, "within ±0 rows"),
        (2.1, {"kind": "counts", "whole": 210.0, "whole_text": "all"}, "each within ±3 rows, 1 % of all"),
        (
            2.1,
            {"kind": "choice", "note": "at worst"},
            "worse than the best by at most 3 rows, at worst, 1 % of a table of 210",
        ),
        (math.inf, {}, "within ±any number of rows"),
        (math.inf, {"unit": "years"}, "within ±any number of years"),
        (None, {"note": "depends"}, "depends"),
        (2.0, {"unit": "years", "whole": 0.0}, "within ±2 years"),
    ],
)
def test_an_error_in_words(amount: float | None, options: dict[str, Any], text: str) -> None:
    bound = ErrorBound("mean", amount, **options)
    assert bound.text == text
    assert bound.sentence == f"Mean: {text}, in 95 % of releases."
    form = bound.to_dict()
    assert form["amount"] == (None if amount is None or math.isinf(amount) else amount)
    assert (form["text"], form["confidence"]) == (text, 0.95)


def test_an_error_is_no_negative_number() -> None:
    assert ErrorBound("mean", 0).amount == 0
    for wrong in (-1e-9, math.nan):
        with pytest.raises(dpf.InputError, match="a number from 0 on is needed"):
            ErrorBound("mean", wrong)


USELESS, QUARTER = "useless: the noise is larger than the whole table", "weak: the choice may be worse than the best by"


@pytest.mark.parametrize(
    ("amount", "options", "warning"),
    [
        (999.9, {"size": ABOUT}, ""),
        (1_000, {"size": ABOUT}, USELESS),
        (1_000, {"size": ABOUT, "unit": "years"}, ""),
        (1_000, {}, ""),
        (249.9, {"size": ABOUT, "kind": "choice"}, ""),
        (250, {"size": ABOUT, "kind": "choice"}, QUARTER),
        (250, {"size": ABOUT, "kind": "choice", "unit": "years"}, ""),
        (250, {"size": ABOUT, "kind": "counts"}, ""),
        (250, {"kind": "choice", "likely": 3.0, "likely_text": "it"}, ""),
        (2.9, {"likely": 3.0, "likely_text": "it"}, ""),
        (3, {"likely": 3.0, "likely_text": "it", "unit": "years"}, "weak: the noise is larger than it"),
        (None, {"size": ABOUT, "kind": "choice"}, ""),
        (None, {"size": TableSize(0)}, USELESS),
    ],
)
def test_from_where_on_a_result_says_little(amount: float | None, options: dict[str, Any], warning: str) -> None:
    bound = ErrorBound("mean", amount, **options)
    assert bound.warning[: len(warning) or None] == warning
    assert bound.hides_choice == (warning == QUARTER)
    assert bound.hides_number == ("larger than it" in warning)


def test_errors_of_groups_are_shares_of_counts_up_to_all_rows() -> None:
    counts = ErrorBound("counts", 5.0, "rows", BoundKind.COUNTS, ABOUT)
    assert counts.by_group == ((10, 0.5), (100, 0.05), (1_000, 0.005))
    assert counts.group_text == "that is 50 % of a count of 10, 5 % of a count of 100, 0.5 % of a count of 1,000"
    assert counts.to_dict()["by_group"][0] == {"rows": 10, "share": 0.5}
    assert len(attrs.evolve(counts, size=TableSize()).by_group) == 4
    assert len(attrs.evolve(counts, size=TableSize(most=999)).by_group) == 2
    for without in ({"amount": 0.0}, {"amount": math.inf}, {"amount": None}, {"kind": BoundKind.NUMBER}):
        assert attrs.evolve(counts, **without).group_text == ""  # type: ignore[arg-type]


def test_supports_are_compared_with_a_quarter_of_the_table_or_the_largest_that_is_shown() -> None:
    bound = ErrorBound("sum", 5.0, "rows", BoundKind.COUNTS, ABOUT)
    for most, likely, text in (
        (None, 250, "a quarter of the table"),
        (250, 250, "a quarter of the table"),
        (249, 249, "the largest support that is shown, 249 rows"),
    ):
        found = bound_of_supports(bound, 1, most)
        assert (found.likely, found.likely_text, len(found.biases)) == (likely, text, 1)
    unknown = attrs.evolve(bound, size=TableSize())
    assert bound_of_supports(unknown, 1).likely is None
    assert bound_of_supports(unknown, 1, 1_200).likely_text == "the largest support that is shown, 1,200 rows"
    assert bound_of_supports(bound, 2).biases[0].startswith("a support is a sum of up to 2 noisy cells")
