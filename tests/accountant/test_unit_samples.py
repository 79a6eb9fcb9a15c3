"""Samples of privacy units: totals beside exact enumeration, whole units on both engines, and known bugs, planted."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import polars as pl
import pytest
from accountant.test_enumeration import ADD, ORDERS, ROUNDING, SAMPLED, noisy
from accountant.test_units import TWO, Seldom, planned

import dpframework as dpf
from dpframework.accountant import PureAccountant, RDPAccountant, ZCDPAccountant
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan.plan import Plan
from dpframework.tables.encoded_row_blocks import Block
from dpframework.verify import audit
from dpframework.verify.accountants.exact_loss_oracle import (
    RAREST,
    SCHEMA,
    delta_at,
    largest_ratio,
    renyi,
    unit_neighbours,
)
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.replay_on_other_table import Weigher, samples_of
from dpframework.verify.miners.transcript import record
from dpframework.verify.tables.neighbours import Universe
from dpframework.verify.tables.small_table_engine import SmallTables, units_of
from dpframework.verify.tables.whole_unit_sample_check import assert_units_sampled

ASSERTED = dpf.PrivacyUnit(rows=2)
UNITS = [pytest.param(TWO, id="ids"), pytest.param(ASSERTED, id="asserted")]
PURE = [name for name in SAMPLED if "gaussian" not in name]


# --- totals ---------------------------------------------------------------------------------------------------------


def sampled(node: dpf.Node, unit: dpf.PrivacyUnit, delta: Any = 0) -> dpf.StudyPlan:
    return planned(node, ADD, unit, delta=delta, allow=["rows-per-unit-asserted"] if unit.asserted else [])


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", PURE)
def test_the_pure_total_of_samples_is_what_a_unit_loses(name: str, unit: dpf.PrivacyUnit) -> None:
    """Of whole units, and of rows that are drawn one by one, where nobody knows whose they are."""
    plan = sampled(SAMPLED[name], unit)
    total = plan.total().epsilon
    assert total is not None
    lost = largest_ratio(plan)
    assert lost <= total + ROUNDING
    assert name == "selection" or lost >= total * (1 - 1e-6)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", SAMPLED)
def test_totals_of_samples_with_a_delta_bound_what_a_unit_loses(name: str, unit: dpf.PrivacyUnit) -> None:
    plan = sampled(SAMPLED[name], unit, "1e-6")
    totals = {found: float(loss.epsilon or 0) for found, loss in plan.totals().items()}
    assert {"pld", "rdp", "zcdp"} <= set(totals)
    for epsilon in totals.values():
        assert delta_at(plan, epsilon) <= 1e-6 * (1 + 1e-6) + RAREST
    curve = RDPAccountant(ADD, delta="1e-6").amount_of(plan.root, plan)
    rho = ZCDPAccountant(ADD, delta="1e-6").amount_of(plan.root, plan).add_or_remove_one
    assert rho is not None
    for order in ORDERS[::2]:
        claimed = min(float(curve.at(order).add_or_remove_one or 0), float(order * rho))
        assert renyi(plan, float(order)) <= claimed + ROUNDING


def test_a_sample_of_rows_costs_a_unit_less_than_one_of_units() -> None:
    """Seldom are all its rows drawn."""
    for name in ("sample", "rare", "two samples"):
        of_units, of_rows = (sampled(SAMPLED[name], unit).total().epsilon for unit in (TWO, ASSERTED))
        assert of_rows is not None
        assert of_units is not None
        assert of_rows < of_units


def test_rows_drawn_one_by_one_cost_more_than_is_claimed_for_units() -> None:
    """Whether there is a row at all: drawn one by one, more units have one in the sample."""
    plan = sampled(dpf.sample("0.3", dpf.step("any", Seldom(), DiscreteLaplace(1))), TWO)
    claimed = float(plan.total().epsilon or 0)
    assert largest_ratio(plan) == pytest.approx(claimed)
    assert largest_ratio(plan, unit_neighbours(ADD, 2)) > 1.3 * claimed


def test_in_a_sample_of_rows_a_query_does_not_declare_better() -> None:
    step = dpf.step("any", Seldom(), DiscreteLaplace(1))
    for unit, times in ((TWO, 1), (ASSERTED, 2)):
        plan = sampled(dpf.sample("0.3", step), unit)
        calibration = plan.calibration(next(plan.steps()))
        assert calibration is not None
        assert calibration.scale == times
        assert largest_ratio(plan) <= float(plan.total().epsilon or 0) + ROUNDING


def test_an_accountant_of_a_plugin_claims_nothing_for_samples_of_a_units_rows() -> None:
    class Plain(PureAccountant.__mro__[1]):  # type: ignore[misc,name-defined]
        name = "plain"
        of_units = True
        amount, loss, sample = PureAccountant.amount, PureAccountant.loss, PureAccountant.sample

    for unit, claims in ((TWO, True), (ASSERTED, False)):
        plan = sampled(SAMPLED["sample"], unit)
        assert (Plain(ADD).total(plan) is not None) == claims


# --- running --------------------------------------------------------------------------------------------------------

PERSON = dpf.PrivacyUnit("person", 3)
PEOPLE = 40
WHOSE = dpf.Schema(
    [dpf.Categorical("whose", [str(k) for k in range(PEOPLE)]), dpf.Boolean("ill"), dpf.Categorical("town", ["A", "B"])]
)


def people(seed: int = 0) -> pl.DataFrame:
    """Return rows of people with 1 to 9 rows each, in any order."""
    rng = np.random.default_rng(seed)
    whose = np.repeat(np.arange(PEOPLE), rng.integers(1, 10, PEOPLE))
    rng.shuffle(whose)
    rows = {"ill": rng.integers(0, 2, len(whose)), "town": rng.choice(["A", "B"], len(whose))}
    return pl.DataFrame({"person": [f"p{k}" for k in whose], "whose": [str(k) for k in whose], **rows})


def exact(attribute: str = "whose") -> dpf.Node:
    return dpf.step(attribute, dpf.queries.Histogram(WHOSE[attribute]), DiscreteLaplace(300))


def study(node: dpf.Node, **options: Any) -> dpf.Study:
    made = dpf.Study(WHOSE, epsilon=10_000, unit="person", rows_per_unit=3, **options)
    made.add_plan("planned", node)
    return made


@pytest.mark.parametrize("engine", [dpf.InMemory(), dpf.Threads(4)], ids=["memory", "threads"])
def test_a_sample_holds_whole_units_each_with_its_rate(engine: dpf.Engine) -> None:
    """Noise never shows: of each person all rows that the table keeps are there, or none, in parts and blocks too."""
    kept = np.minimum(np.bincount(people()["whose"].cast(pl.Int64), minlength=PEOPLE), 3)
    inside = dpf.sample("0.3", dpf.sequential(exact(), dpf.parallel(exact(), by=WHOSE["town"], name="towns")))
    outside = dpf.parallel(dpf.sample("0.3", exact()), by=WHOSE["town"], name="own")
    table = dpf.table_from_frame(people(), WHOSE, unit=PERSON)
    towns = study(dpf.parallel(exact(), by=WHOSE["town"], name="towns")).run(table, seed=0)["planned"]["towns"]
    drawn = []
    for seed in range(40):
        found = study(dpf.sequential(inside, outside)).run(table, seed=seed, engine=engine)["planned"]
        counts = found["sample"]["whose"]
        assert np.isin(counts, [0]).astype(int).sum() + (counts == kept).sum() == PEOPLE
        assert np.array_equal(sum(found["sample"]["towns"].values()), counts)
        for town in ("A", "B"):
            own, whole = found["own"][town]["sample"], towns[town]
            assert ((own == 0) | (own == whole)).all()
        drawn.append(counts > 0)
    assert abs(np.mean(drawn) - 0.3) < 0.07  # 6 standard deviations of 1,600 draws
    assert len({tuple(one) for one in drawn}) == 40


def test_both_engines_draw_the_same_units_with_the_same_seed_and_a_private_run_draws_too() -> None:
    table = dpf.table_from_frame(people(), WHOSE, unit=PERSON)
    node = dpf.sample("0.5", exact())
    engines = [study(node).run(table, seed=3, engine=e)["planned"]["sample"] for e in (dpf.InMemory(), dpf.Threads(5))]
    assert np.array_equal(*engines)
    private = study(node).run(table)["planned"]["sample"]
    assert 3 < (private > 0).sum() < 37  # of 40 draws at one half: beyond with a probability of 1e-7


def test_whose_a_row_is_goes_nowhere_but_to_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no attribute, is in no result, and a plan without samples runs on a table that does not hold it."""
    table = dpf.table_from_frame(people(), WHOSE, unit=PERSON)
    assert table.unit_codes is not None
    assert "person" not in table.schema
    assert repr(table) == "Table(3 attributes; rows are private)"
    again = pickle.loads(pickle.dumps(table))
    assert np.array_equal(again.unit_codes, table.unit_codes)
    with pytest.raises(ValueError, match="read-only"):
        table.unit_codes[0] = 1
    seen: list[bool] = []
    load = dpf.InMemory.load
    monkeypatch.setattr(
        dpf.InMemory, "load", lambda self, of: (seen.append(of.unit_codes is not None), load(self, of))[1]
    )
    study(exact()).run(table, seed=1)
    study(dpf.sample("0.5", exact())).run(table, seed=1)
    assert seen == [False, True]
    for unit in (dpf.PrivacyUnit("person"), dpf.PrivacyUnit()):
        assert dpf.table_from_frame(people(), WHOSE, unit=unit).unit_codes is None


