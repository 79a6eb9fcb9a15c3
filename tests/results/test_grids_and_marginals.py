"""Grids, bounds that were found, and marginals: their numbers, what is printed and drawn, and what is kept."""

from __future__ import annotations

import itertools
import math
from typing import Any

import attrs
import numpy as np
import pytest
from drawn import Axes

import dpframework as dpf
from dpframework.results import Noisy
from dpframework.results.grid_and_bounds_results import AdaptiveGrid, FoundBounds
from dpframework.results.marginal_tables import MarginalTable, MarginalTables, axis_share

EDGES = [[0, 1, 3, 7], [0, 2, 4]]
GRID = AdaptiveGrid(["x", "y"], EDGES, [[[0, 1], [0, 2]], [[1, 3], [0, 1]], [[1, 3], [1, 2]]], [8, -3, 5], 2)
REACH = Noisy.margin_of(2.0)


def test_the_rows_of_a_cell_lie_evenly_in_its_bins() -> None:
    assert GRID.ranges == [((0, 1), (0, 4)), ((1, 7), (0, 2)), ((1, 7), (2, 4))]
    assert GRID.per_bin.tolist() == [[4, 4], [0, 2.5], [0, 2.5]]
    (matrix,) = GRID.matrices()
    assert (matrix.rows, matrix.columns) == (("2 to 4", "0 to 2"), ("0 to 1", "1 to 3", "3 to 7"))
    assert matrix.values == ((4, 2.5, 2.5), (4, 0, 0))
    frame = GRID.to_frame()
    assert frame.columns == ["x from", "x to", "y from", "y to", "rows", "low", "high"]
    assert frame.row(1) == (1, 7, 0, 2, -3, -3 - REACH, -3 + REACH)
    assert AdaptiveGrid.read(GRID.to_dict()) == GRID


@pytest.mark.parametrize(
    "wrong",
    [
        {"names": ["x"]},
        {"edges": EDGES[:1]},
        {"counts": [1, 2]},
        {"cells": [], "counts": []},
        {"cells": [[[0, 1]]], "counts": [1]},
        {"cells": [[[0, 4], [0, 2]]], "counts": [1]},
        {"cells": [[[0, 3], [0, 3]]], "counts": [1]},
        {"cells": [[[1, 1], [0, 2]]], "counts": [1]},
        {"cells": [[[-1, 1], [0, 2]]], "counts": [1]},
        {"counts": [1, 2, math.inf]},
        {"variance": -1},
    ],
)
def test_a_grid_is_of_ranges_of_its_bins(wrong: dict[str, Any]) -> None:
    assert attrs.evolve(GRID, cells=[[[0, 3], [0, 2]]], counts=[1]).per_bin.sum() == pytest.approx(1)
    with pytest.raises(dpf.InputError):
        attrs.evolve(GRID, **wrong)


def test_a_grid_is_drawn_the_darker_the_denser(monkeypatch: pytest.MonkeyPatch) -> None:
    axes = Axes()
    GRID.draw(axes)
    boxes = [of[0] for of, _ in axes.of("add_patch")]
    assert [(*box.get_xy(), box.get_width(), box.get_height()) for box in boxes] == [
        (0, 0, 1, 4),
        (1, 0, 6, 2),
        (1, 2, 6, 2),
    ]
    shades = [box.get_facecolor()[0] for box in boxes]
    assert shades == pytest.approx([0.15, 1, 1 - 0.85 * math.sqrt((5 / 12) / 2)])
    assert axes.of("set")[0][1] == {"xlabel": "x", "ylabel": "y"}
    assert axes.of("set")[1][1] == {"xlim": (0, 7), "ylim": (0, 4)}
    empty = Axes()
    attrs.evolve(GRID, counts=[0, -1, 0]).draw(empty)
    assert {of[0].get_facecolor()[0] for of, _ in empty.of("add_patch")} == {1}
    assert str(GRID).splitlines() == [
        "x       y       rows",
        "0 to 1  0 to 4  8",
        "1 to 7  2 to 4  5",
        "1 to 7  0 to 2  -3",
        "3 cells; each count is within ±4 (95 %), from the noise alone.",
    ]
    monkeypatch.setattr("dpframework.results.grid_and_bounds_results.MOST_SHOWN", 2)
    assert str(GRID).splitlines()[3].startswith("3 cells, the largest 2; each")
    monkeypatch.setattr("dpframework.results.grid_and_bounds_results.MOST_SHOWN", 3)
    assert "largest" not in str(GRID)


