"""How far rows that are added move entropies: on every small table, and by the formula of the derivation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import pytest

from dpframework.queries.entropy_sensitivity import entropy_change


def f(number: float) -> float:
    return number * math.log2(number) if number else 0.0


def entropy(counts: tuple[int, ...]) -> float:
    """Return N H(Y) of N rows by their value of Y."""
    return f(sum(counts)) - sum(map(f, counts))


def spread(total: int, cells: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to deal out so many rows to cells."""
    for ends in itertools.combinations(range(total + cells - 1), cells - 1):
        edges = (-1, *ends, total + cells - 1)
        yield tuple(high - low - 1 for low, high in itertools.pairwise(edges))


def seen(rows: int, group: int, values: int) -> float:
    """Return the most that N H(Y) grows on any table that has at most so many rows after."""
    return max(
        entropy(tuple(a + b for a, b in zip(before, added, strict=True))) - entropy(before)
        for number in range(min(group, rows) + 1)
        for before in spread(rows - number, values)
        for added in spread(number, values)
    )


def derived(rows: int, group: int, values: int) -> float:
    """Return the bound of the module, as it stands there: the largest of a whole m."""
    return max(
        f(rows) - f(rows - m) - f(m) + m * math.log2(m) - max(0.0, m * math.log2(m / max(values - 1, 1)))
        for m in range(1, min(group, rows) + 1)
    )


@pytest.mark.parametrize("values", [2, 3, 4])
@pytest.mark.parametrize("group", [1, 2, 3, 5])
def test_no_small_table_moves_further_and_some_as_far(group: int, values: int) -> None:
    for rows in range(2, 7):
        claimed, found = entropy_change(rows, group, values), seen(rows, group, values)
        assert claimed >= found - 1e-12
        if group <= values - 1 or values == 2:  # rows that are added can share the other values evenly
            assert claimed == pytest.approx(found, abs=1e-12)


@pytest.mark.parametrize("values", [2, 3, 4, 10, 50])
@pytest.mark.parametrize("rows", [2, 3, 4, 7, 10, 33, 100, 1001])
def test_the_bound_is_the_largest_of_all_whole_numbers_of_rows(rows: int, values: int) -> None:
    for group in (1, 2, 3, 5, 8, 30, 31, 49, 60, rows - 1, rows, 2 * rows):
        assert entropy_change(rows, group, values) == pytest.approx(derived(rows, group, values), rel=1e-12)


def test_many_values_move_it_furthest() -> None:
    """By as many rows as are added, each with a value of its own; and one row moves it alike whatever they are."""
    for rows in (2, 5, 40):
        for group in (1, 3, 50):
            most = min(group, rows)
            assert entropy_change(rows, group) == pytest.approx(f(rows) - f(rows - most), rel=1e-12)
            assert entropy_change(rows, group) == pytest.approx(entropy_change(rows, group, most + 1), rel=1e-12)
        assert entropy_change(rows) == entropy_change(rows, 1, 2) == entropy_change(rows, 1, 1)


def test_one_row_has_no_entropy_and_one_is_claimed() -> None:
    assert [entropy_change(rows) for rows in (0, 1)] == [1.0, 1.0]
    assert entropy_change(10**9) == pytest.approx(math.log2(10**9) + math.log2(math.e), rel=1e-9)
