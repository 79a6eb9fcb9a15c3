"""Forests of matched tests: what is planned, and what is read off their tables."""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
from dpframework_trees import MatchedTrees
from dpframework_trees.complete_tree import CompleteTree
from dpframework_trees.redescribe.budget_arrangement import CHOICES, CHOOSE_FROM, PAYS, Arrangement
from dpframework_trees.redescribe.matched_trees import MATCHED_SCHEMA, _trees, _unions
from dpframework_trees.redescribe.view_tests import candidates_of_sides, sides_of
from dpframework_trees.redescribe.witnesses import BY_COUNT
from exact_rows import look_at
from row_counts import choose_row_count

import dpframework as dpf
from dpframework.facts import Equals
from dpframework.lab.clinic import clinic_schema, clinic_table
from dpframework.lab.evaluation import exact_counts, redescription_quality
from dpframework.plan import Step, walk
from dpframework.redescriptions import DESIGNS, Match, MatchScores, Redescriptions
from dpframework.run import left_by_row_count
from dpframework.verify import audit
from dpframework.verify.conformance_suites import MinerConformance
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.author_witness_replay import replay_witness
from dpframework.verify.miners.replay_on_other_table import Weigher

ROWS = 5000


class TestMatchedTrees(MinerConformance):
    miner = MatchedTrees
    replays = 100
    min_tightness: ClassVar = {"default": 0.9, "several": 0.9, "rare": 0.9, "joint": 0.99, "counted": 0.88}


def test_a_replaced_row_loses_no_more_of_a_counted_forest_than_its_example_says() -> None:
    """A row is on both sides of the root, on neither, or on one, before and after.

    The root's own score moves by 1/2, 1 or 0, while all others move the other way by 1 at most; of the halves, that of
    both sides and that of neither have a split each.
    """

    def own(both: int, neither: int, one: int) -> float:
        return min(both, neither) / 2 - one / 2  # see `redescriptions.match_scores`, at the default index

    most = 0.0
    for cells in itertools.product(range(4), repeat=3):
        for before, after in itertools.permutations(range(3), 2):
            counts = [[n + (k == where) for k, n in enumerate(cells)] for where in (before, after)]
            root = (abs(own(*counts[0]) - own(*counts[1])) + 1) / 2
            halves = sum(where < 2 for where in (before, after)) / 2  # one of two levels loses half, where a row comes
            most = max(most, root + halves)
    most = max(most, (0 + 1) / 2 + 1)  # a row that stays in its half, where the split loses all that it claims
    share = float(left_by_row_count(Fraction(1)))
    ceiling = share * (float(CHOICES) / 2 * most + float(1 - CHOICES))
    assert f"{ceiling:.4f} of the claim" in BY_COUNT


@pytest.mark.parametrize("relation", dpf.Relation)
def test_a_joint_loses_all_that_it_claims(relation: dpf.Relation) -> None:
    """Five choices and four tables, all at once: each step of the witness loses its whole epsilon."""
    example = MatchedTrees.examples()["joint"]
    [witness] = [one for one in example.witnesses if (one.one is None) == (relation is dpf.Relation.ADD_OR_REMOVE_ONE)]
    subject = Subject(example.miner, example.schema, relation)
    shown = replay_witness(subject, witness, np.random.default_rng(0))
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
    def arranged(epsilon: Any, **rows: int | None) -> Arrangement:
        return MatchedTrees(epsilon, matches=0).arrange(attrs.evolve(bounded(None), **rows))

    numbers = [arranged(epsilon).trees for epsilon in ("0.01", "0.1", "0.5", 1, 10)]
    assert numbers == [1, 1, 3, 7, 9]
    assert [arranged("0.1", max_rows=rows).trees for rows in (100, 10_000, 10**6)] == [1, 3, 3]
    assert arranged("0.1", rows=20_000).trees == 5
    assert [arranged("0.1", max_rows=rows).depth for rows in (700, 800)] == [1, 2]
    assert MatchedTrees(1, trees=4).arrange(bounded(10)).trees == 4


