"""Privacy units: totals beside exact enumeration of neighbours that differ by up to k rows, and how noise is fixed."""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from accountant.test_enumeration import (
    ADD,
    PLANS,
    REPLACE,
    ROUNDING,
    histogram,
    noisy,
    total_beyond,
)

import dpframework as dpf
from dpframework.accountant import Accountant, PLDAccountant, PureAccountant, RDPAccountant, ZCDPAccountant
from dpframework.accountant.base import Accountant as Base
from dpframework.accountant.pure import AdditiveAccountant
from dpframework.mechanisms import DiscreteLaplace, Exponential, Gaussian, Laplace, Mechanism, PermuteAndFlip
from dpframework.mechanisms.laplace import _LatticeLaplace
from dpframework.verify.accountants.exact_loss_oracle import SCHEMA, delta_at, largest_ratio, renyi
from dpframework.verify.tables.neighbours import Universe

TWO = dpf.PrivacyUnit("person", 2)
ORDERS = (Fraction("1.01"), Fraction(3, 2), Fraction(2), Fraction(8), Fraction(32))


def planned(node: dpf.plan.Node, relation: dpf.Relation, unit: dpf.PrivacyUnit, **budget: Any) -> dpf.StudyPlan:
    rows = budget.pop("rows", None)
    schema = attrs.evolve(SCHEMA, rows=rows)
    study = dpf.Study(schema, epsilon=100, relation=relation, unit=unit.id, rows_per_unit=unit.rows, **budget)
    study.add_plan("plan", node)
    return study.plan()


#: Where what is lost is the total: the unit's rows all do the same, whether they lie in one part or in several.
TIGHT = (
    "histogram", "laplace", "parallel", "parallel histograms", "parts of parts", "repeated parts", "a large part",
    "unequal parts", "one description",
)  # fmt: skip


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("name", PLANS)
def test_the_pure_total_of_a_unit_bounds_what_its_rows_lose(name: str, relation: dpf.Relation) -> None:
    missing = total_beyond(planned(PLANS[name], relation, TWO), name, largest_ratio)
    assert name not in TIGHT or (missing is not None and missing <= ROUNDING)


@pytest.mark.parametrize(
    ("name", "relation"),
    [(n, r) for n in PLANS for r in (ADD, REPLACE) if "gaussian" not in n or r is ADD],  # very many outputs
)
def test_the_divergence_of_a_unit_bounds_what_its_rows_lose(name: str, relation: dpf.Relation) -> None:
    plan = planned(PLANS[name], relation, TWO, delta="1e-6")
    rho = ZCDPAccountant(relation, delta="1e-6").amount_of(plan.root, plan).under(relation)
    curve = RDPAccountant(relation, delta="1e-6").amount_of(plan.root, plan)
    assert rho is not None
    for order in (Fraction(3, 2), Fraction(8)):
        lost, claimed = renyi(plan, float(order)), curve.at(order).under(relation)
        assert claimed is not None
        assert lost <= min(claimed, order * rho) + ROUNDING
        if name == "gaussian":
            assert lost == pytest.approx(float(claimed), rel=1e-4)


def test_under_replace_one_parts_cost_one_notion_at_each_order() -> None:
    """Rows of one part may be replaced and added: the smaller notion of either need not be the smaller of both."""
    node = dpf.parallel(dpf.sequential(noisy("n", "0.5"), noisy("m", 2)), by=SCHEMA["a"])
    plan = planned(node, REPLACE, TWO, delta="1e-6")
    curve = RDPAccountant(REPLACE, delta="1e-6").amount_of(plan.root, plan)
    pure = PureAccountant(REPLACE).amount_of(plan.root, plan).replace_one
    rho = ZCDPAccountant(REPLACE, delta="1e-6").amount_of(plan.root, plan).replace_one
    assert pure is not None
    assert rho is not None
    for order in ORDERS:
        assert curve.at(order).replace_one == min(pure, order * rho)
    assert curve.at(Fraction(3)).replace_one == Fraction(5, 2), "not 35/16, the smaller notion for each release"


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_three_rows_spread_over_parts_lose_no_more_than_all_in_one(relation: dpf.Relation) -> None:
    three = dpf.PrivacyUnit("person", 3)
    for name in ("parallel", "unequal parts"):
        plan = planned(PLANS[name], relation, three)
        total = PureAccountant(relation).total(plan)
        assert total is not None
        assert largest_ratio(plan) == pytest.approx(float(total.epsilon or 0))


