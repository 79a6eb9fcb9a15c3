"""Redescriptions read off a table of cells, against the same said slowly: one union, one cell after another."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import attrs
import numpy as np
import pytest
from scipy.optimize import brentq

from dpframework.facts.logical_descriptions_of_rows import Equals
from dpframework.redescriptions.cell_union_redescriptions import CellTable, ReportConditions, distinct, nothing_above
from dpframework.redescriptions.redescription import Redescription
from dpframework.results.noisy_count_with_interval import Noisy

SIDES = Equals("left", "a"), Equals("right", "b")


def cells_of(table: CellTable, left: np.ndarray, right: np.ndarray) -> tuple[list[tuple[int, int]], ...]:
    """Return the cells that both sides of a union hold in, and those that one side alone does."""
    cells = list(np.ndindex(*table.counts.shape))
    return [cell for cell in cells if left[cell[0]] and right[cell[1]]], [c for c in cells if left[c[0]] != right[c[1]]]


def counted(table: CellTable, cells: Iterable[tuple[int, int]]) -> float:
    return sum(table.counts[cell] for cell in cells)


def cautious_index(table: CellTable, left: np.ndarray, right: np.ndarray) -> float:
    """Return a union's Jaccard index less one deviation of its noise; 0 if it seems to have no row on both sides."""
    on_both, on_one = cells_of(table, left, right)
    both, apart = counted(table, on_both), max(counted(table, on_one), 0)
    index = max(both, 0) / max(both + apart, 1)
    spread = (1 - index) ** 2 * len(on_both) + index**2 * len(on_one)
    return index - math.sqrt(table.variance * spread) / max(both + apart, 1) if both > 0 else 0


def slowly_reported(table: CellTable, left: np.ndarray, right: np.ndarray, wanted: ReportConditions) -> list[int]:
    """Return what `CellTable.reported` does, one union after another."""
    rows = table.rows if table.rows is not None else table.counts.sum()
    least = rows / 50 if wanted.min_support is None else wanted.min_support
    most = 7 * rows / 10 if wanted.max_support is None else wanted.max_support
    found, on_both = {}, []
    for k, (of_left, of_right) in enumerate(zip(left, right, strict=True)):
        on_both.append(set(cells_of(table, of_left, of_right)[0]))
        both = counted(table, on_both[k])
        cautious = cautious_index(table, of_left, of_right)
        supported = both >= least and both > 4 * math.sqrt(table.variance * len(on_both[k]))
        bounded = max(table.counts[of_left].sum(), table.counts[:, of_right].sum()) <= most
        if supported and bounded and cautious >= wanted.min_jaccard:
            found[k] = cautious
    kept: list[int] = []
    for k in sorted(found, key=lambda k: -found[k]):
        shared = [counted(table, on_both[k] & on_both[other]) for other in kept]
        united = [counted(table, on_both[k]) + counted(table, on_both[other]) for other in kept]
        if all(5 * s < 4 * max(u - s, 1) for s, u in zip(shared, united, strict=True)):
            kept.append(k)
    return kept


@pytest.mark.parametrize("seed", range(8))
def test_what_is_reported_is_what_a_slow_reading_of_the_cells_reports(seed: int) -> None:
    """Views with different numbers of cells, negative counts, and a least index that some union has, or nearly."""
    rng, number = np.random.default_rng(seed), 0
    for _ in range(15):
        shape = rng.choice([2, 4, 8], size=2)
        counts = np.rint(rng.normal(0, 6, shape) + rng.choice([0, 5, 90], shape, p=[0.5, 0.2, 0.3]))
        left, right = (rng.random((25, cells)) < rng.choice([0.3, 0.5]) for cells in shape)
        table = CellTable(counts, float(rng.choice([0, 1, 9, 36])), rng.choice([None, int(rng.integers(1, 900))]))
        bounds = (rng.choice([None, int(rng.integers(low, high))]) for low, high in ((0, 200), (100, 900)))
        indices = [cautious_index(table, *sides) for sides in zip(left, right, strict=True)]
        wanted = ReportConditions(rng.choice(indices) + rng.choice([-1e-9, 1e-9]), *bounds)
        with np.errstate(all="raise"):
            found = table.reported(left, right, wanted)
        assert found == slowly_reported(table, left, right, wanted)
        number += len(found)
    assert number > 9


