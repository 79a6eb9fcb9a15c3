"""Columns of units: what an aggregate means, its public domain, and one row a unit in every container."""

from __future__ import annotations

import collections
import math
import re

import attrs
import numpy as np
import polars as pl
import pytest

import dpframework as dpf
from dpframework.facts.derived_columns import DerivedColumn
from dpframework.facts.expression_operands_and_domains import Labels, Numbers, Operand, Truths
from dpframework.facts.unit_aggregates import AGGREGATES, MOST_SUMMED, aggregate, aggregate_parts, row_parts
from dpframework.reports.dossier import dossier
from dpframework.study.study_file import load_study
from dpframework.tables import sql_engine
from dpframework.tables.schema_fit import check_fit
from dpframework.tables.sql_unit_aggregates import table_of_units
from dpframework.tables.unit_accumulators import accumulator
from dpframework.verify import assert_bounded, assert_derived_row_by_row, unit_readers

COST = dpf.Numeric("cost", 0, 100, bins=4, missing=True)
COLUMNS = [
    COST,
    dpf.Boolean("ill", missing=True),
    dpf.Categorical("dx", ["a", "b", "c"], missing=True),
    dpf.Numeric("day", -9, 9, bins=3, missing=True),
]
WHO = dpf.PrivacyUnit("who")


def of_unit(name: str, value: str, **options) -> DerivedColumn:
    return dpf.derive(name, value, per="unit", **options)


def schema_of(*derive, columns=COLUMNS, **options) -> dpf.Schema:
    given = [one if not isinstance(one, str) else of_unit(f"d{k}", one) for k, one in enumerate(derive)]
    return dpf.Schema(columns, derive=given, **options)


WHOLE = schema_of(
    dpf.derive("dear", "cost > 50"),
    of_unit("visits", "count()", upper=30),
    of_unit("often", "count(dear)", upper=5),
    of_unit("ever", "any(ill)"),
    of_unit("always", "all(ill)"),
    of_unit("total", "sum(cost - 10)", lower=-50, upper=300, bins=7),
    of_unit("low", "min(cost)"),
    of_unit("high", "max(cost + ill)"),
    of_unit("first", "first(dx)"),
    of_unit("last", "last(cost)"),
    of_unit("earliest", "first(cost, day)"),
    of_unit("latest", "last(dx, day)"),
    of_unit("most", "mode(dx)"),
    of_unit("points", "mode(dx)", lookup={"a": 1, "b": 2.5}),
    dpf.derive("frequent", "visits > 2 and total > 20"),
)


def frame(rows: int = 400, people: int = 60) -> pl.DataFrame:
    rng = np.random.default_rng(rows)

    def holed(values: list) -> list:
        return [None if hole else value for value, hole in zip(values, rng.random(rows) < 0.3, strict=True)]

    return pl.DataFrame(
        {
            "who": holed([f"p{k}" for k in rng.integers(0, people, rows)]),
            "cost": holed(rng.integers(0, 110, rows).astype(float).tolist()),
            "ill": holed((rng.random(rows) < 0.6).tolist()),
            "dx": holed([["a", "b", "c"][k] for k in rng.integers(0, 3, rows)]),
            "day": holed(rng.integers(-4, 4, rows).tolist()),
        }
    )


def known(values: list) -> list:
    return [value for value in values if value is not None]