def test_a_plan_of_units_costs_what_one_of_rows_does_with_more_noise() -> None:
    """Epsilons are those that the steps were given; the noise is k times as large, of Gaussian noise its deviation."""
    for relation in (ADD, REPLACE):
        for name, node in PLANS.items():
            of_rows, of_units = planned(node, relation, dpf.PrivacyUnit()), planned(node, relation, TWO)
            assert PureAccountant(relation).total(of_rows) == PureAccountant(relation).total(of_units)
            for one, other in zip(of_rows.steps(), of_units.steps(), strict=True):
                small, large = of_rows.calibration(one), of_units.calibration(other)
                assert small is not None
                assert large is not None
                assert large.scale == small.scale * (4 if "gaussian" in name else 2), name
                assert large.losses == small.losses


def test_a_row_count_that_is_public_leaves_replacements_only() -> None:
    """A person with fewer rows may come in place of one with more: then a row is removed, which may cost more."""
    age = dpf.Numeric("age", 10, 90, bins=8)

    def scale(**facts: Any) -> Fraction:
        study = dpf.Study(dpf.Schema([age], **facts), epsilon=1, relation="replace-one", unit="person", rows_per_unit=3)
        study.add_plan("sum", dpf.step("sum", dpf.queries.BoundedSum(age), Laplace(1)))
        plan = study.plan()
        (calibration,) = [plan.calibration(step) for step in plan.steps()]
        assert calibration is not None
        return calibration.scale

    assert scale(rows=100) == pytest.approx(3 * 80, rel=1e-4)
    assert scale() == pytest.approx(3 * 90, rel=1e-4)


def test_what_needs_the_row_count_has_no_claim_where_a_unit_may_change_it() -> None:
    @attrs.frozen
    class Mean(dpf.Query):
        name = "mean"
        sensitivities = (dpf.Sensitivity("l1", None, 1, source="test"),)

        def count(self, block: dpf.Block, **inputs: Any) -> Any:
            return np.array([0])

    node = dpf.step("mean", Mean(), DiscreteLaplace(1))
    refused = [str(f) for f in planned(node, REPLACE, TWO).refusals()]
    assert refused == [
        "DP002 error: step 'plan/mean': mean has no claim under add-or-remove-one and needs one, since a unit that "
        "replaces another may have fewer rows; give the public row count in the schema (rows = ...)"
    ]
    assert not planned(node, REPLACE, TWO, rows=10).refusals()
    assert not planned(node, REPLACE, dpf.PrivacyUnit()).refusals()


class Seldom(dpf.Query):
    """Whether any row is true: however many rows are added, the answer changes by 1."""

    name = "seldom"
    answer_length = 1
    sensitivities = (dpf.Sensitivity("l1", 1, 1, fall=0, source="test"),)

    def for_rows(self, rows: int) -> tuple[dpf.Sensitivity, ...]:
        return self.sensitivities

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.array([int(block.codes("a").sum())])

    def answer(self, counts: Any, **inputs: Any) -> Any:
        return np.minimum(counts, 1)


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_a_query_may_declare_better_but_not_in_parts(relation: dpf.Relation) -> None:
    """In parts each of two rows changes an answer of its own, each by as much as both would change one."""
    step = dpf.step("any", Seldom(), DiscreteLaplace(1))
    for node, times in ((step, 1), (dpf.parallel(step, by=SCHEMA["c"]), 2 if relation is ADD else 4)):
        plan = planned(node, relation, TWO)
        (own,) = plan.steps()
        calibration = plan.calibration(own)
        assert calibration is not None
        assert calibration.scale == times
        total = PureAccountant(relation).total(plan)
        assert total == dpf.PrivacyLoss(1)
        reached = 0.5 if times == 4 else 1  # a person has rows in two parts, and four may change where there are four
        assert largest_ratio(plan) == pytest.approx(reached)
        again = dpf.StudyPlan.from_json(plan.to_json())
        assert again.hash == plan.hash
        assert again.unit == TWO


def test_a_mechanism_without_a_parameter_that_is_known_has_no_claim_for_several_rows() -> None:
    class Odd(_LatticeLaplace):
        name = "odd"

        def for_rows(self, rows: int) -> Mechanism | None:
            return Mechanism.for_rows(self, rows)

    plan = planned(dpf.step("n", dpf.queries.Count(), Odd(1)), ADD, TWO)
    (step,) = plan.steps()
    assert plan.calibration(step) is None
    assert [f.code for f in plan.refusals()] == ["DP014"]
    assert "define Mechanism.for_rows" in str(plan.refusals()[0])


class TwiceTheRowsAndA(dpf.Query):
    """Twice the number of rows, and 1 more for each row with a = true: a replaced row moves it less than one more."""

    name = "twice-the-rows-and-a"
    answer_length = 1
    sensitivities = (dpf.Sensitivity("l1", 3, 1, fall=0, source="test"),)

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.array([2 * block.rows + int(block.codes("a").sum())])


