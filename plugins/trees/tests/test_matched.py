"""Forests of matched tests: what is planned, and what is read off their tables."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
from dpframework_trees import MatchedTrees
from dpframework_trees.complete import CompleteTree
from dpframework_trees.redescribe.joint_matches import CHOOSE_FROM, Arrangement
from dpframework_trees.redescribe.matched_trees import MATCHED_SCHEMA, _trees, _unions
from dpframework_trees.redescribe.sides import candidates_of_sides, sides_of

import dpframework as dpf
from dpframework.facts import Equals
from dpframework.lab.clinic import clinic_schema, clinic_table
from dpframework.lab.evaluation import exact_counts, redescription_quality
from dpframework.plan import Step, walk
from dpframework.queries import Match, MatchScores
from dpframework.results import DESIGNS, Redescriptions
from dpframework.verify.conformance import MinerConformance
from dpframework.verify.replay import Weigher
from dpframework.verify.subject import Subject
from dpframework.verify.witness_replay import witnessed

ROWS = 5000


class TestMatchedTrees(MinerConformance):
    miner = MatchedTrees
    replays = 100
    min_tightness: ClassVar = {"joint": 0.99}


@pytest.mark.parametrize("relation", dpf.Relation)
def test_a_joint_loses_all_that_it_claims(relation: dpf.Relation) -> None:
    """Five choices and four tables, all at once: each step of the witness loses its whole epsilon."""
    example = MatchedTrees.examples()["joint"]
    [witness] = [one for one in example.witnesses if (one.one is None) == (relation is dpf.Relation.ADD_OR_REMOVE_ONE)]
    subject = Subject(example.miner, example.schema, relation)
    shown = witnessed(subject, witness, np.random.default_rng(0))
    assert shown.divergence is None
    weigher = Weigher(shown.subject, shown.transcript)
    one, other = (np.array(weigher.densities(table)) for table in shown.tables)
    assert one - other == pytest.approx([0.2] * 5 + [0.25] * 4, abs=1e-5)


@pytest.fixture(scope="module")
def clinic() -> dpf.Table:
    return clinic_table(ROWS)


def run(table: dpf.Table, miner: dpf.Miner, seed: int = 0) -> Redescriptions:
    study = dpf.Study(table.schema, epsilon=miner.epsilon)
    study.add("found", miner)
    return study.run(table, seed=seed)["found"]


def bounded(rows: int | None) -> dpf.Schema:
    return attrs.evolve(clinic_schema(), max_rows=rows)


@pytest.mark.parametrize("asked", [{}, {"trees": 3}, {"epsilon": Fraction(1, 100)}], ids=str)
def test_the_plan_costs_exactly_epsilon_and_assumes_nothing(asked: dict[str, Any]) -> None:
    miner = MatchedTrees(**{"epsilon": Fraction(2, 3), **asked})
    for relation in dpf.Relation:
        study = dpf.Study(bounded(2000), epsilon=miner.epsilon, relation=relation.value)
        study.add("found", miner)
        plan = study.plan()
        assert plan.total().epsilon == miner.epsilon
        assert plan.assumptions.keys() <= {"row-count-public"}
        assert not plan.refusals()


def test_the_number_of_trees_follows_from_epsilon_and_public_facts() -> None:
    numbers = [MatchedTrees(epsilon, matches=0).number(bounded(None)) for epsilon in (0.01, 0.1, 0.5, 1, 10)]
    assert numbers == [1, 1, 3, 7, 9]
    of_rows = [MatchedTrees(0.1, matches=0).number(bounded(rows)) for rows in (100, 10_000, 10**6)]
    assert of_rows == [1, 3, 3]
    assert MatchedTrees(0.1, matches=0).number(attrs.evolve(clinic_schema(), max_rows=None, rows=20_000)) == 5
    assert [MatchedTrees(0.1).depth(bounded(rows)) for rows in (700, 800)] == [1, 2]
    assert MatchedTrees(1, trees=4).number(bounded(10)) == 4


def test_what_is_read_together_follows_from_epsilon_and_public_facts() -> None:
    """By epsilon * rows / ln(candidates): from 30, 60, 130 and 500 on, the last if there are 1,000 for each match."""
    candidates = MatchedTrees(1).scores(clinic_schema(), root=True).answer_length
    for carried, matches, groups, forest in (
        (29, 0, 0, 1),
        (31, 5, 1, 0),
        (61, 7, 1, 0),
        (131, 9, 1, 0),
        (501, 9, 1, 0),
    ):
        epsilon = Fraction(round(carried * math.log(candidates)), 2000)
        for schema in (bounded(2000), attrs.evolve(clinic_schema(), max_rows=None, rows=2000)):
            arranged = MatchedTrees(epsilon).arranged(schema)
            assert (arranged.matches, arranged.groups) == (matches, groups)
            assert arranged.forest == Fraction(forest) * epsilon
            assert arranged.epsilon == epsilon - arranged.forest
    assert MatchedTrees(100).arranged(MATCHED_SCHEMA).matches == 0  # of 32 candidates
    assert Arrangement.of(Fraction(1), bounded(10_000), CHOOSE_FROM * 9).groups == 1
    for candidates, groups in ((18_000, 2), (17_999, 1)):
        assert Arrangement.of(Fraction(1), bounded(10_000), candidates) == Arrangement(
            9, groups, Fraction(1), Fraction(0)
        )


def test_matches_and_trees_share_the_budget_as_asked() -> None:
    asked = {
        (None, 3): (0, 0, 0, 1),
        (7, None): (7, 1, 1, 0),
        (18, None): (9, 2, 1, 0),
        (5, 2): (5, 1, Fraction(1, 2), Fraction(1, 2)),
        (0, None): (0, 0, 0, 1),
    }
    for (matches, trees), (number, groups, epsilon, forest) in asked.items():
        arranged = MatchedTrees(1, matches=matches, trees=trees).arranged(bounded(2000))
        assert (arranged.matches, arranged.groups, arranged.epsilon, arranged.forest) == (
            number,
            groups,
            epsilon,
            forest,
        )
    for number in (-9, 1, 3, 8, 10, 99):
        with pytest.raises(dpf.InputError, match=rf"matches is {number}; accepted are 0, 5, 7, 9, and multiples of 9"):
            MatchedTrees(1, matches=number)


@pytest.mark.parametrize(("matches", "tables"), [(5, 4), (7, 7), (9, 12), (18, 24)])
def test_half_of_the_epsilon_is_for_choices_and_half_for_tables_of_three(matches: int, tables: int) -> None:
    steps = [node for node in walk(MatchedTrees(1, matches=matches).plan(bounded(1000))) if isinstance(node, Step)]
    assert [(one.name, one.mechanism.epsilon) for one in steps] == [
        ("match", Fraction(1, 2 * matches)),
        ("table", Fraction(1, 2 * tables)),
    ]
    assert steps[0].query.cap == 300
    study = dpf.Study(bounded(1000), epsilon=1)
    study.add("found", MatchedTrees(1, matches=matches, trees=1))
    assert study.plan().total().epsilon == 1


def test_matches_are_told_of_those_before_and_read_with_all_their_tables(
    clinic: dpf.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of five: tables of three, each of matches in the order of the design, after all are chosen."""
    asked, release = list[tuple[str, Any]](), dpf.PrivateTable.release

    def seen(self: dpf.PrivateTable, name: str, **inputs: Any) -> Any:
        made = release(self, name, **inputs)
        asked.append((name, (inputs, made)))
        return made

    monkeypatch.setattr(dpf.PrivateTable, "release", seen)
    found = run(clinic, MatchedTrees(1, matches=5))
    assert [name for name, _ in asked] == ["match"] * 5 + ["table"] * 4
    matches = [made for _, (_, made) in asked[:5]]
    for k, (_, (inputs, _)) in enumerate(asked[:5]):
        assert inputs["known"] == [part for match in matches[:k] for part in match.parts]
    for line, (_, (inputs, _)) in zip(DESIGNS[5], asked[5:], strict=True):
        assert list(zip(inputs["left"], inputs["right"], strict=True)) == [matches[k].sides for k in line]
    assert found.candidates == 250
    quality = redescription_quality(found, clinic)
    assert quality.useful.sum() >= 4
    assert all(one.deviation is not None for one in found)


