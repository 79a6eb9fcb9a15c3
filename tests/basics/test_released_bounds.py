"""Bounds and bins that an earlier step of the same study released: answers, plans, sensitivities and planted bugs."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import polars as pl
import pytest
from exact_rows import look_at

import dpframework as dpf
from dpframework.basics import HistogramMiner, MeanMiner, PrivateBoundsMiner, VarianceMiner
from dpframework.basics.quantile_miners import MedianMiner
from dpframework.basics.sum_miner_and_one_number_base import SumMiner
from dpframework.cli import main
from dpframework.facts.privacy_losses import Relation
from dpframework.plan.nodes import beside
from dpframework.queries import AtReleasedBounds, BoundDistances, GroupMoments, QuantileScores, Query, Sensitivity
from dpframework.queries.base import Norm
from dpframework.queries.released_bounds_queries import ReleasedBins, ScaledSums
from dpframework.run.miner_chain import MinerChain
from dpframework.verify import audit, search_sensitivity
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.transcript import record

ADD, REPLACE = Relation
COST = dpf.Numeric("cost", -20, 100, bins=24)
SCHEMA = dpf.Schema([COST, dpf.Boolean("ill")])
RNG = np.random.default_rng(3)
COSTS, ILL = np.round(RNG.gamma(4, 5, 3000), 2), RNG.random(3000) < 0.3
TABLE = dpf.table_from_frame(pl.DataFrame({"cost": COSTS, "ill": ILL}), SCHEMA)
MUCH = 10**6  # an epsilon that leaves nearly no noise


def study_of(*more: tuple[str, dpf.Miner], schema: dpf.Schema = SCHEMA, relation: str = ADD) -> dpf.Study:
    study = dpf.Study(schema, epsilon=10**9, relation=relation)
    study.add("found", PrivateBoundsMiner("cost", outside="0.05", epsilon=MUCH))
    for name, miner in more:
        study.add(name, miner)
    return study


def clamped(results: dpf.Results) -> np.ndarray:
    found = results["found"]
    assert -20 <= found.lower < found.upper < 100  # narrower than the schema's
    return np.clip(COSTS, found.lower, found.upper)


def value_of(kind: str, values: np.ndarray) -> float:
    return float({"mean": np.mean, "sum": np.sum, "variance": np.var, "median": np.median}[kind](values))


@pytest.mark.parametrize("kind", ["mean", "sum", "variance", "median"])
@pytest.mark.parametrize("rows", [None, 3000])
def test_a_number_is_of_values_clamped_to_the_bounds_that_were_released(kind, rows):
    schema = attrs.evolve(SCHEMA, rows=rows)
    asked = {"attribute": "cost", "bounds": "found", "epsilon": MUCH}
    study = study_of(
        ("whole", dpf.miner(kind, **asked)),
        ("by", dpf.miner(kind, by="ill", **asked)),
        ("where", dpf.miner(kind, where={"equals": ["ill", "true"]}, **asked)),
        schema=schema,
        relation=ADD if rows is None else REPLACE,
    )
    table = dpf.table_from_frame(pl.DataFrame({"cost": COSTS, "ill": ILL}), schema)
    results = study.run(table, seed=1)
    values = clamped(results)
    near: Any = {"abs": 0.51} if kind == "median" else {"rel": 1e-4}  # a median is a whole number here
    assert results["whole"].value == pytest.approx(value_of(kind, values), **near)
    assert results["where"].value == pytest.approx(value_of(kind, values[ILL]), **near)
    by = dict(zip(("false", "true"), [one.value for one in results["by"].results], strict=True))
    assert by == {
        "false": pytest.approx(value_of(kind, values[~ILL]), **near),
        "true": pytest.approx(value_of(kind, values[ILL]), **near),
    }


def test_a_histogram_has_equal_bins_between_the_bounds_that_were_released():
    results = study_of(("bins", HistogramMiner("cost", bins=4, bounds="found", epsilon=MUCH))).run(TABLE, seed=1)
    found = results["found"]
    edges = np.linspace(found.lower, found.upper, 5)[1:-1]
    assert results["bins"].counts.tolist() == np.bincount(np.searchsorted(edges, COSTS, "right"), minlength=4).tolist()
    assert results["bins"].labels[0][0] == f"[-20, {edges[0]:g})"  # what lies beyond is in the outer bins
    public = study_of(("bins", HistogramMiner("cost", bins=4, bounds=[0, 40], epsilon=MUCH))).run(TABLE, seed=1)
    assert public["bins"].labels[0] == ("[-20, 10)", "[10, 20)", "[20, 30)", "[30, 100]")


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_a_histogram_is_cut_at_quantiles_that_were_released(relation):
    schema = attrs.evolve(SCHEMA, rows=None if relation is ADD else 3000)
    names = [f"cut {k}" for k in range(1, 4)]
    cuts = [(name, dpf.miner("quantile", attribute="cost", quantile=k / 4, bounds="found", epsilon=MUCH))
            for k, name in enumerate(names, 1)]  # fmt: skip
    study = study_of(
        *cuts, ("bins", HistogramMiner("cost", bins=names, epsilon=MUCH)), schema=schema, relation=relation
    )
    table = dpf.table_from_frame(pl.DataFrame({"cost": COSTS, "ill": ILL}), schema)
    results = study.run(table, seed=1)
    edges = [results[name].value for name in names]
    assert results["bins"].counts.tolist() == np.bincount(np.searchsorted(edges, COSTS, "right")).tolist()
    assert max(results["bins"].counts) < 900  # a quarter each, about
    assert results["bins"].exact_total == (relation is REPLACE)


def test_cuts_that_fall_together_make_fewer_bins():
    names = ["a", "b"]
    study = dpf.Study(SCHEMA, epsilon=10**9)
    for name in names:
        study.add(name, MedianMiner("cost", epsilon=MUCH))
    study.add("bins", HistogramMiner("cost", bins=names, epsilon=MUCH))
    assert list(study.plan().steps())[-1].facts.answer_length == 3
    assert len(study.run(TABLE, seed=1)["bins"].counts) == 2


def test_the_total_stands_in_the_plan_before_any_bounds_are_known():
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("found", dpf.miner("private-bounds", attribute="cost", epsilon="0.3"))
    study.add("mean", dpf.miner("mean", attribute="cost", bounds="found", epsilon="0.7"))
    plan = study.plan()
    assert plan.total().epsilon == 1
    assert not plan.refusals()
    *_, step = plan.steps()
    assert step.uses == (beside("found"),)
    places = {placed.path: placed for placed in plan.index.nodes if placed.name}
    assert [plan.index.nodes[n].path for n in places["mean/distances"].uses] == ["found"]
    again = type(plan).from_json(plan.to_json())
    assert again.hash == plan.hash
    assert [again.index.nodes[n].path for n in again.index.nodes[-1].uses] == ["found"]
    widest = plan.with_rows(1000).error_bounds()["mean"][0]
    assert "smaller in proportion if narrower bounds are released" in widest.note


def test_noise_shrinks_with_the_bounds_while_epsilon_stays():
    def spread(bounds: Any) -> float:
        study = dpf.Study(SCHEMA, epsilon=10**9)
        study.add("found", PrivateBoundsMiner("cost", outside="0.05", epsilon=MUCH))
        study.add("sum", SumMiner("cost", bounds=bounds, epsilon=1))
        return float(np.std([study.run(TABLE, seed=seed)["sum"].value for seed in range(100)]))

    results = study_of().run(TABLE, seed=1)
    upper = results["found"].upper
    assert spread("found") == pytest.approx(np.sqrt(2) * upper, rel=0.3)
    assert spread(None) == pytest.approx(np.sqrt(2) * 100, rel=0.3)


def test_shares_of_a_budget_are_found_for_steps_that_are_given_bounds():
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("found", dpf.share("0.25", "private-bounds", attribute="cost"))
    study.add("mean", dpf.share("0.75", "mean", attribute="cost", bounds="found"))
    assert study.plan().total().epsilon == 1
    assert study.run(TABLE, seed=1)["mean"].value == pytest.approx(20, abs=2)


@pytest.mark.parametrize(
    ("miner", "text"),
    [
        (MeanMiner("cost", bounds="fuond", epsilon=1), "uses the result of step 'fuond', and no earlier step has"),
        (
            MeanMiner("cost", bounds="count", epsilon=1),
            "the parameter 'bounds' refers to step 'count', which is of miner 'count'",
        ),
        (MeanMiner("age", bounds="found", epsilon=1), "finds bounds of 'cost' and not of 'age'"),
        (HistogramMiner("cost", bins=["found"], epsilon=1), "name steps of miner 'quantile' without by"),
        (HistogramMiner("age", bins=["half"], epsilon=1), "finds a point of 'cost' and not of 'age'"),
        (HistogramMiner("age", bins=3, bounds="found", epsilon=1), "finds bounds of 'cost' and not of 'age'"),
    ],
)
def test_a_step_that_cannot_serve_is_refused_before_anything_runs(miner, text):
    schema = dpf.Schema([COST, dpf.Numeric("age", 0, 90, bins=3), dpf.Boolean("ill")])
    study = dpf.Study(schema, epsilon=10**9)
    study.add("found", PrivateBoundsMiner("cost", epsilon=1))
    study.add("half", MedianMiner("cost", epsilon=1))
    study.add("count", dpf.miner("count", epsilon=1))
    with pytest.raises(dpf.InputError, match=text):
        study.add("asked", miner)
    assert "asked" not in study.miners


def test_a_step_is_given_results_of_earlier_ones_only():
    study = dpf.Study(SCHEMA, epsilon=1)
    with pytest.raises(dpf.InputError, match="step 'mean' uses the result of step 'found', and no earlier step has"):
        study.add("mean", MeanMiner("cost", bounds="found", epsilon=1))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"bins": ["a", 3]}, "bins mixes names of steps and edges"),
        ({"bins": ["a", "a"]}, "twice"),
        ({"bounds": "found"}, "without a number of bins between them"),
        ({"bounds": [0, 1], "bins": [0, 1]}, "without a number of bins between them"),
    ],
)
def test_bins_and_bounds_that_contradict_each_other_are_refused(given, text):
    with pytest.raises(dpf.InputError, match=text):
        HistogramMiner("cost", epsilon=1, **given)


def test_a_use_of_a_part_that_is_not_beside_is_a_finding():
    study = dpf.Study(SCHEMA, epsilon=10**9)
    study.add("found", PrivateBoundsMiner("cost", epsilon=1))
    asked, noise = AtReleasedBounds(BoundDistances(COST)), dpf.mechanisms.Laplace(1)
    study.add_plan("one", dpf.step("sums", asked, noise, uses=[beside("fuond")]))
    (refused,) = study.plan().refusals()
    assert refused.code == "DP016"
    assert "'sums' in 'one' uses 'fuond', which is not beside 'one'; " in refused.message


# Sensitivities, for bounds of all kinds.

SMALL = dpf.Numeric("x", -4, 4, bins=4)
POSITIVE, NEGATIVE = dpf.Numeric("x", 0, 8, bins=4), dpf.Numeric("x", -8, 0, bins=4)
FAR, COLD = dpf.Numeric("x", 10, 90, bins=4), dpf.Numeric("x", -90, -30, bins=4)
SICK = dpf.Boolean("sick")
BOUNDS = {
    FAR: [(10, 90), (10, 10.5), (10, 30), (80, 90)],
    COLD: [(-90, -30), (-31, -30), (-90, -70)],
    SMALL: [(-4, 4), (-4, -3), (-1, 2), (0, 3), (-2, 0), (-0.125, 3.3)],
    POSITIVE: [(0, 8), (0, 1), (5, 6), (2.5, 7)],
    NEGATIVE: [(-8, 0), (-3, -1)],
}
QUERIES: list[Query] = [
    AtReleasedBounds(BoundDistances(SMALL)),
    AtReleasedBounds(GroupMoments(SMALL, by=[SICK], degree=2)),
    AtReleasedBounds(QuantileScores(SMALL, quantile="0.75")),
    *(ScaledSums(one, by=by) for one in (SMALL, POSITIVE, NEGATIVE, FAR, COLD) for by in ((), (SICK,))),
    ScaledSums(SMALL, where=dpf.Equals("sick", "true")),
    *(ScaledSums(one, centred=True) for one in (SMALL, POSITIVE, FAR)),
    ScaledSums(FAR, where=dpf.Equals("sick", "true")),
]


def attribute_of(query: Query) -> dpf.Numeric:
    return query.attribute if isinstance(query, ScaledSums) else query.query.attribute


CASES = [
    pytest.param(query, bounds, relation, id=f"{query.text}, {bounds}, {relation}")
    for query, relation in itertools.product(QUERIES, Relation)
    for bounds in BOUNDS[attribute_of(query)]
]


@pytest.mark.parametrize(("query", "bounds", "relation"), CASES)
def test_the_declared_sensitivity_holds_for_every_pair_of_bounds(query, bounds, relation):
    schema = dpf.Schema([attribute_of(query), SICK], rows=None if relation is ADD else 5)
    found = search_sensitivity(query, schema, relation, inputs={"bounds": bounds}, pairs=120)
    assert found.passed, str(found)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.text)
def test_the_declared_sensitivity_is_reached_at_some_bounds(query, relation):
    schema = dpf.Schema([attribute_of(query), SICK], rows=None if relation is ADD else 5)
    bounds = BOUNDS[attribute_of(query)]
    found = [search_sensitivity(query, schema, relation, inputs={"bounds": one}, pairs=150) for one in bounds]
    for measured in zip(*(one.measured for one in found), strict=True):
        if measured[0].norm == "spread" and isinstance(query, ScaledSums):
            continue  # of scores to select from, which sums are none
        assert max(one.ratio for one in measured) == pytest.approx(1, abs=1e-6), measured[0].norm


def test_a_replaced_row_that_has_a_value_far_from_0_moves_a_sum_less_than_one_that_comes():
    far, missing = ScaledSums(FAR), ScaledSums(attrs.evolve(FAR, missing=True))
    step = Fraction(1, 2**30)
    for query, moved in ((far, Fraction(8, 9)), (ScaledSums(COLD), Fraction(2, 3)), (missing, Fraction(1))):
        assert moved <= query.sensitivities[0].replace_one <= moved + 2 * step
        assert query.sensitivities[0].add_or_remove_one == 1
    assert [one.replace_one for one in ScaledSums(FAR, by=[SICK]).sensitivities] == [2, 2, 1]
    # from the middle of its bounds, a row may add as much below as above, however far from 0 all values are
    assert [one.replace_one for one in ScaledSums(FAR, centred=True).sensitivities] == [2, 4, 2]


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("cuts", [(), (1.0,), (-3.5, 0.25), (-1.0, 0.0, 2.0)])
def test_counts_in_released_bins_change_as_any_counts_of_cells(cuts, relation):
    attribute = attrs.evolve(SMALL, missing=True)
    query = ReleasedBins(attribute, 4)
    schema = dpf.Schema([attribute], rows=None if relation is ADD else 5)
    found = search_sensitivity(query, schema, relation, inputs={"cuts": cuts}, pairs=400)
    assert found.passed, str(found)
    assert found.tightness == pytest.approx(1)
    with pytest.raises(dpf.InputError, match="4 cuts make more than the 4 bins that were planned"):
        query.at([-2, -1, 1, 2])


@pytest.mark.parametrize("bounds", [(3, 1), (-5, 2), (0, 9), (1, 1), (float("nan"), 2)])
def test_bounds_in_the_wrong_order_or_beyond_the_public_ones_are_refused(bounds):
    for query in (AtReleasedBounds(BoundDistances(SMALL)), ScaledSums(SMALL)):
        with pytest.raises(dpf.InputError):
            query.tables(bounds=bounds)


# Replays, and planted bugs.

EXAMPLES = {
    f"{cls.name} {name}": example
    for cls in (MeanMiner, SumMiner, VarianceMiner, MedianMiner, HistogramMiner)
    for name, example in cls.examples().items()
    if isinstance(example.miner, MinerChain)
}


@pytest.mark.parametrize(("name", "relation"), list(zip(EXAMPLES, itertools.cycle(Relation), strict=False)))
def test_examples_with_released_bounds_pass_the_audit(name, relation):
    example = EXAMPLES[name]
    report = audit(example.miner, example.schema, relation, replays=100)
    assert report.passed, str(report)


def test_audited_runs_release_other_bounds_than_the_public_ones():
    example = EXAMPLES["mean released"]
    subject = Subject(example.miner, example.schema, ADD)
    seen = {
        record(subject, bytes([k % 5] * 6), k, flattening=1 + k % 3).releases[-1].inputs["bounds"] for k in range(30)
    }
    assert len(seen) > 3


@attrs.frozen
class OwnBounds(Query):
    """The sum in units of the largest value of the rows, which is a bound that nobody released."""

    name = "own-bounds"
    integer = False
    of: dpf.Numeric

    @property
    def answer_length(self):
        return 1

    @property
    def sensitivities(self):
        return (Sensitivity(Norm.L1, 1, 2, source="each row counts as its share of the largest value"),)

    def evaluate(self, engine, rows, **inputs):
        values = np.concatenate([np.zeros(0), *engine.map(rows, lambda block: block.values(self.of.name))])
        size = np.abs(values).max(initial=0)
        return np.array([values.sum() / size if size else 0.0])


@attrs.frozen
class FixedUnit(ScaledSums.__mro__[1]):  # the base of numbers that add up over groups
    """Declares a change in units of the released bounds, and counts in twice as many."""

    name = "fixed-unit"
    sensitivities = ScaledSums.sensitivities
    _least_share = ScaledSums._least_share
    answer_length = ScaledSums.answer_length

    def tables(self, *, bounds=None, **inputs):
        return ScaledSums(self.attribute).tables(bounds=bounds)

    def answer(self, counts, *, bounds=None, **inputs):
        lower, upper = bounds or (self.lower, self.upper)
        return ScaledSums(self.attribute).answer(counts) * (1 if upper - lower > 4 else 2)


FixedUnit.centred = False


def test_a_bound_that_is_read_from_the_rows_fails_the_search():
    found = search_sensitivity(OwnBounds(SMALL), dpf.Schema([SMALL]), ADD, pairs=400)
    assert not found.passed
    assert "DOES NOT HOLD" in str(found)


def test_a_change_that_grows_at_narrow_bounds_fails_the_search_there():
    schema = dpf.Schema([SMALL])
    assert search_sensitivity(FixedUnit(SMALL), schema, ADD, inputs={"bounds": (-4, 4)}, pairs=300).passed
    assert not search_sensitivity(FixedUnit(SMALL), schema, ADD, inputs={"bounds": (-1, 2)}, pairs=300).passed


def largest(table: dpf.PrivateTable) -> float:
    """Return the largest value of the rows, past the gate."""
    found = look_at(table, lambda block: block.values("change").max(initial=-1))
    return float(max(found, default=-1.0))


@attrs.frozen
class BoundsOfRows(dpf.Miner):
    """A mean whose upper bound is the largest value of the rows, where another bound was released."""

    name = "bounds-of-rows"
    right: bool = False

    sources = ("found",)

    def plan(self, schema):
        asked = AtReleasedBounds(BoundDistances(schema["change"]))
        return dpf.step("sums", asked, dpf.mechanisms.Laplace(1), uses=[beside("found")])

    def mine(self, table):
        found = table.given["found"]
        upper = found.upper if self.right else max(largest(table), -3.0)
        return table.release("sums", bounds=(-4.0, upper)).tolist()


@pytest.mark.parametrize("right", [True, False])
def test_an_input_that_follows_from_rows_and_not_from_the_released_bounds_fails_the_audit(right):
    schema = dpf.Schema([dpf.Numeric("change", -4, 4, bins=4)])
    search = PrivateBoundsMiner("change", outside="0.2", epsilon=1)
    report = audit(MinerChain({"found": search, "then": BoundsOfRows(right)}), schema, ADD, replays=200)
    assert report.passed == right
    if not right:
        assert "the inputs given to 'audited/then/sums' differ" in str(report)


def test_verification_of_a_study_replays_a_step_with_those_that_it_is_given(tmp_path, capsys):
    (tmp_path / "s.schema.toml").write_text(
        '[[attribute]]\nname = "cost"\nkind = "numeric"\nlower = 0\nupper = 8\nbins = 4\n'
    )
    (tmp_path / "study.toml").write_text(
        '[data]\npath = "s.csv"\nschema = "s.schema.toml"\n[privacy]\nepsilon = 1\n'
        '[[step]]\nname = "found"\nminer = "private-bounds"\nshare = 0.5\nparams = { attribute = "cost" }\n'
        '[[step]]\nname = "mean"\nminer = "mean"\nshare = 0.5\nparams = { attribute = "cost", bounds = "found" }\n'
    )
    place = str(tmp_path / "study.toml")
    limits = ["--seconds", "10", "--replays", "200", "--runs", "0"]
    assert main(["verify", place, "--example", "mean", *limits]) == 0
    assert "at released bounds" in capsys.readouterr().out


def test_a_table_is_given_what_its_miner_names_and_its_parts_too():
    seen = {}

    @attrs.frozen
    class Looks(dpf.Miner):
        name = "looks"
        sources = ("found",)

        def plan(self, schema):
            count = dpf.step("rows", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1))
            return dpf.sequential(dpf.parallel(count, by=schema["ill"]), dpf.sequential(count, name="inner"))

        def mine(self, table):
            seen["own"], seen["inner"] = table.given, table.scope("inner").given
            seen["parts"] = [part.given for part in table.partition("ill")]
            with pytest.raises(TypeError):
                table.given["other"] = 1

    results = study_of(("first", dpf.miner("count", epsilon=1)), ("looks", Looks())).run(TABLE, seed=1)
    assert seen["own"] == {"found": results["found"]}
    assert seen["inner"] == seen["own"]
    assert seen["parts"] == [seen["own"]] * 2


def test_a_run_that_is_resumed_goes_on_within_the_bounds_that_it_had_released(tmp_path, monkeypatch):
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("found", PrivateBoundsMiner("cost", outside="0.05", epsilon="0.5"))
    study.add("sum", SumMiner("cost", bounds="found", epsilon="0.5"))
    ledger = dpf.Ledger.create(tmp_path / "ledger")
    ledger.open("people", epsilon=1)
    ledger.approve("people", study.plan(), by="the board")
    journal = tmp_path / "journal"

    def stop(self, table):
        released.append(table.given["found"])
        raise KeyboardInterrupt

    released: list[Any] = []
    with monkeypatch.context() as patched:
        patched.setattr(SumMiner, "mine", stop)
        with pytest.raises(dpf.RunStopped):
            study.run(TABLE, ledger=ledger.run("people", journal=journal))
    again = ledger.run("people", journal=journal)
    results = study.run(TABLE, ledger=again)
    assert again.before > 0
    assert results["found"] == released[0]
    assert ledger.data_set("people").left == 0