class Plain(AdditiveAccountant):
    """Pure epsilon, by the rules that an accountant has by default."""

    name = "plain"
    of_units = True
    amount = PureAccountant.amount
    loss = PureAccountant.loss


@pytest.mark.parametrize("rows", [2, 3])
def test_other_accountants_pay_for_rows_that_leave_a_part_for_another(rows: int) -> None:
    """Where the number of rows is public, a replaced row may move a query less than one that leaves its part."""
    released = dpf.step("n", TwiceTheRowsAndA(), DiscreteLaplace(1))
    plan = planned(dpf.parallel(released, by=SCHEMA["c"]), REPLACE, dpf.PrivacyUnit("person", rows), rows=9)
    total = Plain(REPLACE).total(plan)
    assert total is not None
    assert largest_ratio(plan) == pytest.approx(1)
    assert total == dpf.PrivacyLoss(rows)


def test_other_accountants_pay_for_each_part_that_rows_may_spread_over() -> None:
    for relation in (ADD, REPLACE):  # under replace-one four parts may change, each at half of what a move costs
        assert Plain(relation).total(planned(PLANS["parallel"], relation, TWO)) == dpf.PrivacyLoss(2)

    class OfRows(Plain):
        of_units = False

    assert OfRows(ADD).total(planned(PLANS["parallel"], ADD, TWO)) is None
    assert OfRows(ADD).total(planned(PLANS["parallel"], ADD, dpf.PrivacyUnit())) == dpf.PrivacyLoss(1)
    assert OfRows(ADD).release(None) == OfRows(ADD).amount(None), "a query without a claim has no total, and no error"
    assert Base.of_units is False


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("name", [name for name in PLANS if "gaussian" not in name])
def test_privacy_loss_distributions_of_a_unit_bound_what_its_rows_lose(name: str, relation: dpf.Relation) -> None:
    plan = planned(PLANS[name], relation, TWO, delta="1e-3")
    pure, total = PureAccountant(relation).total(plan), PLDAccountant(relation, delta="1e-3").total(plan)
    assert pure is not None
    assert total is not None
    assert total.epsilon is not None
    assert total.epsilon <= (pure.epsilon or 0)
    assert delta_at(plan, float(total.epsilon)) <= 1e-3 * (1 + 1e-6)


def test_a_distribution_of_one_row_a_unit_covers_a_row_that_leaves() -> None:
    """Beside the event of a replacement there is that of a removal, where the number of rows is not public."""

    class Sure(dpf.Query):
        name = "sure"
        answer_length = 1
        sensitivities = (
            dpf.Sensitivity("l1", 2, 1, source="test"),
            dpf.Sensitivity("linf", 2, 1, source="test"),
        )

        def count(self, block: dpf.Block, **inputs: Any) -> Any:
            return np.array([2 * block.rows])

    one = dpf.PrivacyUnit("person")
    node = dpf.step("n", Sure(), DiscreteLaplace(1))
    for rows in (None, 10):
        plan = planned(node, REPLACE, one, delta="1e-6", rows=rows)
        events = PLDAccountant(REPLACE, delta="1e-6").amount_of(plan.root, plan)
        assert ("DiscreteLaplace" in repr(events.replace_one)) == (rows is not None)


def test_an_accountant_keeps_one_unit() -> None:
    accountant: Accountant[Any] = PureAccountant(ADD, epsilon=10)
    accountant.open(planned(PLANS["count"], ADD, TWO))
    assert accountant.unit == TWO
    with pytest.raises(dpf.PlanRefused, match="the plan protects one row, the accountant's budget protects one person"):
        accountant.open(planned(PLANS["count"], ADD, dpf.PrivacyUnit()))
    assert accountant.spent == dpf.PrivacyLoss(1)


def test_a_plan_says_whom_it_protects_and_one_of_rows_is_written_as_before() -> None:
    plain, units = (planned(PLANS["count"], ADD, unit) for unit in (dpf.PrivacyUnit(), TWO))
    assert "unit" not in plain.content()
    assert units.content()["unit"] == {"id": "person", "rows": 2}
    assert plain.hash != units.hash
    assert dpf.StudyPlan.from_json(units.to_json()).unit == TWO
    assert dpf.StudyPlan.from_json(units.to_json()) == units


