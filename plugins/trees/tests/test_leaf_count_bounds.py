"""The errors that trees state, and redescriptions from trees: of counts, of sums of counts, and hidden by noise."""

from __future__ import annotations

import attrs
import numpy as np
import polars as pl
import pytest
from dpframework_trees.complete_tree import CompleteTree
from dpframework_trees.leaf_count_bounds import CONSISTENT, CUT, OF_LEAVES, OF_NODES, PRUNED, STOPPED
from dpframework_trees.redescribe.matched_trees import MATCHED_SCHEMA, MatchedTrees
from dpframework_trees.redescription_extraction import Constraints, extract
from dpframework_trees.splits import Candidates
from scipy import stats

import dpframework as dpf
from dpframework.facts import View
from dpframework.results import Noisy

SCHEMA = dpf.Schema(
    [
        dpf.Boolean("ill", view="right"),
        dpf.Boolean("male", view="right"),
        dpf.Numeric("age", 0, 100, bins=8, view="left"),
        dpf.Categorical("town", ["a", "b", "c"], view="left"),
    ]
)
PAIRS = ("alt-expm", "alt-mcmc", "mcmc-tree-pair", "matched-trees")


def planned(miner, schema=SCHEMA, epsilon="0.05", **parameters):
    study = dpf.Study(schema, epsilon=epsilon, allow=["mcmc-converged"])
    study.add("it", dpf.miner(miner, epsilon=epsilon, **parameters))
    return study.plan()


def bounds(*given, **parameters):
    return {bound.what: bound for bound in planned(*given, **parameters).error_bounds()["it"]}


def codes(plan):
    return {finding.code for finding in plan.check()}


def test_nodes_above_leaves_are_off_by_the_noise_of_all_leaves():
    """Of 400 root counts of two classes 5 % are off by more: a run fails with a probability below 1e-7."""
    schema = attrs.evolve(SCHEMA, about_rows=3000)
    rng = np.random.default_rng(0)
    ill = rng.random(3000) < 0.4
    rows = {"ill": ill, "male": ill, "age": rng.uniform(0, 100, 3000), "town": rng.choice(["a", "b", "c"], 3000)}
    study = dpf.Study(schema, epsilon=400)
    for k in range(400):
        study.add(f"{k}", dpf.miner("dp-tree", target="ill", max_depth=2, attributes=["town", "male"], epsilon=1))
    bound = next(bound for bound in study.plan().error_bounds()["0"] if bound.what == OF_NODES)
    results = study.run(dpf.table_from_frame(pl.DataFrame(rows), schema), seed=1)
    exact = np.array([(~ill).sum(), ill.sum()])
    off = np.concatenate([np.abs(found.tree.root.counts - exact) for found in results.values()])
    assert stats.binomtest(int((off > bound.amount).sum()), 800, 0.05, alternative="greater").pvalue > 1e-7
    assert stats.binomtest(int((off >= 0.8 * bound.amount).sum()), 800, 0.05, alternative="less").pvalue > 1e-7


def test_the_bound_of_leaves_is_for_their_thinnest_budget_and_of_nodes_for_all_leaves():
    found = bounds("dp-id3", target="ill")
    assert found[OF_LEAVES].steps[0] == "parts/parts/parts/parts/parts/classes"
    assert found[OF_LEAVES].amount < found[OF_NODES].amount < 32 * found[OF_LEAVES].amount
    assert [bound.kind.name for bound in found.values()] == ["COUNTS", "COUNTS", "CHOICE"]
    assert found[OF_LEAVES].biases == (PRUNED, CUT)
    stops = bounds("dp-id3", target="ill", stopping="noisy-count", pruning=False)
    assert stops[OF_LEAVES].biases == (CONSISTENT, STOPPED, CUT)


def test_counts_are_hidden_by_noise_above_their_average():
    found = bounds("dp-id3", attrs.evolve(SCHEMA, about_rows=640), target="ill")
    assert (found[OF_LEAVES].likely, found[OF_NODES].likely) == (10, 320)  # of 32 leaves of two classes, and of two


