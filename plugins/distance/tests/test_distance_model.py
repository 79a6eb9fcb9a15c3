"""Distances from a model: marginals, edges, the forest, and which way of learning "auto" takes."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from dpframework_distance import DPDilca, dilca, signal_to_noise
from dpframework_distance.auto_context import edges_or_contexts, share_of_marginals
from dpframework_distance.distance_budget import DistanceBudget
from dpframework_distance.distance_estimates import NoisyPair, distances_between, points_of, unsure
from dpframework_distance.edges import PairDependence
from dpframework_distance.forest import Forest, dependence, fit_marginals, information, most_informative
from dpframework_distance.marginal_estimates import (
    EstimatedRows,
    estimate_rows,
    number_of_rows,
    redraw_estimates,
    shares_in_unknown,
)
from dpframework_distance.subsets import subsets
from scipy import integrate, stats

import dpframework as dpf
from dpframework.accountant import ZCDPAccountant
from dpframework.basics import NoisyHistogram, OneWayMarginals
from dpframework.facts import ByRelation
from dpframework.results import Noisy
from dpframework.verify import search_sensitivity

A, B, C = (dpf.Categorical(name, ["x", "y", "z"]) for name in "abc")
CHAIN = np.array([[0.8, 0.1, 0.1], [0.1, 0.7, 0.2], [0.2, 0.2, 0.6]])


def chain_table(rows: int = 4_000, attributes: int = 4) -> dpf.Table:
    """Return attributes of which each depends on the one before."""
    rng = np.random.default_rng(5)
    columns = [rng.choice(3, rows, p=[0.5, 0.3, 0.2])]
    for _ in range(attributes - 1):
        columns.append((rng.random((rows, 1)) > CHAIN[columns[-1]].cumsum(axis=1)[:, :2]).sum(axis=1))
    schema = dpf.Schema([dpf.Categorical(f"a{k}", ["x", "y", "z"]) for k in range(attributes)], rows=rows)
    return dpf.Table.from_codes(schema, np.array(columns))


def learned(table: dpf.Table, miner: DPDilca, **settings: Any) -> Any:
    study = dpf.Study(table.schema, epsilon=10**9, relation="replace-one", **settings)
    study.add("d", miner)
    return study.run(table, seed=1)["d"]


# --- the queries ----------------------------------------------------------------------------------------------------


@attrs.frozen
class AgainstItsOwnMarginals(PairDependence.__bases__[0]):  # type: ignore[misc]
    """The same scores, next to the rows' own marginals: those are not public, and move too."""

    name = "against-its-own"
    integer = True
    of: Any = (A, B, C)

    sensitivities = PairDependence((A, B, C)).sensitivities
    answer_length = 3

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return PairDependence(self.of).count(block)

    def candidates(self, **inputs: Any) -> Any:
        return range(3)

    def answer(self, counts: Any, **inputs: Any) -> Any:
        layout = subsets((3, 3, 3), 2)
        one, other = layout.histogram(counts, 0, 1), layout.histogram(counts, 0, 2)
        own = np.concatenate([one.sum(axis=1), one.sum(axis=0), other.sum(axis=0)])
        return PairDependence(self.of).answer(counts, marginals=own, chosen=())


@pytest.mark.parametrize("relation", list(dpf.Relation))
def test_scores_against_marginals_that_are_not_public_are_caught(relation: dpf.Relation) -> None:
    schema = dpf.Schema([A, B, C], rows=6 if relation is dpf.Relation.REPLACE_ONE else None)
    wrong = search_sensitivity(AgainstItsOwnMarginals(), schema, relation, pairs=150)
    assert not wrong.passed
    inputs = {"marginals": np.array([2.4, 1.6, 2, 3, 3, 0, 1, 1, 4]), "chosen": ()}
    right = search_sensitivity(PairDependence([A, B, C]), schema, relation, inputs=inputs, pairs=150)
    assert right.passed
    assert right.tightness == pytest.approx(1)


def test_a_score_is_the_distance_from_independence() -> None:
    """Against sums over cells, with marginals that are not equal, and attributes of several sizes."""
    attributes = [A, dpf.Boolean("b"), dpf.Categorical("c", list("pqrs"))]
    schema, rng, engine = dpf.Schema(attributes), np.random.default_rng(5), dpf.InMemory()
    codes = np.array([rng.integers(0, one.size, 40) for one in attributes])
    marginals = [np.array([4.0, 30, 6]), np.array([25.0, 15]), np.array([1.0, 9, 10, 20])]
    query, rows = PairDependence(attributes), engine.load(dpf.Table.from_codes(schema, codes))
    found = query.evaluate(engine, rows, marginals=np.concatenate(marginals), chosen=())
    for score, (a, b) in zip(found, [(0, 1), (0, 2), (1, 2)], strict=True):
        counted = np.zeros((attributes[a].size, attributes[b].size))
        np.add.at(counted, (codes[a], codes[b]), 1)
        assert score == np.abs(counted - np.rint(np.outer(marginals[a], marginals[b]) / 40)).sum()


