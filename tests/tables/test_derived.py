"""Derived columns: what an expression means, its public domain, and the same cells in every container and engine."""

from __future__ import annotations

import datetime
import itertools
import math
import pickle
import re

import attrs
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import dpframework as dpf
from dpframework.facts.expression_operands_and_domains import Numbers
from dpframework.facts.expression_parser import FUNCTIONS
from dpframework.reports.text_plan_drawings import dot, mermaid, tree
from dpframework.tables.prediction_rows import NewRows
from dpframework.verify import assert_derived_row_by_row, assert_read_row_by_row, built_in_readers

A, B = dpf.Numeric("a", -3, 4, bins=7), dpf.Numeric("b", 1, 5, bins=4, missing=True)
SEX, ILL = dpf.Categorical("sex", ["f", "m"], missing=True), dpf.Boolean("ill", missing=True)
BORN = dpf.Numeric("born", -40_000, 40_000, bins=4)
READ = {"columns": {"born": {"date": ["iso"], "date_unit": "days"}}}
COLUMNS = [A, B, SEX, ILL]


def schema_of(*derive, columns=COLUMNS, **options) -> dpf.Schema:
    return dpf.Schema(columns, derive=[one if not isinstance(one, str) else dpf.derive("d", one) for one in derive])


def table_of(schema: dpf.Schema, **columns) -> dpf.Table:
    rows = len(next(iter(columns.values())))
    defaults = {"a": [0] * rows, "b": [1] * rows, "sex": ["f"] * rows, "ill": [False] * rows}
    return dpf.table_from_columns({**defaults, **columns}, schema)


def cells_of(text: str, **columns) -> list:
    """The derived cells of some rows, as Python has them, None where missing."""
    schema = schema_of(text)
    attribute, table = schema["d"], table_of(schema, **columns)
    if isinstance(attribute, dpf.Numeric):
        return [None if math.isnan(x) else x for x in table.values["d"].tolist()]
    labels = [*attribute.labels[: attribute.size - attribute.missing], *([None] if attribute.missing else [])]
    found = [labels[code] for code in table.columns[schema.index("d")].tolist()]
    return [{"true": True, "false": False}.get(x, x) for x in found] if attribute.kind == "boolean" else found


