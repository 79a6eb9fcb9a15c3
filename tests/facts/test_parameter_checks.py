"""Parameters of miners: what is accepted, and the one sentence that refuses the rest."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import attrs
import pytest

from dpframework.facts import Boolean, InputError, Schema, View
from dpframework.facts.attributes_by_side import attributes_of_side, attributes_of_views
from dpframework.facts.parameter_checks import (
    between_0_and_1,
    from_0_to_1,
    is_whole_number,
    list_of_names,
    named_once,
    one_of,
    share_of_budget,
    true_or_false,
    whole_number,
)


@attrs.frozen(kw_only=True)
class Parameters:
    context: str = attrs.field(default="common", validator=one_of(("common", "baseline")))
    depth: int = attrs.field(default=3, validator=whole_number(most=6))
    age: int = attrs.field(default=0, validator=whole_number(0))
    rounds: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole_number()))
    sharing: bool = attrs.field(default=True, validator=true_or_false)
    least: float = attrs.field(default=0.5, validator=from_0_to_1)
    share: Fraction = attrs.field(default="1/2", converter=share_of_budget, validator=between_0_and_1)
    left: tuple[str, ...] | None = attrs.field(default=None, converter=list_of_names)


@pytest.mark.parametrize(
    ("field", "given", "kept"),
    [
        ("context", "baseline", "baseline"),
        ("depth", 1, 1),
        ("depth", 6, 6),
        ("age", 0, 0),
        ("rounds", 1, 1),
        ("rounds", None, None),
        ("sharing", False, False),
        ("least", 0, 0),
        ("least", 1, 1),
        ("share", 0.1, Fraction(1, 10)),
        ("share", "2/3", Fraction(2, 3)),
        ("left", ["wolf", "bear"], ("wolf", "bear")),
        ("left", iter(["wolf"]), ("wolf",)),
        ("left", [], ()),
        ("left", None, None),
    ],
)
def test_what_is_within_bounds_is_kept(field: str, given: Any, kept: Any) -> None:
    assert getattr(Parameters(**{field: given}), field) == kept


@pytest.mark.parametrize(
    ("field", "given", "sentence"),
    [
        ("context", "comon", "context 'comon' is unknown; did you mean 'common'?"),
        ("context", None, "context None is unknown; known: baseline, common"),
        ("depth", 0, "depth is 0; a whole number from 1 to 6 is needed"),
        ("depth", 7, "depth is 7; a whole number from 1 to 6 is needed"),
        ("depth", True, "depth is True; a whole number from 1 to 6 is needed"),
        ("depth", 2.0, "depth is 2.0; a whole number from 1 to 6 is needed"),
        ("age", -1, "age is -1; a whole number from 0 on is needed"),
        ("rounds", 0, "rounds is 0; a positive whole number is needed"),
        ("rounds", "3", "rounds is '3'; a positive whole number is needed"),
        ("sharing", 1, "sharing is 1; true or false is needed"),
        ("least", -0.1, "least is -0.1; a number from 0 to 1 is needed"),
        ("least", 1.1, "least is 1.1; a number from 0 to 1 is needed"),
        ("least", float("nan"), "least is nan; a number from 0 to 1 is needed"),
        ("least", True, "least is True; a number from 0 to 1 is needed"),
        ("share", 0, "share is 0.0; a number between 0 and 1 is needed"),
        ("share", 1, "share is 1.0; a number between 0 and 1 is needed"),
        ("share", "most", "a share of the budget is 'most'; write a finite number, such as 0.5"),
        ("left", "wolf", "'wolf' is one text; give a list of names"),
    ],
)
def test_what_is_not_is_refused_with_the_fields_name(field: str, given: Any, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        Parameters(**{field: given})
    assert str(caught.value) == sentence


def test_a_whole_number_is_an_int_and_no_bool() -> None:
    assert is_whole_number(0, 0)
    assert not is_whole_number(0)
    assert is_whole_number(10**30)
    assert not is_whole_number(4, most=3)
    assert not any(is_whole_number(value, 0) for value in (True, 1.0, "1", None, Fraction(1)))


def test_a_name_given_twice_is_refused() -> None:
    named_once("right", ("zone", "rain"))
    with pytest.raises(InputError, match="right names an attribute twice; name each once"):
        named_once("right", ["zone", "rain", "zone"])


SIDES = Schema([Boolean("wolf", view="left"), Boolean("fox"), Boolean("bear", view="left")])


def test_a_side_has_the_attributes_of_its_view_or_those_that_are_named() -> None:
    assert attributes_of_side(SIDES, View.LEFT) == (SIDES["wolf"], SIDES["bear"])
    assert attributes_of_side(SIDES, View.RIGHT, iter(["fox", "wolf"])) == (SIDES["fox"], SIDES["wolf"])


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (None, "the schema has no attribute of the right view; redescriptions need two views"),
        ((), "right names no attribute; name one or more, or leave it out for the schema's right view"),
        (["fox", "wof"], "attribute 'wof' is not in the schema; did you mean 'wolf'?"),
        (["fox", "fox"], "right names an attribute twice; name each once"),
    ],
)
def test_a_side_that_cannot_be_is_refused_in_a_sentence(names: Any, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        attributes_of_side(SIDES, View.RIGHT, names)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("view", ["left", "right"])
def test_a_two_view_table_has_attributes_of_both_views(view: str) -> None:
    other = "right" if view == "left" else "left"
    with pytest.raises(InputError, match=f"no attribute of the {view} view; a two-view table needs one"):
        attributes_of_views(Schema([Boolean("wolf", view=other)]))