def test_pairs_that_are_connected_are_no_candidates() -> None:
    query = PairDependence([A, B, C, dpf.Boolean("d")])
    assert len(query.candidates(chosen=())) == query.answer_length == 6
    assert query.candidates(chosen=(("a", "b"),)) == [("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")]
    assert query.candidates(chosen=(("a", "b"), ("b", "c"))) == [("a", "d"), ("b", "d"), ("c", "d")]


# --- estimates ------------------------------------------------------------------------------------------------------


def test_what_is_estimate_rows_a_histogram_is_its_posterior() -> None:
    """Against numbers integrated over those that add up: two values, of which one is cut off at 0."""
    counts, deviation, rows = np.array([-3.0, 23.0]), 4.0, 20.0
    known = estimate_rows(NoisyHistogram(counts, deviation**2), rows)

    def weight(x: float) -> float:
        return float(np.exp(-((counts[0] - x) ** 2 + (counts[1] - rows + x) ** 2) / (2 * deviation**2)))

    exact = integrate.quad(lambda x: x * weight(x), 0, rows)[0] / integrate.quad(weight, 0, rows)[0]
    assert known.mean.sum() == pytest.approx(rows)
    assert known.mean[0] == pytest.approx(exact, rel=0.5)
    assert (known.mean >= 0).all()
    assert (known.variance <= deviation**2).all()


def test_without_noise_everything_is_known() -> None:
    counts = np.array([5.0, 0.0, 11.0])
    known = estimate_rows(NoisyHistogram(counts, 1e-9), 16)
    assert known.mean == pytest.approx(counts, abs=1e-3)
    points = points_of([shares_in_unknown(known, 7, 0)])
    assert np.linalg.norm(points[0] - points[2]) == pytest.approx(6 / 16, abs=1e-4)


def test_what_is_unestimate_rows_a_context_is_expected() -> None:
    """Against draws from the distribution that is meant: a standard error of .002, five of them allowed."""
    rng = np.random.default_rng(3)
    shares, unknown = np.array([0.7, 0.25, 0.05]), 0.15
    drawn = rng.dirichlet(shares * (1 / unknown - 1), 10_000)
    squares = np.square(drawn[:, :, np.newaxis] - drawn[:, np.newaxis]).mean(axis=0)
    expected = np.square(distances_between(points_of([unsure(shares[:, np.newaxis], np.zeros((3, 1)), unknown)])))
    assert expected == pytest.approx(squares, abs=0.01)
    assert expected[1, 2] > 1.5 * 0.2**2  # more than of shares alone
    known = EstimatedRows(10 * shares, np.zeros(3))
    assert np.square(distances_between(points_of([shares_in_unknown(known, 4, unknown)]))) == pytest.approx(expected)


@pytest.mark.parametrize("unknown", [0, 0.15, 0.5])
def test_distances_are_1_at_most_whatever_is_unknown(unknown: float) -> None:
    rng = np.random.default_rng(4)
    for shares in [*rng.dirichlet([0.2] * 4, 50), np.array([1.0, 0, 0, 0]), np.array([0.5, 0.5, 0, 0])]:
        column = shares[:, np.newaxis]
        points = points_of([unsure(column, column * (1 - column), unknown)])
        assert distances_between(points).max() <= 1 + 1e-12


@pytest.mark.parametrize("counts", [[3.0, 900.0, -50.0], [-400.0, -300.0, -350.0, -380.0], [1e6, -1e6]])
def test_no_noise_is_too_much_for_an_estimate(counts: list[float]) -> None:
    for variance in (1e-6, 100.0, 1e8):
        known = estimate_rows(NoisyHistogram(np.array(counts), variance), 200)
        assert known.mean.sum() == pytest.approx(200)
        assert np.isfinite(known.variance).all()
        assert (known.mean >= 0).all()
        assert (shares_in_unknown(known, 2, 0.1).shares <= 1).all()


