"""Releases from random samples: planned, run, refused, written, and audited by replays that add up over samples."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from exact_rows import held
from scipy import stats

import dpframework as dpf
from dpframework.accountant import AdditiveAccountant, PLDAccountant, RDPAccountant, composition
from dpframework.facts import ByRelation
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.plan import Plan, Sample, Step, walk
from dpframework.reports import text_plan_drawings
from dpframework.run.gate import Gate
from dpframework.run.miner_base_and_examples import Example
from dpframework.verify import MinerConformance, audit

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Categorical("town", ["A", "B", "C"])])
RATE = Fraction(3, 10)
TINY = 1e-7  # the probability of a false failure


@attrs.frozen
class Sampler(dpf.Miner):
    """Release two counts from one sample, and one from another."""

    name = "sampler"
    each: float = 1.0
    rate: float = 0.3

    def plan(self, schema):
        towns = dpf.queries.Histogram(schema["town"])
        noise = dpf.mechanisms.DiscreteLaplace(self.each)
        first = dpf.sequential(dpf.step("towns", towns, noise), dpf.step("rows", dpf.queries.Count(), noise))
        second = dpf.parallel(dpf.step("rows", dpf.queries.Count(), noise), by=schema["ill"], name="ill")
        return dpf.sequential(dpf.sample(self.rate, first, name="one"), dpf.sample(self.rate, second, name="two"))

    def mine(self, table):
        one, two = table.sampled("one"), table.sampled("two")
        parts = two.partition("ill", name="ill")
        return one.release("towns").tolist(), [part.release("rows") for part in parts], one.release("rows")

    @classmethod
    def examples(cls):
        return {"usual": Example(SCHEMA, cls())}


def study(node: dpf.Node, **options: Any) -> dpf.Study:
    made = dpf.Study(SCHEMA, epsilon=1000, **options)
    made.add_plan("planned", node)
    return made


def count(name: str = "rows", epsilon: Any = 1) -> Step:
    return dpf.step(name, dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(epsilon))


def table(rows: int) -> dpf.Table:
    return dpf.Table.from_codes(SCHEMA, [[k % 2 for k in range(rows)], [k % 3 for k in range(rows)]])


# --- running --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", [dpf.InMemory(), dpf.Threads(3)], ids=["memory", "threads"])
def test_a_sample_holds_each_row_with_its_rate_and_is_drawn_anew(engine: dpf.Engine) -> None:
    """Counts with noise that never shows: binomial in each sample, and independent of one another's."""
    seen = []
    for seed in range(300):
        node = dpf.repeat(2, dpf.sample(RATE, dpf.sequential(count("rows", 60), count("again", 60))))
        made = study(node).run(table(50), seed=seed, engine=engine)["planned"]["sample"]
        assert all(sample["rows"] == sample["again"] for sample in made)  # one sample for all that is below
        seen.append([sample["rows"] for sample in made])
    first, second = np.array(seen).T
    for counts in (first, second):
        assert stats.binomtest(int(counts.sum()), 300 * 50, float(RATE)).pvalue > TINY
        assert stats.chisquare(*_binned(counts)).pvalue > TINY
    assert abs(stats.pearsonr(first, second).statistic) < 0.3  # |r| of 300 independent pairs: 3e-7
    assert (first != second).mean() > 0.5


def _binned(counts: Any) -> tuple[Any, Any]:
    edges = [-1, 12, 14, 15, 16, 18, 50]
    chances = np.diff(stats.binom.cdf(edges, 50, float(RATE)))
    return np.histogram(counts, bins=np.array(edges) + 0.5)[0], 300 * chances


def test_a_private_run_samples_too() -> None:
    made = study(dpf.sample("0.5", count("rows", 60))).run(table(200))
    assert 50 < made["planned"]["sample"] < 150  # 7 standard deviations


def test_a_sample_is_drawn_once_and_only_if_planned() -> None:
    node = dpf.sequential(dpf.sample(RATE, count("rows")), count("all"))
    plan = study(node).plan()
    run = dpf.PureAccountant("add-or-remove-one").open(plan)
    gate = Gate(dpf.InMemory(), SeededRandomness(1))
    private = dpf.PrivateTable(SCHEMA, gate.load(table(9)), run.scope(), gate).scope("planned")
    with pytest.raises(dpf.ReleaseRefused, match="sample 'other' in 'planned' is not in the plan"):
        private.sampled("other")
    with pytest.raises(dpf.ReleaseRefused, match="step 'rows' in 'planned' is not in the plan"):
        private.release("rows")  # from all rows, it is not planned
    sample = private.sampled()
    with pytest.raises(dpf.ReleaseRefused, match="a sample in 'planned' was made before"):
        private.sampled()
    with pytest.raises(dpf.ReleaseRefused, match=r"step 'all' in .* is not in the plan"):
        sample.release("all")
    sample.release("rows")
    assert run.spent == study(dpf.sample(RATE, count("rows"))).plan().total()  # amplified, as the plan's total is
    private.release("all")
    assert "rows" not in repr(sample)
    assert run.spent == plan.total()


