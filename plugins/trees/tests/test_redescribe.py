"""Redescriptions from trees: sensitivities by brute force, what a pair of trees says, and what the miners find."""

import itertools
import json
import math
from fractions import Fraction
from typing import ClassVar

import attrs
import numpy as np
import pytest
from dpframework_trees.complete_tree import CompleteTree
from dpframework_trees.criteria import CRITERIA
from dpframework_trees.queries import Associations, JointLeaves, TreePairScores
from dpframework_trees.redescribe import MCMCTreePair
from dpframework_trees.redescribe.alternation import AltExpM, AltMCMC
from dpframework_trees.redescription_extraction import MOST_ADDED, Constraints, LeafUnions, extract
from dpframework_trees.splits import Candidates
from dpframework_trees.tree_data import place_rows
from dpframework_trees.tree_pairs import MarkovChainPairs, PairData, largest_replacement, pair_score_named, some_pairs

import dpframework as dpf
from dpframework.lab.clinic import clinic_schema, clinic_table
from dpframework.plan import Step, walk
from dpframework.redescriptions import p_values
from dpframework.verify.conformance_suites import MechanismConformance, QueryConformance
from dpframework.verify.mechanisms.probe_query_answers import Probe
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.replay_on_other_table import replay
from dpframework.verify.miners.transcript import record
from dpframework.verify.tables.neighbours import Universe
from dpframework.verify.tables.small_table_engine import SmallTables

SCHEMA = dpf.Schema(
    [
        dpf.Boolean("wolf", view="left"),
        dpf.Categorical("zone", ["north", "middle", "south"], view="left", missing=True),
        dpf.Boolean("snow", view="right"),
        dpf.Numeric("rain", 0, 8, cuts=[3, 5], view="right"),
    ]
)
LEFT = Candidates.of_schema(SCHEMA, ["wolf", "zone"], multiway=False, cuts=True)
RIGHT = Candidates.of_schema(SCHEMA, ["snow", "rain"], multiway=False, cuts=True)
UNIVERSE = Universe(SCHEMA)
ENGINE = SmallTables(UNIVERSE)
MINERS = (AltExpM, AltMCMC, MCMCTreePair)
ALLOWED = ["mcmc-converged"]
GINI = CRITERIA["gini"].kernels


def tree(candidates: Candidates, *tests: int) -> CompleteTree:
    return CompleteTree(candidates, np.array(tests))


class TestQueries(QueryConformance):
    pairs = 300
    min_tightness: ClassVar = {
        # two tests move apart by 2 on tables of very many rows only: the search reaches 0.69 on 60 rows
        "associations": 0.65,
        # under replace-one, the same: a row must leave one large leaf for another in both of two pairs
        "gain": 0.6,
        "product": 0.6,
        # no row moves a normalised score by more than its share of the rows
        "published": 0.2,
    }
    queries: ClassVar = {
        "joint leaves": (JointLeaves(4, 2), SCHEMA, {"left": tree(LEFT, 0, 1, 2), "right": tree(RIGHT, 1)}),
        "associations": (Associations(LEFT, RIGHT), SCHEMA, {"candidates": LEFT}),
        "gain": (TreePairScores(pair_score_named("gain"), SCHEMA["wolf"], RIGHT, LEFT, 1, None), SCHEMA, {}),
        "product": (TreePairScores(pair_score_named("product"), SCHEMA["wolf"], RIGHT, LEFT, 1, None), SCHEMA, {}),
        "published": (TreePairScores(pair_score_named("published"), SCHEMA["wolf"], RIGHT, LEFT, 1, None), SCHEMA, {}),
    }


def pair_answer(rows: int = 40) -> tuple[TreePairScores, PairData]:
    query = TreePairScores(pair_score_named("gain"), SCHEMA["wolf"], RIGHT, LEFT, 1, None)
    kinds = np.random.default_rng(3).integers(0, UNIVERSE.kinds, rows).tolist()
    return query, query.evaluate(ENGINE, ENGINE.hold(bytes(kinds)))


class TestWalkOverPairs(MechanismConformance):
    mechanisms: ClassVar = [MarkovChainPairs(2, 400)]
    draws = 1_000
    probes: ClassVar = [Probe(pair_answer()[0].facts(), lambda scale: pair_answer()[1])]


def purities(table: np.ndarray) -> tuple[float, float, float]:
    """Return G and H of two trees and their product score, from counts[leaf of the first, of the second, class]."""
    counts, joint = table.sum(axis=1), table.sum(axis=2).T
    of_first = sum(GINI.child_score(leaf) for leaf in counts)
    of_second = sum(GINI.child_score(leaf) for leaf in joint)
    return (
        of_first,
        of_second,
        GINI.pair_score(counts, np.ascontiguousarray(joint), np.zeros(len(counts), dtype=np.int64), True),
    )


