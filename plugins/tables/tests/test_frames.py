"""Frames of synthetic rows: every number lies in its bin, and every number of a bin can be drawn."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from dpframework_tables.frames import frame_of
from numpy.typing import NDArray

import dpframework as dpf


def numbers_in_bins(
    lower: float, upper: float, cuts: Sequence[float], *, each: int
) -> tuple[NDArray[np.intp], pl.Series]:
    """Return the codes of several rows in each bin, and the numbers that were drawn for them."""
    codes = np.repeat(np.arange(len(cuts) + 1), each)[:, np.newaxis]
    return codes, frame_of(dpf.Schema([dpf.Numeric("x", lower, upper, cuts=cuts)]), codes, seed=1)["x"]


@pytest.mark.parametrize(
    ("lower", "upper", "cuts"), [(10, 20, [13, 14]), (-9, 4, [-5, 0]), (0, 3, [1, 2]), (-20, -10, [-15])]
)
def test_whole_numbers_are_all_those_of_their_bin_and_the_last_one_has_the_upper_bound(
    lower: int, upper: int, cuts: list[int]
) -> None:
    codes, found = numbers_in_bins(lower, upper, cuts, each=600)
    assert found.dtype == pl.Int64
    for k, (low, high) in enumerate(itertools.pairwise([lower, *cuts, upper])):
        drawn = found.filter(codes[:, 0] == k).to_list()
        assert set(drawn) == set(range(low, high + (k == len(cuts))))
        assert np.bincount(np.array(drawn) - low).min() > 600 / (high - low + 1) / 2


@pytest.mark.parametrize(("lower", "upper", "cuts"), [(0.5, 2, [1.0]), (-2, -0.5, [-1.0]), (0, 1, [0.25, 0.5])])
def test_other_numbers_are_spread_over_their_bin_below_its_upper_end(
    lower: float, upper: float, cuts: list[float]
) -> None:
    codes, drawn = numbers_in_bins(lower, upper, cuts, each=500)
    found = drawn.to_numpy()
    for k, (low, high) in enumerate(itertools.pairwise([lower, *cuts, upper])):
        places = (found[codes[:, 0] == k] - low) / (high - low)
        assert 0 <= places.min() < 0.02
        assert 0.98 < places.max() < 1
        assert places.mean() == pytest.approx(0.5, abs=0.06)
    _, moved = numbers_in_bins(lower - 8, upper - 8, [cut - 8 for cut in cuts], each=500)
    assert moved.to_numpy() == pytest.approx(found - 8)


def test_missing_codes_are_null_and_others_are_their_cells() -> None:
    schema = dpf.Schema(
        [
            dpf.Numeric("x", -3, 5, cuts=[1], missing=True),
            dpf.Boolean("ill", missing=True),
            dpf.Categorical("town", ["a", "b"], missing=True),
            dpf.Categorical("kind", ["c", "d"]),
        ]
    )
    codes = np.array([[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 0]])
    frame = frame_of(schema, codes, seed=3)
    assert frame["x"].is_null().to_list() == [False, False, True]
    assert frame["ill"].to_list() == [False, True, None]
    assert frame["town"].to_list() == ["a", "b", None]
    assert frame["kind"].to_list() == ["c", "d", "c"]
    assert frame.equals(frame_of(schema, codes, seed=3))
    assert frame["ill"].dtype == pl.Boolean
