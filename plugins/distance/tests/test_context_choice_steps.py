"""What is planned and released of contexts and tables, against slow ways of saying the same."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from dpframework_distance import context_choice_steps, edges, joint_histograms
from dpframework_distance.distance_budget import DistanceBudget
from dpframework_distance.edges import PairDependence, trees_of
from dpframework_distance.joint_histograms import rungs_between, step_of
from dpframework_distance.marginal_estimates import (
    EstimatedRows,
    estimate_rows,
    number_of_rows,
    shares_in_unknown,
)
from dpframework_distance.pair_counts import PairCounts
from dpframework_distance.queries import (
    CommonContextScores,
    ConditionalEntropies,
    Contexts,
    ContextScores,
    Entropies,
)
from dpframework_distance.sensitivities import RowBounds

import dpframework as dpf
from dpframework.basics import NoisyHistogram, OneWayMarginals
from dpframework.mechanisms import DiscreteLaplace, Gaussian, KNorm, Laplace, PermuteAndFlip
from dpframework.queries import Marginals

BOUNDS = RowBounds(9, 9)
SIZES = (2, 3, 7, 5)
AMONG = tuple(dpf.Categorical(f"a{k}", [str(v) for v in range(size)]) for k, size in enumerate(SIZES))
BUDGET, RHO = DistanceBudget(Fraction(3), False, False), DistanceBudget(Fraction(3), True, True)


def pairs_of(chosen: dict[int, Iterable[int]]) -> set[frozenset[int]]:
    """Return the pairs of a target with an attribute of its context."""
    return {frozenset((target, other)) for target, context in chosen.items() for other in context}


@pytest.mark.parametrize("attributes", [2, 3, 4])
@pytest.mark.parametrize("size", [1, 2, 3, None])
def test_as_few_and_as_many_tables_are_planned_as_contexts_may_need(attributes: int, size: int | None) -> None:
    """Over all contexts that all targets may have: of a size, or, without one, of any from one attribute on."""
    if size is not None and size >= attributes:
        return
    among = (AMONG + AMONG)[:attributes]
    for number in range(1, attributes + 1):
        numbers = []
        sizes = [size] if size else range(1, attributes)
        for targets in itertools.combinations(range(attributes), number):
            of_each = [
                [context for s in sizes for context in itertools.combinations(set(range(attributes)) - {target}, s)]
                for target in targets
            ]
            of_all = (dict(zip(targets, contexts, strict=True)) for contexts in itertools.product(*of_each))
            numbers.extend(map(len, map(pairs_of, of_all)))
        ways: list[Any] = [context_choice_steps.MeanSU(among, BOUNDS)]
        if size:
            kinds = (context_choice_steps.MaxDependency, context_choice_steps.MaxRelevance)
            ways = [kind(among, size, BOUNDS, number == 1) for kind in kinds]
        for way in ways:
            least, most = way.least_and_most(number)
            assert least <= min(numbers)
            assert max(numbers) <= most == min(number * max(sizes), math.comb(attributes, 2))
            assert least == min(numbers) or number < attributes, "which is attained where all are targets"
            assert least == max(min(sizes), math.ceil(number * min(sizes) / 2)), "a pair serves two targets at most"


@pytest.mark.parametrize("attributes", [2, 3, 4])
def test_all_others_and_common_contexts_need_as_many_tables_as_they_have_pairs(attributes: int) -> None:
    among = (AMONG + AMONG)[:attributes]
    everything = {k: [j for j in range(attributes) if j != k] for k in range(attributes)}
    assert context_choice_steps.AllOthers(among).release(None, range(attributes)) == {  # type: ignore[arg-type]
        k: tuple(others) for k, others in everything.items()
    }
    assert context_choice_steps.AllOthers(among).plan(range(attributes), BUDGET, Fraction(1)) == {}
    least, most = context_choice_steps.AllOthers(among).least_and_most(attributes)
    assert least <= len(pairs_of(everything)) == most
    for number in range(1, attributes):
        some = {k: everything[k] for k in range(number)}
        least, most = context_choice_steps.AllOthers(among).least_and_most(number)
        assert least <= len(pairs_of(some)) <= most
    for size in range(2, attributes):
        common = {k: [j for j in range(size) if j != k] for k in range(attributes)}
        assert (
            context_choice_steps.Common(among, size, BOUNDS).least_and_most(attributes) == (len(pairs_of(common)),) * 2
        )


def test_selections_share_what_they_have() -> None:
    """Each target has as much as another, each attribute of a context as another, a common context all of it."""
    share = Fraction(1, 5)
    names = [context_choice_steps.plan_name("context", k, AMONG) for k in (0, 2)]
    planned = context_choice_steps.MaxDependency(AMONG, 2, BOUNDS, False).plan([0, 2], BUDGET, share)
    assert list(planned) == names == ["context of a0", "context of a2"]
    assert [step.query for step in planned.values()] == [ContextScores(AMONG, 2, BOUNDS, k, False) for k in (0, 2)]
    assert [step.mechanism for step in planned.values()] == [PermuteAndFlip(Fraction(3, 10))] * 2
    planned = context_choice_steps.MaxRelevance(AMONG, 3, BOUNDS, True).plan([0, 2], BUDGET, share)
    assert [step.times for step in planned.values()] == [3, 3]
    assert [step.part.query for step in planned.values()] == [ContextScores(AMONG, 1, BOUNDS, k, True) for k in (0, 2)]
    assert [step.part.mechanism for step in planned.values()] == [PermuteAndFlip(Fraction(1, 10))] * 2
    (common,) = context_choice_steps.Common(AMONG, 2, BOUNDS).plan([0, 1, 2, 3], BUDGET, share).values()
    assert common.query == CommonContextScores(AMONG, 2, BOUNDS)
    assert common.mechanism == PermuteAndFlip(Fraction(3, 5))
    published = RowBounds(9, None, published=True)
    for bounds, targets, query in (
        (BOUNDS, [2], ConditionalEntropies(AMONG, 2, BOUNDS)),
        (BOUNDS, [1, 2], ConditionalEntropies(AMONG, None, BOUNDS)),
        (published, [2], Entropies(AMONG, 2, published)),
    ):
        (entropies,) = context_choice_steps.MeanSU(AMONG, bounds).plan(targets, BUDGET, share).values()
        assert (entropies.query, entropies.mechanism) == (query, Laplace(Fraction(3, 5)))


class Released:
    """Releases what it is told, and remembers what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = iter(answers), []

    def release(self, step: str, **inputs: Any) -> Any:
        """Return the next answer."""
        self.asked.append((step, inputs))
        return next(self.answers)

    def release_many(self, steps: Iterable[tuple[Any, str, dict[str, Any]]]) -> list[Any]:
        """Return the next answers."""
        return [table.release(step, **inputs) for table, step, inputs in steps]

    def calibration(self, step: str) -> Any:
        """Return one with a variance."""
        return SimpleNamespace(variance=7.5, mechanism=None)