# What expressions mean


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("a + b", {"a": [1, 2], "b": [2, None]}, [3, None]),
        ("a // 2 * 10 + a % 2", {"a": [3, -3]}, [11, -19]),
        ("a / (a - 1) > 0", {"a": [2, 1, 0]}, [True, None, False]),
        ("fill(a / (a - 1), 0) > 1", {"a": [2, 1]}, [True, False]),
        ("a ** 3 - abs(a)", {"a": [-2, 2]}, [-10, 6]),
        ("sqrt(a) + round(b)", {"a": [4, -1], "b": [2.5, 1]}, [4, None]),
        ("min(a, b) + max(a, 0, b)", {"a": [-1, 3], "b": [2, 1]}, [1, 4]),
        ("floor(a) + ceil(a)", {"a": [0.5, -1.5]}, [1, -3]),
        ("-2 < a <= 1", {"a": [-2, -1, 1, 2]}, [False, True, True, False]),
        ("not ill and a > 0", {"a": [1, 1, -1], "ill": [False, None, None]}, [True, None, False]),
        ("ill or a > 0", {"a": [1, -1], "ill": [None, None]}, [True, None]),
        ("sex == 'm'", {"sex": ["m", "f", None]}, [True, False, None]),
        ("sex not in ['m']", {"sex": ["m", "f", None]}, [False, True, None]),
        ("a in [1, -2, 3]", {"a": [1, -2, 0]}, [True, True, False]),
        ("missing(sex) or missing(b)", {"sex": ["f", None, "m"], "b": [1, 1, None]}, [False, True, True]),
        ("sex + '-' + text(ill)", {"sex": ["f", "m", None], "ill": [True, False, True]}, ["f-true", "m-false", None]),
        ("text(round(b) - 3)", {"b": [2, None, 5]}, ["-1", None, "2"]),
        ("fill(sex, 'other')", {"sex": ["f", None]}, ["f", "other"]),
        ("cut(a, [0, 2], ['low', 'mid', 'high'])", {"a": [-1, 0, 1.9, 2]}, ["low", "mid", "mid", "high"]),
        ("'big' if a > 2 else sex", {"a": [3, 0, 0], "sex": ["f", "m", None]}, ["big", "m", None]),
        ("a if ill else b", {"a": [3, 3, 3], "b": [1, 1, 1], "ill": [True, False, None]}, [3, 1, None]),
        ("ill + (sex == 'f') + 1", {"sex": ["f", "m"], "ill": [True, True]}, [3, 2]),
        ('column("a") * 2 > 1', {"a": [1, 0]}, [True, False]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_expression_means_what_it_says(text, columns, expected):
    assert cells_of(text, **columns) == expected


def test_whole_numbers_of_a_small_range_are_labels_however_large_they_are() -> None:
    years = [str(year) for year in range(2001, 2006)]
    schema = schema_of(dpf.derive("d", "round(b) + 2000", values=years))
    assert schema["d"] == dpf.Categorical("d", years, missing=True)
    found = table_of(schema, b=[1, 5, None]).columns[schema.index("d")].tolist()
    assert [schema["d"].labels[code] for code in found] == ["2001", "2005", "missing"]
    numbers = [str(number) for number in range(1000)]
    for highest, listed in ((999, True), (1000, False)):
        columns = [dpf.Numeric("n", 0, highest, bins=1)]
        column = dpf.derive("d", "floor(n)", values=[*numbers, *([] if listed else ["1000"])])
        if listed:
            assert schema_of(column, columns=columns)["d"].size == 1000
        else:
            with pytest.raises(dpf.InputError, match="may be a number that is not in the list 'values'"):
                schema_of(column, columns=columns)


@st.composite
def expressions(draw, depth: int = 2) -> str:
    if depth == 0:
        return draw(st.sampled_from(["a", "c", "2", "0.5", "-1", "3"]))
    inner = expressions(depth=depth - 1)
    one, other, third = draw(inner), draw(inner), draw(inner)
    return draw(
        st.sampled_from(
            [
                f"({one} + {other})",
                f"({one} - {other})",
                f"({one} * {other})",
                f"({one} // 3 + {other} % 2)",
                f"abs({one})",
                f"min({one}, {other})",
                f"max({one}, {other})",
                f"({one} if {other} < {third} else {third})",
                f"({one} if {other} == {third} or not {one} >= 1 else {other})",
            ]
        )
    )


@settings(max_examples=80, deadline=None)
@given(expressions(), st.lists(st.tuples(st.floats(-3, 4), st.floats(0, 2)), min_size=1, max_size=4))
def test_numbers_are_those_of_python_within_bounds_that_follow_from_the_inputs(text, rows):
    columns = [A, dpf.Numeric("c", 0, 2, bins=2)]
    schema = dpf.Schema(columns, derive=[dpf.derive("d", f"{text} + a * c", outside="missing")])
    table = dpf.table_from_columns({"a": [a for a, _ in rows], "c": [c for _, c in rows]}, schema)
    known = {"abs": abs, "min": min, "max": max}
    expected = [eval(f"{text} + a * c", known, {"a": a + 0.0, "c": c + 0.0}) for a, c in rows]
    assert not schema["d"].missing  # bounds are known, and so no result lies outside
    np.testing.assert_array_equal(table.values["d"], np.array(expected) + 0.0)
    assert all(schema["d"].lower <= x <= schema["d"].upper for x in expected)


def test_dates_have_their_parts():
    schema = dpf.Schema(
        [BORN],
        read=READ,
        derive=[dpf.derive(part, f"{part}(born)", cuts=None) for part in ("year", "month", "day", "weekday", "hour")],
    )
    days = [
        datetime.date(1970, 1, 1),
        datetime.date(1969, 12, 31),
        datetime.date(2024, 2, 29),
        datetime.date(1899, 3, 5),
    ]
    table = dpf.table_from_columns({"born": [day.isoformat() for day in days]}, schema)
    for name in ("year", "month", "day"):
        assert table.values[name].tolist() == [getattr(day, name) for day in days]
    assert table.values["weekday"].tolist() == [day.isoweekday() for day in days]
    assert schema["month"].interior_cuts[0] == 1.5
    assert schema["month"].size == 12
    assert (schema["year"].lower, schema["year"].upper) == (1860, 2079)


# Domains are public


def test_domains_follow_from_the_inputs():
    schema = schema_of(
        dpf.derive("n", "a * b"),
        dpf.derive("t", "a > 1"),
        dpf.derive("l", "'x' if a > 1 else sex"),
        dpf.derive("kids", "floor(a)", values=["-3", "-2", "-1", "0", "1", "2", "3", "4"]),
    )
    assert (schema["n"].lower, schema["n"].upper, schema["n"].missing) == (-15, 20, True)
    assert schema["t"] == dpf.Boolean("t")
    assert schema["l"].values == ("x", "f", "m")
    assert schema["l"].missing
    assert schema["kids"].labels[0] == "-3"


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("a + b", (-2, 9)),
        ("a - b", (-8, 3)),
        ("-a", (-4, 3)),
        ("a * b", (-15, 20)),
        ("a / b", (-3, 4)),
        ("(a - 5) / b", (-8, -0.2)),
        ("a ** 2", (0, 16)),
        ("a ** 3", (-27, 64)),
        ("a // 2", (-2, 2)),
        ("a % 2", (0, 2)),
        ("abs(a)", (0, 4)),
        ("abs(a - 5)", (1, 8)),
        ("abs(a + 3)", (0, 7)),
        ("abs(a - 4)", (0, 7)),
        ("(a - 5) ** 2", (1, 64)),
        ("b ** 2", (1, 25)),
        ("sqrt(b + 4)", (5**0.5, 3)),
        ("min(a, b)", (-3, 4)),
        ("max(a, b)", (1, 5)),
        ("a if ill else b", (-3, 5)),
        ("fill(b, -7)", (-7, 5)),
        ("ill - 1", (-1, 0)),
    ],
)
def test_bounds_are_the_smallest_and_largest_results(text, bounds):
    attribute = schema_of(text)["d"]
    assert (attribute.lower, attribute.upper) == bounds
    ends = itertools.product([-3, -1, 0, 3, 4], [1, 5], [False, True, None])
    columns = dict(zip("abi", map(list, zip(*ends, strict=True)), strict=True))
    columns = {"a": columns["a"], "b": [*columns["b"][:-1], None], "ill": columns["i"]}
    values = table_of(schema_of(dpf.derive("d", text, lower=-99, upper=99)), **columns).values["d"]
    assert bounds[0] <= np.nanmin(values)
    assert np.nanmax(values) <= bounds[1]