def test_where_noise_hides_all_supports_the_result_says_what_would_do(clinic: dpf.Table) -> None:
    """At an epsilon of 0.005 one count is off by more than the rows. Seeded."""
    for rows in (clinic.rows, None):
        table = dpf.Table.from_codes(attrs.evolve(clinic.schema, rows=rows), clinic.codes, clinic.values)
        for miner in (MatchedTrees("0.005"), MatchedTrees("0.005", matches=5)):
            found = run(table, miner)
            if rows is None and miner.matches:
                assert "lower target_jaccard" in found.reason  # nobody knows how many rows are hidden
            else:
                assert "times as large an epsilon, or as many times the rows, would do" in found.reason
            assert not len(found)
    assert "lower target_jaccard" in run(clinic, MatchedTrees(1, target_jaccard="0.9")).reason


def test_the_budget_is_shared_three_to_two_and_a_match_gains_by_three_tenths_of_the_rows() -> None:
    study = dpf.Study(bounded(1000), epsilon=1)
    study.add("found", MatchedTrees(1, trees=2))
    losses = {step.name: step.mechanism.epsilon for step in study.plan().steps()}
    assert losses == {"root": Fraction(3, 20), "split": Fraction(3, 20), "leaves": Fraction(1, 5)}
    assert [MatchedTrees(1).scores(bounded(1000), root=root).cap for root in (True, False)] == [300, None]