def test_contexts_are_what_was_released_in_the_order_of_the_attributes() -> None:
    table: Any = Released(("a3", "a0"), ("a1", "a0"))
    assert context_choice_steps.MaxDependency(AMONG, 2, BOUNDS, False).release(table, [1, 2]) == {1: (0, 3), 2: (0, 1)}
    assert table.asked == [("context of a1", {}), ("context of a2", {})]
    table = Released(("a3",), ("a0",), ("a2",))
    assert context_choice_steps.MaxRelevance(AMONG, 3, BOUNDS, False).release(table, [1]) == {1: (0, 2, 3)}
    assert [inputs["chosen"] for _, inputs in table.asked] == [(), ("a3",), ("a3", "a0")]
    table = Released(("a2", "a0"))
    found = context_choice_steps.Common(AMONG, 2, BOUNDS).release(table, range(4))
    assert found == {0: (2,), 1: (0, 2), 2: (0,), 3: (0, 2)}
    assert table.asked == [("common context", {})]


def test_names_of_steps_hold_what_a_plan_accepts_and_tell_targets_apart() -> None:
    among = [dpf.Boolean("über"), dpf.Boolean("uber"), dpf.Boolean("a.b_c=d+e-f 9")]
    assert [context_choice_steps.plan_name("context", k, among) for k in range(3)] == [
        "context of _ber - 1 of 3",
        "context of uber",
        "context of a.b_c=d+e-f 9",
    ]


