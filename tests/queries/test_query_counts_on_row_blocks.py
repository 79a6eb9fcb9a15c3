"""Counting codes: every way of counting equals the plainest one, whatever the table."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dpframework as dpf
from dpframework.queries.counts import cell_counts, marginal_counts
from dpframework.queries.query_counts_on_row_blocks import Counting
from dpframework.tables import encoded_row_blocks, fast_code_counts
from dpframework.tables.column_encoding import code_dtype
from dpframework.tables.encoded_row_blocks import Block, cells_of
from dpframework.tables.fast_code_counts import counts_by_class, tally
from dpframework.tables.row_block_parts_by_attribute_values import parts_of


@st.composite
def some_blocks(draw: Any) -> Block:
    """Draw blocks of all kinds of codes: whole, parts, parts that are packed, empty, of one row, with derived ones."""
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 16, 255, 256, 257, 700]), min_size=1, max_size=3))
    rows = draw(st.sampled_from([0, 1, 2, 63, 64, 65, 200]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    columns = tuple(rng.integers(0, size, rows).astype(code_dtype(size)) for size in sizes)
    schema = dpf.Schema([dpf.Categorical(f"a{k}", [str(v) for v in range(size)]) for k, size in enumerate(sizes)])
    block = Block(schema, columns, {})
    part = draw(st.sampled_from(["whole", "part", "packed"]))
    if part != "whole":
        index = np.flatnonzero(rng.random(rows) < draw(st.sampled_from([0, 0.3, 1]))).astype(np.int32)
        block = block.at(encoded_row_blocks.PackedIndex(index, rows) if part == "packed" else index)
    if draw(st.booleans()):
        derived = dpf.Categorical("derived", ["x", "y"])
        block = block.with_derived(derived, dpf.Cases([dpf.Equals("a0", "0")]))
    return block


def plain(block: Block, names: list[str]) -> list[int]:
    """Count row by row."""
    of = [block.schema[name] for name in names]
    counts = np.zeros([a.size for a in of], dtype=np.int64)
    columns = [(block.derived[n] if n in block.derived else block.columns[block.schema.index(n)]) for n in names]
    for row in block.index.tolist():
        counts[tuple(int(column[row]) for column in columns)] += 1
    return counts.tolist()


@given(some_blocks(), st.sampled_from([1, 2, 64, 128]))
@settings(max_examples=150, deadline=None)
def test_counts_by_tiles_are_the_plain_counts(block: Block, tile: int) -> None:
    names = list(block.schema.names)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoded_row_blocks.Block.tiles, "__defaults__", (tile,))
        patch.setattr("dpframework.tables.crosstab_expressions.TILE", tile)
        patch.setattr(fast_code_counts, "MANY", 2)
        for attribute in block.schema:
            assert marginal_counts(block, attribute).tolist() == plain(block, [attribute.name])
        if block.schema[names[0]].size * block.schema[names[-1]].size < 10**5:
            of = [block.schema[name] for name in (names[-1], names[0])]
            assert cell_counts(block, of).tolist() == plain(block, [names[-1], names[0]])


@given(some_blocks(), st.sampled_from([1, 64, 1000]), st.booleans())
@settings(max_examples=100, deadline=None)
def test_parts_are_the_rows_of_each_cell_in_their_order(block: Block, tile: int, packs: bool) -> None:
    first = block.schema.attributes[0]
    cuts = [first, dpf.Cases([dpf.Equals(first.name, first.labels[-1])])]
    for cut in cuts:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(encoded_row_blocks.Block.tiles, "__defaults__", (tile,))
            parts = parts_of(cut, block, packs=packs)
        cells = cells_of(cut, block)
        for k, part in enumerate(parts):
            assert part.index.tolist() == block.index[cells == k].tolist()
            assert part.index.dtype == np.int32


@given(some_blocks(), st.integers(1, 3), st.integers(0, 2**32), st.booleans())
@settings(max_examples=100, deadline=None)
def test_rows_are_counted_by_code_and_class(block: Block, number: int, seed: int, compiled: bool) -> None:
    classes = np.random.default_rng(seed).integers(0, number, block.rows).astype(np.uint8)
    among = np.arange(len(block.columns))[::-1]
    sizes = np.array([block.schema.attributes[k].size for k in among])
    with pytest.MonkeyPatch.context() as patch:
        if compiled:
            patch.setattr(fast_code_counts, "FEW", -1)
        else:
            patch.delitem(sys.modules, "numba", raising=False)
            patch.setitem(sys.modules, "dpframework.tables.count_and_split_kernels", None)
        found = counts_by_class(block, among, sizes, classes, number)
    expected = np.zeros((sizes.sum(), number), dtype=np.int64)
    for offset, k in zip(np.cumsum([0, *sizes[:-1]]), among, strict=True):
        for row, kind in zip(block.index, classes, strict=True):
            expected[offset + int(block.columns[k][row]), kind] += 1
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("rows", [24, 25, 26, 27, 101])
@pytest.mark.parametrize("part", ["whole", "part"])
def test_rows_are_dealt_out_to_four_tables_and_each_counts_once(rows: int, part: str) -> None:
    schema = dpf.Schema([dpf.Categorical("a", ["x", "y", "z"]), dpf.Boolean("b")])
    rng = np.random.default_rng(rows)
    columns = tuple(rng.integers(0, a.size, 2 * rows).astype(np.uint8) for a in schema)
    block = Block(schema, tuple(column[:rows] for column in columns), {})
    if part == "part":
        block = Block(schema, columns, {}).at(np.sort(rng.permutation(2 * rows)[:rows]).astype(np.int32))
    classes = rng.integers(0, 2, rows).astype(np.uint8)
    assert rows >= 4 * 3 * 2  # so that there are tables
    found = counts_by_class(block, np.array([0, 1]), np.array([3, 2]), classes, 2)
    expected = [[0, 0] for _ in range(5)]
    for a, b, kind in zip(block.codes("a").tolist(), block.codes("b").tolist(), classes.tolist(), strict=True):
        expected[a][kind] += 1
        expected[3 + b][kind] += 1
    assert found.tolist() == expected


@pytest.mark.parametrize("number", [2, 255, 256])
@pytest.mark.parametrize("rows", [fast_code_counts.MANY - 1, fast_code_counts.MANY, fast_code_counts.MANY + 1])
def test_codes_are_counted_two_at_a_time(number: int, rows: int) -> None:
    codes = np.random.default_rng(rows).integers(0, number, rows).astype(np.uint8)
    twice = np.repeat(codes, 2)[::2]  # as many, but not side by side in memory
    parts = [codes, codes[:7], codes[::2], twice, codes.astype(np.uint16)]
    found = tally(parts, number)
    expected = sum(np.bincount(part, minlength=number) for part in parts)
    assert found.tolist() == expected.tolist()
    assert found.dtype == np.int64


def test_codes_of_a_whole_block_are_not_copied_and_cannot_be_written_to() -> None:
    schema = dpf.Schema([dpf.Boolean("ill")])
    block = Block(schema, (np.array([0, 1, 1], dtype=np.uint8),), {})
    assert np.shares_memory(block.codes("ill"), block.columns[0])
    for one in (block, block.at(np.array([0, 2], dtype=np.int32))):
        with pytest.raises(ValueError, match="read-only"):
            one.codes("ill")[0] = 1


def test_a_query_of_fewer_values_than_the_table_has_is_refused() -> None:
    table = dpf.Table.from_codes(dpf.Schema([dpf.Categorical("zone", ["a", "b", "c"])]), [[0, 1, 0]])
    fewer = dpf.Categorical("zone", ["a", "b"])
    engine = dpf.InMemory()
    for query in (dpf.queries.Histogram(fewer), dpf.queries.JointHistogram([fewer])):
        with pytest.raises(dpf.InputError, match=r"counts 2 values of 'zone', but the table's attribute has 3"):
            query.evaluate(engine, engine.load(table))


@given(some_blocks())
def test_a_counting_is_its_query_with_its_inputs(block: Block) -> None:
    for attribute in block.schema.attributes:
        query = dpf.queries.Histogram(attribute)
        counting = Counting(query)
        assert counting(block).tolist() == query.count(block).tolist() == plain(block, [attribute.name])
        tables = counting.joint_counts()
        assert tables is not None
        assert tables.count(block).tolist() == counting(block).tolist()
