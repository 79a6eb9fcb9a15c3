"""Samplers of whole trees: against all trees enumerated, and the walk against its transition matrix."""

import itertools
import math
from typing import ClassVar

import attrs
import numpy as np
import pytest
from dpframework_trees.complete_tree import CompleteTree
from dpframework_trees.criteria import CRITERIA, Criterion, KnownRows
from dpframework_trees.queries import LeavesByClass, TreeScores
from dpframework_trees.queries.trees import pack
from dpframework_trees.sampling import ExactTrees, MarkovChainTrees
from dpframework_trees.splits import Candidates
from dpframework_trees.tree_counts import TreeCounts
from dpframework_trees.tree_data import TreeData
from dpframework_trees.tree_weights import MOST_WORK, Weights, count_pairs, exact_work, require_feasible
from hypothesis import given, settings, strategies as st
from scipy.stats import chisquare

import dpframework as dpf
from dpframework import InMemory, Relation, Threads
from dpframework.mechanisms import Calibration
from dpframework.mechanisms.randomness import SeededRandomness, SystemRandomness
from dpframework.tables import Block
from dpframework.tables.encoded_row_blocks import cells_of
from dpframework.verify.conformance_suites import MechanismConformance, QueryConformance
from dpframework.verify.mechanisms.probe_query_answers import Probe

SCHEMA = dpf.Schema(
    [
        dpf.Categorical("colour", values=["red", "blue"], missing=True),
        dpf.Numeric("size", 0, 10, cuts=[5], missing=True),
        dpf.Boolean("ripe"),
        dpf.Categorical("class", values=["a", "b", "c"]),
    ],
    max_rows=200,
)
CLASS = SCHEMA["class"]
TESTS = Candidates.of_schema(SCHEMA, ["colour", "size"], multiway=False, cuts=True)  # four tests
FALSE_ALARM = 1e-6


