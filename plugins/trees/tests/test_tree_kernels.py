"""Kernels of trees against a few plain lines of Python each: walks step by step, sums of weights, scores."""

import itertools
import math
import sys
from typing import Any

import numpy as np
import pytest
from dpframework_trees.criteria import CRITERIA, PUBLISHED_GINI, Criterion, KnownRows
from dpframework_trees.kernels import (
    PairTarget,
    Routed,
    Steps,
    TreeTarget,
    WalkedPair,
    WalkedTree,
    Weighing,
    add_pairs,
    count_tests,
)
from dpframework_trees.kernels.row_sets import common, count_common, route
from dpframework_trees.kernels.scores import pair_score
from dpframework_trees.kernels.walks import UNDECIDED, _accepts
from dpframework_trees.queries import splits
from dpframework_trees.queries.splits import SplitScores, _plain_scores
from dpframework_trees.splits import BELOW, EQUALS, MULTIWAY, Candidates

import dpframework as dpf
from dpframework.formulas import plain_score

NORM, MAX, GINI, INFORMATION_GAIN = (CRITERIA[name] for name in ("norm", "max", "gini", "information-gain"))


def plain(counts: Any, criterion: Criterion) -> float:
    """Return f of class counts from its definition."""
    known, total = [float(n) for n in counts if n > 0], float(sum(counts))
    if criterion is MAX:
        return max(known, default=0.0)
    if criterion is NORM:
        return math.fsum(n**3 for n in known) ** (1 / 3)
    if criterion is GINI:
        return math.fsum(n * n / total for n in known)
    assert criterion is INFORMATION_GAIN
    return math.fsum(n * math.log2(n / total) for n in known)


# --- sets of rows ---------------------------------------------------------------------------------------------------


