"""Candidates, regions, and scores from joint counts, against a plain recount."""

import attrs
import numpy as np
import pytest
from dpframework_trees.criteria import CRITERIA, KnownRows
from dpframework_trees.queries import CodesByClass, SplitScores, ThresholdScores, table_scores
from dpframework_trees.splits import Candidates, Multiway, Region, child_labels, cut_of, names_in

from dpframework import (
    Below,
    Boolean,
    Cases,
    Categorical,
    Equals,
    InMemory,
    InputError,
    Numeric,
    Schema,
    Table,
    Threads,
)
from dpframework.tables.encoded_row_blocks import cells_of
from dpframework.tables.in_process_engines import BlockEngine

SCHEMA = Schema(
    [
        Categorical("colour", values=["red", "green", "blue"], missing=True),
        Numeric("size", 0, 10, cuts=[2, 5, 9], missing=True),
        Boolean("ripe"),
        Categorical("class", values=["a", "b", "c"]),
    ]
)
NAMES = ("colour", "size", "ripe")


@pytest.fixture
def table() -> Table:
    rng = np.random.default_rng(5)
    codes = np.stack([rng.integers(0, a.size, 300) for a in SCHEMA])
    return Table.from_codes(SCHEMA, codes)


def test_candidates_are_every_public_value_and_cut():
    binary = Candidates.of_schema(SCHEMA, NAMES, multiway=False, cuts=True)
    assert [str(s) for s in binary] == [
        "colour = red",
        "colour = green",
        "colour = blue",
        "colour = missing",
        "size < 2",
        "size < 5",
        "size < 9",
        "ripe = true",
    ]
    multiway = Candidates.of_schema(SCHEMA, NAMES, multiway=True, cuts=False)
    assert list(multiway) == [Multiway("colour"), Multiway("ripe")]


def test_a_path_leaves_only_splits_with_two_possible_children():
    candidates = Candidates.of_schema(SCHEMA, NAMES, multiway=False, cuts=True)
    below, above = Region.whole(SCHEMA).children(Below("size", 5))
    assert [str(s) for s in candidates.of_attribute("size").possible(below)] == ["size < 2"]
    # a missing size is never below, so "size < 9" still parts rows from it
    assert [str(s) for s in candidates.of_attribute("size").possible(above)] == ["size < 9"]
    red, others = Region.whole(SCHEMA).children(Equals("colour", "red"))
    assert not len(candidates.of_attribute("colour").possible(red))
    assert [str(s) for s in candidates.of_attribute("colour").possible(others)] == [
        "colour = green",
        "colour = blue",
        "colour = missing",
    ]


def test_candidates_of_few_codes_and_of_attributes_in_another_order():
    """A single code parts nothing; of two codes the second is asked for, which for a Boolean is "true"."""
    schema = Schema([Categorical("one", ["x"]), Categorical("two", ["x", "y"]), *SCHEMA])
    binary = Candidates.of_schema(schema, ("size", "two", "one", "colour"), multiway=False, cuts=True)
    colours = ["colour = red", "colour = green", "colour = blue", "colour = missing"]
    assert list(map(str, binary)) == ["size < 2", "size < 5", "size < 9", "two = y", *colours]
    assert list(map(str, binary[3:6])) == ["two = y", *colours[:2]]
    assert list(map(str, binary[-1:0:-4])) == ["colour = missing", "two = y"]
    assert str(binary[-1]) == "colour = missing"
    assert [a.name for a in binary.split_on] == ["size", "two", "colour"]
    assert names_in(binary, Candidates.of_schema(schema, ("ripe", "two"), multiway=False, cuts=True)) == (
        "size",
        "two",
        "colour",
        "ripe",
    )
    for k, test in enumerate(binary):
        assert binary.position(test) == k
    multiway = Candidates.of_schema(schema, ("two", "size"), multiway=True, cuts=True)
    assert list(map(str, multiway)) == ["each two", "size < 2", "size < 5", "size < 9"]
    assert not len(Candidates.of_schema(schema, ("size",), multiway=True, cuts=False))


def test_candidates_are_taken_out_by_split_by_test_by_attribute_and_by_cut():
    every = Candidates.of_schema(SCHEMA, NAMES, multiway=False, cuts=True)
    colours, sizes = ["colour = red", "colour = green", "colour = blue", "colour = missing"], ["size < 2", "size < 5"]

    def shown(candidates):
        return list(map(str, candidates))

    assert shown(every.of_attribute("size")) == [*sizes, "size < 9"]
    assert shown(every.without(Multiway("colour"))) == [*sizes, "size < 9", "ripe = true"]
    assert shown(every.with_one_cut({"size": Below("size", 9)})) == [*colours, "size < 9", "ripe = true"]
    assert shown(every.with_one_cut({})) == [*colours, "ripe = true"]
    # other attributes come first; where there are none, other tests; where there are none, all
    assert shown(every.without_tests([Equals("colour", "red"), Below("size", 2)])) == ["ripe = true"]
    own = every.of_attribute("size")
    assert shown(own.without_tests([Below("size", 9)])) == sizes
    assert shown(own.without_tests(list(own))) == [*sizes, "size < 9"]
    nothing = every.of_attribute("size").with_one_cut({})
    assert shown(nothing) == shown(nothing.of_attribute("size")) == shown(nothing.without(Multiway("colour"))) == []