def expected(rows: list[dict]) -> dict:
    """The columns of a unit by plain Python, from its rows in their order."""
    cost = [None if row["cost"] is None else min(row["cost"], 100.0) for row in rows]
    ill, dx, day = ([row[name] for row in rows] for name in ("ill", "dx", "day"))
    both = known([None if None in pair else pair[0] + pair[1] for pair in zip(cost, ill, strict=True)])
    dated = [(d, k) for k, d in enumerate(day) if d is not None]
    of_cost = [(d, k, cost[k]) for d, k in dated if cost[k] is not None]
    of_dx = [(d, k, dx[k]) for d, k in dated if dx[k] is not None]
    counts = collections.Counter(known(dx))
    most = min((label for label in counts if counts[label] == max(counts.values())), default=None)
    total = min(max(sum(x - 10 for x in known(cost)), -50), 300) if known(cost) else None
    return {
        "visits": len(rows),
        "often": min(sum(x > 50 for x in known(cost)), 5),
        "ever": any(known(ill)) if known(ill) else None,
        "always": all(known(ill)) if known(ill) else None,
        "total": total,
        "low": min(known(cost), default=None),
        "high": max(both, default=None),
        "first": next(iter(known(dx)), None),
        "last": next(iter(known(cost)[::-1]), None),
        "earliest": min(of_cost, key=lambda one: one[:2], default=(0, 0, None))[2],
        "latest": max(of_dx, key=lambda one: one[:2], default=(0, 0, None))[2],
        "most": most,
        "points": {"a": 1, "b": 2.5}.get(most),
        "frequent": None if total is None and len(rows) > 2 else len(rows) > 2 and total > 20,
    }


def cells_of(table: dpf.Table, name: str) -> list:
    """The cells of a column, as Python has them, None where missing."""
    attribute = table.schema[name]
    if isinstance(attribute, dpf.Numeric):
        return [None if math.isnan(x) else x for x in table.values[name].tolist()]
    codes = table.columns[table.schema.index(name)].tolist()
    cells = [None if code == attribute.missing_code else attribute.labels[code] for code in codes]
    return [{"true": True, "false": False}.get(x, x) for x in cells] if attribute.kind == "boolean" else cells


# What aggregates mean


def test_each_unit_has_one_row_of_its_own_rows_in_the_order_of_first_rows():
    rows, people = frame().to_dicts(), collections.defaultdict(list)
    for row in rows:
        if row["who"] is not None:
            people[row["who"]].append(row)
    table = dpf.table_from_frame(frame(), WHOLE, unit=WHO)
    assert table.rows == len(people) > 50
    found = {name: cells_of(table, name) for name in WHOLE.names}
    for name in WHOLE.names:
        assert found[name] == [expected(own)[name] for own in people.values()], name
    assert set(found) == set(expected(rows))


def test_every_container_and_a_mapped_table_hold_the_same_rows(tmp_path):
    held = dpf.table_from_frame(frame(), WHOLE, unit=WHO)
    frame()[:150].write_parquet(tmp_path / "0.parquet")
    frame()[150:].write_parquet(tmp_path / "1.parquet")
    frame().write_csv(tmp_path / "t.csv")
    files = dpf.TableFiles(tmp_path / "*.parquet", WHOLE, unit=WHO)
    lazy = dpf.table_from_frame(frame().lazy(), WHOLE, unit=WHO)
    csv = dpf.read_table(tmp_path / "t.csv", WHOLE, unit=WHO, values=["total"])
    for table in (files.read(), files.read(mapped=True), lazy, csv):
        assert np.array_equal(table.codes, held.codes)
        for name in table.values:
            np.testing.assert_array_equal(table.values[name], held.values[name])
    assert set(csv.values) == {"total"}


def test_a_sum_is_that_of_a_units_rows_one_after_another_wherever_blocks_end():
    values = [0.1, 1e16, -1e16, 0.2, 0.3]
    part = Operand(Numbers(-1e17, 1e17), lambda rows: rows["x"])
    for cuts in ([], [1], [2], [1, 2, 3, 4]):
        found = accumulator("sum", [part], 2)
        for block in np.split(np.array(values), cuts):
            found.add(np.ones(len(block), dtype=np.intp), [block])
        assert found.cells()[1] == sum(np.cumsum(values)[-1:])
        assert math.isnan(found.cells()[0])