def tables_of(rows: int):
    """Yield every table of two leaves, two leaves and two classes, as counts."""
    for bars in itertools.combinations(range(rows + 7), 7):
        edges = (-1, *bars, rows + 7)
        yield np.diff(edges) - 1


@pytest.mark.parametrize("rows", [2, 3, 4, 5, 6])
def test_the_pair_score_changes_by_less_than_three_rows_share_when_one_is_replaced(rows):
    """The largest over all pairs of neighbours of two leaves a side and two classes is the formula's."""
    scores = {tuple(t): purities(t.reshape(2, 2, 2))[2] / rows for t in tables_of(rows)}
    largest = 0.0
    for table, score in scores.items():
        for out, into in itertools.permutations(range(8), 2):
            if table[out]:
                other = list(table)
                other[out] -= 1
                other[into] += 1
                largest = max(largest, abs(score - scores[tuple(other)]))
    assert largest <= largest_replacement(rows) + 1e-12
    assert largest == pytest.approx(largest_replacement(rows))
    assert rows * largest_replacement(rows) < 3


def gained(table: np.ndarray) -> float:
    """Return the gain of two trees by its definition, from counts[leaf of the first, of the second, class]."""

    def norm(counts: np.ndarray, axis: int) -> np.ndarray:
        return (counts.astype(float) ** 3).sum(axis=axis) ** (1 / 3)

    of_first, of_second = norm(table.sum(axis=1), 1).sum(), norm(table.sum(axis=2), 0).sum()
    return (of_first + of_second - norm(table.sum(axis=(1, 2)), 0)) / 2


def scored(table: np.ndarray, name: str) -> float:
    return gained(table) if name == "gain" else purities(table)[2]


@pytest.mark.parametrize(("name", "bound"), [("gain", (Fraction(1), Fraction(1, 2))), ("product", (1, 2))])
def test_no_row_raises_or_lowers_a_pair_score_by_more_than_declared(name, bound):
    """All tables of two leaves a side, two classes and 5 rows; those of 0, 1 or 200 rows of each kind; a large one."""
    declared = pair_score_named(name).sensitivity(None)
    assert (declared.rise, declared.fall) == bound
    assert declared.spread.add_or_remove_one == sum(bound)
    large = (0, 0, 0, 100_000, 0, 1_000, 0, 0)  # the gain falls by less than 1/2, but comes near it in the limit
    tables = np.array([*tables_of(5), *itertools.product([0, 1, 200], repeat=8), large]).reshape(-1, 2, 2, 2)
    changes = [
        scored(table + one.reshape(2, 2, 2), name) - scored(table, name)
        for table in tables
        for one in np.eye(8, dtype=int)
    ]
    assert max(changes) <= declared.rise + 1e-9
    assert min(changes) >= -declared.fall - 1e-9
    assert max(changes) > 0.98 * declared.rise  # and neither can be lowered
    assert min(changes) < -0.98 * declared.fall


def test_the_kernels_gain_is_the_one_that_is_derived():
    for table in tables_of(3):
        cells = table.reshape(2, 2, 2)
        joint = np.ascontiguousarray(cells.sum(axis=2).T)
        kernels = pair_score_named("gain").criterion.kernels
        room = np.zeros(len(cells), dtype=np.int64)
        assert kernels.pair_score(cells.sum(axis=1), joint, room, False) == pytest.approx(gained(cells))


def test_the_worst_case_of_ten_rows_is_the_known_one():
    assert 10 * largest_replacement(10) == pytest.approx(2.34, abs=0.005)
    assert 2.9 < 10**6 * largest_replacement(10**6) < 3
    assert largest_replacement(6_000) == pytest.approx(
        max(1 - (1 - 2 * (5999 - k) / ((6000 - k) * 6000)) * (1 - k / ((k + 1) * 6000)) for k in range(6000))
    )


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
def test_the_unnormalised_pair_score_changes_by_at_most_two_when_a_row_is_added(rows):
    scores = {tuple(t): purities(t.reshape(2, 2, 2))[2] for n in (rows, rows + 1) for t in tables_of(n)}
    changes = [
        scores[tuple(np.add(table, np.eye(8, dtype=int)[into]))] - score
        for table, score in scores.items()
        if sum(table) == rows
        for into in range(8)
    ]
    assert min(changes) > -2
    assert max(changes) <= 1 + 1e-12


@pytest.mark.parametrize(("rows", "apart"), [(1, 1 / 2), (2, 11 / 18), (3, 19 / 36)])
def test_two_normalised_pair_scores_move_apart_by_one_at_most_when_a_row_is_added(rows, apart):
    """Of rows from 3 on, by 4 / (rows + 1) at most: so of any number."""
    scores = {tuple(t): purities(t.reshape(2, 2, 2))[2] for n in (rows, rows + 1) for t in tables_of(n)}
    changes = [
        scores[tuple(np.add(table, np.eye(8, dtype=int)[into]))] / (rows + 1) - score / rows
        for table, score in scores.items()
        if sum(table) == rows
        for into in range(8)
    ]
    assert max(changes) - min(changes) == pytest.approx(apart)


