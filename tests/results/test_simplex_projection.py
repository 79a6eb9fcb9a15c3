"""The closest non-negative numbers with a sum: against every way to keep some of them, and any others with that sum."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpframework.results.simplex_projection import nearest_on_simplex

NUMBERS = st.lists(st.integers(-1000, 1000).map(lambda k: k / 8), min_size=1, max_size=6)


def nearest_of_all(values: np.ndarray, total: float) -> np.ndarray:
    """Return the nearest point of the simplex: for each set of numbers kept, the same is added to all of these."""
    points = []
    for size in range(1, len(values) + 1):
        for some in itertools.combinations(range(len(values)), size):
            point, kept = np.zeros(len(values)), list(some)
            point[kept] = values[kept] + (total - values[kept].sum()) / size
            if point.min() >= 0:
                points.append(point)
    return min(points, key=lambda point: float(((point - values) ** 2).sum()))


@given(NUMBERS, st.integers(0, 400).map(lambda k: k / 4))
def test_it_is_the_nearest_point_of_the_simplex(numbers: list[float], total: float) -> None:
    values = np.array(numbers)
    found = nearest_on_simplex(values, total)
    assert found.sum() == pytest.approx(total, abs=1e-9)
    assert found.min() >= 0
    assert found == pytest.approx(nearest_of_all(values, total), abs=1e-9)


def test_no_other_point_is_nearer() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = rng.normal(0, 2, 5)
        found = nearest_on_simplex(values, 1.0)
        others = rng.dirichlet(np.ones(5), 2000)
        assert np.square(found - values).sum() <= np.square(others - values).sum(axis=1).min() + 1e-12


def test_each_row_is_by_itself() -> None:
    values = np.random.default_rng(0).normal(0, 2, (3, 4, 5))
    found = nearest_on_simplex(values, 2.0)
    for at in np.ndindex(3, 4):
        assert found[at] == pytest.approx(nearest_on_simplex(values[at], 2.0))


def test_numbers_on_the_simplex_stay() -> None:
    assert nearest_on_simplex(np.array([0.0, 2, 5]), 7.0).tolist() == [0, 2, 5]
    assert nearest_on_simplex(np.array([-3.0, 4]), 0.0).tolist() == [0, 0]
