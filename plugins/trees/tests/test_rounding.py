"""What floating point may do to samplers of whole trees: no more than is derived, and than is paid for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from dpframework_trees import tree_weights
from dpframework_trees.criteria import CRITERIA, UNIT_ROUNDOFF, KnownRows
from dpframework_trees.queries import SplitScores, ThresholdScores, TreeScores
from dpframework_trees.sampling import (
    LOGARITHMS,
    ExactTrees,
    MarkovChainTrees,
    depth_bound,
    log_share,
    on_lattice,
    scale_on_lattice,
)
from dpframework_trees.splits import Candidates
from dpframework_trees.tree_data import TreeData
from dpframework_trees.tree_pairs import MarkovChainPairs, pair_score_named
from dpframework_trees.tree_weights import (
    MOST_WORK,
    exact_work,
    log_weights_of_stumps,
    log_weights_of_two,
    require_feasible,
)

import dpframework as dpf
from dpframework import InMemory, Relation
from dpframework.mechanisms import Calibration, Noise, Randomness
from dpframework.mechanisms.randomness import SeededRandomness

SCHEMA = dpf.Schema([*map(dpf.Boolean, "abc"), dpf.Categorical("class", ["x", "y"])], max_rows=5000)
TESTS = Candidates.of_schema(SCHEMA, ["a", "b", "c"], multiway=False, cuts=True)
KINDS = list(itertools.product([0, 1], repeat=4))  # of rows
U = float(UNIT_ROUNDOFF)


def query(depth: int, criterion: str = "norm", tests: Candidates = TESTS) -> TreeScores:
    return TreeScores(CRITERIA[criterion], SCHEMA["class"], KnownRows(5000, exact=False), tests, depth)


def data_of(counts: Any, depth: int, criterion: str = "norm") -> TreeData:
    """Return so many rows of each kind."""
    codes = np.repeat(np.array(KINDS, dtype=np.uint8).T, counts, axis=1)
    engine = InMemory()
    return query(depth, criterion).evaluate(engine, engine.load(dpf.Table.from_codes(SCHEMA, codes)))


def calibration(mechanism: dpf.Mechanism, depth: int, relation: Relation, criterion: str = "norm") -> Calibration:
    found = mechanism.calibrate(query(depth, criterion).facts(), relation)
    assert found is not None
    return found


# --- scores ---------------------------------------------------------------------------------------------------------


def exact_score(counts: Any, criterion: str) -> Decimal:
    """Return f of class counts to 50 digits, from its definition."""
    cells, total = [Decimal(int(n)) for n in counts if n > 0], Decimal(int(sum(counts)))
    if not cells or criterion == "max":
        return max(cells, default=Decimal(0))
    if criterion == "norm":
        return (sum(n**3 for n in cells).ln() / 3).exp()
    if criterion == "gini":
        return sum((n * n for n in cells), Decimal(0)) / total
    return sum((n * (n / total).ln() for n in cells), Decimal(0)) / Decimal(2).ln()


def many_counts(rng: np.random.Generator, classes: int) -> np.ndarray:
    """Return up to 10**7 rows a class, of very different orders."""
    return np.floor(10 ** rng.uniform(0, 7, classes)).astype(np.int64) * (rng.random(classes) < 0.9)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_scores_of_ten_million_rows_are_as_near_the_true_ones_as_derived(criterion):
    rng, largest = np.random.default_rng(7), 0.0
    with localcontext(prec=50):
        for classes in (1, 2, 3, 9, 40):
            for _ in range(60):
                counts = many_counts(rng, classes)
                bound = CRITERIA[criterion].rounding(classes, int(counts.sum()), 0)
                error = abs(
                    Fraction(CRITERIA[criterion].kernels.child_score(counts) or 0)
                    - Fraction(exact_score(counts, criterion))
                )
                assert error <= bound
                largest = max(largest, float(error / bound) if bound else 0.0)
    assert criterion == "max" or largest > 0.01  # the bound is about what happens


def test_a_cube_root_is_corrected_to_two_unit_roundoffs():
    """The sum of C cubes is off by C + 1 of them, of which a third counts (see `Criterion.rounding`)."""
    rng, child_score = np.random.default_rng(17), CRITERIA["norm"].kernels.child_score
    with localcontext(prec=50):
        for classes in (1, 2, 3, 9):
            for _ in range(200):
                counts = many_counts(rng, classes) + 1
                exact = Fraction(exact_score(counts, "norm"))
                assert abs(Fraction(child_score(counts)) / exact - 1) <= (Fraction(classes + 1, 3) + 2) * UNIT_ROUNDOFF


@pytest.mark.parametrize("criterion", CRITERIA)
def test_scores_of_splits_are_as_near_the_true_ones_as_declared(criterion):
    """Of two to forty children with up to 10**7 rows a class."""
    rng, classes, largest = np.random.default_rng(13), 3, 0.0
    target = dpf.Categorical("class", ["a", "b", "c"])
    with localcontext(prec=50):
        for children in (2, 5, 40):
            schema = dpf.Schema([dpf.Categorical("part", [str(k) for k in range(children)]), target])
            candidates = Candidates.of_schema(schema, ["part"], multiway=True, cuts=True)
            for _ in range(20):
                counts = np.stack([many_counts(rng, classes) for _ in range(children)])
                known = KnownRows(int(counts.sum()), exact=True)
                scored = SplitScores(CRITERIA[criterion], target, known, len(candidates), children)
                (score,) = scored.answer(counts, candidates=candidates)
                true = sum((Fraction(exact_score(of_child, criterion)) for of_child in counts), Fraction(0))
                sign = -1 if score < 0 else 1  # information gain is the negative of what is lost
                error = abs(Fraction(float(score)) - sign * abs(true))
                assert error <= scored.facts().rounding
                largest = max(largest, float(error / scored.facts().rounding))
    assert criterion == "max" or largest > 0.001  # the bound is about what happens


def test_the_derived_error_grows_with_the_public_bound_on_the_rows():
    scores = [query(2, "norm").facts().rounding]
    for bound in (10**7, None):
        known = KnownRows(bound, exact=False)
        scores.append(TreeScores(CRITERIA["norm"], SCHEMA["class"], known, TESTS, 2).facts().rounding)
        thresholds = ThresholdScores(CRITERIA["norm"], SCHEMA["class"], known, dpf.Numeric("n", 0, 2, cuts=[1])).facts()
        assert scores[-1] > thresholds.rounding > 0
    assert scores == sorted(scores)
    assert scores[1] / scores[0] == Fraction(10**7 + 1, 5001)
    assert scores[2] < Fraction(1, 10**5)  # of a table of 2**31 rows
    assert pair_score_named("published").rounding(2, 4, None) == pair_score_named("published").rounding(2, 4, 10)
    assert pair_score_named("gain").rounding(2, 4, None) > pair_score_named("gain").rounding(2, 4, 10)


# --- sums of weights ------------------------------------------------------------------------------------------------


def log_sum(logs: list[Decimal]) -> Decimal:
    top = max(logs)
    return top + sum(((log - top).exp() for log in logs), Decimal(0)).ln()


def allowed(depth: int, tests: int, rows: int, scale: float, criterion: str, classes: int) -> Fraction:
    """Return how far a log-weight may be off, as `weights` derives it."""
    size = math.ceil(math.log2(classes)) if criterion == "information-gain" else 1
    terms = CRITERIA[criterion].rounding(classes, rows - 1, 2)  # K + 2 M
    of_rows = (terms + 3 * size * depth * UNIT_ROUNDOFF * rows * Fraction(1001, 1000)) / Fraction(scale)
    nodes = 2**depth - 1
    constant = 20 * (tests + 1) * nodes + 3 * depth * nodes * math.log(max(tests, 2))
    return of_rows + Fraction(constant) * UNIT_ROUNDOFF


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("scale", [0.01, 3.7, 4e4])
def test_log_weights_of_ten_million_rows_are_as_near_the_true_ones_as_derived(criterion, scale):
    """Random overlaps of three tests, by class; one level and two."""
    rng, of = np.random.default_rng(11), CRITERIA[criterion]
    tests, classes = 3, 4
    with localcontext(prec=50):
        for _ in range(6):
            cells = np.stack([many_counts(rng, classes) for _ in range(2**tests)])  # by what holds
            holds = np.array(list(itertools.product([0, 1], repeat=tests)), dtype=bool)
            counts = np.array(
                [*(cells[holds[:, t]].sum(axis=0) for t in range(tests)), cells.sum(axis=0)], dtype=np.int64
            )
            pairs = np.zeros((tests, tests, classes), dtype=np.int64)
            for t, v in itertools.product(range(tests), repeat=2):
                pairs[t, v] = cells[holds[:, t] & holds[:, v]].sum(axis=0)

            def leaf(*which: Any, cells: Any = cells) -> Decimal:
                rows = cells[np.logical_and.reduce(which)].sum(axis=0)
                return exact_score(rows, criterion) / Decimal(scale)

            one = log_weights_of_stumps(counts, of, scale)
            two = log_weights_of_two(counts, pairs, of, scale)
            rows = int(counts[-1].sum())
            for t in range(tests):
                sides = [holds[:, t], ~holds[:, t]]
                exact = [sum((leaf(side) for side in sides), Decimal(0))]
                below = [
                    log_sum([leaf(side, holds[:, v]) + leaf(side, ~holds[:, v]) for v in range(tests)])
                    for side in sides
                ]
                exact.append(sum(below, Decimal(0)))
                for depth, found in ((1, one[t]), (2, two[t])):
                    error = abs(Fraction(float(found)) - Fraction(exact[depth - 1]))
                    assert error <= allowed(depth, tests, rows, scale, criterion, classes)


def test_what_does_not_depend_on_the_scale_is_below_what_is_allowed_for_it():
    """D 2**D (20 (T + 1) + 3 D ln(T)) u, eight times, for every depth and number of tests within reach."""
    worst = 0.0
    for depth in range(1, 16):
        tests = 1 if depth == 1 else max(t for t in (*range(2, 600), 20_000) if exact_work(t, depth) <= MOST_WORK)
        worst = max(worst, 8 * depth * 2**depth * (20 * (tests + 1) + 3 * depth * math.log(tests)) * U)
    assert 2.0**-25 < worst < 2.0**-24 == LOGARITHMS
    assert exact_work(20_000, 2) == MOST_WORK
    assert exact_work(2, 16) > MOST_WORK


def test_the_depth_that_is_paid_for_is_not_below_the_real_one():
    for depth, tests in itertools.product(range(1, 8), (2, 3, 50, 604)):
        assert depth <= depth_bound(tests ** (2**depth - 1)) <= depth + 4
    assert depth_bound(None) == 15


# --- whole trees ----------------------------------------------------------------------------------------------------

TREES = list(itertools.product(range(3), repeat=7))
LEAF_OF = np.zeros((len(TREES), len(KINDS)), dtype=np.int64)  # where each kind of row falls in each tree
for number, tree in enumerate(TREES):
    for i, kind in enumerate(KINDS):
        node = 0
        while node < 7:
            node = 2 * node + (1 if kind[tree[node]] else 2)
        LEAF_OF[number, i] = node - 7


def exact_logs(counts: Any, scale: float) -> np.ndarray:
    """Return the log-probability of each tree of three levels, by their enumeration (max counts: integers)."""
    by_class = np.zeros((2, len(TREES), 8))
    for i, kind in enumerate(KINDS):
        np.add.at(by_class[kind[3]], (np.arange(len(TREES)), LEAF_OF[:, i]), counts[i])
    scores = by_class.max(axis=0).sum(axis=1)
    logs = (scores - scores.max()) / scale
    return np.asarray(logs - np.log(np.exp(logs).sum()))


def stated(data: TreeData, mechanism: dpf.Mechanism, given: Calibration, trees: Any = TREES) -> np.ndarray:
    return np.array([mechanism.log_density(data, np.array(tree), given) for tree in trees])


@pytest.mark.parametrize("relation", Relation)
def test_three_levels_are_drawn_as_all_trees_enumerated_and_lose_epsilon_at_most(relation):
    rng, mechanism = np.random.default_rng(3), ExactTrees(1)
    given = calibration(mechanism, 3, relation, "max")
    counts = rng.integers(0, 4, len(KINDS))
    i, j = np.flatnonzero(counts)[0], int(rng.integers(1, len(KINDS)))
    changed = counts.copy()
    changed[(i + j) % len(KINDS)] += 1
    changed[i] -= relation is Relation.REPLACE_ONE
    found = []
    for table in (counts, changed):
        found.append(stated(data_of(table, 3, "max"), mechanism, given))
        assert found[-1] == pytest.approx(exact_logs(table, scale_on_lattice(given)), abs=1e-6)
        assert np.exp(found[-1]).sum() == pytest.approx(1, abs=1e-9)
    assert 0.05 < np.abs(found[0] - found[1]).max() <= 1


class Watched(Randomness):
    """Draws as a seed does, and keeps what the exact sampler is given."""

    private = False

    def __init__(self, output: Any = None) -> None:
        self.drawn_from, self.put_out, self.given = SeededRandomness(1), output, []

    generator = property(lambda self: pytest.fail("the generator is for floating point"))

    def noisy_max(self, scores: Any, scale: float, noise: Noise) -> int:
        assert noise is Noise.GUMBEL
        self.given.append((scores, scale))
        return int(self.put_out[len(self.given) - 1])

    def discrete_laplace(self, size: int, scale: float) -> Any:
        return self.drawn_from.discrete_laplace(size, scale)

    def discrete_gaussian(self, size: int, scale: float) -> Any:
        return self.drawn_from.discrete_gaussian(size, scale)

    def integers(self, below: Any, size: int) -> Any:
        return self.drawn_from.integers(below, size)

    def words(self, size: int) -> Any:
        return self.drawn_from.words(size)


def drawn_log(data: TreeData, given: Calibration, output: Any) -> Decimal:
    """Return the log-probability with which the exact sampler draws a tree, from the integers that it is given."""
    watched = Watched(output)
    assert ExactTrees(1).release(data, given, watched).tolist() == list(output)
    total = Decimal(0)
    for (scores, scale), chosen in zip(watched.given, output, strict=True):
        assert scores.dtype == np.int64
        logs = [Decimal(int(score)) / Decimal(scale) for score in scores]
        total += logs[chosen] - log_sum(logs)
    return total


@pytest.mark.parametrize("relation", Relation)
def test_a_tree_sixty_below_the_best_keeps_its_probability(relation):
    """Gumbel noise from 53 bits spans 40.3: such trees were impossible, or lost 2.5 to 16 near that gap."""
    given = calibration(ExactTrees(1), 3, relation, "max")
    scale = scale_on_lattice(given)
    counts = np.array([round(60 * scale) if kind[0] == kind[3] else 0 for kind in KINDS]) // 4
    other = counts.copy()
    other[0] += 1
    other[-1] -= relation is Relation.REPLACE_ONE
    with localcontext(prec=50):
        for output in ((1, 2, 1, 2, 2, 1, 1), (2,) * 7, (1, 2, 2, 1, 1, 1, 2)):
            logs = []
            for table in (counts, other):
                data = data_of(table, 3, "max")
                logs.append(drawn_log(data, given, output))
                exact = exact_logs(table, scale)[TREES.index(output)]
                assert exact < -60
                assert float(logs[-1]) == pytest.approx(exact, abs=1e-6)
                assert ExactTrees(1).log_density(data, np.array(output), given) == pytest.approx(
                    float(logs[-1]), abs=1e-9
                )
            assert abs(logs[0] - logs[1]) <= 1


def shifted(counts: np.ndarray, relation: Relation) -> Iterator[np.ndarray]:
    for i in range(len(KINDS)):
        more = counts.copy()
        more[i] += 1
        if relation is Relation.ADD_OR_REMOVE_ONE:
            yield more
            continue
        for j in range(len(KINDS)):
            if j != i and counts[j]:
                moved = more.copy()
                moved[j] -= 1
                yield moved


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("criterion", ["norm", "gini"])
def test_no_neighbour_of_a_table_loses_more_than_epsilon_however_it_is_rounded(criterion, relation):
    """All neighbours, all trees of two levels; the loss comes near epsilon, so that what is paid is not too much."""
    mechanism = ExactTrees("0.9")
    given = calibration(mechanism, 2, relation, criterion)
    trees = list(itertools.product(range(3), repeat=3))
    worst = 0.0
    for counts in (np.array([3 * kind[3] for kind in KINDS]), np.array([20 * (kind[0] == kind[3]) for kind in KINDS])):
        here = stated(data_of(counts, 2, criterion), mechanism, given, trees)
        for neighbour in shifted(counts, relation):
            there = stated(data_of(neighbour, 2, criterion), mechanism, given, trees)
            worst = max(worst, float(np.abs(here - there).max()))
    assert 0.3 < worst <= 0.9


def test_what_rounding_costs_is_a_millionth_and_more_for_more_rows():
    for relation in Relation:
        given = calibration(ExactTrees(1), 3, relation)
        assert given.losses.pure.under(relation) == 1
        bare = query(3).facts().sensitivity(dpf.queries.Norm.LINF).spread.under(relation)
        assert bare < given.scale < bare * (1 + Fraction(1, 10**6))
        unbounded = TreeScores(CRITERIA["norm"], SCHEMA["class"], KnownRows(None, exact=False), TESTS, 3).facts()
        many = ExactTrees(1).calibrate(unbounded, relation)
        assert given.scale < many.scale < bare * (1 + Fraction(1, 10**3))
    with pytest.raises(dpf.InputError, match="epsilon"):
        calibration(ExactTrees("1e-8"), 2, Relation.ADD_OR_REMOVE_ONE)


def test_what_is_paid_is_what_the_levels_of_a_tree_add_up_to():
    """Eight times the sum over levels of (K + 4 M + 3 M d) u R, and half a lattice step a node."""
    for depth in (1, 2, 3):
        facts = query(depth).facts()
        known = depth_bound(facts.answer_length)
        one = UNIT_ROUNDOFF * 5001 * Fraction(1001, 1000)
        terms = sum(13 + 2 * 2 + 4 + 3 * d for d in range(1, known + 1)) * one
        nodes = Fraction(2**known - 1, 2) * ExactTrees(1).lattice_unit(facts)
        paid = ExactTrees(1).rounding(facts)
        assert 8 * (terms + nodes) <= paid <= 24 * (terms + nodes)
        assert MarkovChainTrees(1).rounding(facts) >= 4 * (
            (13 + 2 * 2 + 2) * one + Fraction(2**known, 2) * MarkovChainTrees(1).lattice_unit(facts)
        )


# --- walks ----------------------------------------------------------------------------------------------------------


class Near(Watched):
    """The words of its uniform numbers are the first bits of the exponential that they are compared with."""

    def __init__(self, words: list[int], answer: bool) -> None:
        super().__init__()
        self.own_words, self.own_answer, self.asked = words, answer, []

    def words(self, size: int) -> Any:
        return np.array(self.own_words, dtype=np.uint64)

    def below_exp(self, exponent: Fraction, word: int) -> bool:
        self.asked.append((exponent, word))
        return self.own_answer


def test_a_step_that_floating_point_cannot_decide_is_decided_exactly_and_the_walk_goes_on():
    """One step: the exact comparison is asked, with the exact exponent, if and only if the words are too near."""
    mechanism = MarkovChainTrees(3, 1)
    given = calibration(mechanism, 2, Relation.ADD_OR_REMOVE_ONE, "max")
    counts = np.array([2 + 5 * i % 7 for i in range(len(KINDS))])
    data, unit = data_of(counts, 2, "max"), given.unit
    seen = set()
    for seed in range(40):
        plain = SeededRandomness(seed)
        start = plain.integers(3, 3)
        node, test = int(plain.integers(3, 1)[0]), int(plain.integers(3, 1)[0])
        other = start.copy()
        other[node] = test
        change = Fraction(data.score(other) - data.score(start)) / unit / Fraction(given.lattice_scale)
        if change >= 0:
            continue
        near = int(math.exp(change) * 2**64)
        for word, answer in ((near, True), (near, False), (near - 2**25, None), (near + 2**25, None)):
            source = Near([word], bool(answer))
            source.drawn_from = SeededRandomness(seed)
            reached = mechanism.release(data, given, source)
            assert source.asked == ([] if answer is None else [(change, word)])
            accepted = word < near if answer is None else answer
            assert reached.tolist() == (other if accepted else start).tolist()
            seen.add((answer, accepted))
    assert len(seen) == 4


@pytest.mark.parametrize("criterion", ["norm", "gini"])
def test_what_is_paid_for_rounding_is_exactly_what_the_module_derives(criterion):
    """Level by level and node by node; the lattice is one of 2**-28 of the sensitivity."""
    for depth in (1, 2, 3):
        facts = query(depth, criterion).facts()
        declared, exact, walked = facts.sensitivity(dpf.queries.Norm.LINF), ExactTrees("0.3"), MarkovChainTrees(1)
        assert exact.lattice_unit(facts) == walked.lattice_unit(facts) == Fraction(1, 2**28)
        most = depth_bound(facts.answer_length)
        # (K + 4 M + 3 M d) u R is at most (2 + 3/2 d) r, since r is at least (K + 2 M) u R
        of_levels = sum((2 + Fraction(3, 2) * d) * facts.rounding for d in range(1, most + 1))
        half_steps = [Fraction(1, 2**29)] * sum(2**d for d in range(most))
        assert exact.rounding(facts) == 8 * (of_levels + sum(half_steps))
        assert walked.rounding(facts) == 4 * (facts.rounding + sum([Fraction(1, 2**29)] * 2**most))
        for mechanism in (exact, walked):
            padded = declared.spread.map(mechanism.rounding(facts).__add__)
            largest = max(padded.add_or_remove_one, padded.replace_one)
            # an error of the logarithms of 2**-24 of the scale, four times: see `with_relative_error`
            share = 4 * Fraction(1, 2**24) / Fraction("0.3") if mechanism is exact else 0
            assert mechanism.change(facts) == padded.map((share * largest).__add__)


def test_a_sampler_wants_scores_whose_largest_change_is_known():
    facts = attrs.evolve(query(2).facts(), sensitivities=())
    for mechanism in (ExactTrees(1), MarkovChainTrees(1)):
        assert mechanism.misfit(query(2).facts()) is None
        assert mechanism.misfit(facts) == "needs a sensitivity in the linf norm, which the query does not declare"


def test_the_preview_bounds_the_gap_to_the_best_of_so_many_trees():
    given = calibration(MarkovChainTrees(1), 2, Relation.ADD_OR_REMOVE_ONE)
    scale = float(given.scale)
    for trees, number in ((None, "1"), (1, "1"), (27, "27"), (10**6 - 1, "999999"), (10**6, "10^6"), (4**50, "10^30")):
        preview = given.mechanism.preview(attrs.evolve(given, facts=attrs.evolve(given.facts, answer_length=trees)))
        assert preview.expected == pytest.approx(scale * math.log(trees or 1))
        # with probability 1 / 20 at most the gap is larger (McSherry and Talwar 2007, Theorem 6)
        assert preview.within == pytest.approx(scale * math.log(20 * (trees or 1)))
        assert preview.text == f"a score within {preview.within:.3g} of the best of {number} trees (95 %)"


def test_log_weights_lie_on_the_lattice_below_the_largest_and_never_beyond_64_bits():
    given = calibration(ExactTrees(1), 1, Relation.ADD_OR_REMOVE_ONE)
    assert scale_on_lattice(given) == given.lattice_scale / 2**28
    steps = np.array([-3, 0, -7.4, -(2.0**61), -(2.0**62) * 1.5, -1e300])
    lattice = on_lattice(5 + steps[:3] / given.lattice_scale, given)
    assert lattice.dtype == np.int64
    assert lattice.tolist() == [-3, 0, -7]
    far = on_lattice(np.concatenate([[0.0], steps[3:] / given.lattice_scale]), given)
    assert far.tolist() == [0, -(2**61), -(2**62), -(2**62)]
    lattice = np.array([0, -(2**28), -(2**29), -(2**40)])
    with localcontext(prec=50):
        logs = [Decimal(int(step)) / Decimal(given.lattice_scale) for step in lattice]
        for position, log in enumerate(logs):
            assert log_share(lattice, position, given) == pytest.approx(float(log - log_sum(logs)))


def test_sums_of_weights_are_taken_from_their_largest():
    for logs in ([0.0, -2000.0], [1e6, 1e6], [-3.0, 2.0, 0.5]):
        assert tree_weights.log_sum(np.array(logs)) == pytest.approx(np.logaddexp.reduce(logs))


def test_a_deep_tree_of_two_tests_weighs_what_all_its_trees_do():
    """Four levels, 2**15 trees: a test asked again below itself changes nothing, so few of them differ."""
    tests = Candidates.of_schema(SCHEMA, ["a", "b"], multiway=False, cuts=True)
    codes = np.repeat(np.array(KINDS, dtype=np.uint8).T, np.arange(16) % 5, axis=1)
    engine, scale = InMemory(), 2.5
    four = query(4, "max", tests).evaluate(engine, engine.load(dpf.Table.from_codes(SCHEMA, codes)))

    def below(rows: np.ndarray, depth: int) -> list[float]:
        """Return log Z below each root, as `weights` defines it."""
        if depth == 0:
            return [np.bincount(codes[3][rows], minlength=2).max() / scale]
        sides = [(rows & (codes[t] == 1), rows & (codes[t] == 0)) for t in range(2)]
        return [sum(np.logaddexp.reduce(below(side, depth - 1)) for side in each) for each in sides]

    for threads in (1, 3):
        found = tree_weights.Weights(four, scale, threads=threads)
        assert found.of_tests(four.rows, 4) == pytest.approx(below(np.ones(codes.shape[1], dtype=bool), 4))
    assert found.of_all(4) == pytest.approx(np.logaddexp.reduce(below(np.ones(codes.shape[1], dtype=bool), 4)))


@pytest.mark.parametrize("depth", [1, 2])
def test_the_stated_probability_of_a_walks_tree_is_that_of_its_rounded_score(depth):
    given, counts = calibration(MarkovChainTrees(1), depth, Relation.ADD_OR_REMOVE_ONE), np.arange(16) % 7
    data, every = data_of(counts, depth), list(itertools.product(range(3), repeat=2**depth - 1))
    scores = np.array([data.score(np.array(tree)) for tree in every]) / float(given.scale)
    found = stated(data, MarkovChainTrees(1), given, every)
    assert found == pytest.approx(scores - np.logaddexp.reduce(scores), abs=1e-6)
    steps = [[round(score * 2**28) for score in data.leaf_scores(np.array(tree))] for tree in every]
    apart = [(sum(these) - sum(steps[0])) / given.lattice_scale for these in steps]
    assert found - found[0] == pytest.approx(apart, abs=1e-13)  # to the step: half a step is 1e-9 of the scale


def test_what_takes_too_long_is_refused_by_its_work():
    assert [exact_work(7, depth) for depth in (1, 2, 3, 4)] == [7, 49, 7**2 * 14, 7**2 * 14**2]
    require_feasible(20_000, 2)
    with pytest.raises(dpf.InputError, match=r"look at 4e\+08 pairs of tests for depth 2 and 20001 tests"):
        require_feasible(20_001, 2)


def test_a_walk_takes_ten_thousand_steps_unless_it_is_told():
    assert MarkovChainTrees(1).iterations == MarkovChainPairs(1).iterations == 10_000


@pytest.mark.parametrize(("trees", "number"), [(12, "12"), (999_999, "999999"), (10**6, "10^6"), (2 * 10**9, "10^9")])
def test_the_gap_to_the_best_of_all_trees_is_stated_with_their_number(trees: int, number: str) -> None:
    mechanism = ExactTrees(1)
    given = attrs.evolve(calibration(mechanism, 2, Relation.ADD_OR_REMOVE_ONE, "max"), scale=Fraction(3))
    found = mechanism.preview(attrs.evolve(given, facts=attrs.evolve(given.facts, answer_length=trees)))
    assert found.expected == pytest.approx(3 * math.log(trees))
    assert found.within == pytest.approx(3 * math.log(20 * trees))
    assert found.text.endswith(f"of the best of {number} trees (95 %)")