@pytest.mark.parametrize("rows", [2, 5, 9])
def test_worst_cases_of_one_tree(rows):
    """The Gini score of two leaves changes by 2 (n - 1) / n; normalised and replaced, by 2 (n - 1) / n**2."""
    replaced = gini_added = purity_added = 0.0
    for left in itertools.product(range(rows), repeat=2):
        if sum(left) > rows - 1:
            continue
        for k in range(rows - sum(left)):
            sides = np.array([left, (k, rows - 1 - sum(left) - k)])
            after = [sides + moved.reshape(2, 2) for moved in np.eye(4, dtype=int)]
            purity = [sum(GINI.child_score(np.ascontiguousarray(s)) for s in table) for table in (sides, *after)]
            replaced = max(replaced, max(purity[1:]) - min(purity[1:]))
            purity_added = max(purity_added, *(abs(p - purity[0]) for p in purity[1:]))
            # Gini is purity less the number of rows
            gini_added = max(gini_added, *(abs(p - purity[0] - 1) for p in purity[1:]))
    assert purity_added == pytest.approx(1)
    assert gini_added == pytest.approx(2 * (rows - 1) / rows)
    assert replaced == pytest.approx(2 * (rows - 1) / rows)
    assert replaced / rows == pytest.approx(2 * (rows - 1) / rows**2)


def test_one_public_row_does_not_refuse_a_plan():
    study = dpf.Study(attrs.evolve(SCHEMA, rows=1), epsilon=1, relation="replace-one", allow=ALLOWED)
    study.add("found", MCMCTreePair(1, score="product"))
    assert not study.plan().refusals()


def test_a_walks_score_is_that_of_the_pair_it_ends_in():
    query, data = pair_answer()
    pairs = list(some_pairs((len(RIGHT), len(LEFT)), 1, 10_000))
    assert len(pairs) == query.answer_length == len(LEFT) * len(RIGHT)
    first, second = pairs[5]
    assert len(place_rows(data.first_bits, first, data.rows)) == 3
    assert data.score(first, second) == query.coordinates(data)[5]


@pytest.mark.parametrize("seed", range(30))
def test_a_union_of_leaves_is_described_by_what_holds_in_it(seed):
    rng = np.random.default_rng(seed)
    candidates = LEFT if seed % 2 else RIGHT
    grown = tree(candidates, *rng.integers(0, len(candidates), 7))
    leaves = LeafUnions(grown)
    block = UNIVERSE.block(bytes(range(UNIVERSE.kinds)))
    # the universe has a row of each kind, so a leaf without any cannot have one
    assert leaves.possible.tolist() == [k in grown.leaf_codes(block) for k in range(8)]
    union = rng.random(leaves.possible.sum()) < rng.choice([0.2, 0.5, 0.8])
    chosen = np.zeros(8, dtype=bool)
    chosen[leaves.possible] = union
    inside = chosen[grown.leaf_codes(block)]
    described = leaves.description(union)
    if described is None:
        assert inside.all() or not inside.any()
    else:
        assert (described.holds(block) == inside).all()
        assert (dpf.facts.description_from_dict(described.to_dict()).holds(block) == inside).all()


def test_a_union_of_leaves_does_not_say_what_it_implies():
    # rain < 3, else rain < 5, else neither
    leaves = LeafUnions(tree(RIGHT, 1, 1, 2))
    assert leaves.possible.tolist() == [True, False, True, True]
    assert str(leaves.description(np.array([True, True, False]))) == "rain < 5"
    assert str(leaves.description(np.array([False, False, True]))) == "rain >= 5"
    assert leaves.description(np.array([True, True, True])) is None


def test_leaves_are_the_paths_to_them():
    grown = tree(LEFT, 0, 1, 2)
    block = UNIVERSE.block(bytes(range(UNIVERSE.kinds)))
    for leaf in range(4):
        assert (grown.description(leaf).holds(block) == (grown.leaf_codes(block) == leaf)).all()


def test_extraction_finds_leaves_that_match_and_counts_add_up():
    trees = {dpf.View.LEFT: tree(LEFT, 0), dpf.View.RIGHT: tree(RIGHT, 0)}
    found, looked_at = extract(trees, np.array([[400, 10], [5, 600]]), 8.0, Constraints())
    best = max(found, key=lambda one: one.support.value)
    assert looked_at >= 4
    assert {(str(one.left), str(one.right)) for one in found} == {
        ("wolf = true", "snow = true"),
        ("wolf != true", "snow != true"),
    }
    assert (best.support.value, best.left_only.value, best.right_only.value, best.rows.value) == (600, 5, 10, 1015)
    assert best.support.variance == 8
    assert best.rows.variance == 32