@pytest.mark.parametrize(
    ("ends", "found"),
    [
        ([0.0, -2.0, 1.0], Numbers(-2.0, 1.0)),
        ([5.0], Numbers(5.0, 5.0)),
        ([0.0, math.inf], Numbers(0.0, math.inf, missing=True)),
        ([-math.inf, 0.0], Numbers(-math.inf, 0.0, missing=True)),
        ([math.nan, 1.0], Numbers(-math.inf, math.inf, missing=True)),
    ],
)
def test_a_number_without_a_bound_on_either_side_may_be_missing(ends, found):
    """An operation on it may overflow, and then no number is defined."""
    assert Numbers.between(ends) == found
    assert found.bounded is not found.missing
    assert Numbers.between(ends, missing=True, whole=True) == attrs.evolve(found, missing=True, whole=True)


def test_results_outside_of_a_declared_domain_are_clamped_or_missing():
    clamp = schema_of(dpf.derive("d", "a", lower=-1, upper=1, bins=2))
    missing = schema_of(dpf.derive("d", "a", lower=-1, upper=1, bins=2, outside="missing"))
    assert table_of(clamp, a=[-3, 0, 4]).values["d"].tolist() == [-1, 0, 1]
    np.testing.assert_array_equal(table_of(missing, a=[-3, 0, 4]).values["d"], [math.nan, 0, math.nan])
    few = schema_of(dpf.derive("d", "sex", values=["m"], outside="missing"))
    assert table_of(few, sex=["m", "f"]).columns[-1].tolist() == [0, 1]
    known = schema_of(dpf.derive("d", "'x' if a > 0 else 'y'", values=["y"], outside="missing"))
    assert known["d"].labels == ("y", "missing")
    assert table_of(known, a=[1, -1]).columns[-1].tolist() == [1, 0]


@pytest.mark.parametrize("text", ["a / b", "a / (a - 1)", "1 / a"])
def test_a_quotient_that_may_have_no_bound_needs_a_declared_one(text):
    if text == "a / b":
        assert (schema_of(text)["d"].lower, schema_of(text)["d"].upper) == (-3, 4)
        return
    with pytest.raises(dpf.InputError, match="has no public bounds of its own"):
        schema_of(text)
    assert schema_of(dpf.derive("d", text, lower=-9, upper=9))["d"].missing