def test_the_numbers_of_units_follow_their_ids_not_their_rows() -> None:
    frame = people(1)
    table = dpf.table_from_frame(frame, WHOSE, unit=PERSON, key=b"key")
    pairs = set(zip(table.codes[0].tolist(), table.unit_codes.tolist(), strict=True))  # type: ignore[union-attr]
    assert len(pairs) == PEOPLE == len({number for _, number in pairs})
    nobody = frame.with_columns(person=pl.when(pl.col("whose") == "0").then(None).otherwise(pl.col("person")))
    table = dpf.table_from_frame(nobody, WHOSE, unit=PERSON, key=b"key")
    assert len(set(table.unit_codes.tolist())) == PEOPLE - 1  # type: ignore[union-attr]


def test_a_table_that_does_not_say_whose_a_row_is_is_refused_before_anything_is_spent() -> None:
    codes = [[0, 0, 1], [0, 1, 1], [0, 0, 1]]
    table = dpf.Table.from_codes(WHOSE, codes, unit=PERSON)
    node = dpf.sample("0.5", exact())
    accountant = PureAccountant(ADD, epsilon=10_000)
    with pytest.raises(dpf.InputError, match="does not say which unit each row belongs to; read it with its person"):
        study(node).run(table, seed=1, accountant=accountant)
    assert accountant.spent == dpf.PrivacyLoss(0)
    told = study(node).run(table.with_units([7, 7, 2]), seed=2)["planned"]["sample"]
    assert told[0] in (0, 2)
    of_rows = dpf.Table.from_codes(WHOSE, codes, unit=dpf.PrivacyUnit("person"))  # at most one row each
    assert study(node).run(of_rows, seed=1)["planned"]["sample"].sum() <= 3
    for wrong, sentence in (
        ([1, 2], "one whole number per row"),
        ([0.5, 1, 2], "one whole number per row"),
        ([[1], [2, 3], 4], "array of whole numbers|one whole number per row"),
    ):
        with pytest.raises(dpf.InputError, match=sentence):
            table.with_units(wrong)  # type: ignore[arg-type]
    crowded = dpf.Table.from_codes(WHOSE, np.array(codes)[:, [0, 0, 1, 2]], unit=dpf.PrivacyUnit("person", 2))
    with pytest.raises(dpf.InputError, match="more than 2 rows"):
        crowded.with_units([1, 1, 1, 2])


