"""Engines: the same sums however the rows are cut into blocks."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dpframework as dpf
from dpframework.tables import in_process_engines, row_block_parts_by_attribute_values
from dpframework.tables.built_in_engines import BUILT_IN
from dpframework.tables.count_width import in_64_bits
from dpframework.tables.encoded_row_blocks import TILE, Block, HiddenColumn, PackedIndex, cells_of, pack_index
from dpframework.tables.engine_base import RelatedCaches
from dpframework.tables.growing_column_arrays import growing_array
from dpframework.tables.output_suppression import silenced
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
    monkeypatch.setattr(in_process_engines, "MOST_ROWS", 7)
    assert len(engine.load(data)) == 8
    assert all_counts(engine, data) == whole


class TestMemory(EngineConformance):
    @classmethod
    def build_engine(cls) -> dpf.Engine:
        return dpf.InMemory()


class TestMapped(EngineConformance):
    @classmethod
    def build_engine(cls) -> dpf.Engine:
        return dpf.Mapped()


class TestThreads(EngineConformance):
    @classmethod
    def build_engine(cls) -> dpf.Engine:
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


@pytest.mark.parametrize(
    "cut",
    [
        SCHEMA["ill"],
        dpf.Cases([dpf.Not(dpf.Below("age", 40))]),
        dpf.Cases([dpf.Or([dpf.Equals("c", "y"), dpf.Equals("c", "z")])]),
        dpf.Cases([dpf.Equals("group", "young")]),
        (dpf.Equals("c", "z"), dpf.Equals("c", "x")),  # and some rows in no part
        dpf.Cases([dpf.Below("age", 33.3)]),  # on raw values
        dpf.Cases([dpf.And([dpf.Equals("c", "y"), dpf.Equals("ill", "true")])]),  # of two attributes
    ],
    ids=str,
)
@pytest.mark.parametrize("packs", [False, True])
def test_each_row_is_in_the_part_of_its_values_in_order(cut: Any, packs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, data = 500, table(500, seed=3)
    ages = np.random.default_rng(3).uniform(0, 100, rows)
    whole = Block(SCHEMA, data.columns, {"age": ages}).with_derived(DERIVED, CASES)
    for block in (whole, whole.at(np.flatnonzero(np.arange(rows) % 7 < 4).astype(np.int32))):
        holds = cells_of(cut, block)
        for many in (1, rows + 1):  # by the kernel for two parts if it can be, and without
            monkeypatch.setattr(row_block_parts_by_attribute_values, "MANY", many)
            parts = row_block_parts_by_attribute_values.parts_of(cut, block, packs=packs)
            for k, part in enumerate(parts):
                assert part.index.tolist() == block.index[holds == k].tolist()
                assert part.index.dtype == np.int32


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
    with pytest.raises(dpf.InputError, match="positive number of threads"):
        dpf.Threads(threads)


@pytest.mark.parametrize(("processors", "blocks"), [(5, 5), (None, 1)])
def test_by_default_there_is_a_thread_a_processor(
    processors: int | None, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: processors)
    assert len(dpf.Threads().load(table(20))) == blocks
    assert [len(engine.load(table(20))) for engine in (dpf.Threads(3), dpf.InMemory(), dpf.Mapped())] == [3, 1, 1]


def test_names_differ() -> None:
    assert [engine.name for engine in BUILT_IN] == ["memory", "threads", "mapped", "dask", "duckdb", "postgres"]


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
    two = np.arange(2, dtype=np.int32)
    assert [isinstance(pack_index(two, rows), PackedIndex) for rows in (63, 64, 65)] == [True, False, False]
    rng = np.random.default_rng(length)
    for share in (0, 0.02, 0.5, 1):
        index = np.flatnonzero(rng.random(length) < share).astype(np.int32)
        kept = pack_index(index, length)
        assert isinstance(kept, PackedIndex) == (4 * len(index) > length / 8)
        other = pack_index(np.arange(length, dtype=np.int32), length)
        for one in (kept, other, kept):  # the one that was unpacked last is kept, and another unpacks anew
            expected = np.arange(length) if one is other else index
            found = one.index if isinstance(one, PackedIndex) else one
            assert found.tolist() == expected.tolist()
            assert found.dtype == np.int32


class Plain(dpf.Engine):
    """An engine that defines what it must, and no more."""

    name = "plain"

    def load(self, table: dpf.Table) -> Any:
        return dpf.InMemory().load(table)

    def split(self, rows: Any, by: Any) -> list[Any]:
        return list(dpf.InMemory().split(rows, by))

    def derive(self, rows: Any, attribute: Any, cases: Any) -> Any:
        return dpf.InMemory().derive(rows, attribute, cases)


def test_what_an_engine_does_unless_it_says_otherwise() -> None:
    engine = Plain()
    assert (engine.mapped, engine.reads_files, engine.gathers, engine.sends_messages) == (False, False, True, False)
    rows = engine.load(table(9))
    engine.cache_of(rows)["counted"] = 1
    assert engine.cache_of(rows) == {}
    assert engine.related_caches(rows) is None
    assert list(engine.counting_order([rows, rows])) == [0, 1]
    engine.drop(rows)
    engine.close()
    for refused in (engine.sample, engine.sample_units):
        with pytest.raises(dpf.InputError, match="engine 'plain' draws no samples"):
            refused(rows, lambda number: np.ones(number, dtype=np.bool_))
    with pytest.raises(dpf.InputError, match="engine 'plain' adds up counts and gathers no rows"):
        engine.map(rows, len)


@pytest.mark.parametrize("engine", [dpf.InMemory(), dpf.Mapped(), dpf.Threads(3)], ids=lambda engine: engine.name)
def test_an_engine_in_this_process(engine: dpf.Engine) -> None:
    rows = engine.load(table(50))
    assert engine.mapped == (engine.name == "mapped")
    assert engine.number(rows) == 50
    sample = engine.sample(rows, lambda number: np.arange(number) % 2 == 1)
    assert engine.number(sample) == sum(block.rows // 2 for block in rows)
    engine.cache_of(rows)["counted"] = 1
    assert engine.cache_of(rows) == {"counted": 1}
    assert engine.cache_of(list(rows)) == {}
    assert (engine.related_caches(rows), engine.related_caches(list(rows))) == (None, None)
    some = [engine.split(rows, CASES)[0], rows, engine.split(rows, CASES)[1]]
    sizes = [engine.number(own) for own in some]
    assert sizes[0] != sizes[2]
    assert list(engine.counting_order(some)) == sorted(range(3), key=sizes.__getitem__)
    # what is known of the whole and of the other parts is what a part is: where each row is in one
    for by, each_row in ((SCHEMA["c"], True), (CASES, True), ((dpf.Equals("c", "x"), dpf.Equals("c", "y")), False)):
        parts = engine.split(rows, by)
        for k, part in enumerate(parts):
            around = engine.related_caches(part)
            assert (around is not None) == each_row
            if around is not None:
                others = [engine.cache_of(other) for j, other in enumerate(parts) if j != k]
                assert around[0] is engine.cache_of(rows)
                assert [id(kept) for kept in around[1]] == [id(kept) for kept in others]


def test_units_are_sampled_whole_wherever_their_rows_lie() -> None:
    whose = np.array([7, 3, 7, 3, 9, 7, 1, 3])
    schema = dpf.Schema([dpf.Categorical("row", [str(k) for k in range(8)])])
    unit = dpf.PrivacyUnit("person", 3)
    held = dpf.Table.from_codes(schema, [list(range(8))], unit=unit).with_units(whose)
    for engine in (dpf.InMemory(), dpf.Threads(3)):
        asked: list[int] = []

        def drawn(number: int, asked: list[int] = asked) -> Any:
            asked.append(number)
            return np.arange(number) % 2 == 1  # of the units 1, 3, 7 and 9 in their order

        (found, again) = (engine.sample_units(engine.load(held), drawn) for _ in range(2))
        counts = dpf.queries.Histogram(schema["row"]).evaluate(engine, found)
        assert counts.tolist() == [0, 1, 0, 1, 1, 0, 0, 1]
        deeper = engine.sample_units(engine.split(again, (dpf.Not(dpf.Equals("row", "4")),))[0], drawn)
        assert dpf.queries.Histogram(schema["row"]).evaluate(engine, deeper).tolist() == [0] * 8  # of unit 3 alone
        assert asked == [4, 4, 1]
        with pytest.raises(dpf.InputError, match="the table does not say which unit each row belongs to"):
            engine.sample_units(engine.load(held.with_units(None)), drawn)


def test_a_hidden_column_has_a_length_and_nothing_else() -> None:
    column = HiddenColumn("c", 10)
    assert len(column) == 10
    assert [len(column[rows]) for rows in (slice(2, 5), slice(None), slice(8, 99), slice(1, None, 3))] == [3, 10, 2, 3]
    refusals = [lambda: column[0], lambda: np.asarray(column), lambda: column.shape, lambda: column + column]
    for refusal in refusals[:3]:
        with pytest.raises(dpf.InputError, match="the query reads attribute 'c', which it does not declare; name in"):
            refusal()
    with pytest.raises(TypeError):
        refusals[3]()  # type: ignore[no-untyped-call]


def test_a_block_shows_what_is_named_and_what_follows_from_it() -> None:
    (block,) = dpf.InMemory().load(table(20))
    told = block.with_derived(dpf.Boolean("told"), dpf.Cases([dpf.Equals("ill", "true")]))
    both = told.with_derived(
        dpf.Boolean("both"), dpf.Cases([dpf.And([dpf.Equals("told", "true"), dpf.Below("age", 40)])])
    )
    assert dict(both.attribute_sources) == {"told": {"ill"}, "both": {"ill", "age"}}

    def seen(*names: str) -> set[str]:
        shown = both.showing(names)
        assert both.showing(reversed(names)) is shown
        columns = dict(zip(SCHEMA.names, shown.columns, strict=True)) | shown.derived
        assert set(columns) == {*SCHEMA.names, "told", "both"}
        assert all(len(column) == 20 for column in columns.values())
        assert isinstance(shown.raw["age"], HiddenColumn) == ("age" not in names)
        return {name for name, column in columns.items() if not isinstance(column, HiddenColumn)}

    assert seen("c") == {"c"}
    assert seen("ill") == {"ill", "told"}
    assert seen("age", "told") == {"age", "told"}
    assert seen("age", "ill") == {"age", "ill", "told", "both"}
    with pytest.raises(dpf.InputError, match="attribute 'c' has no raw values: only a numeric attribute has them"):
        both.values("c")


@pytest.mark.parametrize("rows", [1, 2, 7, 8])
def test_tiles_are_consecutive_rows(rows: int) -> None:
    (whole,) = dpf.InMemory().load(table(7))
    whole = attrs.evolve(whole, unit_codes=np.arange(7, dtype=np.uint32))
    block = whole.with_derived(dpf.Boolean("told"), dpf.Cases([dpf.Equals("ill", "true")]))
    part = block.at(np.array([0, 2, 3, 6], dtype=np.int32))
    for one, length in ((block, 7), (part, 4), (part.at(pack_index(part.index, 7)), 4)):
        tiles = list(one.tiles(rows))
        assert [tile.rows for tile in tiles] == [rows] * (length // rows) + [length % rows] * (length % rows > 0)
        assert (tiles == [one]) == (length <= rows)
        for name in (*SCHEMA.names, "told"):
            assert np.concatenate([tile.codes(name) for tile in tiles]).tolist() == one.codes(name).tolist()
        assert np.array_equal(np.concatenate([t.values("age") for t in tiles]), one.values("age"), equal_nan=True)
    units = [tile.unit_codes for tile in block.tiles(rows)]
    assert np.concatenate([own for own in units if own is not None]).tolist() == list(range(7))
    assert [len(list(b.tiles())) for b in (block, attrs.evolve(whole, columns=_long(TILE + 1)))] == [1, 2]


def _long(rows: int) -> Any:
    return tuple(np.zeros(rows, dtype=np.uint8) for _ in SCHEMA)


def test_rows_of_no_part_are_told_so() -> None:
    schema = dpf.Schema([dpf.Categorical("c", ["x", "y", "z"])])
    block = Block(schema, (np.array([0, 1, 2, 1], dtype=np.uint8),), {})
    assert cells_of((dpf.Equals("c", "y"), dpf.Equals("c", "x")), block).tolist() == [1, 0, -1, 0]
    assert cells_of((), block).tolist() == [-1] * 4
    assert cells_of(dpf.Cases([dpf.Equals("c", "y")]), block).tolist() == [1, 0, 1, 0]
    assert cells_of(schema["c"], block).tolist() == [0, 1, 2, 1]
    assert (block.is_whole, block.at(np.arange(4, dtype=np.int32)).is_whole) == (True, False)


@pytest.mark.parametrize("mapped", [False, True])
def test_an_array_grows_by_parts(mapped: bool) -> None:
    array = growing_array(np.dtype(np.uint16), mapped=mapped)
    parts = [np.arange(low, high) for low, high in ((0, 60), (60, 60), (60, 100), (100, 101), (101, 300))]
    for turn in range(1 if mapped else 2):  # it can be filled again
        for part in parts:
            array.append(part)
            assert array.length == part[-1:].sum() + 1 if len(part) else 60
        taken = array.take()
        assert (taken.dtype, taken.tolist()) == (np.uint16, list(range(300))), turn
    assert growing_array(np.dtype(np.uint16), mapped=mapped).take().tolist() == []


def test_in_memory_the_first_part_is_held_exactly_and_more_with_a_quarter_to_grow_in() -> None:
    array: Any = growing_array(np.dtype(np.uint8), mapped=False)
    held = []
    for rows in (100, 20, 30, 1):
        array.append(np.zeros(rows))
        held.append(len(array._array))
    assert held == [100, 150, 150, 188]  # 151 and a quarter of that


@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.float64, np.complex64, object])
def test_wide_counts_stay_as_they_are(kind: Any) -> None:
    counts = np.array([1, 2], dtype=kind)
    assert in_64_bits(counts) is counts
    assert in_64_bits(np.array([3, -4], dtype=np.int32)).tolist() == [3, -4]
    assert in_64_bits(np.array([2**32 - 1], dtype=np.uint32)).tolist() == [2**32 - 1]


def test_nothing_is_warned_of_until_the_last_of_several_is_through() -> None:
    def warned() -> bool:
        with warnings.catch_warnings(record=True) as caught:
            warnings.warn("of a row", stacklevel=1)
        return bool(caught)

    with warnings.catch_warnings(), np.errstate():  # which each thread has of its own, but here is one
        warnings.simplefilter("always")
        before = warnings.filters[:]
        first, second = silenced(), silenced()
        assert warned()
        for entered in (first, second):
            entered.__enter__()
            assert not warned()
            assert (np.array([1.0]) / 0).tolist() == [np.inf]
        first.__exit__(None, None, None)
        assert not warned()
        second.__exit__(None, None, None)
        assert warned()
        assert warnings.filters == before
        with silenced():  # and once more
            assert not warned()
        assert warned()


class OrderOfItsOwn(dpf.Engine):
    """The rows of an engine in this process, which are counted in an order that it is given."""

    name = "ordered"

    def __init__(self, order: Any) -> None:
        self.order, self.seen, self.inner = order, [], dpf.InMemory()

    def load(self, table: Any) -> Any:
        return self.inner.load(table)

    def map(self, rows: Any, function: Any) -> Any:
        self.seen.append(self.inner.number(rows))
        return self.inner.map(rows, function)

    def split(self, rows: Any, by: Any) -> Any:
        return self.inner.split(rows, by)

    def derive(self, rows: Any, attribute: Any, cases: Any) -> Any:
        return self.inner.derive(rows, attribute, cases)

    def counting_order(self, rows: Any) -> Any:
        return self.order(len(rows))


@attrs.frozen
class FailsBelow(dpf.queries.Count):
    """A count of rows that fails where there are few, as a query of a stranger may."""

    def count(self, block: Any, **inputs: Any) -> Any:
        if block.rows < 30:
            raise RuntimeError
        return super().count(block)


@pytest.mark.parametrize("order", [lambda n: range(n), lambda n: range(n)[::-1], lambda n: [0, 0], lambda n: [n]])
def test_no_answer_and_no_error_depends_on_the_order_in_which_rows_are_counted(order: Any) -> None:
    def planned(query: Any) -> dpf.Study:
        study = dpf.Study(SCHEMA, epsilon=1)
        study.add_plan("cut", dpf.parallel(dpf.step("n", query, dpf.mechanisms.DiscreteLaplace(1)), by=SCHEMA["c"]))
        return study

    held, engine = table(50), OrderOfItsOwn(order)
    found = planned(dpf.queries.Count()).run(held, seed=1, engine=engine)
    assert found["cut"] == planned(dpf.queries.Count()).run(held, seed=1)["cut"]
    assert len(engine.seen) >= SCHEMA["c"].size
    errors = []
    for one in (dpf.InMemory(), engine):
        with pytest.raises(dpf.DPFrameworkError) as raised:
            planned(FailsBelow()).run(held, engine=one)
        errors.append(str(raised.value))
    assert errors[0] == errors[1]


def test_a_tree_counts_the_smaller_part_of_each_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpframework_trees.queries import splits

    counted = []
    by_class = splits.counts_by_class

    def watched(block: Any, attributes: Any, *more: Any) -> Any:
        counted.append((block.rows, len(attributes)))
        return by_class(block, attributes, *more)

    monkeypatch.setattr(splits, "counts_by_class", watched)
    random = np.random.default_rng(0)
    schema = dpf.Schema([dpf.Boolean("y"), dpf.Numeric("a", 0, 10, bins=10), dpf.Numeric("b", 0, 10, bins=10)])
    numbers = random.integers(0, 10, (2, 4000))
    held = dpf.Table.from_codes(schema, [(numbers[0] >= 8).astype(int), *numbers])
    study = dpf.Study(schema, epsilon=50)
    study.add("tree", dpf.miner("dp-id3", target="y", max_depth=2, epsilon=50))
    study.run(held, seed=1)
    below = int((numbers[0] < 8).sum())  # is cut off first, and is the larger part
    assert counted == [(4000, 2), (4000 - below, 2)]


def test_the_caches_around_a_part_are_those_of_the_whole_and_of_the_other_parts() -> None:
    schema = dpf.Schema([dpf.Categorical("c", ["x", "y", "z"])])
    engine = dpf.InMemory()
    rows = engine.load(dpf.Table.from_codes(schema, [[0, 1, 2, 1]]))
    parts = engine.split(rows, schema["c"])
    assert engine.related_caches(rows) is None
    for k, part in enumerate(parts):
        around = engine.related_caches(part)
        assert around is not None
        whole, others = around
        assert whole is engine.cache_of(rows)
        assert [id(one) for one in others] == [id(engine.cache_of(other)) for j, other in enumerate(parts) if j != k]
    some = engine.split(rows, (dpf.Equals("c", "x"),))  # of which not every row is in one
    assert engine.related_caches(some[0]) is None


@given(st.integers(1, 6))
def test_each_part_sees_all_others_once_in_order(number: int) -> None:
    whole: dict[Hashable, Any] = {"whole": 0}
    parts: list[dict[Hashable, Any]] = [{k: k} for k in range(number)]
    for position in range(number):
        found, others = RelatedCaches(whole, parts, position).of_others()
        assert found is whole
        assert [next(iter(one)) for one in others] == [k for k in range(number) if k != position]


def test_a_count_that_is_added_later_is_seen_by_the_others() -> None:
    parts: list[dict[Hashable, Any]] = [{}, {}]
    one, other = (RelatedCaches({}, parts, k) for k in range(2))
    parts[0]["n"] = 5
    assert other.of_others()[1] == [{"n": 5}]
    assert one.of_others()[1] == [{}]
