"""Caches of counts that belong together: each part sees the whole, and all parts but itself."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from hypothesis import given, strategies as st

from dpframework.tables.engine_base import RelatedCaches


@given(st.integers(1, 6))
def test_each_part_sees_all_others_once_in_order(number: int) -> None:
    whole: dict[Hashable, Any] = {"whole": 0}
    parts: list[dict[Hashable, Any]] = [{k: k} for k in range(number)]
    for position in range(number):
        found, others = RelatedCaches(whole, parts, position).of_others()
        assert found is whole
        assert [next(iter(one)) for one in others] == [k for k in range(number) if k != position]


def test_a_count_that_is_added_later_is_seen_by_the_others() -> None:
    parts: list[dict[Hashable, Any]] = [{}, {}]
    one, other = (RelatedCaches({}, parts, k) for k in range(2))
    parts[0]["n"] = 5
    assert other.of_others()[1] == [{"n": 5}]
    assert one.of_others()[1] == [{}]
