"""The exact sampler of pairs of trees: against all pairs enumerated, on small tables and under planted mistakes."""

import itertools
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
from dpframework_trees.exact_pair_sampler import ExactPairs
from dpframework_trees.queries import TreePairScores
from dpframework_trees.redescribe.pair_miner import MCMCTreePair
from dpframework_trees.redescribe.tree_redescription_miner_base import EXAMPLE_SCHEMA
from dpframework_trees.redescribe.witnesses import pair_of_trees
from dpframework_trees.sampling import scale_on_lattice
from dpframework_trees.splits import Candidates
from dpframework_trees.tree_pair_counts import (
    MOST_TESTS,
    SplitPairCounts,
    pair_work,
    pairs_misfit,
    require_feasible_pairs,
    sets_of_tests,
)
from dpframework_trees.tree_pairs import PairData, pair_score_named, some_pairs

import dpframework as dpf
from dpframework import InMemory, Relation, Threads
from dpframework.mechanisms import Calibration
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.verify import assert_private
from dpframework.verify.conformance_suites import MechanismConformance, QueryConformance
from dpframework.verify.mechanisms.probe_query_answers import Probe

SCHEMA = dpf.Schema(
    [
        dpf.Boolean("wolf", view="left"),
        dpf.Categorical("zone", ["north", "south"], view="left", missing=True),
        dpf.Numeric("rain", 0, 8, cuts=[3, 5], view="right"),
    ],
    max_rows=300,
)
LEFT = Candidates.of_schema(SCHEMA, ["wolf", "zone"], multiway=False, cuts=True)
RIGHT = Candidates.of_schema(SCHEMA, ["rain"], multiway=False, cuts=True)
SCORES = ("gain", "product", "published")


def table(rows: int = 150, seed: int = 5) -> dpf.Table:
    rng = np.random.default_rng(seed)
    return dpf.Table.from_codes(SCHEMA, np.stack([rng.integers(0, a.size, rows) for a in SCHEMA]))


def query(score: str, depth: int, *, gives_counts: bool = True) -> TreePairScores:
    return TreePairScores(pair_score_named(score), SCHEMA["wolf"], RIGHT, LEFT, depth, None, gives_counts=gives_counts)


def answer(score: str, depth: int, rows: dpf.Table, engine: dpf.Engine | None = None) -> SplitPairCounts:
    engine = engine or InMemory()
    found = query(score, depth).evaluate(engine, engine.load(rows))
    assert isinstance(found, SplitPairCounts)
    return found


def calibrated(score: str, depth: int, epsilon: str = "1") -> Calibration:
    found = ExactPairs(epsilon).calibrate(query(score, depth).facts(), Relation.ADD_OR_REMOVE_ONE)
    assert isinstance(found, Calibration)
    return found


def every_pair(depth: int) -> list[tuple[np.ndarray, np.ndarray]]:
    return list(some_pairs((len(RIGHT), len(LEFT)), depth, 10**6))


def probabilities(data: SplitPairCounts, given: Calibration, depth: int) -> np.ndarray:
    """Return the log-probability of every pair by the exponential mechanism, from the scores alone."""
    trees = (np.array(each) for each in zip(*every_pair(depth), strict=True))
    logs = data.scores(*trees) / scale_on_lattice(given)
    return logs - np.logaddexp.reduce(logs)


class TestExactPairs(MechanismConformance):
    mechanisms: ClassVar = [ExactPairs(2)]
    draws = 1_000
    probes: ClassVar = [Probe(query("gain", 1).facts(), lambda scale: answer("gain", 1, table(40)))]


