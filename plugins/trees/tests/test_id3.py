"""DP-ID3: plans cost what they say, runs release what was planned, and no neighbour can tell more than epsilon."""

import itertools
import json
import math
import re
from fractions import Fraction

import attrs
import numpy as np
import polars as pl
import pytest
from dpframework_trees import DPID3, id3
from dpframework_trees.budgets import tree_budget
from dpframework_trees.splits import Multiway
from dpframework_trees.tree import DecisionTree
from dpframework_trees.tree_estimates import (
    ReleasedNode,
    expected_errors,
    finish,
    make_consistent,
    prune_tree,
    tree_result,
)

import dpframework as dpf
from dpframework.accountant import PureAccountant
from dpframework.plan import Step, walk
from dpframework.verify import assert_private

SCHEMA = dpf.Schema(
    [
        dpf.Categorical("colour", values=["red", "green", "blue"]),
        dpf.Numeric("size", 0, 8, cuts=[3, 5]),
        dpf.Boolean("ripe"),
        dpf.Categorical("class", values=["good", "bad"]),
    ],
    max_rows=6,
)
RELATIONS = list(dpf.Relation)
SULQ = {"selection": "noisy-counts", "criterion": "information-gain"}  # the published one, by noisy counts
VARIANTS = {**id3.VARIANTS, "sulq": SULQ}


def study_of(miner: DPID3, relation=dpf.Relation.ADD_OR_REMOVE_ONE, schema=SCHEMA) -> dpf.Study:
    study = dpf.Study(schema, epsilon=miner.epsilon, relation=relation)
    study.add("tree", miner)
    return study


def table_of(rows) -> dpf.Table:
    codes = np.array(rows, dtype=np.uint8).reshape(-1, 4).T
    sizes = np.array([1.0, 4.0, 7.0])[codes[1]]
    return dpf.Table.from_codes(SCHEMA, codes, {"size": sizes})