def test_a_root_differs_from_both_sides_of_all_roots_before_it(
    monkeypatch: pytest.MonkeyPatch, clinic: dpf.Table
) -> None:
    asked = []
    release = dpf.PrivateTable.release

    def seen(self: dpf.PrivateTable, name: str, **inputs: Any) -> Any:
        made = release(self, name, **inputs)
        if name == "root":
            asked.append(([str(part) for part in inputs["known"]], [str(part) for part in made.parts]))
        return made

    monkeypatch.setattr(dpf.PrivateTable, "release", seen)
    run(clinic, MatchedTrees(1, trees=3))
    before: list[str] = []
    for known, parts in asked:
        assert known == before
        before += parts
    assert len(before) == 6


@pytest.mark.parametrize("opposite", [False, True])
def test_matches_below_a_root_stand_where_its_sides_hold(opposite: bool) -> None:
    """The first is asked where both sides hold: of opposite tests, where the right one fails."""
    tests = candidates_of_sides(MATCHED_SCHEMA, sides_of(MATCHED_SCHEMA))
    root, *below = (
        dpf.queries.Match(dpf.Equals(left, "true"), dpf.Equals(right, "true"), opposite)
        for left, right in (("wolf", "rain"), ("moose", "wind"), ("bear", "snow"))
    )
    trees = _trees(tests, root, below)
    asked = {view: [str(tree.test(node)) for node in range(3)] for view, tree in trees.items()}
    assert asked[dpf.View.LEFT] == ["wolf = true", "moose = true", "bear = true"]
    first, second = ("snow", "wind") if opposite else ("wind", "snow")
    assert asked[dpf.View.RIGHT] == ["rain = true", f"{first} = true", f"{second} = true"]


def test_unions_are_of_some_leaves_but_not_of_all() -> None:
    masks = {tuple(mask.tolist()) for mask in _unions(4)}
    assert len(masks) == 14
    assert {any(mask) and not all(mask) for mask in masks} == {True}


def test_a_delta_carries_more_trees() -> None:
    schema = bounded(3000)
    for epsilon in ("0.1", "1"):
        study = dpf.Study(schema, epsilon=epsilon, delta="1e-6")
        study.add("found", dpf.share(1, "matched-trees", matches=0))
        assert study.plan().total().epsilon <= Fraction(epsilon)
        assert study.miners["found"].epsilon >= Fraction(epsilon) * Fraction(999, 1000)
        assert study.miners["found"].number(schema) >= MatchedTrees(epsilon, matches=0).number(schema)
    assert study.miners["found"].number(schema) > MatchedTrees(1, matches=0).number(schema)


