"""Derived columns as attributes: the domain that follows, or the one that is declared."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpframework.facts import Attribute, Boolean, Categorical, InputError, Numeric
from dpframework.facts.derived_column_domains_and_cells import BINS, MOST_WHOLE, make_column
from dpframework.facts.derived_columns import DerivedColumn

A, B = Numeric("a", -3, 4, bins=7), Numeric("b", 1, 5, bins=4)
SEX, ILL = Categorical("sex", ["f", "m"]), Boolean("ill")


def made(value: str, **options: Any) -> Attribute:
    return make_column(
        DerivedColumn("d", value, **options), tuple((one.name, (one, None)) for one in (A, B, SEX, ILL))
    )[0]


@given(
    st.sampled_from(["a + b", "a - b", "a * b", "a / b", "a ** 3", "abs(a)", "a // 2", "a % 3", "min(a, b)", "-a"]),
    st.floats(A.lower, A.upper),
    st.floats(B.lower, B.upper),
)
def test_no_cell_is_outside_of_the_bounds_that_follow(value: str, a: float, b: float) -> None:
    attribute, part = make_column(DerivedColumn("d", value), (("a", (A, None)), ("b", (B, None))))
    assert isinstance(attribute, Numeric)
    (cell,) = part.cells({"a": np.array([a]), "b": np.array([b])})
    assert attribute.lower <= cell <= attribute.upper


@given(st.integers(2, 100))
def test_whole_numbers_get_a_bin_each_while_they_are_few(values: int) -> None:
    attribute = made(f"floor(a - a) % {values}")
    assert isinstance(attribute, Numeric)
    assert attribute.size == (values if values <= MOST_WHOLE else BINS)
    assert (attribute.lower, attribute.upper) == (0, values - 1)


def test_declared_bounds_replace_those_that_follow() -> None:
    attribute = made("a + b", lower=0, upper=2, cuts=[1], outside="missing")
    assert attribute == Numeric("d", 0, 2, cuts=[1], missing=True)
    assert made("a + b", lower=0, upper=2, cuts=[1]) == Numeric("d", 0, 2, cuts=[1])  # clamped: none is missing


def test_a_column_is_of_the_view_that_it_is_derived_from_unless_it_names_one() -> None:
    left, right, neither = Boolean("a", view="left"), Boolean("b", view="right"), Boolean("c")

    def view(value: str, *read: Attribute, **options: Any) -> str | None:
        return make_column(DerivedColumn("d", value, **options), tuple((one.name, (one, None)) for one in read))[0].view

    assert [view("not a", left), view("not b", right), view("not c", neither)] == ["left", "right", None]
    assert [view("a and b", left, right), view("a and c", left, neither)] == [None, None]
    assert [view("a and b", left, right, view="right"), view("not a", left, view="right")] == ["right", "right"]


def test_listed_labels_keep_their_order_and_the_others_are_missing() -> None:
    column = DerivedColumn("d", "sex", values=["m", "n"], outside="missing")
    attribute, part = make_column(column, (("sex", (SEX, None)),))
    assert attribute == Categorical("d", ["m", "n"], missing=True)
    assert part.cells({"sex": np.array([0, 1, -1])}).tolist() == [-1, 0, -1]


@pytest.mark.parametrize(
    ("value", "options", "message"),
    [
        ("1 / a", {}, "lower is not known"),
        ("a - a + 1 - 1 if ill else 0", {"lower": 2, "upper": 2}, "two values at least"),
        ("ill", {"values": ["true"]}, "has no values"),
        ("sex", {"bins": 3}, "has no bins"),
        ("sex", {"values": ["m"]}, "may be 'f'"),
        ("a / b", {"values": ["1", "2"]}, "a number that is not in the list 'values'"),
    ],
)
def test_a_column_without_a_public_domain_is_refused_by_name(value: str, options: Any, message: str) -> None:
    with pytest.raises(InputError, match=rf"derived column 'd': .*{message}"):
        made(value, **options)


def test_numbers_that_are_listed_become_labels() -> None:
    column = DerivedColumn("d", "a / b", values=["1", "2"], outside="missing")
    attribute, part = make_column(column, (("a", (A, None)), ("b", (B, None))))
    assert attribute.labels[:2] == ("1", "2")
    cells = part.cells({"a": np.array([1.0, 4, 3, math.nan]), "b": np.array([1.0, 2, 2, 1])})
    assert cells.tolist() == [0, 1, -1, -1]