def test_bounds_that_were_found() -> None:
    found = FoundBounds("cost", 0, 40, 3, 900, -2, 2.0, 3)
    assert str(found).splitlines() == [
        "cost          rows",
        "below 0       3",
        "from 0 to 40  900",
        "40 and more   -2",
        "found by 3 looks; each count is within ±4 (95 %), from the noise alone.",
    ]
    assert "found by 1 look;" in str(attrs.evolve(found, looks=1))
    assert "found by 0 looks;" in str(attrs.evolve(found, looks=0))
    assert FoundBounds.read(found.to_dict()) == found
    assert found.to_frame().rows() == [
        (None, 0, 3, 3 - REACH, 3 + REACH),
        (0, 40, 900, 900 - REACH, 900 + REACH),
        (40, None, -2, -2 - REACH, -2 + REACH),
    ]
    axes = Axes()
    found.draw(axes)
    assert axes.of("plot")[0][0][:2] == ([0, 40], [0, 0])
    assert axes.of("set_yticks")[0][0] == ([0], ["cost"])
    for wrong in ({"lower": 40}, {"upper": math.inf}, {"looks": -1}, {"below": math.nan}, {"variance": -1}):
        with pytest.raises(dpf.InputError):
            attrs.evolve(found, **wrong)


# Marginals


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_sum_over_an_axis_has_its_part_of_a_residuals_variance(size: int) -> None:
    """Of numbers of one variance that add up to 0; and of equal parts of one number."""
    centred = np.eye(size) - 1 / size
    for summed in range(size + 1):
        some = np.arange(size) < summed
        whole = float(some @ centred @ some)
        alone = centred[0, 0] if size > 1 else 1.0
        assert axis_share(size, summed, inside=True) == pytest.approx(whole / alone, abs=1e-12)
        assert axis_share(size, summed, inside=False) == pytest.approx((summed / size) ** 2)


def marginal(*names: str, begin: float = -1.0) -> MarginalTable:
    sizes = {"a": 2, "b": 3, "c": 4}
    shape = tuple(sizes[name] for name in names)
    counts = np.arange(math.prod(shape)).reshape(shape) + begin
    labels = [[f"{name}{k}" for k in range(sizes[name])] for name in names]
    residuals = [(some, 1.0 + len(some)) for r in range(len(names) + 1) for some in itertools.combinations(names, r)]
    variance = sum(own for _, own in residuals)
    return MarginalTable(names, labels, counts, variance, residuals)


def test_differences_of_cells_and_their_sums_share_the_noise_of_two_cells() -> None:
    """Of any two numbers, the variances of the sum and of the difference add up to twice those of both numbers."""
    found = marginal("a", "b")
    one, other = ("a0", "b1"), ("a0", "b2")
    alone = found.total(a="a0", b="b1").variance
    apart, together = found.difference(one, other), found.total(a="a0", b=["b1", "b2"])
    assert apart.value == found[one].value - found[other].value
    assert apart.variance + together.variance == pytest.approx(4 * alone)
    cells = list(itertools.product(["a0", "a1"], ["b0", "b1", "b2"]))
    around = sum(found.difference(one, other).variance for one in cells for other in cells)  # of all pairs
    assert around == pytest.approx(2 * 6 * 6 * alone - 2 * found.total().variance)
    assert found.difference(one, one) == Noisy(0, 0)
    with pytest.raises(dpf.InputError, match="residuals are not known"):
        attrs.evolve(found, residuals=()).difference(one, other)