class TestCountedScores(QueryConformance):
    pairs = 150
    min_tightness: ClassVar = 0.4  # so few pairs of tables; the same scores are searched further in test_redescribe
    queries: ClassVar = {"gain": (query("gain", 2), SCHEMA, {})}


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("score", SCORES)
def test_counts_give_the_scores_that_the_rows_give(score: str, depth: int) -> None:
    pairs = every_pair(depth)[:: 7 if depth == 2 else 1]
    for rows in (table(0), table(1), table(200)):
        engine = InMemory()
        by_rows = query(score, depth, gives_counts=False).evaluate(engine, engine.load(rows))
        assert isinstance(by_rows, PairData)
        expected = [by_rows.score(*pair) for pair in pairs]
        for engine in (InMemory(), Threads(2)):
            data = answer(score, depth, rows, engine)
            assert (data.divisor, data.classes) == (by_rows.divisor, 2)
            assert data.scores(*(np.array(each) for each in zip(*pairs, strict=True))) == pytest.approx(expected)
            assert data.score(*pairs[-1]) == pytest.approx(expected[-1])


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("score", SCORES)
def test_test_after_test_is_drawn_the_exponential_mechanism_on_all_pairs(score: str, depth: int) -> None:
    """The chain of conditional probabilities multiplies to exp(score / scale) over the sum of all pairs."""
    given, mechanism, pairs = calibrated(score, depth, "20"), ExactPairs(20), every_pair(depth)
    chosen = range(0, len(pairs), 1 if depth == 1 else 9)
    for rows in (table(0), table(1), table(57, 1), table(300)):
        data = answer(score, depth, rows)
        expected = probabilities(data, given, depth)
        found = [mechanism.log_density(data, np.stack(pairs[k]), given) for k in chosen]
        assert found == pytest.approx(expected[chosen], abs=1e-6)


@pytest.mark.parametrize("depth", [1, 2])
def test_no_neighbour_of_a_small_table_loses_more_than_epsilon(depth: int) -> None:
    """Every table of up to three rows of eight kinds, each row added and each replaced, and every pair of trees."""
    kinds = np.array(list(itertools.product(range(2), range(2), (0, 2))), dtype=np.uint8).T
    scores = [query("gain", depth)]
    tables = [t for n in range(5) for t in itertools.combinations_with_replacement(range(8), n)]
    for relation in Relation:
        given = ExactPairs(1).calibrate(scores[0].facts(), relation)
        assert isinstance(given, Calibration)
        logs = {
            t: probabilities(answer("gain", depth, dpf.Table.from_codes(SCHEMA, kinds[:, list(t)])), given, depth)
            for t in tables
        }
        worst = 0.0
        for smaller in (t for t in tables if len(t) < 4):
            larger = [logs[tuple(sorted((*smaller, row)))] for row in range(8)]
            others = [logs[smaller]] if relation is Relation.ADD_OR_REMOVE_ONE else larger
            worst = max(worst, *(np.abs(a - b).max() for a in larger for b in others))
        assert 0.2 < worst <= 1  # witnesses of thousands of rows reach all of it (`redescribe/witnesses.py`)


def test_the_draws_follow_the_levels_and_the_classes_of_either_tree() -> None:
    """With much noise all pairs occur; with none, the best one does. Fails by chance once in 10**9 runs."""
    data = answer("gain", 2, table(300))
    best = np.argmax(probabilities(data, calibrated("gain", 2), 2))
    with_little_noise = calibrated("gain", 2, "100000")
    randomness = SeededRandomness(3)
    drawn = ExactPairs(100_000).release(data, with_little_noise, randomness)
    assert drawn.shape == (2, 3)
    assert data.score(*drawn) == pytest.approx(data.score(*every_pair(2)[best]))
    noisy = calibrated("gain", 2, "0.001")
    found = np.array([ExactPairs("0.001").release(data, noisy, randomness) for _ in range(60)])
    # each of two or four tests is missed by 60 nearly uniform draws with probability 4 (3/4)**60 < 10**-6
    assert [len(np.unique(found[:, 0, k])) for k in range(3)] == [len(RIGHT)] * 3
    assert [len(np.unique(found[:, 1, k])) for k in range(3)] == [len(LEFT)] * 3


@pytest.mark.parametrize("output", [[[2], [0]], [[0], [4]], [[-1], [0]], [[0]], [[0, 0], [0, 0]]])
def test_an_output_that_is_no_pair_of_trees_is_impossible(output: list[list[int]]) -> None:
    data, given = answer("gain", 1, table()), calibrated("gain", 1)
    assert ExactPairs(1).log_density(data, np.array([[1], [3]]), given) > -np.inf
    assert ExactPairs(1).log_density(data, np.array(output), given) == -np.inf
    with pytest.raises(dpf.InputError, match="must answer with SplitPairCounts"):
        ExactPairs(1).log_density(np.zeros(3), np.array([[0], [0]]), given)