def test_a_refused_sample_is_told_of_the_planned_samples_and_not_of_blocks(opened: Callable[..., Any]) -> None:
    block = dpf.spend("rounds", dpf.kind("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace), epsilon=1)
    unsampled, _ = opened(block, table(9))
    for name, what in ((None, "a sample"), ("rounds", "sample 'rounds'")):
        with pytest.raises(dpf.ReleaseRefused, match=f"^{what} is not in the plan; none is known here$"):
            unsampled.sampled(name)
    private, _ = opened(dpf.either(count("all"), dpf.sample(RATE, count(), name="half")), table(9))
    private.release("all")
    for name, what in ((None, "a sample"), ("half", "sample 'half'")):
        with pytest.raises(dpf.ReleaseRefused, match=f"^{what} is in a branch of the plan that was not taken$"):
            private.sampled(name)
    with pytest.raises(dpf.ReleaseRefused, match=r"^sample 'hal' is not in the plan; did you mean 'half'"):
        private.sampled("hal")


def test_what_a_sample_costs() -> None:
    plan = study(dpf.sample("0.1", dpf.sequential(count("a"), count("b")))).plan()
    expected = np.log1p(0.1 * np.expm1(2))
    assert float(plan.total().epsilon or 0) == pytest.approx(expected, rel=1e-8)
    assert float(plan.total().epsilon or 0) >= expected
    assert "sample at rate 0.1  [epsilon ~0.494]" in text_plan_drawings.tree(plan)
    huge = study(dpf.sample("0.1", count("a", 900))).plan()
    assert huge.total().epsilon == 900  # more than a double's exponential: nothing is gained


@pytest.mark.parametrize("rate", [0, 1, "1.5", "0.12345678901", float("nan"), "half"])
def test_rates_that_cannot_be_used(rate: object) -> None:
    with pytest.raises(dpf.InputError, match="rate is"):
        dpf.sample(rate, count())  # type: ignore[arg-type]


def test_a_plan_with_samples_is_written_and_read() -> None:
    plan = study(Sampler().plan(SCHEMA)).plan()
    again = dpf.StudyPlan.from_json(plan.to_json())
    assert again == plan
    assert again.total() == plan.total()
    form = json.loads(plan.to_json())
    assert '"kind": "sample"' in json.dumps(form)
    assert '"rate": "3/10"' in json.dumps(form)


def test_where_no_theorem_holds_the_plan_is_refused() -> None:
    made = study(dpf.sample(RATE, count()), delta="1e-6", relation="replace-one")
    with pytest.raises(dpf.PlanRefused, match="DP023 error: the plan samples rows, and under replace-one nothing is"):
        made.run(lambda: pytest.fail("the table was read"))
    assert made.plan().totals() == {}


def test_an_engine_that_draws_no_samples_is_refused_before_anything_is_read() -> None:
    class Far(dpf.Engine):
        name = "far"

        def load(self, table: dpf.Table) -> Any:
            raise AssertionError

        map = split = derive = load

    with pytest.raises(dpf.InputError, match="engine 'far' draws no samples"):
        study(dpf.sample(RATE, count())).run(lambda: pytest.fail("the table was read"), engine=Far())
    with pytest.raises(dpf.InputError, match="engine 'far' draws no samples"):
        study(dpf.sample(RATE, count())).plan(Far())


@pytest.mark.parametrize("rate", ["0.01", "0.3", "0.9"])
@pytest.mark.parametrize("epsilon", ["0.25", 3])
def test_several_samples_cost_no_more_than_one_for_all(rate: str, epsilon: Any) -> None:
    """So a run that is resumed may draw its sample anew, in the notions that say so."""
    plain = [count("a", epsilon), dpf.parallel(count("b", epsilon), by=SCHEMA["ill"], name="ill"), count("c", epsilon)]
    again = [dpf.sample("0.5", part, name=f"inner {k}") for k, part in enumerate(plain)]
    gaussian = dpf.step("d", dpf.queries.Count(), dpf.mechanisms.Gaussian("0.1"))
    for parts in (plain, again, [*plain, gaussian]):
        one = dpf.sample(rate, dpf.sequential(*parts), name="one")
        several = dpf.sequential(*(dpf.sample(rate, part, name=f"sample {k}") for k, part in enumerate(parts)))
        whole, apart = (study(node, delta="1e-6").plan() for node in (one, several))
        for kind in (dpf.PureAccountant, dpf.ZCDPAccountant):
            of_one, of_several = (
                kind("add-or-remove-one", delta=0 if kind is dpf.PureAccountant else "1e-6")
                .amount_of(plan.root, plan)
                .add_or_remove_one
                for plan in (whole, apart)
            )
            assert kind.samples_anew
            assert (of_one is None) == (of_several is None) == (kind is dpf.PureAccountant and gaussian in parts)
            assert of_one is None or of_several <= of_one * (1 + Fraction(1, 10**8))
        curves = [RDPAccountant("add-or-remove-one", delta="1e-6").amount_of(p.root, p) for p in (whole, apart)]
        assert RDPAccountant.samples_anew
        for order in (Fraction("1.001"), Fraction(2), Fraction(9), Fraction(1000)):
            of_one, of_several = (curve.at(order).add_or_remove_one for curve in curves)
            assert of_several <= of_one * (1 + Fraction(1, 10**8))  # type: ignore[operator]


def test_several_samples_may_cost_more_than_one_in_distributions() -> None:
    """In one sample the row is seldom seen twice; in two it is more often seen at all."""
    one = dpf.sample("0.1", dpf.sequential(count("a", 3), count("b", 3)))
    two = dpf.sequential(dpf.sample("0.1", count("a", 3), name="one"), dpf.sample("0.1", count("b", 3), name="two"))
    of_one, of_two = (
        PLDAccountant("add-or-remove-one", delta="0.1").total(study(node, delta="0.1").plan()) for node in (one, two)
    )
    assert float(of_one.epsilon) < 0.01 < 0.5 < float(of_two.epsilon)  # type: ignore[union-attr, arg-type]
    assert not PLDAccountant.samples_anew
    assert not dpf.Accountant.samples_anew, "an accountant of a plugin says so itself"


# --- auditing -------------------------------------------------------------------------------------------------------


class Claims(AdditiveAccountant):
    """Pure accounting with another rule for samples, to be found wrong."""

    name = "claims"
    amount, loss = dpf.PureAccountant.amount, dpf.PureAccountant.loss


class RateTwice(Claims):
    """A sample's rate applied to its releases, and again to the sample."""

    def sample(self, part: ByRelation, rate: Fraction) -> ByRelation:
        return composition.sample(composition.sample(part, rate), rate)


class EachAlone(Claims):
    """Releases from one sample, counted as if each had a sample of its own."""

    def amount_of(self, node: dpf.Node, plan: Plan) -> ByRelation:
        if isinstance(node, Sample):
            steps = [self.amount(plan.calibration(step)) for step in walk(node) if isinstance(step, Step)]
            return self.sequential([composition.sample(step, node.rate) for step in steps])
        return super().amount_of(node, plan)


def test_replays_add_up_over_samples_and_come_near_the_claim() -> None:
    report = audit(Sampler(), SCHEMA, "add-or-remove-one", seed=1, replays=600)
    assert report.passed, str(report)
    assert report.tightness >= 0.9


class TestSampler(MinerConformance):
    miner = Sampler
    replays = 1_000


@pytest.mark.parametrize("wrong", [RateTwice, EachAlone])
def test_a_wrong_claim_about_samples_is_caught_by_replays(wrong: Any) -> None:
    report = audit(Sampler(), SCHEMA, "add-or-remove-one", seed=1, replays=600, accounting=wrong)
    assert not report.passed
    assert any("claims" in str(violation) for violation in report.violations)


@attrs.frozen
class Reuses(Sampler):
    """Plan two samples, and release from all rows what was planned for the second one."""

    name = "reuses"

    def mine(self, table):
        one = table.sampled("one")
        return one.release("towns").tolist(), one.partition("ill", name="ill")


def test_a_sample_that_is_used_for_another_is_refused() -> None:
    report = audit(Reuses(), SCHEMA, "add-or-remove-one", seed=1, replays=300)
    assert not report.passed


@attrs.frozen
class Tells(Sampler):
    """Tell of a sample what no release tells."""

    name = "tells"

    def mine(self, table):
        one = table.sampled("one")
        engine, handle = held(one)
        rows = handle.block(engine.universe).rows
        return one.release("rows"), rows


def test_a_sample_that_is_told_is_caught() -> None:
    report = audit(Tells(), SCHEMA, "add-or-remove-one", seed=1, replays=300)
    assert not report.passed
