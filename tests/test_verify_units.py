"""Verification of privacy units: known bugs, planted, are caught each time, and the correct versions pass.

Nothing here is caught by statistics: replays are exact, and tables are read twice with the same key.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.accountant import PureAccountant, composition
from dpframework.accountant.pure import AdditiveAccountant
from dpframework.mechanisms import DiscreteLaplace, Exponential, PermuteAndFlip
from dpframework.mechanisms.laplace import _LatticeLaplace
from dpframework.plan.plan import Plan
from dpframework.queries import Count, Histogram, Query
from dpframework.tables.reading import table_from_columns
from dpframework.verify import audit, check_bounding, search_sensitivity, verify_examples
from dpframework.verify.tables import Sizes, Universe, changes

SCHEMA = dpf.Schema([dpf.Categorical("town", ["A", "B", "C"]), dpf.Boolean("ill")])
PUBLIC = attrs.evolve(SCHEMA, rows=8)
UNITS = [dpf.PrivacyUnit("person", k) for k in (1, 2, 4)]
ADD, REPLACE = dpf.Relation
REPLAYS = 800


@attrs.frozen
class Planned(dpf.Miner):
    """Makes the releases of a plan, in order."""

    name = "planned"
    node: dpf.plan.Node

    def plan(self, schema: dpf.Schema) -> dpf.plan.Node:
        return self.node

    def mine(self, table: dpf.PrivateTable) -> Any:
        if isinstance(self.node, dpf.plan.Parallel):
            return [part.release("step") for part in table.partition(self.node.by)]
        return table.release("step")


def released(query: Query, mechanism: dpf.Mechanism) -> Planned:
    return Planned(dpf.step("step", query, mechanism))


TOWNS = Histogram(SCHEMA["town"])
IN_PARTS = Planned(dpf.parallel(dpf.step("step", Count(), DiscreteLaplace(1)), by=SCHEMA["town"]))
MINERS = {
    "noise": released(TOWNS, DiscreteLaplace(1)),
    "permute-and-flip": released(TOWNS, PermuteAndFlip(1)),
    "exponential": released(TOWNS, Exponential(1)),
    "parts": IN_PARTS,
}


@pytest.mark.parametrize("schema", [SCHEMA, PUBLIC], ids=["any", "public rows"])
@pytest.mark.parametrize(("relation", "unit"), list(itertools.product((ADD, REPLACE), UNITS)))
@pytest.mark.parametrize("name", MINERS)
def test_claims_for_units_hold_and_are_reached(
    name: str, relation: dpf.Relation, unit: dpf.PrivacyUnit, schema: dpf.Schema
) -> None:
    """Public row counts leave a selection too few rows to come near."""
    report = audit(MINERS[name], schema, relation, replays=REPLAYS, unit=unit)
    assert report.passed, report.violations
    if schema is SCHEMA or name in ("noise", "parts"):
        assert report.tightness >= 0.9


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("unit", UNITS[1:])
def test_a_claim_for_rows_is_no_claim_for_units(
    monkeypatch: pytest.MonkeyPatch, unit: dpf.PrivacyUnit, relation: dpf.Relation
) -> None:
    """The noise of one row, and the total of one row: a unit loses as often as much."""
    monkeypatch.setattr(PureAccountant, "release", lambda self, calibration: self.amount(calibration))
    monkeypatch.setattr(Plan, "unit_change", property(lambda self: dpf.facts.UnitChange()))
    from dpframework.verify.subject import Subject

    monkeypatch.setattr(Subject, "by", property(lambda self: dpf.facts.UnitChange(unit.rows, True)))
    report = audit(MINERS["noise"], SCHEMA, relation, replays=REPLAYS, unit=unit)
    assert not report.passed
    assert report.tightness == pytest.approx(unit.rows, rel=0.05)


@attrs.frozen
class Forgets(_LatticeLaplace):
    """A mechanism that counts k once: it takes a unit's rows for one row."""

    name = "forgets"

    def for_rows(self, rows: int) -> dpf.Mechanism:
        return self