def cautious_jaccard(table, left, right, variance):
    """The Jaccard index of two unions of leaves less two standard deviations of its noise, to first order."""
    inside, beside = np.outer(left, right), np.outer(left, ~right) | np.outer(~left, right)
    both, apart = max(table[inside].sum(), 0), max(table[beside].sum(), 0)
    if both + apart <= 0:
        return -1.0
    jaccard = both / (both + apart)
    noise = (1 - jaccard) ** 2 * inside.sum() + jaccard**2 * beside.sum()
    return jaccard - 2 * np.sqrt(noise * variance) / (both + apart)


def unions_by_definition(table, variance):
    """Algorithm 6 on leaves, as it is written: each union is tried on its own, all its cells added up."""
    looked_at, found = 0, set()
    sizes = table.shape
    for signs in itertools.product([False, True], repeat=2):
        for starts in itertools.product(*map(range, sizes)):
            sides = [(np.arange(n) == k) ^ negated for n, k, negated in zip(sizes, starts, signs, strict=True)]
            best, added = cautious_jaccard(table, *sides, variance), [0, 0]
            looked_at += 1
            while True:
                better = None
                for side, leaf, rest in itertools.product(range(2), range(max(sizes)), [False, True]):
                    if added[side] == MOST_ADDED or leaf >= sizes[side] or (sides[side][leaf] and not rest):
                        continue
                    looked_at += 1
                    tried = list(sides)
                    tried[side] = sides[side] | ((np.arange(sizes[side]) == leaf) ^ rest)
                    score = cautious_jaccard(table, *tried, variance)
                    if score > best + 1e-12:
                        best, better, grown = score, tried, side
                if better is None:
                    break
                sides = better
                added[grown] += 1
            found.add(tuple(np.concatenate(sides).tolist()))
    return found, looked_at


@pytest.mark.parametrize("seed", range(12))
def test_extraction_is_the_algorithm_as_it_is_written(seed):
    rng = np.random.default_rng(seed)
    depth = 2 + seed % 2
    grown = {
        dpf.View.LEFT: tree(LEFT, *rng.integers(0, len(LEFT), 2**depth - 1)),
        dpf.View.RIGHT: tree(RIGHT, *rng.integers(0, len(RIGHT), 2**depth - 1)),
    }
    counts = rng.integers(-15, 30, (2**depth, 2**depth)) + 300 * (rng.random((2**depth, 2**depth)) < 0.15)
    constraints = Constraints(min_jaccard=0.15, min_support=5, max_p_value=0.2)
    variance = float(rng.choice([0.5, 8, 200]))
    leaves = [LeafUnions(grown[view]) for view in dpf.View]
    table = counts[np.ix_(*(of_view.possible for of_view in leaves))]
    unions, expected_number = unions_by_definition(table, variance)
    expected = set()
    for union in unions:
        left, right = (np.array(side) for side in (union[: len(table)], union[len(table) :]))
        sides = [of_view.description(of_side) for of_view, of_side in zip(leaves, (left, right), strict=True)]
        if None in sides:
            continue

        def cells(*of_cells, table=table):
            return dpf.results.Noisy(table[np.ix_(*of_cells)].sum(), variance * np.outer(*of_cells).sum())

        one = dpf.redescriptions.Redescription(
            *sides,
            both=cells(left, right),
            left_only=cells(left, ~right),
            right_only=cells(~left, right),
            rows=dpf.results.Noisy(table.sum(), variance * table.size),
        )
        support = one.support.value
        if one.jaccard >= 0.15 and 5 <= support <= 0.8 * table.sum() and one.p_value <= 0.2:
            expected.add(one)
    found, number = extract(grown, counts, variance, constraints)
    found = [attrs.evolve(one, shown_from=0.0) for one in found]
    assert (set(found), len(found), number) == (expected, len(expected), expected_number)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_pairs_of_trees_have_a_count_for_each_two_leaves(depth):
    for miner in (AltExpM(1, max_depth=depth), AltMCMC(1, max_depth=depth)):
        queries = [node.query for node in walk(miner.plan(SCHEMA)) if isinstance(node, Step)]
        assert {query.answer_length for query in queries if isinstance(query, JointLeaves)} == {4**depth}


def test_sides_that_hold_for_the_same_rows_have_an_index_of_1():
    stumps = {dpf.View.LEFT: tree(LEFT, 0), dpf.View.RIGHT: tree(RIGHT, 1)}
    same = np.array([[60, 0], [0, 40]])
    found, _ = extract(stumps, same, 1e-6, Constraints(1, 1, 1, 1))
    assert {one.both.value for one in found} == {60, 40}
    assert extract(stumps, np.array([[60, 1], [0, 40]]), 1e-6, Constraints(1, 1, 1, 1))[0] == []


