"""f of numbers of rows: a table of the small ones, and the large ones that occur."""

import math
import tracemalloc

import numpy as np
import pytest
from dpframework_distance import entropy_terms
from dpframework_distance.entropy_terms import STEP, WHOLE, Terms
from dpframework_distance.queries import CommonContextScores, ConditionalEntropies, ContextScores, Entropies
from dpframework_distance.sensitivities import RowBounds
from dpframework_distance.subsets import subsets
from hypothesis import given, settings, strategies as st

import dpframework as dpf

MANY = 3 * WHOLE + 5
ATTRIBUTES = [dpf.Boolean("a"), dpf.Categorical("b", ["x", "y", "z"]), dpf.Boolean("c"), dpf.Boolean("d")]


@pytest.fixture(scope="module")
def table() -> np.ndarray:
    return entropy_terms.terms(MANY)


def test_large_numbers_have_what_one_table_of_all_would_have(table: np.ndarray) -> None:
    edges = [k * STEP + d for k in (1, 1023, 1024, 1025, 2048, 3072) for d in (-1, 0, 1)]
    numbers = np.array([0, 1, 2, *edges, MANY, *np.random.default_rng(0).integers(0, MANY, 300)])
    f = Terms.of(numbers[:100], numbers[100:])
    assert f(numbers).tolist() == table[numbers].tolist()
    assert len(f.small) == WHOLE
    assert f(np.array([WHOLE - 1])) == table[WHOLE - 1]


@given(numbers=st.lists(st.integers(0, 5000), min_size=1))
@settings(max_examples=30, deadline=None)
def test_small_numbers_need_no_more_than_their_table(numbers: list[int]) -> None:
    f = Terms.of(np.array(numbers))
    assert f(np.array(numbers)).tolist() == entropy_terms.terms(5000)[numbers].tolist()
    assert len(f.small) == max(numbers) + 1
    assert len(f.large) == 0


def queries() -> list[dpf.Query]:
    bounds = RowBounds(2**31, None)
    return [
        *(ContextScores(ATTRIBUTES, size, bounds, target) for size in (1, 2) for target in (0, 1)),
        CommonContextScores(ATTRIBUTES, 2, bounds),
        *(kind(ATTRIBUTES, target, bounds) for kind in (Entropies, ConditionalEntropies) for target in (None, 1)),
    ]


def counts_of(query: dpf.Query, cells: np.ndarray) -> np.ndarray:
    """Return what a query counts on rows of which so many are in each cell of all attributes."""
    sizes = tuple(a.size for a in ATTRIBUTES)
    orders = [2] if not isinstance(query, ContextScores | CommonContextScores) else [query.context_size + 1]
    if isinstance(query, CommonContextScores):
        orders = [2, 3]
    layouts = [subsets(sizes, order, getattr(query, "target", None)) for order in orders]
    others = [tuple(k for k in range(4) if k not in members) for one in layouts for members in one.members.tolist()]
    return np.concatenate([cells.reshape(sizes).sum(axis=away).ravel() for away in others])


@pytest.mark.parametrize("whole", [1 << 8, 1 << 15])
def test_answers_are_the_same_whichever_numbers_are_in_the_table(whole: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = np.random.default_rng(whole).integers(0, 2000, 24)
    cells[0] += 25_000  # 49,000 rows: some sums of cells are above either number, where no cell is
    expected = [query.answer(counts_of(query, cells)).tolist() for query in queries()]
    monkeypatch.setattr(entropy_terms, "WHOLE", whole)
    monkeypatch.setattr(entropy_terms, "STEP", 1 << 4)
    monkeypatch.setattr(entropy_terms, "_sums", entropy_terms._sums.__wrapped__)
    assert [query.answer(counts_of(query, cells)).tolist() for query in queries()] == expected


def test_memory_does_not_grow_with_the_rows() -> None:
    """Entropies of 10^7 rows: 8 MiB for small numbers, where a table of all took 80 MB, and more to make."""
    query = Entropies(ATTRIBUTES, None, RowBounds(2**31, None))
    counts = counts_of(query, np.random.default_rng(0).integers(0, 8 * 10**5, 24))
    assert 9 * 10**6 < counts[:6].sum() < 11 * 10**6
    entropy_terms.terms(WHOLE - 1)  # it is made once for all tables of so many rows
    query.answer(counts // 2)  # and what a first answer imports and compiles is there afterwards
    tracemalloc.start()
    query.answer(counts)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_the_table_ends_just_below_the_first_large_number(table: np.ndarray) -> None:
    for number, length in ((WHOLE - 1, WHOLE), (WHOLE, WHOLE), (WHOLE + 1, WHOLE)):
        f = Terms.of(np.array([number]))
        assert (f(np.array([number])).tolist(), len(f.small)) == ([table[number]], length)
        assert f.large.tolist() == ([number] if number >= WHOLE else [])
    nothing = Terms.of(np.zeros(0, dtype=np.int64))
    assert (nothing.small.tolist(), nothing.large.tolist(), nothing.of_large.tolist()) == ([0], [], [])


def test_terms_are_multiples_of_a_unit_that_nobody_can_write_to() -> None:
    """g is rounded to whole units of 2**-22, which is what sensitivities are rounded up to."""
    found = entropy_terms.terms(40)
    assert not found.flags.writeable
    assert entropy_terms.UNITS == 2**22
    for n, g in enumerate(np.diff(found).tolist()):
        assert abs(g / 2**22 - ((n + 1) * math.log2(n + 1) - (n * math.log2(n) if n else 0))) <= 2**-23 + 1e-12


def test_of_no_tables_there_are_no_sums() -> None:
    nothing = np.zeros((0, 2), dtype=np.int64)
    assert (
        len(entropy_terms.sums_over(np.zeros(0, dtype=np.int32), nothing[:, 0], np.array([2, 3]), nothing, nothing))
        == 0
    )
