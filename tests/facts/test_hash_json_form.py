"""Values as JSON content for a hash: exact, and the same for equal values."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import given, strategies as st

from dpframework.facts.hash_json_form import exact_form

PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.text())
JSON = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=9)


def refuse(value: Any) -> Any:
    raise TypeError(type(value))


@given(JSON)
def test_json_content_stays_as_it_is(content: Any) -> None:
    assert exact_form(content, refuse) == content


@given(st.fractions() | st.floats(allow_nan=False) | st.decimals(allow_nan=False))
def test_no_digit_of_a_number_is_lost(number: Fraction | float | Decimal) -> None:
    (form,) = exact_form((number,), refuse)
    assert type(number)(form) == number
    assert json.loads(json.dumps(form)) == form


@given(st.dictionaries(st.integers(), st.fractions()))
def test_keys_become_texts(table: dict[int, Fraction]) -> None:
    assert exact_form(table, refuse) == {str(key): str(value) for key, value in table.items()}


def test_anything_else_is_written_by_the_given_function() -> None:
    assert exact_form([{1}, {"a": b"x"}], lambda value: type(value).__name__) == ["set", {"a": "bytes"}]
