"""Verification of privacy units: known bugs, planted, are caught each time, and the correct versions pass.

Nothing here is caught by statistics: replays are exact, and tables are read twice with the same key.
"""

from __future__ import annotations

import itertools
import unicodedata
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
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
from dpframework.tables.ids import ids_of
from dpframework.tables.reading import table_from_columns
from dpframework.verify import UnitReader, audit, check_bounding, search_sensitivity, unit_readers, verify_examples
from dpframework.verify.tables.neighbours import Sizes, Universe, changes
from dpframework.verify.tables.people_with_confusable_ids import ID_KINDS, PAIRS
from dpframework.verify.tables.row_independence_checks import Cells

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
    from dpframework.verify.miners.audit_subject import Subject

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


def held_as_columns(name: str, read: Any) -> UnitReader:
    return UnitReader(name, lambda cells, _: cells, read)


def naming(name: str, name_of: Callable[[Any], Any]) -> UnitReader:
    """Bound people's rows by names that are made of each id."""

    def read(columns: Cells, schema: dpf.Schema, unit: dpf.PrivacyUnit, key: bytes) -> dpf.Table:
        people = [None if cell is None else f"named {name_of(cell)}" for cell in columns["person"]]
        return table_from_columns({**columns, "person": people}, schema, unit=unit, key=key)

    return held_as_columns(name, read)


def choosing(name: str, mark_of: Callable[[list[str | None], int, int, Sequence[Any], bytes], Any]) -> UnitReader:
    """Keep the rows of each person with the smallest marks.

    A mark is of all ids, the row's place in the table and among the person's, the row and the key.
    """

    def read(columns: Cells, schema: dpf.Schema, unit: dpf.PrivacyUnit, key: bytes) -> dpf.Table:
        people = ids_of(columns["person"], "t").series.to_list()
        rows = [[columns[name][k] for name in schema.names] for k in range(len(people))]
        of_people: dict[str, list[tuple[Any, int]]] = {}
        for k, whose in enumerate(people):
            if whose is not None:
                own = of_people.setdefault(whose, [])
                own.append((mark_of(people, k, len(own), rows[k], key), k))
        marked = ([one for one in own if one[0] is not None] for own in of_people.values())
        kept = sorted(k for own in marked for _, k in sorted(own)[: unit.rows])
        return table_from_columns({name: [columns[name][k] for k in kept] for name in schema.names}, schema)

    return held_as_columns(name, read)


def digest(*parts: Any) -> int:
    return zlib.crc32(repr(parts).encode())


def as_float(cell: Any) -> Any:
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return exact(cell)


def exact(cell: Any) -> str:
    return str(ids_of([cell], "t").series[0])


def too_many(columns: Cells, schema: dpf.Schema, unit: dpf.PrivacyUnit, key: bytes) -> dpf.Table:
    return table_from_columns(columns, schema, unit=attrs.evolve(unit, rows=unit.rows + 1), key=key)


def anew(columns: Cells, schema: dpf.Schema, unit: dpf.PrivacyUnit, key: bytes) -> dpf.Table:
    """Draw one choice for all units together, which depends on how many rows there are."""
    return table_from_columns(columns, schema, unit=unit, key=str(len(columns["town"])).encode())


def nobodys(columns: Cells, schema: dpf.Schema, unit: dpf.PrivacyUnit, key: bytes) -> dpf.Table:
    """Keep rows without an id as one person's."""
    named = ["nobody" if whose is None else whose for whose in columns["person"]]
    return table_from_columns({**columns, "person": named}, schema, unit=unit, key=key)


def of_one_type(columns: Cells, schema: dpf.Schema, unit: dpf.PrivacyUnit, key: bytes) -> dpf.Table:
    """Let a library choose one type for all ids."""
    people = ["" if whose is None else f"named {whose}" for whose in np.array(columns["person"]).tolist()]
    people = ["" if cell is None else one for cell, one in zip(columns["person"], people, strict=True)]
    return table_from_columns({**columns, "person": people}, schema, unit=unit, key=key)


def honest(columns: Cells, schema: dpf.Schema, unit: dpf.PrivacyUnit, key: bytes) -> dpf.Table:
    return table_from_columns(columns, schema, unit=unit, key=key)