REFUSED = [
    ("a.b > 1", "which no expression may hold"),
    ("a[0]", "which no expression may hold"),
    ("[x for x in a]", "which no expression may hold"),
    ("(lambda: a)()", "which no expression may hold"),
    ("__import__('os')", "no function of expressions"),
    ("sum(a)", "no function of expressions; it is computed from all rows of a unit"),
    ("log(a)", "no function of expressions; its last digit depends on the machine"),
    ("roud(a)", "no function of expressions; did you mean 'round'"),
    ("mean(a)", "no function of expressions"),
    ("aa + 1", "'aa', which is not in the schema before it"),
    ("a +", "is not an expression"),
    ("a == '\x1b[2J'", "is invisible"),
    ("1 + 1", "reads no column"),
    ("sex > 'f'", "labels have none"),
    ("sex == 'male'", "none of the values"),
    ("sex in ['male']", "none of the values"),
    ("sex * 2", "not a number"),
    ("sex + a", "joins"),
    ("a == 'x'", "one column"),
    ("a and ill", "takes truths"),
    ("a if sex else b", "takes truths"),
    ("a if ill else sex", "one column"),
    ("a ** 0.5", "whole number from 1 to 8"),
    ("a ** 0", "whole number from 1 to 8"),
    ("a ** 9", "whole number from 1 to 8"),
    ("a ** b", "whole number from 1 to 8"),
    ("a // b", "constant above 0"),
    ("a - a * 0 - a", ""),
    ("year(a)", "takes a column of dates"),
    ("cut(a, [2, 1], ['x', 'y', 'z'])", "strictly increasing"),
    ("cut(a, [1], ['x'])", "one more label"),
    ("a is b", "which no expression may hold"),
    ("min(a)", "two numbers"),
    ("abs(a, b)", "takes 1 argument"),
    ("max(a, b, key=abs)", "which no expression may hold"),
    ("column(a)", "in quotes"),
    ("+".join(["a"] * 50), "nested deeper"),
    ("a + " + "1" * 4001, "characters"),
    ("a + 9007199254740993", "53 bits"),
    ("a if a > 0 else 1e999", "no float holds"),
]


@pytest.mark.parametrize(("text", "says"), [one for one in REFUSED if one[1]], ids=[t[:30] for t, s in REFUSED if s])
def test_what_no_row_alone_tells_is_refused_in_a_sentence(text, says):
    with pytest.raises(dpf.InputError, match=says) as error:
        schema_of(text)
    assert str(error.value).startswith("derived column 'd': ")


@pytest.mark.parametrize("lacking", range(1, 7))
def test_values_that_are_not_listed_are_named_four_at_most(lacking):
    town = dpf.Categorical("town", [f"t{k}" for k in range(7)])
    named = ", ".join(f"'t{k}'" for k in range(min(lacking, 4))) + ", ..." * (lacking > 4)
    derive = dpf.derive("d", "town", values=[f"t{k}" for k in range(lacking, 7)] + ["more"])
    with pytest.raises(dpf.InputError, match=re.escape(f"'d': may be {named}, which the list 'values' lacks")):
        dpf.Schema([town], derive=[derive])
    loose = dpf.Schema([town], derive=[attrs.evolve(derive, outside="missing")])
    table = dpf.table_from_columns({"town": town.labels}, loose)
    assert loose["d"].missing
    assert table.columns[1].tolist() == [8 - lacking] * lacking + list(range(7 - lacking))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"outside": "error"}, "may not stop"),
        ({"values": ["1"]}, "may be a number that is not in the list 'values'"),
        ({"bins": 2, "cuts": [1]}, "either bins"),
        ({"lower": 5, "upper": 5}, "in every row"),
    ],
)
def test_declarations_that_do_not_fit_are_refused(options, says):
    with pytest.raises(dpf.InputError, match=says):
        schema_of(dpf.derive("d", "a", **options))