def test_no_redescription_of_sixteen_leaves_comes_twice():
    """Of trees of three levels whose seven tests are of seven attributes, so that a row may be in each leaf."""
    rng = np.random.default_rng(3)
    schema = dpf.Schema([dpf.Boolean(f"{side}{k}", view=side) for side in ("left", "right") for k in range(7)])
    trees = {}
    for view in dpf.View:
        names = [a.name for a in schema.view(view)]
        trees[view] = tree(Candidates.of_schema(schema, names, multiway=False, cuts=True), *range(7))
    counts = rng.integers(0, 30, (8, 8)) + 100 * (rng.random((8, 8)) < 0.2)
    found, looked_at = extract(trees, counts, 2.0, Constraints(0, 0, 1, 1))
    sides = [(one.left, one.right) for one in found]
    assert looked_at > len(sides) > 10
    assert len(set(sides)) == len(sides)


def test_constraints_hold_where_they_are_just_met():
    """Of 100 rows 40 are in the first leaf of both sides, 50 in that of either: an index of 40 / 60."""
    trees = {dpf.View.LEFT: tree(LEFT, 0), dpf.View.RIGHT: tree(RIGHT, 0)}
    counts, sides = np.array([[40, 10], [10, 40]]), ("wolf = true", "snow = true")

    def is_found(*constraints):
        found, _ = extract(trees, counts, 1e-9, Constraints(*constraints))
        return sides in {(str(one.left), str(one.right)) for one in found}

    (p,) = p_values(*(np.array([number]) for number in (40.0, 50.0, 50.0)), 100.0).tolist()
    assert is_found(2 / 3, 40, 0.4, p)
    assert not is_found(0.6667, 40, 0.4, p)
    assert not is_found(2 / 3, 40.1, 0.4, p)
    assert not is_found(2 / 3, 40, 0.399, p)
    assert not is_found(2 / 3, 40, 0.4, 0.999 * p)


def test_constraints_are_met_by_all_that_is_returned():
    rng = np.random.default_rng(0)
    trees = {dpf.View.LEFT: tree(LEFT, 0, 1, 2), dpf.View.RIGHT: tree(RIGHT, 0, 1, 2)}
    constraints = Constraints(min_jaccard=0.3, min_support=50, max_support=0.6, max_p_value=1e-3)
    counts = rng.integers(0, 40, (4, 4)) + 150 * np.eye(4, dtype=int)
    found, _ = extract(trees, counts, 2.0, constraints)
    assert found
    for one in found:
        assert one.jaccard >= 0.3
        assert 50 <= one.support.value <= 0.6 * counts.sum()
        assert one.p_value <= 1e-3


@pytest.mark.parametrize(
    "asked", [{"min_jaccard": 0.45}, {"min_support": 120, "max_p_value": 1}, {"max_p_value": 1e-9}]
)
def test_an_index_is_shown_from_where_its_sides_fulfil_the_constraints(asked):
    constraints = Constraints(**asked)
    rng = np.random.default_rng(0)
    trees = {dpf.View.LEFT: tree(LEFT, 0, 1, 2), dpf.View.RIGHT: tree(RIGHT, 0, 1, 2)}
    found, _ = extract(trees, rng.integers(0, 40, (4, 4)) + 150 * np.eye(4, dtype=int), 2.0, constraints)
    binding = []
    for one in found:
        left, right, rows = one.left_support.value, one.right_support.value, one.rows.value
        both = np.arange(min(left, right) + 1)
        index = both / (left + right - both)
        fulfilled = {
            "min_jaccard": index >= constraints.min_jaccard,
            "min_support": both >= constraints.min_support,
            "max_p_value": dpf.redescriptions.p_values(both, np.full(len(both), left), np.full(len(both), right), rows)
            <= constraints.max_p_value,
        }
        first = {name: int(held.argmax()) for name, held in fulfilled.items()}
        last = max(first, key=first.__getitem__)
        binding.append(last)
        assert index[first[last] - 1] < one.shown_from <= index[first[last]]
    assert sum(name in asked for name in binding) >= 10


@pytest.mark.parametrize("relation", list(dpf.Relation))
@pytest.mark.parametrize("settings", [{}, {"starts": ["wolf", "rain"]}, {"starts": 3, "max_depth": 1}])
@pytest.mark.parametrize("miner", MINERS)
def test_the_plan_costs_exactly_epsilon(miner, settings, relation):
    study = dpf.Study(SCHEMA, epsilon=1, relation=relation, allow=ALLOWED)
    study.add("found", miner("0.7", **settings))
    assert study.plan().total().epsilon == Fraction(7, 10)
    assert not study.plan().refusals()