def test_the_most_frequent_is_found_over_blocks(monkeypatch):
    monkeypatch.setattr("dpframework.tables.unit_accumulators.MOST_PAIRS", 3)
    found = accumulator("mode", [Operand(Labels(("a", "b", "c")), lambda rows: rows["x"])], 3)
    for units, codes in (([0, 1, 0], [2, 1, 1]), ([0, 1], [2, -1]), ([1, 1, 0], [0, 0, 1])):
        found.add(np.array(units), [np.array(codes)])
    assert found.cells().tolist() == [1, 0, -1]


# Domains are public


def test_domains_follow_from_the_rows_schema():
    schema = schema_of("any(ill)", "all(cost > 3)", "min(cost)", "first(dx)", "mode(text(ill))", "last(ill)")
    assert schema["d0"] == dpf.Boolean("d0", missing=True)
    assert (schema["d2"].lower, schema["d2"].upper, schema["d2"].missing) == (0, 100, True)
    assert schema["d3"].values == ("a", "b", "c")
    assert schema["d4"].values == ("false", "true")
    assert schema["d5"] == dpf.Boolean("d5", missing=True)
    assert schema_of(of_unit("n", "count()", upper=9))["n"] == dpf.Numeric(
        "n", 1, 9, cuts=[k + 0.5 for k in range(1, 9)]
    )
    assert schema_of(of_unit("n", "count(ill)", upper=9))["n"].lower == 0
    assert schema_of(of_unit("s", "sum(cost)", upper=9))["s"].lower == 0
    assert schema_of(of_unit("n", "count()", upper=2, outside="missing"))["n"].missing


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("ill", "is no aggregate of a unit's rows"),
        ("any(ill) and any(ill)", "is no aggregate of a unit's rows"),
        ("sum(cost) +", "is no aggregate of a unit's rows"),
        ("mean(cost)", "calls 'mean', which is no aggregate"),
        ("any(cost)", "takes a truth"),
        ("count(dx)", "takes a truth"),
        ("sum(dx)", "not a number"),
        ("mode(cost)", "takes labels or truths"),
        ("sum(1 / day)", "sums numbers without bounds"),
        ("sum(cost)", "has no public bounds of its own"),
        ("count()", "has no public bounds of its own"),
        ("sum(day)", r"has no public bounds of its own (lower is not known)"),
        ("any()", "takes one expression, such as any(ill)"),
        ("min(cost, day)", "takes one expression, such as min(cost)"),
        ("first(cost, day, ill)", "perhaps a number that orders the rows"),
        ("first(cost, dx)", "orders rows by a number"),
        ("any(sum(cost))", "calls 'sum', which is no function"),
        ("any(nothing)", "'nothing', which is not in the schema before it"),
        ("first(cost, key=day)", "perhaps a number that orders the rows"),
        ("any(" + "not " * 2000 + "ill)", "characters"),
    ],
)
def test_what_is_no_aggregate_is_refused_in_a_sentence(value, says):
    with pytest.raises(dpf.InputError, match=re.escape(says)) as error:
        schema_of(of_unit("d", value, **({"upper": 9} if value == "sum(day)" else {})))
    assert str(error.value).startswith("derived column 'd': ")