def test_a_union_s_counts_are_those_of_its_cells() -> None:
    rng = np.random.default_rng(2)
    table = CellTable(rng.integers(-5, 90, (4, 8)).astype(float), 9, None)
    for _ in range(20):
        left, right = rng.random(4) < 0.5, rng.random(8) < 0.5
        one = table.redescription(SIDES, left, right, 0.3)
        on_both, on_one = cells_of(table, left, right)
        assert one.both == Noisy(counted(table, on_both), 9 * len(on_both))
        assert one.apart == Noisy(counted(table, on_one), 9 * len(on_one))
        assert one.left_support == Noisy(table.counts[left].sum(), 9 * left.sum() * 8)
        assert one.right_support == Noisy(table.counts[:, right].sum(), 9 * right.sum() * 4)
        assert (one.rows, one.shown_from) == (table.total, table.shown_from(one.both, one.apart, 0.3))


def test_bounds_are_met_where_they_are_attained() -> None:
    """An index, supports and an overlap just at their bounds; 4 deviations of the noise are not enough."""
    mask = np.array([[False, True]])
    table = CellTable(np.array([[500.0, 25], [25, 50]]), 0, 600)
    assert table.reported(mask, mask, ReportConditions(0.5, 50, 75)) == [0]
    assert (
        table.reported(mask, mask, ReportConditions(0.5, 51, 75))
        == table.reported(mask, mask, ReportConditions(0.5, 50, 74))
        == []
    )
    for both, number in ((8, 0), (8.1, 1)):
        noisy = CellTable(np.array([[500.0, 0], [0, both]]), 4, 600)
        assert len(noisy.reported(mask, mask, ReportConditions(0, 0))) == number
    one_row = CellTable(np.diag([500.0, 1]), 0, 600)
    assert one_row.reported(mask.repeat(2, 0), mask.repeat(2, 0), ReportConditions(1, 1)) == [0], (
        "the same rows are no news"
    )
    masks = np.array([[0, 1, 0, 0], [0, 1, 1, 0]], dtype=bool)
    four_fifths = CellTable(np.diag([500.0, 80, 20, 0]), 0, 600)
    assert len(four_fifths.reported(masks, masks, ReportConditions(0))) == 1


def test_all_rows_are_the_public_ones_or_the_sum_of_the_cells() -> None:
    counts = np.arange(8.0).reshape(2, 4)
    assert CellTable(counts, 3, 100).total == Noisy(100, 0)
    assert CellTable(counts, 3, None).total == Noisy(28, 24)


@pytest.mark.parametrize(
    ("both", "apart"),
    [
        (Noisy(600, 400), Noisy(350, 800)),
        (Noisy(90, 100), Noisy(-20, 900)),
        (Noisy(0.2, 0.01), Noisy(-0.3, 0.02)),
        (Noisy(-0.4, 0.01), Noisy(0.7, 0.05)),
        (Noisy(50, 0), Noisy(20, 60)),
        (Noisy(-5, 2), Noisy(30, 8)),
        (Noisy(20, 2), Noisy(-5, 8)),
    ],
)
@pytest.mark.parametrize("least", [0.2, 0.5])
def test_shown_is_what_is_the_least_index_less_one_deviation(both: Noisy, apart: Noisy, least: float) -> None:
    """One row at least is taken to be on either side."""
    either = max(max(both.value, 0) + max(apart.value, 0), 1)

    def above(index: float) -> float:
        return index - math.sqrt((1 - index) ** 2 * both.variance + index**2 * apart.variance) / either - least

    found = CellTable(np.zeros((2, 2)), 1, None).shown_from(both, apart, least)
    assert found == pytest.approx(brentq(above, 0, 5), abs=2e-3)
    assert found > least


