"""Events of units of several rows: what PLD says of them is, by exact enumeration, what they lose, and no more."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest
from accountant.test_enumeration import ADD, REPLACE, histogram
from accountant.test_units import planned

import dpframework as dpf
from dpframework.accountant import PLDAccountant
from dpframework.accountant.event_distributions import AnyPure, AnyRho, SampledEvent, distribution
from dpframework.accountant.pld import _count_events
from dpframework.mechanisms import DiscreteLaplace, Gaussian, Laplace
from dpframework.mechanisms.gaussian import DiscreteGaussianEvent, FineGaussianEvent
from dpframework.mechanisms.integer_answer_change_bounds import unit_shifts
from dpframework.queries.released_row_cap_queries import AtReleasedRows
from dpframework.verify.accountants.exact_loss_oracle import SCHEMA, delta_at, pairs_of

DELTA = 1e-3
COUNT = dpf.step("n", dpf.queries.Count(), Gaussian("0.5"))
WIDE = histogram("h", Gaussian("0.5"))
PARTS = dpf.parallel(WIDE, by=SCHEMA["a"])
STEPS = {
    "histogram": WIDE,
    "laplace": histogram("h", DiscreteLaplace(2)),
    "real": histogram("h", Laplace(2)),
    "count": COUNT,
    "first rows": dpf.step("f", AtReleasedRows(dpf.queries.Histogram(SCHEMA["c"]), 2), Gaussian("0.5")),
    "first of three": dpf.step("f", AtReleasedRows(dpf.queries.Count(), 3), DiscreteLaplace(2)),
    "two": dpf.sequential(histogram("h", Gaussian("0.25")), histogram("i", Gaussian("0.25"))),
    "parts": PARTS,
    "parts of parts": dpf.parallel(dpf.parallel(COUNT, by=SCHEMA["c"]), by=SCHEMA["a"]),
    "unequal parts": dpf.parallel(WIDE, dpf.sequential(WIDE, COUNT), by=SCHEMA["a"]),
    "either": dpf.parallel(dpf.either(COUNT, dpf.sequential(COUNT, WIDE)), by=SCHEMA["a"]),
}


def pld(plan: dpf.StudyPlan) -> float:
    epsilon = plan.totals()["pld"].epsilon
    assert epsilon is not None
    return float(epsilon)


CASES = [
    *((name, ADD, k) for name in ("histogram", "laplace", "count", "parts") for k in (1, 2, 3)),
    *((name, ADD, 4) for name in ("real", "count", "laplace")),
    *((name, REPLACE, k) for name in ("laplace", "count") for k in (2, 3)),
    ("count", REPLACE, 4),
    *((name, REPLACE, 2) for name in ("histogram", "real", "parts")),
    *(("first rows", relation, 2) for relation in (ADD, REPLACE)),
    *(("first of three", relation, 3) for relation in (ADD, REPLACE)),
    *((name, ADD, 2) for name in ("two", "unequal parts", "parts of parts", "either")),
]


@pytest.mark.parametrize(("name", "relation", "rows"), CASES)
def test_the_total_of_a_unit_is_what_its_rows_lose(name: str, relation: dpf.Relation, rows: int) -> None:
    """At the total the least delta of all neighbours is the study's, to five digits: the claim is exact."""
    plan = planned(STEPS[name], relation, dpf.PrivacyUnit("person", rows), delta=str(DELTA))
    pairs = [pair for pair in pairs_of(plan) if rows < 3 or relation is ADD or min(map(len, pair)) in (0, rows)]
    assert delta_at(plan, pld(plan), pairs) == pytest.approx(DELTA, rel=1e-5)


@pytest.mark.parametrize("rows", [2, 3])
def test_a_sample_of_units_costs_what_its_rows_lose(rows: int) -> None:
    for node in (COUNT, dpf.parallel(COUNT, by=SCHEMA["a"])):  # of several numbers a sample has too many outputs
        plan = planned(dpf.sample("0.3", node), ADD, dpf.PrivacyUnit("person", rows), delta=str(DELTA))
        epsilon, rho = pld(plan), float(plan.totals()["zcdp"].epsilon or 0)
        pairs = [pair for pair in pairs_of(plan) if min(map(len, pair)) == 0]
        assert DELTA * 0.98 < delta_at(plan, epsilon, pairs) <= DELTA * (1 + 1e-5)
        assert epsilon < 0.6 * rho


def test_where_no_event_is_proved_the_bounds_of_epsilon_and_rho_count() -> None:
    unit = dpf.PrivacyUnit("person", 2)
    chosen = dpf.step("best", dpf.queries.Histogram(SCHEMA["c"]), dpf.mechanisms.PermuteAndFlip(1))
    mixed = dpf.parallel(dpf.sequential(chosen, COUNT), by=SCHEMA["a"])
    found = {}
    for name, node in (("mixed", mixed), ("samples in parts", dpf.parallel(dpf.sample("0.5", COUNT), by=SCHEMA["a"]))):
        for relation in (ADD, REPLACE) if name == "mixed" else (ADD,):
            plan = planned(node, relation, unit, delta=str(DELTA))
            events = PLDAccountant(relation, delta=str(DELTA)).amount_of(plan.root, plan).under(relation)
            found[name, relation] = set(map(type, _count_events([events])))
            pairs = pairs_of(plan, few=True)
            assert delta_at(plan, pld(plan), pairs) <= DELTA
    assert found["mixed", ADD] == {AnyPure, DiscreteGaussianEvent}
    assert found["mixed", REPLACE] == {AnyRho}
    assert found["samples in parts", ADD] == {AnyRho}
    assert SampledEvent not in set().union(*found.values())