def in_blocks(columns: Cells, schema: dpf.Schema, unit: dpf.PrivacyUnit, key: bytes) -> dpf.Table:
    """Bound the rows of eight at a time."""
    number = len(columns["town"])
    blocks = [{name: cells[k : k + 8] for name, cells in columns.items()} for k in range(0, number, 8)]
    return together([table_from_columns(block, schema, unit=unit, key=key) for block in blocks or [columns]], schema)


def by_file(files: list[Path], schema: dpf.Schema, unit: dpf.PrivacyUnit, key: bytes) -> dpf.Table:
    return together([dpf.read_table(file, schema, unit=unit, key=key) for file in files], schema)


def all_files(files: list[Path], schema: dpf.Schema, unit: dpf.PrivacyUnit, key: bytes) -> dpf.Table:
    return dpf.read_table(files, schema, unit=unit, key=key)


def together(tables: Sequence[dpf.Table], schema: dpf.Schema) -> dpf.Table:
    return dpf.Table.from_codes(schema, list(np.concatenate([table.codes for table in tables], axis=1)))


def first_of_all(columns: Cells, schema: dpf.Schema, unit: dpf.PrivacyUnit, key: bytes) -> dpf.Table:
    """Keep as many rows as the people may have together: the first ones of the table."""
    named = ids_of(columns["person"], "t").series
    rows = named.is_not_null().arg_true().to_list()[: unit.rows * named.drop_nulls().n_unique()]
    return table_from_columns({name: [columns[name][k] for k in rows] for name in schema.names}, schema)


SEVERAL = next(reader for reader in unit_readers() if reader.name == "several files")
HONEST = held_as_columns("honest", honest)
BY_ID = naming("by id", exact)

