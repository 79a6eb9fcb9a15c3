"""Lists in sentences: the first names, and what is left of them."""

from __future__ import annotations

from hypothesis import given, strategies as st

from dpframework.facts.phrases import count_text, first_names, first_of

NAMES = st.lists(st.text("abc", min_size=1), max_size=9)


@given(NAMES, st.integers(1, 9))
def test_no_more_names_are_shown_than_asked_for(names: list[str], most: int) -> None:
    shown = ", ".join(names[:most])
    left = len(names) - most
    assert first_of(names, most) == (f"{shown}, ..." if left > 0 else shown)
    assert first_names(names, most) == (f"{shown} and {left} more" if left > 0 else shown)


@given(st.integers(0, 1000))
def test_only_one_thing_is_in_the_singular(number: int) -> None:
    assert count_text(number, "step") == f"{number} step" + "s" * (number != 1)
    assert count_text(number, "entry", "entries") == f"{number} {'entry' if number == 1 else 'entries'}"
