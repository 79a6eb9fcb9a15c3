"""The gate of a run with a journal: rows carry a public trace of how they were cut, the same when a run is resumed."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import dpframework as dpf
from dpframework.ledger.resumable_release_gate import JournaledGate, TracedRows
from dpframework.mechanisms.randomness import SeededRandomness

TOWN, ILL = dpf.Categorical("town", ["A", "B", "C"]), dpf.Boolean("ill")
SCHEMA = dpf.Schema([TOWN, ILL])
TABLE = dpf.Table.from_codes(SCHEMA, [[0, 1, 2, 0], [0, 1, 1, 0]])
CASES = dpf.Cases([dpf.Equals("town", "A")])


def gate(seed: int = 1) -> JournaledGate:
    run: Any = None  # which cuts ask nothing of
    return JournaledGate(dpf.InMemory(), SeededRandomness(seed), (), run=run)


def cuts(own: JournaledGate, rows: Any) -> dict[str, Any]:
    """Rows in all ways that they are cut."""
    parts = {f"{by}": own.split(rows, by) for by in (TOWN, ILL, CASES)}
    found = {f"{name} {k}": part for name, some in parts.items() for k, part in enumerate(some)}
    found["sample"] = own.sample(rows, Fraction(1, 2), of_units=False)
    found["larger sample"] = own.sample(rows, Fraction(2, 3), of_units=False)
    found["derived"] = own.derive(rows, dpf.Boolean("home"), CASES)
    return found


@pytest.fixture
def rows() -> Any:
    return gate().load(TABLE)


def test_rows_that_are_cut_otherwise_have_other_traces(rows: Any) -> None:
    once = cuts(gate(), rows)
    twice = {f"sample, {inner}": one for inner, one in cuts(gate(), once["sample"]).items()}
    found = [one.trace for one in (*once.values(), *twice.values())]
    assert all(isinstance(one, TracedRows) for one in once.values())
    assert "" not in found
    assert len(set(found)) == len(found)


def test_a_resumed_run_gives_the_same_rows_the_same_trace_whatever_is_drawn(rows: Any) -> None:
    one, other = ({name: cut.trace for name, cut in cuts(gate(seed), rows).items()} for seed in (1, 2))
    assert one == other


def test_a_trace_follows_from_no_row(rows: Any) -> None:
    others = gate().load(dpf.Table.from_codes(SCHEMA, [[1, 1], [0, 1]]))
    traces = [{name: cut.trace for name, cut in cuts(gate(), some).items()} for some in (rows, others)]
    assert traces[0] == traces[1]
