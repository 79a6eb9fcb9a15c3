"""Releases of many nodes in step: the requests of a turn together, and each node gets its own."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from dpframework_trees.lockstep_releases import Requests, release_in_step
from hypothesis import given, settings, strategies as st

import dpframework as dpf

SCHEMA = dpf.Schema([dpf.Categorical("c", [str(k) for k in range(4)])])
TABLE = dpf.Table.from_codes(SCHEMA, [[0, 1, 1, 2, 2, 2, 3, 3, 3, 3]])
EXACTLY = 10**5


@attrs.frozen
class Rows(dpf.Query):
    """How many rows have a code."""

    name = "rows-of-a-code"
    answer_length = 1
    sensitivities = (dpf.Sensitivity("l1", 1, source="a row is counted once"),)

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.array([(block.codes("c") == inputs["code"]).sum()])


@attrs.frozen
class InStep(dpf.Miner):
    """Let nodes ask for the rows of codes, each for some in turn."""

    name = "in-step"
    turns: list[list[int]] = attrs.field(eq=False)
    order: list[int] = attrs.field(factory=list, eq=False)

    def plan(self, schema: dpf.Schema) -> Any:
        number = max(sum(map(len, self.turns)), 1)
        return dpf.repeat(number, dpf.step("n", Rows(), dpf.mechanisms.DiscreteLaplace(EXACTLY)))

    def mine(self, table: dpf.PrivateTable) -> Any:
        found: list[list[int]] = [[] for _ in self.turns]

        def node(own: list[int], into: list[int]) -> Requests[None]:
            for code in own:
                (released,) = yield [(table, "n", {"code": code})]
                self.order.append(code)
                into.append(int(released[0]))

        release_in_step([node(own, into) for own, into in zip(self.turns, found, strict=True)])
        return found


@settings(max_examples=15, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=4))
def test_each_node_gets_what_it_asked_for_turn_by_turn(turns: list[list[int]]) -> None:
    miner = InStep(turns)
    study = dpf.Study(SCHEMA, epsilon=100 * EXACTLY)
    study.add("found", miner)
    results = study.run(TABLE, seed=1)
    assert results["found"] == [[code + 1 for code in own] for own in turns]
    assert len(results.charges) == sum(map(len, turns))
    longest = max(map(len, turns), default=0)
    assert miner.order == [own[turn] for turn in range(longest) for own in turns if turn < len(own)]


def test_a_node_may_ask_for_several_at_once_and_for_none() -> None:
    got: list[list[Any]] = []

    def node(number: int) -> Requests[None]:
        got.append((yield [("table", "n", {"code": k}) for k in range(number)]))

    release_in_step([])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dpf.PrivateTable, "release_many", lambda asked: [one[2]["code"] for one in asked])
        release_in_step([node(2), node(0), node(1)])
    assert got == [[0, 1], [], [0]]