def test_two_estimates_are_weighted_by_the_inverse_of_their_variances() -> None:
    both = NoisyHistogram(np.array([10.0]), 1.0).with_another(NoisyHistogram(np.array([20.0]), 3.0))
    assert (both.counts[0], both.variance) == (pytest.approx(12.5), pytest.approx(0.75))


def test_a_table_keeps_what_is_more_than_noise_and_its_marginals() -> None:
    first, second = np.array([60.0, 40.0]), np.array([30.0, 70.0])
    table = np.array([[28.0, 32.0], [2.0, 38.0]])
    assert dependence(table, first, second, 1e-9) == pytest.approx(table, abs=0.01)
    assert dependence(table, first, second, 400.0) == pytest.approx(np.outer(first, second) / 100)  # all is noise
    between = dependence(table, first, second, 20.0)
    assert 18 < between[0, 0] < 28
    assert between.sum(axis=1) == pytest.approx(first, rel=1e-3)
    assert between.sum(axis=0) == pytest.approx(second, rel=1e-3)
    assert fit_marginals(np.array([[1.0, 0.0], [0.0, 1.0]]), first, first) == pytest.approx(np.diag(first), abs=1e-3)


def test_one_direction_among_much_noise_is_kept() -> None:
    """The mean of both ways to shrink is nearer than each table's noise, and than independence: seeded."""
    rng = np.random.default_rng(6)
    first = second = np.full(6, 100.0)
    steps = np.linspace(-1, 1, 6)
    exact = np.outer(first, second) / 600 * (1 + 0.7 * np.outer(steps, steps))
    errors = []
    for _ in range(20):
        noisy = exact + rng.normal(0, 8, exact.shape)
        found = dependence(noisy, first, second, 64.0)
        errors.append([np.square(table - exact).sum() for table in (found, noisy, np.outer(first, second) / 600)])
    of_found, of_noise, of_independence = np.mean(errors, axis=0)
    assert of_found < 0.5 * of_noise
    assert of_found < of_independence


def test_a_chain_of_tables_gives_every_pair() -> None:
    """Where attributes do depend along a chain, P(c|a) is the product of the chain's conditionals."""
    of_a = np.array([500.0, 300.0, 200.0])
    joint = of_a[:, None] * CHAIN
    of_b = joint.sum(axis=0)
    onward = of_b[:, None] * CHAIN
    pairs = {(0, 1): NoisyPair("a", "b", joint, 1e-9), (1, 2): NoisyPair("b", "c", onward, 1e-9)}
    forest = Forest.of([of_a, of_b, onward.sum(axis=0), np.array([600.0, 400.0])], pairs)
    given = forest.given(0)
    assert sorted(given) == [1, 2]  # the fourth attribute is in another tree
    assert given[2] == pytest.approx(CHAIN @ CHAIN, abs=1e-4)
    back = forest.tables_with(2)
    assert back[0] == pytest.approx((of_a[:, None] * (CHAIN @ CHAIN)).T, abs=0.1)
    assert information(joint) > information(forest.tables_with(0)[2]) > 0
    assert most_informative(forest.tables_with(2), 1) == (1,)
    assert most_informative(forest.tables_with(2), 3) == (0, 1)
    assert most_informative(forest.tables_with(3), 3) == ()


# --- the miner ------------------------------------------------------------------------------------------------------


def test_a_tree_finds_what_is_there_without_noise() -> None:
    """Almost without noise: the edges of the chain, and the distances that DILCA finds from the same contexts."""
    table = chain_table()
    found = learned(table, DPDilca(10_000, context="tree", context_size=1))
    true = dilca(table, context="max-relevance", context_size=1)
    assert found.contexts["a0"] == ("a1",)
    assert found.contexts["a3"] == ("a2",)
    for name in ("a0", "a3"):
        assert found[name].matrix == pytest.approx(true[name].matrix, abs=0.01)
    profiles = learned(table, DPDilca(10_000, context="tree", context_size=1, profiles=True))
    exact = dilca(table, context="max-relevance", context_size=1, profiles=True)
    assert profiles["a0"].matrix == pytest.approx(exact["a0"].matrix, abs=0.01)