def test_the_published_budgets_are_the_papers():
    # epsilon / (InTr (2 RMIter + 1)) for each tree and table; omega of a start's share for the pair, the rest for it
    plan = dpf.Study(SCHEMA, epsilon=1)
    alternating = AltExpM(1, starts=["wolf", "rain"], rounds=3, tree_share="4/7", sensitivity="published")
    plan.add_plan("alt", alternating.plan(SCHEMA))
    epsilons = {path.split("/")[-1]: step.mechanism.epsilon for path, step in plan.plan().placed_steps()}
    assert epsilons["leaves 3"] == Fraction(1, 14)
    assert epsilons["split"] == Fraction(1, 28)
    pair = dpf.Study(SCHEMA, epsilon=1)
    pair.add_plan("pair", MCMCTreePair(1, starts=["wolf", "rain"], tree_share="0.1").plan(SCHEMA))
    assert {step.name: step.mechanism.epsilon for step in pair.plan().steps()} == {
        "pair": Fraction(1, 20),
        "leaves": Fraction(9, 20),
    }


def test_published_alternations_are_four_and_all_steps_cost_the_same():
    for settings, rounds, share in (({}, 4, Fraction(5, 9)), ({"rounds": 1}, 1, Fraction(2, 3))):
        for kind in (AltExpM, AltMCMC):
            miner = kind.published(1, ["wolf"], **settings)
            assert (miner.rounds, miner.tree_share, miner.max_depth) == (rounds, share, 4)
            assert (miner.sensitivity, miner.criterion.name) == ("published", "published-gini")
            assert len(set(miner.shares(SCHEMA))) == 1
    assert AltMCMC.published(1, ["wolf"], max_depth=2, tree_share="1/2").tree_share == Fraction(1, 2)


def test_a_result_says_how_many_candidates_all_pairs_of_trees_had():
    numbers = []

    class Recorded(AltMCMC):
        def extract(self, *given):
            found, number = super().extract(*given)
            numbers.append(number)
            return found, number

    study = dpf.Study(SCHEMA, epsilon=20, allow=ALLOWED)
    study.add("found", Recorded(20, starts=["wolf", "rain"], rounds=2, max_depth=1))
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, a.size, 100) for a in SCHEMA])
    found = study.run(dpf.Table.from_codes(SCHEMA, codes), seed=0)["found"]
    assert len(numbers) == 4
    assert found.candidates == sum(numbers) > 0


def test_tables_of_alternating_trees_get_half_and_what_is_selected_shares_the_rest():
    for miner, trees in ((AltMCMC(1, starts=2, rounds=2), 8), (AltMCMC(1, starts=["wolf", "rain"], rounds=2), 6)):
        plan = dpf.Study(SCHEMA, epsilon=1)
        plan.add_plan("alt", miner.plan(SCHEMA))
        parts: dict[str, list[Fraction]] = {"leaves": [], "other": []}
        for step in plan.plan().steps():
            parts["leaves" if step.name.startswith("leaves") else "other"].append(step.mechanism.epsilon)
        assert parts == {"leaves": 4 * [Fraction(1, 8)], "other": trees * [Fraction(1, 2 * trees)]}


@pytest.mark.parametrize("settings", [{}, {"starts": ["wolf"]}, {"sensitivity": "published", "starts": ["wolf"]}])
@pytest.mark.parametrize("miner", MINERS)
def test_a_planted_redescription_is_found_when_the_budget_is_large(miner, settings):
    rng = np.random.default_rng(5)
    wolf = rng.integers(0, 2, 3_000)
    rain = np.where(wolf, rng.integers(1, 3, 3_000), 0)
    codes = np.stack([wolf, rng.integers(0, 4, 3_000), rng.integers(0, 2, 3_000), rain])
    study = dpf.Study(SCHEMA, epsilon=300, allow=ALLOWED)
    study.add("found", miner(300, max_depth=1, **settings))
    found = study.run(dpf.Table.from_codes(SCHEMA, codes), seed=1)["found"]
    best = found[0]
    assert {str(best.left), str(best.right)} <= {"wolf = true", "wolf != true", "rain < 3", "rain >= 3"}
    assert best.jaccard > 0.98
    assert all(found.starred)
    assert json.loads(found.to_json())["redescriptions"]


def test_the_clinic_has_redescriptions_that_can_be_trusted():
    study = dpf.Study(clinic_schema(), epsilon=1, allow=ALLOWED)
    study.add("found", AltMCMC(1))
    found = study.run(clinic_table(4_000), seed=0)["found"]
    assert len(found.pruned()) > 0
    assert "Jaccard" in str(found)