# --- tables ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("low", "high"), [(1, 1), (1, 400), (3, 5), (7, 7), (90, 4000), (400, 1000), (1, 10**6)])
def test_a_ladder_has_no_large_step_and_not_many(low: int, high: int) -> None:
    rungs = rungs_between(low, high)
    assert (rungs[0], rungs[-1]) == (low, high)
    steps = list(itertools.pairwise(rungs))
    assert all(one < other <= max(one + 1, 1.1 * one) for one, other in steps)
    if high <= 5000:
        assert rungs_between(low, high, every=True) == list(range(low, high + 1))
    if high <= 1.1**32 * low:
        assert len(steps) <= max(min(high - low, 40), 0)
        assert all(other == one + 1 or other >= int(one * (high / low) ** (1 / 32)) for one, other in steps[:-1])


def test_ladders_by_hand() -> None:
    assert rungs_between(400, 1000)[:10] == [400, 411, 422, 434, 446, 458, 471, 484, 498, 512]
    assert rungs_between(10, 1000)[:8] == [10, 11, 12, 13, 14, 15, 16, 17]
    assert rungs_between(30, 1000)[:4] == [30, 33, 36, 39]


def test_each_rung_shares_all_of_the_budget_for_tables() -> None:
    query = PairCounts(AMONG)
    node = joint_histograms.plan(query, [1, 4, 6], BUDGET, Fraction(1, 5), ["context of a0"])
    assert [branch.times for branch in node.children] == [1, 4, 6]
    mechanisms = [DiscreteLaplace(Fraction(3, 5 * k)) for k in (1, 4, 6)]
    assert [branch.part.mechanism for branch in node.children] == mechanisms
    assert [branch.part.name for branch in node.children] == ["histogram", "histogram of 4", "histogram of 6"]
    assert {(branch.part.query, tuple(branch.part.uses)) for branch in node.children} == {(query, ("context of a0",))}
    alone = joint_histograms.plan(query, [4], RHO, Fraction(1, 5), [])
    assert (alone.times, alone.part.mechanism) == (4, Gaussian(Fraction(3, 20)))
    assert [step_of(k) for k in (1, 2, 3)] == ["histogram", "histogram of 2", "histogram of 3"]


def test_tables_are_released_of_each_pair_by_name() -> None:
    table: Any = Released([[1, 2]], [[3, 4]])
    found = joint_histograms.release(table, AMONG, [(0, 2), (3, 1)], 2)
    assert table.asked == [("histogram of 2", {"pair": ("a0", "a2")}), ("histogram of 2", {"pair": ("a3", "a1")})]
    assert [(one.first, one.second, one.counts.tolist(), one.variance) for one in found] == [
        ("a0", "a2", [[1, 2]], 7.5),
        ("a3", "a1", [[3, 4]], 7.5),
    ]


# --- marginals ------------------------------------------------------------------------------------------------------


