"""The places of rows within their units: found when they are read, once, and by whatever thread."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpframework.tables.places_in_unit import RowPlaces, as_row_places

PLACES = st.lists(st.integers(0, 9)).map(lambda given: np.array(given, dtype=np.uint8))


class Counting:
    """Finds places, and counts how often."""

    def __init__(self, places: Any) -> None:
        self.places, self.times = places, 0

    def __call__(self) -> Any:
        self.times += 1
        return self.places


@given(PLACES, st.integers(0, 9), st.integers(0, 9))
def test_a_slice_has_the_places_of_its_own_rows(places: Any, start: int, stop: int) -> None:
    find = Counting(places)
    one = RowPlaces(find)
    part = one[start:stop]
    assert find.times == 0  # until they are read
    assert part.array.tolist() == places[start:stop].tolist()
    assert one.array.tolist() == places.tolist()
    assert find.times == 1


def test_threads_find_the_places_once() -> None:
    find = Counting(np.arange(9))
    one = RowPlaces(find)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda k: int(one.array[k]), range(9)))
    assert found == list(range(9))
    assert find.times == 1


def test_places_cannot_be_written() -> None:
    places = np.arange(3)
    with pytest.raises(ValueError, match="read-only"):
        RowPlaces.of(places).array[0] = 1
    places[0] = 5  # who gave them still may


@given(PLACES)
def test_places_pickle_as_what_was_found(places: Any) -> None:
    again = pickle.loads(pickle.dumps(RowPlaces(lambda: places)))
    assert again.array.tolist() == places.tolist()


def test_an_array_is_of_places_that_are_known() -> None:
    one = RowPlaces.of([1, 2])
    assert as_row_places(one) is one
    assert as_row_places(None) is None
    found = as_row_places([0, 1])
    assert found is not None
    assert found.array.tolist() == [0, 1]