def test_what_a_path_tells_is_compared_as_known_in_half() -> None:
    """Of 4 attributes a 50th is unknown of what no table tells, and a 100th along a path: nothing of an edge."""
    table = chain_table()
    found = learned(table, DPDilca(10_000, context="tree", context_size=2))["a0"]
    assert found.context == ("a1", "a2")
    joint = [np.zeros((3, 3)) for _ in range(2)]
    for k, counts in enumerate(joint):
        np.add.at(counts, (table.codes[k], table.codes[k + 1]), 1)
    passed_on = joint[0] @ (joint[1] / joint[1].sum(axis=1, keepdims=True))
    squares = np.zeros((3, 3))
    for counts, unknown in ((joint[0], 0), (passed_on, 0.01)):
        for column in (counts / counts.sum(axis=0)).T:
            squares += (1 - unknown) * np.square(column[:, None] - column) + unknown * (column[:, None] + column)
    assert found.matrix == pytest.approx(np.sqrt(squares / 6) * (1 - np.eye(3)), abs=2e-3)
    assert found.shares == pytest.approx(np.bincount(table.codes[0]) / table.schema.rows, abs=1e-4)


def test_without_a_context_shares_are_compared() -> None:
    table = chain_table()
    found = learned(table, DPDilca(10_000, context="none"))
    assert set(found.contexts.values()) == {()}
    for name, codes in zip(table.schema.names, table.codes, strict=True):
        shares = np.bincount(codes, minlength=3) / table.schema.rows
        squares = 0.98 * np.square(shares[:, None] - shares) + 0.02 * (shares[:, None] + shares)  # of 4 attributes
        assert found[name].matrix == pytest.approx(np.sqrt(squares) * (1 - np.eye(3)), abs=1e-3)
    one = learned(table, DPDilca(1, context="none", target="a2"))
    assert list(one) == ["a2"]
    assert "from shares of rows" in str(one)


def test_of_two_attributes_the_one_that_a_context_lacks_is_unknown_too() -> None:
    """A hundredth of what P(y|x) could vary by, for two attributes."""
    table = chain_table(attributes=2)
    found = learned(table, DPDilca(10_000, context="none"))["a0"]
    shares = np.bincount(table.codes[0], minlength=3) / table.schema.rows
    squares = 0.99 * np.square(shares[:, None] - shares) + 0.01 * (shares[:, None] + shares)
    assert found.matrix == pytest.approx(np.sqrt(squares) * (1 - np.eye(3)), abs=1e-3)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-6"), ("0.1", "1e-9"), (8, "0.01")])
def test_a_rho_is_the_largest_that_an_epsilon_has_room_for(epsilon: Any, delta: str) -> None:
    def costs(rho: Fraction) -> Any:
        loss = ZCDPAccountant(dpf.Relation.REPLACE_ONE, delta=delta).loss(ByRelation(rho, rho))
        assert loss is not None
        return loss.epsilon

    rho = DPDilca.zcdp(epsilon, delta).rho
    assert rho is not None
    assert costs(rho) <= Fraction(epsilon) < costs(rho + Fraction(10, 10**12))


