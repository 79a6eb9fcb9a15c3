"""Tables of noisy counts: each cell by its labels, and a refusal that names the nearest one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.results.count_table_base import CountTable, as_labels


class Plain(CountTable):
    """A table whose counts are the places of its cells."""

    counts = np.arange(6.0).reshape(2, 3)
    variance = 4.0

    def to_frame(self) -> object:
        raise NotImplementedError

    @property
    def _correlated(self) -> frozenset[int]:
        return frozenset([id(self)])

    def _variance_of_difference(self, one: tuple[int, ...], other: tuple[int, ...]) -> float:
        return 7.0

    def draw(self, axes: object) -> None:
        raise NotImplementedError

    def _text_table(self) -> object:
        raise NotImplementedError

    @classmethod
    def read(cls, form: object) -> object:
        raise NotImplementedError


TABLE = Plain(["ill", "town"], [["no", "yes"], ["A", "B", "C"]])


@given(st.sampled_from(["no", "yes"]), st.sampled_from("ABC"))
def test_a_count_is_found_by_its_labels(ill: str, town: str) -> None:
    found = TABLE[ill, town]
    assert (found.value, found.variance) == (3 * (ill == "yes") + "ABC".index(town), 4.0)


def test_what_is_no_cell_is_refused_with_what_is_missing() -> None:
    with pytest.raises(dpf.InputError, match="a cell has one label for each of ill, town, not 1"):
        TABLE["no"]
    with pytest.raises(dpf.InputError, match="'town' has no label 'D'"):
        TABLE["no", "D"]
    assert as_labels([["a"], iter("bc")]) == (("a",), ("b", "c"))
    assert len(TABLE.matrices()) == 1


def test_its_cells_are_listed_by_their_labels() -> None:
    assert [TABLE[labels].value for labels in TABLE] == [0, 1, 2, 3, 4, 5]
    assert ("yes", "A") in TABLE
    assert ("yes", "D") not in TABLE
    assert "yes" not in TABLE


def test_labels_that_are_no_text_are_refused() -> None:
    number: Any = 2025
    for key in (number, ("yes", number)):
        with pytest.raises(dpf.InputError, match="2025 is not a label; labels are text, such as '2025'"):
            TABLE[key]


def test_sums_and_differences_of_its_cells_bound_the_noise_whatever_the_correlation() -> None:
    one, other = TABLE["yes", "A"], TABLE["no", "C"]
    assert (one - other).variance == (one + other).variance == 16  # each deviation is 2
    assert (one - other - one).variance == 36
    assert (one - dpf.results.Noisy(3, 5)).variance == 9
    assert (one - 3).variance == 4
    independent, exact, other_exact = (
        dpf.results.Frequencies(["ill"], [["no", "yes"]], [4, 6], 2, exact_total=total) for total in (False, True, True)
    )
    assert (independent["no"] - independent["yes"]).variance == 4
    of_exact = (exact["no"] - exact["yes"]).variance
    assert of_exact == pytest.approx(exact.difference("no", "yes").variance) == pytest.approx(8)
    assert (exact["no"] - other_exact["no"]).variance == 4  # as of the same table of two years
    assert (exact["no"] - other_exact["no"] - exact["yes"]).variance == pytest.approx((2 + 2**0.5) ** 2)


def test_a_difference_has_the_error_of_both_cells_and_none_of_one_cell_with_itself() -> None:
    found = TABLE.difference(("yes", "A"), ("no", "C"))
    assert (found.value, found.variance) == (1.0, 7.0)
    assert TABLE.difference(("yes", "A"), ("yes", "A")).variance == 0
    with pytest.raises(dpf.InputError, match="'town' has no label 'D'"):
        TABLE.difference(("yes", "A"), ("yes", "D"))
