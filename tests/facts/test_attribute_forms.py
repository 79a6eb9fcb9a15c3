"""Attributes read from their forms: each form gives the attribute that wrote it, or a sentence that names the fault."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from dpframework.facts import Attribute, Boolean, Categorical, InputError, Numeric, Open
from dpframework.facts.schema_text import attribute_from_dict

VALUES = st.lists(st.text("abcde", min_size=1), min_size=2, unique=True)
ATTRIBUTES = st.one_of(
    st.builds(Boolean, st.just("a"), missing=st.booleans()),
    st.builds(Categorical, st.just("a"), VALUES, missing=st.booleans()),
    st.builds(Numeric, st.just("a"), st.integers(-9, 0), st.integers(1, 9), bins=st.integers(1, 9)),
    st.builds(Open, st.just("a")),
)


@given(ATTRIBUTES)
def test_the_form_of_an_attribute_gives_the_attribute(attribute: Attribute) -> None:
    assert attribute_from_dict(attribute.to_dict(), 1) == attribute


@given(ATTRIBUTES, st.integers(1, 99))
def test_a_form_without_a_fact_that_it_needs_is_refused(attribute: Attribute, position: int) -> None:
    form = attribute.to_dict()
    needed = {"boolean": [], "open": [], "categorical": ["values"], "numeric": ["lower", "upper"]}[attribute.kind]
    for key in ("name", "kind", *needed):
        left = {name: fact for name, fact in form.items() if name != key}
        with pytest.raises(InputError, match=f"number {position}.*no name" if key == "name" else key):
            attribute_from_dict(left, position)


@given(ATTRIBUTES)
def test_a_key_that_the_kind_does_not_have_is_refused(attribute: Attribute) -> None:
    with pytest.raises(InputError, match=r"'a'.*colour"):
        attribute_from_dict({**attribute.to_dict(), "colour": "red"}, 1)


@pytest.mark.parametrize("form", [None, "age", ["name", "age"]])
def test_what_is_no_table_is_refused_by_its_position(form: object) -> None:
    with pytest.raises(InputError, match="number 3 must be a table"):
        attribute_from_dict(form, 3)