def test_few_rows_are_two_at_least() -> None:
    assert MatchedTrees(1, rare=2).rare == 2
    with pytest.raises(dpf.InputError, match="rare is 1; a whole number from 2 on is needed"):
        MatchedTrees(1, rare=1)


def test_errors_are_those_of_the_branch_that_about_so_many_rows_lead_to() -> None:
    def supports(**facts: int) -> Any:
        study = dpf.Study(attrs.evolve(bounded(None), **facts), epsilon="0.3")
        study.add("found", MatchedTrees("0.3"))
        return study.plan().error_bounds()["found"][0]

    few, many, any_rows = supports(about_rows=2000), supports(about_rows=20_000), supports()
    assert few.note == "if the number of rows leads to 5 matches"
    assert supports(rows=2000).amount < few.amount < 1.05 * supports(rows=2000).amount  # a fiftieth is for the number
    assert few.amount < many.amount == any_rows.amount  # of all branches the one with most tables is the worst
    assert any_rows.note == ""


def test_what_is_read_together_follows_from_epsilon_and_the_rows() -> None:
    """By epsilon * rows: from 420, 620, 1,500 and 5,500 on, the last if there are 1,000 candidates for each match."""
    for carried, matches in ((419, 0), (420, 5), (619, 5), (620, 7), (1_499, 7), (1_500, 9), (60_000, 9)):
        miner = MatchedTrees(Fraction(carried, 2000))
        arranged = miner.arrange(attrs.evolve(clinic_schema(), max_rows=None, rows=2000))
        assert arranged == miner.arrange(bounded(None), 2000)
        assert (arranged.matches, arranged.groups) == (matches, 1 if matches else 0)
        assert (arranged.forest, bool(arranged.trees)) == ((0, False) if matches else (1, True))
    assert MatchedTrees(100).arrange(MATCHED_SCHEMA).matches == 0  # of 32 candidates
    assert Arrangement.of(10_000, CHOOSE_FROM * 9).groups == 1
    for carried, candidates, groups in ((5_500, 18_000, 2), (5_499, 18_000, 1), (5_500, 17_999, 1)):
        assert Arrangement.of(carried, candidates) == Arrangement(9, groups, 0, 0, Fraction(0))


@pytest.mark.parametrize("candidates", [2, 32, 99, 6_670, 280_000])
def test_a_plan_holds_a_branch_for_whatever_the_number_of_rows_may_choose(candidates: int) -> None:
    carried = [*np.geomspace(1e-3, 1e6, 3_000), *(least + off for least, _, _ in PAYS for off in (-0.01, 0, 0.01))]
    for most in (0.5, 90, 420, 619.5, 5_500, math.inf):
        possible = Arrangement.possible(most, candidates)
        assert {Arrangement.of(min(one, most), candidates) for one in carried} == set(possible)
        assert len({one.name for one in possible}) == len(possible)


def test_a_secret_number_of_rows_is_released_for_a_fiftieth_of_the_epsilon_if_it_chooses() -> None:
    """Not if it is public, if it could choose but one arrangement, or if you choose yourself."""
    steps = [node for node in walk(MatchedTrees(1).plan(bounded(10**6))) if isinstance(node, Step)]
    assert (steps[0].name, steps[0].mechanism.epsilon) == ("rows", Fraction(1, 50))
    assert {one.uses for one in steps if one.name in {"match", "root"}} == {("rows",)}
    assert all(one.query.given_cap for one in steps if one.name in {"match", "root"})
    assert not any(one.query.given_cap for one in steps if one.name == "split")
    public = attrs.evolve(clinic_schema(), max_rows=None, rows=2000)
    for schema, asked in (
        (public, {}),
        (bounded(10), {}),
        (bounded(None), {"matches": 9}),
        (bounded(None), {"trees": 2}),
    ):
        miner = MatchedTrees(1, **asked)
        some = [node for node in walk(miner.plan(schema)) if isinstance(node, Step)]
        assert "rows" not in {one.name for one in some}
        assert not any(one.query.given_cap for one in some if one.name in {"match", "root"})
        study = dpf.Study(schema, epsilon=1)
        study.add("found", miner)
        assert study.plan().total().epsilon == 1