def weakly_tied(share: float) -> dpf.Table:
    """Return 5000 rows of two views of which the best tie is one of this Jaccard index."""
    rng = np.random.default_rng(3)
    views = (("wolf", "moose", "bear"), ("rain", "wind", "snow"))
    schema = dpf.Schema([dpf.Boolean(n, view=v) for names, v in zip(views, dpf.View, strict=True) for n in names])
    codes = rng.integers(0, 5, (6, ROWS)) == 0
    both = round(share * 2000)
    codes[[0, 3]] = False
    codes[[0, 3], :both] = True
    codes[0, both : 1000 + both // 2] = True
    codes[3, 1000 + both // 2 : 2000] = True
    return dpf.Table.from_codes(schema, codes.astype(np.int64))


def test_where_the_best_pair_is_below_the_target_nothing_is_reported_and_the_reason_is_said() -> None:
    """Of 2,000 rows on either side 800 are on both: an index of 0.4, which a lower target finds."""
    table = weakly_tied(0.4)
    for seed in range(2):
        found = run(table, MatchedTrees(2), seed)
        assert not len(found)
        assert "None was clearly above a Jaccard index of 0.5" in str(found)
        some = run(table, MatchedTrees(2, target_jaccard=0.3), seed)
        assert ("wolf = true", "rain = true") in [(str(one.left), str(one.right)) for one in some]
        assert "None was" not in str(some)
    # what is returned is .08 above
    for target, number in ((0.315, 1), (0.325, 0)):
        found = run(table, MatchedTrees(1000, trees=1, target_jaccard=target))
        assert sum((str(one.left), str(one.right)) == ("wolf = true", "rain = true") for one in found) == number


def test_planted_relations_are_found_and_significant(clinic: dpf.Table) -> None:
    for seed in range(2):
        found = run(clinic, MatchedTrees(epsilon=2), seed)
        quality = redescription_quality(found, clinic)
        assert quality.useful.sum() >= 4
        assert (quality.p_values <= 0.01).all()


def test_without_noise_worth_mentioning_counts_are_those_of_the_rows(clinic: dpf.Table) -> None:
    """Also of tests on attributes that may be missing: a tree says where such rows are."""
    rng = np.random.default_rng(1)
    codes = clinic.codes.astype(np.int64)
    names = clinic.schema.names
    attributes = [attrs.evolve(a, missing=True) for a in clinic.schema]
    values = {name: column.copy() for name, column in clinic.values.items()}
    for k, attribute in enumerate(attributes):
        gone = rng.random(ROWS) < 0.2
        codes[k, gone] = attribute.missing_code
        if names[k] in values:
            values[names[k]][gone] = np.nan
    table = dpf.Table.from_codes(dpf.Schema(attributes), codes, values)
    found = run(table, MatchedTrees(epsilon=10**6, trees=2, target_jaccard=0.2, min_support=50))
    assert len(found) >= 2
    for one, exact in zip(found, exact_counts(found, table), strict=True):
        assert one.both.value == pytest.approx(exact.both.value, abs=1)
        assert one.apart.value == pytest.approx(exact.apart.value, abs=1)


def test_each_root_is_told_both_parts_of_those_before_it(clinic: dpf.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[Any, ...]] = []
    evaluate = MatchScores.evaluate

    def watched(self: MatchScores, engine: Any, rows: Any, **inputs: Any) -> Any:
        told.extend([tuple(inputs["known"])] if "known" in inputs else [])
        return evaluate(self, engine, rows, **inputs)

    monkeypatch.setattr(MatchScores, "evaluate", watched)
    run(clinic, MatchedTrees(10, trees=3))
    assert [len(known) for known in told] == [0, 2, 4]
    assert told[2][:2] == told[1]
    assert len(set(told[2])) == 4


@pytest.mark.parametrize("opposite", [False, True])
def test_a_match_of_a_half_is_below_the_root_on_either_side(opposite: bool) -> None:
    """Where neither side of an opposite root holds, its right test does: that half is the right tree's first child."""
    tests = candidates_of_sides(MATCHED_SCHEMA, sides_of(MATCHED_SCHEMA))
    lefts, rights = ([Equals(a.name, "true") for a in MATCHED_SCHEMA.view(view)] for view in dpf.View)
    root, both, neither = (Match(lefts[k], rights[k], opposite and k == 0) for k in range(3))
    trees = _trees(tests, root, [both, neither])
    order = {
        dpf.View.LEFT: [root, both, neither],
        dpf.View.RIGHT: [root, neither, both] if opposite else [root, both, neither],
    }
    for view, side in ((dpf.View.LEFT, "left"), (dpf.View.RIGHT, "right")):
        assert [trees[view].test(node) for node in range(3)] == [getattr(match, side) for match in order[view]]


def test_bounds_are_kept_and_nothing_weak_is_returned(clinic: dpf.Table) -> None:
    found = run(clinic, MatchedTrees(epsilon=2, min_support=300, max_support=3200))
    for one in found:
        assert one.both.value >= 300
        assert max(one.left_support.value, one.right_support.value) <= 3200
        assert one.jaccard >= 0.5


@pytest.mark.parametrize("depth", [1, 2])
def test_the_table_has_a_row_and_a_column_for_each_leaf(depth: int) -> None:
    schema = bounded(800 if depth == 2 else 700)
    steps = [node for node in walk(MatchedTrees("0.1", trees=2).plan(schema)) if isinstance(node, Step)]
    tables = [step.query for step in steps if step.name == "leaves"]
    assert [(table.left, table.right) for table in tables] == 2 * [(2**depth, 2**depth)]
    assert [step.name for step in steps] == 2 * (["root", "leaves"] if depth == 1 else ["root", "split", "leaves"])
    assert {step.query.cap for step in steps if step.name == "root"} == {schema.max_rows * 3 // 10}


def test_a_gain_is_capped_at_one_row_or_more() -> None:
    caps = [MatchedTrees(1).scores(bounded(rows), root=True).cap for rows in (1, 3, 6, 7, 10, None)]
    assert caps == [1, 1, 1, 2, 3, None]


def grown(left: list[int], right: list[int]) -> dict[dpf.View, CompleteTree]:
    of = candidates_of_sides(MATCHED_SCHEMA, sides_of(MATCHED_SCHEMA))
    return {
        view: CompleteTree(of[view], np.array(tests))
        for view, tests in ((dpf.View.LEFT, left), (dpf.View.RIGHT, right))
    }


@pytest.mark.parametrize("rows", [None, 1_000_005])
def test_what_is_read_off_a_table_is_eight_hundredths_above_the_target(rows: int | None) -> None:
    """Of 100,000 rows on either side so many on both, and hardly any noise; a stump has two unions of its leaves."""
    for both, number in ((58_001, 1), (57_999, 0)):
        counts = np.array([[both, 100_000 - both], [0, 900_000]])
        found, looked_at = MatchedTrees(1)._read(grown([0], [0]), counts, 1e-6, rows)
        assert (len(found), looked_at) == (number, 4)
        for one in found:
            assert (str(one.left), str(one.right)) == ("wolf = true", "rain = true")
            assert (one.both.value, one.left_only.value, one.right_only.value) == (both, 100_000 - both, 0)
            assert one.rows.value == (rows or 1_000_000)
            assert one.shown_from == pytest.approx(0.58)


def test_leaves_that_no_row_can_be_in_are_in_no_union() -> None:
    """Below a test the same test again: three leaves, and so 6 unions instead of 14."""
    counts = np.full((4, 4), 6 * 10**6)  # more than a fiftieth of the rows: every literal says something
    counts[0, 0] = counts[2, 2] = 10**8
    counts[1] = 10**10  # noise of a leaf without rows
    found, looked_at = MatchedTrees(1, max_support=10**11)._read(grown([0, 0, 1], [0, 1, 2]), counts, 1.0, None)
    assert looked_at == 6 * 14
    assert {float(one.rows.value) for one in found} == {float(np.delete(counts, 1, axis=0).sum())}
    assert ("wolf = true", "rain = true") not in {(str(one.left), str(one.right)) for one in found}
    assert ("wolf != true", "rain != true or wind != true") in {(str(one.left), str(one.right)) for one in found}


def test_a_result_says_how_many_unions_were_looked_at_and_what_was_asked(clinic: dpf.Table) -> None:
    two = run(clinic, MatchedTrees(5, trees=2, min_support=40))
    assert two.min_support == 40
    assert 14 * 6 <= two.candidates <= 2 * 14**2
    few = weakly_tied(0.4)
    assert run(few, MatchedTrees(2, trees=1)).min_support == 0
    assert run(few, MatchedTrees("0.001", trees=3)).candidates == 3 * 2**2  # one level each


def test_bounds_are_whole_numbers_of_a_range() -> None:
    assert MatchedTrees(1, trees=100, min_support=0, max_support=1).trees == 100
    assert MatchedTrees(1).target_jaccard == Fraction(1, 2)
    for asked in ({"trees": 0}, {"trees": 101}, {"min_support": -1}, {"max_support": 0}):
        with pytest.raises(dpf.InputError, match=next(iter(asked))):
            MatchedTrees(1, **asked)


def test_a_view_without_attributes_is_refused() -> None:
    with pytest.raises(dpf.InputError, match="no attribute of the right view"):
        MatchedTrees(1).plan(dpf.Schema([dpf.Boolean("a", view="left")]))