@pytest.mark.parametrize(
    ("call", "row", "unit"),
    [
        ("sum(x)", Numbers(0.0, 5.0), Numbers(0.0, math.inf)),
        ("sum(x)", Numbers(2.0, 5.0, whole=True), Numbers(2.0, math.inf, whole=True)),  # a unit has a row
        ("sum(x)", Numbers(-5.0, 0.0), Numbers(-math.inf, 0.0)),
        ("sum(x)", Numbers(-5.0, -1.0), Numbers(-math.inf, -1.0)),
        ("sum(x)", Numbers(-1.0, 5.0), Numbers(-math.inf, math.inf)),
        ("sum(x)", Numbers(-MOST_SUMMED, MOST_SUMMED), Numbers(-math.inf, math.inf)),
        ("min(x)", Numbers(-1.0, 5.0, missing=True), Numbers(-1.0, 5.0, missing=True)),
        ("max(x)", Numbers(-1.0, math.inf, missing=True), Numbers(-1.0, math.inf, missing=True)),
        ("last(x)", Labels(("a", "b")), Labels(("a", "b"))),
        ("mode(x)", Labels(("a", "b"), missing=True), Labels(("a", "b"), missing=True)),
        ("any(x)", Truths(missing=True), Truths(missing=True)),
        ("count(x)", Truths(missing=True), Numbers(0.0, math.inf, whole=True)),
        ("count()", Truths(), Numbers(1.0, math.inf, whole=True)),
    ],
)
def test_an_aggregate_has_the_domain_that_rows_in_theirs_can_give(call, row, unit):
    found = aggregate(call)
    assert aggregate_parts(found, row_parts(found, {"x": row})).domain == unit


@pytest.mark.parametrize("row", [Numbers(0.0, 2 * MOST_SUMMED), Numbers(-2 * MOST_SUMMED, 0.0), Numbers(0.0, math.inf)])
def test_numbers_without_bounds_are_not_summed(row):
    found = aggregate("sum(x)")
    with pytest.raises(dpf.InputError, match="sums numbers without bounds"):
        aggregate_parts(found, row_parts(found, {"x": row}))


def test_columns_of_rows_and_of_units_are_kept_apart():
    with pytest.raises(dpf.InputError, match="reads 'cost', which has a value for each row, beside 'd0'"):
        schema_of("any(ill)", dpf.derive("x", "cost if d0 else 0"))
    with pytest.raises(dpf.InputError, match="'cost' belongs to single rows"):
        WHOLE["cost"]
    with pytest.raises(dpf.InputError, match="not in the schema"):
        WHOLE["nothing"]
    with pytest.raises(dpf.InputError, match="two derived columns"):
        schema_of(of_unit("d", "any(ill)"), of_unit("d", "all(ill)"))
    with pytest.raises(dpf.InputError, match="per is 'person'"):
        dpf.derive("d", "any(ill)", per="person")
    sides = schema_of("any(l)", "any(r)", columns=[dpf.Boolean("l", view="left"), dpf.Boolean("r", view="right")])
    with pytest.raises(dpf.InputError, match="rows of one file"):
        dpf.read_two_views("l.csv", "r.csv", sides)
    same = schema_of(of_unit("cost", "max(cost)"), dpf.derive("dear", "cost > 50"), dpf.derive("x", "dear or cost > 9"))
    assert same.names == ("cost", "dear", "x")


def test_a_schema_writes_its_columns_of_units_and_reads_them_back():
    bounded = schema_of(*WHOLE.derivation, max_rows=99)
    assert dpf.Schema.loads(bounded.dumps()) == bounded
    assert dpf.Schema.from_dict(WHOLE.to_dict()) == WHOLE
    other = [attrs.evolve(one, value="all(ill)") if one.name == "ever" else one for one in WHOLE.derivation]
    assert schema_of(*other).fingerprint != WHOLE.fingerprint
    few = WHOLE.select(["frequent", "most"])
    assert few.names == ("most", "visits", "total", "frequent")
    assert few.in_files.names == ("dx", "cost")
    assert dpf.Schema.loads(few.dumps()) == few
    assert WHOLE.of_part() == WHOLE
    with pytest.raises(dpf.InputError, match="is derived"):
        WHOLE.replace(dpf.Boolean("ever"))


# Studies