def test_two_views_have_one_row_a_unit(tmp_path: Any) -> None:
    schema = dpf.Schema([dpf.Boolean("l", view="left"), dpf.Boolean("r", view="right")])
    for name in "lr":
        pl.DataFrame({"person": ["a", "b"], name: [True, False]}).write_csv(tmp_path / f"{name}.csv")
    table = dpf.read_two_views(tmp_path / "l.csv", tmp_path / "r.csv", schema, id="person", unit=TWO)
    assert table.unit_codes.tolist() == [0, 1]  # type: ignore[union-attr]


def test_an_engine_that_samples_rows_only_is_refused_before_anything_is_read() -> None:
    class RowsOnly(dpf.InMemory.__mro__[1]):  # type: ignore[misc,name-defined]
        name = "rows-only"
        sample_units = dpf.Engine.sample_units

        def __init__(self) -> None:
            super().__init__(1)

        map = dpf.InMemory.map

    with pytest.raises(dpf.InputError, match="engine 'rows-only' draws no samples of units"):
        study(dpf.sample("0.5", exact())).run(lambda: pytest.fail("the table was read"), engine=RowsOnly())
    of_rows = dpf.Study(WHOSE, epsilon=10_000)
    of_rows.add_plan("planned", dpf.sample("0.5", exact()))
    assert of_rows.plan(RowsOnly()).total().epsilon
    with pytest.raises(dpf.InputError, match="draws no samples of units"):
        RowsOnly().sample_units([], lambda number: np.ones(number, dtype=bool))


