"""Queries about trees and pairs of them: what they say of themselves, and their answers row by row."""

import itertools
import math
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from dpframework_trees import tree_pairs
from dpframework_trees.complete_tree import CompleteTree
from dpframework_trees.criteria import CRITERIA, KnownRows
from dpframework_trees.queries import (
    CodesByClass,
    JointLeaves,
    LeavesByClass,
    SplitScores,
    ThresholdScores,
    TreeScores,
    table_scores,
)
from dpframework_trees.queries.trees import all_of, pack_classes
from dpframework_trees.queries.views import Associations, TreePairScores
from dpframework_trees.sampling import MarkovChainTrees, WholeTrees, scale_on_lattice
from dpframework_trees.splits import Candidates
from dpframework_trees.tree_data import TreeData
from dpframework_trees.tree_pairs import MarkovChainPairs, PairData, largest_replacement, pair_score_named, some_pairs

import dpframework as dpf
from dpframework import InMemory, Relation, Threads, formulas
from dpframework.facts import rational_above
from dpframework.formulas import Cells, Outer
from dpframework.formulas.evaluation import value_of
from dpframework.mechanisms import Calibration
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.queries import Norm
from dpframework.tables.encoded_row_blocks import cells_of

SCHEMA = dpf.Schema(
    [
        dpf.Boolean("wolf", view="left"),
        dpf.Categorical("zone", ["north", "south"], view="left", missing=True),
        dpf.Boolean("snow", view="right"),
        dpf.Numeric("rain", 0, 8, cuts=[3, 5], view="right", missing=True),
        dpf.Categorical("class", ["a", "b", "c"], view="right"),
    ]
)
CLASS = SCHEMA["class"]
LEFT = Candidates.of_schema(SCHEMA, ["wolf", "zone"], multiway=False, cuts=True)  # four tests
RIGHT = Candidates.of_schema(SCHEMA, ["snow", "rain"], multiway=False, cuts=True)  # three
KNOWN = KnownRows(500)
NORM = CRITERIA["norm"]
ENGINES = (InMemory(), Threads(2), Threads(3))


def table(rows: int = 150, seed: int = 0) -> dpf.Table:
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, a.size, rows) for a in SCHEMA])
    values = np.where(codes[3] == 3, np.nan, np.array([1.0, 4.0, 6.5, np.nan])[codes[3]] + codes[2] / 4)
    return dpf.Table.from_codes(SCHEMA, codes, {"rain": values})


def held(rows: dpf.Table, tests: Candidates) -> np.ndarray:
    """Return for which rows each test holds."""
    (block,) = InMemory().load(rows)
    return np.array([cells_of(dpf.Cases([test]), block) == 0 for test in tests])


def leaves(holds: np.ndarray, tree: Any) -> np.ndarray:
    """Return the leaf of each row, as the definition says."""
    found = []
    for row in holds.T:
        node = 0
        while node < len(tree):
            node = 2 * node + (1 if row[tree[node]] else 2)
        found.append(node - len(tree))
    return np.array(found, dtype=np.int64)


# --- what queries say of themselves ---------------------------------------------------------------------------------


def test_queries_say_what_they_ask_and_read_and_how_long_their_answer_is() -> None:
    def asked(query: Any) -> tuple[str, int | None, bool, bool]:
        return query.text, query.answer_length, query.gathers, query.integer

    scores = TreeScores(NORM, CLASS, KNOWN, RIGHT, 2)
    assert asked(scores) == ("norm score of each tree of depth 2 for class", 27, True, False)
    assert asked(attrs.evolve(scores, depth=3, gives_counts=True)) == (
        "norm score of each tree of depth 3 for class",
        3**7,
        False,
        False,
    )
    assert asked(LeavesByClass(CLASS, 4)) == ("joint histogram of a tree's leaves and class", 12, False, True)
    assert asked(JointLeaves(4, 2)) == ("joint histogram of 4 left and 2 right leaves", 8, False, True)
    pairs = TreePairScores(pair_score_named("gain"), CLASS, LEFT, RIGHT, 2, None)
    text = "half of the first tree's norm score and the second's gain of each pair of trees of depth 2 for class"
    assert asked(pairs) == (text, 12**3, True, False)
    text = "association of each of 4 tests with its best of 3 of the other view"
    associations = Associations(LEFT, RIGHT)
    assert asked(associations) == (text, 4, False, False)
    assert associations.attributes == ("wolf", "zone", "snow", "rain")
    thresholds = ThresholdScores(NORM, CLASS, KNOWN, SCHEMA["rain"])
    assert (thresholds.text, thresholds.gathers, thresholds.integer) == (
        "norm score of each threshold of rain for class",
        True,
        False,
    )
    assert thresholds.attributes == ("rain", "class")
    assert CodesByClass(CLASS).text == "joint histogram of an attribute and class"
    assert SplitScores(NORM, CLASS, KNOWN, 9).text == "norm score of each split for class"