def test_a_study_needs_ids_and_charges_for_one_row():
    for given, says in (
        ({}, "no column of ids names units"),
        ({"rows_per_unit": 3}, "no column of ids names units"),
        ({"unit": "who", "rows_per_unit": 3}, "costs as much as one row"),
        ({"unit": "cost"}, "is an attribute"),
    ):
        with pytest.raises(dpf.InputError, match=says):
            dpf.Study(WHOLE, epsilon=1, **given)
    with pytest.raises(dpf.InputError, match="no column of ids"):
        dpf.TableFiles("t.csv", WHOLE)
    with pytest.raises(dpf.InputError, match="no column of ids"):
        dpf.table_from_frame(frame(), WHOLE)
    with pytest.raises(dpf.InputError, match="no column 'dx'"):
        dpf.table_from_frame(frame().drop("dx"), WHOLE, unit=WHO)
    study = dpf.Study(WHOLE, epsilon=1, unit="who")
    study.add("most", dpf.miner("histogram", attribute="most", epsilon=1))
    plan = study.plan()
    assert float(plan.total().epsilon) == 1
    assert "ever = any(ill) of the rows of each unit" in plan.facts.derive
    assert "frequent = visits > 2 and total > 20" in plan.facts.derive
    assert plan.facts.per_unit
    told = "\n".join(answer.text for item in dossier(plan).items for answer in item.answers)
    assert "All rows of each who are combined into one row, which is computed from these rows alone." in told
    found = study.run(dpf.table_from_frame(frame(), WHOLE, unit=WHO), seed=1)["most"]
    assert len(found.to_frame()) == 4


def test_a_study_file_derives_after_its_schema_and_a_period_bounds_the_rows(tmp_path):
    frame().write_csv(tmp_path / "visits.csv")
    (tmp_path / "schema.toml").write_text(WHOLE.select(["visits"]).dumps())
    (tmp_path / "study.toml").write_text(
        """
        data = { path = "visits.csv", schema = "schema.toml" }
        privacy = { epsilon = 1, unit = "who", period = "month", date = "when" }
        [read]
        separator = ";"
        [[derive]]
        name = "any"
        value = "any(cost > 90)"
        per = "unit"
        [[derive]]
        name = "both"
        value = "any and visits > 1"
        [[step]]
        name = "h"
        miner = "histogram"
        epsilon = 1
        params = { attribute = "both" }
        """
    )
    study = load_study(tmp_path / "study.toml").study
    assert study.schema.names == ("visits", "any", "both")
    assert study.schema.in_files.read.separator == ";"
    rows = pl.DataFrame(
        {
            "who": ["p", "q", "p", "p"],
            "cost": [95, 95, 1, 2],
            "when": ["2026-03-01", "2026-02-01", "2026-03-31", "2026-04-01"],
        }
    )
    table = dpf.table_from_frame(rows, study.schema, unit=study.unit.during("2026-03"))
    assert (table.rows, cells_of(table, "visits"), cells_of(table, "both")) == (1, [2], [True])


def test_the_owner_is_told_of_rows_that_do_not_fit_and_may_refuse_them():
    strange = frame().with_columns(pl.lit("?").alias("dx"))
    for column, what in (
        ("first(dx)", "'dx' holds values that are not in its public list"),
        ("min(cost)", "'cost' hold"),
    ):
        with pytest.raises(dpf.InputError, match=f"frame: attribute {what}"):
            dpf.table_from_frame(strange.drop_nulls("who"), schema_of(column), unit=WHO, out_of_domain="error")
    with pytest.raises(dpf.InputError, match="each row needs an id"):
        dpf.table_from_frame(frame(), WHOLE, unit=WHO, out_of_domain="error")
    with pytest.raises(dpf.InputError, match="more rows than the schema's public max_rows = 5"):
        dpf.table_from_frame(frame(), schema_of("any(ill)", max_rows=5), unit=WHO)
    told = [str(one) for one in check_fit(strange, schema_of("any(ill)", max_rows=99), unit=WHO)]
    assert told[0].startswith("cost: numbers beyond its bounds 0 and 100 in ")
    assert not any("rows_per_unit" in text or "max_rows" in text for text in told)