def test_thresholds_off_the_grid_come_after_the_candidates_that_there_are():
    some = Candidates.of_schema(SCHEMA, ("ripe", "size"), multiway=False, cuts=True).with_thresholds({"size": 4.25})
    assert list(map(str, some)) == ["ripe = true", "size < 2", "size < 5", "size < 9", "size < 4.25"]
    assert some.attributes.tolist() == [2, 1, 1]
    assert some.sizes.tolist() == [2, 5, 5]
    assert some.owner.tolist() == [0, 1, 1, 1, 2]
    assert some.codes.tolist() == [1, 0, 1, 2, 0]
    assert np.isnan(some.thresholds).tolist() == [True] * 4 + [False]
    assert child_labels(some[4], SCHEMA) == ("size < 4.25", "size >= 4.25")
    assert child_labels(Multiway("ripe"), SCHEMA) == ("ripe = false", "ripe = true")
    assert some.with_thresholds({}).kinds.tolist() == some.kinds.tolist()


def test_regions_leave_the_codes_of_each_child_and_all_of_other_attributes():
    """In one line: 4 colours, 3 cuts' 4 bins and a missing size, 2 of ripe, 3 classes."""
    whole = Region.whole(SCHEMA)
    assert whole.starts.tolist() == [0, 4, 9, 11, 14]
    assert whole.possible.tolist() == [True] * 14
    assert whole.bounds == {"size": (0, 10)}

    def gone(region):
        return np.flatnonzero(~region.possible).tolist()

    assert list(map(gone, whole.children(Multiway("ripe")))) == [[10], [9]]
    assert list(map(gone, whole.children(Equals("colour", "green")))) == [[0, 2, 3], [1]]
    assert list(map(gone, whole.children(Below("size", 5)))) == [[6, 7, 8], [4, 5]]
    off = whole.children(Below("size", 4))
    assert [region.bounds["size"] for region in off] == [(0, 4), (4, 10)]
    assert list(map(gone, off)) == [[], []]
    assert [region.bounds["size"] for region in off[1].children(Below("size", 6))] == [(4, 6), (6, 10)]
    (_, others) = whole.children(Equals("ripe", "true"))
    assert [others.allows(name) for name in SCHEMA.names] == [True] * 4
    nowhere = others.children(Equals("ripe", "true"))[0]
    assert gone(nowhere) == [9, 10]
    assert [nowhere.allows(name) for name in SCHEMA.names] == [True, True, False, True]


def test_two_children_that_rows_may_be_in_are_needed_of_each_kind():
    whole = Region.whole(SCHEMA)
    every = Candidates.of_schema(SCHEMA, NAMES, multiway=True, cuts=True)

    def left(*codes):
        """The candidates where only these codes of colour, 0 to 3, and of size, 4 to 8, are possible."""
        possible = np.isin(np.arange(14), codes)
        return list(map(str, every.possible(attrs.evolve(whole, possible=possible))))

    assert left(*range(14)) == ["each colour", "size < 2", "size < 5", "size < 9", "each ripe"]
    assert left(0, 4) == []
    assert left(0, 3, 4, 5) == ["each colour", "size < 2"]
    assert left(2, 5, 6) == ["size < 5"]
    assert left(4, 8) == ["size < 2", "size < 5", "size < 9"]
    assert left(9, 10) == ["each ripe"]


def test_regions_and_parts_agree(table):
    engine = InMemory()
    rows = engine.load(table)
    for split in Candidates.of_schema(SCHEMA, NAMES, multiway=True, cuts=True):
        cut = cut_of(split)
        by = SCHEMA[cut] if isinstance(cut, str) else cut
        parts, regions = engine.split(rows, by), Region.whole(SCHEMA).children(split)
        assert len(parts) == len(regions) == len(child_labels(split, SCHEMA))
        start = Region.whole(SCHEMA).starts[SCHEMA.index(split.attribute)]
        for part, region in zip(parts, regions, strict=True):
            assert region.possible[start + part[0].codes(split.attribute).astype(int)].all()


def plain_score(table: Table, split, criterion: str) -> float:
    block = InMemory().load(table)[0]
    cut = cut_of(split)
    cells = cells_of(SCHEMA[cut] if isinstance(cut, str) else cut, block)
    classes = block.codes("class")
    return sum(
        CRITERIA[criterion].kernels.child_score(np.bincount(classes[cells == k], minlength=3)) for k in np.unique(cells)
    )


