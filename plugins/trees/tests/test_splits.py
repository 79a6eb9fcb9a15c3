"""Candidates, regions, and scores from joint counts, against a plain recount."""

import numpy as np
import pytest
from dpframework_trees.criteria import CRITERIA, KnownRows
from dpframework_trees.queries import CodesByClass, SplitScores, ThresholdScores, table_scores
from dpframework_trees.splits import Candidates, Multiway, Region, child_labels, cut_of

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
from dpframework.tables.blocks import cells_of
from dpframework.tables.engines import _Blocks

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

    class Watched(_Blocks):
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
