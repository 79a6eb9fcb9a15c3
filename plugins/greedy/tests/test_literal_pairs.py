"""Pairs scored in rows and counted three at a time: what is planned, read off the tables, and found."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
from dpframework_greedy import SerenadeCS, SerenadeES
from dpframework_greedy.language import literals_of
from dpframework_greedy.literal_pairs import TruthCells, _combinations, as_literal, mine_pairs, plan_pairs, read
from dpframework_greedy.pair_plan import NUMBERS
from row_counts import choose_row_count

import dpframework as dpf
from dpframework.facts import Below, Equals
from dpframework.lab.clinic import clinic_schema, clinic_table
from dpframework.lab.evaluation import exact_counts, redescription_quality
from dpframework.lab.evaluation.readable_rows_and_folds import columns_of
from dpframework.mechanisms import DiscreteLaplace, Exponential
from dpframework.plan import Step, walk
from dpframework.redescriptions import CellTable, Match, MatchScores, Redescription, Redescriptions, ReportConditions
from dpframework.results import Noisy
from dpframework.verify.conformance_suites import QueryConformance

SCHEMA = dpf.Schema(
    [
        dpf.Boolean("wolf", view="left"),
        dpf.Boolean("moose", view="left"),
        dpf.Categorical("zone", ["north", "middle", "south"], view="left", missing=True),
        dpf.Boolean("snow", view="right"),
        dpf.Numeric("rain", 0, 8, cuts=[3, 5], view="right"),
    ]
)
GROUP = (
    Match(Equals("wolf", "true"), Equals("snow", "true"), False),
    Match(Equals("moose", "true"), Below("rain", 5), True),
    Match(Equals("zone", "north"), Below("rain", 3), True),
)
SIDES = {name: [match.sides[k] for match in GROUP] for k, name in enumerate(("left", "right"))}
EVERYTHING = ReportConditions(0, -np.inf, np.inf)
MINERS = (SerenadeCS, SerenadeES)


class TestTruthCells(QueryConformance):
    pairs = 100
    queries: ClassVar = {"three": (TruthCells(3), SCHEMA, SIDES)}


def rows_of(rows: int = 300) -> dpf.Table:
    rng = np.random.default_rng(4)
    return dpf.Table.from_codes(SCHEMA, np.stack([rng.integers(0, a.size, rows) for a in SCHEMA]))


def counts_of(table: dpf.Table) -> np.ndarray:
    engine = dpf.InMemory()
    return TruthCells(3).evaluate(engine, engine.load(table), **SIDES).astype(float)


@pytest.fixture(scope="module")
def clinic() -> dpf.Table:
    return clinic_table(5000)


def run(table: dpf.Table, miner: dpf.Miner, seed: int = 0, **study: Any) -> Redescriptions:
    opened = dpf.Study(table.schema, epsilon=miner.epsilon, **study)
    opened.add("found", miner)
    return opened.run(table, seed=seed)["found"]


def test_each_combination_holds_in_its_cells_and_nowhere_else() -> None:
    """Also where a value is missing: a pair with such an attribute has no complement."""
    table = rows_of()
    columns = columns_of(table)
    combinations = _combinations(GROUP, SCHEMA)
    # of the two complete pairs all 16 functions but ties, always and never; the third one only as it is; and of all
    # three, one of them with two that the other word joins
    masks = [one.holds(np.arange(8), range(3)) for one in combinations]
    assert len({mask.tobytes() for mask in masks}) == len(combinations) == 4 + 8 + 1 + 2 * 4 + 2 * 4 + 6 * 4
    for name, sides in SIDES.items():
        cell = sum(side.holds(columns).astype(int) << k for k, side in enumerate(sides))
        for one, mask in zip(combinations, masks, strict=True):
            assert (one.describe(sides).holds(columns) == mask[cell]).all(), (name, one)


def test_counts_read_off_an_exact_table_are_those_of_the_rows() -> None:
    table = rows_of()
    found, looked_at = read(CellTable(counts_of(table), 0, len(table.codes[0])), GROUP, SCHEMA, EVERYTHING)
    assert looked_at == len(_combinations(GROUP, SCHEMA))
    assert len(found) > 5
    for one, exact in zip(found, exact_counts(found, table), strict=True):
        assert [one.both, one.left_only, one.right_only] == [exact.both, exact.left_only, exact.right_only]


def test_noise_of_a_count_is_that_of_its_cells() -> None:
    cells = CellTable(counts_of(rows_of()), 2.0, None)
    single = _combinations(GROUP, SCHEMA)[0].holds(np.arange(8), range(3))
    one = cells.redescription(GROUP[0].sides, single, single, 0.5)
    assert (one.both.variance, one.left_only.variance, one.rows.variance) == (32, 32, 128)
    assert one.rows.value == 300


def test_what_is_reported_is_within_bounds_and_tells_different_rows() -> None:
    counts = np.zeros((4, 4))
    counts[1, 1], counts[2, 2], counts[1, 2], counts[0, 0] = 300, 200, 40, 460
    masks = np.array([[0, 1, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0], [1, 0, 1, 1]], dtype=bool)  # the second: the same rows
    reported = CellTable(counts, 1.0, 1000).reported
    assert reported(masks, masks, ReportConditions(0.5, 10)) == [3, 0, 2]
    assert reported(masks, masks, ReportConditions(0.5, 10, 600)) == [0, 2]
    assert reported(masks, masks, ReportConditions(0.85, 10, 1000)) == [3, 0]
    assert reported(masks, masks, ReportConditions(0.5, 250, 600)) == [0]
    assert CellTable(counts, 60.0**2, 1000).reported(masks, masks, ReportConditions(0.5, 10, 600)) == [0]


@pytest.mark.parametrize(
    ("both", "apart", "deviation", "wanted"),
    [
        (19, 0, 1, False),
        (21, 0, 1, True),
        (600, 90, 1, True),
        (600, 110, 1, False),
        (60, 0, 14, True),
        (60, 0, 16, False),
    ],
)
def test_what_is_reported_has_a_fiftieth_of_the_rows_seven_tenths_at_most_and_four_deviations(
    both: int, apart: int, deviation: float, wanted: bool
) -> None:
    counts = np.array([[1000 - both - apart, 0], [apart, both]], dtype=float)
    mask = np.array([[False, True]])
    assert CellTable(counts, deviation**2, 1000).reported(mask, mask, ReportConditions(0.5)) == ([0] if wanted else [])


def test_of_two_that_share_four_fifths_of_their_rows_one_is_reported() -> None:
    masks = np.array([[0, 1, 0, 0], [0, 1, 1, 0]], dtype=bool)
    for shared, number in ((790, 2), (810, 1)):
        counts = np.diag([500.0, shared, 1000 - shared, 500])
        assert len(CellTable(counts, 1.0, 2000).reported(masks, masks, ReportConditions(0.5))) == number


@pytest.mark.parametrize("kind", MINERS)
@pytest.mark.parametrize("asked", [{}, {"pairs": 4}, {"budget": [0.5, 0, 0.5]}, {"pairs": 7, "epsilon": 3}])
def test_the_plan_costs_exactly_epsilon_and_assumes_nothing(kind: type[Any], asked: dict[str, Any]) -> None:
    miner = kind(**{"epsilon": Fraction(1, 3), **asked})
    for relation in dpf.Relation:
        study = dpf.Study(clinic_schema(), epsilon=miner.epsilon, relation=relation.value)
        study.add("found", miner)
        assert study.plan().total().epsilon == miner.epsilon
        assert study.plan().assumptions.keys() <= {"row-count-public"}


def test_the_number_of_pairs_follows_from_epsilon_and_public_facts() -> None:
    def plan_pairs(epsilon: float, rows: int, **asked: int) -> int:
        schema = dpf.Schema(list(clinic_schema()), rows=rows)
        choices, tables = SerenadeES(epsilon=epsilon, **asked).plan(schema).children
        assert isinstance(choices.part.mechanism, Exponential)
        assert isinstance(choices.part.query, MatchScores)
        assert not choices.part.query.given_cap
        assert isinstance(tables.part.mechanism, DiscreteLaplace)
        assert tables.times == -(-choices.times // 3)
        return choices.times

    assert [plan_pairs(epsilon, 2_500) for epsilon in (0.01, 0.1, 1, 10)] == [1, 1, 14, 20]
    assert [plan_pairs(0.1, rows) for rows in (100, 10_000, 200_000)] == [1, 5, 20]
    assert plan_pairs(0.1, 100, pairs=5) == 5


@pytest.mark.parametrize("kind", [SerenadeES, SerenadeCS])
def test_a_given_budget_is_what_pairs_and_counts_get(kind: type[SerenadeES | SerenadeCS]) -> None:
    schema = dpf.Schema(list(clinic_schema()), rows=400)
    shares = {budget: kind(epsilon=1, budget=budget).pair_plan(schema).shares for budget in (None, ("0.9", 0, "0.1"))}
    assert [(one.pairs, one.quality) for one in shares.values()] == [
        (Fraction(3, 5), Fraction(2, 5)),
        (Fraction(9, 10), Fraction(1, 10)),
    ]
    together = [kind(epsilon=1, budget=budget).counts_together for budget in (*shares, ("0.5", "0.2", "0.3"))]
    assert together == [True, True, False]  # pairs that are counted together are not extended


@pytest.mark.parametrize("most", [None, 20_000, 400])
def test_a_secret_number_of_rows_is_released_first_and_says_how_many_pairs(most: int | None) -> None:
    """A branch for each number of pairs that it may choose; among 400 rows it can be but one."""
    schema = dpf.Schema(list(clinic_schema()), max_rows=most)
    plan, pairs = SerenadeES(epsilon="0.1"), SerenadeES(epsilon="0.1").pair_plan(schema)
    steps = [node for node in walk(plan.plan(schema)) if isinstance(node, Step)]
    if most == 400:
        assert pairs.numbers == (1,)
        assert [one.name for one in steps] == ["pair", "table"]
        return
    assert pairs.numbers == ((*NUMBERS,) if most is None else (1, 2, 3, 4, 6, 9))
    assert (steps[0].name, steps[0].mechanism) == ("rows", DiscreteLaplace(Fraction(1, 500)))
    assert [(one.uses, one.query.given_cap) for one in steps if one.name == "pair"] == [(("rows",), True)] * len(
        pairs.numbers
    )
    chosen = [pairs.number(rows) for rows in (1, 3_000, 5_000, 10_000, 20_000)]
    assert chosen == [1, 2, 3, 4, 9]
    for relation in dpf.Relation:
        study = dpf.Study(schema, epsilon="0.1", relation=relation.value)
        study.add("found", plan)
        assert study.plan().total().epsilon == Fraction(1, 10)


def test_the_branch_that_is_likely_is_that_of_about_as_many_rows() -> None:
    """Of 3 pairs or more a support adds up (2**3 - 1)**2 cells, of two (2**2 - 1)**2, of one a single cell."""

    def likely(epsilon: str = "0.1", **facts: int) -> tuple[str, int]:
        return SerenadeES(epsilon=epsilon).pair_plan(dpf.Schema(list(clinic_schema()), **facts)).likely

    assert likely(max_rows=20_000) == ("", 49)
    assert [likely(max_rows=20_000, about_rows=rows) for rows in (1, 3_000, 5_000)] == [
        ("1 pair", 1),
        ("2 pairs", 9),
        ("3 pairs", 49),
    ]
    assert [likely(rows=rows) for rows in (100, 5_000)] == [("", 1), ("", 49)]
    assert likely(max_rows=400, about_rows=300) == ("", 1)


@pytest.mark.parametrize(("released", "pairs"), [(-3, 1), (5_000, 3), (10**9, 9)])
def test_the_released_number_chooses_the_pairs_and_the_cap(
    released: int, pairs: int, clinic: dpf.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = choose_row_count(monkeypatch, released)
    table = dpf.Table.from_codes(attrs.evolve(clinic.schema, rows=None, max_rows=20_000), clinic.codes, clinic.values)
    run(table, SerenadeES(epsilon="0.1"))
    assert [name for name, _ in asked] == ["rows", *["pair"] * pairs, *["table"] * -(-pairs // 3)]
    caps = [inputs["cap"] for name, inputs in asked if name == "pair"]
    assert caps == [max(min(released, 20_000) * 3 // 10, 1)] * pairs


@pytest.mark.parametrize("kind", MINERS)
def test_planted_relations_are_found_at_a_small_budget(kind: type[Any], clinic: dpf.Table) -> None:
    found = [run(clinic, kind(epsilon=2), seed) for seed in range(2)]
    quality = [redescription_quality(one, clinic) for one in found]
    assert all(one.useful.sum() >= 3 for one in quality)
    assert all((one.p_values <= 0.01).all() for one in quality)
    texts = [f"{one.left} ~ {one.right}" for one in found[0]]
    assert any("HbA1c" in text or "TSH" in text for text in texts), texts


@pytest.mark.parametrize("asked", [{}, {"rounds": 1, "min_support": 200}])
def test_each_pair_is_told_both_parts_of_those_before_it(
    asked: dict[str, Any], clinic: dpf.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[Any, ...]] = []
    evaluate = MatchScores.evaluate

    def watched(self: MatchScores, engine: Any, rows: Any, **inputs: Any) -> Any:
        told.append(tuple(inputs["known"]))
        return evaluate(self, engine, rows, **inputs)

    monkeypatch.setattr(MatchScores, "evaluate", watched)
    run(clinic, SerenadeES(10, pairs=3, **asked))
    assert [len(known) for known in told] == [0, 2, 4]
    assert told[2][:2] == told[1]
    assert len(set(told[2])) == 4


def test_intervals_hold_the_exact_indices(clinic: dpf.Table) -> None:
    held = []
    for seed in range(3):
        found = run(clinic, SerenadeES(epsilon=2, pairs=6), seed)
        for one, exact in zip(found, exact_counts(found, clinic), strict=True):
            low, high = one.jaccard_interval()
            held.append(low <= exact.jaccard <= high)
    assert len(held) > 6
    assert np.mean(held) >= 0.75  # 95 % each; counts of a run share cells, so runs count, not redescriptions


def test_extensions_grow_from_pairs_that_are_scored_in_rows(clinic: dpf.Table) -> None:
    for miner in (
        SerenadeES(epsilon=5, min_support=200, rounds=2, pairs=2),
        SerenadeCS(epsilon=5, min_support=200, extensions=1, pairs=2),
    ):
        study = dpf.Study(clinic.schema, epsilon=5)
        study.add("found", miner)
        assert study.plan().total().epsilon == 5
        names = {path.split("/")[-1] for path in study.plan().previews()}
        assert names & {"extension", "extensions"}
        assert all(one.jaccard > 0.3 for one in study.run(clinic, seed=1)["found"])


def test_sides_of_a_match_are_literals_of_the_language() -> None:
    columns = columns_of(rows_of())
    for match in GROUP:
        for side in (*match.sides, *(one.part if isinstance(one, dpf.Not) else dpf.Not(one) for one in match.sides)):
            literal = as_literal(side, SCHEMA)
            assert (literal.holds(columns) == side.holds(columns)).all()
            assert str(literal.description) == str(side)
            assert literal in literals_of(literal.attribute)


def test_where_nothing_surpasses_the_index_nothing_is_returned() -> None:
    rng = np.random.default_rng(0)
    table = dpf.Table.from_codes(clinic_schema(), np.stack([rng.integers(0, a.size, 3000) for a in clinic_schema()]))
    found = run(table, SerenadeES(epsilon=1))
    assert not len(found)
    assert "None was clearly above a Jaccard index of 0.5" in str(found)


@pytest.mark.parametrize("kind", MINERS)
def test_where_the_best_pair_is_below_the_target_nothing_is_returned_and_the_reason_is_said(kind: type[Any]) -> None:
    """Of 2,000 rows on either side 800 are on both: an index of 0.4, which a lower target finds."""
    schema = dpf.Schema([dpf.Boolean("wolf", view="left"), dpf.Boolean("snow", view="right")])
    codes = np.zeros((2, 5000), dtype=np.int64)
    codes[0, :1400], codes[1, :800], codes[1, 1400:2000] = 1, 1, 1
    table = dpf.Table.from_codes(schema, codes)
    found = run(table, kind(epsilon=2, pairs=1))
    assert not len(found)
    assert "None was clearly above a Jaccard index of 0.5" in str(found)
    assert len(run(table, kind(epsilon=2, pairs=1, target_jaccard=0.3, min_support=100))) == 1
    # what is returned is .08 above
    for target, number in ((0.315, 1), (0.325, 0)):
        assert len(run(table, kind(epsilon=1000, pairs=1, target_jaccard=target, min_support=100))) == number


def test_bounds_on_the_support_are_kept(clinic: dpf.Table) -> None:
    schema = dpf.Schema(list(clinic.schema), max_rows=5000)
    table = dpf.Table.from_codes(schema, clinic.codes, clinic.values)
    for one in run(table, SerenadeES(epsilon=3, min_support=300, max_support=2000)):
        assert one.both.value >= 300
        assert max(one.left_support.value, one.right_support.value) <= 2000


class Released:
    """Releases the pairs of a group, in turn, and exact tables of them."""

    schema = SCHEMA

    def __init__(self, matches: list[Match], table: dpf.Table, most: int = 3) -> None:
        self.matches, self.query, self.told = iter(matches), TruthCells(most), []
        self.engine = dpf.InMemory()
        self.rows = self.engine.load(table)

    def release(self, step: str, **inputs: Any) -> Any:
        """Return the next pair, or the table of some."""
        self.told.append((step, inputs))
        return next(self.matches) if step == "pair" else self.query.evaluate(self.engine, self.rows, **inputs)

    def calibration(self, step: str) -> Any:
        """Return that of the tables."""
        assert step == "table"
        return SimpleNamespace(variance=2.0)


def test_pairs_are_counted_three_at_a_time_and_the_rest_together() -> None:
    """What is returned of all is what each table tells by itself."""
    table, fourth = rows_of(), Match(Equals("moose", "true"), Equals("snow", "true"), True)
    matches = [*GROUP, fourth]
    released = Released(matches, table)
    found, looked_at = mine_pairs(released, 4, EVERYTHING)
    expected, number = [], 0
    for group in (list(GROUP), [fourth]):
        sides = {name: [match.sides[k] for match in group] for k, name in enumerate(("left", "right"))}
        counts = TruthCells(3).evaluate(released.engine, released.rows, **sides).astype(float)
        of_group, looked_at_group = read(CellTable(counts, 2.0, None), group, SCHEMA, EVERYTHING)
        expected += of_group
        number += looked_at_group
    assert looked_at == number == len(_combinations(GROUP, SCHEMA)) + len(_combinations([fourth], SCHEMA))
    assert {(str(one.left), str(one.right)) for one in found} == {(str(one.left), str(one.right)) for one in expected}
    assert {one.both.variance for one in found} <= {one.both.variance for one in expected}
    assert [len(inputs["known"]) for step, inputs in released.told if step == "pair"] == [0, 2, 4, 6]
    assert [len(inputs["left"]) for step, inputs in released.told if step == "table"] == [3, 1]


@pytest.mark.parametrize("pairs", [1, 2, 3, 4, 6, 7])
def test_what_is_planned_of_so_many_pairs(pairs: int) -> None:
    scores = MatchScores((SCHEMA["wolf"],), (SCHEMA["snow"],), Fraction(1, 2), 30)
    chosen, counted = plan_pairs(scores, pairs, Fraction(3, 7), Fraction(4, 7)).children
    tables = math.ceil(pairs / 3)
    assert (chosen.times, counted.times) == (pairs, tables)
    assert (chosen.part.name, counted.part.name) == ("pair", "table")
    assert chosen.part.mechanism == Exponential(Fraction(3, 7) / pairs)
    assert counted.part.mechanism == DiscreteLaplace(Fraction(4, 7) / tables)
    assert counted.part.query == TruthCells(min(pairs, 3), among=("wolf", "snow"))
    assert chosen.part.query == attrs.evolve(scores, followed=pairs > 1)
    assert (chosen.part.threshold, tuple(counted.part.uses)) == (30, ("pair",))


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_each_row_is_in_the_cell_of_the_tests_that_hold_for_it(most: int) -> None:
    """As many as there are of either view, also where fewer are given, and more than a byte holds."""
    table, query = rows_of(), TruthCells(most)
    assert query.answer_length == 4**most
    assert query.text == f"rows by which of {most} released pairs of tests hold"
    engine, columns = dpf.InMemory(), columns_of(table)
    for left, right in ((most, most), (1, most), (most, 1)):
        sides = [(SIDES[name] * 2)[:number] for name, number in (("left", left), ("right", right))]
        found = query.evaluate(engine, engine.load(table), left=sides[0], right=sides[1])
        cells = [sum(test.holds(columns).astype(int) << k for k, test in enumerate(side)) for side in sides]
        expected = np.zeros((2**left, 2**right), dtype=int)
        np.add.at(expected, tuple(cells), 1)
        assert (found == expected).all()


@pytest.mark.parametrize(
    ("both", "apart", "kept"), [(5, 0, True), (4, 0, False), (5, 4, True), (5, 5, False), (9, 0, True), (10, 0, False)]
)
def test_supports_at_their_bounds_are_kept_and_those_beyond_are_not(both: int, apart: int, kept: bool) -> None:
    """Of exact counts, at least 5 rows in both supports and at most 9 in either."""
    none, left = Noisy(0, 0), Equals("wolf", "true")
    found = Redescription(
        left, left, both=Noisy(both, 0), left_only=Noisy(apart, 0), right_only=none, rows=Noisy(100, 0)
    )
    miner = SerenadeES(epsilon=1, min_support=5, max_support=9, max_p_value=1)
    assert bool(len(miner.finish([found], 1))) == kept