@pytest.mark.parametrize("engine", [InMemory(), Threads(3)], ids=["memory", "threads"])
@pytest.mark.parametrize("multiway", [False, True])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_scores_from_joint_counts_equal_a_plain_recount(table, criterion, multiway, engine):
    candidates = Candidates.of_schema(SCHEMA, NAMES, multiway=multiway, cuts=True)
    candidates = candidates.with_thresholds({"size": 3.3})
    query = SplitScores(CRITERIA[criterion], SCHEMA["class"], KnownRows(300), len(candidates))
    scores = query.evaluate(engine, engine.load(table), candidates=candidates)
    assert scores == pytest.approx([plain_score(table, split, criterion) for split in candidates])
    assert query.candidates(candidates=candidates)[len(candidates) - 1] == Below("size", 3.3)


def test_scores_read_off_tables_equal_scores_of_splits(table):
    engine = InMemory()
    rows = engine.load(table)
    candidates = Candidates.of_schema(SCHEMA, NAMES, multiway=False, cuts=True)
    by_class = CodesByClass(SCHEMA["class"])
    tables = {name: by_class.evaluate(engine, rows, attribute=SCHEMA[name]) for name in NAMES}
    query = SplitScores(CRITERIA["max"], SCHEMA["class"], KnownRows(), len(candidates))
    expected = query.evaluate(engine, rows, candidates=candidates)
    assert table_scores(candidates, tables, CRITERIA["max"]) == pytest.approx(expected)


def test_threshold_scores_are_those_of_the_split_anywhere_between_two_values(table):
    engine = Threads(2)
    query = ThresholdScores(CRITERIA["norm"], SCHEMA["class"], KnownRows(), SCHEMA["size"])
    pieces = query.evaluate(engine, engine.load(table), lower=0.0, upper=10.0)
    assert pieces.breaks[0] == 0
    assert pieces.breaks[-1] == 10
    for threshold in (0.5, 1.5, 4.2, 8.0, 9.9):
        piece = int(np.searchsorted(pieces.breaks, threshold, side="right")) - 1
        assert pieces.scores[piece] == pytest.approx(plain_score(table, Below("size", threshold), "norm"))


@pytest.mark.parametrize("engine", [InMemory(), Threads(3)], ids=["memory", "threads"])
@pytest.mark.parametrize("cut", ["colour", Cases([Below("size", 5)]), (Below("size", 5),)], ids=["all", "two", "some"])
def test_scores_of_parts_are_the_same_whatever_was_counted_before(table, engine, cut):
    first, second = (Candidates.of_schema(SCHEMA, names, multiway=False, cuts=True) for names in (NAMES, NAMES[:2]))
    query = SplitScores(CRITERIA["max"], SCHEMA["class"], KnownRows(300), len(first))
    rows = engine.load(table)
    query.evaluate(engine, rows, candidates=first)
    by = SCHEMA[cut] if isinstance(cut, str) else cut
    for turn in range(2):  # asked again, what was kept is as good
        for k, part in enumerate(engine.split(rows, by)):
            for candidates in (second if k == 1 - turn else first, first):
                counts = engine.sum(part, lambda block: query.count(block, candidates=candidates))  # noqa: B023
                expected = query.answer(counts, candidates=candidates)
                assert query.evaluate(engine, part, candidates=candidates).tolist() == expected.tolist()


def test_the_last_part_is_not_counted(table):
    counted = []

    class Watched(BlockEngine):
        name = "watched"

        def map(self, rows, function):
            return [function(block) for block in rows]

        def counts(self, rows, functions):
            found = super().counts(rows, functions)
            counted.append(len(found[0]))
            return found

    candidates = Candidates.of_schema(SCHEMA, NAMES, multiway=False, cuts=True)
    query = SplitScores(CRITERIA["max"], SCHEMA["class"], KnownRows(300), len(candidates))
    engine = Watched(1)
    rows = engine.load(table)
    query.evaluate(engine, rows, candidates=candidates)
    for part in engine.split(rows, Cases([Below("size", 5)])):
        query.evaluate(engine, part, candidates=candidates)
    codes = sum(SCHEMA[name].size for name in NAMES)
    assert counted == [codes, codes, 0]


def test_a_derived_attribute_may_be_the_class_but_not_split_on(table):
    engine = InMemory()
    leaf = Categorical("leaf", values=["young", "old"])
    rows = engine.derive(engine.load(table), leaf, Cases([Below("size", 5)]))
    candidates = Candidates.of_schema(rows[0].schema, ["ripe"], multiway=False, cuts=True)
    query = SplitScores(CRITERIA["max"], leaf, KnownRows(), len(candidates))
    assert query.evaluate(engine, rows, candidates=candidates)[0] >= 150
    derived = Candidates.of_schema(rows[0].schema, ["leaf"], multiway=False, cuts=True)
    with pytest.raises(InputError, match="derived attribute"):
        query.evaluate(engine, rows, candidates=derived)