def test_declarations_of_labels_and_names():
    with pytest.raises(dpf.InputError, match="which the list 'values' lacks"):
        schema_of(dpf.derive("d", "sex", values=["m"]))
    with pytest.raises(dpf.InputError, match="is not a number, so it has no bins"):
        schema_of(dpf.derive("d", "sex", bins=2))
    with pytest.raises(dpf.InputError, match="two derived columns"):
        schema_of("a > 1", "a > 2")
    with pytest.raises(dpf.InputError, match="listed and derived"):
        schema_of(dpf.derive("sex", "a > 1"))
    one = dpf.derive("d", "a > 1")
    assert dpf.Schema([A, dpf.Boolean("d"), B], derive=[one]).column_names == ("a", "b")
    with pytest.raises(dpf.InputError, match="listed before a column that it reads"):
        dpf.Schema([dpf.Boolean("d"), A], derive=[one])
    with pytest.raises(dpf.InputError, match="no file holds it"):
        dpf.Schema(COLUMNS, read={"columns": {"d": {"null": ["-"]}}}, derive=[dpf.derive("d", "a > 1")])
    with pytest.raises(dpf.InputError, match="is open"):
        dpf.Schema([dpf.Open("town")], derive=[dpf.derive("d", "town == 'x'")])


# A part of the schema

WHOLE = schema_of(
    dpf.derive("d", "a * b", lower=-9, upper=9, bins=6),
    dpf.derive("e", "sex + text(d > 0)"),
    dpf.derive("f", "(a > 0) + ill", values=["0", "1", "2"]),
    dpf.derive("g", "sex", lookup={"f": 2.5, "m": 4}),
)


def test_a_schema_writes_its_derived_columns_and_reads_them_back():
    assert dpf.Schema.loads(WHOLE.dumps()) == WHOLE
    assert dpf.Schema.from_dict(WHOLE.to_dict()) == WHOLE
    assert pickle.loads(pickle.dumps(WHOLE)) == WHOLE
    assert WHOLE.column_names == ("a", "b", "sex", "ill")
    assert WHOLE.names[4:] == ("d", "e", "f", "g")
    other = schema_of(dpf.derive("d", "a * b", lower=-9, upper=8, bins=6), *WHOLE.derive[1:])
    assert other.fingerprint != WHOLE.fingerprint


def test_parts_of_a_schema_keep_what_derived_columns_are_made_of():
    assert WHOLE.select(["e", "ill"]).names == ("ill", "a", "b", "sex", "d", "e")
    assert WHOLE.select(["a"]).derive == ()
    chain = schema_of(*(dpf.derive(new, f"{old} + 1") for new, old in ("cb", "dc", "ed")))
    assert [column.name for column in chain.select(["e"]).derive] == ["c", "d", "e"]  # each before what is made of it
    assert chain.select(["d", "a"]).names == ("a", "b", "c", "d")
    wider = WHOLE.replace(dpf.Numeric("a", -3, 9, bins=12))
    assert wider["a"].upper == 9
    with pytest.raises(dpf.InputError, match="is derived"):
        WHOLE.replace(dpf.Boolean("d"))


# The same cells everywhere


def frame(rows: int = 500) -> pl.DataFrame:
    rng = np.random.default_rng(rows)
    return pl.DataFrame(
        {
            "a": rng.uniform(-4, 5, rows),
            "b": [None if k % 7 == 0 else x for k, x in enumerate(rng.uniform(0, 6, rows).tolist())],
            "sex": [[None, "f", "m"][k] for k in rng.integers(0, 3, rows)],
            "ill": [[None, True, False][k] for k in rng.integers(0, 3, rows)],
        }
    )


def same(one: dpf.Table, other: dpf.Table) -> None:
    for a, b in zip(one.columns, other.columns, strict=True):
        np.testing.assert_array_equal(a, b)
    assert one.values.keys() == other.values.keys()
    for name in one.values:
        np.testing.assert_array_equal(one.values[name], other.values[name])


def test_files_and_mapped_tables_hold_the_same_cells(tmp_path):
    held = dpf.table_from_frame(frame(), WHOLE)
    frame().write_csv(tmp_path / "t.csv")
    frame().write_parquet(tmp_path / "t.parquet")
    same(held, dpf.read_table(tmp_path / "t.csv", WHOLE))
    same(held, dpf.read_table(tmp_path / "t.parquet", WHOLE, mapped=True))
    few = dpf.read_table(tmp_path / "t.csv", WHOLE, values=["d"])
    assert set(few.values) == {"d"}
    np.testing.assert_array_equal(few.values["d"], held.values["d"])


def test_a_column_of_the_file_with_a_derived_name_is_not_read():
    with_own = frame().with_columns(pl.lit("nonsense").alias("d"))
    same(dpf.table_from_frame(frame(), WHOLE), dpf.table_from_frame(with_own, WHOLE))