def table(rows: int = 150, seed: int = 5) -> dpf.Table:
    """Return rows with missing values, whose class leans on colour."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, a.size, rows) for a in SCHEMA])
    codes[3] = np.where(rng.random(rows) < 0.6, codes[0], codes[3])
    return dpf.Table.from_codes(SCHEMA, codes)


def data_of(rows: dpf.Table, depth: int, criterion: str = "norm", engine: dpf.Engine | None = None) -> TreeData:
    engine = engine or InMemory()
    return TreeScores(CRITERIA[criterion], CLASS, KnownRows(200), TESTS, depth).evaluate(engine, engine.load(rows))


def calibration(mechanism: dpf.Mechanism, depth: int, criterion: str = "norm") -> Calibration:
    query = TreeScores(CRITERIA[criterion], CLASS, KnownRows(200), TESTS, depth)
    found = mechanism.calibrate(query.facts(), Relation.ADD_OR_REMOVE_ONE)
    assert found is not None
    return found


def trees(depth: int, tests: int = len(TESTS)) -> list[tuple[int, ...]]:
    return list(itertools.product(range(tests), repeat=2**depth - 1))


def plain_leaves(rows: dpf.Table, tree: tuple[int, ...]) -> np.ndarray:
    """Count classes by leaf as the definition says, row by row."""
    (block,) = InMemory().load(rows)
    holds = [cells_of(dpf.Cases([test]), block) == 0 for test in TESTS]
    counts = np.zeros((len(tree) + 1, CLASS.size), dtype=np.int64)
    for i, c in enumerate(block.codes("class")):
        node = 0
        while node < len(tree):
            node = 2 * node + (1 if holds[tree[node]][i] else 2)
        counts[node - len(tree), c] += 1
    return counts


def plain_scores(rows: dpf.Table, depth: int, criterion: str) -> np.ndarray:
    child_score = CRITERIA[criterion].kernels.child_score
    return np.array([sum(child_score(leaf) for leaf in plain_leaves(rows, tree)) for tree in trees(depth)])


def probabilities(rows: dpf.Table, depth: int, scale: float, criterion: str = "norm") -> np.ndarray:
    weights = plain_scores(rows, depth, criterion) / scale
    weights = np.exp(weights - weights.max())
    return weights / weights.sum()


@pytest.mark.parametrize("mechanism", [ExactTrees(1), MarkovChainTrees(1, 10)], ids=str)
def test_what_is_no_tree_of_the_language_is_never_put_out(mechanism: dpf.Mechanism) -> None:
    data, claimed = data_of(table(), 2), calibration(mechanism, 2)
    assert mechanism.log_density(data, np.array([0, 1, 2]), claimed) > -math.inf
    for output in ([0, 1], [0, 1, -1], [0, 1, len(TESTS)], [[0, 1, 2]]):
        assert mechanism.log_density(data, np.array(output), claimed) == -math.inf


@pytest.mark.parametrize("engine", [InMemory(), Threads(3)], ids=["memory", "threads"])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_scores_from_bits_equal_a_recount_row_by_row(criterion, engine):
    rows = table()
    data = data_of(rows, 2, criterion, engine)
    assert [data.score(np.array(tree)) for tree in trees(2)] == pytest.approx(plain_scores(rows, 2, criterion))


@pytest.mark.parametrize("engine", [InMemory(), Threads(3)], ids=["memory", "threads"])
def test_leaves_by_class_equal_a_recount_row_by_row(engine):
    rows = table()
    for tree in trees(2)[::7]:
        query = LeavesByClass(CLASS, 4)
        counts = query.evaluate(engine, engine.load(rows), tree=CompleteTree(TESTS, np.array(tree)))
        assert (counts == plain_leaves(rows, tree)).all()


@pytest.mark.parametrize("part", [False, True])
def test_tests_and_leaves_are_those_of_the_descriptions_where_attributes_have_codes_of_two_widths(part):
    wide = dpf.Numeric("wide", 0, 100, bins=300, missing=True)
    schema = dpf.Schema([*SCHEMA.attributes, wide, dpf.Boolean("last")])
    rng = np.random.default_rng(0)
    given = dpf.Table.from_codes(schema, np.stack([rng.integers(0, a.size, 200) for a in schema]))
    (block,) = InMemory().load(given)
    if part:
        block = block.at(np.arange(0, 200, 3, dtype=np.int32))
    tests = Candidates.of_schema(schema, ["last", "wide", "colour"], multiway=False, cuts=True)
    held = np.unpackbits(pack(block, tests).view(np.uint8), axis=1, count=block.rows, bitorder="little")
    assert (held == [test.holds(block) for test in tests]).all()
    for chosen in ([0, 1, len(tests) - 1], [150, 0, 200], [len(tests) - 1, 0, 0]):
        tree = CompleteTree(tests, np.array(chosen))
        leaves = tree.leaf_codes(block)
        for leaf in range(4):
            path = np.array([test.holds(block) == holds for test, holds in tree.path(leaf)])
            assert ((leaves == leaf) == path.all(axis=0)).all()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("depth", [1, 2])
def test_the_factorized_sum_of_weights_is_the_sum_over_all_trees(depth, criterion, threads):
    rows = table()
    for scale in (0.01, 0.7, 20.0):  # at the first, weights of one root are too small for a float beside another's
        logs = plain_scores(rows, depth, criterion) / scale
        weights = Weights(data_of(rows, depth, criterion), scale, threads=threads)
        assert weights.of_all(depth) == pytest.approx(np.logaddexp.reduce(logs))
        roots = np.array([tree[0] for tree in trees(depth)])
        of_roots = [np.logaddexp.reduce(logs[roots == t]) for t in range(len(TESTS))]
        assert weights.of_tests(weights.data.rows, depth) == pytest.approx(of_roots)


@pytest.mark.parametrize("rows", [0, 1, 150])
def test_three_levels_too_and_of_a_table_with_few_rows_or_none(rows):
    """Each root with the enumerated trees of two levels on either side of it: 4**7 trees in all."""
    given, scale = table(rows), 3.0
    weights = Weights(data_of(given, 3), scale)
    (block,) = InMemory().load(given)
    logs = []
    for root in range(len(TESTS)):
        held = cells_of(dpf.Cases([TESTS[root]]), block) == 0
        parts = [dpf.Table.from_codes(SCHEMA, given.codes[:, side]) for side in (held, ~held)]
        below = [np.logaddexp.reduce(plain_scores(part, 2, "norm") / scale) for part in parts]
        logs.append(sum(below))
    assert weights.of_tests(weights.data.rows, 3) == pytest.approx(logs)
    if rows == 1:
        # one row scores 1 in every tree
        assert weights.of_all(3) == pytest.approx(7 * math.log(4) + 1 / scale)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("depth", [1, 2])
def test_the_stated_probability_of_every_tree_is_the_exponential_mechanisms(depth, criterion):
    rows, mechanism = table(), ExactTrees(1)
    given = calibration(mechanism, depth, criterion)
    stated = [mechanism.log_density(data_of(rows, depth, criterion), np.array(t), given) for t in trees(depth)]
    assert np.exp(stated) == pytest.approx(probabilities(rows, depth, float(given.scale), criterion))
    assert np.exp(stated).sum() == pytest.approx(1)


def drawn(mechanism: dpf.Mechanism, data: TreeData, given: Calibration, source, draws: int) -> np.ndarray:
    position = {tree: k for k, tree in enumerate(trees(data.depth))}
    found = [position[tuple(mechanism.release(data, given, source).tolist())] for _ in range(draws)]
    return np.bincount(found, minlength=len(position))


def agrees(counts: np.ndarray, expected: np.ndarray) -> float:
    """Return the p-value of a chi-square test; cells that expect fewer than 5 draws are put together."""
    few = expected * counts.sum() < 5
    both = [np.append(v[~few], v[few].sum()) for v in (counts, expected * counts.sum())]
    observed, wanted = (v if both[1][-1] > 0 else v[:-1] for v in both)
    return float(chisquare(observed, wanted).pvalue)


@pytest.mark.parametrize("source", [SeededRandomness(1), SystemRandomness()], ids=["seeded", "private"])
@pytest.mark.parametrize("depth", [1, 2])
def test_exact_draws_are_the_exponential_mechanisms(depth, source):
    """False alarms: 1e-6 each."""
    rows, mechanism = table(), ExactTrees("0.15")
    given = calibration(mechanism, depth)
    counts = drawn(mechanism, data_of(rows, depth), given, source, 3000)
    assert agrees(counts, probabilities(rows, depth, float(given.scale))) > FALSE_ALARM
    assert agrees(counts, probabilities(rows, depth, float(given.scale) * 2)) < FALSE_ALARM  # the test can fail


def transitions(scores: np.ndarray, scale: float, depth: int, *, inverse: bool = False) -> np.ndarray:
    """Return the transition matrix of the walk, shape (trees, trees), from its definition."""
    states = trees(depth)
    position = {tree: k for k, tree in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    proposal = 1 / ((2**depth - 1) * len(TESTS))
    for k, tree in enumerate(states):
        for node, test in itertools.product(range(len(tree)), range(len(TESTS))):
            other = position[(*tree[:node], test, *tree[node + 1 :])]
            change = (scores[other] - scores[k]) / scale * (-1 if inverse else 1)
            matrix[k, other] += proposal * min(1.0, math.exp(change))
        matrix[k, k] += 1 - matrix[k].sum()
    return matrix


def test_the_walk_is_in_detailed_balance_with_the_exponential_mechanism():
    rows, scale = table(), 4.0
    target = probabilities(rows, 2, scale)
    matrix = transitions(plain_scores(rows, 2, "norm"), scale, 2)
    flow = target[:, np.newaxis] * matrix
    assert flow == pytest.approx(flow.T)
    assert target @ matrix == pytest.approx(target)


def test_the_published_acceptance_would_prefer_the_worst_trees():
    """min(1, z / z') with z the old state, as Mihelčić and Miettinen 2023 print it: weights of the inverse sign."""
    rows, scale = table(), 4.0
    scores = plain_scores(rows, 2, "norm")
    matrix = transitions(scores, scale, 2, inverse=True)
    settled = np.full(len(scores), 1 / len(scores)) @ np.linalg.matrix_power(matrix, 100_000)
    assert settled[scores.argmin()] > 10 * settled[scores.argmax()]
    assert probabilities(rows, 2, scale)[scores.argmax()] > 10 * probabilities(rows, 2, scale)[scores.argmin()]


@pytest.mark.parametrize("steps", [1, 4, 30])
def test_walks_are_where_their_transition_matrix_says(steps):
    """After every number of steps, not at their end only. False alarms: 1e-6 each."""
    rows, mechanism = table(), MarkovChainTrees("0.15", steps)
    given = calibration(mechanism, 2)
    matrix = transitions(plain_scores(rows, 2, "norm"), float(given.scale), 2)
    start = np.full(len(matrix), 1 / len(matrix))
    counts = drawn(mechanism, data_of(rows, 2), given, SeededRandomness(steps), 6000)
    assert agrees(counts, start @ np.linalg.matrix_power(matrix, steps)) > FALSE_ALARM
    if steps > 1:
        assert agrees(counts, start) < FALSE_ALARM  # the test can fail


def test_walks_come_closer_to_the_exponential_mechanism_with_every_step():
    rows, mechanism = table(), MarkovChainTrees("0.15", 1000)
    given = calibration(mechanism, 2)
    target = probabilities(rows, 2, float(given.scale))
    matrix = transitions(plain_scores(rows, 2, "norm"), float(given.scale), 2)
    at, apart = np.full(len(matrix), 1 / len(matrix)), []
    for _ in range(1000):
        apart.append(np.abs(at - target).sum() / 2)
        at = at @ matrix
    assert (np.diff(apart) <= 1e-12).all()
    assert apart[0] > 0.5
    assert apart[-1] < 1e-4
    # What is drawn is as near, but for the noise of n draws of k trees: the mean total variation is at most
    # sqrt(k / n) / 2, and (McDiarmid) exceeds that by t with a probability of at most exp(-2 n t^2) = 1e-6.
    n, k = 3000, len(target)
    counts = drawn(mechanism, data_of(rows, 2), given, SeededRandomness(9), n)
    bound = math.sqrt(k / n) / 2 + math.sqrt(math.log(1 / FALSE_ALARM) / (2 * n)) + apart[-1]
    assert np.abs(counts / n - target).sum() / 2 < bound < apart[0] / 2


def test_a_walk_takes_the_same_number_of_steps_on_every_table():
    after = []
    for rows in (table(0), table(150), table(150, seed=6)):
        source = SeededRandomness(3)
        mechanism = MarkovChainTrees(50, 9000)  # more than are drawn at once
        mechanism.release(data_of(rows, 2), calibration(mechanism, 2), source)
        after.append(source.generator.integers(0, 2**62))
    assert len(set(after)) == 1


def test_walks_assume_that_they_converge_and_exact_draws_do_not():
    assert MarkovChainTrees(1).assumptions == ("mcmc-converged",)
    assert ExactTrees(1).assumptions == ()


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("name", CRITERIA)
def test_no_neighbour_moves_a_trees_score_further_than_declared(name, depth):
    """All tables of 0, 1 or 25 rows of each kind, all their neighbours, all trees; scored by the definition."""
    criterion: Criterion = CRITERIA[name]
    kinds = list(itertools.product([0, 1], [0, 1], [0, 1]))  # two tests, and the class
    where = np.zeros((len(trees(depth, 2)), 2**depth, 2, len(kinds)))  # tree, leaf, class, kind
    for k, tree in enumerate(trees(depth, 2)):
        for i, kind in enumerate(kinds):
            node = 0
            while node < len(tree):
                node = 2 * node + (1 if kind[tree[node]] else 2)
            where[k, node - len(tree), kind[2], i] = 1
    tables = np.array(list(itertools.product([0, 1, 25], repeat=len(kinds))))

    def scored(counts: np.ndarray) -> np.ndarray:
        cells = np.einsum("tlck,nk->ntlc", where, counts)
        total, safe = cells.sum(axis=-1), np.maximum(cells.sum(axis=-1), 1)
        if name == "norm":
            leaves = (cells**3).sum(axis=-1) ** (1 / 3)
        elif name == "max":
            leaves = cells.max(axis=-1)
        elif name == "information-gain":
            leaves = (cells * np.log2(np.maximum(cells, 1) / safe[..., np.newaxis])).sum(axis=-1)
        else:
            leaves = (cells**2).sum(axis=-1) / safe
        assert total.sum(axis=-1) == pytest.approx(counts.sum(axis=1)[:, np.newaxis] * np.ones(len(where)))
        return leaves.sum(axis=-1)

    most = int(tables.sum(axis=1).max()) + 1
    before = scored(tables)
    after = [scored(tables + one) for one in np.eye(len(kinds), dtype=int)]
    declared = criterion.sensitivity(most)
    largest = spread = replaced = replaced_spread = 0.0
    for k in range(len(kinds)):
        change = after[k] - before
        largest, spread = max(largest, np.abs(change).max()), max(spread, np.ptp(change, axis=1).max())
        for other in after[:k]:
            change = after[k] - other
            replaced = max(replaced, np.abs(change).max())
            replaced_spread = max(replaced_spread, np.ptp(change, axis=1).max())
    rounding = 1e-9
    assert largest <= float(declared.change.add_or_remove_one) + rounding
    assert spread <= float(declared.spread.add_or_remove_one) + rounding
    assert replaced <= float(declared.change.replace_one) + rounding
    assert replaced_spread <= float(declared.spread.replace_one) + rounding
    if name not in ("information-gain", "published-gini"):  # whose worst case is the largest table; which is loose
        assert largest == pytest.approx(1)
        assert spread > 0.95 * float(declared.spread.add_or_remove_one)
        assert replaced > 0.95 * float(declared.change.replace_one)
        assert replaced_spread > 0.95 * float(declared.spread.replace_one)


def test_the_work_of_the_exact_sampler_is_bounded_before_it_starts():
    assert exact_work(200, 3) == 200**2 * 400
    require_feasible(200, 3)
    with pytest.raises(dpf.InputError, match=r"2e\+09 pairs of tests for depth 3 and 1000 tests.*mcmc") as caught:
        require_feasible(1000, 3)
    assert f"{MOST_WORK:.2g}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_sampler_given_other_answers_says_so():
    with pytest.raises(dpf.InputError, match="must answer with TreeData"):
        ExactTrees(1).release(np.zeros(3), calibration(ExactTrees(1), 1), SeededRandomness(0))


def probe(depth: int) -> Probe:
    facts = TreeScores(CRITERIA["norm"], CLASS, KnownRows(200), TESTS, depth).facts()
    return Probe(facts, lambda scale: data_of(table(40), depth))


class TestSamplers(MechanismConformance):
    mechanisms = (ExactTrees(1), ExactTrees("0.2"), MarkovChainTrees(1, 500))
    probes = (probe(1), probe(2))
    draws = 600


class TestQueries(QueryConformance):
    pairs = 300
    queries: ClassVar = {
        "leaves": (LeavesByClass(CLASS, 4), SCHEMA, {"tree": CompleteTree(TESTS, np.array([0, 2, 3]))}),
        "trees": (TreeScores(CRITERIA["norm"], CLASS, KnownRows(200), TESTS, 2), SCHEMA, {}),
        "trees-purity": (TreeScores(CRITERIA["gini"], CLASS, KnownRows(200), TESTS, 1), SCHEMA, {}),
    }


def counts_and_rows(depth: int, tests: Candidates = TESTS) -> list[TreeScores]:
    """Return the query whose answer is counts, and the one whose answer is rows."""
    return [TreeScores(CRITERIA["norm"], CLASS, KnownRows(200), tests, depth, counted) for counted in (True, False)]


def same_trees(counts: TreeCounts, data: TreeData, depth: int) -> None:
    """Compare log-weights to the last bit, at the root and below: so the exact sampler draws the same trees."""
    parts = [(counts.whole(3.0, 1), Weights(data, 3.0).whole)]
    for left in range(depth, 0, -1):
        for of_counts, of_rows in parts:
            assert of_counts.log_weights(left).tolist() == of_rows.log_weights(left).tolist()
        parts = [
            (of_counts.side(t, holds), of_rows.side(t, holds))
            for of_counts, of_rows in parts
            for t, holds in itertools.product(range(counts.tests), (True, False))
        ][:: 1 if counts.tests == len(TESTS) else 5]
    if counts.tests != len(TESTS):
        return
    for tree in trees(depth)[:: 4 ** (3 * depth - 5)] if depth > 1 else trees(1):
        assert counts.leaf_scores(np.array(tree)) == data.leaf_scores(np.array(tree))


def test_rows_that_two_tests_hold_for_are_counted_for_each_class() -> None:
    """Of a set of the rows, whose classes have one and two words of bits."""
    rng, starts = np.random.default_rng(8), np.array([0, 1, 3])
    bits, rows = (rng.integers(0, 2**63, shape, dtype=np.uint64) for shape in ((4, 3), 3))
    found = count_pairs(bits, rows, starts)
    assert found.shape == (4, 4, 2)
    for t, u in itertools.combinations_with_replacement(range(4), 2):
        held = [int(word).bit_count() for word in bits[t] & bits[u] & rows]
        assert found[t, u].tolist() == [held[0], held[1] + held[2]]


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("engine", [InMemory(), Threads(3)], ids=["one block", "three blocks"])
@pytest.mark.parametrize("rows", [0, 150])
def test_counts_of_sets_of_tests_weigh_trees_as_their_rows_do(depth: int, engine: dpf.Engine, rows: int) -> None:
    given = engine.load(table(rows))
    counted, gathered = counts_and_rows(depth)
    assert gathered.gathers
    assert not counted.gathers
    same_trees(counted.evaluate(engine, given), gathered.evaluate(engine, given), depth)


@given(
    codes=st.lists(st.tuples(*(st.integers(0, a.size - 1) for a in SCHEMA)), min_size=1, max_size=70),
    kind=st.sampled_from([np.uint8, np.uint16, np.uint32]),
    kept=st.lists(st.booleans(), min_size=70, max_size=70),
    depth=st.sampled_from([1, 2, 3]),
)
@settings(max_examples=15, deadline=None, derandomize=True)
def test_random_tables_and_parts_of_them_are_counted_as_their_rows(codes, kind, kept, depth) -> None:
    """All types of codes, missing values, parts without rows, one row."""
    whole = Block(SCHEMA, tuple(np.ascontiguousarray(np.array(codes, dtype=kind).T)), {})
    part = whole.at(np.flatnonzero(kept[: len(codes)]).astype(np.int32))
    counted, gathered = counts_and_rows(depth)
    of_all, rows_of_all = counts_and_rows(
        depth, Candidates.of_schema(SCHEMA, SCHEMA.names[:3], multiway=False, cuts=True)
    )
    for block in (whole, part):
        number, words = len(of_all.tests), rows_of_all.count(block)  # tests on three attributes may hold together
        data = TreeData(words[:number], words[number:], depth, CRITERIA["norm"])
        same_trees(TreeCounts(of_all.count(block), depth, CRITERIA["norm"]), data, depth)
        words = gathered.count(block)
        data = TreeData(words[: len(TESTS)], words[len(TESTS) :], depth, CRITERIA["norm"])
        same_trees(TreeCounts(counted.count(block), depth, CRITERIA["norm"]), data, depth)
        given = dpf.Table.from_codes(SCHEMA, [column[block.index] for column in block.columns])
        for tree in ((0,), (3, 1, 2), (2, 0, 1, 3, 0, 2, 1)):
            leaves = plain_leaves(given, tree)
            child_score = CRITERIA["norm"].kernels.child_score
            below = attrs.evolve(data, depth=(len(tree) + 1).bit_length() - 1)
            assert below.leaf_scores(np.array(tree)) == [child_score(leaf) for leaf in leaves]
            grown = CompleteTree(TESTS, np.array(tree))
            assert np.bincount(grown.leaf_codes(block), minlength=len(leaves)).tolist() == leaves.sum(axis=1).tolist()
