"""Engines: the same sums however the rows are cut into blocks."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dpframework as dpf
from dpframework.tables import engines
from dpframework.tables.blocks import PackedIndex, packed
from dpframework.tables.built_in import BUILT_IN
from dpframework.verify import EngineConformance

SCHEMA = dpf.Schema(
    [dpf.Boolean("ill"), dpf.Categorical("c", ["x", "y", "z"]), dpf.Numeric("age", 0, 100, bins=5, missing=True)]
)
JOINT = dpf.queries.JointHistogram(SCHEMA.attributes)
DERIVED = dpf.Categorical("group", ["ill", "young", "rest"])
CASES = dpf.Cases([dpf.Equals("ill", "true"), dpf.Below("age", 33.3)])


def table(rows: int, seed: int = 0) -> dpf.Table:
    rng = np.random.default_rng(seed)
    return dpf.Table.from_codes(SCHEMA, np.array([rng.integers(0, a.size, rows) for a in SCHEMA.attributes]))


def all_counts(engine: dpf.Engine, of: dpf.Table) -> list[Any]:
    rows = engine.load(of)
    derived = engine.derive(rows, DERIVED, CASES)
    parts = [
        rows,
        *engine.split(rows, SCHEMA["c"]),
        *engine.split(rows, CASES),
        *engine.split(rows, (dpf.Equals("c", "x"), dpf.Equals("c", "z"))),
        *(inner for part in engine.split(rows, SCHEMA["ill"]) for inner in engine.split(part, CASES)),
    ]
    counts = [JOINT.evaluate(engine, part).tolist() for part in parts]
    grouped = dpf.queries.JointHistogram([DERIVED, SCHEMA["ill"]])
    return counts + [grouped.evaluate(engine, p).tolist() for p in (derived, *engine.split(derived, DERIVED))]


@given(rows=st.integers(0, 40), threads=st.integers(1, 60), seed=st.integers(0, 99))
@settings(max_examples=40)
def test_threads_sum_to_what_one_block_has(rows: int, threads: int, seed: int) -> None:
    data = table(rows, seed)
    assert all_counts(dpf.Threads(threads), data) == all_counts(dpf.InMemory(), data)


@pytest.mark.parametrize("engine", [dpf.InMemory(), dpf.Mapped(), dpf.Threads(2)], ids=lambda engine: engine.name)
def test_many_rows_are_cut_into_blocks_and_sum_to_the_same(engine: dpf.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    data = table(50, seed=1)
    whole = all_counts(dpf.InMemory(), data)
    monkeypatch.setattr(engines, "MOST_ROWS", 7)
    assert len(engine.load(data)) == 8
    assert all_counts(engine, data) == whole


class TestMemory(EngineConformance):
    @classmethod
    def made(cls) -> dpf.Engine:
        return dpf.InMemory()


class TestMapped(EngineConformance):
    @classmethod
    def made(cls) -> dpf.Engine:
        return dpf.Mapped()


class TestThreads(EngineConformance):
    @classmethod
    def made(cls) -> dpf.Engine:
        return dpf.Threads(3)


def test_parts_add_up_to_the_whole() -> None:
    engine, data = dpf.Threads(3), table(200)
    rows = engine.load(data)
    whole = JOINT.evaluate(engine, rows)
    for by in (SCHEMA["c"], SCHEMA["age"], CASES):
        parts = [JOINT.evaluate(engine, part) for part in engine.split(rows, by)]
        assert np.array_equal(np.sum(parts, axis=0), whole)
    lacking = engine.split(rows, (dpf.Equals("c", "x"),))
    assert JOINT.evaluate(engine, lacking[0]).sum() < whole.sum()


def test_a_row_that_is_added_changes_one_part_only() -> None:
    """By value, never by position: whichever row is removed, the others stay in their parts."""
    engine, data = dpf.Threads(4), table(30)
    for by in (SCHEMA["c"], CASES):
        before = [JOINT.evaluate(engine, p) for p in engine.split(engine.load(data), by)]
        for gone in range(30):
            fewer = dpf.Table.from_codes(SCHEMA, np.delete(data.codes, gone, axis=1))
            after = [JOINT.evaluate(engine, p) for p in engine.split(engine.load(fewer), by)]
            assert sorted(int(abs(a - b).sum()) for a, b in zip(after, before, strict=True))[-2:] in ([0, 1], [1])


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_blocks_are_a_positive_number(threads: Any) -> None:
    with pytest.raises(dpf.InputError, match="positive number of blocks"):
        dpf.Threads(threads)


def test_names_differ() -> None:
    assert [engine.name for engine in BUILT_IN] == ["memory", "threads", "mapped", "dask"]


@attrs.frozen
class Narrow(dpf.queries.Query):
    """Counts rows in a type of its own."""

    name = "narrow"
    kind: str

    def count(self, block: Any, **inputs: Any) -> Any:
        return np.array([block.rows]).astype(self.kind)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "float16", "float32", "bool"])
def test_counts_that_could_wrap_round_are_refused(kind: str) -> None:
    for engine in (dpf.InMemory(), dpf.Threads(3)):
        with pytest.raises(dpf.InputError, match=f"numbers of type {kind} cannot hold"):
            Narrow(kind).evaluate(engine, engine.load(table(20)))


@pytest.mark.parametrize("kind", ["int32", "uint32", "int64", "float64"])
def test_counts_are_summed_in_64_bits(kind: str) -> None:
    for engine in (dpf.InMemory(), dpf.Threads(3)):
        answer = Narrow(kind).evaluate(engine, engine.load(table(20)))
        assert answer.dtype.itemsize == 8
        assert answer == 20


@pytest.mark.parametrize("length", [1, 31, 32, 33, 64, 1000])
def test_positions_are_packed_where_that_takes_less_memory_and_unpacked_as_they_were(length: int) -> None:
    rng = np.random.default_rng(length)
    for share in (0, 0.02, 0.5, 1):
        index = np.flatnonzero(rng.random(length) < share).astype(np.int32)
        kept = packed(index, length)
        assert isinstance(kept, PackedIndex) == (4 * len(index) > length / 8)
        other = packed(np.arange(length, dtype=np.int32), length)
        for one in (kept, other, kept):  # the one that was unpacked last is kept, and another unpacks anew
            expected = np.arange(length) if one is other else index
            found = one.index if isinstance(one, PackedIndex) else one
            assert found.tolist() == expected.tolist()
            assert found.dtype == np.int32