def test_two_histograms_have_the_mean_of_least_variance() -> None:
    """What is known exactly counts alone; the variances of means are those of the weights."""
    one = NoisyHistogram(np.array([10.0, 20.0]), 3.0)
    found = one.with_another(NoisyHistogram(np.array([14.0, 28.0]), 1.0))
    assert found.counts.tolist() == [13, 26]
    assert found.variance == pytest.approx((1 / 4) ** 2 * 3 + (3 / 4) ** 2 * 1)
    found = NoisyHistogram(np.array([1.0, 3.0]), 0.25).with_another(NoisyHistogram(np.array([2.0, 5.0]), 0.25))
    assert (found.counts.tolist(), found.variance) == ([1.5, 4], 0.125)
    exact = one.with_another(NoisyHistogram(np.array([14.0, 28.0]), 0.0))
    assert (exact.counts.tolist(), exact.variance) == ([14, 28], 0)
    again = exact.with_another(NoisyHistogram(np.array([1.0, 2.0]), 5.0))
    assert (again.counts.tolist(), again.variance) == ([14, 28], 0)
    assert exact.with_another(NoisyHistogram(np.array([14.0, 28.0]), 0.0)).counts.tolist() == [14, 28]


def test_the_number_of_rows_is_public_or_that_of_the_histogram_with_least_noise() -> None:
    """Of all its cells together: few noisy ones may add up to less noise than many better ones."""
    few, many = NoisyHistogram(np.array([60.0, 41.0]), 9.0), NoisyHistogram(np.full(8, 12.0), 2.5)
    assert number_of_rows([many, few], None) == 101
    assert number_of_rows([many, NoisyHistogram(few.counts, 11.0)], None) == 96
    assert number_of_rows([many, few], 7) == 7
    assert number_of_rows([NoisyHistogram(np.array([-5.0, 1.0]), 1.0)], None) == 1


def test_marginals_are_planned_by_size_and_released_in_the_order_of_the_attributes() -> None:
    among = [dpf.Categorical(f"a{k}", [str(v) for v in range(size)]) for k, size in enumerate((2, 40, 3, 2))]
    nodes = OneWayMarginals(among, BUDGET.zcdp).plan(BUDGET.amount / 4)
    assert list(nodes) == ["histograms 1 of 2", "histograms 2 of 2"]
    small, large = nodes.values()
    assert (small.query, large.query) == (Marginals([among[0], among[2], among[3]]), Marginals([among[1]]))
    assert small.mechanism.epsilon + large.mechanism.epsilon == Fraction(3, 4)
    assert isinstance(small.mechanism, KNorm)
    (gaussian,) = OneWayMarginals(among, RHO.zcdp).plan(RHO.amount / 4).items()
    assert gaussian[0] == "histograms"
    assert (gaussian[1].query.sets, gaussian[1].mechanism) == (((), (0,), (1,), (2,), (3,)), Gaussian(Fraction(3, 4)))
    table: Any = Released(np.arange(7), np.arange(100, 140))
    found = OneWayMarginals(among, BUDGET.zcdp).release(table)
    assert table.asked == [("histograms 1 of 2", {}), ("histograms 2 of 2", {})]
    assert [one.counts.tolist() for one in found] == [[0, 1], list(range(100, 140)), [2, 3, 4], [5, 6]]
    assert [one.variance for one in found] == [7.5] * 4
    table = Released(np.arange(1 + 1 + 40 + 3 + 1))
    assert [len(one.counts) for one in OneWayMarginals(among, RHO.zcdp).release(table)] == [2, 40, 3, 2]
    assert table.asked == [("histograms", {})]


def test_one_histogram_too_large_for_its_own_noise_has_that_of_counts() -> None:
    large = dpf.Numeric("x", 0, 1, bins=20_000)
    (node,) = OneWayMarginals([large], BUDGET.zcdp).plan(BUDGET.amount / 3).values()
    best = KNorm(Fraction(1))
    assert node.mechanism == (best if best.misfit(node.query.facts()) is None else DiscreteLaplace(Fraction(1)))


# --- queries --------------------------------------------------------------------------------------------------------