# --- planted bugs ---------------------------------------------------------------------------------------------------


def one_by_one(self: Any, rows: Any, drawn: Callable[[int], Any]) -> Any:
    """Draw rows, whatever unit they are of."""
    return self.sample(rows, drawn)


def per_block(self: Any, rows: list[Block], drawn: Callable[[int], Any]) -> Any:
    """Draw the units of each block anew, so that one with rows in two blocks may be in one and not in the other."""
    found = []
    for block in rows:
        present, unit_of = np.unique(block.unit_codes[block.index], return_inverse=True)  # type: ignore[index]
        found.append(block.at(block.index[drawn(len(present))[unit_of]]))
    return found


def too_few(self: Any, rows: list[Block], drawn: Callable[[int], Any]) -> Any:
    """Draw for as many units as the largest number says, whose numbers need not be those of the draws."""
    present = np.unique(np.concatenate([block.unit_codes[block.index] for block in rows]))  # type: ignore[index]
    kept = np.resize(drawn(len(present)), int(present.max(initial=0)) + 1)
    return [block.at(block.index[kept[block.unit_codes[block.index]]]) for block in rows]  # type: ignore[index]


@pytest.mark.parametrize("wrong", [one_by_one, per_block, too_few])
def test_an_engine_that_does_not_take_whole_units_is_caught(monkeypatch: pytest.MonkeyPatch, wrong: Any) -> None:
    engine = dpf.Threads(3)
    assert_units_sampled(engine)
    monkeypatch.setattr(dpf.InMemory.__mro__[1], "sample_units", wrong)
    with pytest.raises(AssertionError, match="engine 'threads'"):
        assert_units_sampled(engine)


@pytest.mark.parametrize("engine", [dpf.InMemory(), dpf.Threads(1), dpf.Threads(7)])
def test_the_engines_sample_whole_units(engine: dpf.Engine) -> None:
    assert_units_sampled(engine, seed=1)


@attrs.frozen
class Sampler(dpf.Miner):
    """Release from one sample, also in parts, and from samples of parts."""

    name = "unit-sampler"
    query: dpf.Query

    def plan(self, schema):
        step, a = dpf.step("n", self.query, DiscreteLaplace(1)), SCHEMA["a"]
        whole = dpf.sequential(step, dpf.parallel(noisy("m"), by=a, name="a"))
        return dpf.sequential(
            dpf.sample("0.3", whole, name="one"), dpf.parallel(dpf.sample("0.5", noisy("k")), by=a, name="parts")
        )

    def mine(self, table):
        one = table.sampled("one")
        found = [one.release("n"), *(part.release("m") for part in one.partition("a", name="a"))]
        return [*found, *(part.sampled().release("k") for part in table.partition("a", name="parts"))]


@attrs.frozen
class Alone(dpf.Miner):
    """Release one answer from a sample."""

    name = "alone"
    query: dpf.Query

    def plan(self, schema):
        return dpf.sample("0.3", dpf.step("n", self.query, DiscreteLaplace(1)))

    def mine(self, table):
        return table.sampled().release("n")