def test_duckdb_derives_the_same_cells(tmp_path):
    pytest.importorskip("duckdb", reason="the extra 'database' is not installed")
    for k in range(2):
        frame(300 + k).write_parquet(tmp_path / f"{k}.parquet")
    study = dpf.Study(WHOLE, epsilon=1000)
    study.add("cells", dpf.miner("marginals", attributes=["d", "e", "f", "g"], order=4, epsilon=900))
    study.add("mean", dpf.miner("mean", attribute="d", epsilon=90))
    files = dpf.TableFiles(tmp_path / "*.parquet", WHOLE)
    expected = study.run(files.read(), seed=1)
    found = study.run(files, engine=dpf.DuckDB(threads=1), seed=1)
    for name in ("cells", "mean"):
        assert found[name].to_dict() == expected[name].to_dict()


def test_two_views_derive_from_both(tmp_path):
    columns = [dpf.Numeric("a", -3, 4, bins=7, view="left"), dpf.Boolean("ill", view="right")]
    schema = dpf.Schema(columns, derive=[dpf.derive("x", "a > 0"), dpf.derive("y", "a > 0 and ill", view="right")])
    assert [attribute.view for attribute in schema] == ["left", "right", "left", "right"]
    pl.DataFrame({"a": [1.0, -1.0, 2.0]}).write_csv(tmp_path / "l.csv")
    pl.DataFrame({"ill": [True, True, False]}).write_csv(tmp_path / "r.csv")
    table = dpf.read_two_views(tmp_path / "l.csv", tmp_path / "r.csv", schema)
    assert table.columns[2].tolist() == [1, 0, 1]
    assert table.columns[3].tolist() == [1, 0, 0]


def test_rows_to_predict_have_derived_cells_and_unknown_ones_where_a_cell_is_unknown():
    schema = dpf.Schema([A, dpf.Categorical("town", ["x", "y"])], derive=[dpf.derive("d", "town == 'x' or a > 3")])
    with pytest.warns(UserWarning, match="'town' 2, 'd' 1"):
        rows = NewRows.read({"a": [0, 0, 4], "town": ["x", "?", "?"]}, schema, out_of_domain="clamp")
    assert rows.block.codes("d").tolist() == [1, 0, 1]
    assert rows.unknown["d"].tolist() == [False, True, False]


def test_units_are_bounded_before_columns_are_derived():
    unit = dpf.PrivacyUnit("who", 1)
    table = dpf.table_from_frame(
        frame(60).with_columns(pl.Series("who", [k // 3 for k in range(60)])), WHOLE, unit=unit, key=b"k"
    )
    assert table.rows == 20
    again = dpf.Table.from_codes(WHOLE, table.codes, table.values)
    same(table, again)


# Verification


def test_derived_columns_follow_from_each_row_by_itself():
    assert_derived_row_by_row(WHOLE)
    found = assert_derived_row_by_row(
        dpf.Schema([BORN], read=READ, derive=[dpf.derive("m", "month(born)"), dpf.derive("h", "born / 7")])
    )
    assert found.changes == {"add-or-remove-one": 1, "replace-one": 2}


def test_every_reader_derives_row_by_row():
    assert_read_row_by_row(WHOLE, readers=built_in_readers("missing"), tables=10)


def test_the_list_of_functions_is_in_the_page(request):
    page = (request.config.rootpath / "docs" / "study-format.md").read_text(encoding="utf-8")
    for name in FUNCTIONS:
        assert f"`{name}(" in page, name


def test_expressions_are_told_in_plan_graph_and_hash():
    study = dpf.Study(WHOLE, epsilon=1)
    study.add("d", dpf.miner("histogram", attribute="d", epsilon=1))
    plan = study.plan()
    assert plan.facts.derive[0] == "d = a * b (lower -9; upper 9; bins 6)"
    assert plan.graph().graph["derived"] == plan.facts.derive
    for drawn in (tree(plan), mermaid(plan), dot(plan)):
        assert "derived: d = a * b (lower -9" in drawn
    other = dpf.Study(schema_of(dpf.derive("d", "a + b", lower=-9, upper=9, bins=6)), epsilon=1)
    other.add("d", dpf.miner("histogram", attribute="d", epsilon=1))
    assert other.plan().hash != plan.hash
    assert not list(itertools.filterfalse(str, plan.facts.derive))