@pytest.mark.parametrize(("released", "branch"), [(-7, "1 tree of 1 level"), (700, "7 matches"), (10**9, "9 matches")])
def test_the_released_number_of_rows_chooses_what_is_read_and_the_cap(
    released: int, branch: str, clinic: dpf.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = choose_row_count(monkeypatch, released)
    table = dpf.Table.from_codes(bounded(6_000), clinic.codes, clinic.values)
    run(table, MatchedTrees(1))
    assert asked[0] == ("rows", {})
    arranged = MatchedTrees(1).arrange(bounded(6_000), min(max(released, 1), 6_000))
    assert arranged.name == branch
    caps = [inputs["cap"] for name, inputs in asked if name in {"match", "root"}]
    assert caps == [max(min(released, 6_000) * 3 // 10, 1)] * (arranged.matches or arranged.trees)


def test_matches_and_trees_share_the_budget_as_asked() -> None:
    asked = {
        (None, 3): (0, 0, 3, 1),
        (7, None): (7, 1, 0, 0),
        (18, None): (9, 2, 0, 0),
        (5, 2): (5, 1, 2, Fraction(1, 2)),
        (27, 1): (9, 3, 1, Fraction(1, 2)),
        (0, None): (0, 0, 9, 1),
        (0, 2): (0, 0, 2, 1),
    }
    for (matches, trees), expected in asked.items():
        arranged = MatchedTrees(1, matches=matches, trees=trees).arrange(bounded(20_000))
        assert (arranged.matches, arranged.groups, arranged.trees, arranged.forest) == expected
    for number in (-9, 1, 3, 8, 10, 99):
        with pytest.raises(dpf.InputError, match=rf"matches is {number}; give 0, 5, 7, 9, or a multiple of 9 up to 90"):
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
                assert re.search(r"Try (\S+) times the epsilon, or \1 times the rows", found.reason)
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
        dpf.redescriptions.Match(dpf.Equals(left, "true"), dpf.Equals(right, "true"), opposite)
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
        carried, alone = study.miners["found"].arrange(schema), MatchedTrees(epsilon, matches=0).arrange(schema)
        assert carried.trees >= alone.trees
    assert carried.trees > alone.trees


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


@attrs.frozen
class PlantedCount(dpf.Miner):
    """Choose a branch of the plan of `MatchedTrees`, a cap and a match: by a released number of rows, or the true one.

    The planted bug releases nothing that is not planned, and claims what the honest one does.
    """

    name = "planted-count"
    epsilon: Fraction
    true_rows_choose: bool = False
    true_rows_cap: bool = False

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        return MatchedTrees(self.epsilon).plan(schema)

    def mine(self, table: dpf.PrivateTable) -> Any:
        released = max(float(table.release("rows")), 1.0)
        chosen_by = self.true_rows(table) if self.true_rows_choose else released
        arranged = MatchedTrees(self.epsilon).arrange(table.schema, chosen_by)
        part = table.scope(arranged.name)
        cap = max(int(self.true_rows(table) if self.true_rows_cap else released) * 3 // 10, 1)
        if arranged.matches:
            return part.release("match", known=[], cap=cap)
        return part.scope("tree 1").release("root", known=[], cap=cap)

    @staticmethod
    def true_rows(table: dpf.PrivateTable) -> int:
        return max(sum(look_at(table, lambda block: block.rows)), 1)


def test_a_branch_or_a_cap_by_the_true_number_of_rows_is_caught() -> None:
    def violations(**planted: bool) -> str:
        miner = PlantedCount(Fraction(5), **planted)
        return str(audit(miner, MATCHED_SCHEMA, "add-or-remove-one", replays=150).violations)

    assert violations() == "()"
    assert "where the recorded run did" in violations(true_rows_choose=True)
    assert "the inputs given to" in violations(true_rows_cap=True)


def test_what_few_rows_have_is_found_and_the_plan_says_what_noise_hides() -> None:
    """Of 8,000 patients: hypothyroidism, heart failure and others, where by default larger supports are found."""
    table = clinic_table(8_000)
    schema = attrs.evolve(table.schema, max_rows=10**6)
    table = dpf.Table.from_codes(schema, table.codes, table.values)
    miner = MatchedTrees(5, rare=960)
    found = run(table, miner)
    quality = redescription_quality(found, table)
    assert quality.different.sum() >= 8
    assert quality.useful.mean() > 0.8
    assert max(one.left_support.value for one in found) <= 960
    assert min(one.both.value for one in found) >= 96
    assert np.median([one.both.value for one in found]) < 700
    # 5 epsilon, and supports half as large: the plan of 1,600 rows, without a release of their number
    steps = [node for node in walk(miner.plan(schema)) if isinstance(node, Step)]
    assert [one.name for one in steps] == ["match", "table"]
    assert (steps[0].query.most, steps[0].threshold) == (960, 480)
    assert miner.arrange(schema) == MatchedTrees(5).arrange(schema, 1_600)
    for epsilon, warned in ((5, False), ("0.05", True)):
        study = dpf.Study(schema, epsilon=epsilon)
        study.add("found", MatchedTrees(epsilon, rare=960))
        assert any(one.code == "DP007" for one in study.plan().check()) is warned


def test_few_rows_are_read_by_as_large_an_epsilon_as_a_table_of_such_supports() -> None:
    """A cap of three tenths of the rows, and those in both of a match at the target: 3,000 of 5,000 rows at a half."""
    for target, rare in (("0.5", 3_000), ("0.6", 2_500), ("0.75", 2_000)):
        for epsilon in ("0.1", "0.3", 1):
            few = MatchedTrees(epsilon, target_jaccard=target, rare=rare)
            known = attrs.evolve(clinic_schema(), rows=5_000, max_rows=None)
            expected = MatchedTrees(epsilon, target_jaccard=target).arrangements(known)
            assert few.arrangements(bounded(10**6)) == expected


@pytest.mark.parametrize(
    ("rare", "asked", "least", "most"),
    [
        (54, {}, 5, 54),
        (54, {"min_support": 4, "max_support": 53}, 4, 53),
        (54, {"min_support": 6}, 6, 54),
        (9, {}, 1, 9),
    ],
)
def test_supports_of_few_rows_are_from_a_tenth_of_them_up_to_them(
    rare: int, asked: dict[str, int], least: int, most: int
) -> None:
    """Without noise worth mentioning, of five pairs that so many rows have."""
    supports = [4, 5, 20, 54, 55] if rare == 54 else [1, 2, 4, 9, 10]
    sides = [("l", "left"), ("r", "right")]
    schema = dpf.Schema([dpf.Boolean(f"{name}{k}", view=view) for name, view in sides for k in range(5)], rows=400)
    column = np.repeat(range(6), [*supports, 400 - sum(supports)])
    table = dpf.Table.from_codes(schema, np.tile(column == np.arange(5)[:, None], (2, 1)).astype(int))
    study = dpf.Study(schema, epsilon=10**6, relation="replace-one")
    study.add("found", MatchedTrees(10**6, rare=rare, trees=5, **asked))
    found = study.run(table, seed=1)["found"]
    assert {n for n in supports if least <= n <= most} <= {round(one.both.value) for one in found}
    assert min(one.both.value for one in found) > least - 0.5
    assert max(one.left_support.value for one in found) < most + 0.5


def test_a_match_of_few_rows_differs_from_the_few_of_those_before_it(
    clinic: dpf.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nearly all rows are in neither side of any of them."""
    told, release = list[list[Any]](), dpf.PrivateTable.release

    def seen(self: dpf.PrivateTable, name: str, **inputs: Any) -> Any:
        told.extend([inputs["known"]] if "known" in inputs else [])
        return release(self, name, **inputs)

    monkeypatch.setattr(dpf.PrivateTable, "release", seen)
    for asked in ({"matches": 5}, {"trees": 2}):
        told.clear()
        run(clinic, MatchedTrees(5, rare=600, **asked))
        assert [len(known) for known in told] == list(range(len(told)))