@pytest.mark.parametrize("criterion", CRITERIA.values(), ids=CRITERIA)
def test_what_is_declared_follows_from_the_criterion_and_what_is_public_of_the_rows(criterion: Any) -> None:
    """A split adds up two children unless it says how many, a tree of depth d goes down d + 1 levels."""
    for known in (KnownRows(500), KnownRows(500, exact=True)):
        splits = SplitScores(criterion, CLASS, known, 9)
        trees = TreeScores(criterion, CLASS, known, RIGHT, 3)
        thresholds = ThresholdScores(criterion, CLASS, known, SCHEMA["rain"])
        many = attrs.evolve(splits, children=7)
        for query, summed in ((splits, 2), (many, 7), (trees, 4), (thresholds, 2)):
            assert query.rounding == criterion.rounding(3, 500, summed)
            assert query.sensitivities == (criterion.sensitivity(500, exact=known.exact),)
            of_four = criterion.for_group(500, 4, 3, exact=known.exact)
            assert query.for_rows(4) == of_four
    assert criterion.rounding(3, None, 2) == criterion.rounding(3, 2**31 - 1, 2)


def test_pairs_declare_what_their_score_does() -> None:
    gain, product, published = map(pair_score_named, ("gain", "product", "published"))
    assert [(score.product, score.normalised) for score in (gain, product, published)] == [
        (False, False),
        (True, False),
        (True, True),
    ]
    purity = "purity of the first tree times half of one plus the share of the second's"
    assert (product.text, published.text) == (purity, purity + ", normalised as published")
    assert [score.criterion.name for score in (gain, product, published)] == ["norm", "gini", "gini"]

    def declared(score: Any, rows: int | None) -> tuple[Any, ...]:
        found = score.sensitivity(rows)
        assert found.norm is Norm.LINF
        return found.add_or_remove_one, found.replace_one, found.rise, found.fall

    for rows in (None, 10):
        assert declared(gain, rows) == (1, Fraction(3, 2), 1, Fraction(1, 2))
        assert declared(published, rows)[:2] == (1, 1)
    assert declared(product, None) == (2, 3, 1, 2)
    for rows, counted in ((1, 2), (2, 2), (3, 3), (10, 10), (6000, 6000)):
        most = rational_above(counted * largest_replacement(counted))
        assert declared(product, rows) == (2, most, 1, 2)
    for rows in (None, 10):
        query = TreePairScores(product, CLASS, LEFT, RIGHT, 1, rows)
        assert query.sensitivities == (product.sensitivity(rows),)
    (of_test,) = Associations(LEFT, RIGHT).sensitivities
    assert (of_test.norm, of_test.add_or_remove_one, of_test.replace_one) == (Norm.LINF, 1, 1)
    assert of_test.spread.add_or_remove_one == of_test.spread.replace_one == 2


def test_a_pairs_rounding_is_seven_halves_of_a_trees() -> None:
    """Of the classes, or of the leaves that stand for them; as if of one row, if it is normalised."""
    for rows, (classes, depth) in itertools.product((None, 10), ((5, 1), (2, 3))):
        target = dpf.Categorical("t", [str(k) for k in range(classes)])
        for name in ("gain", "product", "published"):
            score = pair_score_named(name)
            counted = 0 if name == "published" else rows
            a = score.criterion.rounding(max(classes, 2**depth), counted, 2**depth)
            assert TreePairScores(score, target, LEFT, RIGHT, depth, rows).rounding == Fraction(7, 2) * a


def test_a_pair_moves_most_where_all_rows_are_looked_at_too() -> None:
    for rows in (4_999, 5_000, 6_000):  # beyond 5,000 only near the largest

        def change(k: int, n: int = rows) -> float:
            m = n - 1 - k
            return 1 - (1 - 2 * m / ((m + 1) * n)) * (1 - k / ((k + 1) * n))

        assert largest_replacement(rows) == max(map(change, range(rows)))