@attrs.frozen
class OneDeclared(Query):
    """A query that counts k once: it declares for a unit what holds for a row."""

    name = "one-declared"
    right: bool = False
    answer_length = 3
    sensitivities = dpf.queries.histogram_sensitivities(3)

    def for_rows(self, rows: int) -> Sequence[dpf.Sensitivity]:
        times = rows if self.right else 1
        return (dpf.Sensitivity("l1", times, 2 * times, source="test"),)

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.bincount(block.codes("town"), minlength=3)


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("unit", UNITS[1:])
def test_k_counted_once_in_one_query_is_caught(unit: dpf.PrivacyUnit, relation: dpf.Relation) -> None:
    declared = audit(released(OneDeclared(), DiscreteLaplace(1)), SCHEMA, relation, replays=REPLAYS, unit=unit)
    assert not declared.passed
    assert declared.tightness == pytest.approx(unit.rows, rel=0.05)
    assert audit(released(OneDeclared(right=True), DiscreteLaplace(1)), SCHEMA, relation, replays=300, unit=unit).passed
    searched = search_sensitivity(OneDeclared(), SCHEMA, relation, rows=unit.rows, pairs=600)
    assert not searched.passed
    right = search_sensitivity(OneDeclared(right=True), SCHEMA, relation, rows=unit.rows, pairs=600)
    assert right.passed
    assert right.tightness == 1


def test_a_mechanism_that_counts_k_once_claims_k_times_as_much() -> None:
    """Its losses are multiplied where it cannot forget to: the plan says what it costs."""
    for k in (2, 4):
        plan = dpf.Study(SCHEMA, epsilon=100, unit="person", rows_per_unit=k)
        plan.add("towns", released(TOWNS, Forgets(1)))
        assert plan.plan().total() == dpf.PrivacyLoss(k)


class OneRowSpreads(AdditiveAccountant):
    """Charges parts as if the unit's rows beyond the first were never there."""

    name = "one-row-spreads"
    of_units = True
    amount = PureAccountant.amount
    loss = PureAccountant.loss

    def spread(self, parts: Any, rows: int) -> Any:
        return composition.parallel(parts).map(lambda amount: amount / rows)


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("unit", UNITS[1:])
def test_parallel_parts_charged_for_one_row_are_caught(unit: dpf.PrivacyUnit, relation: dpf.Relation) -> None:
    report = audit(IN_PARTS, SCHEMA, relation, replays=REPLAYS, unit=unit, accounting=OneRowSpreads)
    assert not report.passed
    assert report.tightness == pytest.approx(unit.rows, rel=0.05)


@attrs.frozen
class Capped(Query):
    """Whether there is a row: however many are added, the answer changes by 1."""

    name = "capped"
    answer_length = 1
    sensitivities = (dpf.Sensitivity("l1", 1, 1, fall=0, source="test"),)

    def for_rows(self, rows: int) -> Sequence[dpf.Sensitivity]:
        return self.sensitivities

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.array([block.rows])

    def answer(self, counts: Any, **inputs: Any) -> Any:
        return np.minimum(counts, 1)


@pytest.mark.parametrize("unit", UNITS[1:])
def test_parts_that_use_what_holds_for_the_whole_table_are_caught(
    monkeypatch: pytest.MonkeyPatch, unit: dpf.PrivacyUnit
) -> None:
    """Each of a unit's rows may change the answer of a part of its own: only units of rows that differ show it."""
    node = dpf.step("step", Capped(), DiscreteLaplace(1))
    whole = audit(Planned(node), SCHEMA, ADD, replays=REPLAYS, unit=unit)
    assert whole.passed
    assert whole.tightness >= 0.9
    parts = Planned(dpf.parallel(node, by=SCHEMA["town"]))
    assert audit(parts, SCHEMA, ADD, replays=REPLAYS, unit=unit).passed
    monkeypatch.setattr(Plan, "in_parts", lambda self, step: False)
    wrong = audit(parts, SCHEMA, ADD, replays=REPLAYS, unit=unit)
    assert not wrong.passed
    assert wrong.tightness >= 1.9


# Truncation


