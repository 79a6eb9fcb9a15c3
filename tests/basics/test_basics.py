"""The everyday miners: their privacy, how tight it is, and what their results say."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any, ClassVar

import attrs
import numpy as np
import polars as pl
import pytest

import dpframework as dpf
from dpframework.basics import (
    CountMiner,
    CrosstabMiner,
    HistogramMiner,
    MeanMiner,
    QuantileMiner,
    RowsPerUnitMiner,
    SumMiner,
)
from dpframework.facts.privacy_losses import Relation
from dpframework.mechanisms import DiscreteLaplace, KNorm
from dpframework.plan.nodes import Step, walk
from dpframework.results import Estimate, Frequencies, Noisy, QuantileEstimate
from dpframework.verify.assertions import assert_private
from dpframework.verify.conformance_suites import MinerConformance

REPLAYS = 800  # of each audit


class TestCount(MinerConformance):
    miner = CountMiner
    replays = REPLAYS
    # a replaced row leaves the number of all rows as it is, which is public then: there is nothing to lose
    min_tightness: ClassVar = {"rows": 0.0}


class Tight(MinerConformance):
    replays = REPLAYS
    min_tightness = 0.9  # no claim is loose


class TestHistogram(Tight):
    miner = HistogramMiner


class TestCrosstab(Tight):
    miner = CrosstabMiner


class TestSum(Tight):
    miner = SumMiner
    more_replays: ClassVar = {"released-rows": 4000}


class TestMean(Tight):
    miner = MeanMiner
    more_replays: ClassVar = {"released-rows": 4000}


class TestQuantile(Tight):
    miner = QuantileMiner
    replays = 2 * REPLAYS


class TestRowsPerUnit(MinerConformance):
    miner = RowsPerUnitMiner
    replays = REPLAYS
    # see `Example.loose`; and the people of the kit have all rows that they may have: where one takes another's place,
    # their number of rows does not change by as much as it may
    min_tightness = 0.3


@attrs.frozen
class HalfNoise(dpf.Miner):
    """A sum whose sensitivity is that of the width of the bounds, under add-or-remove-one too: a known mistake."""

    name = "half-noise"
    epsilon: Any = Fraction(1)

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        declared = dpf.queries.BoundedSum(schema["age"]).sensitivities
        width = [attrs.evolve(one, add_or_remove_one=one.replace_one, rise=one.replace_one) for one in declared]
        return dpf.step("sum", Mistaken(schema["age"], tuple(width)), dpf.mechanisms.Laplace(self.epsilon))

    def mine(self, table: dpf.PrivateTable) -> float:
        return table.release("sum")


@attrs.frozen
class Mistaken(dpf.Query):
    name = "mistaken"
    integer = False
    answer_length = 1
    attribute: dpf.Attribute
    sensitivities: Any

    def count(self, block: dpf.Block, **inputs: Any) -> np.ndarray:
        return dpf.queries.BoundedSum(self.attribute).count(block)

    def answer(self, counts: np.ndarray, **inputs: Any) -> Any:
        return dpf.queries.BoundedSum(self.attribute).answer(counts)


def test_a_sum_charged_for_the_width_of_its_bounds_is_caught() -> None:
    """Values from 40 to 60: a row that is added adds 60, not 20."""
    schema = dpf.Schema([dpf.Numeric("age", 40, 60, bins=2)])
    with pytest.raises(AssertionError):
        assert_private(HalfNoise(), schema, Relation.ADD_OR_REMOVE_ONE, replays=300)
    assert_private(HalfNoise(), schema, Relation.REPLACE_ONE, replays=300)


ROWS = 400
AGES = dpf.Numeric("age", 0, 90, bins=9, missing=True)
PEOPLE = dpf.Schema([AGES, dpf.Boolean("ill"), dpf.Categorical("town", ["A", "B", "C"])])


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    rng = np.random.default_rng(8)
    ages = [None if rng.random() < 0.1 else float(rng.integers(0, 91)) for _ in range(ROWS)]
    return pl.DataFrame({"age": ages, "ill": rng.random(ROWS) < 0.3, "town": rng.choice(["A", "B", "C"], ROWS)})


def results(people: pl.DataFrame, seed: int, schema: dpf.Schema = PEOPLE, **miners: dpf.Miner) -> dpf.Results:
    return study_of(schema, **miners).run(dpf.table_from_frame(people, schema), seed=seed)


def study_of(schema: dpf.Schema, **miners: dpf.Miner) -> dpf.Study:
    relation = "add-or-remove-one" if schema.rows is None else "replace-one"
    study = dpf.Study(schema, epsilon=10**6, delta="1e-9", relation=relation)
    for name, miner in miners.items():
        study.add(name, miner)
    return study


def exact_mean(people: pl.DataFrame) -> float:
    return float(people["age"].mean())  # type: ignore[arg-type]


NEARLY_EXACT = 10**4


def test_with_hardly_any_noise_each_says_what_is_true(people: pl.DataFrame) -> None:
    where = {"and": [{"equals": ["ill", "true"]}, {"below": ["age", 30]}]}
    found = results(
        people,
        seed=1,
        count=dpf.miner("count", where=where, epsilon=NEARLY_EXACT),
        ages=dpf.miner("histogram", attribute="age", bins=[0, 18, 65, 90], epsilon=NEARLY_EXACT),
        cross=dpf.miner("crosstab", attributes=["town", "ill", "age"], epsilon=NEARLY_EXACT),
        total=dpf.miner("sum", attribute="age", bounds=[0, 50], epsilon=NEARLY_EXACT),
        mean=dpf.miner("mean", attribute="age", epsilon=NEARLY_EXACT),
        median=dpf.miner("quantile", attribute="age", epsilon=NEARLY_EXACT),
    )
    young = people.filter(pl.col("ill") & (pl.col("age") < 30))
    assert found["count"].value == len(young)
    age = people["age"]
    edges = [int(((age >= low) & (age < high)).sum()) for low, high in ((0, 18), (18, 65), (65, 91))]
    assert found["ages"].counts.tolist() == [*edges, age.null_count()]
    assert found["ages"].labels == (("[0, 18)", "[18, 65)", "[65, 90]", "missing"),)
    b_ill = people.filter((pl.col("town") == "B") & pl.col("ill"))
    assert found["cross"]["B", "true", "missing"].value == b_ill["age"].null_count()
    assert found["cross"].margin("ill", "town")["true", "B"].value == len(b_ill)
    assert found["total"].value == pytest.approx(age.clip(0, 50).sum(), abs=0.5)
    assert found["mean"].value == pytest.approx(exact_mean(people), abs=0.01)
    assert found["median"].value == pytest.approx(age.median(), abs=1)


RELEASED = {
    "count": (CountMiner({"equals": ["ill", "true"]}, epsilon=1), lambda p: p["ill"].sum()),
    "count, zCDP": (CountMiner({"equals": ["ill", "true"]}, rho="0.1"), lambda p: p["ill"].sum()),
    "sum": (SumMiner("age", epsilon=1), lambda p: p["age"].sum()),
    "sum, zCDP": (SumMiner("age", rho="0.1"), lambda p: p["age"].sum()),
    "mean": (MeanMiner("age", epsilon="0.2"), exact_mean),
    "mean, zCDP": (MeanMiner("age", rho="0.01"), exact_mean),
}


@pytest.mark.parametrize("name", RELEASED)
def test_an_interval_holds_the_exact_number_19_times_in_20(name: str, people: pl.DataFrame) -> None:
    """Of 300 runs 285 are expected, and fewer than 260 with a probability of 3e-8 if each holds with 0.95."""
    miner, exact = RELEASED[name]
    assert held(people, miner, exact(people)) >= 260


def held(people: pl.DataFrame, miner: dpf.Miner, exact: float, schema: dpf.Schema = PEOPLE) -> int:
    study, table = study_of(schema, one=miner), dpf.table_from_frame(people, schema)
    runs = [study.run(table, seed=seed)["one"] for seed in range(300)]
    assert len({run.value for run in runs}) > 5  # drawn anew each time
    return sum(run.low <= exact <= run.high for run in runs)


class Told(dpf.Observer):
    """Keeps what is released."""

    def released(self, release: dpf.Release) -> None:
        self.output = release.output


def told(frame: pl.DataFrame, seed: int, schema: dpf.Schema, miner: dpf.Miner) -> tuple[Any, Estimate]:
    """Return what a miner releases, and what it makes of it."""
    study = dpf.Study(schema, epsilon=100, relation="add-or-remove-one" if schema.rows is None else "replace-one")
    study.add("one", miner)
    heard = Told()
    return heard, study.run(dpf.table_from_frame(frame, schema), seed=seed, observers=[heard])["one"]


def test_a_mean_lies_where_the_pair_of_noisy_sums_says_and_in_the_middle_if_both_are_nothing() -> None:
    """Of no rows: noise alone, of which a half is below 0 each."""
    schema = dpf.Schema([dpf.Numeric("age", 20, 60, bins=2)])
    means = set()
    for seed in range(24):
        heard, mean = told(
            pl.DataFrame({"age": pl.Series([], dtype=pl.Float64)}), seed, schema, MeanMiner("age", epsilon=1)
        )
        below, above = (max(float(value), 0.0) for value in heard.output)
        share = 0.5 if below == above == 0 else below / (below + above)
        assert mean.value == pytest.approx(20 + 40 * share)
        assert 20 <= mean.low <= mean.value <= mean.high <= 60
        means.add(round(mean.value, 6))
    assert means >= {20.0, 40.0, 60.0}


def test_sums_and_means_reach_as_far_as_their_noise() -> None:
    """Laplace noise of scale b is beyond b log 20 with 5 %; rounding to the lattice adds some millionths."""
    frame = pl.DataFrame({"age": [30.0, 50.0, 70.0, 90.0]})
    of_any = dpf.Schema([dpf.Numeric("age", 20, 100, bins=2)])
    for schema, miner, name, scale in (
        (of_any, SumMiner("age", epsilon="0.5"), "sum of age", 100 / 0.5),
        (of_any, SumMiner("age", bounds=[40, 60], epsilon=1), "sum of age", 60),
        (attrs.evolve(of_any, rows=4), SumMiner("age", epsilon=1), "sum of age", 80),
        (attrs.evolve(of_any, rows=4), MeanMiner("age", bounds=[40, 80], epsilon=100), "mean of age", 40 / 100 / 4),
    ):
        heard, found = told(frame, 3, schema, miner)
        assert found.what == name
        centre, rows = (60, 4) if name.startswith("mean") else (0, 1)
        assert found.value == pytest.approx(centre + heard.output / rows)
        reach = scale * math.log(20)
        assert (found.value - found.low, found.high - found.value) == pytest.approx((reach, reach), rel=1e-4)


def test_a_count_is_what_was_released_and_says_of_what() -> None:
    frame = pl.DataFrame({"age": [30.0, 50.0]})
    schema = dpf.Schema([dpf.Numeric("age", 20, 100, cuts=[40])])
    heard, rows = told(frame, 1, schema, CountMiner(epsilon=1))
    assert (rows.what, rows.value) == ("rows", heard.output)
    heard, young = told(frame, 1, schema, CountMiner({"below": ["age", 40]}, epsilon=1))
    assert (young.what, young.value) == ("rows with age < 40", heard.output)
    assert young.value - young.low == pytest.approx(young.high - young.value)
    assert 3 <= young.high - young.value < 4  # 2 e**-(m + 1) / (1 + e**-1), the chance of more, is below 0.05 at 3
    assert CountMiner({"below": ["age", 40]}, epsilon=1).values_read(schema) == []
    assert CountMiner({"below": ["age", 41]}, epsilon=1).values_read(schema) == ["age"]
    assert HistogramMiner("age", bins=3, epsilon=1).values_read(schema) == ["age"]
    assert HistogramMiner("age", epsilon=1).values_read(schema) == []


def test_a_mean_of_a_public_number_of_rows_needs_no_count(people: pl.DataFrame) -> None:
    """The sum alone is released; with 0.95, fewer than 260 of 300 intervals hold with a probability of 3e-8."""
    present = people.drop_nulls()
    schema = dpf.Schema([attrs.evolve(AGES, missing=False), *PEOPLE.attributes[1:]], rows=len(present))
    miner = MeanMiner("age", epsilon=1)
    assert [step.name for step in walk(miner.plan(schema)) if isinstance(step, Step)] == ["sum"]
    assert held(present, miner, exact_mean(present), schema) >= 260


def test_a_quantile_is_off_by_no_more_rows_than_it_says(people: pl.DataFrame) -> None:
    """Each with 0.95 at least: fewer than 260 of 300 with a probability of 3e-8; bounds are not vacuous."""
    ages = people["age"].drop_nulls().to_numpy()
    for quantile, budget in ((0.9, {"epsilon": 1}), (0.25, {"rho": "0.125"})):
        miner = QuantileMiner("age", quantile, **budget)
        runs = [results(people, seed, one=miner)["one"] for seed in range(300)]
        aim = quantile * len(ages)
        held = [(ages < r.value).sum() - r.rows <= aim <= (ages <= r.value).sum() + r.rows for r in runs]
        assert sum(held) >= 260
        assert runs[0].rows < 20


def test_a_pair_of_sums_is_better_for_a_mean_than_a_sum_and_a_count(people: pl.DataFrame) -> None:
    """By twice in variance, whatever the mean; 0.4 are 8 deviations of the ratio of 20,000 draws."""
    centre, width, mean = 45.0, 90.0, exact_mean(people)
    rng = np.random.default_rng(2)
    exact = people["age"].drop_nulls().to_numpy()

    def errors(draws: int) -> tuple[np.ndarray, np.ndarray]:
        a, b = rng.laplace(0, 2 / 0.5, (2, draws)), rng.laplace(0, 1 / 0.5, (2, draws))
        split = centre + ((exact - centre).sum() + width / 2 * a[0]) / (len(exact) + a[1])
        share = (exact / width).sum()
        pair = width * (share + b[0]) / (len(exact) + b.sum(axis=0))
        return split - mean, pair - mean

    split, pair = errors(20_000)
    assert split.var() / pair.var() == pytest.approx(2, abs=0.4)


def test_margins_add_up_and_carry_their_variance() -> None:
    rng = np.random.default_rng(3)
    counts = rng.integers(-5, 50, (2, 3, 4))
    table = Frequencies(["a", "b", "c"], [list("xy"), list("123"), list("pqrs")], counts, 8)
    assert table.margin("c", "a").counts.tolist() == counts.sum(axis=1).T.tolist()
    assert table.margin("c", "a").variance == 24
    assert table.margin("b").margin("b") == table.margin("b")
    assert table.margin("b", "c").margin("c") == table.margin("c")
    assert table.margin("a", "b", "c") == table
    assert table.total.value == table.margin("a").total.value == counts.sum()
    assert table.total.variance == table.margin("a").total.variance == 8 * 24
    with pytest.raises(dpf.InputError, match="no attribute 'd'"):
        table.margin("d")
    with pytest.raises(dpf.InputError, match="each named once"):
        table.margin("a", "a")
    with pytest.raises(dpf.InputError, match="'b' has no label '4'"):
        table["x", "4", "p"]


def test_noise_that_adds_up_to_0_makes_smaller_sums_and_no_smaller_than_they_are() -> None:
    """Against the covariance matrix of exchangeable noise whose sum is 0."""
    table = Frequencies(["a", "b"], [list("xyz"), list("1234")], np.zeros((3, 4)), 8, exact_total=True)
    covariance = 8 * (np.eye(12) - (1 - np.eye(12)) / 11)
    for cells in range(1, 13):
        some = np.arange(12) < cells
        assert table.variance_of_sum(cells) == pytest.approx(some @ covariance @ some, abs=1e-9)
    assert table.margin("a").variance == pytest.approx(table.variance_of_sum(4))
    assert table.margin("a").variance_of_sum(2) == pytest.approx(table.variance_of_sum(8))
    assert table.margin("a").total.variance == table.total.variance == 0
    assert "the total is exact" in str(table)
    assert str(table.margin("b")).endswith("The sum of all cells is 0.")
    assert Frequencies.read(table.to_dict()) == table
    assert Frequencies.read(table.to_dict() | {"exact_total": False}).total.variance == 8 * 12
    with pytest.raises(dpf.InputError):
        Frequencies.from_dict(table.to_dict() | {"exact_total": "no"})


@pytest.mark.parametrize("epsilon", [0.1, 1, 2, 6])
@pytest.mark.parametrize("cells", [2, 3, 4, 20])
def test_intervals_of_balanced_tables_cover_what_they_say(cells: int, epsilon: float) -> None:
    """Exactly: noise is that of independent discrete Laplace numbers of scale 2 / epsilon, which add up to 0."""
    reach = math.ceil(60 / epsilon) + 20
    one = np.exp(-np.abs(np.arange(-reach, reach + 1)) * epsilon / 2)
    sums = [np.array([1.0])]  # of 0, 1, ... cells, from -reach to reach times as many
    for _ in range(cells):
        sums.append(np.convolve(sums[-1], one / one.sum()))
    facts = dpf.queries.JointHistogram([dpf.Categorical("a", [str(k) for k in range(cells)])]).facts()
    calibration = KNorm(epsilon).calibrate(facts, dpf.Relation.REPLACE_ONE)
    assert calibration is not None
    table = Frequencies(
        ["a"], [[str(k) for k in range(cells)]], np.zeros(cells), calibration.variance, exact_total=True
    )
    for k in {1, cells // 2}:
        wide = min(k, cells - k) * reach
        here, rest = (sums[n][(len(sums[n]) - 1) // 2 - wide :][: 2 * wide + 1] for n in (k, cells - k))
        chances, at = here * rest, np.arange(-wide, wide + 1)  # the law is symmetric
        chances /= chances.sum()
        assert chances @ at**2 == pytest.approx(table.variance_of_sum(k), rel=1e-6)
        if k == 1:
            stated = calibration.preview
            assert chances @ np.abs(at) == pytest.approx(stated.expected)
            inside = [chances[np.abs(at) <= reach].sum() for reach in (stated.within - 1, stated.within)]
            assert inside[0] < 0.95 <= inside[1]
        for level in (0.5, 0.8, 0.9, 0.95, 0.99, 0.999):
            within = Noisy(0, table.variance_of_sum(k)).margin(level)
            assert chances[np.abs(at) <= within].sum() >= level, (k, level)


def test_tables_are_balanced_where_the_number_of_rows_is_public() -> None:
    schema = dpf.Schema([dpf.Boolean("ill"), dpf.Categorical("town", list("ABC")), dpf.Numeric("age", 0, 99, bins=99)])
    known = attrs.evolve(schema, rows=50)

    def planned(schema: dpf.Schema, miner: str, **parameters: Any) -> dpf.Mechanism:
        node = dpf.miner(miner, **parameters).plan(schema)
        assert isinstance(node, Step)
        return node.mechanism

    cross = {"attributes": ["ill", "town"]}
    assert planned(known, "crosstab", epsilon="0.5", **cross) == KNorm("0.5")
    assert planned(known, "histogram", epsilon="0.5", attribute="town") == KNorm("0.5")
    assert planned(schema, "crosstab", epsilon="0.5", **cross) == DiscreteLaplace("0.5")
    assert planned(known, "crosstab", epsilon="0.5", attributes=["ill", "age"]) == DiscreteLaplace("0.5")
    assert planned(known, "crosstab", rho="0.5", **cross) == dpf.mechanisms.Gaussian("0.5")
    for values, noise in ((100, KNorm(1)), (101, DiscreteLaplace(1))):
        wide = dpf.Schema([dpf.Numeric("age", 0, values, bins=values)], rows=50)
        assert planned(wide, "histogram", epsilon=1, attribute="age") == noise

    table = dpf.Table.from_codes(known, np.arange(150).reshape(3, 50) % np.array([[2], [3], [99]]))
    for relation, total in (("replace-one", 0.0), ("add-or-remove-one", 6 * 2 / 0.25)):
        study = dpf.Study(known, epsilon=1, relation=relation)
        study.add("cross", dpf.miner("crosstab", epsilon="0.5", **cross))
        found = study.run(table, seed=1)["cross"]
        assert found.total.variance == pytest.approx(total, rel=0.05)
        assert (found.total.value == 50) == (total == 0)


def test_nonnegative_counts_are_the_nearest_of_the_same_total() -> None:
    table = Frequencies(["a"], [list("wxyz")], [10, -4, 3, 0], 2)
    assert table.nonnegative().tolist() == [8, 0, 1, 0]  # 2 less in each that is kept
    assert Frequencies(["a"], [list("xy")], [-4, 1], 2).nonnegative().tolist() == [0, 0]
    assert Frequencies(["a"], [list("xy")], [4, 1], 2).nonnegative().tolist() == [4, 1]
    rng = np.random.default_rng(4)
    counts = rng.integers(-3, 6, 8)
    nearest = Frequencies(["a"], [list("abcdefgh")], counts, 2).nonnegative()
    assert nearest.sum() == pytest.approx(counts.sum())
    for _ in range(200):
        other = rng.dirichlet(np.ones(8)) * counts.sum()
        assert np.square(other - counts).sum() >= np.square(nearest - counts).sum() - 1e-9


KEPT = [
    Frequencies(["a"], [["x", "y"]], [3, -1], 2),
    Frequencies(["a", "b"], [["x", "y"], ["p"]], [[3], [4]], 2.5),
    Estimate("mean of age", 38.2, 38, 39.5),
    QuantileEstimate("age", "0.9", 60, 14.2, 0.5),
]


@pytest.mark.parametrize("result", KEPT, ids=lambda result: type(result).__name__)
def test_results_are_kept_framed_and_drawn(result: Any) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    kind = type(result)
    assert kind.from_dict(json.loads(result.to_json())) == result
    frame = result.to_frame()
    assert isinstance(frame, pl.DataFrame)
    assert len(frame) == getattr(result, "counts", np.zeros(1)).size
    axes = result.plot()
    assert result.plot(axes) is axes
    with pytest.raises(dpf.InputError, match="dpframework wrote"):
        kind.from_dict({"value": "none"})


def test_a_long_table_is_cut_and_a_wide_one_listed() -> None:
    labels = [f"v{k}" for k in range(60)]
    text = str(Frequencies(["a"], [labels], np.arange(60), 2))
    assert "v49" in text
    assert "v50" not in text
    assert "and 10 more, in to_frame and to_json" in text
    wide = str(Frequencies(["a", "b"], [["x"], labels], np.arange(60)[np.newaxis], 2))
    assert wide.splitlines()[0].split() == ["a", "b", "count", "95", "%"]


def test_numbers_are_printed_as_far_as_their_intervals_bear_out() -> None:
    assert "1974198  [1971231, 1977165]" in str(Estimate("sum", 1974198.4, 1971231.9, 1977164.1))
    assert "0.00123  [0.0011, 0.0014]" not in str(Estimate("mean", 0.00123, 0.0011, 0.0014))
    assert "0.00123  [0.00110, 0.00140]" in str(Estimate("mean", 0.00123, 0.0011, 0.0014))
    assert "7.000000  [7.000000, 7.000000]" in str(Estimate("exact", 7, 7, 7))


@pytest.mark.parametrize(
    ("name", "parameters", "said"),
    [
        ("count", {}, "give one budget: epsilon, or rho"),
        ("count", {"epsilon": 1, "rho": 1}, "give one budget"),
        ("count", {"epsilon": 1, "where": {"equals": ["ill", "maybe"]}}, "'ill' has no value 'maybe'"),
        ("count", {"epsilon": 1, "where": {"below": ["ill", 3]}}, "'ill' is boolean"),
        ("count", {"epsilon": 1, "where": "ill"}, "where is a str; Description, Mapping"),
        ("count", {"epsilon": 1, "where": {"is": ["ill", "true"]}}, "a description is written as one of"),
        ("histogram", {"epsilon": 1, "attribute": "agge"}, "'agge' is not in the schema; did you mean 'age'"),
        ("histogram", {"epsilon": 1, "attribute": "ill", "bins": 3}, "only a numeric one is counted in bins"),
        ("histogram", {"epsilon": 1, "attribute": "age", "bins": 0}, "bins must be at least 1"),
        ("histogram", {"epsilon": 1, "attribute": "age", "bins": [0, 40, 100]}, "strictly between lower and upper"),
        (
            "histogram",
            {"epsilon": 1, "attribute": "age", "bins": "ten"},
            "a list of edges or a list of steps",
        ),
        ("histogram", {"epsilon": 1, "attribute": "age", "bins": 3, "bounds": [60, 30]}, "must be increasing"),
        ("histogram", {"epsilon": 1, "attribute": "age", "bins": 3, "bounds": [0, 300]}, "within the schema's bounds"),
        (
            "histogram",
            {"epsilon": 1, "attribute": "town", "bins": 3, "bounds": [0, 9]},
            "only a numeric one is counted",
        ),
        ("crosstab", {"epsilon": 1, "attributes": ["age"]}, "attributes has 1 names; a cross table has two or three"),
        ("crosstab", {"epsilon": 1, "attributes": ["age", "age"]}, "names an attribute twice"),
        ("marginals", {"epsilon": 1, "attributes": []}, "attributes is empty; name at least one"),
        ("crosstab", {"epsilon": 1, "attributes": "age"}, "'age' is one text; give a list of names"),
        ("sum", {"epsilon": 1, "attribute": "town"}, "'town' is categorical; a numeric one is needed"),
        ("sum", {"epsilon": 1, "attribute": "age", "bounds": [10, 95]}, "within the schema's bounds"),
        ("mean", {"epsilon": 1, "attribute": "age", "bounds": [10]}, "bounds has 1 numbers; two are needed"),
        ("quantile", {"epsilon": 1, "attribute": "age", "quantile": 1.5}, "between 0 and 1, not 1.5"),
    ],
)
def test_what_cannot_be_released_is_refused_in_one_sentence(name: str, parameters: dict[str, Any], said: str) -> None:
    study = dpf.Study(PEOPLE, epsilon=10)
    with pytest.raises(dpf.InputError, match=said):
        study.add("one", dpf.miner(name, **parameters))


def test_a_table_of_too_many_cells_is_refused() -> None:
    schema = dpf.Schema([dpf.Numeric(name, 0, 1, bins=1_000) for name in "abc"])
    with pytest.raises(dpf.InputError, match="1000000000 cells, more than 1000000"):
        CrosstabMiner(["a", "b", "c"], epsilon=1).plan(schema)


def test_a_table_of_as_many_cells_as_are_allowed_is_planned() -> None:
    schema = dpf.Schema([dpf.Numeric(name, 0, 1, bins=1_000) for name in "ab"])
    assert CrosstabMiner(["a", "b"], epsilon=1).plan(schema).query.answer_length == 1_000_000


def test_parameters_and_budgets_are_exact_in_the_plan() -> None:
    study = dpf.Study(PEOPLE, epsilon="0.3")
    for k, name in enumerate(("histogram", "mean", "quantile")):
        study.add(str(k), dpf.miner(name, attribute="age", epsilon=0.1))
    assert study.plan().total() == dpf.PrivacyLoss(epsilon="0.3")
    assert study.plan().miners["2"]["parameters"]["quantile"] == "1/2"


def test_a_rho_buys_less_noise_than_epsilons_that_add_up() -> None:
    """100 histograms at epsilon 1 and delta 1e-6: their standard deviation is at most 0.4 of pure epsilon's."""
    rho = dpf.ZCDPAccountant("add-or-remove-one", delta="1e-6")
    schema = dpf.Schema([dpf.Boolean(f"a{k}") for k in range(100)])
    study = dpf.Study(schema, epsilon=1, delta="1e-6")
    for k in range(100):
        study.add(f"h{k}", HistogramMiner(f"a{k}", rho="0.000177"))
    plan = study.plan()
    assert plan.refusals() == []
    deviations = [plan.calibration(step).variance ** 0.5 for step in plan.steps()]
    pure = dpf.mechanisms.DiscreteLaplace("0.01")
    facts = dpf.queries.Histogram(schema["a0"]).facts()
    assert max(deviations) <= 0.4 * pure.calibrate(facts, Relation.ADD_OR_REMOVE_ONE).variance ** 0.5
    assert rho.total(plan).epsilon <= 1


def test_rows_that_a_quantile_may_be_off_are_rounded_up() -> None:
    found = dpf.results.QuantileEstimate("age", "0.5", 30.0, 2.3, 1.0)
    assert "3 rows" in str(found)


def test_a_rho_buys_the_exponential_mechanism_that_costs_it() -> None:
    """Of epsilon**2 / 8."""
    assert QuantileMiner("age", rho="0.5").selector == dpf.mechanisms.Exponential(2)
    assert QuantileMiner("age", rho="0.02").selector == dpf.mechanisms.Exponential("0.4")
    assert QuantileMiner("age", epsilon=2).selector == dpf.mechanisms.PermuteAndFlip(2)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_cross_table_is_of_two_or_three_attributes(number: int) -> None:
    names = list("abcd")[:number]
    if number in (2, 3):
        assert dpf.miner("crosstab", epsilon=1, attributes=names).attributes == tuple(names)
    else:
        with pytest.raises(
            dpf.InputError, match=f"attributes has {number} names; a cross table has two or three"
        ) as of:
            dpf.miner("crosstab", epsilon=1, attributes=names)
        assert str(of.value).endswith("take more") == (number == 4)
