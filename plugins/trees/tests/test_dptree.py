"""Sampled trees: plans cost what they say, planted trees are found, and useless tests neither cost nor show."""

import json
import math
from fractions import Fraction

import attrs
import numpy as np
import pytest
from dpframework_trees import DPTree
from dpframework_trees.complete_tree import CompleteTree
from dpframework_trees.dptree import SAMPLERS, _grow
from dpframework_trees.splits import Candidates, Region
from dpframework_trees.tree import DecisionTree
from dpframework_trees.tree_nodes import Inner, Leaf

import dpframework as dpf
from dpframework.accountant import PureAccountant
from dpframework.verify import assert_private

SCHEMA = dpf.Schema(
    [
        dpf.Categorical("colour", values=["red", "green", "blue"], missing=True),
        dpf.Numeric("size", 0, 8, cuts=[3, 5]),
        dpf.Boolean("ripe"),
        dpf.Categorical("class", values=["good", "bad"]),
    ]
)
RELATIONS = list(dpf.Relation)
ASSUMED = ["mcmc-converged"]


def study_of(miner, relation=dpf.Relation.ADD_OR_REMOVE_ONE, schema=SCHEMA, allow=ASSUMED) -> dpf.Study:
    study = dpf.Study(schema, epsilon=miner.epsilon, relation=relation, allow=allow)
    study.add("tree", miner)
    return study