def by_position(columns: Mapping[str, Sequence[Any]], schema: dpf.Schema, unit: dpf.PrivacyUnit, key: bytes) -> Any:
    """Keep those of a unit's rows that come in the first half of the table, and no more than k of them."""
    return _first(columns, schema, unit, lambda place, rows: place < rows // 2)


def modulo_position(columns: Mapping[str, Sequence[Any]], schema: dpf.Schema, unit: dpf.PrivacyUnit, key: bytes) -> Any:
    """Choose by a hash of the position in the table."""
    return _first(columns, schema, unit, lambda place, rows: (place * 2654435761) % 97 < 60)


def too_many(columns: Mapping[str, Sequence[Any]], schema: dpf.Schema, unit: dpf.PrivacyUnit, key: bytes) -> Any:
    return table_from_columns(columns, schema, unit=attrs.evolve(unit, rows=unit.rows + 1), key=key)


def anew(columns: Mapping[str, Sequence[Any]], schema: dpf.Schema, unit: dpf.PrivacyUnit, key: bytes) -> Any:
    """Draw one choice for all units together, which depends on how many rows there are."""
    return table_from_columns(columns, schema, unit=unit, key=str(len(columns["town"])).encode())


def nobodys(columns: Mapping[str, Sequence[Any]], schema: dpf.Schema, unit: dpf.PrivacyUnit, key: bytes) -> Any:
    """Keep rows without an id."""
    named = ["nobody" if whose is None else whose for whose in columns["person"]]
    return table_from_columns({**columns, "person": named}, schema, unit=unit, key=key)


def _first(columns: Mapping[str, Sequence[Any]], schema: dpf.Schema, unit: dpf.PrivacyUnit, chosen: Any) -> Any:
    ids, found, kept = columns["person"], dict[Any, int](), []
    for place, whose in enumerate(ids):
        if whose is not None and chosen(place, len(ids)) and found.get(whose, 0) < unit.rows:
            found[whose] = found.get(whose, 0) + 1
            kept.append(place)
    return table_from_columns({name: [cells[k] for k in kept] for name, cells in columns.items()}, schema, unit=unit)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("read", [by_position, modulo_position, too_many, anew, nobodys])
def test_rows_that_are_not_bounded_by_what_the_unit_has_alone_are_caught(read: Any, unit: dpf.PrivacyUnit) -> None:
    assert not check_bounding(SCHEMA, unit, read=read, tables=8).passed


@pytest.mark.parametrize("unit", UNITS)
def test_dpframework_bounds_rows_by_what_the_unit_has_alone(unit: dpf.PrivacyUnit) -> None:
    dpf.verify.assert_bounded(SCHEMA, unit, tables=8)
    numbers = dpf.Schema([dpf.Numeric("age", 0, 8, cuts=[4], missing=True), dpf.Boolean("ill", missing=True)])
    dpf.verify.assert_bounded(numbers, unit, tables=8)


# What is tried


def test_neighbours_of_one_row_are_those_there_always_were() -> None:
    universe = Universe(SCHEMA)
    assert changes(universe, ADD) == [(b"", bytes((kind,))) for kind in range(6)]
    pairs = itertools.combinations(range(6), 2)
    assert changes(universe, REPLACE) == [(bytes((one,)), bytes((other,))) for one, other in pairs]


@pytest.mark.parametrize("rows", [2, 4])
def test_neighbours_of_units_hold_equal_rows_and_rows_that_differ(rows: int) -> None:
    universe = Universe(SCHEMA)
    for resizes in (False, True):
        by = dpf.facts.UnitChange(rows, resizes)
        added, replaced = changes(universe, ADD, by), changes(universe, REPLACE, by)
        assert all(one == b"" and len(other) == rows for one, other in added)
        assert {len(set(other)) for _, other in added} >= {1, 2}
        sizes = {(len(one), len(other)) for one, other in replaced}
        assert sizes == ({(rows, rows), (0, rows)} if resizes else {(rows, rows)})
        assert all(one != other for one, other in replaced)
    assert Sizes.of(PUBLIC, REPLACE, 30, rows) == Sizes(8 - rows, 8 - rows)
    assert Sizes.of(attrs.evolve(SCHEMA, max_rows=9), ADD, 30, rows) == Sizes(0, 9 - rows)


def test_verification_is_of_the_unit_that_is_asked_for() -> None:
    example = dpf.run.Example(SCHEMA, dpf.miner("histogram", attribute="town", epsilon=1))
    found = verify_examples("histogram", {"one": example}, replays=500, runs=0, unit=UNITS[1])
    assert found.passed
    assert min(one.report.tightness for one in found.audits if one.report is not None) >= 0.9