def test_a_marginals_cells_sums_and_whole_numbers() -> None:
    found = marginal("a", "b")
    assert found["a1", "b2"] == Noisy(4, found.variance)
    assert found.standard_error == math.sqrt(found.variance)
    assert found.total() == Noisy(9, 1.0)  # the residual of no attribute alone
    assert found.total(a="a1", b=["b0"]).value == 2
    assert found.total(a="a1", b=["b0"]).variance == pytest.approx(1 / 36 + 2 / 9 + 2 / 4 + 3)
    assert found.total(b=["b2", "b0"]).value == -1 + 1 + 2 + 4
    for among, words in (
        ({"c": "c0"}, "no attribute 'c'"),
        ({"a": "a9"}, "no label 'a9'; known: a0, a1"),
        ({"a": ["a0", "a0"]}, "given twice, or no label is given"),
        ({"a": []}, "given twice, or no label is given"),
    ):
        with pytest.raises(dpf.InputError, match=words):
            found.total(**among)
    with pytest.raises(dpf.InputError, match="residuals are not known"):
        attrs.evolve(found, residuals=()).total()
    frame = found.to_frame()
    reach = Noisy.margin_of(found.variance)
    assert frame.columns == ["a", "b", "count", "standard error", "low", "high"]
    assert frame.row(5)[:3] == ("a1", "b2", 4)
    assert frame.row(5)[3:] == pytest.approx((found.standard_error, 4 - reach, 4 + reach))
    assert MarginalTable.read(found.to_dict()) == found
    assert len(found.matrices()) == 1
    for wrong in (
        {"residuals": [(["c"], 1.0)]},
        {"residuals": [(["a"], -1.0)]},
        {"residuals": [(["a"], math.inf)]},
        {"counts": [[1, 2, 3]]},
        {"counts": [[1, 2, 3], [4, 5, math.nan]]},
        {"names": ["a"]},
    ):
        with pytest.raises(dpf.InputError):
            attrs.evolve(found, **wrong)


def test_whole_counts_are_the_nearest_by_largest_remainders() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        found = attrs.evolve(marginal("a", "b"), counts=rng.normal(2, 2, (2, 3)))
        whole, exact = found.whole(), found.nonnegative()
        assert whole.dtype == np.int64
        assert whole.sum() == round(float(exact.sum()))
        raised = whole > np.floor(exact)
        assert set((whole - np.floor(exact)).ravel().tolist()) <= {0, 1}
        rest = exact - np.floor(exact)
        assert rest[raised].min(initial=1) >= rest[~raised].max(initial=0)
    assert attrs.evolve(marginal("a"), counts=[0.5, 0.5]).whole().tolist() == [1, 0]


def test_a_workload_of_marginals(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = MarginalTables([marginal("a"), attrs.evolve(marginal("b"), variance=4), marginal("a", "b")], Noisy(9, 0))
    assert len(tables) == 3
    assert [one.names for one in tables] == [("a",), ("b",), ("a", "b")]
    turned = tables["b", "a"]
    assert turned.counts.tolist() == tables["a", "b"].counts.T.tolist()
    assert turned.labels == tables["a", "b"].labels[::-1]
    with pytest.raises(dpf.InputError, match="no marginal of a by c; did you mean 'a by b'"):
        tables["a", "c"]
    with pytest.raises(dpf.InputError, match="no marginal of a by a"):
        tables["a", "a"]
    frame = tables.to_frame()
    assert frame.columns == ["marginal", "cell", "count", "standard error", "low", "high"]
    assert frame.row(10)[:3] == ("a by b", "a1 by b2", 4)
    assert MarginalTables.read(tables.to_dict()) == tables
    axes = Axes()
    tables.draw(axes)
    assert axes.of("barh")[0][0][1] == [one.standard_error for one in tables][::-1]
    assert axes.of("set_yticks")[0][0] == (range(3), ["a by b", "b", "a"])
    lines = str(tables).splitlines()
    assert lines[0].split() == ["marginal", "cells", "standard", "error", "95", "%"]
    assert lines[3].split() == ["a", "by", "b", "6", "2.83", "±7"]
    assert "Number of rows: 9, public." in str(tables)
    assert "Number of rows: 9 ± 4." in str(attrs.evolve(tables, total=Noisy(9, 2)))
    monkeypatch.setattr("dpframework.results.marginal_tables._SHOWN", 2)
    assert "and 1 more" in str(tables)
    assert "and 4 more" in str(marginal("a", "b"))
    axes = Axes()
    tables.draw(axes)
    assert axes.of("set_yticks")[0][0] == (range(2), ["a by b", "b"])
    monkeypatch.setattr("dpframework.results.marginal_tables._SHOWN", 6)
    assert "more" not in str(marginal("a", "b"))
    assert str(marginal("a", "b")).splitlines()[6].split() == ["a1", "b2", "4"]
    assert "each count is within ±7 of the exact one" in str(marginal("a", "b"))