@attrs.frozen(eq=False)
class Declares(dpf.Query):
    """A query of integers that declares what it is told."""

    sensitivities: tuple[dpf.Sensitivity, ...]
    name = "declares"

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.zeros(3, dtype=np.int64)


def test_only_proved_shifts_are_claimed() -> None:
    def shifts(relation: dpf.Relation, rows: int, *declared: dpf.Sensitivity) -> tuple[int, int] | None:
        plan = planned(COUNT, relation, dpf.PrivacyUnit("person", rows), delta="1e-6")
        calibration = plan.calibration(next(iter(plan.steps())))
        assert calibration is not None
        return unit_shifts(attrs.evolve(calibration, facts=Declares(declared).facts()), relation)

    def of(l1: Any, linf: Any = 1, **directions: Any) -> list[dpf.Sensitivity]:
        largest = dpf.Sensitivity("linf", linf, linf, source="t")
        return [dpf.Sensitivity("l1", l1, source="t", **directions), largest]

    assert shifts(ADD, 3, *of(1)) == (1, 3)
    assert shifts(REPLACE, 3, *of(1, fall=0)) == (2, 3)
    assert shifts(REPLACE, 3, *of(1, fall=0, replace_one=1)) == (1, 3)
    assert shifts(REPLACE, 3, *of(1)) is None, "what leaves and what comes may move one integer the same way"
    assert shifts(ADD, 3, *of(2)) is None, "a row moves two integers: 2 and 2 and 2 are not twice 3"
    assert shifts(ADD, 1, *of(2)) == (2, 1)
    assert shifts(ADD, 3, *of(1, 2)) == (1, 3), "no number moves further than all together"
    assert shifts(ADD, 3, *of(2, 2)) == (1, 6)
    assert shifts(ADD, 1, *of(2, 2)) == (1, 2)
    assert shifts(REPLACE, 1, *of(2, 2, fall=0, replace_one=4)) == (2, 2)
    assert shifts(REPLACE, 2, *of(2, 2, fall=0, replace_one=2)) == (1, 4)
    squared = dpf.Sensitivity("squared-l2", 2, source="t")
    assert shifts(ADD, 1, *of(2, 2), squared) is None, "two numbers move by 1 each"


def test_a_mechanism_that_knows_rows_only_says_nothing_of_units() -> None:
    @attrs.frozen
    class RowsOnly(Gaussian):  # type: ignore[misc]
        name = "rows-only"
        unit_event = dpf.Mechanism.unit_event

    for relation in (ADD, REPLACE):
        of_class = {
            kind: pld(planned(histogram("h", kind("0.02")), relation, dpf.PrivacyUnit("person", 2), delta="1e-6"))
            for kind in (Gaussian, RowsOnly)
        }
        assert of_class[Gaussian] < 0.94 * of_class[RowsOnly]


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_on_a_fine_lattice_rows_move_the_answer_as_far_as_all_of_them_in_one_direction(relation: dpf.Relation) -> None:
    for node in (histogram("h", Gaussian("1e-10")), dpf.step("s", dpf.queries.BoundedSum(AGE), Gaussian("0.02"))):
        known = 90 if relation is REPLACE else None  # else a row may leave for which none comes
        schema = attrs.evolve(SCHEMA, attributes=(*SCHEMA.attributes, AGE), rows=known)
        events = []
        for rows in (1, 3):
            study = dpf.Study(schema, epsilon=9, delta="1e-6", relation=relation, unit="person", rows_per_unit=rows)
            study.add_plan("s", node)
            plan = study.plan()
            accountant = PLDAccountant(relation, delta="1e-6")
            events.append(accountant.amount_of(plan.root, plan).under(relation))
        one, three = events
        assert type(one) is type(three) is FineGaussianEvent
        assert three.noise_multiplier == pytest.approx(one.noise_multiplier, rel=1e-9)
        assert three.slack < 1e-7


AGE = dpf.Numeric("age", 0, 8, bins=2)


def test_large_shifts_are_composed_without_a_tail() -> None:
    """dp-accounting ends the noise at 11.6 deviations on both tables, where a shift by many of them still matters."""
    sigma, shift = 2.0, 14
    event = DiscreteGaussianEvent(sigma, shift)
    found = distribution({event: 1}, fine=True)
    outputs = np.arange(-60, 80)
    logs = [-((outputs - moved) ** 2) / (2 * sigma**2) for moved in (0, shift)]
    p, q = (np.exp(log - np.logaddexp.reduce(log)) for log in logs)
    for epsilon in (10.0, 30.0, 60.0):
        exact = float(np.maximum(q - math.exp(epsilon) * p, 0).sum())
        assert exact * (1 - 1e-9) <= found.get_delta_for_epsilon(epsilon) <= exact * 1.01 + 1e-12
