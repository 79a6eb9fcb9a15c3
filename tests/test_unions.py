"""Redescriptions read off a table of cells, against the same said slowly: one union, one cell after another."""

from __future__ import annotations

import math
from fractions import Fraction

import attrs
import numpy as np
import pytest
from scipy.optimize import brentq

from dpframework.facts.descriptions import Equals
from dpframework.results.noisy import Noisy
from dpframework.results.redescription import Redescription
from dpframework.results.unions import CellTable, Wanted, distinct, nothing_above

SIDES = Equals("left", "a"), Equals("right", "b")


def slowly_reported(table: CellTable, left: np.ndarray, right: np.ndarray, wanted: Wanted) -> list[int]:
    """Return what `CellTable.reported` does."""
    counts = {(a, b): table.counts[a, b] for a, b in np.ndindex(*table.counts.shape)}
    rows = max(table.rows if table.rows is not None else sum(counts.values()), 1)
    least = rows / 50 if wanted.min_support is None else wanted.min_support
    most = 7 * rows / 10 if wanted.max_support is None else wanted.max_support
    cautious, of_both = {}, {}
    for k, (of_left, of_right) in enumerate(zip(left, right, strict=True)):
        one = table.redescription(SIDES, of_left, of_right, wanted.min_jaccard)
        of_both[k] = {(a, b) for a, b in counts if of_left[a] and of_right[b]}
        one_side = {(a, b) for a, b in counts if of_left[a] != of_right[b]}
        both, apart = (sum(counts[cell] for cell in cells) for cells in (of_both[k], one_side))
        supports = [
            sum(counts[cell] for cell in counts if held[cell[side]]) for side, held in ((0, of_left), (1, of_right))
        ]
        either = max(max(both, 0) + max(apart, 0), 1)
        index = max(both, 0) / either
        spread = (1 - index) ** 2 * len(of_both[k]) + index**2 * len(one_side)
        index -= math.sqrt(table.variance * spread) / either
        supported = both >= least and both > 4 * math.sqrt(table.variance * len(of_both[k]))
        if index >= wanted.min_jaccard and supported and max(supports) <= most:
            cautious[k] = index
        assert (one.both.value, one.apart.value, one.left_support.value, one.right_support.value) == (
            both,
            apart,
            *supports,
        )
        assert one.both.variance == table.variance * len(of_both[k])
        assert one.apart.variance == table.variance * len(one_side)
    kept: list[int] = []
    for k in sorted(cautious, key=lambda k: -cautious[k]):
        shared = [sum(counts[cell] for cell in of_both[k] & of_both[other]) for other in kept]
        united = [
            sum(counts[cell] for cell in of_both[k]) + sum(counts[cell] for cell in of_both[other]) for other in kept
        ]
        if all(4 * s < 3 * max(u - s, 1) for s, u in zip(shared, united, strict=True)):
            kept.append(k)
    return kept


@pytest.mark.parametrize("seed", range(12))
def test_what_is_reported_is_what_a_slow_reading_of_the_cells_reports(seed: int) -> None:
    """Views with different numbers of cells, negative counts, with and without a public number of rows."""
    rng, number = np.random.default_rng(seed), 0
    for _ in range(12):
        shape = rng.choice([2, 4, 8], size=2)
        counts = np.rint(rng.normal(0, 6, shape) + rng.choice([0, 5, 90], shape, p=[0.5, 0.2, 0.3]))
        left, right = (rng.random((25, cells)) < rng.choice([0.3, 0.5]) for cells in shape)
        rows = None if rng.random() < 0.5 else int(rng.integers(1, 900))
        bounds = [
            None if rng.random() < 0.4 else int(bound) for bound in (rng.integers(0, 200), rng.integers(100, 900))
        ]
        table = CellTable(counts, float(rng.choice([0, 1, 9, 36])), rows)
        wanted = Wanted(rng.choice([0.0, 0.2, 0.5]), *bounds)
        found = table.reported(left, right, wanted)
        assert found == slowly_reported(table, left, right, wanted)
        number += len(found)
    assert number > 9


def test_bounds_are_met_where_they_are_attained() -> None:
    """An index, supports and an overlap just at their bounds; 4 deviations of the noise are not enough."""
    mask = np.array([[False, True]])
    table = CellTable(np.array([[500.0, 25], [25, 50]]), 0, 600)
    assert table.reported(mask, mask, Wanted(0.5, 50, 75)) == [0]
    assert table.reported(mask, mask, Wanted(0.5, 51, 75)) == table.reported(mask, mask, Wanted(0.5, 50, 74)) == []
    for both, number in ((8, 0), (8.1, 1)):
        noisy = CellTable(np.array([[500.0, 0], [0, both]]), 4, 600)
        assert len(noisy.reported(mask, mask, Wanted(0, 0))) == number
    masks = np.array([[0, 1, 0, 0], [0, 1, 1, 0]], dtype=bool)
    three_quarters = CellTable(np.diag([500.0, 75, 25, 0]), 0, 600)
    assert len(three_quarters.reported(masks, masks, Wanted(0))) == 1


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


def test_why_nothing_is_reported() -> None:
    assert nothing_above(Fraction(1, 3)) == (
        "None was clearly above a Jaccard index of 0.333333 within the bounds on the supports: "
        "lower target_jaccard to look for weaker ties."
    )


def test_of_one_pair_of_descriptions_the_first_with_the_least_noise_is_kept() -> None:
    noisy, exact, again = (
        Redescription(*SIDES, both=Noisy(value, variance), apart=Noisy(5, 1))
        for value, variance in ((9, 4), (8, 1), (7, 1))
    )
    other = attrs.evolve(noisy, left=SIDES[1])
    assert distinct([noisy, other, exact, again]) == [exact, other]
    assert distinct([exact, noisy, again]) == [exact]