def test_empty_tables_and_rows_of_nobody_have_no_units():
    nobody = frame().with_columns(pl.lit(None, dtype=pl.String).alias("who"))
    assert dpf.table_from_frame(nobody, WHOLE, unit=WHO).rows == 0
    assert dpf.table_from_frame(frame()[:0], WHOLE, unit=WHO).rows == 0


# Verification


def test_a_row_of_a_unit_follows_from_its_own_rows():
    found = assert_derived_row_by_row(WHOLE, tables=12)
    assert found.changes == {"add-or-remove-one": 1, "replace-one": 2}
    files = [one for one in unit_readers() if one.name == "several files"]
    assert_bounded(schema_of("any(ill)", "last(dx)"), WHO, readers=files, tables=1)


def test_the_list_of_aggregates_is_in_the_page(request):
    page = (request.config.rootpath / "docs" / "study-format.md").read_text(encoding="utf-8")
    for name in AGGREGATES:
        assert f"`{name}(" in page, name


# In a database


def test_duckdb_makes_the_same_rows_of_people_bit_by_bit(tmp_path, monkeypatch):
    pytest.importorskip("duckdb", reason="the extra 'database' is not installed")
    made = table_of_units

    def of_rows_in_any_order(connection, table, *given):
        other = connection.new_name("shuffled")
        connection.run(f"create temp table {other} as select * from {table} order by hash(place)")
        return made(connection, other, *given)

    monkeypatch.setattr(sql_engine, "table_of_units", of_rows_in_any_order)
    amount = dpf.Numeric("amount", -1e12, 1e12, bins=9, missing=True)
    more = [
        of_unit("rounded", "sum(amount)", lower=-1e13, upper=1e13),
        of_unit("least", "min(-amount)"),
        of_unit("constant", "sum(1)", upper=9),
        of_unit("ending", "last(cost > 50, day // 2)"),
        of_unit("usual", "mode(ill)"),
        dpf.derive("difference", "rounded - total", lower=-1e13, upper=1e13),
    ]
    schema = schema_of(*WHOLE.derivation, *more, columns=[*COLUMNS, amount])
    rng, rows = np.random.default_rng(5), frame(900, 90)
    amounts = rng.normal(0, 1, 900) * 10.0 ** rng.integers(-9, 11, 900)  # whose sums differ in another order
    rows = rows.with_columns(amount=pl.when(pl.col("cost").is_not_null()).then(pl.Series(amounts)))
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    rows.head(500).write_parquet(files[0])
    rows.tail(400).write_parquet(files[1])
    for policy in ("clamp", "missing"):
        given = {"unit": WHO, "out_of_domain": policy}
        expected = dpf.read_table(files, schema, **given)
        engine = dpf.DuckDB(threads=2)
        opened = engine.open(dpf.TableFiles(files, schema, **given))
        listed = [f"c{k}" for k in range(len(schema))]
        values = {a.name: f"v{k}" for k, a in enumerate(schema) if isinstance(a, dpf.Numeric)}
        query = f"select {', '.join([*listed, *values.values()])} from {opened.table.name} order by place"
        found = engine._connection.columns(query)
        for name, column, codes in zip(schema.names, listed, expected.columns, strict=True):
            assert found[column].tolist() == codes.tolist(), name
        for name, column in values.items():
            own = np.ma.filled(found[column].astype(float), math.nan)
            assert np.array_equal(own, expected.values[name], equal_nan=True), name
        engine.close()
    whole = rows.with_columns(who=pl.col("who").fill_null("p"))
    for refused in (rows, whole):
        refused.write_parquet(files[0])
        said = set()
        for read in (lambda table: table.read(), dpf.DuckDB().open):
            with pytest.raises(dpf.InputError) as caught:
                read(dpf.TableFiles(files[0], schema, unit=WHO, out_of_domain="error"))
            said.add(str(caught.value))
        assert len(said) == 1, said
