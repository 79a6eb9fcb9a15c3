"""Miners that search in a block: an adaptive grid, and private bounds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpframework as dpf
from dpframework.basics import PrivateBoundsMiner
from dpframework.basics.adaptive_grid_miner import AdaptiveGridMiner
from dpframework.basics.bounds_miner import _Search
from dpframework.basics.box_search_base import Looks
from dpframework.queries.boxes import BoxCounts
from dpframework.results import AdaptiveGrid, FoundBounds
from dpframework.verify import MinerConformance, QueryConformance

X, Y = dpf.Numeric("x", 0, 64, bins=16), dpf.Numeric("y", 0, 64, bins=16, missing=True)
SCHEMA = dpf.Schema([X, Y])


class TestAdaptiveGrid(MinerConformance):
    miner = AdaptiveGridMiner
    replays = 400
    min_tightness = 0.5  # few replays: what is spent last depends on how long a run was


class TestPrivateBounds(MinerConformance):
    miner = PrivateBoundsMiner
    replays = 400
    min_tightness = 0.5


SMALL = dpf.Schema([dpf.Numeric("x", 0, 3, bins=3), dpf.Boolean("ill")])


BOXES = {"two boxes": (BoxCounts(SMALL.attributes), SMALL, {"boxes": (((0, 1), (0, 2)), ((1, 3), (1, 2)))})}


class TestBoxCounts(QueryConformance):
    queries = BOXES
    pairs = 400


def crowded(rows: int = 4000) -> dpf.Table:
    """Return a table of which nine rows in ten lie in one corner, and the others anywhere."""
    rng = np.random.default_rng(0)
    anywhere = rng.integers(0, 16, (2, rows // 10))
    return dpf.Table.from_codes(SCHEMA, np.hstack([rng.integers(0, 4, (2, rows - rows // 10)), anywhere]))


def run(miner: dpf.Miner, table: dpf.Table, seed: int = 0, **options: Any) -> dpf.Results:
    study = dpf.Study(table.schema, **{"epsilon": 4, "delta": "1e-6", **options})
    study.add("m", miner)
    return study.run(table, seed=seed)


def sizes(grid: AdaptiveGrid) -> dict[str, list[int]]:
    """Return the areas of the cells in the crowded corner, and elsewhere."""
    found: dict[str, list[int]] = {"here": [], "there": []}
    for (a, b), (c, d) in grid.cells:
        found["here" if a < 4 and c < 4 else "there"].append((b - a) * (d - c))
    return found


@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": "0.1"}])
def test_cells_are_small_where_many_rows_are(budget: dict[str, Any]) -> None:
    table = crowded()
    results = run(AdaptiveGridMiner(["x", "y"], **budget), table)
    grid = results["m"]
    found = sizes(grid)
    assert max(found["here"]) == 1
    assert np.mean(found["there"]) > 4
    codes = np.asarray(table.codes)
    for cell, count in zip(grid.cells, grid.counts, strict=True):
        inside = np.all([(codes[k] >= a) & (codes[k] < b) for k, (a, b) in enumerate(cell)], axis=0).sum()
        assert abs(count - inside) <= 25 * np.sqrt(grid.variance)  # beyond: less than 1e-9 in any of 100 cells
    assert sum((b - a) * (d - c) for (a, b), (c, d) in grid.cells) == 256  # every pair of bins is in one cell
    assert sum(len(cell) == 2 for cell in grid.cells) == len(grid.counts)


def test_a_grid_that_stops_early_counts_with_all_that_is_left() -> None:
    few = run(AdaptiveGridMiner(["x", "y"], rows=10_000, epsilon=1), crowded())
    assert [charge.path for charge in few.charges] == [
        "m/search/counts (epsilon 3/50)",
        "m/search/counts (epsilon 47/50)",
    ]
    (count,) = few["m"].counts
    assert abs(count - 4000) < 50  # more than 25 scales of the noise: less than 1e-10
    assert few.spent.epsilon <= 1
    assert few["m"].variance < run(AdaptiveGridMiner(["x", "y"], epsilon=1), crowded())["m"].variance


def test_a_cell_of_one_bin_is_not_looked_at_again() -> None:
    four = dpf.Schema([dpf.Numeric("x", 0, 2, bins=2), dpf.Numeric("y", 0, 2, bins=2)])
    found = run(
        AdaptiveGridMiner(["x", "y"], epsilon=1), dpf.Table.from_codes(four, [[0, 0, 1, 1] * 999, [0, 1] * 1998])
    )
    assert len(found["m"].cells) == 4
    assert len(found.charges) == 3  # of the whole, of its four bins, and the last


class ExactBlock:
    """A block that answers without noise, as if its counts had the variances that it is given, or else none."""

    def __init__(self, codes: Any, variances: Sequence[float] = ()) -> None:
        self.codes = np.atleast_2d(codes)
        self.left = SimpleNamespace(epsilon=Fraction(2))
        self.costs: list[Fraction] = []
        self.variances = iter(variances)

    def release(self, kind: str, *, epsilon: Fraction, boxes: Any) -> list[int]:
        self.left.epsilon -= epsilon
        self.costs.append(epsilon)
        return [
            int(np.all([(own >= a) & (own < b) for own, (a, b) in zip(self.codes, box, strict=True)], axis=0).sum())
            for box in boxes
        ]

    def calibration(self, kind: str, *, epsilon: Fraction) -> Any:
        return SimpleNamespace(variance=next(self.variances, 0.0))

    def table(self, schema: dpf.Schema) -> Any:
        return SimpleNamespace(schema=schema, spend=lambda name: self)


@pytest.mark.parametrize("outside", [0.0, 0.05, 0.25, 0.5])
def test_without_noise_bounds_are_the_tightest_that_leave_no_more_rows_outside_than_they_may(outside: float) -> None:
    rng = np.random.default_rng(0)
    for bins in (2, 3, 8, 13):
        numeric = dpf.Numeric("x", 0, bins, bins=bins)
        edges = np.arange(bins + 1)
        for codes in (
            rng.integers(0, bins, 40),
            rng.binomial(bins - 1, 0.3, 40),
            np.repeat(bins - 1, 8),
            np.arange(bins),
        ):
            block = ExactBlock(codes)
            lower, upper, looks = _Search(numeric, Looks(block, "epsilon"), outside).run()  # type: ignore[arg-type]
            below = np.array([(codes < edge).sum() for edge in edges])
            most = outside * len(codes)
            tightest = (
                max(edge for edge in edges[:-1] if below[edge] <= most),
                min(edge for edge in edges[1:] if len(codes) - below[edge] <= most),
            )
            assert (lower, upper) == (tightest if tightest[0] < tightest[1] else (0, bins))
            assert looks == len(block.costs) <= np.ceil(np.log2(bins))
            assert set(block.costs) == {2 * Fraction(1, 100)}


def test_a_look_that_is_not_clear_doubles_the_price_of_the_next_until_half_is_spent() -> None:
    x, blurred, clear = dpf.Numeric("x", 0, 64, bins=64), 1e9, 0.0
    codes = np.arange(64)
    never = ExactBlock(codes, [blurred] * 99)
    assert _Search(x, Looks(never, "epsilon"), 0.1).run() == (0, 64, 5)  # type: ignore[arg-type]
    assert [50 * cost for cost in never.costs] == [1, 2, 4, 8, 16]  # 32 more would leave less than half
    halved = ExactBlock(codes, [clear, blurred, clear, blurred, blurred, blurred, clear, clear, clear])
    _Search(x, Looks(halved, "epsilon"), 0.1).run()  # type: ignore[arg-type]
    assert [50 * cost for cost in halved.costs] == [1, 1, 2, 2, 4, 8, 16, 16]  # exactly half


@pytest.mark.parametrize(
    ("noise", "below", "moves"),
    [(5, 12, True), (5.25, 12, False), (8, 18, True), (8, 17, False), (8, 2, True), (8, 3, False), (0, 10, True)],
)
def test_a_search_moves_where_a_count_is_off_its_goal_by_the_noise_or_the_noise_is_half_of_the_goal(
    noise: float, below: int, moves: bool
) -> None:
    """Ten of 100 rows may lie below: noise of 5, two standard deviations, decides whatever the count is."""
    block = ExactBlock([0] * below + [3] * (100 - below), [(noise / 2) ** 2])
    search = _Search(dpf.Numeric("x", 0, 4, bins=4), Looks(block, "epsilon"), 0.1)  # type: ignore[arg-type]
    search._upper = (4, 4)  # found already
    assert search._look(Fraction(1, 100)) is moves
    assert search._lower == ((0, 3) if not moves else (0, 1) if below > 10 else (2, 3))


@pytest.mark.parametrize(("rows", "variance", "enough", "depth"), [(1, 0, 1, 6), (5, 100, 30, 4), (12, 15, 12, 2)])
def test_without_noise_cells_are_halved_while_they_have_enough_rows(
    rows: int, variance: float, enough: int, depth: int
) -> None:
    """Enough rows are as many as the miner asks for, and three standard deviations of a look's noise."""
    rng = np.random.default_rng(enough)
    x, y = dpf.Numeric("x", 0, 5, bins=5), dpf.Numeric("y", 0, 8, bins=8)
    codes = np.array([rng.binomial(4, 0.2, 200), rng.integers(0, 8, 200)])
    codes[:, :enough] = [[4], [7]]  # exactly enough are in the last cell

    looked_at = []

    def split(box: tuple[tuple[int, int], ...], levels: int) -> list[Any]:
        looked_at.append(levels)
        inside = np.all([(own >= a) & (own < b) for own, (a, b) in zip(codes, box, strict=True)], axis=0).sum()
        if levels == 0 or inside < enough or all(b - a == 1 for a, b in box):
            return [box]
        middles = [((a, (a + b) // 2), ((a + b) // 2, b)) if b - a > 1 else ((a, b),) for a, b in box]
        return [cell for quarter in itertools.product(*middles) for cell in split(quarter, levels - 1)]

    block = ExactBlock(codes, [variance])
    grid = AdaptiveGridMiner(["x", "y"], rows=rows, depth=depth, looks="0.4", epsilon=1).mine(
        block.table(dpf.Schema([x, y]))
    )
    assert sorted(grid.cells) == sorted(split(((0, 5), (0, 8)), depth))
    *looks, last = block.costs
    assert set(looks) == {2 * Fraction(4, 10) / depth}
    assert sum(looks) + last == 2
    assert len(looks) == len({*looked_at} - {0})  # none at cells that cannot be halved


def test_a_grid_has_no_more_than_12_levels() -> None:
    assert [AdaptiveGridMiner(["x", "y"], depth=depth, epsilon=1).depth for depth in (1, 12)] == [1, 12]
    for depth in (0, 13):
        with pytest.raises(dpf.InputError, match="a whole number from 1 to 12 is needed"):
            AdaptiveGridMiner(["x", "y"], depth=depth, epsilon=1)


@pytest.mark.parametrize("bin_", [0, 15])
def test_bounds_reach_the_first_and_the_last_bin(bin_: int) -> None:
    ages = dpf.Schema([dpf.Numeric("age", 0, 16, bins=16)])
    found = run(PrivateBoundsMiner("age", epsilon=4), dpf.Table.from_codes(ages, [[bin_] * 9999]))["m"]
    assert (found.lower, found.upper) == (bin_, bin_ + 1)


def test_bounds_leave_about_as_many_rows_outside_as_they_may() -> None:
    rng = np.random.default_rng(1)
    income = dpf.Schema([dpf.Numeric("income", 0, 1_000_000, bins=500)])
    codes = (rng.lognormal(10, 0.6, 20_000) / 2000).astype(int).clip(0, 499)
    table = dpf.Table.from_codes(income, [codes])
    found = run(PrivateBoundsMiner("income", outside="0.01", epsilon=1), table)["m"]
    below, above = np.mean(codes < found.lower / 2000), np.mean(codes >= found.upper / 2000)
    assert 0 <= below <= 0.02
    assert 0 < above <= 0.02
    assert found.upper < 200_000
    assert abs(found.within + found.below + found.above - 20_000) < 200
    none = run(PrivateBoundsMiner("income", epsilon=1), dpf.Table.from_codes(income, [[]]))["m"]
    assert none.lower < none.upper


def test_bounds_of_clear_data_take_fewer_looks() -> None:
    income = dpf.Schema([dpf.Numeric("income", 0, 1_000_000, bins=500)])
    looks = {}
    for rows in (100, 1_000_000):
        table = dpf.Table.from_codes(income, [np.arange(rows) % 50])
        looks[rows] = run(PrivateBoundsMiner("income", epsilon="0.2"), table)["m"]
    assert looks[1_000_000].variance < looks[100].variance  # what was not needed for looks counts in the end
    assert looks[1_000_000].upper == 100_000
    assert looks[100].upper >= 100_000


@pytest.mark.parametrize(
    ("miner", "why"),
    [
        (AdaptiveGridMiner(["x"], epsilon=1), "attributes has to name two numeric attributes"),
        (AdaptiveGridMiner(["x", "x"], epsilon=1), "attributes has to name two numeric attributes"),
        (
            AdaptiveGridMiner(["x", "ill"], epsilon=1),
            "'adaptive-grid' searches numeric attributes; 'ill' is not numeric",
        ),
        (PrivateBoundsMiner("ill", epsilon=1), "'private-bounds' searches numeric attributes; 'ill' is not numeric"),
    ],
)
def test_what_cannot_be_searched_is_refused(miner: dpf.Miner, why: str) -> None:
    with pytest.raises(dpf.InputError, match=why):
        miner.plan(SMALL)


@pytest.mark.parametrize(
    ("boxes", "why"),
    [
        ((((0, 2), (0, 1)), ((1, 3), (0, 2))), "boxes overlap"),
        ((((0, 4), (0, 1)),), "is not a range of values"),
        ((((1, 1), (0, 1)),), "is not a range of values"),
        ((((0, 1),),), "is not a range of values"),
    ],
)
def test_boxes_that_are_none_or_overlap_are_refused(boxes: Any, why: str) -> None:
    with pytest.raises(dpf.InputError, match=why):
        BoxCounts(SMALL.attributes)._numbers(boxes)


def test_results_are_kept_and_drawn() -> None:
    grid = AdaptiveGrid(["x", "y"], [[0, 1, 3], [0, 2]], [[[0, 1], [0, 1]], [[1, 2], [0, 1]]], [10, -1], 2)
    bounds = FoundBounds("income", 10, 50, 3, 400, 2, Fraction(2), 7)
    for one in (grid, bounds):
        assert type(one).from_dict(one.to_dict()) == one
        with pytest.raises(dpf.InputError):
            type(one).from_dict({**one.to_dict(), "variance": -1})
        assert one.plot() is not None
    assert grid.per_bin.tolist() == [[10.0], [0.0]]
    (shown,) = grid.matrices()
    assert (shown.rows, shown.columns, shown.values) == (("0 to 2",), ("0 to 1", "1 to 3"), ((10.0, 0.0),))
    assert "2 cells; each count is within ±4 (95 %)" in str(grid)
    assert "found by 7 looks" in str(bounds)
    for wrong in ({"cells": [[[0, 3], [0, 1]]]}, {"counts": [1]}, {"edges": [[0, 1]]}):
        with pytest.raises(dpf.InputError):
            AdaptiveGrid.from_dict({**grid.to_dict(), **wrong})
    with pytest.raises(dpf.InputError):
        FoundBounds.from_dict({**bounds.to_dict(), "upper": 1})


def test_a_second_study_uses_released_bounds_and_one_cap_holds_both(tmp_path: Path) -> None:
    income = dpf.Schema([dpf.Numeric("income", 0, 1_000_000, bins=500)])
    codes = (np.random.default_rng(1).lognormal(10, 0.6, 20_000) / 2000).astype(int).clip(0, 499)
    table = dpf.Table.from_codes(income, [codes])
    ledger = dpf.Ledger.create(tmp_path / "l.ledger")
    ledger.open("incomes", epsilon=1)
    search = dpf.Study(income, epsilon="0.2")
    search.add("bounds", PrivateBoundsMiner("income", epsilon="0.2"))

    def released(study: dpf.Study) -> Any:
        ledger.approve("incomes", study.plan(), by="me")
        return study.run(table, ledger=ledger.run("incomes"))

    bounds = released(search)["bounds"]
    close = dpf.miner("mean", attribute="income", bounds=[bounds.lower, bounds.upper], epsilon="0.8")
    mean = dpf.Study(income, epsilon="0.8")
    mean.add("mean", close)
    ((_, step),) = mean.plan().placed_steps()
    assert f"up from {bounds.lower:g} and down from {bounds.upper:g}" in step.query.text
    assert bounds.lower <= released(mean)["mean"].value <= bounds.upper
    assert ledger.records().data_set("incomes").left == 0
    with pytest.raises(dpf.PlanRefused):
        released(search)