def test_a_tree_of_thirty_levels_has_bounds_too():
    found = bounds("dp-id3", target="ill", max_depth=30)
    assert np.isfinite(found[OF_NODES].amount)


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ({"max_rows": 1_000_000}, set()),
        ({"max_rows": 500}, {"DP024", "DP025"}),
        ({"max_rows": 1_000_000, "about_rows": 500}, {"DP024", "DP025"}),
    ],
)
def test_noise_is_measured_against_the_rows_that_there_are(rows, wanted):
    plan = planned("dp-id3", attrs.evolve(SCHEMA, **rows), target="ill")
    assert codes(plan) & {"DP024", "DP025"} == wanted
    shares = {bound.share for bound in plan.error_bounds()["it"]}
    assert (shares == {None}) == ("about_rows" not in rows)  # never a share of max_rows


@pytest.mark.parametrize("miner", PAIRS)
def test_redescriptions_that_noise_hides_carry_a_mark(miner):
    """On a table of 7,252 rows: choices that may be off by thousands of rows, then supports too."""
    schema = attrs.evolve(SCHEMA, about_rows=7252)
    little, nothing, enough = (planned(miner, schema, epsilon) for epsilon in ("0.01", "0.001", "2"))
    assert "DP024" in codes(little)
    assert {"DP024", "DP025"} <= codes(nothing)
    assert not {"DP024", "DP025"} & codes(enough)
    supports = nothing.error_bounds()["it"][0]
    assert supports.what == "supports of redescriptions"
    assert supports.warning


def test_a_side_of_few_rows_lowers_what_a_support_can_be():
    schema = attrs.evolve(SCHEMA, about_rows=7252)
    bound = bounds("matched-trees", schema, "2", max_support=10)["supports of redescriptions"]
    assert bound.likely == 10
    assert "10 rows" in bound.warning


def test_no_redescription_of_leaves_adds_up_more_cells_than_the_bound_says():
    """And some adds up as many: of tables of random counts, four leaves by four."""
    tests = {view: Candidates.of_schema(MATCHED_SCHEMA, [a.name for a in MATCHED_SCHEMA.view(view)],
                                        multiway=False, cuts=True) for view in View}  # fmt: skip
    trees = {view: CompleteTree(some, np.array([0, 1, 2])) for view, some in tests.items()}
    lenient, rng, cells = Constraints(0, 0, 1, 1), np.random.default_rng(0), 0.0
    for _ in range(30):
        found, _ = extract(trees, rng.integers(0, 100, (4, 4)), 1.0, lenient)
        cells = max([cells, *(one.both.variance for one in found)])
    assert cells == 9
    part_of = bounds("alt-mcmc", starts=1, epsilon="1")["supports of redescriptions"]
    one_cell = part_of.biases[0]
    assert "is a sum of up to 9 noisy cells" in one_cell


def test_matched_trees_add_up_no_more_cells_than_their_bound_says():
    schema = attrs.evolve(MATCHED_SCHEMA, about_rows=2000)
    rng = np.random.default_rng(1)
    animals = {a.name: rng.random(2000) < 0.5 for a in schema.view(View.LEFT)}
    weather = dict(zip((a.name for a in schema.view(View.RIGHT)), animals.values(), strict=True))
    study = dpf.Study(schema, epsilon=4)
    study.add("it", MatchedTrees("4", trees=1, target_jaccard="0.01", min_support=1, max_support=2000))
    (found,) = study.run(dpf.table_from_frame(pl.DataFrame({**animals, **weather}), schema), seed=1).values()
    one_cell = Noisy.laplace(0, 1 / 1.6).variance
    assert max(one.both.variance for one in found) == pytest.approx(9 * one_cell)
    assert "is a sum of up to 9 noisy cells" in study.plan().error_bounds()["it"][0].biases[0]


def test_the_bound_of_a_sum_is_its_exact_quantile():
    """Of four leaves, each with discrete Laplace noise of scale 50: 5 % are further off, on both sides together."""
    amount = int(bounds("dp-tree", target="ill", max_depth=2)[OF_NODES].amount)
    size = 1 << 14
    one = np.fft.rfft(np.fft.ifftshift(stats.dlaplace(1 / 50).pmf(np.arange(size) - size // 2)))
    of_sum = np.fft.fftshift(np.fft.irfft(one**4, size))
    off = np.abs(np.arange(size) - size // 2)
    assert of_sum[off > amount].sum() <= 0.05 < of_sum[off > amount - 2].sum()