def planted(rows: int, seed: int = 0) -> dpf.Table:
    """The class follows from colour and ripe; a missing colour is no red."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, a.size, rows) for a in SCHEMA])
    codes[3] = np.where(codes[0] == 0, 0, np.where(codes[2] == 1, 1, 0))
    return dpf.Table.from_codes(SCHEMA, codes)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_plan_costs_exactly_epsilon(sampler, depth, relation):
    plan = study_of(DPTree("class", epsilon="0.7", max_depth=depth, sampler=sampler), relation).plan()
    assert plan.total().epsilon == Fraction(7, 10)
    assert not plan.refusals()
    assert dpf.StudyPlan.from_json(plan.to_json()).total() == plan.total()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_planted_tree_is_found_when_the_budget_is_large(sampler):
    table = planted(2000)
    miner = DPTree("class", epsilon=100, max_depth=2, sampler=sampler)
    results = study_of(miner).run(table, seed=1)
    truth = np.array(["good", "bad"])[table.codes[3]]
    assert (results["tree"].tree.predict(table) == truth).mean() > 0.99
    assert results.spent.epsilon <= 100


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_private_run_draws_from_the_system_and_says_so(sampler):
    table = planted(600)
    results = study_of(DPTree("class", epsilon=100, max_depth=2, sampler=sampler)).run(table)
    assert results.private
    assert (results["tree"].tree.predict(table) == np.array(["good", "bad"])[table.codes[3]]).mean() > 0.95


def test_a_whole_tree_is_found_where_level_by_level_cannot():
    """The class is whether two tests agree: no single test tells anything, so a greedy first choice is blind."""
    rng = np.random.default_rng(2)
    names = [f"b{k}" for k in range(12)]
    schema = dpf.Schema([*map(dpf.Boolean, names), dpf.Boolean("class")])
    codes = rng.integers(0, 2, (13, 4000))
    codes[12] = codes[3] ^ codes[7]
    table, truth = dpf.Table.from_codes(schema, codes), np.array(["false", "true"])[codes[12]]

    def accuracy(sampler: str) -> float:
        miner = DPTree("class", epsilon=1, max_depth=2, sampler=sampler)
        tree = study_of(miner, schema=schema).run(table, seed=0)["tree"].tree
        return float((tree.predict(table) == truth).mean())

    assert accuracy("exact") == 1
    assert accuracy("greedy") < 0.6


@pytest.mark.parametrize(("depth", "right"), [(3, True), (4, True), (1, False)])
def test_two_levels_in_view_find_what_two_tests_tell_together_at_any_depth(depth, right):
    """A first test tells a little, and below it two tests must agree: one level in view sees nothing of these."""
    rng = np.random.default_rng(3)
    schema = dpf.Schema([*(dpf.Boolean(f"b{k}") for k in range(12)), dpf.Boolean("class")])
    codes = rng.integers(0, 2, (13, 6000))
    codes[12] = np.where(codes[0] == 1, codes[3] ^ codes[7], rng.random(6000) < 0.02)
    table = dpf.Table.from_codes(schema, codes)
    miner = DPTree("class", epsilon=4, max_depth=depth, sampler="lookahead")
    tree = study_of(miner, schema=schema).run(table, seed=0)["tree"].tree
    accuracy = float((tree.predict(table) == np.array(["false", "true"])[codes[12]]).mean())
    assert (accuracy > 0.95) == right


def test_the_default_sampler_follows_from_public_sizes():
    def steps(tests: int, depth: int) -> list[str]:
        schema = dpf.Schema([*(dpf.Boolean(f"b{k}") for k in range(tests)), dpf.Boolean("class")])
        plan = study_of(DPTree("class", epsilon=1, max_depth=depth), schema=schema).plan()
        assert plan.total().epsilon == 1
        return [type(step.mechanism).__name__ for step in plan.steps()]

    counts = "DiscreteLaplace"
    assert steps(128, 3) == ["ExactTrees", counts]
    assert steps(300, 3) == ["ExactTrees", "ExactTrees", counts]
    assert steps(60, 4) == ["ExactTrees", "ExactTrees", "ExactTrees", counts]
    assert steps(2100, 2) == ["PermuteAndFlip", "PermuteAndFlip", counts]


def test_each_sampler_states_what_it_assumes():
    for sampler, needed in [("exact", set()), ("mcmc", set(ASSUMED)), ("greedy", set()), ("lookahead", set())]:
        miner = DPTree("class", epsilon=1, max_depth=2, sampler=sampler)
        assert set(study_of(miner).plan().assumptions) == needed
        refusals = study_of(miner, allow=()).plan().refusals()
        assert len(refusals) == len(needed)
        assert {finding.code for finding in refusals} <= {"DP005"}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("sampler", "depth"), [("exact", 2), ("greedy", 2), ("lookahead", 3)])
def test_no_neighbour_sees_a_transcript_with_more_than_epsilon(sampler, depth, relation):
    """Two levels or three, and three classes; the conformance suite audits what is smaller."""
    schema = dpf.Schema(
        [
            dpf.Categorical("colour", values=["red", "blue"], missing=True),
            dpf.Boolean("ripe"),
            dpf.Categorical("c", values=["x", "y", "z"]),
        ]
    )
    miner = DPTree("c", epsilon=2, max_depth=depth, sampler=sampler)
    assert assert_private(miner, schema, relation, replays=500).tightness > 0.5


def test_a_refused_schema_or_parameter_says_why_in_one_sentence():
    wide = dpf.Schema([*(dpf.Boolean(f"b{k}") for k in range(600)), dpf.Boolean("class")])
    cases = [
        (lambda: DPTree("class", epsilon=1, max_depth=0), "max_depth is 0"),
        (lambda: DPTree("class", epsilon=1, max_depth=11), "from 1 to 10"),
        (lambda: DPTree("class", epsilon=-1), "cannot be negative"),
        (lambda: DPTree("class", epsilon=1, sampler="mcmcm"), "did you mean 'mcmc'"),
        (lambda: DPTree("class", epsilon=1, criterion="entropy"), "criterion 'entropy' is unknown"),
        (lambda: DPTree("class", epsilon=1, iterations=0), "iterations is 0"),
        (lambda: DPTree("class", epsilon=1, counts_share=1), "counts_share is 1"),
        (lambda: DPTree("class", epsilon=1, attributes="ripe"), "give a list of names"),
        (lambda: DPTree("clas", epsilon=1).plan(SCHEMA), "did you mean 'class'"),
        (lambda: DPTree("class", epsilon=1, attributes=["class"]).plan(SCHEMA), "leave it out"),
        (lambda: DPTree("class", epsilon=1, attributes=["ripe", "ripe"]).plan(SCHEMA), "twice"),
        (lambda: DPTree("class", epsilon=1, attributes=[]).plan(SCHEMA), "no attribute can be split"),
        (
            lambda: DPTree("one", epsilon=1).plan(dpf.Schema([dpf.Categorical("one", values=["x"]), dpf.Boolean("b")])),
            "single class",
        ),
        (lambda: DPTree("class", epsilon=1, criterion="information-gain").plan(SCHEMA), "max_rows"),
        (
            lambda: DPTree("class", epsilon=1, sampler="exact").plan(wide),
            "4.3e\\+08 pairs of tests .* sampler = 'mcmc'",
        ),
    ]
    for refused, sentence in cases:
        with pytest.raises(dpf.InputError, match=sentence) as caught:
            refused()
        assert "\n" not in str(caught.value)
    assert DPTree("class", epsilon=1, sampler="mcmc", max_depth=5).plan(wide)


def test_too_much_work_is_refused_before_anything_is_spent():
    schema = dpf.Schema([*(dpf.Boolean(f"b{k}") for k in range(120)), dpf.Boolean("class")])
    budget = PureAccountant("add-or-remove-one", epsilon=1)
    table = dpf.Table.from_codes(schema, np.zeros((121, 10), dtype=np.int64))
    with pytest.raises(dpf.InputError, match="the exact sampler would look at"):
        study_of(DPTree("class", epsilon=1, max_depth=4, sampler="exact"), schema=schema).run(table, accountant=budget)
    assert budget.spent.epsilon == 0


def test_a_choice_among_one_candidate_makes_no_release():
    schema = dpf.Schema([dpf.Boolean("ripe"), dpf.Boolean("class")])
    table = dpf.Table.from_codes(schema, np.array([[0, 1] * 20, [0, 1] * 20]))
    miner = DPTree("class", epsilon=4, max_depth=3, sampler="greedy")
    results = study_of(miner, schema=schema).run(table, seed=0)
    assert [charge.path.split("/")[-1] for charge in results.charges] == ["leaves"]
    assert results["tree"].tree.predict(table).tolist() == ["false", "true"] * 20


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_test_with_one_outcome_on_its_path_is_not_shown(sampler):
    """With one Boolean every path of three tests asks the same thing thrice: two leaves can hold rows."""
    schema = dpf.Schema([dpf.Boolean("ripe"), dpf.Boolean("class")])
    table = dpf.Table.from_codes(schema, np.array([[0, 1] * 50, [0, 1] * 50]))
    tree = study_of(DPTree("class", epsilon=9, sampler=sampler), schema=schema).run(table, seed=0)["tree"].tree
    assert (tree.leaves, tree.depth) == (2, 1)


def test_the_counts_of_leaves_go_to_the_paths_that_they_belong_to():
    tests = Candidates.of_schema(SCHEMA, ["size", "ripe"], multiway=False, cuts=True)  # size < 3, size < 5, ripe
    counts = np.arange(8, dtype=float).reshape(4, 2)
    tree = CompleteTree(tests, np.array([1, 2, 0]))  # size < 5; below it ripe, else size < 3, which cannot hold
    grown = _grow(tree, counts, 1.0, Region.whole(SCHEMA), 0)
    assert str(grown.split) == "size < 5"
    held, rest = grown.children
    assert str(held.split) == "ripe = true"
    assert [child.classes[0].tolist() for child in held.children] == [[0, 1], [2, 3]]
    assert rest.split is None
    assert rest.classes[0].tolist() == [6, 7]


def test_a_test_on_a_missing_value_does_not_hold():
    table = dpf.Table.from_codes(SCHEMA, np.array([[3] * 40 + [0] * 40, [0] * 80, [0] * 80, [1] * 40 + [0] * 40]))
    miner = DPTree("class", epsilon=50, max_depth=1, attributes=["colour"])
    tree = study_of(miner).run(table, seed=0)["tree"].tree
    assert tree.predict(table).tolist() == ["bad"] * 40 + ["good"] * 40


def test_a_result_prints_and_survives_json_as_any_tree():
    table = planted(2000)
    result = study_of(DPTree("class", epsilon=50, max_depth=2)).run(table, seed=2)["tree"]
    again = DecisionTree.from_dict(json.loads(json.dumps(result.to_dict()))["tree"])
    assert (again.predict(table) == result.tree.predict(table)).all()
    assert str(again) == str(result)
    assert len(result.rules()) == result.tree.leaves
    assert result.tree.to_dot().startswith("digraph tree {")


def test_pruning_drops_tests_that_save_no_errors():
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, a.size, 500) for a in SCHEMA])  # the class follows from nothing
    table = dpf.Table.from_codes(SCHEMA, codes)
    pruned, whole = (
        study_of(DPTree("class", epsilon=1, pruning=pruning)).run(table, seed=3)["tree"].tree
        for pruning in (True, False)
    )
    assert pruned.leaves < whole.leaves
    assert isinstance(whole.root, Inner | Leaf)


def test_the_preview_tells_what_depth_a_budget_carries():
    """How far the sampled tree may be from the best: in rows, before any row is read."""
    schema = dpf.Schema([*(dpf.Boolean(f"b{k}") for k in range(100)), dpf.Boolean("class")])

    def within(depth: int, epsilon: str) -> float:
        miner = DPTree("class", epsilon=epsilon, max_depth=depth, sampler="mcmc", counts_share="0.5")
        return study_of(miner, schema=schema).plan().previews()["tree/tree"].within

    # log(20 x 100 ** tests) over half of epsilon; rounding costs a little where nothing is known of the rows
    assert within(1, "1") == pytest.approx(2 * math.log(20 * 100), rel=1e-3)
    assert within(3, "1") == pytest.approx(2 * math.log(20 * 100**7), rel=1e-3)
    assert within(3, "0.1") == pytest.approx(10 * within(3, "1"))


def test_a_table_without_rows_still_gives_a_tree():
    schema = attrs.evolve(SCHEMA, max_rows=10)
    table = dpf.Table.from_codes(schema, np.zeros((4, 0), dtype=np.int64))
    for sampler in SAMPLERS:
        miner = DPTree("class", epsilon=1, max_depth=2, sampler=sampler)
        assert str(study_of(miner, schema=schema).run(table, seed=0)["tree"])