def planted(*, factor: float) -> Any:
    """Return `SplitPairCounts.terms` with the second tree weighed by a wrong factor."""
    right = SplitPairCounts.terms

    def terms(data: SplitPairCounts, first: np.ndarray) -> tuple[float, float]:
        constant, share = right(data, first)
        return constant, share * factor

    return terms


def test_a_second_tree_at_its_whole_weight_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the second tree's score counts; a sampler that forgets the half loses more than is claimed."""
    miner, relation = MCMCTreePair(2, starts=["wolf"], max_depth=1), Relation.REPLACE_ONE
    given: dict[str, Any] = {"replays": 100, "min_tightness": 0.9, "witnesses": list(pair_of_trees(1))}
    assert_private(miner, EXAMPLE_SCHEMA, relation, **given)
    monkeypatch.setattr(SplitPairCounts, "terms", planted(factor=2))
    with pytest.raises(AssertionError):
        assert_private(miner, EXAMPLE_SCHEMA, relation, **given)


def test_what_the_exact_sampler_cannot_afford_is_refused_by_public_numbers() -> None:
    assert [sets_of_tests(7, depth) for depth in (1, 2)] == [8, 29]
    assert [pair_work(3, 4, depth) for depth in (1, 2)] == [12, 270]
    assert pairs_misfit(20, 20, 2) is None
    assert pairs_misfit(2, 2, 3) == "it draws pairs of trees of up to 2 levels, not 3"
    assert pairs_misfit(MOST_TESTS, 1, 1) is None
    assert pairs_misfit(1, MOST_TESTS + 1, 1) == f"it takes up to {MOST_TESTS} tests of a view, not {MOST_TESTS + 1}"
    assert "would keep 1.3e+07 counts for 3500 and 3600 tests" in str(pairs_misfit(3500, 3600, 1))
    assert pairs_misfit(3, 4, 2, 270) is None
    assert "would look at 2.7e+02 pairs of tests for 3 and 4" in str(pairs_misfit(3, 4, 2, 269))
    with pytest.raises(dpf.InputError, match=r"use sampler = 'stepwise' or 'mcmc'"):
        require_feasible_pairs(2, 2, 3)


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        ({}, ["pair", "leaves"]),
        ({"max_depth": 3}, ["first tree", "second tree", "leaves"]),
        ({"sampler": "stepwise"}, ["first tree", "second tree", "leaves"]),
        ({"sampler": "stepwise", "score": "product"}, ["first tree", "second tree", "leaves"]),
    ],
)
def test_defaults_need_no_assumption(settings: dict[str, Any], steps: list[str]) -> None:
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("found", MCMCTreePair(1, starts=["rain"], **settings))
    plan = study.plan()
    assert [step.name for step in plan.steps()] == steps
    assert not plan.refusals()
    assert not plan.assumptions
    assert plan.total().epsilon == 1
    study.run(table(300), seed=1)


def test_a_walk_is_taken_by_name_and_must_be_allowed() -> None:
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("found", MCMCTreePair(1, starts=["wolf"], sampler="mcmc"))
    assert [finding.code for finding in study.plan().refusals()] == ["DP005"]
    assert MCMCTreePair.published(1, ["wolf"]).sampler == "mcmc"


def test_many_tests_are_drawn_tree_by_tree() -> None:
    miner = MCMCTreePair(1)
    assert (miner.sampler_for(23, 36), miner.sampler_for(23, 37)) == ("exact", "stepwise")
    assert attrs.evolve(miner, max_depth=1).sampler_for(2_000, 4_000) == "exact"
    assert attrs.evolve(miner, max_depth=1).sampler_for(4_000, 4_000) == "stepwise"
    with pytest.raises(dpf.InputError, match="cannot do this: it draws pairs of trees of up to 2 levels, not 3"):
        MCMCTreePair(1, sampler="exact", max_depth=3).plan(SCHEMA)