@pytest.mark.parametrize("context", ["tree", "none"])
def test_a_tree_takes_as_many_cells_of_pairs_as_memory_allows(context: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = dpf.Schema([A, B, C])  # three pairs of nine cells each
    monkeypatch.setattr("dpframework_distance.subsets.MOST_CELLS", 27)
    assert DPDilca(1, context=context).plan(schema)
    monkeypatch.setattr("dpframework_distance.subsets.MOST_CELLS", 26)
    if context == "none":
        assert DPDilca(1, context=context).plan(schema)
        return
    with pytest.raises(dpf.InputError, match="needs 3 joint histograms with 27 cells, more than the 26 that memory"):
        DPDilca(1, context=context).plan(schema)


@pytest.mark.parametrize("relation", list(dpf.Relation))
@pytest.mark.parametrize("context", ["tree", "none"])
def test_a_plan_spends_its_budget_and_no_more(context: str, relation: dpf.Relation) -> None:
    schema = dpf.Schema([A, B, C, dpf.Numeric("age", 0, 90, cuts=range(10, 90, 2))])  # in two groups, by size
    study = dpf.Study(schema, epsilon=1, relation=relation)
    study.add("d", DPDilca(1, context=context))
    plan = study.plan()
    assert plan.total().epsilon == 1
    assert plan.refusals() == []
    steps = dict(plan.placed_steps())
    assert {"d/histograms 1 of 2", "d/histograms 2 of 2"} <= set(steps)
    assert ("d/edge" in steps) == (context == "tree")
    rho = dpf.Study(schema, epsilon=1, delta="1e-6", relation=relation)
    rho.add("d", DPDilca.zcdp(1, "1e-6", context=context))
    assert [step.mechanism.name for path, step in rho.plan().placed_steps() if path == "d/histograms"] == ["gaussian"]
    assert rho.plan().refusals() == []


@pytest.mark.parametrize(
    ("sizes", "rows", "epsilon", "choice"),
    [
        ((2, 5, 5, 5, 5, 5, 5, 5, 6, 7, 8, 14, 16, 41), 48_842, 1, 13),
        ((2, 5, 5, 5, 5, 5, 5, 5, 6, 7, 8, 14, 16, 41), 48_842, 100, None),
        ((2, 5, 5, 5, 5, 5, 5, 5, 6, 7, 8, 14, 16, 41), 48_842, "0.12", 3),
        ((2, 5, 5, 5, 5, 5, 5, 5, 6, 7, 8, 14, 16, 41), 48_842, "0.1", 0),  # 2 would not make a context
        ((2, 2, 2, 4, 4, 4, 4, 5, 5), 1_473, 1, 4),
        ((2, 2, 2, 4, 4, 4, 4, 5, 5), 1_473, "0.1", 0),
        ((2, 2, 2, 4, 4, 4, 4, 5, 5), 1_473, "0.3", 0),
        ((4,) * 34, 366, 1, 0),
        ((4,) * 64, 100_000, 1, 63),
        ((4,) * 64, None, 1, 0),
    ],
)
def test_what_is_learned_follows_from_public_facts(sizes: Any, rows: int | None, epsilon: Any, choice: Any) -> None:
    among = [dpf.Categorical(f"a{k}", [str(v) for v in range(s)]) for k, s in enumerate(sizes)]
    schema = dpf.Schema(among, rows=rows)
    budget = DistanceBudget(Fraction(epsilon), False, False)
    assert edges_or_contexts(among, range(len(among)), schema, budget, 3) == choice


@pytest.mark.parametrize(("amount", "zcdp"), [("4.85", False), ("0.0457", True)])
def test_contexts_are_chosen_from_the_rows_where_their_counts_have_a_noise_of_three_hundredths(
    amount: str, zcdp: bool
) -> None:
    """Of 20 attributes of four values: 45 joint histograms of 16 cells and 20,000 rows share seven tenths."""
    among = [dpf.Categorical(f"a{k}", list("abcd")) for k in range(20)]
    schema = dpf.Schema(among, rows=20_000)
    for factor, choice in ((Fraction("0.99"), 19), (Fraction("1.01"), None)):
        budget = DistanceBudget(Fraction(amount) * factor, zcdp, zcdp)
        assert edges_or_contexts(among, range(20), schema, budget, 3) == choice


def test_the_noisier_marginals_are_the_more_of_the_budget_they_get() -> None:
    sizes, budget = (2, 2, 2, 4, 4, 4, 4, 5, 5), DistanceBudget(Fraction(1), False, False)
    shares = [share_of_marginals(sizes, rows, budget) for rows in (10**9, 1_473, 100, None)]
    assert shares == [Fraction(1, 10), Fraction(1, 4), Fraction(1, 2), Fraction(2, 5)]
    rho = DistanceBudget(Fraction(1, 50), True, True)
    assert share_of_marginals(sizes, 10**9, rho) == Fraction(1, 10)
    assert share_of_marginals(sizes, 1_473, rho) == Fraction(7, 20)


def test_auto_plans_what_it_chooses() -> None:
    table = chain_table()
    for epsilon, target, step in ((1, None, "edge"), ("0.001", None, "histograms"), (1, "a0", "histogram of 3")):
        study = dpf.Study(table.schema, epsilon=1, relation="replace-one")
        study.add("d", DPDilca(epsilon, target=target))
        assert f"d/{step}" in dict(study.plan().placed_steps())
    for asked in ({"sharing": False}, {"estimates": "published"}, {"profiles": True}):
        study = dpf.Study(table.schema, epsilon=1, relation="replace-one")
        study.add("d", DPDilca(1, **asked))
        assert "d/edge" not in dict(study.plan().placed_steps())


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"context": "tree", "sharing": False}, "one model for all targets"),
        ({"context": "none", "estimates": "published"}, "one model for all targets"),
        ({"context": "none", "profiles": True}, "has no profiles"),
    ],
)
def test_what_a_model_does_not_know_is_refused(asked: dict[str, Any], why: str) -> None:
    with pytest.raises(dpf.InputError, match=why):
        DPDilca(1, **asked)


def test_noise_makes_a_tree_worse_than_shares_on_few_rows() -> None:
    """What "auto" is for: seeded, on 300 rows of eight attributes at epsilon 0.3."""
    table = chain_table(300, 8)
    true = dilca(table, context="max-dependency")
    close = {}
    for context in ("tree", "auto"):
        found = learned(table, DPDilca("0.3", context=context))
        above = np.triu_indices(3, 1)
        pairs = [(found[n].matrix[above], true[n].matrix[above]) for n in true]
        close[context] = np.mean([stats.pearsonr(a, b).statistic for a, b in pairs if np.ptp(a) > 1e-12])
    assert close["auto"] >= close["tree"] - 0.05