BAD = [
    (lambda m: m(1).plan(dpf.Schema([dpf.Boolean("a", view="left")])), "no attribute of the right view"),
    (lambda m: m(1, max_depth=0), "max_depth is 0; a whole number from 1 to 6"),
    (lambda m: m(1, starts=0), "starts is 0; give a positive number"),
    (lambda m: m(1, starts="wolf"), "starts is 'wolf'"),
    (lambda m: m(1, starts=[]), r"starts is \[\]; give a positive number"),
    (lambda m: m(1, starts=1.5), "starts is 1.5"),
    (lambda m: m(1, starts=[["wolf"]]), "give a positive number of tests, or a list of attribute names"),
    (
        lambda m: m(1).plan(attrs.evolve(SCHEMA, attributes=[*SCHEMA, dpf.Boolean("starting test", view="left")])),
        "'starting test' has the name of an attribute that the miner derives",
    ),
    (lambda m: m(1, starts=["wolff"]).plan(SCHEMA), "did you mean 'wolf'"),
    (lambda m: m(1, starts=["wolf", "wolf"]).plan(SCHEMA), "starts names an attribute twice"),
    (lambda m: m(0), "epsilon"),
    (lambda m: m(1, sensitivity="loose"), "sensitivity 'loose' is unknown"),
    (lambda m: m(1, constraints={"min_jacard": 0.5}), "constraint 'min_jacard' is unknown; did you mean 'min_jaccard'"),
    (lambda m: m(1, constraints={"max_support": 2}), "max_support is 2; a number from 0 to 1"),
    (lambda m: m(1, constraints={"min_support": -1}), "min_support is -1; a number of rows"),
]


@pytest.mark.parametrize("miner", MINERS)
@pytest.mark.parametrize(("refused", "sentence"), BAD)
def test_bad_input_is_one_sentence(refused, sentence, miner):
    with pytest.raises(dpf.InputError, match=sentence) as caught:
        refused(miner)
    assert "\n" not in str(caught.value)


def test_a_starting_attribute_of_one_value_or_of_no_view_is_refused():
    attributes = [*SCHEMA, dpf.Categorical("one", ["x"], view="left"), dpf.Boolean("nowhere")]
    schema = attrs.evolve(SCHEMA, attributes=attributes)
    with pytest.raises(dpf.InputError, match="'one' has one value only"):
        AltExpM(1, starts=["one"]).plan(schema)
    with pytest.raises(dpf.InputError, match="'nowhere' is on neither side"):
        AltExpM(1, starts=["nowhere"]).plan(schema)
    untestable = dpf.Schema([dpf.Categorical("one", ["x"], view="left"), dpf.Boolean("b", view="right")])
    with pytest.raises(dpf.InputError, match="no attribute of the left view has two values or a cut"):
        AltExpM(1, starts=["b"]).plan(untestable)


@pytest.mark.parametrize("miner", [AltExpM, AltMCMC, MCMCTreePair])
def test_drawn_starts_are_those_of_a_public_seed_and_cost_nothing(miner):
    def planned(**starts):
        study = dpf.Study(SCHEMA, epsilon=2)
        study.add("found", miner(2, **starts))
        return study.plan().content()["root"]

    drawn = miner(2, starts=2, drawn=7)
    names = drawn.named_starts(SCHEMA)
    assert len({*names}) == 2
    assert len({miner(2, starts=2, drawn=seed).named_starts(SCHEMA) for seed in range(30)}) > 2
    assert planned(starts=2, drawn=7) == planned(starts=names)
    assert planned(starts=2, drawn=7) != planned(starts=2)  # which pays for a selection
    assert miner(2, starts=names, drawn=3).named_starts(SCHEMA) == names
    with pytest.raises(dpf.InputError, match="99 starts are to be drawn from"):
        miner(2, starts=99, drawn=1).plan(SCHEMA)


def test_an_exact_sampler_that_would_take_too_long_says_how_much_and_offers_another():
    schema = dpf.Schema([*(dpf.Boolean(f"a{k}", view="left") for k in range(700)), dpf.Boolean("b", view="right")])
    with pytest.raises(dpf.InputError, match=r"pairs of tests for depth 3 and 700 tests.*sampler = 'mcmc'"):
        AltMCMC(1, max_depth=3, starts=["b"]).plan(schema)
    AltMCMC(1, max_depth=3, starts=["b"], sampler="mcmc").plan(schema)


def inferred_schemas(rows):
    """The schemas of a table and of its neighbour without the last row, cuts at the quantiles of their values."""
    import polars as pl

    rng = np.random.default_rng(0)
    views = [pl.DataFrame({"wolf": rng.random(rows) < 0.5}), pl.DataFrame({"rain": rng.normal(size=rows)})]
    both = [[view.head(n) for view in views] for n in (rows, rows - 1)]
    return [dpf.infer_two_view_schema(*one, numeric="quantile", bins=3) for one in both]


@pytest.mark.parametrize("miner", MINERS)
def test_cuts_taken_from_the_data_are_refused_by_the_checks(miner):
    study = dpf.Study(inferred_schemas(60)[0], epsilon=1, allow=ALLOWED)
    study.add("found", miner(1))
    assert {finding.code for finding in study.plan().refusals()} == {"DP006"}


