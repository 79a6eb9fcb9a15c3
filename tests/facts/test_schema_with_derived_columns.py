"""The place of derived columns among the attributes of a schema."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from dpframework.facts import InputError, Numeric
from dpframework.facts.column_read_options import ColumnOptions
from dpframework.facts.derived_columns import DerivedColumn
from dpframework.facts.read_options import ReadOptions
from dpframework.facts.schema_with_derived_columns import inputs_of, with_derived, with_inputs, without_derived

FILE = [Numeric(name, 0, 9, bins=3) for name in "abc"]
SUM, TWICE = DerivedColumn("sum", "a + b"), DerivedColumn("twice", "sum * 2")
PLAIN = ReadOptions()


def names(attributes: object) -> list[str]:
    return [one.name for one in attributes]  # type: ignore[attr-defined]


def test_derived_columns_stand_after_the_others_each_after_what_it_reads() -> None:
    assert names(with_derived(FILE, [SUM, TWICE], PLAIN)) == ["a", "b", "c", "sum", "twice"]
    with pytest.raises(InputError, match="sum"):
        with_derived(FILE, [TWICE, SUM], PLAIN)


@given(st.permutations([SUM, DerivedColumn("square", "c ** 2")]))
def test_what_a_file_holds_is_what_is_left(derive: list[DerivedColumn]) -> None:
    whole = with_derived(FILE, derive, PLAIN)
    assert list(without_derived(whole, derive)) == FILE
    assert with_derived(whole, derive, PLAIN) == whole  # listed with the facts that it has


def test_a_column_that_is_listed_with_other_facts_is_refused() -> None:
    with pytest.raises(InputError, match="'sum' is listed and derived, with different facts"):
        with_derived([*FILE, Numeric("sum", 0, 7, bins=2)], [SUM], PLAIN)


def test_a_column_that_is_listed_before_what_it_is_made_of_is_refused() -> None:
    (*_, made) = with_derived(FILE, [SUM], PLAIN)
    with pytest.raises(InputError, match="'sum' is listed before a column that it reads"):
        with_derived([FILE[0], made, *FILE[1:]], [SUM], PLAIN)


def test_two_derived_columns_have_two_names() -> None:
    with pytest.raises(InputError, match="one name"):
        with_derived(FILE, [SUM, DerivedColumn("sum", "a * b")], PLAIN)


def test_no_file_holds_a_derived_column() -> None:
    with pytest.raises(InputError, match="'sum' is derived"):
        with_derived(FILE, [SUM], ReadOptions(columns={"sum": ColumnOptions(date=["iso"])}))


def test_dates_keep_their_unit_for_expressions() -> None:
    read = ReadOptions(columns={"a": ColumnOptions(date=["iso"], date_unit="days")})
    inputs = inputs_of(FILE, [], read)
    assert [unit for _, unit in inputs.values()] == [read.of_column("a").unit, None, None]
    assert inputs["a"][1] == "days"


@given(st.sets(st.sampled_from("abc"), min_size=1))
def test_what_is_kept_of_a_schema_can_be_derived_again(kept: set[str]) -> None:
    whole = with_derived(FILE, [SUM, TWICE], PLAIN)
    wanted = [one for one in whole if one.name in {*kept, "twice"}]
    attributes, derive = with_inputs(wanted, whole, [SUM, TWICE])
    assert {*kept, "a", "b"} == set(names(attributes))
    assert [one.name for one in derive] == ["sum", "twice"]
    assert "twice" in names(with_derived(attributes, derive, PLAIN))


def test_attributes_of_a_file_need_no_others() -> None:
    assert with_inputs(FILE[:1], with_derived(FILE, [SUM], PLAIN), [SUM]) == (FILE[:1], ())
