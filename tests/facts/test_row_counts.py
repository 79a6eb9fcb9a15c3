"""The public numbers of rows that a schema may state: whole, not too many, and in agreement."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from dpframework.facts import InputError
from dpframework.facts.value_checks import MOST_ROWS, check_counts

COUNT = st.integers(1, 50)


@given(COUNT | st.none(), COUNT | st.none(), COUNT | st.none())
def test_counts_are_kept_where_a_table_could_have_them(rows: Any, max_rows: Any, about_rows: Any) -> None:
    given_counts = {"rows": rows, "max_rows": max_rows, "about_rows": about_rows}
    known = {name: count for name, count in given_counts.items() if count is not None}
    over = max_rows is not None and any(count is not None and count > max_rows for count in (rows, about_rows))
    if over or None not in (rows, about_rows):
        with pytest.raises(InputError):
            check_counts(rows, max_rows, about_rows)
    else:
        assert check_counts(rows, max_rows, about_rows) == known


@pytest.mark.parametrize("name", ["rows", "max_rows", "about_rows"])
@pytest.mark.parametrize("count", [0, -1, 1.5, True, MOST_ROWS + 1])
def test_a_count_that_no_table_has_is_refused_by_name(name: str, count: Any) -> None:
    with pytest.raises(InputError, match=name):
        check_counts(**{"rows": None, "max_rows": None, "about_rows": None, name: count})


def test_the_most_rows_are_accepted() -> None:
    assert check_counts(MOST_ROWS, MOST_ROWS, None) == {"rows": MOST_ROWS, "max_rows": MOST_ROWS}