def planted(rows: int, seed: int = 0) -> dpf.Table:
    """The class follows from colour and ripe."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, a.size, rows) for a in SCHEMA])
    codes[3] = np.where(codes[0] == 0, 0, np.where(codes[2] == 1, 1, 0))
    schema = attrs.evolve(SCHEMA, max_rows=None)
    return dpf.Table.from_codes(schema, codes)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_plan_costs_exactly_epsilon(variant, published, depth, relation):
    settings = {**VARIANTS[variant], "max_depth": depth}
    if published:
        settings = {**settings, "budget": "published", "stopping": "noisy-count"}
    plan = study_of(DPID3("class", epsilon="0.7", **settings), relation).plan()
    assert plan.total().epsilon == Fraction(7, 10)
    assert not plan.refusals()
    again = dpf.StudyPlan.from_json(plan.to_json())
    assert again == plan
    assert again.total() == plan.total()


def test_the_published_budget_is_the_talks():
    # B / (2 (d + 1)) a step without numeric attributes, B / ((2 + k) d + 2) with k split points a node
    assert tree_budget("published", Fraction(1), 4, thresholds=0, counts=True).leaf == (Fraction(1, 10),) * 5
    assert tree_budget("published", Fraction(1), 5, thresholds=6, counts=True).count == Fraction(1, 42)


def test_the_growing_budget_spends_all_on_every_path():
    budget = tree_budget("growing", Fraction(1), 5, thresholds=0, counts=False)
    assert budget.select == tuple(Fraction(w, 80) for w in (5, 7, 10, 14, 20))
    for level in range(6):
        assert sum(budget.select[:level]) + budget.leaf[level] == 1


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_finds_a_planted_tree_when_the_budget_is_large(variant):
    table = planted(2000)
    schema = attrs.evolve(table.schema, max_rows=5000)
    table = dpf.Table.from_codes(schema, table.codes)
    miner = DPID3("class", epsilon=400, max_depth=3, **VARIANTS[variant])
    results = study_of(miner, schema=schema).run(table, seed=1)
    truth = np.array(["good", "bad"])[table.codes[3]]
    assert (results["tree"].tree.predict(table) == truth).mean() > 0.99
    assert results.spent.epsilon <= 400


def test_published_settings_are_the_papers():
    miner = DPID3.published("class", 1.0)
    assert (miner.splits, miner.selection, miner.stopping, miner.budget) == (
        "multiway",
        "exponential",
        "noisy-count",
        "published",
    )
    tree = study_of(attrs.evolve(miner, epsilon=500), schema=planted(1).schema).run(planted(3000), seed=3)["tree"].tree
    assert isinstance(tree.root.split, Multiway)


def test_a_private_run_draws_from_the_system_and_says_so():
    table = planted(500)
    results = study_of(DPID3("class", epsilon=200, max_depth=2), schema=table.schema).run(table)
    assert results.private
    assert json.loads(results.to_json())["private"] is True
    assert (results["tree"].tree.predict(table) == np.array(["good", "bad"])[table.codes[3]]).mean() > 0.95


@pytest.mark.parametrize(("variant", "relation"), zip(VARIANTS, itertools.cycle(RELATIONS), strict=False))
def test_no_neighbour_sees_a_transcript_with_more_than_epsilon(variant, relation):
    """Two levels deep, by turns; the conformance suite audits one under both, where the worst case is nearer."""
    miner = DPID3("class", epsilon=2, max_depth=2, **VARIANTS[variant])
    assert assert_private(miner, SCHEMA, relation, replays=200).tightness > 0.1


def test_a_refused_schema_or_parameter_says_why_in_one_sentence():
    cases = [
        (lambda: DPID3("class", epsilon=1, max_depth=0), "max_depth is 0"),
        (lambda: DPID3("class", epsilon=1, max_depth=65), "max_depth is 65"),
        (lambda: DPID3("class", epsilon=float("nan")), "epsilon is nan"),
        (lambda: DPID3("class", epsilon=-1), "cannot be negative"),
        (lambda: DPID3("class", epsilon=1, criterion="entropy"), "criterion 'entropy' is unknown"),
        (lambda: DPID3("class", epsilon=1, splits="ternary"), "splits 'ternary' is unknown"),
        (lambda: DPID3("clas", epsilon=1).plan(SCHEMA), "did you mean 'class'"),
        (lambda: DPID3("class", epsilon=1, attributes=["class"]).plan(SCHEMA), "leave it out"),
        (lambda: DPID3("class", epsilon=1, attributes=["ripe", "ripe"]).plan(SCHEMA), "twice"),
        (lambda: DPID3("class", epsilon=1, attributes=[]).plan(SCHEMA), "no attribute can be split"),
        (lambda: DPID3("class", epsilon=1, budget="halving").plan(SCHEMA), "budget 'halving' is unknown"),
        (
            lambda: DPID3("one", epsilon=1).plan(dpf.Schema([dpf.Categorical("one", values=["x"]), dpf.Boolean("b")])),
            "single class",
        ),
        (
            lambda: DPID3("class", epsilon=1, criterion="information-gain").plan(attrs.evolve(SCHEMA, max_rows=None)),
            "max_rows",
        ),
        (lambda: DPID3("class", epsilon=1, selection="noisy-counts", numeric="density").plan(SCHEMA), "public cuts"),
    ]
    for refused, sentence in cases:
        with pytest.raises(dpf.InputError, match=sentence) as caught:
            refused()
        assert "\n" not in str(caught.value)


def test_stopping_on_a_swamped_threshold_is_a_warning():
    miner = DPID3("class", epsilon=1, stopping="noisy-count", max_depth=4)
    codes = {f.code for f in study_of(miner).plan().check()}
    assert "DP007" in codes


def test_thresholds_off_the_grid_assume_nothing():
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("tree", DPID3("class", epsilon=1, numeric="density"))
    assert study.plan().assumptions == {}
    assert study.plan().refusals() == []


def grown_leaf(a: float, b: float, variance: float = 0.01) -> ReleasedNode:
    return ReleasedNode(None, (), (np.array([a, b], dtype=float), variance), None)


def test_noise_in_other_classes_leaves_a_node_as_sure_as_it_is():
    # nine of ten rows of one class, and noise: with 0 for negative counts it would be .9
    node = finish(make_consistent(ReleasedNode(None, (), (np.array([900.0, -60, 50, -40, 50]), 1600.0), None)))
    assert 0.93 < node.probabilities[0] < 0.96


def test_a_node_has_the_mean_shares_of_its_leaves():
    grown = ReleasedNode(dpf.Below("size", 3), (grown_leaf(90, 10), grown_leaf(60, 240)), None, None)
    node = finish(make_consistent(grown))
    below, above = (child.probabilities for child in node.children)
    assert node.probabilities == pytest.approx(below / 4 + above * 3 / 4, abs=1e-3)


def test_counts_are_made_consistent_from_leaves_to_root():
    grown = ReleasedNode(dpf.Below("size", 3), (grown_leaf(10, 2, 4.0), grown_leaf(3, 30, 4.0)), None, (40.0, 2.0))
    counted = make_consistent(grown)
    assert counted.counts == pytest.approx(sum(child.counts for child in counted.children))
    # between the leaves' sum, 45, and the node's own count, 40, nearer to the more exact one
    assert 40 < counted.counts.sum() < 42.5


@pytest.mark.parametrize(("rows", "depth"), [(None, 5), (80, 1), (250, 2), (1_000, 4), (2_000, 5)])
def test_the_depth_follows_from_epsilon_and_public_rows(rows, depth):
    schema = attrs.evolve(SCHEMA, rows=rows, max_rows=None)
    miner = DPID3("class", epsilon=1)
    assert miner.plan(schema) == attrs.evolve(miner, max_depth=depth).plan(schema)
    assert miner.plan(schema) != attrs.evolve(miner, max_depth=depth % 5 + 1).plan(schema)
    assert DPID3.published("class", 1).max_depth == 5
    assert DPID3("class", 1, max_depth=64).max_depth == 64


def test_pruning_drops_a_split_that_saves_no_errors_and_keeps_one_that_does():
    useless = ReleasedNode(dpf.Below("size", 3), (grown_leaf(50, 10), grown_leaf(48, 12)), None, None)
    useful = ReleasedNode(dpf.Below("size", 3), (grown_leaf(50, 1), grown_leaf(2, 60)), None, None)
    assert not hasattr(prune_tree(finish(make_consistent(useless))), "split")
    assert hasattr(finish(make_consistent(useless)), "split")
    assert hasattr(prune_tree(finish(make_consistent(useful))), "split")


def test_a_pruned_tree_still_ranks_as_the_whole_one_does():
    # one class is likelier on both sides, so the split saves no errors, but it tells 62 % from 90 %
    grown = ReleasedNode(dpf.Below("size", 3), (grown_leaf(900, 100), grown_leaf(620, 380)), None, None)
    schema = dpf.Schema([dpf.Numeric("size", 0, 8, cuts=[3]), dpf.Boolean("ill")])
    shown, whole = (tree_result(grown, schema["ill"], schema, prune=prune).tree for prune in (True, False))
    rows = [{"size": 1}, {"size": 5}]
    table = dpf.table_from_frame(pl.DataFrame(rows), dpf.Schema([schema["size"]]))
    assert (shown.leaves, whole.leaves) == (1, 2)
    assert str(shown) != str(whole)
    again = DecisionTree.from_dict(json.loads(json.dumps(shown.to_dict())))
    for tree in (shown, again):
        assert tree.predict_proba(table) == pytest.approx(whole.predict_proba(table), abs=1e-6)
        assert str(tree) == str(shown)
    healthy = shown.predict_proba(table)[:, 0]
    assert healthy[0] > 0.85 > 0.7 > healthy[1]


def test_expected_errors_are_above_the_observed_and_shrink_in_share_with_rows():
    assert expected_errors([6, 0], [1, 0]) == pytest.approx(6 * (1 - 0.25 ** (1 / 6)))
    assert expected_errors([60, 20], [0.75, 0.25]) / 80 > expected_errors([600, 200], [0.75, 0.25]) / 800 > 0.25
    assert expected_errors([0, 0], [0.5, 0.5]) == 0


@pytest.fixture(scope="module")
def tree() -> DecisionTree:
    table = planted(2000)
    return study_of(DPID3("class", epsilon=50, max_depth=3), schema=table.schema).run(table, seed=2)["tree"].tree


def test_a_tree_predicts_frames_and_tables_alike(tree):
    frame = pl.DataFrame({"colour": ["red", "blue", "blue"], "ripe": [True, True, False], "size": [1, 2, 3]})
    assert tree.predict(frame).tolist() == ["good", "bad", "good"]
    assert tree.predict_proba(frame).sum(axis=1) == pytest.approx([1, 1, 1])
    with pytest.raises(dpf.InputError, match="colour"):
        tree.predict(frame.with_columns(colour=pl.lit("violet")))


def test_a_tree_prints_as_rules_text_and_graphviz(tree):
    assert len(tree.rules()) == tree.leaves
    assert any("ripe" in str(rule) and "->" in str(rule) for rule in tree.rules())
    assert "└─" in str(tree)
    assert tree.to_dot().startswith("digraph tree {")
    dot = tree.to_dot()
    nodes = dot.count(" [label=") - dot.count("->")
    assert dot.count("->") == nodes - 1


def test_a_tree_survives_json(tree):
    again = DecisionTree.from_dict(json.loads(json.dumps(tree.to_dict())))
    table = planted(50, seed=9)
    assert (again.predict(table) == tree.predict(table)).all()
    assert str(again) == str(tree)
    with pytest.raises(dpf.InputError, match="not a tree"):
        DecisionTree.from_dict({"root": 3})


def test_the_splits_released_are_the_plans_template_only():
    plan = study_of(DPID3("class", epsilon=1, max_depth=3)).plan()
    assert {step.name for step in plan.steps() if isinstance(step, Step)} == {"classes", "split"}
    assert math.isclose(float(plan.previews()["tree/split"].within), plan.previews()["tree/split"].within)


def test_a_table_beyond_the_public_bound_is_refused_before_anything_is_charged():
    # the sensitivity of information gain rests on max_rows = 6
    budget = PureAccountant("add-or-remove-one", epsilon=1)
    study = study_of(DPID3("class", epsilon=1, criterion="information-gain"))
    with pytest.raises(dpf.InputError, match="more rows than the schema's public max_rows = 6"):
        study.run(table_of([(0, 0, 0, 0)] * 7), seed=0, accountant=budget)
    assert budget.spent.epsilon == 0


def test_each_step_is_planned_for_as_many_candidates_as_it_may_have():
    """The schema has 2 other tests, and a number with 2 cuts, one with none: it has no point to choose, but a step."""
    schema = dpf.Schema(
        [
            dpf.Boolean("ripe"),
            dpf.Boolean("wet"),
            dpf.Numeric("size", 0, 8, cuts=[3, 5]),
            dpf.Numeric("flat", 0, 8, bins=1),
            dpf.Boolean("class"),
        ],
        max_rows=40,
    )

    def planned(**parameters):
        steps = dict(study_of(DPID3("class", 1, max_depth=1, **parameters), schema=schema).plan().placed_steps())
        return {
            path.rpartition("/")[2]: (step.query.answer_length, getattr(step.query, "children", None))
            for path, step in steps.items()
        }

    points = {"threshold of size": (2, 2), "threshold of flat": (1, 2)}
    assert planned() == {"classes": (2, None), "split": (4, 2)}
    assert planned(numeric="grid") == {"classes": (2, None), "split": (6, 2), **points}
    density = planned(numeric="density")
    assert density == {"classes": (2, None), "split": (4, 2), **dict.fromkeys(points, (None, None))}
    many = schema.replace(dpf.Categorical("wet", ["a", "b", "c", "d", "e"]))
    widest = DPID3("class", 1, max_depth=1, splits="multiway").plan(many)
    assert [step.query.children for step in walk(widest) if getattr(step, "name", "") == "split"] == [5]


@pytest.mark.parametrize(
    ("splits", "numeric", "tables"),
    [("multiway", False, (3, 2)), ("multiway", True, (4, 4)), ("binary", False, (3, 3)), ("binary", True, (4, 4))],
)
def test_noisy_tables_share_a_levels_budget(splits, numeric, tables):
    """One of each attribute that is left: a split into all values uses one up, unless a number may be cut again."""
    names = ["a", "b", "c"]
    attributes = [*map(dpf.Boolean, names), *([dpf.Numeric("size", 0, 8, cuts=[3, 5])] if numeric else [])]
    schema = dpf.Schema([*attributes, dpf.Boolean("class")], max_rows=40)
    miner = DPID3("class", 1, max_depth=2, splits=splits, selection="noisy-counts")
    shares = tree_budget("growing", Fraction(1), 2, thresholds=0, counts=False).select
    planned = {step.mechanism.epsilon for step in walk(miner.plan(schema)) if getattr(step, "name", "") == "split"}
    assert planned == {share / number for share, number in zip(shares, tables, strict=True)}


def test_a_node_that_counts_ends_below_the_noise_of_its_parts():
    """Fewer than parts * classes * sqrt(2) / epsilon of the leaf: Friedman and Schuster 2010."""
    miner = DPID3("class", 1, max_depth=1, stopping="noisy-count", budget="published")
    counts = [step for step in walk(miner.plan(SCHEMA)) if getattr(step, "name", "") == "count"]
    each = 1 / 4  # of one selection, two counts and one leaf
    assert [float(step.threshold) for step in counts] == [pytest.approx(2 * 2 * math.sqrt(2) / each)] * 2


def test_a_choice_among_one_candidate_makes_no_release():
    schema = dpf.Schema([dpf.Boolean("ripe"), dpf.Boolean("class")])
    table = dpf.Table.from_codes(schema, np.array([[0, 1] * 20, [0, 1] * 20]))
    results = study_of(DPID3("class", epsilon=4, max_depth=3), schema=schema).run(table, seed=0)
    assert [charge.path.split("/")[-1] for charge in results.charges] == ["classes", "classes"]


def test_a_huge_epsilon_still_gives_a_tree():
    table = planted(200)
    tree = study_of(DPID3("class", epsilon=6000, max_depth=2), schema=table.schema).run(table, seed=0)["tree"].tree
    assert (tree.predict(table) == np.array(["good", "bad"])[table.codes[3]]).all()


PATIENTS = """
low overweight high false sick; low overweight high true sick; normal overweight high false healthy;
high normal high false healthy; high underweight normal false healthy; high underweight normal true sick;
normal underweight normal true healthy; low normal high false sick; low underweight normal false healthy;
high normal normal false healthy; low normal normal false healthy; normal normal high true healthy;
normal overweight normal false healthy; high normal high true sick
"""


@pytest.mark.parametrize("criterion", ["information-gain", "gini"])
def test_the_fourteen_patients_of_the_talk_are_split_by_blood_pressure(criterion):
    """With hardly any noise. The talk leaves the tree out; Quinlan's is this one, for other names (1986)."""
    schema = dpf.Schema(
        [
            dpf.Categorical("blood pressure", ["low", "normal", "high"]),
            dpf.Categorical("weight", ["underweight", "normal", "overweight"]),
            dpf.Categorical("temperature", ["normal", "high"]),
            dpf.Boolean("cough"),
            dpf.Categorical("class", ["healthy", "sick"]),
        ],
        max_rows=14,
    )
    patients = [row.split() for row in PATIENTS.split(";")]
    columns = [list(column) for column in zip(*patients, strict=True)]
    table = dpf.Table.from_codes(
        schema, [[a.labels.index(cell) for cell in column] for a, column in zip(schema, columns, strict=True)]
    )
    miner = DPID3.published("class", 10**6, criterion=criterion, max_depth=2, stopping="none", pruning=False)
    found = str(study_of(miner, schema=schema).run(table, seed=1)["tree"])
    assert found.splitlines()[::3] == [
        "├─ blood pressure = low",
        "├─ blood pressure = normal",
        "└─ blood pressure = high",
    ]
    leaves = re.findall(r"(\w+) = \w+: (\w+) \((\d+)% of about (\d)\)", found)
    assert [(test, label, rows) for test, label, _, rows in leaves] == [
        *[("temperature", "healthy", "2"), ("temperature", "sick", "3")],
        *[("cough", "healthy", "2")] * 2,
        *[("cough", "healthy", "3"), ("cough", "sick", "2")],
    ]
    assert all(int(percent) >= 95 for _, _, percent, _ in leaves)  # other patients may differ
