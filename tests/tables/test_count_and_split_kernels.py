"""Kernels of counts, beside plain numpy: each row is counted once, and no row is lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numba import njit

from dpframework.tables.count_and_split_kernels import add_class_counts, halve_rows, popcount

SIZES = st.tuples(st.integers(1, 5), st.integers(1, 4))
SEED = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("dealt", [False, True], ids=["one table", "four tables"])
@settings(max_examples=50)
@given(st.integers(0, 40), SIZES, SEED, st.booleans())
def test_each_row_is_counted_by_its_code_and_class(
    dealt: bool, rows: int, sizes: tuple[int, int], seed: int, whole: bool
) -> None:
    generator, (codes, classes) = np.random.default_rng(seed), sizes
    column = generator.integers(0, codes, size=rows).astype(np.uint8)
    index = generator.permutation(rows).astype(np.int32)[: rows if whole else rows // 2]
    given_codes = column if whole else column[index]
    given_classes = generator.integers(0, classes, size=len(given_codes)).astype(np.uint8)
    before = generator.integers(0, 9, size=(codes, classes))
    expected = before.copy()
    np.add.at(expected, (given_codes, given_classes), 1)
    tables = np.zeros((4, codes * classes if dealt else 0), dtype=np.int32)
    add_class_counts(column, index, whole, given_classes, tables, before)
    assert np.array_equal(before, expected)


@settings(max_examples=50)
@given(st.integers(0, 40), st.integers(1, 5), SEED, st.booleans())
def test_rows_are_halved_in_order_from_both_ends(rows: int, codes: int, seed: int, whole: bool) -> None:
    generator = np.random.default_rng(seed)
    column = generator.integers(0, codes, size=rows).astype(np.uint8)
    index = np.sort(generator.permutation(rows)[: rows // 2]).astype(np.int32)
    second = generator.integers(0, 2, size=codes).astype(bool)
    taken = np.arange(rows) if whole else index
    positions = np.zeros(len(taken), dtype=np.int32)
    first = halve_rows(column, index, whole, second, positions)
    assert positions[:first].tolist() == [k for k in taken if not second[column[k]]]
    assert positions[first:][::-1].tolist() == [k for k in taken if second[column[k]]]


@njit
def ones(word: np.uint64) -> int:
    return popcount(word)


@given(st.integers(0, 2**64 - 1))
def test_the_ones_of_a_word_are_counted(word: int) -> None:
    assert ones(np.uint64(word)) == word.bit_count()