# A known bug, and an honest reader beside it that differs in the one thing.
BUGS: list[tuple[UnitReader, UnitReader]] = [
    (
        choosing("the first half of the table", lambda p, k, own, row, key: k if k < len(p) // 2 else None),
        choosing("the first of each", lambda p, k, own, row, key: own),
    ),
    (
        choosing("by place in the table", lambda p, k, own, row, key: digest(key, p[k], k)),
        choosing("by own place", lambda p, k, own, row, key: digest(key, p[k], own)),
    ),
    (
        choosing(
            "by place in large tables", lambda p, k, own, row, key: digest(key, p[k], k if len(p) > 10_000 else own)
        ),
        choosing("by own place", lambda p, k, own, row, key: digest(key, p[k], own)),
    ),
    (
        choosing("ids of others in the key", lambda p, k, own, row, key: digest(key, p[k - 1], own)),
        choosing("own id in the key", lambda p, k, own, row, key: digest(key, p[k], own)),
    ),
    (
        choosing(
            "values among all values",
            lambda p, k, own, row, key: digest(key, row) if digest(row) % len(p) < len(p) // 2 else None,
        ),
        choosing("own values", lambda p, k, own, row, key: digest(key, p[k], row)),
    ),
    (held_as_columns("too many", too_many), HONEST),
    (held_as_columns("anew", anew), HONEST),
    (held_as_columns("rows of nobody", nobodys), HONEST),
    (held_as_columns("the first of all", first_of_all), HONEST),
    (held_as_columns("bounded by block", in_blocks), HONEST),
    (attrs.evolve(SEVERAL, name="bounded by file", read=by_file), attrs.evolve(SEVERAL, read=all_files)),
    (held_as_columns("one type for all ids", of_one_type), HONEST),
    (naming("float ids", as_float), BY_ID),
    (naming("by Python's hash", lambda cell: hash(cell) if isinstance(cell, int) else exact(cell)), BY_ID),
    (naming("few buckets", lambda cell: zlib.crc32(exact(cell).encode()) % 8), BY_ID),
    (naming("case folded", lambda cell: exact(cell).casefold()), BY_ID),
    (naming("cut to 40 characters", lambda cell: exact(cell)[:40]), BY_ID),
    (naming("accents composed", lambda cell: unicodedata.normalize("NFC", exact(cell))), BY_ID),
    (naming("as it is written", repr), BY_ID),
    (
        naming("bytes as text", lambda cell: exact(cell.decode(errors="replace") if type(cell) is bytes else cell)),
        BY_ID,
    ),
]


@pytest.mark.parametrize("bug", [bug for bug, _ in BUGS], ids=lambda bug: bug.name)
def test_rows_that_are_not_bounded_by_what_the_unit_has_alone_are_caught(bug: UnitReader) -> None:
    report = check_bounding(SCHEMA, UNITS[1], readers=[bug], tables=3 * len(ID_KINDS))
    assert not report.passed
    what = "2,500 people: " if "large" in bug.name else "ids that are "
    assert all(sentence.startswith(f"{bug.name}, {what}") for sentence in report.violations)


@pytest.mark.parametrize("twin", {twin.name: twin for _, twin in BUGS}.values(), ids=lambda twin: twin.name)
def test_honest_readers_beside_them_pass(twin: UnitReader) -> None:
    report = check_bounding(SCHEMA, UNITS[1], readers=[twin], tables=len(ID_KINDS))
    assert report.passed, str(report)
    assert report.loss == pytest.approx(1)


@pytest.mark.parametrize(("unit", "tables"), list(zip(UNITS, (4, len(ID_KINDS), 4), strict=True)))
def test_dpframework_bounds_rows_by_what_the_unit_has_alone(unit: dpf.PrivacyUnit, tables: int) -> None:
    report = dpf.verify.assert_bounded(SCHEMA, unit, tables=tables)
    assert report.loss == pytest.approx(1)
    assert str(report).endswith("pandas, pyarrow, columns); a claim of 1 lost 1")
    assert report.to_dict()["passed"] is True


def test_numbers_are_bounded_as_codes_are() -> None:
    numbers = dpf.Schema([dpf.Numeric("age", 0, 8, cuts=[4], missing=True), dpf.Boolean("ill", missing=True)])
    dpf.verify.assert_bounded(numbers, UNITS[1], tables=3)


def test_people_who_are_merged_lose_more_than_is_claimed() -> None:
    """A release is replayed over the keys: a claim of 1 loses about 1.4 where one of two people's rows is kept."""
    report = check_bounding(SCHEMA, UNITS[0], readers=[naming("float ids", as_float)], tables=2 * len(ID_KINDS))
    assert any(
        "loses 1." in sentence and "in a release that claims 1, over 4 keys" in sentence
        for sentence in report.violations
    )
    assert 1.2 < report.loss <= 2 + 1e-9


def test_people_that_samples_would_take_together_are_found() -> None:
    def numbered(columns: Cells, schema: dpf.Schema, unit: dpf.PrivacyUnit, key: bytes) -> dpf.Table:
        table = table_from_columns(columns, schema, unit=unit, key=key)
        return table.with_units(range(table.rows))

    report = check_bounding(SCHEMA, UNITS[1], readers=[held_as_columns("numbered", numbered)], tables=1)
    assert [sentence.split(": ")[1] for sentence in report.violations] == [
        "samples would draw several people as one, or one person as several"
    ]


def test_bounding_that_cannot_be_tested_is_one_sentence() -> None:
    with pytest.raises(dpf.InputError, match="give the unit an id"):
        check_bounding(SCHEMA, dpf.PrivacyUnit(rows=2))

    def refuse(cells: Cells, path: Path) -> Any:
        raise TypeError

    with pytest.raises(dpf.InputError, match="reader 'none' could hold none of the 2 tables; give more tables"):
        check_bounding(SCHEMA, UNITS[0], readers=[attrs.evolve(HONEST, name="none", hold=refuse)], tables=2)


def test_neighbours_among_people_are_apart_and_spellings_are_together() -> None:
    """By the rule that reads them: each pair is two people, and each person one."""
    for pairs in PAIRS.values():
        names = [{exact(cell) for cell in person} for pair in pairs for person in pair]
        assert all(len(name) == 1 for name in names)
        assert len(set.union(*names)) == len(names)


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
    assert found.bounding is not None
    assert found.to_dict()["bounding"]["loss"] == found.bounding.loss == pytest.approx(1)
    assert min(one.report.tightness for one in found.audits if one.report is not None) >= 0.9
