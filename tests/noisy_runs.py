"""A study of three counts on a few rows, for tests of runs that are stopped, forked or resumed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Categorical("town", ["A", "B", "C"])])
TABLE = dpf.Table.from_codes(SCHEMA, [[0, 1, 1, 0], [0, 0, 1, 2]])
NAMES = ("n1", "n2", "n3")


@attrs.frozen
class Counts(dpf.Miner):
    """Release three counts in the way that a test gives."""

    name = "counts-of-a-test"
    do: Callable[[dpf.PrivateTable], Any] = attrs.field(eq=False)

    def plan(self, schema: dpf.Schema) -> Any:
        return dpf.sequential(*(dpf.step(name, dpf.queries.Count(), DiscreteLaplace("0.5")) for name in NAMES))

    def mine(self, table: dpf.PrivateTable) -> Any:
        return self.do(table)


def one_by_one(table: dpf.PrivateTable) -> list[Any]:
    return [table.release(name) for name in NAMES]


def study_of(do: Callable[[dpf.PrivateTable], Any] = one_by_one) -> dpf.Study:
    study = dpf.Study(SCHEMA, epsilon=2)
    study.add("m", Counts(do))
    return study


def never() -> dpf.Table:
    raise AssertionError("the data was opened")


def interrupted_run(ledger: dpf.Ledger, journal: Path) -> None:
    """Approve the study, run it, and interrupt it after its second release."""

    def two(table: dpf.PrivateTable) -> None:
        for name in NAMES[:2]:
            table.release(name)
        raise KeyboardInterrupt

    study = study_of(two)
    ledger.approve("people", study.plan(), by="b")
    with pytest.raises(dpf.RunStopped):
        study.run(TABLE, ledger=ledger.run("people", journal=journal))