def test_queries_say_what_they_are_of() -> None:
    assert ContextScores(AMONG, 1, BOUNDS, 2).text == "information of each attribute on a2"
    assert ContextScores(AMONG, 2, BOUNDS, 2).text == "information of each set of 2 attributes on a2"
    assert CommonContextScores(AMONG, 2, BOUNDS).text == "information of each set of 2 attributes on all others"
    assert Entropies(AMONG, None, BOUNDS).text == "entropies of all attributes and of all pairs"
    assert Entropies(AMONG, 0, BOUNDS).text == "entropies of all attributes and of the pairs with a0"
    conditional = [ConditionalEntropies(AMONG, target, BOUNDS).text for target in (None, 3)]
    assert conditional[0] == "entropies of all attributes and of one attribute given another"
    assert conditional[1] == "entropies of all attributes and of a3 given each other"
    assert PairCounts(AMONG).text == "joint histogram of a target and an attribute of its context"
    assert PairCounts(AMONG, 0).text == "joint histogram of a0 and an attribute of its context"
    assert PairDependence(AMONG).text == "dependence of each of 6 pairs of attributes"


def test_answers_are_as_long_as_there_are_contexts_pairs_or_cells() -> None:
    names = ("a0", "a1", "a2", "a3")
    assert PairCounts((*AMONG, dpf.Numeric("x", 0, 1, bins=6))).answer_length == 7 * 6
    for query, length in (
        (ContextScores(AMONG, 1, BOUNDS, 2), 3),
        (ContextScores(AMONG, 2, BOUNDS, 0), 3),
        (CommonContextScores(AMONG, 3, BOUNDS), 4),
        (Entropies(AMONG, None, BOUNDS), 4 + 6),
        (ConditionalEntropies(AMONG, 1, BOUNDS), 4 + 3),
        (PairCounts(AMONG), 7 * 5),
        (PairCounts(AMONG, 0), 2 * 7),
        (PairCounts(AMONG, 2), 7 * 5),
        (PairDependence(AMONG), 6),
    ):
        assert (query.answer_length, query.attributes) == (length, names)


def test_contexts_are_named_when_they_are_asked_for() -> None:
    contexts = Contexts(AMONG, np.array([[0, 1], [0, 3], [2, 3]]))
    assert list(contexts) == [("a0", "a1"), ("a0", "a3"), ("a2", "a3")]
    assert list(contexts[1:]) == [("a0", "a3"), ("a2", "a3")]
    assert (len(contexts), contexts[-1]) == (3, ("a2", "a3"))
    assert list(ContextScores(AMONG, 2, BOUNDS, 1).candidates()) == [("a0", "a2"), ("a0", "a3"), ("a2", "a3")]
    assert list(ContextScores(AMONG, 1, BOUNDS, 1).candidates(chosen=("a3",))) == [("a0",), ("a2",)]


def test_weights_are_two_for_all_pairs_and_else_one_for_the_target_and_a_quarter() -> None:
    assert ConditionalEntropies(AMONG, None, BOUNDS).weights == (2,) * 4
    assert ConditionalEntropies(AMONG, 2, BOUNDS).weights == (Fraction(1, 4), Fraction(1, 4), 1, Fraction(1, 4))
    assert ConditionalEntropies(AMONG, 2, BOUNDS).conditions == [(0, 2), (1, 2), (3, 2)]
    assert Entropies(AMONG, None, BOUNDS).listed == list(itertools.combinations(range(4), 2))


def test_trees_of_a_forest_have_a_number_each() -> None:
    assert trees_of(4, []) == [0, 1, 2, 3]
    assert trees_of(5, [(3, 4), (1, 3), (0, 2)]) == [0, 1, 0, 1, 1]
    assert trees_of(3, [(0, 1), (1, 2), (0, 2)]) == [0, 0, 0]


@pytest.mark.parametrize("scale", [1e-7, 0.1, 3, 50, 10**4])
@pytest.mark.parametrize("counts", [[5.0, 0, 90], [-40, 20, 3, 3], [1000, 1], [-3000, -50], [70], [1e12, 1e12 - 3]])
def test_what_is_known_of_counts_adds_up_to_the_rows_and_is_not_negative(counts: list[float], scale: float) -> None:
    for rows in (1.0, 60.0, 5e6):
        known = estimate_rows(NoisyHistogram(np.array(counts), scale**2), rows)
        assert known.mean.sum() == pytest.approx(rows, rel=1e-9)
        assert (known.mean >= 0).all()
        assert (known.variance >= 0).all()
        assert (known.variance <= max(scale**2, 1e-12) * (1 + 1e-12)).all()
        assert (np.diff(known.mean[np.argsort(counts)]) >= -1e-9 * rows).all(), "in the order of the counts"


