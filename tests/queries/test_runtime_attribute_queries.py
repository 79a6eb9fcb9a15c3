"""Queries that are told at run time which attributes they are about: a plan names all, and a run hides the others."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.queries.runtime_attribute_queries import ReadsAmong

SCHEMA = dpf.Schema([dpf.Boolean(name) for name in "abc"])
TABLE = dpf.Table.from_codes(SCHEMA, [[0, 1], [1, 1], [0, 0]])


@attrs.frozen
class Ones(ReadsAmong):
    """Count the rows in which an attribute holds, whichever is asked for."""

    name = "ones"
    answer_length = 1
    sensitivities = (dpf.Sensitivity("l1", 1, source="a row is counted once"),)

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.array([(block.codes(inputs["of"]) == 1).sum()])


def released(asked: str) -> Any:
    @attrs.frozen
    class Asks(dpf.Miner):
        """Ask for the ones of an attribute."""

        name = "asks"

        def plan(self, schema: dpf.Schema) -> dpf.Node:
            return dpf.step("n", Ones(among=["a", "b"]), dpf.mechanisms.DiscreteLaplace(1000))

        def mine(self, table: dpf.PrivateTable) -> Any:
            return int(table.release("n", of=asked)[0])

    study = dpf.Study(SCHEMA, epsilon=1000)
    study.add("asked", Asks())
    return study.run(TABLE, seed=1)["asked"]


def test_a_plan_shows_all_that_may_be_read() -> None:
    assert Ones(among=("a", "b")).facts().attributes == ("a", "b")
    assert Ones().facts().attributes == ()


@pytest.mark.parametrize(("asked", "ones"), [("a", 1), ("b", 2)])
def test_any_of_these_is_read(asked: str, ones: int) -> None:
    assert released(asked) == ones


def test_another_attribute_is_hidden() -> None:
    with pytest.raises(dpf.InputError, match=r"reads attribute .c., which it does not declare"):
        released("c")