@pytest.mark.parametrize("miner", MINERS)
def test_cuts_taken_from_the_data_are_caught_by_the_replay_audit(miner):
    """What a run on a table makes public cannot come from a run on its neighbour, whose cuts are others."""
    subjects = [Subject(miner(1, starts=["wolf"]), s, dpf.Relation.ADD_OR_REMOVE_ONE) for s in inferred_schemas(60)]
    rows = bytes([0, 1, 4, 5])
    transcript = record(subjects[0], rows, seed=1)
    same = replay(subjects[0], transcript, rows[:3])
    assert same.densities is not None
    assert math.isfinite(math.fsum(same.densities))
    replayed = replay(subjects[1], transcript, rows[:3])
    assert replayed.densities is None
    assert replayed.divergence is not None


def test_selected_starts_differ_and_come_from_either_view():
    views = ("left", "right") * 5
    schema = dpf.Schema([dpf.Boolean(f"a{k}", view=view) for k, view in enumerate(views)])
    codes = np.random.default_rng(1).integers(0, 2, (10, 400))
    study = dpf.Study(schema, epsilon=50, allow=ALLOWED)
    study.add("found", AltExpM(50, starts=4))
    starts = []

    class Starts(dpf.Observer):
        def released(self, release):
            if release.charge.path.endswith("start"):
                starts.append(release.value)

    study.run(dpf.Table.from_codes(schema, codes), seed=0, observers=[Starts()])
    assert [schema[test.attribute].view.value for test in starts] == ["left", "right", "left", "right"]
    assert len(set(map(str, starts))) == 4


@pytest.mark.parametrize("miner", MINERS)
@pytest.mark.parametrize(
    ("epsilon", "rows", "number"),
    [
        ("0.3", None, 2),
        ("0.29", None, 1),
        (1, {"rows": 750}, 2),
        (1, {"max_rows": 749}, 1),
        ("0.01", {"max_rows": 75_000}, 2),
    ],
)
def test_a_small_budget_has_one_start(miner, epsilon, rows, number):
    """By what is public alone; a run makes as many as its plan."""
    schema = attrs.evolve(SCHEMA, **(rows or {}))
    study = dpf.Study(schema, epsilon=1, allow=ALLOWED)
    study.add("found", miner(epsilon))
    assert miner(epsilon).number(schema) == number
    starts = {path.split("/")[1] for path, _ in study.plan().placed_steps()}
    assert starts == {f"start {k + 1}" for k in range(number)}
    assert study.plan().total().epsilon == Fraction(epsilon)
    codes = np.random.default_rng(2).integers(0, 2, (4, schema.rows or 700))
    assert study.run(dpf.Table.from_codes(schema, codes), seed=1)["found"].candidates > 0


@pytest.mark.parametrize("miner", MINERS)
def test_a_budget_that_cannot_carry_the_trees_is_a_warning(miner):
    schema = attrs.evolve(SCHEMA, max_rows=2_000)
    for epsilon, warned in ((2, False), ("0.01", True)):
        study = dpf.Study(schema, epsilon=2, allow=ALLOWED)
        study.add("found", miner(epsilon))
        assert ("DP007" in {finding.code for finding in study.plan().check()}) is warned


def test_thresholds_that_differ_beyond_six_digits_are_told_apart():
    schema = dpf.Schema(
        [
            dpf.Numeric("seen", 1_700_000_000, 1_700_060_000, cuts=[1_700_030_000, 1_700_033_000], view="left"),
            dpf.Boolean("b", view="right"),
        ]
    )
    tests = Candidates.of_schema(schema, ["seen"], multiway=False, cuts=True)
    grown = CompleteTree(tests, np.array([1, 0, 0]))
    universe = Universe(schema)
    block = universe.block(bytes(range(universe.kinds)))
    assert str(tests[0]) != str(tests[1])
    for leaf in range(4):
        assert (grown.description(leaf).holds(block) == (grown.leaf_codes(block) == leaf)).all()


@pytest.mark.parametrize(("leaves", "classes"), [(2, 5), (4, 2)])
def test_what_is_counted_of_some_leaves_is_copied_whole(leaves: int, classes: int) -> None:
    from dpframework_trees.kernels.walks import _copy_counts

    rng = np.random.default_rng(0)
    for side in (0, 1):
        counts, joint = rng.integers(1, 99, (2, leaves, classes)), rng.integers(1, 99, (2, leaves, leaves))
        kept = counts[1].copy(), joint[1].copy()
        _copy_counts.py_func(counts, joint, side, 1, leaves, 0)
        if side == 0:
            assert counts[1, 1:].tolist() == counts[0, 1:].tolist()
            assert joint[1, :, 1:].tolist() == joint[0, :, 1:].tolist()
            assert joint[1, :, 0].tolist() == kept[1][:, 0].tolist()
            assert counts[1, 0].tolist() == kept[0][0].tolist()
        else:
            assert counts[1].tolist() == kept[0].tolist()
            assert joint[1, 1:].tolist() == joint[0, 1:].tolist()
            assert joint[1, 0].tolist() == kept[1][0].tolist()
