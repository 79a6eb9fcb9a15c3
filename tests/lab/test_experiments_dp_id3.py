"""The experiments of the 2010 talk: the rows that are made up, and the paper's calibration."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from dpframework_trees import DPID3
from dpframework_trees.queries import SplitScores, ThresholdScores

import dpframework as dpf
from dpframework.lab.experiment.user_functions import Code
from dpframework.plan import Step, walk

FOLDER = Path(__file__).parents[2] / "docs" / "experiments" / "dp-id3"
SCHEMA = dpf.Schema([*(dpf.Boolean(f"b{k}") for k in range(10)), dpf.Boolean("class")], max_rows=1000)


def function(place):
    return Code(place, FOLDER).load()


def made(**params):
    return function("generators.py:random_tree_rows")(**params)


def splits_of(tree, above=()):
    """Yield each split with those above it on its path."""
    if hasattr(tree, "attribute"):
        yield tree, above
        for side in (tree.below, tree.above):
            yield from splits_of(side, (*above, tree))


def test_one_split_decides_the_class_and_noise_is_in_the_rows_to_learn_from_only():
    rows = 20_000
    learned, held_out = made(seed=0, rows=rows, binary=10, depth=1, noise=0.1)
    agreement = [(column == held_out.codes[-1]).mean() for column in held_out.codes[:-1]]
    (split,) = (k for k, share in enumerate(agreement) if share in (0, 1))
    wrong = (learned.codes[split] == learned.codes[-1]).mean() != agreement[split]
    assert wrong
    # Attribute and class each keep their value with probability .95: they disagree with 2 * .95 * .05 = .095.
    # False failure: below 1e-6 (4.9 standard deviations of a binomial share, .0021 each).
    share = (learned.codes[split] == learned.codes[-1]).mean()
    assert abs(share - agreement[split]) == pytest.approx(0.095, abs=4.9 * math.sqrt(0.095 * 0.905 / rows))


def test_tables_follow_from_the_seed():
    one, same, other = (made(seed=s, rows=50, binary=7, continuous=3, depth=5)[0] for s in (3, 3, 4))
    assert np.array_equal(one.codes, same.codes)
    assert all(np.array_equal(one.values[name], same.values[name]) for name in one.values)
    assert not np.array_equal(one.codes, other.codes)
    assert one.schema == other.schema  # public: it does not follow from the rows


def test_random_trees_use_a_binary_attribute_once_a_path_and_thresholds_that_split():
    random_tree = function("generators.py:random_tree")
    ranges = dict.fromkeys(["b0", "b1", "b2", "b3", "b4", "c0"], (0.0, 1.0))
    deepest = 0
    for seed in range(200):
        tree = random_tree(np.random.default_rng(seed), ranges, frozenset(n for n in ranges if n[0] == "b"), 5)
        for split, above in splits_of(tree):
            deepest = max(deepest, len(above) + 1)
            before = [other for other in above if other.attribute == split.attribute]
            assert not before or split.attribute == "c0"
            assert all(other.threshold != split.threshold for other in before)
            assert len(above) < 2 or all(len(list(splits_of(part))) for part in above)
    assert deepest == 5


def plan_of(criterion, schema=SCHEMA, **settings):
    published = function("published.py:PublishedDPID3")
    miner = DPID3.published("class", Fraction(1, 10), criterion=criterion, **{"max_depth": 1, **settings})
    study = dpf.Study(schema, epsilon=Fraction(1, 10))
    study.add("tree", published(miner))
    return study.checked_plan()


@pytest.mark.parametrize(
    ("criterion", "spread"),
    [("max", 2), ("gini", 4), ("information-gain", 2 * (math.log2(1001) + 1 / math.log(2)))],
)
def test_the_papers_sensitivities_are_twice_ours_or_more(criterion, spread):
    plan = plan_of(criterion)
    assert plan.total().epsilon == Fraction(1, 10)
    (step,) = (node for node in walk(plan.root) if isinstance(node, Step) and node.name == "split")
    (declared,) = step.query.sensitivities
    ours = DPID3.published("class", 1, criterion=criterion, max_depth=1).plan(SCHEMA)
    (derived,) = next(n for n in walk(ours) if isinstance(n, Step) and n.name == "split").query.sensitivities
    assert float(declared.spread.add_or_remove_one) == pytest.approx(spread)
    assert declared.spread.add_or_remove_one >= 2 * derived.spread.add_or_remove_one
    assert step.mechanism.epsilon == Fraction(1, 40)  # epsilon / (2 (d + 1))


def test_split_points_get_the_papers_sensitivities_too():
    schema = dpf.Schema([dpf.Numeric("c0", 0, 1, bins=4), *SCHEMA.attributes], max_rows=1000)
    steps = [n for n in walk(plan_of("gini", schema, numeric="density").root) if isinstance(n, Step)]
    scores = [step.query for step in steps if isinstance(step.query, SplitScores | ThresholdScores)]
    assert len(scores) == 2
    assert {float(q.sensitivities[0].spread.add_or_remove_one) for q in scores} == {4.0}


def test_noisy_counts_of_ten_attributes_get_an_eight_hundredth_each():
    plan = plan_of("information-gain", numeric="candidates", selection="noisy-counts")
    (step,) = (node for node in walk(plan.root) if isinstance(node, Step) and node.name == "split")
    assert step.mechanism.epsilon == Fraction(1, 800)  # epsilon' / (2 * 10), epsilon' = 1/40
    assert plan.total().epsilon < Fraction(1, 10)


@pytest.mark.parametrize("criterion", ["max", "sulq"])
def test_with_much_budget_the_papers_tree_is_right(criterion):
    learned, held_out = made(seed=1, rows=2000, binary=5, depth=2)
    grow = function("published.py:dp_id3")
    tree = grow(learned, seed=0, epsilon=1000.0, target="class", criterion=criterion, max_depth=3).tree
    true = np.array(held_out.schema["class"].labels)[held_out.codes[-1]]
    assert (np.asarray(tree.predict(held_out)) == true).mean() > 0.99
    majority = function("../baselines.py:majority")(learned, seed=0, target="class")
    assert (majority.predict(held_out) == true).mean() < 0.99
