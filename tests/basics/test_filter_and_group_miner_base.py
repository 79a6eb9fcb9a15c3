"""Miners that are asked about some rows or about groups of them: by descriptions and attributes of the schema alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.basics.filter_and_group_miner_base import (
    MOST_GROUPS,
    GroupedMiner,
    as_description,
    literals_of,
    require_description,
    values_compared,
)

SCHEMA = dpf.Schema(
    [dpf.Boolean("ill"), dpf.Categorical("town", ["A", "B", "C"]), dpf.Numeric("age", 0, 100, cuts=[18])]
)
LITERALS = st.sampled_from(
    [dpf.Equals("ill", "true"), dpf.Equals("town", "B"), dpf.Below("age", 18), dpf.Below("age", 30)]
)
DESCRIPTIONS = st.lists(LITERALS, min_size=1, max_size=3).map(dpf.And) | LITERALS
MEAN = type(dpf.miner("mean", attribute="age", epsilon=1))


def asking(**options: Any) -> GroupedMiner:
    miner = MEAN(attribute="age", epsilon=1, **options)
    assert isinstance(miner, GroupedMiner)
    return miner


@given(DESCRIPTIONS)
def test_a_description_and_its_form_are_the_same(where: dpf.Description) -> None:
    assert as_description(where) is where
    assert as_description(where.to_dict()) == where
    assert asking(where=where) == asking(where=where.to_dict())


@pytest.mark.parametrize("given_text", ["ill", 1, ["ill", "true"]])
def test_anything_else_is_no_description(given_text: Any) -> None:
    with pytest.raises(dpf.InputError, match=r"only is .*; a description is needed"):
        as_description(given_text, "only")


@given(st.lists(DESCRIPTIONS | st.none(), max_size=3))
def test_the_tests_of_descriptions_are_those_of_each(descriptions: list[dpf.Description | None]) -> None:
    found = list(literals_of(*descriptions))
    assert found == [literal for one in descriptions if one is not None for literal in one.literals()]
    compared = values_compared(SCHEMA, *descriptions)
    assert compared == ["age"] * (dpf.Below("age", 30) in found)  # 18 is a public cut


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (dpf.Equals("sick", "true"), "sick"),
        (dpf.Equals("town", "D"), "'D'"),
        (dpf.Below("town", 3), "town"),
        (dpf.Below("size", 3), "size"),
    ],
    ids=str,
)
def test_a_description_of_what_the_schema_does_not_have_is_refused(where: dpf.Description, message: str) -> None:
    with pytest.raises(dpf.InputError, match=message):
        require_description(SCHEMA, None, where)
    with pytest.raises(dpf.InputError, match=message):
        asking(where=where).groups(SCHEMA)


@given(st.lists(st.sampled_from(["ill", "town"]), max_size=2, unique=True))
def test_groups_are_named_by_attributes_each_once(names: list[str]) -> None:
    miner = asking(by=names)
    assert [one.name for one in miner.groups(SCHEMA)] == names
    assert miner.group_text == "".join(f" by '{name}'" for name in names)
    if names:
        with pytest.raises(dpf.InputError, match="by"):
            asking(by=names * 2)
        assert asking(by=names[0]).by == (names[0],)


def test_groups_are_public_and_not_too_many() -> None:
    schema = dpf.Schema([*SCHEMA.attributes, dpf.Open("job"), dpf.Numeric("n", 0, 1, bins=1000)])
    with pytest.raises(dpf.InputError, match="use the miner 'keys'"):
        asking(by="job").groups(schema)
    many = dpf.Schema([dpf.Numeric(name, 0, 1, bins=1000) for name in ("n", "m")])
    with pytest.raises(dpf.InputError, match=f"more than {MOST_GROUPS}"):
        asking(by=("n", "m")).groups(many)
    with pytest.raises(dpf.InputError, match="list of names, is needed"):
        asking(by=[1])