def slowly_shortest(table: CellTable, unions: np.ndarray, literals: list[float], axis: int) -> list[int]:
    """Return what `CellTable.shortest` does: a fiftieth of the rows, and 1.5 deviations of the cells that change."""
    cells, found = list(np.ndindex(*table.counts.shape)), list[int]()
    for k, one in enumerate(unions):
        fits = {}
        for other, tried in enumerate(unions):
            changed = [cell for cell in cells if one[cell[axis]] != tried[cell[axis]]]
            most = table.counts.sum() / 50 + 1.5 * math.sqrt(table.variance * len(changed))
            if literals[other] < literals[k] and counted(table, changed) < most:
                fits[other] = literals[other], counted(table, changed)
        found.append(min(fits, key=lambda other: fits[other]) if fits else k)
    return found


@pytest.mark.parametrize("variance", [0.0, 40.0, 4000.0])
def test_the_shortest_union_of_nearly_the_same_rows_stands_for_a_longer_one(variance: float) -> None:
    rng = np.random.default_rng(11)
    unions = np.array([(number >> np.arange(4)) & 1 == 1 for number in range(1, 15)])
    some = set()
    for axis in (0, 1):
        for _ in range(10):
            counts = np.round(rng.exponential(60, (4, 4)) * (rng.random((4, 4)) < 0.5))
            table, literals = CellTable(counts, variance, None), [float(n) for n in rng.integers(1, 4, 14)]
            literals[3] = math.inf
            short = table.shortest(unions, literals, axis)
            assert short == slowly_shortest(table, unions, literals, axis)
            some |= {one == k for k, one in enumerate(short)}
    assert some == {True, False}


def test_why_nothing_is_reported() -> None:
    assert nothing_above(Fraction(1, 3)) == (
        "None was clearly above a Jaccard index of 0.333333 within the bounds on the supports: "
        "lower target_jaccard to look for weaker ties."
    )


def test_where_noise_hides_nearly_all_supports_a_lower_index_is_no_remedy() -> None:
    """Four deviations of 75 rows are 300, all that 1,000 rows are likely to hold; of 150 rows they are twice that."""
    assert nothing_above(Fraction(1, 2), 75.0**2, 1000) == nothing_above(Fraction(1, 2))
    assert nothing_above(Fraction(1, 2), 150.0**2, 1000) == (
        "Noise hides every support below 600 rows, of about 1,000 in all, so that hardly anything can be found. "
        "Try 2 times the epsilon, or 2 times the rows."
    )
    assert "of about 1 in all" in nothing_above(Fraction(1, 2), 4.0, -30)


def test_of_one_pair_of_descriptions_the_first_with_the_least_noise_is_kept() -> None:
    noisy, exact, again = (
        Redescription(*SIDES, both=Noisy(value, variance), apart=Noisy(5, 1))
        for value, variance in ((9, 4), (8, 1), (7, 1))
    )
    other = attrs.evolve(noisy, left=SIDES[1])
    assert distinct([noisy, other, exact, again]) == [exact, other]
    assert distinct([exact, noisy, again]) == [exact]


def test_rows_that_two_unions_share_may_seem_to_be_all_and_more() -> None:
    """Noise makes cells negative: of 2 rows in both unions, and -1 in either alone, none seem to be left."""
    left = np.array([[0, 1, 1, 0], [0, 1, 0, 1]], dtype=bool)
    right = np.array([[False, True]] * 2)
    assert CellTable(np.array([[500.0, 0], [0, 2], [0, -1], [0, -1]]), 0, 600).reported(
        left, right, ReportConditions(0.9, 1)
    ) == [0]
