"""Tables on which trees lose nearly all that they claim: they fit their schemas, and examples keep their own tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest
from dpframework_trees.id3 import DPID3
from dpframework_trees.witnesses import (
    FEW_ELSEWHERE,
    INFORMATION_GAIN,
    MANY_CUTS,
    RIPE,
    SPLIT_POINTS,
    with_found_tables,
)

import dpframework as dpf
from dpframework.run import Witness

EXAMPLES = DPID3.examples()
GRADES = next(iter(EXAMPLES.values())).schema
FIXED = [(one, MANY_CUTS) for one in INFORMATION_GAIN] + [(one, GRADES) for one in (*SPLIT_POINTS, FEW_ELSEWHERE)]
FOUND = [(one, example.schema) for example in EXAMPLES.values() for one in example.witnesses]


def tables(witness: Witness) -> list[list[Mapping[str, Any]]]:
    shared = [row for row, times in witness.shared for _ in range(times)]
    return [[*shared, *([] if more is None else [more])] for more in (witness.one, witness.other)]


@pytest.mark.parametrize(("witness", "schema"), [*FIXED, *FOUND])
def test_both_tables_fit_the_schema(witness: Witness, schema: dpf.Schema) -> None:
    sizes = []
    for rows in tables(witness):
        columns = {name: [row[name] for row in rows] for name in schema.names}
        sizes.append(dpf.table_from_columns(columns, schema).rows)
    assert witness.one != witness.other
    assert sizes[1] - sizes[0] == (witness.relation is dpf.Relation.ADD_OR_REMOVE_ONE)


def test_the_test_that_is_put_out_is_the_one_behind_those_of_the_size() -> None:
    assert MANY_CUTS.names.index("ripe") == 1
    assert len(MANY_CUTS["size"].labels) - 1 == RIPE
    assert {int(one.outputs["tree"][0]) for one in INFORMATION_GAIN} == {RIPE}


def test_examples_get_the_tables_that_were_found_beside_their_own() -> None:
    bare = {name: attrs.evolve(one, witnesses=SPLIT_POINTS) for name, one in EXAMPLES.items()}
    found = with_found_tables("dp-id3", bare)
    assert found.keys() == bare.keys()
    assert all(one.witnesses[: len(SPLIT_POINTS)] == SPLIT_POINTS for one in found.values())
    assert any(len(one.witnesses) > len(SPLIT_POINTS) for one in found.values())
    assert with_found_tables("no such miner", bare) == bare