def test_rows_that_only_the_owner_bounds_are_an_assumption() -> None:
    plan = planned(PLANS["count"], ADD, dpf.PrivacyUnit(rows=4))
    assert "rows-per-unit-asserted" in plan.assumptions
    (refused,) = plan.refusals()
    assert str(refused) == (
        "DP005 error: the study assumes 'rows-per-unit-asserted'; name the unit's column (unit), or list it in the "
        "study's allow if you accept that"
    )
    assert not planned(PLANS["count"], ADD, dpf.PrivacyUnit(rows=4), allow=["rows-per-unit-asserted"]).refusals()
    assert "rows-per-unit-asserted" not in planned(PLANS["count"], ADD, TWO).assumptions


@pytest.mark.parametrize(
    ("unit", "rows", "sentence"),
    [
        ("person", 0, "rows_per_unit is 0; write how many rows of one unit are kept, from 1 to 1000000"),
        ("person", True, "rows_per_unit is True; write how many rows of one unit are kept, from 1 to 1000000"),
        ("person", 2.0, "Study: rows_per_unit is a float; int is needed"),
        (" ", 2, "unit is ' '; give the name of the column whose values name units"),
        (3, 2, "Study: unit is an int; str or None is needed"),
        (
            "a",
            2,
            "unit 'a' is an attribute of the schema; ids are read only to find the rows of a unit, so take it out of "
            "the schema",
        ),
    ],
)
def test_a_unit_that_cannot_be_is_refused(unit: Any, rows: Any, sentence: str) -> None:
    with pytest.raises(dpf.InputError) as caught:
        dpf.Study(SCHEMA, epsilon=1, unit=unit, rows_per_unit=rows)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("mechanism", [PermuteAndFlip(1), Exponential(1), Laplace(1), Gaussian("0.1")])
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_noise_for_units_is_that_of_a_smaller_epsilon_for_rows(mechanism: Mechanism, rows: int) -> None:
    plan = planned(histogram("h", mechanism), ADD, dpf.PrivacyUnit("person", rows))
    smaller = attrs.evolve(mechanism, rho=Fraction(1, 10 * rows**2)) if isinstance(mechanism, Gaussian) else None
    alone = planned(histogram("h", smaller or type(mechanism)(Fraction(1, rows))), ADD, dpf.PrivacyUnit())
    (one,), (other,) = plan.steps(), alone.steps()
    calibrations = plan.calibration(one), alone.calibration(other)
    assert calibrations[0] is not None
    assert calibrations[1] is not None
    assert calibrations[0].scale == calibrations[1].scale
    assert calibrations[0].mechanism == calibrations[1].mechanism


def test_what_a_run_spends_is_composed_for_units() -> None:
    node = dpf.parallel(noisy("n"), by=SCHEMA["c"])
    accountant: Accountant[Any] = PureAccountant(ADD, epsilon=10)
    run = accountant.open(planned(node, ADD, TWO))
    for part in run.scope().enter("plan").partition(SCHEMA["c"], None):
        part.charge("n")
    assert run.spent == dpf.PrivacyLoss(1)


AGE = dpf.Numeric("age", 0, 4, cuts=[2])
MOVED_BY_EACH_ROW = {
    "histogram": dpf.queries.Histogram(SCHEMA["c"]),
    "supports": dpf.queries.Supports([dpf.Equals("a", "true"), dpf.Equals("c", "x")]),
    "sum": dpf.queries.BoundedSum(AGE),
    "median": dpf.queries.QuantileScores(AGE),
    "lower quartile": dpf.queries.QuantileScores(AGE, quantile="0.25"),
}


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("name", MOVED_BY_EACH_ROW)
def test_queries_that_declare_nothing_for_several_rows_are_moved_by_each(name: str, relation: dpf.Relation) -> None:
    """Equal rows move the answer as many times as far: no smaller noise is to be had."""
    query, schema = MOVED_BY_EACH_ROW[name], dpf.Schema([*SCHEMA.attributes, AGE])
    assert query.for_rows(3) == ()
    universe, engine = Universe(schema), dpf.InMemory()
    kinds = [bytes((kind,)) for kind in range(universe.kinds)]

    @functools.cache
    def answer(rows: bytes) -> Any:
        return np.asarray(query.evaluate(engine, engine.load(universe.table(rows))), dtype=float)

    declared, ends = query.sensitivities[0], (kinds[0], kinds[-1])
    pairs = itertools.product([b""] if relation is ADD else kinds, kinds)
    changes = [np.abs(answer(12 * base + 3 * new) - answer(12 * base + 3 * old)) for old, new in pairs for base in ends]
    sizes = [change.max() if declared.norm is dpf.queries.Norm.LINF else change.sum() for change in changes]
    assert max(sizes) == pytest.approx(3 * float(declared.change.under(relation) or 0), rel=1e-6)