def packed(rows: Any) -> np.ndarray:
    """Return sets of rows as words of 64, the first row in the lowest bit."""
    rows = np.atleast_2d(np.asarray(rows, dtype=bool))
    whole = np.zeros((len(rows), -(-rows.shape[1] // 64) * 64), dtype=bool)
    whole[:, : rows.shape[1]] = rows
    return np.packbits(whole, axis=1, bitorder="little").view("<u8").astype(np.uint64)


class Sets:
    """Random rows, sorted by class, each class from a word of its own on, as the tests' sets and the classes'."""

    def __init__(self, sizes: tuple[int, ...], tests: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        holds, of_class = [], []
        for c, size in enumerate(sizes):
            room = -(-size // 64) * 64
            some = np.zeros((tests, room), dtype=bool)
            some[:, :size] = rng.random((tests, size)) < rng.uniform(0.2, 0.8, (tests, 1))
            mine = np.zeros((len(sizes), room), dtype=bool)
            mine[c, :size] = True
            holds.append(some)
            of_class.append(mine)
        self.holds, self.of_class = np.concatenate(holds, axis=1), np.concatenate(of_class, axis=1)
        self.everyone = self.of_class.any(axis=0)
        self.bits, self.class_bits = packed(self.holds), packed(self.of_class)
        self.rows = packed(self.everyone)[0]
        self.starts = np.concatenate([[0], np.cumsum([-(-size // 64) for size in sizes])]).astype(np.int64)

    def by_class(self, rows: np.ndarray) -> list[int]:
        return (self.of_class & rows).sum(axis=1).tolist()

    def nodes(self, tests: Any) -> list[np.ndarray]:
        """Return the rows of each node of a tree, then of each leaf."""
        found = [self.everyone]
        for k, test in enumerate(tests):
            found += [found[k] & self.holds[test], found[k] & ~self.holds[test]]
        return found

    def leaves(self, tests: Any) -> list[np.ndarray]:
        return self.nodes(tests)[len(tests) :]


SETS = Sets((200, 64, 1), 5)


def test_sets_are_counted_row_by_row() -> None:
    for one, other in itertools.product(range(5), repeat=2):
        assert common(SETS.bits[one], SETS.bits[other]) == (SETS.holds[one] & SETS.holds[other]).sum()
    counts = np.full((5, 3), -1, dtype=np.int64)
    count_common(SETS.bits, SETS.class_bits, counts)
    assert counts.tolist() == [SETS.by_class(held) for held in SETS.holds]


@pytest.mark.parametrize("tests", [[3], [0, 1, 4], [0, 1, 2, 3, 4, 0, 1]])
def test_rows_are_routed_from_any_node_down_and_nothing_else_is_touched(tests: list[int]) -> None:
    """With the sets of leaves, and with those of nodes with tests only."""
    expected = packed(SETS.nodes(tests))
    for node, number in itertools.product(range(len(tests)), (2 * len(tests) + 1, len(tests))):
        members = np.full((number, len(SETS.rows)), 7, dtype=np.uint64)
        below, level = set(), {node}
        while level := {child for k in level for child in (2 * k + 1, 2 * k + 2) if child < number}:
            below |= level
        route(SETS.bits, np.array(tests), node, expected[node], members)
        for k in range(number):
            assert (members[k] == (expected[k] if k in below else 7)).all()


def test_tests_and_pairs_of_tests_are_counted_by_class_within_a_set() -> None:
    rows = packed(SETS.everyone & SETS.holds[4])[0]
    counts = np.full((6, 3), -1, dtype=np.int64)
    count_tests(SETS.bits, rows, SETS.starts, counts)
    within = [*SETS.holds, SETS.everyone]
    assert counts.tolist() == [SETS.by_class(held & SETS.holds[4]) for held in within]
    for first in (0, 2):
        pairs = np.full((2, 5, 3), 100, dtype=np.int64)
        add_pairs(SETS.bits, rows, SETS.starts, first, np.zeros_like(rows), pairs)
        for i, u in itertools.product(range(2), range(5)):
            both = SETS.holds[4] & SETS.holds[first + i] & SETS.holds[u]
            assert pairs[i, u].tolist() == [100 + (n if u >= first + i else 0) for n in SETS.by_class(both)]


# --- scores ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA.values(), ids=CRITERIA)
def test_a_child_is_scored_by_the_definition_of_its_criterion(criterion: Criterion) -> None:
    """Also by the shares of rows that noisy counts may be."""
    cells = [0, 1, 2, 7, 300]
    for counts in itertools.product(cells, repeat=3):
        assert criterion.kernels.child_score(np.array(counts)) == pytest.approx(plain(counts, criterion), abs=1e-12)
    for counts in itertools.product([0.0, 0.2, 0.75], repeat=3):
        assert criterion.kernels.child_score(np.array(counts)) == pytest.approx(plain(counts, criterion), abs=1e-12)


def test_kernels_of_no_criterion_score_nothing_and_those_of_one_are_compiled_once() -> None:
    with pytest.raises(TypeError, match="compiled for no criterion"):
        pair_score(np.ones((1, 1), dtype=np.int64), np.ones((1, 1), dtype=np.int64), np.zeros(1, dtype=np.int64), True)
    assert MAX.kernels is CRITERIA["max"].kernels
    assert GINI.kernels is PUBLISHED_GINI.kernels
    names = {kernel.py_func.__qualname__ for criterion in CRITERIA.values() for kernel in criterion.kernels[1:]}
    assert len(names) == 4 * 9  # numba keeps code in a file of this name: two criteria must not share one


@pytest.mark.parametrize("criterion", CRITERIA.values(), ids=CRITERIA)
def test_a_score_in_plain_python_is_the_compiled_one_to_the_last_bit(criterion: Criterion) -> None:
    """Else a seeded run would depend on whether something had loaded numba."""
    rng, score = np.random.default_rng(8), plain_score(criterion.formula)
    for classes in (1, 2, 3, 7):
        counts = rng.integers(0, 10 ** rng.integers(0, 10, (500, 1)), (500, classes), endpoint=True)
        assert [score(row) for row in counts.tolist()] == [criterion.kernels.child_score(row) for row in counts]


def test_a_few_candidates_are_scored_before_numba_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = dpf.Schema(
        [dpf.Categorical("a", ["x", "y", "z"]), dpf.Numeric("b", 0, 9, cuts=[1, 5]), dpf.Boolean("ill")]
    )
    candidates = Candidates.of_schema(schema, ["a", "b"], multiway=True, cuts=True)
    query = SplitScores(CRITERIA["norm"], schema["ill"], KnownRows(), answer_length=len(candidates))
    counts = np.random.default_rng(9).integers(0, 99, (6, 2))
    compiled = query.answer(counts, candidates=candidates)
    monkeypatch.setattr(Criterion, "kernels", None)
    monkeypatch.delitem(sys.modules, "numba")
    assert query.answer(counts, candidates=candidates).tolist() == compiled.tolist()
    monkeypatch.setattr(splits, "FEW", 3 * 2 - 1)
    with pytest.raises(AttributeError):
        query.answer(counts, candidates=candidates)


@pytest.mark.parametrize("criterion", CRITERIA.values(), ids=CRITERIA)
def test_splits_and_thresholds_are_scored_by_their_sides(criterion: Criterion) -> None:
    counts = np.random.default_rng(1).integers(0, 20, (9, 3))
    slots = np.array([0, 0, 4, 4, 4, 7, 7, 0, 0, 0, 0, 0, 4])
    widths = np.array([4, 4, 3, 3, 3, 2, 2, 4, 4, 4, 4, 4, 3])
    kinds = np.array(
        [MULTIWAY, EQUALS, *[BELOW] * 2, *[EQUALS] * 2, MULTIWAY, *[BELOW] * 3, EQUALS, BELOW, BELOW], np.int8
    )
    codes = np.array([0, 3, 0, 1, 1, 0, 0, 0, 2, 1, 2, 1, 1])  # cuts upwards, back, and again after another test
    sides, scores = np.full((3, 3), 9, dtype=np.int64), np.zeros(len(codes))
    criterion.kernels.split_scores(counts, slots, widths, kinds, codes, sides, scores)
    assert (_plain_scores(plain_score(criterion.formula), counts, slots, widths, kinds, codes) == scores).all()
    for i, (slot, width, kind, code) in enumerate(zip(slots, widths, kinds, codes, strict=True)):
        table, each = counts[slot : slot + width], np.arange(width)
        held = each <= code if kind == BELOW else each == code
        children = table if kind == MULTIWAY else [table[held].sum(axis=0), table[~held].sum(axis=0)]
        assert scores[i] == pytest.approx(sum(plain(child, criterion) for child in children))

    classes = np.array([0, 2, 2, 1, 0, 0, 1])
    missing = np.array([3, 0, 1])  # never below
    below, above, found = np.zeros(3, dtype=np.int64), missing + np.bincount(classes, minlength=3), np.zeros(8)
    criterion.kernels.threshold_scores(classes, np.ones(3, dtype=np.int64), below, above, found)
    for i in range(8):
        sides_of = np.bincount(classes[:i], minlength=3), missing + np.bincount(classes[i:], minlength=3)
        assert found[i] == pytest.approx(sum(plain(side, criterion) for side in sides_of))


def plain_pair(counts: np.ndarray, joint: np.ndarray, criterion: Criterion, product: bool) -> float:
    """Return the score of a pair by its definition; joint[leaf of the second, of the first]."""
    of_first, of_second = (math.fsum(plain(leaf, criterion) for leaf in table) for table in (counts, joint))
    rows = int(joint.sum())
    if product:
        return of_first * (1 + of_second / rows) / 2 if rows else 0.0
    return (of_first + of_second - plain(joint.sum(axis=0), criterion)) / 2


@pytest.mark.parametrize("criterion", [NORM, GINI], ids=["norm", "gini"])
@pytest.mark.parametrize("product", [False, True])
def test_a_pair_is_scored_by_the_definition(product: bool, criterion: Criterion) -> None:
    rng = np.random.default_rng(2)
    for size in (0, 1, 2, 40):
        cells = rng.integers(0, size + 1, (4, 4, 3))  # leaf of the first, of the second, class
        counts, joint = cells.sum(axis=1), np.ascontiguousarray(cells.sum(axis=2).T)
        sizes = np.full(4, 50)
        expected = plain_pair(counts, joint, criterion, product)
        assert criterion.kernels.pair_score(counts, joint, sizes, product) == pytest.approx(expected)
        assert sizes.tolist() == joint.sum(axis=0).tolist()


# --- sums of weights ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", [NORM, INFORMATION_GAIN], ids=["norm", "information-gain"])
def test_weights_below_each_root_are_added_up_from_any_test_on(criterion: Criterion) -> None:
    """What two calls add is what one does: the sum of the weights of stumps on either side of each root."""
    scale, tests = 9.0, len(SETS.bits)
    counts = np.zeros((tests + 1, 3), dtype=np.int64)
    count_tests(SETS.bits, SETS.rows, SETS.starts, counts)
    scores = np.zeros((2, tests))
    criterion.kernels.side_scores(counts, np.zeros(3, dtype=np.int64), scores)
    for t, held in enumerate(SETS.holds):
        for side, rows in enumerate((held, SETS.everyone & ~held)):
            assert scores[side, t] == pytest.approx(plain(SETS.by_class(rows), criterion))
    pairs = np.zeros((tests, tests, 3), dtype=np.int64)
    add_pairs(SETS.bits, SETS.rows, SETS.starts, 0, np.zeros_like(SETS.rows), pairs)
    weighing = Weighing(counts, scores, np.zeros((4, 3), dtype=np.int64), scale)
    for parts in ([(0, 5)], [(0, 2), (2, 5)], [(3, 5), (0, 3)]):
        top, total = np.full((2, tests), -np.inf), np.zeros((2, tests))
        for first, end in parts:
            criterion.kernels.add_log_weights(pairs[first:end], first, weighing, top, total)
        for root, side in itertools.product(range(tests), range(2)):
            held = SETS.holds[root] if side == 0 else SETS.everyone & ~SETS.holds[root]
            logs = [
                sum(plain(SETS.by_class(part), criterion) for part in (held & below, held & ~below)) / scale
                for below in SETS.holds
            ]
            assert top[side, root] == pytest.approx(max(logs))
            assert top[side, root] + math.log(total[side, root]) == pytest.approx(np.logaddexp.reduce(logs))


# --- walks ----------------------------------------------------------------------------------------------------------


def test_a_step_is_decided_in_floating_point_where_it_is_clear_and_only_there() -> None:
    """Small words one by one, and large ones at a share of 2**-40 from the exponential, and at just less."""
    scale = 7.0
    change = round(scale * (math.log(10.5) - 64 * math.log(2)))  # so the words below about 10 are to be accepted
    share = math.exp(change / scale) * 2.0**64
    assert 10 < share < 11.4
    for word in range(30):
        expected = 1 if word + 2 <= share * (1 - 2.0**-40) else 0 if word >= share else UNDECIDED
        assert _accepts(change, scale, np.uint64(word), UNDECIDED) == expected
    assert [_accepts(change, scale, np.uint64(word), UNDECIDED) for word in (8, 9, 10, 12)] == [1, -1, -1, 0]
    for change in (-1, -9, -30):
        share = math.exp(change / scale) * 2.0**64
        for away, expected in ((-1.1, 1), (-1.0, 1), (-0.9, -1), (0, -1), (0.9, -1), (1.0, 0), (1.1, 0)):
            assert _accepts(change, scale, np.uint64(share * (1 + away * 2.0**-40)), UNDECIDED) == expected


def test_what_raises_the_score_is_accepted_and_what_was_decided_stands() -> None:
    last = np.uint64(2**64 - 1)
    assert [_accepts(change, 2.0, last, UNDECIDED) for change in (1, 0, -1)] == [1, 1, 0]
    assert [_accepts(change, 2.0, last, decided) for change in (1, -1) for decided in (0, 1)] == [0, 1, 0, 1]
    # an exponential that is 0 in floating point is above 0: only the word 0 may still be below it
    assert [_accepts(-5000, 2.0, np.uint64(word), UNDECIDED) for word in (0, 1, 2)] == [UNDECIDED, 0, 0]


def drawn_steps(rng: np.random.Generator, number: int, nodes: int, tests: Any) -> Steps:
    """Return steps with random words; one in six has been decided before, and the first, at the last node, is taken."""
    which = rng.integers(0, nodes, number)
    decided = np.where(rng.random(number) < 1 / 6, rng.integers(0, 2, number), UNDECIDED).astype(np.int8)
    which[0], decided[0] = nodes - 1, 1
    proposed = rng.integers(0, tests(which) if callable(tests) else tests, number)
    return Steps(which, proposed, rng.integers(0, 2**64, number, dtype=np.uint64), decided)


def accepted(change: int, scale: float, word: int, decided: int) -> bool:
    return bool(decided) if decided != UNDECIDED else change >= 0 or int(word) < math.exp(change / scale) * 2**64


def steps_of_score(sets: Sets, tests: Any, criterion: Criterion, unit: float) -> int:
    return sum(round(plain(sets.by_class(leaf), criterion) / unit) for leaf in sets.leaves(tests))


@pytest.mark.parametrize("words", [1, 3, 64])
@pytest.mark.parametrize("depth", [1, 3])
def test_a_walk_over_trees_is_the_plain_one_step_by_step(depth: int, words: int) -> None:
    """However many words are counted at once; from the first step on, and from a later one."""
    rng, nodes = np.random.default_rng(depth), 2**depth - 1
    unit, scale = 0.125, 20.0
    tests = rng.integers(0, len(SETS.bits), nodes)
    plain_tests = tests.tolist()
    tree = WalkedTree(
        SETS.bits,
        SETS.starts,
        tests,
        packed(SETS.nodes(plain_tests))[:nodes],
        np.zeros((nodes, words), dtype=np.uint64),
        np.full((nodes + 1, 3), 99, dtype=np.int64),
        np.full((2, nodes + 1), 99, dtype=np.int64),
    )
    steps, moves = drawn_steps(rng, 40, nodes, len(SETS.bits)), 0
    assert NORM.kernels.walk_trees(tree, TreeTarget(unit, scale), steps, 0) == (40, 0)
    score = steps_of_score(SETS, plain_tests, NORM, unit)
    for node, test, word, decided in zip(*steps, strict=True):
        other = [*plain_tests[:node], int(test), *plain_tests[node + 1 :]]
        change = steps_of_score(SETS, other, NORM, unit) - score
        if accepted(change, scale, word, decided):
            moves += other != plain_tests
            plain_tests, score = other, score + change
    assert moves > 3
    assert tests.tolist() == plain_tests
    assert (tree.members == packed(SETS.nodes(plain_tests))[:nodes]).all()
    leaves = [SETS.by_class(leaf) for leaf in SETS.leaves(plain_tests)]
    assert tree.scores[0].tolist() == [round(plain(leaf, NORM) / unit) for leaf in leaves]


@pytest.mark.parametrize("begin", [0, 1, 2])
def test_a_walk_over_trees_stops_before_a_step_that_it_cannot_decide_and_goes_on_from_there(begin: int) -> None:
    """The word 0 is below every exponential, but floats cannot tell where that is 0 to them."""
    unit, scale = 0.125, 0.001
    tests = np.array([0, 0, 0])
    scores = {t: steps_of_score(SETS, [t, 0, 0], NORM, unit) for t in range(5)}
    best, worst = max(scores, key=scores.__getitem__), min(scores, key=scores.__getitem__)
    assert scores[worst] < scores[best]
    tests[0] = best
    tree = WalkedTree(
        SETS.bits,
        SETS.starts,
        tests,
        packed(SETS.nodes(tests))[:3],
        np.zeros((3, 2), dtype=np.uint64),
        np.zeros((4, 3), dtype=np.int64),
        np.zeros((2, 4), dtype=np.int64),
    )
    number = begin + 1
    words = np.array([2**63] * begin + [0], dtype=np.uint64)
    steps = Steps(np.zeros(number, dtype=np.int64), np.full(number, worst), words, np.full(number, -1, dtype=np.int8))
    target = TreeTarget(unit, scale)
    assert NORM.kernels.walk_trees(tree, target, steps, 0) == (begin, scores[worst] - scores[best])
    assert tests[0] == best
    steps.decided[begin] = 0
    assert NORM.kernels.walk_trees(tree, target, steps, begin) == (number, 0)
    assert tests[0] == best
    steps.decided[begin] = 1
    assert NORM.kernels.walk_trees(tree, target, steps, begin) == (number, 0)
    assert tests[0] == worst


class Pairs:
    """Two trees over the same rows, and the room that a walk over them takes."""

    def __init__(self, depth: int, product: bool) -> None:
        self.sides = Sets((130, 70, 1), 4, seed=4), Sets((130, 70, 1), 3, seed=5)
        rng, self.nodes, leaves = np.random.default_rng(depth), 2**depth - 1, 2**depth
        self.tests = [rng.integers(0, len(side.bits), self.nodes) for side in self.sides]
        first, second = (
            Routed(side.bits, tests, packed(side.nodes(tests)))
            for side, tests in zip(self.sides, self.tests, strict=True)
        )
        self.pair = WalkedPair(
            first,
            second,
            self.sides[0].class_bits,
            np.full((2, leaves, 3), 99, dtype=np.int64),
            np.full((2, leaves, leaves), 99, dtype=np.int64),
            np.zeros(leaves, dtype=np.int64),
            np.zeros_like(first.members),
        )
        self.criterion = GINI if product else NORM
        self.target = PairTarget(product, 0.125, 9.0)

    def tables(self, tests: Any) -> tuple[np.ndarray, np.ndarray]:
        leaves = [side.leaves(of_side) for side, of_side in zip(self.sides, tests, strict=True)]
        counts = np.array([self.sides[0].by_class(leaf) for leaf in leaves[0]])
        return counts, np.array([[(one & other).sum() for one in leaves[0]] for other in leaves[1]])

    def score(self, tests: Any) -> int:
        counts, joint = self.tables(tests)
        return round(plain_pair(counts, joint, self.criterion, self.target.product) / self.target.unit)


@pytest.mark.parametrize("product", [False, True])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_walk_over_pairs_is_the_plain_one_step_by_step(depth: int, product: bool) -> None:
    given, rng, moves = Pairs(depth, product), np.random.default_rng(7), [0, 0]
    nodes, at = given.nodes, [tests.tolist() for tests in given.tests]
    steps = drawn_steps(rng, 40, 2 * nodes, lambda which: np.where(which < nodes, 4, 3))
    assert given.criterion.kernels.walk_pairs(given.pair, given.target, steps, 0) == (40, 0)
    for which, test, word, decided in zip(*steps, strict=True):
        side, node = divmod(int(which), nodes)
        other = [list(tests) for tests in at]
        other[side][node] = int(test)
        change = given.score(other) - given.score(at)
        if accepted(change, given.target.scale, word, decided):
            moves[side] += other != at
            at = other
    assert min(moves) >= 2
    assert [tests.tolist() for tests in given.tests] == at
    counts, joint = given.tables(at)
    assert (given.pair.counts[0] == counts).all()
    assert (given.pair.joint[0] == joint).all()
    for side, routed in zip(given.sides, given.pair[:2], strict=True):
        assert (routed.members == packed(side.nodes(routed.tests))).all()


def test_a_walk_over_pairs_stops_before_a_step_that_it_cannot_decide_and_goes_on_from_there() -> None:
    given = Pairs(1, product=False)
    scores = [given.score([given.tests[0], [t]]) for t in range(3)]
    worse = int(np.argmin(scores))
    given.tests[1][0] = np.argmax(scores)
    given.pair.second.members[:] = packed(given.sides[1].nodes(given.tests[1]))
    at = [tests.tolist() for tests in given.tests]
    change = given.score([at[0], [worse]]) - given.score(at)
    assert change < 0
    target = given.target._replace(scale=0.0001)
    steps = Steps(np.array([1]), np.array([worse]), np.zeros(1, dtype=np.uint64), np.array([UNDECIDED], dtype=np.int8))
    assert given.criterion.kernels.walk_pairs(given.pair, target, steps, 0) == (0, change)
    assert given.tests[1].tolist() == at[1]
    for decided, reached in ((0, at[1]), (1, [worse])):
        steps.decided[0] = decided
        assert given.criterion.kernels.walk_pairs(given.pair, target, steps, 0) == (1, 0)
        assert given.tests[1].tolist() == reached