def test_trees_are_told_apart() -> None:
    marginals = np.concatenate([np.array([4.0, 3.0, 3.0])] * 3)
    table = chain_table(50, 3)
    (block,) = dpf.InMemory().load(table)
    query = PairDependence(table.schema)
    scores = query.answer(query.count(block), marginals=marginals, chosen=())
    for (a, b), score in zip(itertools.combinations(range(3), 2), scores, strict=True):
        counts = np.zeros((3, 3))
        np.add.at(counts, (table.codes[a], table.codes[b]), 1)
        assert score == np.abs(counts - np.rint(np.outer(marginals[:3], marginals[:3]) / 10)).sum()


# --- what is no more than noise ------------------------------------------------------------------------------------


def test_distances_that_are_noise_are_those_of_shares_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two runs at a small epsilon some distances are noise: these, and no others, are those of shares."""
    miner, asked, spread = (
        DPDilca("0.06", context="tree", context_size=2),
        signal_to_noise.is_noise,
        signal_to_noise.spread,
    )
    study = dpf.Study(chain_table(3_000).schema, epsilon=1, relation="replace-one")
    study.add("d", miner)
    falling = itertools.count(0, -1)  # what is looked at first differs more: shares
    found: dict[str, list[Any]] = {}
    for rule, says, differs in (
        ("asked", asked, spread),
        ("never", lambda *_: False, spread),
        ("always", lambda *_: True, spread),
        ("shares", lambda *_: True, lambda _: float(next(falling))),
    ):
        monkeypatch.setattr(signal_to_noise, "is_noise", says)
        monkeypatch.setattr(signal_to_noise, "spread", differs)
        runs = [study.run(chain_table(3_000), seed=seed)["d"] for seed in (1, 7)]
        found[rule] = [run[name] for run in runs for name in run]
    dropped = 0
    for one, kept, other, of_shares in zip(*found.values(), strict=True):
        assert not of_shares.context
        more = not kept.context or spread(of_shares.matrix**2) > spread(kept.matrix**2)
        np.testing.assert_array_equal(other.matrix, (of_shares if more else kept).matrix)
        dropped += one.context != kept.context
        np.testing.assert_array_equal(one.matrix, (other if one.context != kept.context else kept).matrix)
    assert 0 < dropped < sum(bool(kept.context) for kept in found["never"])
    assert any(other.context for other in found["always"])  # shares that differ less are not taken


def test_the_tables_of_edges_tell_of_their_attributes_rows_too() -> None:
    """A tenth of the budget is the marginals', whose squared errors alone would add up to 60 and more: seeded."""
    table = chain_table(3_000, 2)
    study = dpf.Study(table.schema, epsilon=5, relation="replace-one")
    study.add("d", DPDilca(5, context="tree", context_size=1))
    off = np.zeros(2)
    for seed in range(20):
        found = study.run(table, seed=seed)["d"]
        for k in range(2):
            off[k] += np.square(found[f"a{k}"].shares * 3_000 - np.bincount(table.codes[k])).sum() / 20
    assert (off < 10).all()


def test_distances_are_noise_if_their_squares_move_by_as_much_as_they_differ_as_a_mean() -> None:
    """Of squares .01, .04, .09 the squared differences from the mean add up to .00327."""

    def between(*upper: float) -> np.ndarray:
        found = np.zeros((3, 3))
        found[np.triu_indices(3, 1)] = upper
        return found + found.T

    distances = between(0.1, 0.2, 0.3)
    assert signal_to_noise.spread(distances**2) == pytest.approx(0.00327, abs=1e-5)
    half = between(0.1, 0.2, 0.2)  # squares move by .00167, the distances themselves by .0067
    more = between(0.1, 0.2, math.sqrt(0.17))  # by .0043
    assert not signal_to_noise.is_noise(distances, [half])
    assert signal_to_noise.is_noise(distances, [more])
    assert not signal_to_noise.is_noise(distances, [distances, more])  # a mean of .0021
    assert signal_to_noise.is_noise(distances, [half, more, more])
    flat = between(0.5, 0.5, 0.5)
    assert signal_to_noise.is_noise(flat, [flat]), "as much: none"


