"""Literals, descriptions and the disjoint parts that they cut."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import dpframework as dpf
from dpframework.facts.description_overlaps import first_overlap
from dpframework.facts.description_simplifier import Shortener, otherwise, shorten
from dpframework.facts.logical_descriptions_of_rows import (
    And,
    Below,
    Cases,
    Description,
    Equals,
    Not,
    Or,
    description_from_dict,
)

SCHEMA = dpf.Schema(
    [
        dpf.Boolean("ill"),
        dpf.Categorical("sex", ["Female", "Male"], missing=True),
        dpf.Numeric("age", 0, 100, cuts=[30, 60], missing=True),
    ]
)
AGES = [0.0, 29.5, 30.0, 45.0, 60.0, 100.0, np.nan]
ROWS = list(itertools.product([0, 1], [0, 1, 2], AGES))
CODES = [
    [r[0] for r in ROWS],
    [r[1] for r in ROWS],
    [3 if np.isnan(r[2]) else (r[2] >= 30) + (r[2] >= 60) for r in ROWS],
]
TABLE = dpf.Table.from_codes(SCHEMA, CODES, {"age": [r[2] for r in ROWS]})
(BLOCK,) = dpf.InMemory().load(TABLE)

literals = st.one_of(
    st.builds(Equals, st.just("ill"), st.sampled_from(["false", "true"])),
    st.builds(Equals, st.just("sex"), st.sampled_from(["Female", "Male", "missing"])),
    st.builds(Equals, st.just("age"), st.sampled_from(["[0, 30)", "[60, 100]", "missing"])),
    st.builds(Below, st.just("age"), st.sampled_from([-5, 0, 29.5, 30, 45, 60, 100, 101])),
)
descriptions = st.recursive(
    literals,
    lambda inner: st.one_of(
        st.builds(Not, inner), st.builds(And, st.lists(inner, max_size=3)), st.builds(Or, st.lists(inner, max_size=3))
    ),
    max_leaves=6,
)


def by_hand(description: Any, row: tuple[int, int, float]) -> bool | None:
    """Evaluate a description on one row, the slow way; None if a missing value leaves it open."""
    match description:
        case Not():
            inner = by_hand(description.part, row)
            return None if inner is None else not inner
        case And() | Or():
            parts = [by_hand(p, row) for p in description.parts]
            decisive = isinstance(description, Or)
            return decisive if decisive in parts else None if None in parts else not decisive
    missing = row[1] == 2 if description.attribute == "sex" else description.attribute == "age" and np.isnan(row[2])
    if isinstance(description, Equals) and description.value == "missing":
        return bool(missing)
    if missing:
        return None
    match description:
        case Below():
            return bool(row[2] < description.threshold)
        case Equals(attribute="age"):
            low, high = {"[0, 30)": (0, 30), "[60, 100]": (60, 101)}[description.value]
            return bool(low <= row[2] < high)
    position = SCHEMA.index(description.attribute)
    return SCHEMA[description.attribute].labels[row[position]] == description.value  # type: ignore[call-overload]


@given(descriptions)
def test_descriptions_hold_row_by_row(description: Description) -> None:
    assert description.holds(BLOCK).tolist() == [by_hand(description, row) is True for row in ROWS]
    assert description.fails(BLOCK).tolist() == [by_hand(description, row) is False for row in ROWS]


@given(descriptions)
def test_descriptions_survive_json(description: Description) -> None:
    import json

    assert description_from_dict(json.loads(json.dumps(description.to_dict()))) == description
    assert isinstance(str(description), str)


@given(descriptions)
@settings(max_examples=400)
def test_shortened_descriptions_hold_for_the_same_rows(description: Description) -> None:
    """The rows visit every cell that values and thresholds make, so they stand for any table of the schema."""
    short = shorten(description, SCHEMA)
    assert (short.holds(BLOCK) == description.holds(BLOCK)).all()
    assert len(short.literals()) <= len(description.literals())
    assert shorten(short, SCHEMA) == short
    assert (shorten(Not(description), SCHEMA).holds(BLOCK) == description.fails(BLOCK)).all()


@given(literals)
def test_otherwise_holds_for_all_rows_that_a_test_does_not_hold_for(test: Any) -> None:
    other = otherwise(test, SCHEMA[test.attribute])
    assert (other.holds(BLOCK) == ~test.holds(BLOCK)).all()
    assert (shorten(other, SCHEMA).holds(BLOCK) == other.holds(BLOCK)).all()


ZONES = dpf.Schema([dpf.Categorical("zone", list("nesw")), dpf.Numeric("rain", 0, 9, cuts=[3, 5])])
NORTH, EAST, SOUTH, WEST = (Equals("zone", zone) for zone in "nesw")
DRY, DAMP, WET = Below("rain", 3), Below("rain", 5), Not(Below("rain", 5))


@pytest.mark.parametrize(
    ("description", "text"),
    [
        (Or([DRY, DAMP]), "rain < 5"),
        (And([DRY, DAMP]), "rain < 3"),
        (And([Not(DRY), WET]), "rain >= 5"),
        (And([Not(Below("rain", 1)), DAMP, Not(DRY)]), "rain < 5 and rain >= 3"),
        (And([DRY, WET]), "never"),
        (Or([DAMP, Not(DRY)]), "always"),
        (Equals("rain", "[3, 5)"), "rain = [3, 5)"),
        (Or([Equals("rain", "[3, 5)"), DAMP]), "rain < 5"),
        (And([NORTH, EAST]), "never"),
        (And([NORTH, Not(EAST)]), "zone = n"),
        (Or([NORTH, Not(EAST)]), "zone != e"),
        (And([Not(NORTH), Not(EAST), Not(WEST)]), "zone = s"),
        (Or([NORTH, EAST, WEST]), "zone != s"),
        (Or([NORTH, EAST]), "zone = n or zone = e"),
        (Or([NORTH, And([NORTH, DRY])]), "zone = n"),
        (Or([NORTH, And([Not(NORTH), DRY])]), "zone = n or rain < 3"),
        (And([NORTH, Or([NORTH, DRY])]), "zone = n"),
        (And([NORTH, Or([EAST, And([DRY, Not(SOUTH)])])]), "zone = n and rain < 3"),
        (Or([And([DRY, NORTH]), And([DRY, NORTH, DAMP])]), "rain < 3 and zone = n"),
        (Not(And([DRY, Not(NORTH)])), "rain >= 3 or zone = n"),
        (And([]), "always"),
        (Or([And([]), NORTH]), "always"),
    ],
)
def test_implied_tests_are_left_out(description: Description, text: str) -> None:
    assert str(shorten(description, ZONES)) == text


def test_one_shortener_serves_many_descriptions() -> None:
    shortener = Shortener(ZONES, [DRY, DAMP, NORTH])
    assert str(shortener.shorten(Or([DRY, DAMP]))) == "rain < 5"
    assert str(shortener.shorten(And([Not(DRY), NORTH, Not(DAMP)]))) == "rain >= 5 and zone = n"


@given(st.lists(descriptions, max_size=4))
def test_cases_put_each_row_in_one_cell(parts: list[Description]) -> None:
    cases = Cases(parts)
    cells = cases.cells(BLOCK)
    for row, cell in zip(ROWS, cells, strict=True):
        holding = [k for k, part in enumerate(parts) if by_hand(part, row)]
        assert cell == (holding[0] if holding else len(parts))
    assert len(cases.labels) == len(parts) + 1
    assert cases.labels[-1] == "otherwise"


@given(st.lists(descriptions, min_size=2, max_size=3))
def test_overlaps_are_found(parts: list[Description]) -> None:
    """Exactly those that some row shows; the rows above visit every cell of the grid and thresholds."""
    masks = [[by_hand(part, row) is True for row in ROWS] for part in parts]
    shown = [(i, j) for i, j in itertools.combinations(range(len(parts)), 2) if np.any(np.array(masks[i]) & masks[j])]
    found = first_overlap(parts, SCHEMA)
    assert found == (shown[0] if shown else None)


def test_parts_are_compared_on_as_many_cells_as_are_allowed() -> None:
    parts = [Equals("ill", "true"), Equals("sex", "Male")]
    assert first_overlap(parts, SCHEMA, 6) == (0, 1)
    with pytest.raises(dpf.InputError, match="parts over 2 attributes span 6 cells, too many to compare"):
        first_overlap(parts, SCHEMA, 5)


def test_parts_without_an_attribute() -> None:
    assert first_overlap([And([]), Or([])], SCHEMA) is None
    assert first_overlap([And([]), And([])], SCHEMA) == (0, 1)
    assert first_overlap([And([])], SCHEMA) is None
    nested = [Or([And([]), Equals("age", "missing")]), Equals("age", "missing")]
    assert first_overlap(nested, SCHEMA) == (0, 1)


def test_parts_may_overlap_in_the_end_of_a_range_alone() -> None:
    ages = dpf.Schema([dpf.Numeric("age", 0, 100, cuts=[50])])
    for at_the_end, around in (
        (Not(Below("age", 100)), Not(Below("age", 60))),
        (Below("age", 1e-9), Below("age", 40)),
    ):
        assert first_overlap([at_the_end, around], ages) == (0, 1)
        assert first_overlap([at_the_end, Not(around)], ages) is None


def test_too_many_cells_to_compare_is_an_input_error() -> None:
    wide = dpf.Schema([dpf.Categorical(f"c{k}", [str(v) for v in range(30)]) for k in range(5)])
    with pytest.raises(dpf.InputError, match="too many to compare; use Cases"):
        first_overlap([And(Equals(f"c{k}", "0") for k in range(5)), And(Equals(f"c{k}", "1") for k in range(5))], wide)


def test_thresholds_off_the_grid_use_raw_values() -> None:
    assert Below("age", 45).holds(BLOCK).sum() == 3 * 6
    assert Below("age", 30).holds(BLOCK).sum() == 2 * 6
    assert Below("age", 30.0).to_dict() == {"below": ["age", 30.0]}


@pytest.mark.parametrize(
    ("description", "text"),
    [
        (Equals("sx", "Male"), "did you mean 'sex'"),
        (Equals("sex", "male"), "did you mean 'Male'"),
        (Below("sex", 3), "a threshold needs a numeric one"),
        (Below("agee", 3), "did you mean 'age'"),
    ],
)
def test_wrong_literals_are_named(description: Description, text: str) -> None:
    for evaluate in (
        lambda: description.holds(BLOCK),
        lambda: first_overlap([description], SCHEMA),
        lambda: shorten(description, SCHEMA),
    ):
        with pytest.raises(dpf.InputError, match=text):
            evaluate()


def test_descriptions_read_like_sentences() -> None:
    young = Below("age", 30)
    assert str(And([Not(young), Or([Equals("ill", "true"), Not(Equals("sex", "Male"))])])) == (
        "age >= 30 and (ill = true or sex != Male)"
    )
    assert str(Or([And([young, young]), Not(Or([young]))])) == "(age < 30 and age < 30) or not (age < 30)"
    assert (str(And([])), str(Or([]))) == ("always", "never")
    assert Cases([young]).labels == ("age < 30", "otherwise")


@pytest.mark.parametrize(
    "form", [{}, {"equals": ["a"]}, {"below": ["a", "b"]}, {"not": []}, {"xor": []}, {"equals": ["a", "b"], "not": {}}]
)
def test_other_forms_are_refused(form: Any) -> None:
    with pytest.raises(dpf.InputError, match="one of 'equals'"):
        description_from_dict(form)


def test_keys_are_compared_row_by_row() -> None:
    towns, ill = ["Rome", None, "Oslo", "Rome", "", "Bern"], [0, 1, 1, 1, 0, 0]
    schema = dpf.Schema([dpf.Open("town"), dpf.Open("other"), dpf.Boolean("ill")])
    frame = pl.DataFrame({"town": towns, "other": towns[::-1], "ill": [bool(one) for one in ill]})
    (block,) = dpf.InMemory().load(dpf.table_from_frame(frame, schema))
    known = [None if town in (None, "") else town for town in towns]
    for key in ("Rome", "Oslo", "Bern", "Paris"):
        assert Equals("town", key).holds(block).tolist() == [town == key for town in known]
        assert Equals("town", key).fails(block).tolist() == [town not in (None, key) for town in known]
        both = And([Equals("town", key), Equals("ill", "true")])
        assert both.holds(block).tolist() == [town == key and one == 1 for town, one in zip(known, ill, strict=True)]
        assert Not(both).holds(block).tolist() == [
            one == 0 or town not in (None, key) for town, one in zip(known, ill, strict=True)
        ]
    first, second = Equals("town", "Rome"), Equals("town", "Bern")
    assert Cases([first, second, first]).cells(block).tolist() == [0, 3, 3, 0, 3, 1]
    assert Cases([first, Equals("other", "Bern")]).cells(block).tolist() == [0, 2, 2, 0, 2, 2]
    assert Cases([Equals("other", "Bern"), first]).cells(block).tolist() == [0, 2, 2, 1, 2, 2]
    assert Cases([second, Equals("ill", "true")]).cells(block).tolist() == [2, 1, 1, 1, 2, 0]
    assert Cases([]).cells(block).tolist() == [0] * 6