def test_shares_are_of_the_rows_and_as_unsure_as_their_noise() -> None:
    """A variance is a share's squared, and no more than a share of that size can have; the same in every column."""
    known = EstimatedRows(np.array([30.0, 70.0]), np.array([4.0, 10.0**9]))
    found = shares_in_unknown(known, 3, 0.25)
    assert found.shares == pytest.approx(np.array([[0.3] * 3, [0.7] * 3]) * 0.75**0.5)
    expected = [0.75 * 0.0004 + 0.25 * 0.3, 0.75 * 0.21 + 0.25 * 0.7]
    assert found.variance == pytest.approx(np.array([[value] * 3 for value in expected]))


# --- edges ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [90.0, 0.4])
def test_dependence_is_the_distance_from_the_rounded_product_of_marginals(rows: float) -> None:
    """Of attributes of different sizes, pair by pair; all rows are those of the first one's values, one at least."""
    rng = np.random.default_rng(3)
    marginals = [rng.dirichlet(np.ones(size)) * rows * (1 + k) for k, size in enumerate(SIZES)]
    cells = rng.integers(0, 4, SIZES)
    query, expected, joints = PairDependence(AMONG), {}, []
    for a, b in itertools.combinations(range(4), 2):
        joint = cells.sum(axis=tuple({0, 1, 2, 3} - {a, b}))
        product = np.rint(np.outer(marginals[a], marginals[b]) / max(rows, 1))
        expected[f"a{a}", f"a{b}"] = int(np.abs(joint - product).sum())
        joints.append(joint.ravel())
    rows_of_cells = np.repeat(np.array(list(np.ndindex(*SIZES))), cells.ravel(), axis=0)
    (block,) = dpf.InMemory().load(dpf.Table.from_codes(dpf.Schema(AMONG), rows_of_cells.T))
    counts = query.count(block)
    assert counts.tolist() == np.concatenate(joints).tolist()
    for chosen in ((), (("a0", "a2"),), (("a2", "a3"), ("a0", "a1"))):
        inputs = {"marginals": np.concatenate(marginals), "chosen": chosen}
        trees = trees_of(4, [(int(a[1]), int(b[1])) for a, b in chosen])
        possible = [pair for pair in expected if trees[int(pair[0][1])] != trees[int(pair[1][1])]]
        assert list(query.candidates(**inputs)) == possible
        assert query.answer(counts, **inputs).tolist() == [expected[pair] for pair in possible]
    (sensitivity,) = query.sensitivities
    assert (sensitivity.add_or_remove_one, sensitivity.replace_one, query.integer) == (1, 2, True)


def test_edges_are_selected_one_after_another_with_equal_shares() -> None:
    node = edges.plan(AMONG, 3, BUDGET, Fraction(1, 5), ["histograms"])
    assert (node.times, node.part.name, tuple(node.part.uses)) == (3, "edge", ("histograms",))
    assert (node.part.query, node.part.mechanism) == (PairDependence(AMONG), PermuteAndFlip(Fraction(1, 5)))
    table: Any = Released(("a0", "a2"), ("a1", "a2"), ("a2", "a3"))
    marginals = [np.arange(size) for size in SIZES]
    assert edges.release(table, AMONG, 3, marginals) == [(0, 2), (1, 2), (2, 3)]
    assert [inputs["chosen"] for _, inputs in table.asked] == [(), (("a0", "a2"),), (("a0", "a2"), ("a1", "a2"))]
    assert {step for step, _ in table.asked} == {"edge"}
    assert all(inputs["marginals"].tolist() == np.concatenate(marginals).tolist() for _, inputs in table.asked)