# --- answers --------------------------------------------------------------------------------------------------------


def test_sets_of_rows_have_no_word_too_many() -> None:
    for rows in (0, 1, 63, 64, 65, 128, 130):
        codes = np.arange(rows) % 3
        words = pack_classes(codes, 3)
        assert words.shape == (3, -(-rows // 64))
        found = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
        assert (found[:, :rows] == (codes == np.arange(3)[:, np.newaxis])).all()
        assert not found[:, rows:].any()
        assert [int(word).bit_count() for word in all_of(rows)] == [64] * (rows // 64) + [rows % 64] * (rows % 64 > 0)


@pytest.mark.parametrize("engine", ENGINES, ids=["one block", "two", "three"])
@pytest.mark.parametrize("rows", [0, 3, 150, 64 * 3 * 3])
def test_rows_of_trees_and_pairs_are_those_of_the_tests(rows: int, engine: dpf.Engine) -> None:
    """As sets of the rows of one class after another, whatever the blocks."""
    given = table(rows)
    loaded = engine.load(given)
    sides, classes = [held(given, tests) for tests in (LEFT, RIGHT)], given.codes[4]
    data = TreeScores(NORM, CLASS, KNOWN, RIGHT, 2).evaluate(engine, loaded)
    pairs = TreePairScores(pair_score_named("published"), CLASS, LEFT, RIGHT, 2, None).evaluate(engine, loaded)
    assert (data.depth, data.criterion, data.tests, pairs.depth) == (2, NORM, 3, 2)
    assert pairs.divisor == max(rows, 1)
    assert data.starts[-1] == data.bits.shape[1]
    for tree in ((0, 1, 2), (2, 2, 0), (1, 0, 0)):
        counts = np.zeros((4, 3), dtype=np.int64)
        np.add.at(counts, (leaves(sides[1], tree), classes), 1)
        scores = [NORM.kernels.child_score(leaf) for leaf in counts]
        assert data.leaf_scores(np.array(tree)) == scores
        assert data.score(np.array(tree)) == math.fsum(scores)
        first, cells = (3, tree[0], 1), np.zeros((4, 4, 3), dtype=np.int64)
        np.add.at(cells, (leaves(sides[0], first), leaves(sides[1], tree), classes), 1)
        of_first = sum(CRITERIA["gini"].kernels.child_score(leaf) for leaf in cells.sum(axis=1))
        of_second = sum(CRITERIA["gini"].kernels.child_score(leaf) for leaf in cells.sum(axis=2).T)
        expected = of_first * (1 + of_second / max(rows, 1)) / 2 / max(rows, 1)
        assert pairs.score(np.array(first), np.array(tree)) == pytest.approx(expected)
        assert pairs.steps(np.array(first), np.array(tree), unit=2.0**-20) == round(expected * 2**20)


def test_only_the_published_score_is_divided_by_the_rows() -> None:
    engine = InMemory()
    rows = engine.load(table(40))
    units = [
        TreePairScores(pair_score_named(name), CLASS, LEFT, RIGHT, 1, None).evaluate(engine, rows).divisor
        for name in ("gain", "product", "published")
    ]
    assert units == [1, 1, 40]


def test_pairs_of_trees_are_all_if_they_are_few_else_as_many_as_are_asked_for() -> None:
    engine = InMemory()
    query = TreePairScores(pair_score_named("gain"), CLASS, LEFT, RIGHT, 1, None)
    data = query.evaluate(engine, engine.load(table(20)))
    every = [(a, b) for a, b in itertools.product(range(4), range(3))]
    for most in (12, 13, 10**6):
        assert [(int(a[0]), int(b[0])) for a, b in some_pairs((4, 3), 1, most)] == every
    some = [(tuple(a.tolist()), tuple(b.tolist())) for a, b in some_pairs((4, 3), 2, 12**3 - 1)]
    assert len(some) == 12**3 - 1
    assert {t for a, _ in some for t in a} == set(range(4))
    assert {t for _, b in some for t in b} == set(range(3))
    assert {(len(a), len(b)) for a, b in some} == {(3, 3)}
    assert [tuple(a.tolist()) for a, _ in some_pairs((4, 3), 2, 99)] == [a for a, _ in some[:99]]
    assert len(query.coordinates(data)) == 12
    assert attrs.evolve(query, depth=3).coordinates(attrs.evolve(data, depth=3)).shape == (2000,)
    assert query.coordinates(data).tolist() == [data.score(np.array([a]), np.array([b])) for a, b in every]


def test_trees_are_scored_all_if_they_are_few_else_two_thousand_of_them() -> None:
    class Asked:
        def __init__(self) -> None:
            self.trees: list[tuple[int, ...]] = []

        def scores(self, trees: Any) -> Any:
            self.trees += map(tuple, trees.tolist())
            return trees.sum(axis=1)

    for depth, every in ((1, True), (2, True), (3, False)):
        asked = Asked()
        found = TreeScores(NORM, CLASS, KNOWN, RIGHT, depth).coordinates(asked)  # type: ignore[arg-type]
        assert found.tolist() == [sum(tree) for tree in asked.trees]
        if every:
            assert asked.trees == list(itertools.product(range(3), repeat=2**depth - 1))
        else:
            assert len(asked.trees) == 2000
            assert {len(tree) for tree in asked.trees} == {7}
            assert {t for tree in asked.trees for t in tree} == {0, 1, 2}


@pytest.mark.parametrize("engine", ENGINES, ids=["one block", "two", "three"])
@pytest.mark.parametrize("rows", [0, 1, 150])
def test_associations_are_the_largest_gap_to_independent_tests(rows: int, engine: dpf.Engine) -> None:
    given = table(rows)
    some = LEFT.of_attribute("zone")
    left, right = held(given, some).astype(float), held(given, RIGHT).astype(float)
    query = Associations(LEFT, RIGHT)
    found = query.evaluate(engine, engine.load(given), candidates=some)
    expected = [max(abs((t * u).sum() - t.sum() * u.sum() / max(rows, 1)) for u in right) for t in left]
    assert found == pytest.approx(expected, abs=1e-12)
    assert query.candidates(candidates=some) is some
    assert query.answer(np.array([[4], [9]])).tolist() == [0.0]  # there is no other test


def test_the_association_of_two_tests_is_the_score_that_is_proved() -> None:
    """Of 3 rows of both, 4 and 5 of one and 8 of neither: 7 * 8 / 20 would be in both of independent tests."""
    (claims,) = Associations(LEFT, RIGHT).scored_formulas
    counts = np.array([3, 4, 5, 8])
    assert claims.scorer is not None
    assert claims.scorer(counts, {}) == pytest.approx(0.2)
    assert isinstance(claims.shape, Cells)
    values = dict(zip(claims.shape.cells, counts.tolist(), strict=True))
    assert value_of(claims.shape.body, values, exact=True) == Fraction(1, 5)
    assert [(str(claim.change), value_of(claim.bound, {}, exact=True)) for claim in claims.claims] == [
        ("rise", 1),
        ("fall", 1),
        ("replaced", 1),
    ]


def test_the_formulas_of_pairs_are_those_of_their_sums() -> None:
    """Half of G + H - N, and G (1 + H / n) / 2, for sums 5, 7 and 3 over 14 rows."""
    for name, value, bounds in (("gain", Fraction(9, 2), ("1", "1/2", "3/2")), ("product", Fraction(15, 4), "123")):
        (claims,) = pair_score_named(name).formula_claims
        assert isinstance(claims.shape, Outer)
        sums = dict(zip([total.cell for total in claims.shape.totals], (5, 7, 3), strict=False))
        assert value_of(claims.shape.body, {**sums, formulas.table_rows: 14}, exact=True) == value
        assert [value_of(claim.bound, {}, exact=True) for claim in claims.claims] == list(map(Fraction, bounds))
    assert pair_score_named("published").formula_claims == ()


def test_cross_tables_give_the_counts_of_every_query() -> None:
    """Of each block, whatever engine counts them: rows of tests, of leaves, and of sets of tests."""
    trees = {"left": CompleteTree(LEFT, np.array([0, 1, 3])), "right": CompleteTree(RIGHT, np.array([2]))}
    gain = pair_score_named("gain")
    for query, inputs in (
        (Associations(LEFT, RIGHT), {"candidates": LEFT.of_attribute("zone")}),
        (Associations(RIGHT, LEFT), {"candidates": RIGHT}),
        (TreePairScores(gain, CLASS, LEFT, RIGHT, 1, None, gives_counts=True), {}),
        (TreePairScores(gain, CLASS, LEFT, RIGHT, 2, None, gives_counts=True), {}),
        (TreeScores(NORM, CLASS, KNOWN, RIGHT, 2, gives_counts=True), {}),
        (TreeScores(NORM, CLASS, KNOWN, RIGHT, 3, gives_counts=True), {}),
        (JointLeaves(4, 2), trees),
        (LeavesByClass(CLASS, 4), {"tree": trees["left"]}),
    ):
        for block in InMemory().load(table(40)):
            tables = query.tables(**inputs)  # type: ignore[attr-defined]
            found, expected = tables.count(block), query.count(block, **inputs)  # type: ignore[attr-defined]
            assert (found.shape, found.tolist()) == (expected.shape, expected.tolist())


@pytest.mark.parametrize("costs", [(), (1, 4, 2)])
@pytest.mark.parametrize("multiway", [False, True])
def test_a_few_splits_are_scored_alike_before_numba_is_loaded(
    costs: tuple[int, ...], multiway: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    criterion = attrs.evolve(CRITERIA["max"], costs=costs) if costs else NORM
    some = Candidates.of_schema(SCHEMA, ["wolf", "zone", "rain"], multiway=multiway, cuts=True)
    some = some.with_thresholds({"rain": 4.4})
    query = SplitScores(criterion, CLASS, KNOWN, len(some))
    counts = rng.integers(0, 50, (2 + 3 + 4 + 2, 3))
    expected = query.answer(counts, candidates=some)
    monkeypatch.delitem(sys.modules, "numba")
    found = query.answer(counts, candidates=some)
    assert found == pytest.approx(expected, rel=1e-12)
    if costs and multiway:  # by hand: of each value of wolf its dearest class
        assert found[0] == (counts[:2] * costs).max(axis=1).sum()


@pytest.mark.parametrize("engine", ENGINES, ids=["one block", "two", "three"])
@pytest.mark.parametrize("name", CRITERIA)
def test_thresholds_are_scored_in_every_piece_between_two_values(name: str, engine: dpf.Engine) -> None:
    """A missing value is never below; values beyond the interval lie on its ends."""
    given = table(60)
    query = ThresholdScores(CRITERIA[name], CLASS, KNOWN, SCHEMA["rain"])
    pieces = query.evaluate(engine, engine.load(given), lower=1.1, upper=6.6)
    values, classes = given.values["rain"], given.codes[4]
    known = np.sort(np.clip(values[~np.isnan(values)], 1.1, 6.6))
    assert pieces.breaks.tolist() == [1.1, *known, 6.6]
    assert len(pieces.scores) == len(known) + 1
    for k, (low, high) in enumerate(itertools.pairwise(pieces.breaks)):
        if low < high:
            below = values < (low + high) / 2
            sides = [np.bincount(classes[side], minlength=3) for side in (below, ~below)]
            expected = sum(CRITERIA[name].kernels.child_score(side) for side in sides)
            assert pieces.scores[k] == pytest.approx(expected)


def test_thresholds_alone_are_scored_as_splits_too() -> None:
    engine, given = InMemory(), table(80)
    rain = Candidates.of_schema(SCHEMA, ["rain"], multiway=False, cuts=False).with_thresholds({"rain": 4.1})
    assert list(map(str, rain)) == ["rain < 4.1"]
    below = given.values["rain"] < 4.1
    sides = [np.bincount(given.codes[4][side], minlength=3) for side in (below, ~below)]
    (score,) = SplitScores(NORM, CLASS, KNOWN, 1).evaluate(engine, engine.load(given), candidates=rain)
    assert score == pytest.approx(sum(NORM.kernels.child_score(side) for side in sides))


@pytest.mark.parametrize("name", ["max", "gini"])
def test_released_tables_are_scored_by_the_children_of_each_candidate(name: str) -> None:
    """Noisy counts, of no whole rows."""
    rng, child_score = np.random.default_rng(4), CRITERIA[name].kernels.child_score
    tables = {a.name: rng.random((a.size, 3)) * 9 for a in SCHEMA}
    binary = Candidates.of_schema(SCHEMA, SCHEMA.names[:4], multiway=False, cuts=True)
    expected = []
    for test in binary:
        counts, labels = tables[test.attribute], list(SCHEMA[test.attribute].labels)
        if isinstance(test, dpf.Equals):
            first = np.arange(len(counts)) == labels.index(test.value)
        else:
            first = np.arange(len(counts)) <= SCHEMA[test.attribute].interior_cuts.index(test.threshold)
        expected.append(sum(child_score(counts[side].sum(axis=0)) for side in (first, ~first)))
    assert table_scores(binary, tables, CRITERIA[name]) == pytest.approx(expected)
    multiway = Candidates.of_schema(SCHEMA, SCHEMA.names[:3], multiway=True, cuts=False)
    expected = [sum(child_score(child) for child in tables[split.attribute]) for split in multiway]
    assert len(expected) == 3
    assert table_scores(multiway, tables, CRITERIA[name]) == pytest.approx(expected)


def test_a_complete_tree_knows_its_levels_leaves_and_paths() -> None:
    for depth in (1, 2, 3):
        tree = CompleteTree(RIGHT, np.zeros(2**depth - 1, dtype=np.int64))
        assert (tree.depth, tree.leaves) == (depth, 2**depth)
    tree = CompleteTree(RIGHT, np.array([1, 0, 2]))  # rain < 3; where it holds snow, else rain < 5
    assert [[(str(test), holds) for test, holds in tree.path(leaf)] for leaf in range(4)] == [
        [("rain < 3", True), ("snow = true", True)],
        [("rain < 3", True), ("snow = true", False)],
        [("rain < 3", False), ("rain < 5", True)],
        [("rain < 3", False), ("rain < 5", False)],
    ]
    stump = CompleteTree(RIGHT, np.array([0]))
    assert [str(stump.description(leaf)) for leaf in range(2)] == ["snow = true", "snow != true"]
    (block,) = InMemory().load(table(150))
    assert tree.leaf_codes(block).tolist() == leaves(held(table(150), RIGHT), [1, 0, 2]).tolist()


# --- walks, as mechanisms -------------------------------------------------------------------------------------------


class Noted(SeededRandomness):
    """Draws as a seed does, and notes the integers that it is asked for and the words."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.asked: list[tuple[Any, np.ndarray]] = []
        self.drawn: list[int] = []

    def integers(self, below: Any, size: int) -> Any:
        found = super().integers(below, size)
        self.asked.append((np.broadcast_to(below, size).tolist(), found.copy()))
        return found

    def words(self, size: int) -> Any:
        found = super().words(size)
        self.drawn += found.tolist()
        return found


def calibrated(mechanism: WholeTrees, query: Any) -> Calibration:
    found = mechanism.calibrate(query.facts(), Relation.ADD_OR_REMOVE_ONE)
    assert found is not None
    return found


def accepts(change: float, given: Calibration, word: int) -> bool:
    return change >= 0 or word < math.exp(change / given.lattice_scale) * 2**64


def test_a_walk_over_trees_is_the_one_that_is_described() -> None:
    """The start, each proposal and each acceptance, followed with scores of the rows in lattice steps."""
    engine = InMemory()
    query = TreeScores(NORM, CLASS, KNOWN, RIGHT, 2)
    data = query.evaluate(engine, engine.load(table(150)))
    assert isinstance(data, TreeData)
    mechanism = MarkovChainTrees("0.3", 60)
    given, randomness = calibrated(mechanism, query), Noted(1)
    found = mechanism.release(data, given, randomness)
    (start, at), (nodes, which), (tests, proposed) = randomness.asked
    assert (start, nodes, tests) == ([3] * 3, [3] * 60, [3] * 60)

    def steps(tree: Any) -> int:
        return sum(round(score / float(given.unit)) for score in data.leaf_scores(tree))

    moves = 0
    for node, test, word in zip(which, proposed, randomness.drawn, strict=True):
        other = at.copy()
        other[node] = test
        if accepts(steps(other) - steps(at), given, word):
            moves += not np.array_equal(at, other)
            at = other
    assert 5 < moves < 55
    assert found.tolist() == at.tolist()


@pytest.mark.parametrize("name", ["gain", "product", "published"])
def test_a_walk_over_pairs_is_the_one_that_is_described(name: str) -> None:
    engine = InMemory()
    query = TreePairScores(pair_score_named(name), CLASS, LEFT, RIGHT, 2, None)
    data = query.evaluate(engine, engine.load(table(150)))
    mechanism = MarkovChainPairs("0.3", 80)
    given, randomness = calibrated(mechanism, query), Noted(2)
    assert mechanism.rounding(query.facts()) == 4 * (query.rounding + given.unit / 2)
    found = mechanism.release(data, given, randomness)
    (first, one), (second, other_start), (nodes, which), (tests, proposed) = randomness.asked
    assert (first, second, nodes) == ([4] * 3, [3] * 3, [6] * 80)
    assert tests == [4 if node < 3 else 3 for node in which]
    at, moves = np.stack([one, other_start]), 0
    unit = float(given.unit)
    for node, test, word in zip(which, proposed, randomness.drawn, strict=True):
        other = at.copy()
        other[divmod(int(node), 3)] = test
        if accepts(data.steps(*other, unit=unit) - data.steps(*at, unit=unit), given, word):
            moves += not np.array_equal(at, other)
            at = other
    assert 5 < moves < 80
    assert found.tolist() == at.tolist()


def pairs_of(data: PairData) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for a, b in itertools.product(range(len(data.first_bits)), range(len(data.second_bits))):
        yield np.array([a]), np.array([b])


@pytest.mark.parametrize("name", ["gain", "published"])
def test_the_stated_probability_of_a_pair_is_that_of_its_rounded_score(name: str, monkeypatch: Any) -> None:
    engine = InMemory()
    query = TreePairScores(pair_score_named(name), CLASS, LEFT, RIGHT, 1, None)
    data, mechanism = query.evaluate(engine, engine.load(table(150))), MarkovChainPairs(2)
    given = calibrated(mechanism, query)
    scores = np.array([data.score(*pair) for pair in pairs_of(data)]) / scale_on_lattice(given)
    expected = scores - np.logaddexp.reduce(scores)
    monkeypatch.setattr(tree_pairs, "MOST_PAIRS", 12)
    found = [mechanism.log_density(data, np.stack(pair), given) for pair in pairs_of(data)]
    assert found == pytest.approx(expected, abs=1e-6)
    assert np.exp(found).sum() == pytest.approx(1)
    steps = [data.steps(*pair, unit=float(given.unit)) for pair in pairs_of(data)]
    assert np.array(found) - found[0] == pytest.approx((np.array(steps) - steps[0]) / given.lattice_scale, abs=1e-13)
    monkeypatch.setattr(tree_pairs, "MOST_PAIRS", 11)
    with pytest.raises(dpf.InputError, match="weights of 12 pairs of trees cannot be added up; the limit is 11"):
        mechanism.log_density(data, np.array([[0], [0]]), given)
    with pytest.raises(dpf.InputError, match="must answer with PairData"):
        mechanism.log_density(np.zeros(3), np.array([[0], [0]]), given)


@pytest.mark.parametrize("output", [[[4], [0]], [[0], [3]], [[-1], [0]], [[0], [-(10**6)]], [[0]], [[0, 0], [0, 0]]])
def test_an_output_that_is_no_pair_of_trees_is_impossible(output: list[list[int]]) -> None:
    engine = InMemory()
    query = TreePairScores(pair_score_named("gain"), CLASS, LEFT, RIGHT, 1, None)
    data, mechanism = query.evaluate(engine, engine.load(table(150))), MarkovChainPairs(2)
    given = calibrated(mechanism, query)
    assert mechanism.log_density(data, np.array([[3], [2]]), given) > -math.inf
    assert mechanism.log_density(data, np.array(output), given) == -math.inf


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_counts_of_sets_score_trees_whose_classes_fill_words_or_just_do_not(depth: int) -> None:
    sizes = (64, 65, 130)
    codes = table(sum(sizes), seed=depth).codes
    given = dpf.Table.from_codes(SCHEMA, np.vstack([codes[:4], np.repeat([0, 1, 2], sizes)]))
    holds, classes = held(given, RIGHT), given.codes[4]
    for engine in ENGINES:
        counts = TreeScores(NORM, CLASS, KNOWN, RIGHT, depth, gives_counts=True).evaluate(engine, engine.load(given))
        assert (counts.tests, counts.depth, counts.criterion) == (3, depth, NORM)
        every = list(itertools.product(range(3), repeat=2**depth - 1))[:: 3**depth]
        assert counts.scores(np.array(every)).tolist() == [counts.score(np.array(tree)) for tree in every]
        for tree in every:
            table_of = np.zeros((2**depth, 3), dtype=np.int64)
            np.add.at(table_of, (leaves(holds, tree), classes), 1)
            scores = [NORM.kernels.child_score(leaf) for leaf in table_of]
            assert counts.leaf_scores(np.array(tree)) == scores
            assert counts.score(np.array(tree)) == math.fsum(scores)