def test_noise_that_is_drawn_again_is_as_large_as_that_of_the_tables() -> None:
    pairs = {(0, 1): NoisyPair("a", "b", np.full((3, 3), 100.0) + 60 * np.eye(3), 400.0)}
    marginals = [np.array([150.0, 360.0, 570.0])] * 2  # far from the table's, so that the model's is another
    forest, seen = Forest.of(marginals, pairs), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Forest, "of", classmethod(lambda cls, margins, of: seen.append(of) or cls(margins, {})))
        again = signal_to_noise.redraw(forest, pairs)
    assert len(again) == signal_to_noise.DRAWS == 6
    noise = np.array([of[0, 1].counts - forest.tables[0, 1] for of in seen])
    assert stats.chi2.sf(np.square(noise).sum() / 400, noise.size) > 1e-6
    assert stats.chi2.cdf(np.square(noise).sum() / 400, noise.size) > 1e-6
    assert {of[0, 1].variance for of in seen} == {400.0}


# --- estimates by hand ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variance", "kept"),
    [
        (1e-12, 10),
        (40, (10 * (1 - 40 / 100) + math.sqrt(60)) / 2),
        (41.4, (10 * (1 - 41.4 / 100) + math.sqrt(58.6)) / 2),
        (41.5, math.sqrt(58.5) / 2),
        (99, 1 / 2),
        (101, 0),
        (1e6, 0),
    ],
)
def test_deviations_of_two_by_two_are_shrunk_by_their_noise(variance: float, kept: float) -> None:
    """25 are expected in each cell, and 10 more or less are there: 4 d**2 is their energy, and 4 v the noise's.

    Cell by cell (d**2 - v) / d**2 of it is left, where that is more than two deviations of the noise's energy: up to a
    v of d**2 / (1 + sqrt(2)), 41.4. The one singular value is 2 d, and that of noise 2 sqrt(v) at most: of it
    2 sqrt(d**2 - v) is left. The mean of both is taken.
    """
    half = np.array([50.0, 50.0])
    table = np.array([[35.0, 15.0], [15.0, 35.0]])
    expected = np.array([[25 + kept, 25 - kept], [25 - kept, 25 + kept]])
    assert dependence(table, half, half, variance) == pytest.approx(expected, abs=1e-6)


def test_deviations_of_two_by_three_have_one_direction_of_three_numbers() -> None:
    """Ten in each cell, and four more or less in four of them. With a variance of 2 for each of 6 cells:

    their energy of 64 is 52 above the noise's, a signal of 52 / 6 a cell: 4 is multiplied by that over itself and 2.
    The singular value 8 is y = 4 times sqrt(2 v), with b = 1/2.
    """
    rows, columns = np.array([30.0, 30.0]), np.array([20.0, 20.0, 20.0])
    signs = np.array([[1, -1, 0], [-1, 1, 0]])
    cells = 4 * (52 / 6) / (52 / 6 + 2)
    directions = 4 * 2 * math.sqrt((16 - 0.5 - 1) ** 2 - 2) / 4 / 8
    expected = 10 + signs * (cells + directions) / 2
    assert dependence(10.0 + 4 * signs, rows, columns, 2.0) == pytest.approx(expected, abs=1e-6)
    turned = dependence((10.0 + 4 * signs).T, columns, rows, 2.0)
    assert turned == pytest.approx(expected.T, abs=1e-6)


def test_information_is_what_entropies_share_whatever_the_sum() -> None:
    """Of rows with 1/2 each, columns with 1/4 and 3/4, and cells with 1/4, 1/4 and 1/2."""
    table = np.array([[1.0, 1.0], [0.0, 2.0]])
    of_columns = 2 - 3 / 4 * math.log2(3)
    for factor in (1, 100, 0.01):
        assert information(factor * table) == pytest.approx(1 + of_columns - 1.5)
    assert information(0 * table) == 0
    tables = {3: table, 1: table, 2: 2 * np.eye(2), 5: np.ones((2, 2))}
    assert [most_informative(tables, size) for size in (1, 2, 3, 9)] == [(2,), (1, 2), (1, 2, 3), (1, 2, 3)]


def test_the_number_of_rows_is_public_or_that_of_the_least_noise_in_all() -> None:
    """Of ten counts with a variance of 1 each, or of two with 4: the sum of the latter has less."""
    ten, two = NoisyHistogram(np.full(10, 5.0), 1.0), NoisyHistogram(np.array([40.0, 20.0]), 4.0)
    assert number_of_rows([ten, two], None) == number_of_rows([two, ten], None) == 60
    assert number_of_rows([ten, two], 70) == 70
    assert number_of_rows([NoisyHistogram(np.array([-3.0, 2.5]), 1.0)], None) == 1


