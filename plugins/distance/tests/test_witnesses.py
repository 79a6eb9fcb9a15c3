"""Tables on which choices of contexts lose nearly all: neighbours that fit the attributes they are written for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest
from dpframework_distance.witnesses import (
    ALIKE,
    ATTRIBUTES,
    CROWD,
    EIGHT,
    MANY,
    of_all_in_turn,
    of_all_targets,
    of_attributes,
    of_common_contexts,
    of_entropies,
    of_searches,
    published_ceiling,
)
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.facts import Attribute
from dpframework.run import Witness

PAIRS: dict[str, tuple[Sequence[Attribute], tuple[Witness, ...], int]] = {
    "common contexts": (ATTRIBUTES, of_common_contexts(), MANY),
    "attributes": (ATTRIBUTES, of_attributes(), MANY),
    "all targets, one each": (ALIKE, of_all_targets(1, "{}"), CROWD),
    "all targets, two each": (ALIKE, of_all_targets(2, "{}"), CROWD),
    "all in turn": (EIGHT, of_all_in_turn(), CROWD),
}


def rows_of(witness: Witness, which: int) -> list[Mapping[str, Any]]:
    more = (witness.one, witness.other)[which]
    return [row for row, times in witness.shared for _ in range(times)] + ([] if more is None else [more])


@pytest.mark.parametrize("name", PAIRS)
def test_there_is_a_pair_for_each_relation_of_about_the_rows_that_are_meant(name: str) -> None:
    attributes, witnesses, rows = PAIRS[name]
    assert [one.relation for one in witnesses] == list(dpf.Relation)
    schema = dpf.Schema(attributes)
    for one in witnesses:
        for which in (0, 1):
            found = rows_of(one, which)
            table = dpf.table_from_columns({a.name: [row[a.name] for row in found] for a in attributes}, schema)
            assert 0.95 * rows - 1 <= table.rows <= rows
        assert one.one != one.other


def test_tables_that_searches_found_fit_the_attributes() -> None:
    schema = dpf.Schema(ATTRIBUTES)
    for witnesses in of_searches().values():
        for one in witnesses:
            for which in (0, 1):
                columns = {name: [row[name] for row in rows_of(one, which)] for name in schema.names}
                dpf.table_from_columns(columns, schema)


@pytest.mark.parametrize("size", [1, 2])
def test_what_is_put_out_for_all_targets_is_a_context_of_others(size: int) -> None:
    one, other = of_all_targets(size, "context of {}")
    assert one.outputs == other.outputs
    assert [*one.outputs] == [f"context of {attribute.name}" for attribute in ALIKE]
    assert all(0 <= position < 3 for position in one.outputs.values())


@given(
    st.sampled_from(["tree", "common"]),
    st.integers(1, 9).map(lambda tenths: Fraction(tenths, 10)),
    st.integers(2, 10**6),
)
def test_the_larger_the_share_of_choices_the_less_can_be_lost(context: str, share: Fraction, rows: int) -> None:
    def reached(of: Fraction) -> float:
        return float(published_ceiling(context, of, rows).split()[2])

    assert 0 < reached(share) <= 1
    assert reached(share) <= reached(share / 2)
    assert published_ceiling("mean-su", share, rows) == ""


@pytest.mark.parametrize("all_pairs", [False, True])
def test_entropies_are_0_before_the_row_comes_and_it_is_the_only_one_of_its_town(all_pairs: bool) -> None:
    added, replaced = of_entropies(12, all_pairs=all_pairs)
    assert added.shared == replaced.shared
    ((row, times),) = added.shared  # all rows are alike
    assert times == 11
    assert added.other is not None
    assert added.other["town"] != row["town"]
    assert replaced.other == added.other