@pytest.mark.parametrize("rows", [2, 4])
@pytest.mark.parametrize("query", [dpf.queries.Count(), Seldom()], ids=["count", "seldom"])
def test_replays_add_up_over_samples_of_units_and_come_near_the_claim(query: Any, rows: int) -> None:
    unit = dpf.PrivacyUnit("person", rows)
    report = audit(Sampler(query), SCHEMA, ADD, seed=1, replays=800, unit=unit)
    assert report.passed, str(report)
    assert report.tightness >= 0.9


def test_replays_add_up_over_rows_where_nobody_knows_whose_they_are() -> None:
    report = audit(Sampler(dpf.queries.Count()), SCHEMA, ADD, seed=1, replays=800, unit=ASSERTED)
    assert report.passed, str(report)
    assert report.tightness >= 0.9


@pytest.mark.parametrize("unit", [TWO, ASSERTED], ids=["known", "asserted"])
def test_a_claim_for_whole_units_holds_where_rows_are_sampled(unit: Any) -> None:
    assert audit(Alone(Seldom()), SCHEMA, ADD, seed=1, replays=400, unit=unit).passed


@pytest.mark.parametrize("bug", ["one by one", "better in a sample of rows", "the rate of a row"])
def test_a_claim_for_whole_units_is_caught_where_rows_are_sampled(monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    unit = TWO
    if bug == "one by one":
        monkeypatch.setattr(Subject, "together", property(lambda self: 1))
        monkeypatch.setattr(SmallTables, "sample_units", one_by_one)
    elif bug == "better in a sample of rows":
        unit = ASSERTED
        monkeypatch.setattr(Plan, "in_parts", lambda self, step: False)
    else:  # the rate applies to units, and is charged as if each row alone had to be drawn
        sample = PureAccountant.sample
        monkeypatch.setattr(PureAccountant, "sample", lambda self, part, rate: sample(self, part, rate**2))
    report = audit(Alone(Seldom()), SCHEMA, ADD, seed=1, replays=800, unit=unit)
    assert not report.passed
    assert any("claims" in str(violation) for violation in report.violations)


@attrs.frozen
class FirstRows(dpf.Query):
    """The number of people whose first row has a = true."""

    name = "first-rows"
    answer_length = 1
    places = True
    sensitivities = (dpf.Sensitivity("l1", 1, source="test"),)

    def count(self, block: Block, **inputs: Any) -> Any:
        return np.array([int(((block.places_in_units() == 0) & (block.codes("a") == 1)).sum())])


def test_people_with_the_same_rows_in_another_order_are_different_where_a_query_reads_the_order() -> None:
    """Else a replay would weigh samples of other tables, and a claim about first rows would be tested on none."""
    subject = Subject(Alone(FirstRows()), SCHEMA, ADD, unit=TWO)
    a = [int(subject.universe.block(bytes([kind])).codes("a")[0]) for kind in range(subject.universe.kinds)]
    false, true = a.index(0), a.index(1)
    rows = bytes([false, true, true, false])
    transcript = record(subject, rows, 1)
    (made,) = transcript.releases
    calibration = made.charge.calibration
    none, one = (calibration.mechanism.log_density(np.array([k]), made.output, calibration) for k in (0, 1))
    (found,) = Weigher(subject, transcript).densities(rows)
    # The second person alone has a first row that counts, and is in three of ten samples.
    assert math.exp(found) == pytest.approx(0.7 * math.exp(none) + 0.3 * math.exp(one))


def test_small_tables_group_rows_into_units_from_their_end() -> None:
    assert units_of(b"", 2) == []
    assert units_of(b"abcde", 2) == [b"a", b"bc", b"de"]
    assert units_of(b"abcd", 2)[:-1] == units_of(b"ab", 2), "a unit more leaves the others as they were"
    engine = SmallTables(Universe(SCHEMA), 2)
    held = engine.hold(bytes([0, 1, 0, 1, 3]))
    assert held.units is not None
    assert held.units.tolist() == [0, 1, 1, 2, 2]
    found = samples_of(held, ORDERS[0] / 5)
    assert found is not None
    assert len(found) == 2 * 2 * 2
    assert sum(math.exp(chance) for chance, _ in found) == pytest.approx(1)
    alike = samples_of(engine.hold(bytes([0, 1, 1, 0])), ORDERS[0] / 5)
    assert alike is not None
    assert sorted(len(one.rows) for _, one in alike) == [0, 2, 4]