@pytest.mark.parametrize("shift", [-15.0, 0.0, 3.0, 40.0])
def test_rows_are_normal_numbers_that_are_cut_off_and_shifted_until_they_add_up(shift: float) -> None:
    """With scipy's: where the means for one shift are added up beforehand, the same means and variances are found."""
    counts, deviation = np.array([-6.0, 2.0, 11.0, 30.0]), 4.0
    cut = stats.truncnorm((shift - counts) / deviation, np.inf, loc=counts - shift, scale=deviation)
    found = estimate_rows(NoisyHistogram(counts, deviation**2), cut.mean().sum())
    assert found.mean == pytest.approx(cut.mean(), rel=1e-6)
    assert found.variance == pytest.approx(cut.var(), rel=1e-4)


def test_shares_in_an_unknown_context_are_repeated_with_what_is_unknown_of_them() -> None:
    known = EstimatedRows(np.array([6.0, 3.0, 1.0]), np.array([4.0, 0.5, 100.0]))
    shares, variance = np.array([0.6, 0.3, 0.1]), np.array([0.04, 0.005, 0.09])  # of the last, 0.1 * 0.9 at most
    for unknown in (0.0, 0.15):
        found = shares_in_unknown(known, 5, unknown)
        assert found.shares == pytest.approx(np.repeat(math.sqrt(1 - unknown) * shares[:, None], 5, axis=1))
        expected = (1 - unknown) * variance + unknown * shares
        assert found.variance == pytest.approx(np.repeat(expected[:, None], 5, axis=1))


def test_noise_is_drawn_again_as_often_as_asked_and_always_the_same() -> None:
    histogram = NoisyHistogram(np.array([90.0, 50.0, 60.0]), 4.0)
    known = estimate_rows(histogram, 200)
    again = redraw_estimates(histogram, known, 5)
    assert len(again) == 5
    assert [one.mean.tolist() for one in redraw_estimates(histogram, known, 5)] == [one.mean.tolist() for one in again]
    assert len({one.mean[0] for one in again}) == 5
    for one in again:
        assert one.mean.sum() == pytest.approx(200)
        assert np.abs(one.mean - known.mean).max() < 6 * 2  # standard deviations: a fixed sequence
        assert one.variance == pytest.approx(np.full(3, 4.0), rel=1e-3)


def test_noise_that_all_counts_have_in_common_changes_no_estimate() -> None:
    """The sum is given: what counts is the noise in their differences."""
    counts = np.array([90.0, 50.0, 6.0])
    noisy = [NoisyHistogram(counts, 40 * (1 - 1 / 3) + of_sum / 9, of_sum) for of_sum in (120.0, 0.0, 900.0)]
    known = [estimate_rows(one, 150) for one in noisy]
    again = [redraw_estimates(one, known[0], 2)[1] for one in noisy]
    for found, expected in [*((one, known[0]) for one in known), *((one, again[0]) for one in again)]:
        assert found.mean == pytest.approx(expected.mean, rel=1e-9)
        assert found.variance == pytest.approx(expected.variance, rel=1e-9)


def test_one_sum_of_all_histograms_is_the_number_of_rows() -> None:
    few, many = NoisyHistogram(np.array([60.0, 41.0]), 9.0, 4.0), NoisyHistogram(np.full(8, 12.0), 2.5, 5.0)
    assert number_of_rows([many, few], None) == 101
    assert number_of_rows([many, NoisyHistogram(few.counts, 1.0, 6.0)], None) == 96


@pytest.mark.parametrize("rows", [None, 900])
def test_in_zcdp_marginals_are_residuals_with_errors_in_rows(rows: int | None) -> None:
    """A public number of rows is not released."""
    schema = dpf.Schema([dpf.Boolean("ill"), dpf.Categorical("town", ["A", "B", "C"])], rows=rows)
    study = dpf.Study(schema, epsilon=9, delta="1e-6")
    study.add("d", DPDilca(rho="0.01", context="none"))
    plan = study.plan()
    ((_, released),) = plan.placed_steps()
    assert released.query.sets == (((),) if rows is None else ()) + ((0,), (1,))  # type: ignore[attr-defined]
    variances = OneWayMarginals(tuple(schema), zcdp=True, rows=rows).variances(Fraction(1, 100), plan)
    distances, bound = plan.error_bounds()["d"]
    assert variances is not None
    assert (distances.what, bound.what, bound.steps) == ("distances", "histograms of ill, town", ("histograms",))
    assert bound.amount == Noisy.margin_of(max(variances))
